"""Base class of the online matrix factorisations, x ≈ D w for columns x and codes w."""

from __future__ import annotations

import abc
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel.extraction._codes_again import CodesAgain
from streamsel.hashing import NameHash
from streamsel.held.factorised import Factorised
from streamsel.held.factorised_rows import FactorisedRows
from streamsel.held.fit import Code, Fit
from streamsel.held.loadings import Loadings
from streamsel.held.moments import Moments
from streamsel.held.part import Floats
from streamsel.held.same import Same
from streamsel.held.sketch import Entries
from streamsel.learner.cached import until_learnt
from streamsel.learner.extractor import Extractor, LinearMap, least_motion, weights_for
from streamsel.params import param
from streamsel.stream import ColumnStream, as_stream
from streamsel.ties import TIE


class Factorisation(Extractor):
    """An extractor by online matrix factorisation, x ≈ D w; a method defines the codes w.

    On columns D are the components, and the codes of variables their loadings. On rows the roles
    are exchanged: a row is coded by the loadings, and the loadings are refined.
    """

    keeps = Factorised
    rows = FactorisedRows

    max_loadings: int = param(
        params.Whole(1),
        default=500,
        doc="""
        Number of columns, those of largest variance, with loadings after one pass; after
        `learn_loadings`, those of the largest loadings.
        """,
    )
    batch_size: int = param(
        params.Whole(1),
        default=256,
        doc="""
        Number of columns per batch; on rows, the number of rows after which the loadings are
        refreshed at the latest.
        """,
    )
    seed: int = param(
        params.Whole(0), default=0, doc="Seed of the random components that the fit starts from."
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
    def _code(self) -> Code:
        """The coder, which expresses columns in the components."""

    # State

    def _new_columns(self, n: int) -> Factorised:
        q, width = self.n_components, self.batch_size
        return Factorised(n, self.max_loadings, q, width, self.seed, self._code)

    def _new_beside(self) -> FactorisedRows:
        keys = NameHash(self.seed, "factorisation")
        random = Entries(self.n_components, "gaussian", 1.0, keys).matrix
        row_state = FactorisedRows(self.n_components, self.batch_size, self._code, random)
        held, found = self._on_columns, self._found_on_columns()
        if held is not None and found is not None:
            A = self._padded(self._padded(found.scores.T @ found.scores).T)
            void = A.diagonal() == 0.0
            A[void, void] = held.n
            means = held.table["mean"]
            row_state.begin(held.names, means, self._padded(found.loadings), A, found.fit)
        return row_state

    def _padded(self, array: Floats) -> Floats:
        """Return an array padded with zero columns, one per component that does not exist."""
        padded = np.zeros((len(array), self.n_components))
        padded[:, : array.shape[1]] = array
        return padded

    @property
    def _on_columns(self) -> Factorised | None:
        """The components, while only columns are learnt."""
        held = self._columns
        assert held is None or isinstance(held, Factorised)  # noqa: S101
        return held

    @property
    def _row_state(self) -> tuple[FactorisedRows, Moments] | None:
        """The loadings and the moments, once rows are learnt."""
        if self._moments is None:
            return None
        assert isinstance(self._beside, FactorisedRows)  # noqa: S101
        return self._beside, self._moments

    def _carry_over(self, moments: Moments) -> None:
        super()._carry_over(moments)
        if self.n_columns > len(moments.table) and moments.complete:
            # Constant variables were not kept, and need not have been 0.
            moments.forget()

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        held = self._on_columns
        if held is not None and held.loadings is not None:
            names, q = held.loadings.names, held.loadings.weights.shape[1]
            if q != self.n_components or len({*names}) < len(names):
                raise ValueError(
                    f"Expected loadings of distinct columns on {self.n_components} components. "
                    f"Got: {len(names)} names, {q} components."
                )
        if self._row_state is not None:
            row_state, moments = self._row_state
            if row_state.table.names != moments.table.names:
                raise ValueError("Expected loadings of the variables tracked. Got: of others.")

    # Components

    @until_learnt
    def _found_on_columns(self) -> ColumnSolution | None:
        """Return the solution on columns; None if none varied."""
        held = self._on_columns
        if held is None or not held.names:
            return None
        fit = held.found()
        scores, rotation, _ = self._code.axes(fit)
        loadings = self._code.encode(fit, held.kept() / fit.unit).codes @ rotation * fit.unit
        up = _signs(loadings)
        return ColumnSolution(fit, scores * up, rotation * up, loadings * up)

    @until_learnt
    def _found_on_rows(self) -> tuple[Fit, Floats, Floats] | None:
        """Return the fit to the rows, the signed loadings, and the residual variances."""
        if self._row_state is None:
            return None
        row_state, moments = self._row_state
        fit, squares, _ = row_state.now(moments.stats().mean)
        loadings = self._code.axes(fit).loadings
        weight = max(fit.weight, 1.0)
        residual = squares / weight - np.einsum("ik,kl,il->i", fit.D, fit.A / weight, fit.D)
        return fit, loadings * _signs(loadings), np.maximum(residual, 0.0)

    def _linear_map(self, names: Iterable[Hashable] = ()) -> LinearMap:
        held, found, on_rows = self._on_columns, self._found_on_columns(), self._found_on_rows()
        if on_rows is not None and self._row_state is not None:
            fit, loadings, _ = on_rows
            noise, moments = fit.noise, self._row_state[1]
            names, means = moments.table.names, moments.stats().mean
        elif held is None or found is None:
            return LinearMap([], np.zeros(0), np.zeros((0, self.n_components)))
        else:
            noise = found.fit.noise * found.fit.unit**2
            names, means, loadings = held.names, held.table["mean"], found.loadings
            if held.loadings is not None:
                names, means, loadings, _ = held.loadings
        weights = self._padded(self._code.weights(loadings, noise))
        used = np.flatnonzero(weights.any(axis=1))
        return LinearMap([names[index] for index in used.tolist()], means[used], weights[used])

    def _turn(self, new: LinearMap, standing: LinearMap | None) -> Floats:
        found = self._found_on_rows()
        if standing is None or found is None or self._row_state is None:
            return super()._turn(new, standing)
        fit, _, residual = found
        index_of = self._row_state[1].slots
        names = list(dict.fromkeys([*new.names, *standing.names]))
        names = [name for name in names if name in index_of]
        indices = np.array([index_of[name] for name in names], dtype=np.intp)
        mine, theirs = (weights_for(names, part) for part in (new, standing))
        D, residual = fit.D[indices], residual[indices]
        A = fit.A / max(fit.weight, 1.0)

        def covariance(one: Floats, other: Floats) -> Floats:
            varying: Floats = (one.T @ D) @ A @ (D.T @ other) + (one.T * residual) @ other
            return varying

        variances = (covariance(part, part).diagonal() for part in (mine, theirs))
        return least_motion(covariance(mine, theirs), *variances)

    def _protected(self) -> Collection[Hashable]:
        # All variables tracked have loadings, and not all can be kept when new ones arrive.
        return ()

    def _expect_held(self, names: Any) -> None:
        # An evicted variable remains in the map in use until the next refresh.
        if type(names) is not list or len({*names}) < len(names):
            raise ValueError(f"Expected a list of distinct names to stand. Got: {names!r}.")

    # Second pass

    @property
    def _reads_again(self) -> bool:
        held = self._on_columns
        return held is not None and not held.complete and held.loadings is None

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
        rule = params.Whole(1, optional=True)
        params.check("learn_loadings", {"max_loadings": rule}, {"max_loadings": max_loadings})
        self._refuse_after_rows()
        source = as_stream(X, names)
        limit = max_loadings or self.max_loadings
        self._in_session(BaseException, self._learn_loadings, source, limit)

    def _learn_loadings(self, source: ColumnStream, limit: int) -> None:
        held = self._on_columns
        if held is None or self._found_on_columns() is None:
            raise ValueError(
                "Expected a model that has learnt columns that vary. Got: none yet.\n"
                "Hint: learn_columns(X) first."
            )
        same = Same(held, self.n_columns)
        second_pass = CodesAgain(held, self._loadings_of, same, limit)
        for chunk, stats in self._scanned(source):
            second_pass.read(chunk, stats)
        loadings = second_pass.found()
        if not held.complete:
            self._whole(self._take_loadings, held, loadings)

    def _take_loadings(self, held: Factorised, loadings: Loadings) -> None:
        held.take(loadings)
        self._found.pop("_map", None)

    def _loadings_of(self, X: Floats) -> Floats:
        """Return the loadings of columns, given as centred rows, (b, n)."""
        found = self._found_on_columns()
        assert found is not None  # noqa: S101
        unit = found.fit.unit
        return self._padded(self._code.encode(found.fit, X / unit).codes @ found.rotation * unit)

    # Results

    @property
    def noise_variance_(self) -> float:
        """The residual variance of a value; NaN before anything varied."""
        on_rows, found = self._found_on_rows(), self._found_on_columns()
        if on_rows is not None:
            return on_rows[0].noise
        return np.nan if found is None else found.fit.noise * found.fit.unit**2

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component: 1, as there is no target."""
        return {} if self._held is None else dict.fromkeys(self.components, 1.0)

    def _embedding(self) -> Floats:
        found = self._found_on_columns()
        return super()._embedding() if found is None else self._padded(found.scores)


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

    fit: Fit
    scores: Floats
    rotation: Floats
    loadings: Floats


def _signs(loadings: Floats) -> Floats:
    """Return the signs that make the largest loading of each component positive."""
    if not len(loadings):
        return np.ones(loadings.shape[1])
    largest = np.abs(loadings)
    first = (largest >= largest.max(axis=0) * (1.0 - TIE)).argmax(axis=0)
    signs: Floats = np.where(loadings[first, np.arange(first.size)] < 0.0, -1.0, 1.0)
    return signs
