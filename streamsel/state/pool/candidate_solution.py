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

from streamsel.data.columns import Chunk, Stats
from streamsel.state.base import Floats, Indices
from streamsel.state.pool.pool import Picks, Ranking

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

# In place of infinities, in a state that can be stored in a file.
FLOAT_MAX = float(np.finfo(np.float64).max)
MINUS_FLOAT_MAX = -FLOAT_MAX


class CandidateSolution(abc.ABC):
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
    thresholds
        (S,) thresholds under each stage that a column must exceed: the scores of the incumbents.
    incumbent_arrivals
        (S,) arrivals of the incumbents: an equal column that arrived earlier is better. -1 where
        ties favour the incumbent.
    tolerance
        (S,) scores that differ by no more are equal.
    pinned
        Indices of the variables that must stay in the pool.
    ordered
        Whether a stage is proven only together with all earlier ones, as in a greedy selection.
    """

    ordered: ClassVar[bool] = True

    names: Sequence[Hashable]
    arrivals: Floats
    picks: Picks
    keys: Sequence[Hashable]
    thresholds: Floats
    incumbent_arrivals: IntArray
    tolerance: Floats
    pinned: Indices

    @abc.abstractmethod
    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for those that are excluded."""

    @abc.abstractmethod
    def scores_of(
        self, chunk: Chunk, stats: Stats, indices: Indices, noted: Mapping[str, Floats]
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk, with their method-specific fields."""

    @abc.abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return the data from which the method restores the solution for the same pool."""

    def bounding_stages(self, full: BoolArray) -> Indices:
        """Return, for each stage, a stage whose scores are never lower, (S,); -1 if there is none.

        Only full stages, under which all columns were scored, qualify. If scores decrease from pick
        to pick, it may be an earlier stage.
        """
        return np.where(full, np.arange(full.size), -1)

    def carries_over(self, before: CandidateSolution, s: int, best_discarded: float) -> bool:
        """Return whether results under a stage of the previous solution still hold.

        Parameters
        ----------
        before
            The previous solution, with at least as many stages.
        s
            The stage.
        best_discarded
            The best score under it of a column discarded since it last changed.
        """
        del best_discarded
        return self.keys[s] == before.keys[s]

    def duplicated_incumbents(
        self, chunk: Chunk, stats: Stats, indices: Indices, arrivals: Indices, scores: Floats
    ) -> IntArray:
        """Return the arrival of the incumbent that each column duplicates and precedes, (b,).

        -1 for a column without one. Duplicates that score the same as the incumbent are already
        found by `incumbent_arrivals`, and may be omitted.
        """
        del chunk, stats, arrivals, scores
        return np.full(indices.size, -1, dtype=np.int64)

    def count_picks(self, n_stages: int) -> int:
        """Return how many picks belong to so many leading stages."""
        return min(len(self.picks.indices), n_stages)


class StagedSolver(Ranking, Protocol):
    """Protocol of the method of a pool with stages."""

    def _candidate_solution(self, pool: Any, before: Any, n_proven: int) -> CandidateSolution:
        """Return the pool's solution; the first stages of the previous one may be proven."""

    def _solution_from_state(self, pool: Any, state: dict[str, Any]) -> CandidateSolution:
        """Return the solution from a file, made from the pool's first variables."""

    def _score_upper_bound(self, pool: Any, rows: Mapping[str, Floats]) -> Floats:
        """Return upper bounds on all later scores of columns; inf if there is none."""


def count_leading_true(flags: BoolArray) -> int:
    """Return the number of flags set before the first that is not."""
    return int(np.argmin(np.append(flags, False)))


def previous_indices(arrivals: Floats, before: CandidateSolution | None) -> Indices:
    """Return the indices of variables in a previous solution, by arrival; -1 for new ones."""
    origin = np.full(arrivals.size, -1, dtype=np.intp)
    if before is not None and before.arrivals.size:
        index = np.minimum(np.searchsorted(before.arrivals, arrivals), before.arrivals.size - 1)
        known = before.arrivals[index] == arrivals
        origin[known] = index[known]
    return origin
