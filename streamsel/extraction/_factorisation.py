"""What the online factorisations have in common: x ≈ D w, a column by few components."""

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
    """An extractor of one online factorisation, x ≈ D w: a method says what a code w is.

    On columns D are the components, and the codes of variables their loadings. On rows the roles
    swap: a row is coded on the loadings, and these are refined.
    """

    keeps = Factorised
    rows = FactorisedRows

    max_loadings: int = param(
        params.Whole(1),
        default=500,
        doc="""
        For how many columns, those of the largest variance, loadings are known after one reading;
        by `learn_loadings` those of the largest loadings.
        """,
    )
    batch_size: int = param(
        params.Whole(1),
        default=256,
        doc="""
        How many columns are gone over at a time, and, on rows, after how many the loadings are
        renewed.
        """,
    )
    seed: int = param(
        params.Whole(0), default=0, doc="Which of the random components it begins with."
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

    # What a method says

    @property
    @abc.abstractmethod
    def _code(self) -> Code:
        """What a column is in terms of the components."""

    # What it keeps

    def _new_columns(self, n: int) -> Factorised:
        q, width = self.n_components, self.batch_size
        return Factorised(n, self.max_loadings, q, width, self.seed, self._code)

    def _new_beside(self) -> FactorisedRows:
        keys = NameHash(self.seed, "factorisation")
        random = Entries(self.n_components, "gaussian", 1.0, keys).matrix
        beside = FactorisedRows(self.n_components, self.batch_size, self._code, random)
        held, found = self._on_columns, self._found_on_columns()
        if held is not None and found is not None:
            A = self._padded(self._padded(found.scores.T @ found.scores).T)
            void = A.diagonal() == 0.0
            A[void, void] = held.n
            means = held.table["mean"]
            beside.begin(held.names, means, self._padded(found.loadings), A, found.fit)
        return beside

    def _padded(self, array: Floats) -> Floats:
        """Return an array with a column for every component: there may be fewer than asked for."""
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
            # What does not vary was not kept, and it need not have been 0.
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
            beside, moments = self._row_state
            if beside.table.names != moments.table.names:
                raise ValueError("Expected loadings of the variables held. Got: of others.")

    # What it finds

    @until_learnt
    def _found_on_columns(self) -> Found | None:
        """Return what the columns gave; None where none varied."""
        held = self._on_columns
        if held is None or not held.names:
            return None
        fit = held.found()
        scores, turn, _ = self._code.axes(fit)
        loadings = self._code.encode(fit, held.kept() / fit.unit).codes @ turn * fit.unit
        up = _signs(loadings)
        return Found(fit, scores * up, turn * up, loadings * up)

    @until_learnt
    def _found_on_rows(self) -> tuple[Fit, Floats, Floats] | None:
        """Return the fit to the rows, the loadings as they are shown, and what the fit leaves."""
        if self._row_state is None:
            return None
        beside, moments = self._row_state
        fit, squares, _ = beside.now(moments.stats().mean)
        loadings = self._code.axes(fit).loadings
        weight = max(fit.weight, 1.0)
        left = squares / weight - np.einsum("ik,kl,il->i", fit.D, fit.A / weight, fit.D)
        return fit, loadings * _signs(loadings), np.maximum(left, 0.0)

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
        there = np.flatnonzero(weights.any(axis=1))
        return LinearMap([names[place] for place in there.tolist()], means[there], weights[there])

    def _turn(self, new: LinearMap, standing: LinearMap | None) -> Floats:
        found = self._found_on_rows()
        if standing is None or found is None or self._row_state is None:
            return super()._turn(new, standing)
        fit, _, left = found
        slots = self._row_state[1].slots
        names = list(dict.fromkeys([*new.names, *standing.names]))
        names = [name for name in names if name in slots]
        places = np.array([slots[name] for name in names], dtype=np.intp)
        mine, theirs = (weights_for(names, part) for part in (new, standing))
        D, left = fit.D[places], left[places]
        A = fit.A / max(fit.weight, 1.0)

        def covariance(one: Floats, other: Floats) -> Floats:
            varying: Floats = (one.T @ D) @ A @ (D.T @ other) + (one.T * left) @ other
            return varying

        variances = (covariance(part, part).diagonal() for part in (mine, theirs))
        return least_motion(covariance(mine, theirs), *variances)

    def _protected(self) -> Collection[Hashable]:
        # All variables tracked have loadings, and cannot all be kept when others come.
        return ()

    def _expect_held(self, names: Any) -> None:
        # Who was let go stays part of what stands until that is renewed.
        if type(names) is not list or len({*names}) < len(names):
            raise ValueError(f"Expected a list of distinct names to stand. Got: {names!r}.")

    # A second reading

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
        """Read the same columns again, for the loadings of all of them, or of the largest.

        Parameters
        ----------
        X, names
            As `learn_columns` has them: all columns that were learnt, and no others, in any order.
        max_loadings
            How many variables have loadings then; None for as many as the parameter of this name
            says.

        Raises
        ------
        ValueError, TypeError
            As `learn_columns`, for other columns than those learnt, and before columns, or after
            rows. The model is as it was.

        Notes
        -----
        Every column is coded by the components as they are after all of them. Without it loadings
        are those of the pool; where that holds all columns nothing changes. Costs as much as
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
                "Expected columns that were learnt, and vary. Got: none yet.\n"
                "Hint: learn_columns(X) first."
            )
        same = Same(held, self.n_columns)
        reading = CodesAgain(held, self._loadings_of, same, limit)
        for chunk, stats in self._scanned(source):
            reading.read(chunk, stats)
        loadings = reading.found()
        if not held.complete:
            self._whole(self._take_loadings, held, loadings)

    def _take_loadings(self, held: Factorised, loadings: Loadings) -> None:
        held.take(loadings)
        self._found.pop("_map", None)

    def _loadings_of(self, X: Floats) -> Floats:
        """Return the loadings of columns, (b, n), a row each, centred."""
        found = self._found_on_columns()
        assert found is not None  # noqa: S101
        unit = found.fit.unit
        return self._padded(self._code.encode(found.fit, X / unit).codes @ found.turn * unit)

    # What was learnt

    @property
    def noise_variance_(self) -> float:
        """The variance of a value that the components leave; NaN before anything varied."""
        on_rows, found = self._found_on_rows(), self._found_on_columns()
        if on_rows is not None:
            return on_rows[0].noise
        return np.nan if found is None else found.fit.noise * found.fit.unit**2

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Of each component 1, for without a target everything explains itself in full."""
        return {} if self._held is None else dict.fromkeys(self.components, 1.0)

    def _embedding(self) -> Floats:
        found = self._found_on_columns()
        return super()._embedding() if found is None else self._padded(found.scores)


class Found(NamedTuple):
    """What columns gave.

    Parameters
    ----------
    fit
        The components as they are refined.
    scores
        (n, q) them as they are shown.
    turn
        (q, q) codes times this, in the fit's unit, are loadings on these.
    loadings
        (p, q) of the columns of the pool.
    """

    fit: Fit
    scores: Floats
    turn: Floats
    loadings: Floats


def _signs(loadings: Floats) -> Floats:
    """Return what makes the largest loading of each component positive."""
    if not len(loadings):
        return np.ones(loadings.shape[1])
    largest = np.abs(loadings)
    first = (largest >= largest.max(axis=0) * (1.0 - TIE)).argmax(axis=0)
    signs: Floats = np.where(loadings[first, np.arange(first.size)] < 0.0, -1.0, 1.0)
    return signs
