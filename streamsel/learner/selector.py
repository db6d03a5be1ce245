"""What selectors have in common: they keep original variables."""

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

# Every variable that varies, in order of score: a value of k.
ALL = "all"
# So many alternatives are told of a variable.
_MOST = 3
# What part of the variables beyond the best k may stay for having stood.
_OF_OTHERS = 8

State = TypeVar("State", bound=Held)


class Selector(Learner, Generic[State]):
    """A learner that keeps original variables: `_select` says which.

    `Selector[Held]` asks for no more than the moments of the variables; what a method asks for
    further it names: `Selector[SamplePool]`.
    """

    keeps: ClassVar[type[ColumnHeld]] = Pool
    _hooks = ("_select",)
    # Whether no column that was let go can have changed a pick whose score is above its bound.
    # Where it can, all is proven or nothing.
    _bound_proves: ClassVar[bool] = True

    max_candidates: int | None = param(
        params.Whole(1, optional=True),
        default=None,
        doc="""
        None keeps what is needed of every column: exact, $O(c p)$ memory. A number $m \\geq k$
        keeps a pool of the best $m$ to $2m$ candidates: constant memory; `n_certified` says how
        many picks are proven the same.
        """,
    )

    warm_up: int = param(
        params.Whole(0),
        default=50,
        doc="""
        Rows before a selection is in use: until then a transform returns all features. A model
        that has learnt columns uses its selection at once.
        """,
    )

    missing: str = param(
        params.Choice(("pass", "mean")),
        default="pass",
        doc="""
        What a transform makes of None and NaN: `"pass"` hands them on, `"mean"` puts the mean of
        the variable over the rows so far in their place, 0.0 where nothing is known of it.
        """,
    )
    slack: float = param(
        params.Real(1.0),
        default=3.0,
        doc="""
        At a renewal a variable that stands stays while it is among the best `slack` $k$, but at
        most among $k$ and an eighth of the others; at 1 only the best $k$ do.
        """,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._fills = self.missing == "mean"

    def _check_parameters(self) -> None:
        k, most = self._asked, self.max_candidates
        if k is not None and most is not None and most < k:
            raise ValueError(
                f"The 'max_candidates' parameter of {type(self).__name__} must be None or at least "
                f"k = {k}. Got {most!r} instead."
            )
        self._more_than("k", k, "max_features")

    # What a method says

    @abc.abstractmethod
    def _select(self, held: State, k: int) -> Picks:
        """Return the best k of the variables held, fewer if nothing more is worth it."""

    def _bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return, for rows of the pool's table, what no score of theirs can ever be above.

        Who has less than the least that stayed is let go; see `_bound_proves`.
        """
        if pool.space is None:
            return np.ones(len(rows["m2"]))
        return pool.space.relevance(rows["m2"], rows["cxy"])

    def _sift(self, pool: Any, chunk: Chunk, stats: Stats, places: Places) -> Sifted | None:  # noqa: ARG002
        """Return what is left of a pool and of columns offered to it; None to go cut by cut."""
        return None

    def _relevance_at(self, bound: float) -> float:
        """Return below which relevance the bound is below this; -inf if relevance does not say."""
        return bound if type(self)._bound is Selector._bound else -math.inf

    def _refill(self, pool: Any, limit: int) -> Picks:
        """Return who stays when a pool is cut back to its limit."""
        return self._select(pool, limit)

    def _round(self, pool: Pool) -> int:  # noqa: ARG002
        """Return how many picks a round can have."""
        return np.iinfo(np.int64).max

    def _limit(self, n: int) -> int | None:  # noqa: ARG002
        """Return how many columns of n observations a pool is cut back to; None to keep all."""
        return self.max_candidates

    def _relevances(self, held: Held, places: Places) -> Floats:
        """Return the relevances of variables."""
        return held.relevance(places)

    @property
    def _score_meaning(self) -> str:
        """What the score of a variable is, for reports."""
        return "what the variable was ranked by"

    def _told(self) -> Mapping[str, Mapping[Hashable, float]]:
        """Return what else a report tells of the selected: title -> name -> number."""
        return {}

    def _noted(self) -> Sequence[str]:
        """Return further fields of the pool's table, a number a variable, that `_observe` fills."""
        return ()

    @property
    def _asked(self) -> int | None:
        """How many variables are asked for; None for all that are worth it."""
        k: int | str | None = getattr(self, "k")  # noqa: B009 (declared where it is needed)
        return None if k == ALL or k is None else int(k)

    # What follows

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
        # Martingale residuals are scores themselves, and permutations assume no distribution.
        if self.target == "survival" or self.permutations:
            return None
        return NormalScores.of(target, space)

    @until_learnt
    def _picks(self) -> Picks:
        held: Any = self._held
        if held is None:
            return NO_PICKS
        return self._select(held, len(held.names) if self._asked is None else self._asked)

    @until_learnt
    def _selected(self) -> list[Hashable]:
        held = self._held
        return [] if held is None else [held.names[j] for j in self._picks().places]

    def _protected(self) -> Collection[Hashable]:
        now, standing = self._selected(), self._standing or ()
        either = {*now, *standing}
        # Where both would take all the room what stands has it: newcomers must find some.
        full = self.max_features is not None and len(either) >= self.max_features
        return (standing or now) if full else either

    @property
    def selected(self) -> list[Hashable]:
        """Names of the selected variables, in order; fewer than k if nothing more is relevant."""
        return list(self._selected())

    @property
    def scores(self) -> dict[Hashable, float]:
        """Score of each selected variable when it was picked, in order."""
        return dict(zip(self._selected(), self._picks().scores, strict=True))

    @property
    def rounds(self) -> dict[Hashable, int]:
        """Round in which each variable was selected, in order: name -> 0, 1, ..."""
        return dict(zip(self._selected(), self._picks().rounds, strict=True))

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each selected variable, in order: name -> ‖g‖."""
        places = np.asarray(self._picks().places, dtype=np.intp)
        if self._held is None or not places.size:
            return {}
        found = self._relevances(self._held, places)
        return dict(zip(self._selected(), found.tolist(), strict=True))

    def _compared_with_noise(self) -> list[float]:
        """Return what of each selected variable is compared with the noise floor."""
        held = self._held
        if held is None or self._normal_scores() is None:
            return [*self.relevance.values()]
        found: list[float] = held.noise_relevance(np.array(self._picks().places, np.intp)).tolist()
        return found

    @property
    def adjusted_p_values(self) -> dict[Hashable, float]:
        """P-value of each selected variable, adjusted for all columns: name -> p, in order.

        The chance that the largest relevance of all columns is as large where none is associated
        with the target: by permutations, step-down (Westfall and Young 1993), exact for the 64 most
        relevant columns and never too small for others. NaN without permutations.
        """
        found = self._adjusted_p_values(np.array([*self.relevance.values()]))
        return dict(zip(self._selected(), found.tolist(), strict=True))

    @property
    def n_certified(self) -> int:
        """How many leading picks are proven to be those over all columns at once."""
        held = self._held
        if isinstance(held, Pool) and self._bound_proves:
            return held.certified(self._picks())
        return len(self._picks().places) if held is not None and held.complete else 0

    def report(self) -> Report:
        """Return what was found, for those who look at it: a command, a page, a notebook.

        Returns
        -------
        A row a variable, in order: its relevance, score, round, whether it is proven to be that of
        a selection over all columns at once, and whether it is above the noise floor.
        """
        floor = self._floor()
        relevance, scores, rounds = self.relevance, self.scores, self.rounds
        certified, further, arrivals = self.n_certified, dict(self._told()), self._arrivals()
        if self._null is not None:
            further["p_adjusted"] = self.adjusted_p_values
        compared = self._compared_with_noise()
        found = []
        for rank, name in enumerate(self._selected()):
            row = {"name": name, "relevance": number(relevance[name])}
            row |= {"score": number(scores[name]), "round": rounds[name]}
            row |= {"certified": rank < certified, "arrival": arrivals[rank]}
            row |= {"above_noise": is_above(number(compared[rank]), floor)}
            found.append(row | {title: number(value[name]) for title, value in further.items()})
        facts: dict[str, Any] = {"n_certified": certified, "n_passes": self.n_passes}
        facts["pool_complete"] = self._held is None or self._held.complete
        report = self._report(floor, "selected", found, self._asked, facts)
        others, repeats, why = None, None, left_out(report, [], [], None)
        if self._held is not None:
            others = self._alternatives()
            picked = np.array(self._picks().places, dtype=np.intp)
            repeats = count_near_duplicates(self._held, picked)
            like = [place for places, _ in self._alike() or () for place in places.tolist()]
            like = self._held.relevance(np.unique(np.array(like, dtype=np.intp))).tolist()
            why = left_out(report, [*relevance.values()], like, self._held)
        return replace(
            report,
            alternatives=others,
            left_out=why,
            n_near_duplicates=repeats,
            score_meaning=self._score_meaning,
        )

    @until_learnt
    def _alike(self) -> list[tuple[Places, Floats]] | None:
        """Return which variables held are like each that is selected, and how much."""
        held = self._held
        return None if held is None else alike(held, np.array(self._picks().places, dtype=np.intp))

    def _alternatives(self) -> dict[Hashable, list[tuple[Hashable, float]]] | None:
        """Return who could as well have been selected: name -> at most three names, each with r."""
        found, held = self._alike(), self._held
        if found is None or held is None:
            return None
        names = held.names
        return {
            name: [(names[j], float(x)) for j, x in zip(places[:_MOST], r[:_MOST], strict=True)]
            for name, (places, r) in zip(self._selected(), found, strict=True)
        }

    def _arrivals(self) -> list[int | None]:
        """Return how many columns came before each selected variable; None where nobody knows."""
        held, places = self._held, self._picks().places
        if isinstance(held, Pool):
            return [int(arrival) for arrival in held.table["arrival"][places]]
        in_order = self._moments is not None and self._moments.complete
        names = self._moments.slots if in_order and self._moments is not None else {}
        return [names.get(name) for name in self._selected()]

    # What stands, and transforms

    @until_learnt
    def _now(self) -> dict[Hashable, int] | None:
        """Return the selected variables, each with its place among them."""
        # A window without variables has taught that there are none.
        is_blank = self._held is None or (not self.n_columns and self._window is None)
        return None if is_blank else _placed(self._selected())

    @property
    def _renews_always(self) -> bool:
        return self.renewal == 1.0 and (self.slack == 1.0 or self._asked is None)

    def _renewed(self, *, calmly: bool) -> dict[Hashable, int]:
        held: Any = self._held
        k, best = self._asked, self._selected()
        if calmly and self._standing and k is not None and self.slack > 1.0:
            names = held.names
            # Of few variables the best slack k may be all, and whatever stood would stand for ever.
            room = max(0, len(names) - k) // _OF_OTHERS
            size = min(math.ceil(self.slack * k), k + room)
            best = [names[j] for j in self._select(held, size).places]
        return _placed(_filled([*(self._standing or ())], best, len(best) if k is None else k))

    @property
    def standing(self) -> list[Hashable]:
        """Names of the variables that a transform keeps; none while it passes rows through."""
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
            raise ValueError(f"Expected at most {k} names that stand. Got: {state!r}.")
        self._standing = _placed(state)

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, Any]:
        """Keep the standing features of a row; all but covariates before any stand.

        Parameters
        ----------
        x
            A row. Standing features that it lacks stay absent, new ones are dropped.
        """
        if type(x) is not dict and not isinstance(x, Mapping):
            raise no_row(x)
        standing = self._in_use()
        if standing is None:
            row = {name: x[name] for name in x if name not in (self.covariates or ())}
            return fill_row(row, self._mean_of) if self._fills else row
        if len(x) < len(standing):
            # Of a thousand words a text has twenty.
            standing = sorted(x.keys() & standing.keys(), key=standing.__getitem__)
        if self._fills:
            return fill_row({name: x[name] for name in standing if name in x}, self._mean_of)
        return {name: x[name] for name in standing if name in x}

    def _mean_of(self, name: Hashable) -> float:
        """Return the mean of a variable over the rows so far; 0 where nothing is known of it."""
        moments, columns = self._moments, self._columns
        if moments is not None:
            place = moments.slots.get(name)
            return 0.0 if place is None else moments.mean_of(place)
        place = None if columns is None else columns.slots.get(name)
        if columns is None or place is None:
            return 0.0
        return float(columns.table["mean"][place] + columns.table["low"][place])

    def transform_many(self, X: Any) -> Any:
        """Keep the standing variables of many rows.

        Parameters
        ----------
        X
            A frame, an array or sparse matrix (whose columns are named from 0), or a
            `ColumnStream`.

        Returns
        -------
        A frame of the same library with the standing columns that X has, in their order; for
        anything else an array of shape (n, number standing). X itself before any stand.
        """
        standing = self._in_use()
        if standing is None:
            X = self._without_covariates(X)
            fills = self._fills and not isinstance(X, ColumnStream)
            return fill_rows(X, None, self._mean_of) if fills else X
        names = list(standing)
        taken = columns_of(X, names)
        found = gather(X, names) if taken is None else taken[1]
        return fill_rows(found, names, self._mean_of) if self._fills else found

    def _without_covariates(self, X: Any) -> Any:
        frame = as_frame(X) if self.covariates else None
        if frame is None or self.covariates is None:
            return X
        _, covariates = positions(frame, self.covariates)
        rest = [j for j in range(len(frame.columns)) if j not in covariates]
        return frame[:, rest].to_native()


def _placed(names: Iterable[Hashable]) -> dict[Hashable, int]:
    return {name: place for place, name in enumerate(names)}


def _filled(before: list[Hashable], best: list[Hashable], k: int) -> list[Hashable]:
    """Return k of the best, in place of those before: who is among the best keeps its place.

    The others, best first, take the places that are left.
    """
    stays = {*before} & {*best}
    new = [name for name in best if name not in stays][::-1]
    filled = [name if name in stays else new.pop() for name in before if name in stays or new]
    return (filled + new[::-1])[: min(k, len(best))]
