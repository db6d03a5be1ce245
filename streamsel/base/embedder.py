"""Define the base class of embedders: similarity-based components, extended by landmarks."""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from streamsel import params
from streamsel._utils.numeric import argsort_by_relevance
from streamsel.base.caching import cached_until_update
from streamsel.base.cross_products import cross_products
from streamsel.base.extractor import Extractor
from streamsel.base.linear_map import align_components, are_comparable
from streamsel.base.report import Report
from streamsel.base.river import Unsupervised
from streamsel.base.shared_gram import expect_matrix, share_columns
from streamsel.base.windows import Window
from streamsel.params import param
from streamsel.serialization.invariants import expect_bounded
from streamsel.serialization.schema import expect_shapes
from streamsel.state.base import Floats, Indices
from streamsel.state.gram.gram import MAX_GRAM_ROWS, check_rows
from streamsel.state.gram.landmarks import Landmarks, Similarity
from streamsel.state.gram.pooled import SharedGram
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension
from streamsel.state.pool.pool import Pool, TopRanked, variances
from streamsel.state.source_check import PASS_RTOL, PassVerifier, source_changed_error
from streamsel.targets.target import Target

# Maximum size of an array of values compared with landmarks in one batch.
_BATCH_SIZE = 1 << 22


class Embedder(Extractor, Unsupervised):
    """Base class of learners whose components are functions of the similarity of observations.

    The similarity is computed from all columns. Components are not linear in the variables, so they
    are represented by landmarks: some of the rows learnt, restricted to the variables of a pool. A
    method defines the embedding of the observations, `_embed`, and its extension to new rows:
    `_similarity` and `_extension_weights`.
    """

    _column_state_type = SharedGram
    _row_state_type = Window
    # A window forgets all rows before it, with their variables.
    _fixed_parameters: ClassVar[Mapping[str, Any]] = {"fading_factor": 0.0, "grace_period": 100}

    n_landmarks: int = param(
        params.IntRule(1),
        default=500,
        doc="""
        Maximum number of rows kept as landmarks, which new rows are compared with: all rows learnt,
        or an evenly spaced subset.
        """,
    )
    max_variables: int = param(
        params.IntRule(1),
        default=500,
        doc="""
        Number of variables by which new rows are compared: those of the largest variance. The pool
        keeps this many, and at most twice as many, in addition to the Gram matrix; while it holds
        all variables, all of them are used.
        """,
    )
    window_size: int = param(
        params.IntRule(2),
        default=200,
        doc="""
        Number of rows in a window: they are buffered, and then learnt as columns, all at once.
        """,
    )
    max_gram_rows: int = param(
        params.IntRule(2),
        default=MAX_GRAM_ROWS,
        doc="""
        Maximum number of observations for which a Gram matrix is kept; 15,000 take 0.9 GB, and nine
        times as much while components are computed.
        """,
    )

    # Implemented by methods

    @abc.abstractmethod
    def _embed(self, rows: Similarity) -> Floats:
        """Return the embedding of the observations, (n, k), from their pairwise similarity.

        k is at most `n_components`. The method may overwrite `rows`.
        """

    @abc.abstractmethod
    def _similarity(self, rows: Similarity) -> Floats:
        """Return the method's similarity of rows to landmarks, (b, m)."""

    @abc.abstractmethod
    def _extension_weights(
        self, rows: Similarity, indices: Indices, Z: Floats
    ) -> tuple[Floats, Floats]:
        """Return weights (m, k) and offset (k,) that map similarities to components.

        Parameters
        ----------
        rows
            Similarity of the observations to the landmarks.
        indices
            Indices of the landmarks among the observations, ascending.
        Z
            Embedding of the observations.
        """

    # State

    def __post_init__(self) -> None:
        super().__post_init__()
        # The components in use, on the rows of the last window: (window_size, q).
        self._components_in_use: Floats | None = None

    def _new_columns(self, n: int) -> SharedGram:
        check_rows(
            n,
            self.max_gram_rows,
            "learn_many(X) learns rows by windows; RandomFourier followed by PCA takes any number.",
        )
        pool = Pool(None, n, self.max_variables, TopRanked(variances), samples=True)
        return SharedGram(pool, scaled=False, rank=None, n_jobs=self.n_jobs)

    @property
    def _gram_state(self) -> SharedGram | None:
        """The state on columns, or of the last window."""
        return cast("SharedGram | None", self._columns)

    def learn_from(self, other: Extractor) -> None:
        """Learn the columns of another fitted model, without a pass over them.

        The Gram matrix is stored once, until one of the two models learns more.

        Parameters
        ----------
        other
            A fitted learner that keeps the Gram matrix of all columns, such as PCA with
            `scale=False`, without covariates; it is not changed.

        Raises
        ------
        TypeError
            For a learner of another family.
        ValueError
            If the number of rows differs, either model has learnt rows, this model has learnt
            columns, or the other has scaled columns, covariates or leading axes only. The model is
            not changed.
        """
        share_columns(self, other, expect_matrix)

    def _protected(
        self,
        moments: Moments,  # noqa: ARG002
        extension: RowExtension | None,  # noqa: ARG002
    ) -> Collection[Hashable]:
        return ()

    # Results

    def _observation_similarity(self) -> Similarity | None:
        """Return the similarity of the observations; None if they are all equal."""
        state = self._gram_state
        if state is None or not state.n_varying:
            return None
        K = state.matrix()
        diagonal = K.diagonal()
        peak = float(diagonal.max())
        if not peak > 0.0:
            return None
        # Divide by the maximum first: a sum of large values may overflow.
        mean = float((diagonal / peak).mean())
        K /= peak
        K /= mean
        squares = K.diagonal().copy()
        return Similarity(K, squares, squares, peak * mean)

    @cached_until_update
    def _observation_embedding(self) -> Floats | None:
        """Return the embedding of the observations, (n, k); None if they are all equal."""
        rows = self._observation_similarity()
        return None if rows is None else self._embed(rows)

    def _component_map(self) -> Landmarks:
        state, observed, Z = (
            self._gram_state,
            self._observation_similarity(),
            self._observation_embedding(),
        )
        if state is None or observed is None or Z is None:
            return Landmarks.empty(self.n_components)
        n, unit = state.n, math.sqrt(observed.variance)
        m = min(n, self.n_landmarks)
        rows = np.arange(m) * n // m
        weights, offset = self._extension_weights(observed.with_others(rows), rows, Z)
        indices = self._landmark_variables(state)
        stats, length = state.stats(indices), np.sqrt(state.stats(indices).m2) / unit
        return Landmarks.of(
            names=[state.names[index] for index in indices.tolist()],
            means=stats.mean + stats.mean_error,
            rows=rows,
            values=(state.pool.samples(indices)[:, rows] * length[:, None]).T,
            weights=self._padded(weights),
            offset=self._padded(offset),
            unit=unit,
            share=1.0 if state.complete else float(length @ length) / n,
            density=m / n,
        )

    def _landmark_variables(self, state: SharedGram) -> Indices:
        """Return the variables by which rows are compared: all, or those of largest variance."""
        if state.complete:
            return np.arange(len(state.names))
        variance = state.stats().m2
        return np.sort(argsort_by_relevance(variance / variance.max())[: self.max_variables])

    def _padded(self, array: Floats) -> Floats:
        """Return components, padded with zeros to `n_components`."""
        n_missing = self.n_components - array.shape[-1]
        return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, n_missing)])

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component: 1, as there is no target."""
        Z = self._observation_embedding()
        return {} if Z is None else dict.fromkeys(self.components[: Z.shape[1]], 1.0)

    @property
    def landmarks(self) -> dict[Hashable, dict[str, float]]:
        """Rows that new rows are compared with: row -> {component: weight}, without zeros.

        Rows are given by their index among the rows learnt; in River, among those of the last
        window.
        """
        return self._weights_of(self._map())

    def _weights_of(self, used: Landmarks | None) -> dict[Hashable, dict[str, float]]:
        return {} if used is None else self._weights_as_dicts(used.rows.tolist(), used.weights)

    def _embedding(self) -> Floats:
        Z = self._observation_embedding()
        return np.zeros((self.n_rows, 0)) if Z is None else Z.copy()

    def report(self) -> Report:
        """Return the results as a `Report`, which the command and the HTML report show.

        Returns
        -------
        One row per component, without loadings, as components are not linear in the variables; the
        number of landmarks, the number of variables by which new rows are compared with them, and
        the share of the variance that these variables have.
        """
        row: dict[str, Any] = {"above_noise": None, "loadings": []}
        found = [{"name": name, "relevance": 1.0} | row for name in self.relevance]
        landmarks = self._map()
        details = {
            "n_landmarks": len(landmarks.rows),
            "n_variables": len(landmarks.names),
            "share_of_variance": min(1.0, landmarks.share),
        }
        return self._report(None, "components", found, self.n_components, details)

    @property
    def _empty_map(self) -> Landmarks:
        return Landmarks.empty(self.n_components)

    def _apply(self, used: Landmarks, X: Floats) -> Floats:
        rows = np.atleast_2d(X)
        Z = np.empty((len(rows), self.n_components))
        step = max(1, _BATCH_SIZE // max(1, len(used.rows), X.shape[-1]))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            Z[part] = self._similarity(used.products_with(rows[part])) @ used.weights + used.offset
        return Z[0] if X.ndim == 1 else Z

    def transform_columns(
        self, X: Any, X_new: Any, names: Sequence[Hashable] | None = None
    ) -> Floats:
        """Return the components of new rows computed exactly, from all columns and all rows learnt.

        The columns of the rows learnt are read in a second pass, each together with the same column
        of the new rows, to accumulate the inner products of every new row with every row learnt.

        Parameters
        ----------
        X
            All columns that were learnt, and no others, in any order, in a form that
            `learn_columns` accepts.
        X_new
            The same columns of the new rows, in the order of X.
        names
            Names of the columns of arrays or matrices; numbered from 0 if None.

        Returns
        -------
        (number of new rows, q)

        Raises
        ------
        ValueError, TypeError
            As `learn_columns`; for columns that differ between X and X_new, or from those learnt;
            and after rows were learnt.

        Notes
        -----
        Costs one multiplication per column for each pair of a new row and a row learnt, and memory
        for one number per pair.
        """
        self._refuse_after_rows()
        observed, Z = self._observation_similarity(), self._observation_embedding()
        state = self._gram_state
        if state is None or observed is None or Z is None:
            raise ValueError(
                "Expected a model that has learnt columns. Got: no columns that vary.\n"
                "Hint: learn_columns(X) first."
            )
        n, variance = len(Z), observed.variance
        learnt, new = (self._numeric_stream(part, names) for part in (X, X_new))
        same = PassVerifier(state, self.n_columns)
        products = cross_products(learnt, new, n, math.sqrt(variance), same)
        if not np.allclose(products.learnt, observed.squares, rtol=PASS_RTOL, atol=PASS_RTOL):
            raise source_changed_error("columns with other values")
        weights, offset = self._extension_weights(observed, np.arange(n), Z)
        rows = Similarity(products.products, products.squares, observed.squares, variance)
        return self._padded(self._similarity(rows) @ weights + offset)

    # Rows, and the snapshot in use

    @property
    def _window_size(self) -> int:
        hint = "use a smaller window_size, or a larger max_gram_rows."
        check_rows(self.window_size, self.max_gram_rows, hint)
        return self.window_size

    def _learn_window(self, names: list[Hashable], X: Floats, target: Target | None) -> None:
        super()._learn_window(names, X, target)
        self._components_in_use = (
            None if self._refresh.stored is None else self._at(self._refresh.stored, names, X)
        )

    def _at(self, landmarks: Landmarks, names: list[Hashable], X: Floats) -> Floats:
        """Return the components of rows (n, p) with these names; variables that they lack are 0."""
        index_of = {name: j for j, name in enumerate(names)}
        values = np.zeros((len(X), len(landmarks.names)))
        for i, name in enumerate(landmarks.names):
            if name in index_of:
                values[:, i] = X[:, index_of[name]]
        return self._apply(landmarks, values)

    def _refreshed(self, *, keep_stable: bool) -> Landmarks:
        del keep_stable  # components are always aligned with those in use
        new: Landmarks = self._map()
        old_components, state = self._components_in_use, self._gram_state
        if old_components is None or state is None:
            return new
        indices = np.array([state.index_of[name] for name in new.names], dtype=np.intp)
        X = state.pool.samples(indices).T * np.sqrt(state.stats(indices).m2) + new.means
        Z, old = (part - part.mean(axis=0) for part in (self._apply(new, X), old_components))
        no_scale = np.zeros(Z.shape[1])
        by = align_components(Z.T @ old, Z.T @ Z, np.square(old).sum(axis=0), no_scale)
        aligned = new.rotated(by.matrix)
        aligned = aligned.rotated(np.diag(self._scale_ratio(self._refresh.stored, aligned)))
        self._components_in_use = self._apply(aligned, X)
        return aligned

    def _scale_ratio(self, in_use: Landmarks, new: Landmarks) -> Floats:
        """Return the factors, (q,), by which components of new landmarks keep their scale.

        The scale of a component is its standard deviation over its own landmarks. Over other rows
        it is mostly smaller: if it were measured over the rows of the new window, components would
        shrink from window to window.
        """

        def scale(landmarks: Landmarks) -> Floats:
            if not landmarks.rows.size:
                return np.zeros(self.n_components)
            rows = landmarks.values * landmarks.unit + landmarks.means
            deviations: Floats = self._apply(landmarks, rows).std(axis=0)
            return deviations

        kept, found = scale(in_use), scale(new)
        return np.divide(kept, found, out=np.ones(kept.size), where=are_comparable(kept, found))

    @property
    def in_use(self) -> dict[Hashable, dict[str, float]]:
        """Landmarks that a transform uses: row -> {component: weight}."""
        return self._weights_of(self._in_use())

    # Files

    def _get_state(self) -> dict[str, Any]:
        state = super()._get_state()
        return (
            state | {"components_in_use": self._components_in_use} if self._phase.on_rows else state
        )

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        if self._phase.on_rows and state["components_in_use"] is not None:
            expect_shapes(state, components_in_use=(state["n_rows"], self.n_components))
            self._components_in_use = np.array(state["components_in_use"], dtype=float)
            expect_bounded("components", self._components_in_use)

    def _snapshot_to_state(self, snapshot: Landmarks | None) -> dict[str, Any] | None:
        return None if snapshot is None else snapshot.to_state()

    def _snapshot_from_state(self, state: dict[str, Any] | None) -> Landmarks | None:
        if state is None:
            return None
        self._check_tracked(state["names"])
        return Landmarks.from_state(state, self.n_components)
