"""What selectors have in common: they keep original variables."""

from __future__ import annotations

import abc
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from streamsel import params
from streamsel.held.part import ColumnHeld, Floats, Held, Places
from streamsel.held.pool import NO_PICKS, Picks, Pool
from streamsel.learner.base import Learner, until_learnt
from streamsel.learner.report import Report, is_above, number
from streamsel.params import param
from streamsel.rows import as_frame, gather, positions

State = TypeVar("State", bound=Held)


class Selector(Learner, Generic[State]):
    """A learner that keeps original variables: `_select` says which.

    `Selector[Held]` asks for no more than the moments of the variables; what a method asks for
    further it names: `Selector[SamplePool]`.
    """

    keeps: ClassVar[type[ColumnHeld]] = Pool
    _hooks = ("_select",)

    max_candidates: int | None = param(
        params.Whole(1, optional=True),
        default=None,
        doc="""
        None keeps what is needed of every column: exact, $O(c p)$ memory. A number $m \\geq k$
        keeps a pool of the best $m$ to $2m$ candidates: constant memory; `n_certified` says how
        many picks are proven the same.
        """,
    )

    def _check_parameters(self) -> None:
        k, most = self._asked, self.max_candidates
        if k is not None and most is not None and most < k:
            raise ValueError(
                f"The 'max_candidates' parameter of {type(self).__name__} must be None or at least "
                f"k = {k}. Got {most!r} instead."
            )
        if k is not None:
            self._more_than("k", "max_features")

    # What a method says

    @abc.abstractmethod
    def _select(self, held: State, k: int) -> Picks:
        """Return the best k of the variables held, fewer if nothing more is worth it."""

    def _bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return, for rows of the pool's table, what no score of theirs can ever be above."""
        if pool.space is None:
            return np.ones(len(rows["m2"]))
        return pool.space.relevance(rows["m2"], rows["cxy"])

    def _refill(self, pool: Any, limit: int) -> Picks:
        """Return who stays when a pool is cut back to its limit."""
        return self._select(pool, limit)

    def _round(self, pool: Pool) -> int:  # noqa: ARG002
        """Return how many picks a round can have."""
        return np.iinfo(np.int64).max

    def _relevances(self, held: Held, places: Places) -> Floats:
        """Return the relevances of variables."""
        return held.relevance(places)

    def _told(self) -> Mapping[str, Mapping[Hashable, float]]:
        """Return what else a report tells of the selected: title -> name -> number."""
        return {}

    def _noted(self) -> Sequence[str]:
        """Return further fields of the pool's table, a number a variable, that `_observe` fills."""
        return ()

    @property
    def _asked(self) -> int | None:
        """How many variables are asked for; None for all that are worth it."""
        k: int | None = getattr(self, "k")  # noqa: B009 (declared where it is needed)
        return k

    # What follows

    def _new_columns(self, n: int) -> ColumnHeld:
        assert issubclass(self.keeps, Pool)  # noqa: S101
        pool = self.keeps(self._space, n, self.max_candidates, self._noted())
        pool.serve(self)
        return pool

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
        return self._selected()

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

    @property
    def n_certified(self) -> int:
        """How many leading picks are proven to be those over all columns at once."""
        held = self._held
        if isinstance(held, Pool):
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
        certified, further = self.n_certified, self._told()
        found = []
        for rank, name in enumerate(self._selected()):
            mine = number(relevance[name])
            row = {"name": name, "relevance": mine, "score": number(scores[name])}
            row |= {"round": rounds[name], "certified": rank < certified}
            row |= {"above_noise": is_above(mine, floor)}
            found.append(row | {title: number(value[name]) for title, value in further.items()})
        facts = {"n_certified": certified, "n_passes": self.n_passes}
        return self._report(floor, "selected", found, self._asked, facts)

    # Transforms

    @property
    def _is_blank(self) -> bool:
        """Whether nothing is learnt; a window without variables has taught that there are none."""
        return self._held is None or (not self.n_columns and self._window is None)

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, Any]:
        """Keep the selected features of a row; all but covariates before anything is learnt.

        Parameters
        ----------
        x
            A row. Selected features that it lacks stay absent, new ones are dropped.
        """
        if self._is_blank:
            return {name: x[name] for name in x if name not in (self.covariates or ())}
        return {name: x[name] for name in self._selected() if name in x}

    def transform_many(self, X: Any) -> Any:
        """Keep the selected variables of many rows.

        Parameters
        ----------
        X
            A frame, an array or sparse matrix (whose columns are named from 0), or a
            `ColumnStream`.

        Returns
        -------
        A frame of the same library with the selected columns that X has, in order of
        selection; for anything else an array of shape (n, number selected). X itself before
        anything is learnt.
        """
        frame = as_frame(X)
        if self._is_blank:
            if frame is None or not self.covariates:
                return X
            _, covariates = positions(frame, self.covariates)
            rest = [j for j in range(len(frame.columns)) if j not in covariates]
            return frame[:, rest].to_native()
        if frame is None:
            return gather(X, self._selected())
        _, places = positions(frame, self._selected())
        return frame[:, places].to_native()
