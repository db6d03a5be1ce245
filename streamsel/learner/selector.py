"""Define the base class of selectors."""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from streamsel import params
from streamsel.columns import Chunk, Stats
from streamsel.gaps import fill_row, fill_rows
from streamsel.held.alike import alike, count_near_duplicates
from streamsel.held.part import ColumnHeld, Floats, Held, Places
from streamsel.held.pool import NO_PICKS, Picks, Pool, SamplePool, Sifted
from streamsel.learner.base import Learner
from streamsel.learner.cached import until_learnt
from streamsel.learner.left_out import left_out
from streamsel.learner.report import Report, is_above, number
from streamsel.params import param
from streamsel.rows import as_frame, columns_of, gather, no_row, positions
from streamsel.stream import ColumnStream
from streamsel.target.normal_scores import NormalScores
from streamsel.target.target import Target

# Value of k that selects every non-constant variable, in order of score.
ALL = "all"
# Maximum number of alternatives reported per selected variable.
_MAX_ALTERNATIVES = 3
# At a refresh, at most one in this many of the variables beyond the best k is kept by hysteresis.
_HYSTERESIS_DIVISOR = 8

State = TypeVar("State", bound=Held)


class Selector(Learner, Generic[State]):
    """Base class of selectors, which keep original variables: `_select` returns which.

    `Selector[Held]` requires only the moments of the variables; a method that requires more names
    the state that provides it, as in `Selector[SamplePool]`.
    """

    keeps: ClassVar[type[ColumnHeld]] = Pool
    _hooks = ("_select",)
    # Whether a pick is proven as soon as its score is above the bounds of all discarded columns.
    # Otherwise the whole selection is proven, or none of it.
    _bound_proves: ClassVar[bool] = True

    max_candidates: int | None = param(
        params.Whole(1, optional=True),
        default=None,
        doc=r"""
        None keeps the required statistics of every column: exact, $O(c p)$ memory. A number
        $m \geq k$ keeps a pool of the best $m$ to $2m$ candidates: constant memory; `n_certified`
        gives the number of picks that are proven to be the same as those of an unbounded pool.
        """,
    )

    warm_up: int = param(
        params.Whole(0),
        default=50,
        doc="""
        Number of rows before a selection is in use: until then a transform returns all features. A
        model that has learnt columns uses its selection at once.
        """,
    )

    missing: str = param(
        params.Choice(("pass", "mean")),
        default="pass",
        doc="""
        How a transform handles None and NaN: `"pass"` leaves them as they are, `"mean"` replaces
        them by the mean of the variable over the rows so far, or by 0.0 if it has none.
        """,
    )
    slack: float = param(
        params.Real(1.0),
        default=3.0,
        doc="""
        Hysteresis: at a refresh a variable in use is kept while it is among the best `slack` $k$,
        but at most among $k$ and an eighth of the others; at 1 only the best $k$ are kept.
        """,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._fills = self.missing == "mean"

    def _check_parameters(self) -> None:
        k, capacity = self._asked, self.max_candidates
        if k is not None and capacity is not None and capacity < k:
            raise ValueError(
                f"The 'max_candidates' parameter of {type(self).__name__} must be None or at least "
                f"k = {k}. Got {capacity!r} instead."
            )
        self._more_than("k", k, "max_features")

    # Implemented by methods

    @abc.abstractmethod
    def _select(self, held: State, k: int) -> Picks:
        """Return the best k variables of the state; fewer if no others are relevant."""

    def _bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return upper bounds on the scores of rows of the pool's table.

        A column whose bound is below the lowest score kept is evicted; see `_bound_proves`.
        """
        if pool.space is None:
            return np.ones(len(rows["m2"]))
        return pool.space.relevance(rows["m2"], rows["cxy"])

    def _sift(self, pool: Any, chunk: Chunk, stats: Stats, places: Places) -> Sifted | None:  # noqa: ARG002
        """Return a pool updated with a batch of columns; None to process it between evictions."""
        return None

    def _relevance_at(self, bound: float) -> float:
        """Return the relevance below which a score bound is below `bound`; -inf if unknown."""
        return bound if type(self)._bound is Selector._bound else -math.inf

    def _refill(self, pool: Any, limit: int) -> Picks:
        """Return the columns to keep when a pool is cut back to its limit."""
        return self._select(pool, limit)

    def _round(self, pool: Pool) -> int:  # noqa: ARG002
        """Return the maximum number of picks in one round."""
        return np.iinfo(np.int64).max

    def _limit(self, n: int) -> int | None:  # noqa: ARG002
        """Return the size to which a pool is cut back, for n observations; None to keep all."""
        return self.max_candidates

    def _relevances(self, held: Held, places: Places) -> Floats:
        return held.relevance(places)

    @property
    def _score_meaning(self) -> str:
        """Definition of the scores, for reports."""
        return "the criterion that the variable was ranked by"

    def _told(self) -> Mapping[str, Mapping[Hashable, float]]:
        """Return extra report columns of the selected variables: title -> {name: value}."""
        return {}

    def _noted(self) -> Sequence[str]:
        """Return extra fields of the pool's table, a number per variable; `_observe` sets them."""
        return ()

    @property
    def _asked(self) -> int | None:
        """Number of variables requested; None for all relevant ones."""
        k: int | str | None = getattr(self, "k")  # noqa: B009 (declared where it is needed)
        return None if k == ALL or k is None else int(k)

    # Shared behaviour

    def _new_columns(self, n: int) -> ColumnHeld:
        assert issubclass(self.keeps, Pool)  # noqa: S101
        pool = self.keeps(self._space, n, self._limit(n), self._noted())
        pool.serve(self)
        pool.compare_by(self._normal_scores())
        if isinstance(pool, SamplePool) and isinstance(self._target, Target):
            pool.follow(self._target.Y[: self._target.c])
        return pool

    def _normal_scores(self) -> NormalScores | None:
        target, space = self._target, self._space
        if not isinstance(target, Target) or space is None:
            return None
        # Martingale residuals are scores already, and permutations are distribution-free.
        if self.target == "survival" or self.permutations:
            return None
        return NormalScores.of(target, space)

    @until_learnt
    def _picks(self) -> Picks:
        state: Any = self._held
        if state is None:
            return NO_PICKS
        return self._select(state, len(state.names) if self._asked is None else self._asked)

    @until_learnt
    def _selected(self) -> list[Hashable]:
        state = self._held
        return [] if state is None else [state.names[j] for j in self._picks().places]

    def _protected(self) -> Collection[Hashable]:
        selected, standing = self._selected(), self._standing or ()
        union = {*selected, *standing}
        # If both would fill the table, protect only those in use, so that new variables find room.
        full = self.max_features is not None and len(union) >= self.max_features
        return (standing or selected) if full else union

    @property
    def selected(self) -> list[Hashable]:
        """Names of the selected variables, in order; fewer than k if no others are relevant."""
        return list(self._selected())

    @property
    def scores(self) -> dict[Hashable, float]:
        """Score of each selected variable at its selection, in order: name -> score."""
        return dict(zip(self._selected(), self._picks().scores, strict=True))

    @property
    def rounds(self) -> dict[Hashable, int]:
        """Round in which each variable was selected, in order: name -> 0, 1, ..."""
        return dict(zip(self._selected(), self._picks().rounds, strict=True))

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each selected variable, in order: name -> ‖g‖."""
        indices = np.asarray(self._picks().places, dtype=np.intp)
        if self._held is None or not indices.size:
            return {}
        values = self._relevances(self._held, indices)
        return dict(zip(self._selected(), values.tolist(), strict=True))

    def _compared_with_noise(self) -> list[float]:
        """Return the values of the selected variables that are compared with the noise floor."""
        state = self._held
        if state is None or self._normal_scores() is None:
            return [*self.relevance.values()]
        values: list[float] = state.noise_relevance(
            np.array(self._picks().places, np.intp)
        ).tolist()
        return values

    @property
    def adjusted_p_values(self) -> dict[Hashable, float]:
        """P-value of each selected variable, adjusted for all columns: name -> p, in order.

        The probability that the largest relevance of all columns is at least as large if none is
        associated with the target: step-down permutation p-values (Westfall and Young 1993), exact
        for the 64 most relevant columns and conservative for the others. NaN without permutations.
        """
        found = self._adjusted_p_values(np.array([*self.relevance.values()]))
        return dict(zip(self._selected(), found.tolist(), strict=True))

    @property
    def n_certified(self) -> int:
        """Number of leading picks proven to be those of a selection over all columns at once."""
        state = self._held
        if isinstance(state, Pool) and self._bound_proves:
            return state.certified(self._picks())
        return len(self._picks().places) if state is not None and state.complete else 0

    def report(self) -> Report:
        """Return the results as a `Report`, which the command and the HTML report show.

        Returns
        -------
        One row per selected variable, in order: its relevance, score and round, whether it is
        proven to be the pick of a selection over all columns at once, and whether it is above the
        noise floor.
        """
        floor = self._floor()
        relevance, scores, rounds = self.relevance, self.scores, self.rounds
        certified, extra_columns, arrivals = self.n_certified, dict(self._told()), self._arrivals()
        if self._null is not None:
            extra_columns["p_adjusted"] = self.adjusted_p_values
        noise_relevance = self._compared_with_noise()
        found = []
        for rank, name in enumerate(self._selected()):
            row = {"name": name, "relevance": number(relevance[name])}
            row |= {"score": number(scores[name]), "round": rounds[name]}
            row |= {"certified": rank < certified, "arrival": arrivals[rank]}
            row |= {"above_noise": is_above(number(noise_relevance[rank]), floor)}
            found.append(
                row | {title: number(value[name]) for title, value in extra_columns.items()}
            )
        facts: dict[str, Any] = {"n_certified": certified, "n_passes": self.n_passes}
        facts["pool_complete"] = self._held is None or self._held.complete
        report = self._report(floor, "selected", found, self._asked, facts)
        alternatives, n_repeats, excluded = None, None, left_out(report, [], [], None)
        if self._held is not None:
            alternatives = self._alternatives()
            picked = np.array(self._picks().places, dtype=np.intp)
            n_repeats = count_near_duplicates(self._held, picked)
            similar = [place for places, _ in self._alike() or () for place in places.tolist()]
            similar = self._held.relevance(np.unique(np.array(similar, dtype=np.intp))).tolist()
            excluded = left_out(report, [*relevance.values()], similar, self._held)
        return replace(
            report,
            alternatives=alternatives,
            left_out=excluded,
            n_near_duplicates=n_repeats,
            score_meaning=self._score_meaning,
        )

    @until_learnt
    def _alike(self) -> list[tuple[Places, Floats]] | None:
        """Return the tracked variables similar to each selected one, with their correlations."""
        state = self._held
        return (
            None if state is None else alike(state, np.array(self._picks().places, dtype=np.intp))
        )

    def _alternatives(self) -> dict[Hashable, list[tuple[Hashable, float]]] | None:
        """Return the alternatives to each selected variable: name -> at most three (name, r)."""
        found, state = self._alike(), self._held
        if found is None or state is None:
            return None
        names = state.names
        return {
            name: [
                (names[j], float(x))
                for j, x in zip(places[:_MAX_ALTERNATIVES], r[:_MAX_ALTERNATIVES], strict=True)
            ]
            for name, (places, r) in zip(self._selected(), found, strict=True)
        }

    def _arrivals(self) -> list[int | None]:
        """Return the arrival index of each selected variable; None where it is not known."""
        state, indices = self._held, self._picks().places
        if isinstance(state, Pool):
            return [int(arrival) for arrival in state.table["arrival"][indices]]
        in_order = self._moments is not None and self._moments.complete
        names = self._moments.slots if in_order and self._moments is not None else {}
        return [names.get(name) for name in self._selected()]

    # Snapshot in use, and transforms

    @until_learnt
    def _now(self) -> dict[Hashable, int] | None:
        """Return the selected variables, each with its rank."""
        # An empty window is data too: its selection is empty, not missing.
        is_blank = self._held is None or (not self.n_columns and self._window is None)
        return None if is_blank else _placed(self._selected())

    @property
    def _renews_always(self) -> bool:
        return self.renewal == 1.0 and (self.slack == 1.0 or self._asked is None)

    def _renewed(self, *, calmly: bool) -> dict[Hashable, int]:
        state: Any = self._held
        k, best = self._asked, self._selected()
        if calmly and self._standing and k is not None and self.slack > 1.0:
            names = state.names
            # With few variables the best slack * k may be all of them, and none would ever be
            # replaced.
            margin = max(0, len(names) - k) // _HYSTERESIS_DIVISOR
            size = min(math.ceil(self.slack * k), k + margin)
            best = [names[j] for j in self._select(state, size).places]
        return _placed(_filled([*(self._standing or ())], best, len(best) if k is None else k))

    @property
    def standing(self) -> list[Hashable]:
        """Names of the variables that a transform keeps; empty while it returns all features."""
        return list(self._in_use() or ())

    def _standing_to_state(self) -> list[Hashable] | None:
        return None if self._standing is None else list(self._standing)

    def _stand_by_state(self, state: list[Hashable] | None) -> None:
        if state is None:
            self._standing = None
            return
        self._expect_held(state)
        k = self._asked
        if k is not None and len(state) > k:
            raise ValueError(f"Expected at most {k} names in use. Got: {state!r}.")
        self._standing = _placed(state)

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, Any]:
        """Keep the selected features of a row; before the warm-up ends, all but covariates.

        Parameters
        ----------
        x
            A row. Selected features that it lacks remain absent; all others are dropped.
        """
        if type(x) is not dict and not isinstance(x, Mapping):
            raise no_row(x)
        in_use = self._in_use()
        if in_use is None:
            row = {name: x[name] for name in x if name not in (self.covariates or ())}
            return fill_row(row, self._mean_of) if self._fills else row
        if len(x) < len(in_use):
            # Sparse rows, such as texts, have few of the selected features.
            in_use = sorted(x.keys() & in_use.keys(), key=in_use.__getitem__)
        if self._fills:
            return fill_row({name: x[name] for name in in_use if name in x}, self._mean_of)
        return {name: x[name] for name in in_use if name in x}

    def _mean_of(self, name: Hashable) -> float:
        """Return the mean of a variable over the rows so far; 0 if it is not tracked."""
        moments, columns = self._moments, self._columns
        if moments is not None:
            index = moments.slots.get(name)
            return 0.0 if index is None else moments.mean_of(index)
        index = None if columns is None else columns.slots.get(name)
        if columns is None or index is None:
            return 0.0
        return float(columns.table["mean"][index] + columns.table["low"][index])

    def transform_many(self, X: Any) -> Any:
        """Keep the selected variables of many rows.

        Parameters
        ----------
        X
            A frame, an array or sparse matrix (whose columns are named from 0), or a
            `ColumnStream`.

        Returns
        -------
        A frame of the same library with those selected columns that X has, in order of selection;
        an array of shape (n, number of variables in use) for any other input. X itself, without
        covariates, before the warm-up ends.
        """
        in_use = self._in_use()
        if in_use is None:
            X = self._without_covariates(X)
            fills = self._fills and not isinstance(X, ColumnStream)
            return fill_rows(X, None, self._mean_of) if fills else X
        names = list(in_use)
        columns = columns_of(X, names)
        values = gather(X, names) if columns is None else columns[1]
        return fill_rows(values, names, self._mean_of) if self._fills else values

    def _without_covariates(self, X: Any) -> Any:
        frame = as_frame(X) if self.covariates else None
        if frame is None or self.covariates is None:
            return X
        _, covariates = positions(frame, self.covariates)
        kept = [j for j in range(len(frame.columns)) if j not in covariates]
        return frame[:, kept].to_native()


def _placed(names: Iterable[Hashable]) -> dict[Hashable, int]:
    return {name: rank for rank, name in enumerate(names)}


def _filled(before: list[Hashable], best: list[Hashable], k: int) -> list[Hashable]:
    """Return k of the best names; a name of `before` that is among the best keeps its position.

    The remaining positions are filled with the others, best first.
    """
    kept = {*before} & {*best}
    new = [name for name in best if name not in kept][::-1]
    filled = [name if name in kept else new.pop() for name in before if name in kept or new]
    return (filled + new[::-1])[: min(k, len(best))]
