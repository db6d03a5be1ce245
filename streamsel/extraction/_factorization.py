"""Base class of the online matrix factorisations x ≈ D w, and their second pass over columns."""

from __future__ import annotations

import abc
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from streamsel import params
from streamsel._utils.numeric import TIE_RTOL
from streamsel.base.caching import cached_until_update
from streamsel.base.extractor import Extractor
from streamsel.base.linear_map import Alignment, LinearMap, align_components, shared_weights
from streamsel.base.undo import learn_atomically, learn_in_session
from streamsel.data.names import NameHash
from streamsel.extraction._loadings import LoadingsPassResult, TopLoadings
from streamsel.params import param
from streamsel.state.base import Floats, StoredLoadings
from streamsel.state.factorization.columns import FactorizationState
from streamsel.state.factorization.model import Coder, FactorModel
from streamsel.state.factorization.rows import RowFactorization
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension
from streamsel.state.sketch import RandomEntries
from streamsel.state.source_check import PassVerifier
from streamsel.stream import ColumnStream

# Bytes of columns that are coded at a time.
_BATCH_BYTES = 4 << 20


class FactorizationExtractor(Extractor):
    """Base class of extractors by online matrix factorisation, x ≈ D w, with codes w.

    A method defines the codes. On columns D are the components, and the codes of variables their
    loadings. On rows the roles are exchanged: a row is coded by the loadings, and these are
    refined.
    """

    _column_state_type = FactorizationState
    _row_state_type = RowFactorization

    max_loadings: int = param(
        params.IntRule(1),
        default=500,
        doc="""
        Number of columns, those of largest variance, with loadings after one pass; after
        `learn_loadings`, those of the largest loadings.
        """,
    )
    batch_size: int = param(
        params.IntRule(1),
        default=256,
        doc="""
        Number of columns per batch; on rows, the number of rows after which the loadings are
        refreshed at the latest.
        """,
    )
    seed: int = param(
        params.IntRule(0), default=0, doc="Seed of the random components that the fit starts from."
    )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "batch_size": 16, "warm_up": 10}
        yield {
            "n_components": 3,
            "max_features": 5,
            "fading_factor": 0.05,
            "grace_period": 20,
            "batch_size": 32,
        }

    # Implemented by methods

    @property
    @abc.abstractmethod
    def _coder(self) -> Coder:
        """The coder, which expresses columns in the components."""

    # State

    def _new_columns(self, n: int) -> FactorizationState:
        q, width = self.n_components, self.batch_size
        return FactorizationState(n, self.max_loadings, q, width, self.seed, self._coder)

    def _new_row_extension(self) -> RowFactorization:
        keys = NameHash(self.seed, "factorisation")
        random = RandomEntries(self.n_components, "gaussian", 1.0, keys).matrix
        row_state = RowFactorization(self.n_components, self.batch_size, self._coder, random)
        state, found = self._column_state, self._solution_on_columns()
        if state is not None and found is not None:
            A = self._pad_components(self._pad_components(found.scores.T @ found.scores).T)
            void = A.diagonal() == 0.0
            A[void, void] = state.n
            means = state.table["mean"]
            row_state.start_from_columns(
                state.names, means, self._pad_components(found.loadings), A, found.fit
            )
        return row_state

    def _pad_components(self, array: Floats) -> Floats:
        """Return an array padded with zero columns, one per component that does not exist."""
        padded = np.zeros((len(array), self.n_components))
        padded[:, : array.shape[1]] = array
        return padded

    @property
    def _column_state(self) -> FactorizationState | None:
        """The components, while only columns are learnt."""
        return cast("FactorizationState | None", self._columns)

    @property
    def _row_state(self) -> tuple[RowFactorization, Moments]:
        """The loadings and the moments, on rows."""
        return cast("RowFactorization", self._row_extension), cast("Moments", self._moments)

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        loadings = None if self._column_state is None else self._column_state.loadings
        if loadings is not None:
            loadings.expect_components(self.n_components)
        if self._phase.on_rows:
            row_state, moments = self._row_state
            if row_state.table.names != moments.table.names:
                raise ValueError("Expected loadings of the variables tracked. Got: of others.")

    # Components

    @cached_until_update
    def _solution_on_columns(self) -> ColumnSolution | None:
        """Return the solution on columns; None if none varied."""
        state = self._column_state
        if state is None or not state.names:
            return None
        fit = state.current_fit()
        scores, rotation, _ = self._coder.axes(fit)
        found = ColumnSolution(fit, scores, rotation, np.empty((0, len(rotation))))
        loadings = found.encode(self._coder, state.pool_columns())
        up = _signs(loadings)
        return ColumnSolution(fit, scores * up, rotation * up, loadings * up)

    @cached_until_update
    def _solution_on_rows(self) -> tuple[FactorModel, Floats, Floats] | None:
        """Return the fit to the rows, the signed loadings, and the residual variances."""
        if not self._phase.on_rows:
            return None
        row_state, moments = self._row_state
        fit, squares, _ = row_state.refreshed(moments.stats().mean)
        loadings = self._coder.axes(fit).loadings
        weight = max(fit.weight, 1.0)
        residual = squares / weight - np.einsum("ik,kl,il->i", fit.D, fit.A / weight, fit.D)
        return fit, loadings * _signs(loadings), np.maximum(residual, 0.0)

    def _component_map(self) -> LinearMap:
        state, found, on_rows = (
            self._column_state,
            self._solution_on_columns(),
            self._solution_on_rows(),
        )
        if on_rows is not None:
            fit, loadings, _ = on_rows
            noise, moments = fit.noise, self._row_state[1]
            names, means = moments.table.names, moments.stats().mean
        elif state is None or found is None:
            return LinearMap.empty(self.n_components)
        else:
            noise = found.fit.noise * found.fit.unit**2
            names, means, loadings = state.names, state.table["mean"], found.loadings
            if state.loadings is not None:
                names, means, loadings, _ = state.loadings
        weights = self._pad_components(self._coder.weights(loadings, noise))
        used = np.flatnonzero(weights.any(axis=1))
        return LinearMap([names[index] for index in used.tolist()], means[used], weights[used])

    def _alignment(self, new: LinearMap, in_use: LinearMap | None) -> Alignment:
        found = self._solution_on_rows()
        if in_use is None or found is None:
            return super()._alignment(new, in_use)
        fit, _, residual = found
        indices, mine, theirs = shared_weights(new, in_use, self._row_state[1].index_of)
        D, residual = fit.D[indices], residual[indices]
        A = fit.A / max(fit.weight, 1.0)

        def covariance(one: Floats, other: Floats) -> Floats:
            varying: Floats = (one.T @ D) @ A @ (D.T @ other) + (one.T * residual) @ other
            return varying

        return align_components(
            covariance(mine, theirs),
            covariance(mine, mine),
            covariance(theirs, theirs).diagonal(),
            in_use.known_reference,
            self._first_weight,
        )

    def _protected(
        self,
        moments: Moments,  # noqa: ARG002
        extension: RowExtension | None,  # noqa: ARG002
    ) -> Collection[Hashable]:
        # All variables tracked have loadings, and not all can be kept when new ones arrive.
        return ()

    def _check_tracked(self, names: Any) -> None:
        # An evicted variable remains in the map in use until the next refresh.
        if type(names) is not list or len({*names}) < len(names):
            raise ValueError(f"Expected a list of distinct names to track. Got: {names!r}.")

    # Second pass

    @property
    def _wants_second_pass(self) -> bool:
        state = self._column_state
        return state is not None and not state.complete and state.loadings is None

    def learn_loadings(
        self,
        X: Any,
        names: Sequence[Hashable] | None = None,
        *,
        max_loadings: int | None = None,
    ) -> None:
        """Make a second pass over the columns, for the loadings of all of them, or of the largest.

        Parameters
        ----------
        X, names
            As in `learn_columns`: exactly the columns that were learnt, in any order.
        max_loadings
            Number of variables with loadings; None for the parameter of this name.

        Raises
        ------
        ValueError, TypeError
            As `learn_columns`; for other columns than those learnt; and before columns, or after
            rows. The model is unchanged.

        Notes
        -----
        Every column is coded by the final components. Without this pass only columns of the pool
        have loadings; if the pool holds all columns nothing changes. Costs as much as
        `learn_columns`.
        """
        rule = params.IntRule(1, optional=True)
        params.check("learn_loadings", {"max_loadings": rule}, {"max_loadings": max_loadings})
        self._refuse_after_rows()
        source = self._numeric_stream(X, names)
        limit = max_loadings or self.max_loadings
        learn_in_session(self, BaseException, self._learn_loadings, source, limit)

    def _learn_loadings(self, source: ColumnStream, limit: int) -> None:
        state, found = self._learnt_columns()
        same = PassVerifier(state, self.n_columns)
        shape, no_probe = (0, self.n_components), np.zeros((0, 0))
        # Columns without loadings are not kept.
        largest = LoadingsPassResult(shape, no_probe, limit, min_size=0.0)
        for chunk, stats in self._scanned(source):
            same.check(chunk.names, stats)
            indices = np.flatnonzero(stats.m2)
            step = max(1, _BATCH_BYTES // (8 * chunk.n))
            for start in range(0, indices.size, step):
                batch = indices[start : start + step]
                columns = state.unit_rows_of(chunk, stats, batch)
                columns *= np.sqrt(stats.m2[batch])[:, None]
                loadings = self._pad_components(found.encode(self._coder, columns))
                large = largest.select_large(loadings)
                names, own = [chunk.names[j] for j in batch[large].tolist()], batch[large]
                deviations = np.sqrt(stats.m2[own] / chunk.n)
                moments = stats.mean[own], deviations, np.ones(own.size)
                largest.add(TopLoadings(names, *moments, np.empty((own.size, 0)), loadings[large]))
        same.check_complete()
        largest.discard_smallest()
        names, means, deviations, _, _, weights = largest.columns()
        if not state.complete:
            stored = StoredLoadings(names, means, weights, deviations)
            learn_atomically(self, self._accept_loadings, state, stored)

    def _learnt_columns(self) -> tuple[FactorizationState, ColumnSolution]:
        """Return the state and the solution on columns; ValueError if there is none."""
        state, found = self._column_state, self._solution_on_columns()
        if state is None or found is None:
            raise ValueError(
                "Expected a model that has learnt columns that vary. Got: none yet.\n"
                "Hint: learn_columns(X) first."
            )
        return state, found

    def _accept_loadings(self, state: FactorizationState, loadings: StoredLoadings) -> None:
        state.set_loadings(loadings)
        self._cache.pop("_map", None)

    # Results

    @property
    def noise_variance(self) -> float:
        """The residual variance of a value; NaN before anything varied."""
        on_rows, found = self._solution_on_rows(), self._solution_on_columns()
        if on_rows is not None:
            return on_rows[0].noise
        return np.nan if found is None else found.fit.noise * found.fit.unit**2

    @property
    def loadings(self) -> dict[Hashable, dict[str, float]]:
        """Weights of the variables: variable -> {component: weight}, without zeros.

        In order of arrival.
        """
        return self._weights_of(self._map())

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component: 1, as there is no target."""
        return {} if self._state is None else dict.fromkeys(self.components, 1.0)

    def _embedding(self) -> Floats:
        found = self._solution_on_columns()
        return super()._embedding() if found is None else self._pad_components(found.scores)


class ColumnSolution(NamedTuple):
    """The solution on columns.

    Parameters
    ----------
    fit
        The internal components.
    scores
        (n, q) the reported components.
    rotation
        (q, q) maps codes, in the fit's unit, to loadings on the reported components.
    loadings
        (p, q) of the columns of the pool.
    """

    fit: FactorModel
    scores: Floats
    rotation: Floats
    loadings: Floats

    def encode(self, coder: Coder, X: Floats) -> Floats:
        """Return the loadings of columns, given as centred rows, (b, n)."""
        fit = self.fit
        loadings: Floats = coder.encode(fit, X / fit.unit).codes @ self.rotation * fit.unit
        return loadings


def _signs(loadings: Floats) -> Floats:
    """Return the signs that make the largest loading of each component positive."""
    if not len(loadings):
        return np.ones(loadings.shape[1])
    largest = np.abs(loadings)
    first = (largest >= largest.max(axis=0) * (1.0 - TIE_RTOL)).argmax(axis=0)
    signs: Floats = np.where(loadings[first, np.arange(first.size)] < 0.0, -1.0, 1.0)
    return signs
