"""Learners that place observations by how alike they are, and new rows beside landmarks."""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from streamsel import params
from streamsel.held.foremost import Foremost
from streamsel.held.gram import check_rows
from streamsel.held.gram_columns import GramColumns
from streamsel.held.landmarks import Landmarks, Likeness
from streamsel.held.part import Floats, Places
from streamsel.held.pool import Pool
from streamsel.held.possible import expect_bounded
from streamsel.held.same import ROUGH, Same, unlike_before
from streamsel.learner.builder import Builder
from streamsel.learner.cached import until_learnt
from streamsel.learner.extractor import least_motion
from streamsel.learner.in_parallel import crossed
from streamsel.learner.report import Report
from streamsel.learner.river import Unsupervised
from streamsel.learner.sharing import Sharing
from streamsel.learner.window import Window
from streamsel.params import param
from streamsel.shapes import expect_shapes
from streamsel.stream import as_stream
from streamsel.ties import most_relevant_first

# So many numbers are compared with landmarks at once.
_AT_ONCE = 1 << 22


class Embedder(Sharing, Builder, Foremost, Unsupervised):
    """A learner whose components are a function of how alike observations are, over all columns.

    It is not linear in the variables, so what it has found is said by landmarks: some of the rows
    learnt, as the variables of a pool show them. A method says where the observations are placed,
    `_embed`, and how new ones follow from those: `_alike`, `_weigh`.
    """

    keeps = GramColumns
    rows = Window
    _hooks = ("_embed", "_weigh", "_alike")

    n_landmarks: int = param(
        params.Whole(1),
        default=500,
        doc="""
        Most rows kept as landmarks, for new ones to be compared with: all rows learnt, or every so
        many-th of them.
        """,
    )
    max_variables: int = param(
        params.Whole(1),
        default=500,
        doc="""
        How many variables new rows are compared by: those of the largest variance. As many, and at
        most twice as many, are held beside the Gram matrix; as long as these are all, all serve.
        """,
    )
    window_size: int = param(
        params.Whole(2),
        default=200,
        doc="Rows of a window: so many are kept, and then learnt as columns, all at once.",
    )
    max_rows_gram: int = param(
        params.Whole(2),
        default=15_000,
        doc="""
        Most observations of which a Gram matrix is kept; 15,000 take 0.9 GB, and nine times as much
        when components are asked for.
        """,
    )

    # What a method says

    @abc.abstractmethod
    def _embed(self, rows: Likeness) -> Floats:
        """Return where observations are placed, (n, k), by how alike they are to one another.

        There are at most `n_components`, k, and `rows` is the method's to do with as it likes.
        """

    @abc.abstractmethod
    def _alike(self, rows: Likeness) -> Floats:
        """Return how alike rows are to landmarks, (b, m), as the method takes it."""

    @abc.abstractmethod
    def _weigh(self, rows: Likeness, places: Places, Z: Floats) -> tuple[Floats, Floats]:
        """Return what makes components of how alike a row is to landmarks: (m, k) and (k,).

        Parameters
        ----------
        rows
            How alike the observations are to the landmarks.
        places
            Which of the observations these are, ascending.
        Z
            Where the observations are placed.
        """

    # What it keeps

    def _begin_rows(self) -> None:
        super()._begin_rows()
        # What stands, on the rows of the last window: (window_size, q).
        self._stood: Floats | None = None

    def _new_columns(self, n: int) -> GramColumns:
        check_rows(
            n,
            self.max_rows_gram,
            "learn_many(X) learns rows by windows; RandomFourier and PCA after it take any number.",
        )
        pool = GramColumns(None, n, self.max_variables, scaled=False, rank=None, n_jobs=self.n_jobs)
        pool.serve(self)
        return pool

    def _bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        return rows["m2"] / pool.n

    def _protected(self) -> Collection[Hashable]:
        return ()

    # What it finds

    def _observed(self) -> Likeness | None:
        """Return how alike the observations are; None where none differs from another."""
        held = self._columns
        if not isinstance(held, GramColumns) or not held.varying:
            return None
        K = held.matrix()
        diagonal = K.diagonal()
        peak = float(diagonal.max())
        if not peak > 0.0:
            return None
        # The sum of what is large need not be a number.
        mean = float((diagonal / peak).mean())
        K /= peak
        K /= mean
        own = K.diagonal().copy()
        return Likeness(K, own, own, peak * mean)

    @until_learnt
    def _placed(self) -> Floats | None:
        """Return where the observations are, (n, k); None where there is nothing to tell."""
        rows = self._observed()
        return None if rows is None else self._embed(rows)

    @until_learnt
    def _map(self) -> Landmarks:
        held, observed, Z = self._columns, self._observed(), self._placed()
        if observed is None or Z is None or not isinstance(held, GramColumns):
            return Landmarks.none(self.n_components)
        n, unit = held.n, math.sqrt(observed.variance)
        m = min(n, self.n_landmarks)
        rows = np.arange(m) * n // m
        weights, offset = self._weigh(observed.with_others(rows), rows, Z)
        places = self._compared_by(held)
        stats, length = held.stats(places), np.sqrt(held.stats(places).m2) / unit
        return Landmarks.of(
            names=[held.names[place] for place in places.tolist()],
            means=stats.mean + stats.low,
            rows=rows,
            values=(held.samples(places)[:, rows] * length[:, None]).T,
            weights=self._padded(weights),
            offset=self._padded(offset),
            unit=unit,
            share=1.0 if held.complete else float(length @ length) / n,
            density=m / n,
        )

    def _compared_by(self, held: GramColumns) -> Places:
        """Return the variables by which rows are compared: all, or those that vary most."""
        if held.complete:
            return np.arange(len(held.names))
        variance = held.stats().m2
        return np.sort(most_relevant_first(variance / variance.max())[: self.max_variables])

    def _padded(self, part: Floats) -> Floats:
        """Return components with nothing for those that there are not."""
        missing = self.n_components - part.shape[-1]
        return np.pad(part, [(0, 0)] * (part.ndim - 1) + [(0, missing)])

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Of each component 1, for without a target everything explains itself in full."""
        Z = self._placed()
        return {} if Z is None else dict.fromkeys(self.components[: Z.shape[1]], 1.0)

    @property
    def landmarks(self) -> dict[Hashable, dict[str, float]]:
        """The rows that new ones are compared with: row -> {component: weight}, without zeros.

        By their place among the rows learnt; in River, among those of the last window.
        """
        return self._weights_of(self._map())

    def _weights_of(self, found: Landmarks | None) -> dict[Hashable, dict[str, float]]:
        return {} if found is None else self._weights_by(found.rows.tolist(), found.weights)

    def _embedding(self) -> Floats:
        Z = self._placed()
        return np.zeros((self.n_rows, 0)) if Z is None else Z.copy()

    def report(self) -> Report:
        """Return what was found, for those who look at it: a command, a page, a notebook.

        Returns
        -------
        A row a component, without loadings, for it is not linear in the variables; how many
        landmarks new rows are compared with, by how many variables, and what share of the variance
        these have.
        """
        row: dict[str, Any] = {"above_noise": None, "loadings": []}
        found = [{"name": name, "relevance": 1.0} | row for name in self.relevance]
        used = self._map()
        facts = {
            "n_landmarks": len(used.rows),
            "n_variables": len(used.names),
            "share_of_variance": min(1.0, used.share),
        }
        return self._report(None, "components", found, self.n_components, facts)

    # New rows

    def _used(self) -> Landmarks:
        used: Landmarks | None = self._in_use()
        return Landmarks.none(self.n_components) if used is None else used

    def _apply(self, used: Landmarks, X: Floats) -> Floats:
        rows = np.atleast_2d(X)
        Z = np.empty((len(rows), self.n_components))
        step = max(1, _AT_ONCE // max(1, len(used.rows), X.shape[-1]))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            Z[part] = self._alike(used.compared(rows[part])) @ used.weights + used.offset
        return Z[0] if X.ndim == 1 else Z

    def transform_beside(
        self, X: Any, X_new: Any, names: Sequence[Hashable] | None = None
    ) -> Floats:
        """Return the components of new rows, exactly, from all columns and all rows learnt.

        The columns of the rows learnt are read once more, and beside each the same column of the
        new rows: so inner products add up of every new row with every row learnt.

        Parameters
        ----------
        X
            As `learn_columns` has it: all columns that were learnt, and no others, in any order.
        X_new
            The same columns of new rows, in the order of X.
        names
            Names of the columns of arrays or matrices; numbered from 0 if None.

        Returns
        -------
        (number of new rows, q)

        Raises
        ------
        ValueError, TypeError
            As `learn_columns`, for columns that are not the same in both or not those learnt, and
            after rows.

        Notes
        -----
        Costs as many products as there are pairs of a new row and one learnt, for each column;
        holds a number for each pair.
        """
        self._refuse_after_rows()
        observed, Z = self._observed(), self._placed()
        if observed is None or Z is None:
            raise ValueError(
                "Expected columns that were learnt, to place new rows by. Got: none that vary.\n"
                "Hint: learn_columns(X) first."
            )
        n, variance = len(Z), observed.variance
        learnt, new = (as_stream(part, names) for part in (X, X_new))
        assert self._columns is not None  # noqa: S101
        same = Same(self._columns, self.n_columns)
        across = crossed(learnt, new, n, math.sqrt(variance), same)
        if not np.allclose(across.learnt, observed.squares, rtol=ROUGH, atol=ROUGH):
            raise unlike_before("columns of other values")
        weights, offset = self._weigh(observed, np.arange(n), Z)
        rows = Likeness(across.products, across.squares, observed.squares, variance)
        return self._padded(self._alike(rows) @ weights + offset)

    # Rows, and what stands

    def _window_so_far(self) -> Window:
        if self._window is None:
            hint = "a window of fewer rows, or a larger max_rows_gram."
            check_rows(self.window_size, self.max_rows_gram, hint)
        return super()._window_so_far()

    def _sweep(self, window: Window) -> None:
        names, X, _ = window.columns()
        super()._sweep(window)
        self._stood = None if self._standing is None else self._at(self._standing, names, X)

    def _at(self, used: Landmarks, names: list[Hashable], X: Floats) -> Floats:
        """Return components of rows (n, p) that name their variables; one that they lack is 0."""
        places = {name: j for j, name in enumerate(names)}
        values = np.zeros((len(X), len(used.names)))
        for i, name in enumerate(used.names):
            if name in places:
                values[:, i] = X[:, places[name]]
        return self._apply(used, values)

    def _now(self) -> Landmarks | None:
        return None if self._held is None else self._map()

    def _renewed(self, *, calmly: bool) -> Landmarks:
        del calmly  # a component has no other place to go to
        new, stood, held = self._map(), self._stood, self._columns
        if stood is None or not isinstance(held, GramColumns):
            return new
        places = np.array([held.slots[name] for name in new.names], dtype=np.intp)
        X = held.samples(places).T * np.sqrt(held.stats(places).m2) + new.means
        Z, old = (part - part.mean(axis=0) for part in (self._apply(new, X), stood))
        squares = (np.square(part).sum(axis=0) for part in (Z, old))
        turned = new.turned(least_motion(Z.T @ old, *squares))
        self._stood = self._apply(turned, X)
        return turned

    @property
    def standing(self) -> dict[Hashable, dict[str, float]]:
        """The landmarks that a transform uses: row -> {component: weight}."""
        return self._weights_of(self._in_use())

    # Files

    def _get_state(self) -> dict[str, Any]:
        state = super()._get_state()
        return state | {"stood": self._stood} if self._on_rows else state

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        if self._on_rows and state["stood"] is not None:
            expect_shapes(state, stood=(state["n_rows"], self.n_components))
            self._stood = np.array(state["stood"], dtype=float)
            expect_bounded("components", self._stood)

    def _standing_to_state(self) -> dict[str, Any] | None:
        return None if self._standing is None else self._standing.to_state()

    def _stand_by_state(self, state: dict[str, Any] | None) -> None:
        if state is not None:
            self._expect_held(state["names"])
        q = self.n_components
        self._standing = None if state is None else Landmarks.from_state(state, q)
