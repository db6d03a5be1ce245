"""A speculated answer, cut into stages: the picks of a greedy, or the solutions of a path.

 What scores under each stage follows from the answer so far. So the answer can be speculated, and
every other column scored under all stages at once.
"""

from __future__ import annotations

import abc
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from streamsel.columns import Chunk, Stats
from streamsel.held.part import Floats, Places
from streamsel.held.pool import Method, Picks

Bools = NDArray[np.bool_]
Whole = NDArray[np.int64]

# What nothing is above or below, in a state that can be kept in a file.
MOST = float(np.finfo(np.float64).max)
LEAST = -MOST


class Plan(abc.ABC):
    """A speculated answer, and what every column scores under each of its stages.

    It is made of what a pool holds at one time, and never changed.

    Attributes
    ----------
    names, arrivals
        The variables of the pool it was made of, in order, and when they came: a name that was let
        go may come again, and is another variable then.
    picks
        The answer, as places among these.
    keys
        (S,) what the score under each stage depends on.
    bars
        (S,) what a column must beat under each stage: the score of who stands there.
    holders
        (S,) arrival of who stands there: an equal column that came before it beats it. -1 where
        equal ones do not.
    tolerance
        (S,) scores that differ by no more are equal.
    must_stay
        Places of those who must stay in the pool.
    ordered
        Whether a stage is proven only with all before it, as in a greedy.
    """

    ordered: ClassVar[bool] = True

    names: Sequence[Hashable]
    arrivals: Floats
    picks: Picks
    keys: Sequence[Hashable]
    bars: Floats
    holders: Whole
    tolerance: Floats
    must_stay: Places

    @abc.abstractmethod
    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for who is out of the running."""

    @abc.abstractmethod
    def scores_of(
        self, chunk: Chunk, stats: Stats, places: Places, noted: Mapping[str, Floats]
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk, and of what was noted of them."""

    @abc.abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return what the method needs to make the plan again from the same pool."""

    def bounding(self, full: Bools) -> Places:
        """Return the stage under which no score is lower than under each, (S,); -1 where none is.

        Only of those that are full: under which all columns were seen. Where scores fall from pick
        to pick such a stage may be another one.
        """
        return np.where(full, np.arange(full.size), -1)

    def goes_on(self, before: Plan, s: int, lost: float) -> bool:
        """Return whether what was found under a stage of the plan before holds of mine.

        Parameters
        ----------
        before
            The plan before, of as many stages at least.
        s
            The stage.
        lost
            The best score under it of a column that was let go since it was last changed.
        """
        del lost
        return self.keys[s] == before.keys[s]

    def copied(
        self, chunk: Chunk, stats: Stats, places: Places, arrivals: Places, scores: Floats
    ) -> Whole:
        """Return of who stands anywhere columns of a chunk are copies that came before, (b,).

        By arrival; -1 for a column that is none. Where it scores what who stands there does
        `holders` tells, and this need not.
        """
        del chunk, stats, arrivals, scores
        return np.full(places.size, -1, dtype=np.int64)

    def n_picked(self, n_stages: int) -> int:
        """Return how many picks stand in so many leading stages."""
        return min(len(self.picks.places), n_stages)


class Planner(Method, Protocol):
    """What a pool with stages must know of the method that it serves."""

    def _plan(self, pool: Any, before: Any, n_proven: int) -> Plan:
        """Return the answer that the pool has now; the first stages before may be proven."""

    def _restored_plan(self, pool: Any, state: dict[str, Any]) -> Plan:
        """Return the plan of a file, made from the pool's first variables."""

    def _ceiling(self, pool: Any, rows: Mapping[str, Floats]) -> Floats:
        """Return, for columns, what no score of theirs can ever be above; inf where any may be."""


def leading(flags: Bools) -> int:
    """Return how many flags are set before the first that is not."""
    return int(np.argmin(np.append(flags, False)))


def origin_of(arrivals: Floats, before: Plan | None) -> Places:
    """Return where variables stood in a plan before, by their arrival; -1 for who is new."""
    origin = np.full(arrivals.size, -1, dtype=np.intp)
    if before is not None and before.arrivals.size:
        at = np.minimum(np.searchsorted(before.arrivals, arrivals), before.arrivals.size - 1)
        known = before.arrivals[at] == arrivals
        origin[known] = at[known]
    return origin
