"""Candidate solutions in stages: the picks of a greedy selection, or the solutions of a path.

The scores under each stage follow from the solution so far. A candidate solution therefore allows
every other column to be scored under all stages at once.
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

# Stand-ins for infinities, in a state that can be stored in a file.
MOST = float(np.finfo(np.float64).max)
LEAST = -MOST


class Plan(abc.ABC):
    """Candidate solution, and the scores of every column under each of its stages.

    It is made from the state of a pool at one time, and never modified.

    Attributes
    ----------
    names, arrivals
        The variables of that pool, in order, and their arrivals: a discarded name may return later
        as another variable.
    picks
        The solution, as indices of these.
    keys
        (S,) keys that determine the scores under each stage.
    bars
        (S,) thresholds under each stage that a column must exceed: the scores of the incumbents.
    holders
        (S,) arrivals of the incumbents: an equal column that came earlier is better. -1 where equal
        columns are not.
    tolerance
        (S,) scores that differ by no more are equal.
    must_stay
        Indices of the variables that must stay in the pool.
    ordered
        Whether a stage is proven only together with all earlier ones, as in a greedy selection.
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
        """Return the (p, S) scores of the pool's variables; -inf for those that are excluded."""

    @abc.abstractmethod
    def scores_of(
        self, chunk: Chunk, stats: Stats, places: Places, noted: Mapping[str, Floats]
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk with these further fields."""

    @abc.abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return the data from which the method restores the solution for the same pool."""

    def bounding(self, full: Bools) -> Places:
        """Return, for each stage, a stage whose scores are never lower, (S,); -1 if there is none.

        Only full stages, under which all columns were scored, qualify. If scores decrease from pick
        to pick, it may be an earlier stage.
        """
        return np.where(full, np.arange(full.size), -1)

    def goes_on(self, before: Plan, s: int, lost: float) -> bool:
        """Return whether results under a stage of the previous solution still hold.

        Parameters
        ----------
        before
            The previous solution, with at least as many stages.
        s
            The stage.
        lost
            The best score under it of a column discarded since it last changed.
        """
        del lost
        return self.keys[s] == before.keys[s]

    def copied(
        self, chunk: Chunk, stats: Stats, places: Places, arrivals: Places, scores: Floats
    ) -> Whole:
        """Return the arrival of the incumbent that each column duplicates and precedes, (b,).

        -1 for a column without one. Duplicates that score the same as the incumbent are already
        found by `holders`, and may be omitted.
        """
        del chunk, stats, arrivals, scores
        return np.full(places.size, -1, dtype=np.int64)

    def n_picked(self, n_stages: int) -> int:
        """Return how many picks belong to so many leading stages."""
        return min(len(self.picks.places), n_stages)


class Planner(Method, Protocol):
    """Protocol of the method of a pool with stages."""

    def _plan(self, pool: Any, before: Any, n_proven: int) -> Plan:
        """Return the pool's solution; the first stages of the previous one may be proven."""

    def _restored_plan(self, pool: Any, state: dict[str, Any]) -> Plan:
        """Return the solution from a file, made from the pool's first variables."""

    def _ceiling(self, pool: Any, rows: Mapping[str, Floats]) -> Floats:
        """Return upper bounds on all later scores of columns; inf if there is none."""


def leading(flags: Bools) -> int:
    """Return the number of flags set before the first that is not."""
    return int(np.argmin(np.append(flags, False)))


def origin_of(arrivals: Floats, before: Plan | None) -> Places:
    """Return the indices of variables in a previous solution, by arrival; -1 for new ones."""
    origin = np.full(arrivals.size, -1, dtype=np.intp)
    if before is not None and before.arrivals.size:
        index = np.minimum(np.searchsorted(before.arrivals, arrivals), before.arrivals.size - 1)
        known = before.arrivals[index] == arrivals
        origin[known] = index[known]
    return origin
