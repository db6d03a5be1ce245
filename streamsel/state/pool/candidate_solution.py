"""Candidate solutions in stages: the picks of a greedy selection, or the solutions of a path.

The scores under each stage follow from the solution so far. A candidate solution therefore allows
every other column to be scored under all stages at once.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamsel.data.chunks import Chunk, Stats
from streamsel.state.base import Floats, Indices
from streamsel.state.pool.pool import TIE_RTOL, ZERO_TOL, Picks, Pool

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
        Whether a stage is certified only together with all earlier ones, as in a greedy selection.
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
    def scores_of(self, chunk: Chunk, stats: Stats, indices: Indices) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""

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
        """Return how many picks belong to this many leading stages."""
        return min(len(self.picks.indices), n_stages)


@dataclass(frozen=True, eq=False)
class StagedSolver(abc.ABC):
    """Base class of objects that find an answer in stages, among the variables of a pool.

    Parameters
    ----------
    k
        Number of picks wanted; None for all.
    """

    k: int | None

    @abc.abstractmethod
    def solve(self, pool: Pool, before: Any, n_certified: int | None) -> CandidateSolution:
        """Return the candidate solution for the variables of a pool, in order of arrival.

        Parameters
        ----------
        pool
            The pool.
        before
            The previous candidate solution, to continue from; None if there is none.
        n_certified
            Number of leading stages of it that are certified; None in the first pass, in which the
            solution often changes.
        """

    @abc.abstractmethod
    def restore(self, pool: Pool, saved: dict[str, Any]) -> CandidateSolution:
        """Return the candidate solution that `CandidateSolution.to_state` saved."""

    def restore_of_columns(self, pool: Pool, saved: dict[str, Any]) -> CandidateSolution:
        """Return a saved solution for single columns as one for groups of one."""
        return self.restore(pool, saved)

    def picks(self, pool: Pool, k: int) -> Picks:
        """Return k picks among the variables of a pool, for a k other than that of the solver."""
        return dataclasses.replace(self, k=k).solve(pool, None, None).picks

    def upper_bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG002
        """Return upper bounds on all later scores of columns; `FLOAT_MAX` if there is none."""
        return np.full(rows["m2"].size, FLOAT_MAX)


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


def keep_best_per_stage(scores: Floats, required: BoolArray, limit: int) -> BoolArray:
    """Return which columns to keep: the required ones, then the r-th best of every stage.

    r = 1, 2, ..., until the limit is reached.

    Parameters
    ----------
    scores
        (p, S) in order of arrival; not finite for ineligible columns.
    required
        (p,) columns that must be kept.
    limit
        Number of columns to keep, unless more are required.
    """
    order, finite = _ranked(scores)
    sequence = order[finite & ~required[order]]
    # The last assignment to an index wins: each column gets its best rank in any stage.
    position = np.full(len(required), sequence.size)
    position[sequence[::-1]] = np.arange(sequence.size)[::-1]
    room = max(0, limit - int(required.sum()))
    added = np.argsort(position)[:room]
    required = required.copy()
    required[added[position[added] < sequence.size]] = True
    return required


def _ranked(scores: Floats) -> tuple[Indices, BoolArray]:
    """Return the r-th best column of every stage, (p, S), and whether its score is finite, (p, S).

    Scores are compared as float32, so that scores differing by rounding are equal, and the earlier
    column comes first.
    """
    with np.errstate(over="ignore"):
        bits = np.ascontiguousarray(-scores.T, dtype=np.float32).view(np.uint32)
    # Map the bits so that they sort as the numbers do.
    bits = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    ranked = np.sort((bits << np.uint64(32)) | np.arange(len(scores), dtype=np.uint64), axis=1)
    order = (ranked & np.uint64(0xFFFFFFFF)).astype(np.intp).T
    return order, np.isfinite(np.take_along_axis(scores, order, axis=0))


class GreedySolution(CandidateSolution):
    """Picks, thresholds and incumbents of a greedy; subclasses add the scores of other columns.

    Parameters
    ----------
    pool
        The pool that it is made from.
    picks
        The picks.
    k
        Number of picks wanted: if there are fewer, one more stage is open for a column with a
        score.
    min_score
        A score of at most this is not picked.
    """

    def __init__(self, pool: Pool, picks: Picks, k: int, min_score: float = ZERO_TOL) -> None:
        self.names, self.arrivals = list(pool.names), pool.table["arrival"].copy()
        self.picks = picks
        selected = [self.names[j] for j in picks.indices]
        size = min(k, len(selected) + 1)
        self.keys = [tuple(selected[:s]) for s in range(size)]
        self.thresholds: Floats = np.full(size, min_score)
        self.thresholds[: len(selected)] = picks.scores
        self.incumbent_arrivals = np.full(size, -1, dtype=np.int64)
        self.incumbent_arrivals[: len(selected)] = pool.table["arrival"][picks.indices]
        self.tolerance: Floats = TIE_RTOL * np.abs(self.thresholds)
        self.pinned = np.array(picks.indices, dtype=np.intp)

    def to_state(self) -> dict[str, Any]:
        """Return the picks by name."""
        return {"picks": [self.names[j] for j in self.picks.indices]}


def picks_from_state(pool: Pool, state: dict[str, Any]) -> list[int]:
    """Return the picks in a state of `GreedySolution.to_state`, as indices of the pool."""
    return [pool.index_of[name] for name in state["picks"]]
