"""Result of a pass over some of the columns, under every stage of a fixed candidate solution.

In a greedy selection, the pass decides the first stage that is not certified: the best column there
is kept. So every pass over all columns certifies at least one more stage.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsel.data.chunks import Chunk, Stats
from streamsel.state.base import Floats, Indices, VariableTable
from streamsel.state.correlations import index_runs
from streamsel.state.pool.candidate_solution import (
    MINUS_FLOAT_MAX,
    BoolArray,
    IntArray,
    count_leading_true,
    keep_best_per_stage,
)
from streamsel.state.pool.certifier import Certifier
from streamsel.state.pool.fingerprint import PoolFingerprint, pool_changed_error
from streamsel.state.pool.pool import TIE_RTOL

# Scores within this many tolerances of the best may be equal to it.
_TIE_WINDOW = 4.0
# Number of levels in the window; scores of one level count as one number.
_TIE_LEVELS = 256
# Relative rounding of a score near 0.
_SMALL_RTOL, _TINY = 1e-2, np.finfo(float).tiny


class PassRequest(NamedTuple):
    """Request for a pass: which columns to keep of those that are not in the pool.

    Parameters
    ----------
    sought
        (S,) the stages for which columns are sought.
    thresholds, tolerance, incumbent_arrivals
        (S,) as in `CandidateSolution`.
    eviction_thresholds
        (S,) a column that beats no incumbent is kept if its score exceeds one of these.
    limit
        Number of columns to keep, unless more are required.
    """

    sought: BoolArray
    thresholds: Floats
    tolerance: Floats
    incumbent_arrivals: IntArray
    eviction_thresholds: Floats
    limit: int

    def beats(self, scores: Floats, arrivals: Indices) -> BoolArray:
        """Return under which stages columns beat the incumbent, (b, S)."""
        earlier = (arrivals[:, None] < self.incumbent_arrivals) & (
            scores >= self.thresholds - self.tolerance
        )
        beats = ((scores > self.thresholds + self.tolerance) | earlier) & self.sought
        return np.asarray(beats)

    def eligible(self, scores: Floats, arrivals: Indices) -> BoolArray:
        """Return which columns are worth keeping, (b,)."""
        above = (scores > self.eviction_thresholds + self.tolerance) & self.sought
        return np.asarray((above | self.beats(scores, arrivals)).any(axis=1))

    def required(self, scored: ScoredColumns, arrivals: Indices) -> BoolArray:
        """Return which columns must be kept, (p,): the best of every stage, first among equals.

        If equal scores are only known up to rounding, a few are kept: each exceeds all before it.
        """
        scores = scored.scores
        is_required = np.zeros(len(scores), dtype=np.bool_)
        beats = self.beats(scores, arrivals)
        for s in np.flatnonzero(beats.any(axis=0)).tolist():
            indices = np.flatnonzero(beats[:, s])
            values = scores[indices, s]
            highest = float(values.max())
            size = max(abs(highest), _SMALL_RTOL * np.sqrt(abs(highest)))
            window = _TIE_WINDOW * max(float(self.tolerance[s]), TIE_RTOL * size, _TINY)
            ties = indices[values >= highest - window]
            # Keep the first column of each level.
            level = np.maximum.accumulate(
                np.floor((scores[ties, s] - highest) * _TIE_LEVELS / window)
            )
            is_required[ties[np.diff(level, prepend=-np.inf) > 0.0]] = True
            is_required[ties[np.argmax(scores[ties, s])]] = True
        incumbents, first = np.unique(scored.duplicate_of, return_index=True)
        is_required[first[incumbents >= 0]] = True
        return is_required


class ScoredColumns(NamedTuple):
    """Scores of columns.

    Parameters
    ----------
    scores
        (b, S) under every stage.
    bounds
        (b,) upper bounds of all their later scores.
    duplicate_of
        (b,) arrival of the incumbent that each duplicates and precedes, as in
        `CandidateSolution.duplicated_incumbents`.
    """

    scores: Floats
    bounds: Floats
    duplicate_of: IntArray

    def subset(self, indices: Indices | BoolArray) -> ScoredColumns:
        """Return the scores of a subset."""
        return ScoredColumns(self.scores[indices], self.bounds[indices], self.duplicate_of[indices])

    def append(self, other: ScoredColumns) -> ScoredColumns:
        """Return these scores followed by others."""
        scores = np.concatenate([self.scores, other.scores])
        bounds = np.append(self.bounds, other.bounds)
        return ScoredColumns(scores, bounds, np.append(self.duplicate_of, other.duplicate_of))


class StageResult:
    """The best columns of a part of a pass, and the best scores of all others.

    Parameters
    ----------
    request
        The request.
    first
        Number of columns before the part.
    fields
        The table fields of a column, and the shape of each.

    Attributes
    ----------
    n_read
        Number of columns read.
    names, rows
        The kept columns, in order of arrival, and their rows of a pool's table.
    best_discarded
        (S,) the best score of a discarded column under every stage.
    score_upper_bound
        Upper bound of all later scores of discarded columns.
    """

    def __init__(
        self, request: PassRequest, first: int, fields: Mapping[str, tuple[int, ...]]
    ) -> None:
        self.request, self.first, self.n_read = request, first, 0
        self.names: list[Hashable] = []
        self.rows = {field: np.empty((0, *shape)) for field, shape in fields.items()}
        self.best_discarded: Floats = np.full(request.thresholds.size, MINUS_FLOAT_MAX)
        self.score_upper_bound = MINUS_FLOAT_MAX
        none = np.empty(0)
        self._scored = ScoredColumns(
            np.empty((0, request.thresholds.size)), none, none.astype(np.int64)
        )

    def record_discarded(self, scored: ScoredColumns) -> None:
        """Record discarded columns."""
        if scored.bounds.size:
            self.best_discarded = np.maximum(self.best_discarded, scored.scores.max(axis=0))
            self.score_upper_bound = max(self.score_upper_bound, float(scored.bounds.max()))

    def keep(
        self, names: Sequence[Hashable], rows: Mapping[str, Floats], scored: ScoredColumns
    ) -> None:
        """Append columns to the kept ones, and cut back if there are too many."""
        self.names += names
        self.rows = {
            field: np.concatenate([mine, rows[field]]) for field, mine in self.rows.items()
        }
        self._scored = self._scored.append(scored)
        if len(self.names) >= 2 * self.request.limit:
            self.cut_back()

    def cut_back(self) -> None:
        """Cut back to the limit, but keep all required columns."""
        request, arrivals = self.request, self.rows["arrival"].astype(np.intp)
        if len(self.names) <= request.limit:
            return
        is_required = request.required(self._scored, arrivals)
        is_kept = keep_best_per_stage(
            self._scored.scores[:, request.sought], is_required, request.limit
        )
        self.record_discarded(self._scored.subset(~is_kept))
        self.names = [name for name, flag in zip(self.names, is_kept.tolist(), strict=True) if flag]
        self.rows = {field: mine[is_kept] for field, mine in self.rows.items()}
        self._scored = self._scored.subset(is_kept)

    def merge(self, other: StageResult) -> None:
        """Add the result of the part that follows directly."""
        stop = self.first + self.n_read
        if other.first != stop:
            raise pool_changed_error(f"the columns from {other.first} on, after the first {stop}")
        self.n_read += other.n_read
        self.best_discarded = np.maximum(self.best_discarded, other.best_discarded)
        self.score_upper_bound = max(self.score_upper_bound, other.score_upper_bound)
        self.keep(other.names, other.rows, other._scored)
        self.cut_back()


def begin_partitioned_pass(state: Certifier, total: int) -> None:
    """Begin the next pass over the same columns, in parts."""
    if state.total is None:
        state.begin_pass(total)
        _raise_thresholds(state)
    else:
        state.set_total(total)


def _raise_thresholds(state: Certifier) -> None:
    """Exclude columns that the next cut would discard.

    Under every stage the pool holds as many better columns as the stage's share of the limit. To be
    called after the candidate solution was made and before the pool changes.
    """
    solution = state.latest_solution()
    r = max(1, state.limit // max(1, int(state.open_stages(solution).sum())))
    if len(state.names) >= r:
        scores = solution.scores()
        worst = len(scores) - r
        state.eviction_thresholds = np.maximum(
            state.eviction_thresholds, np.partition(scores, worst, axis=0)[worst]
        )


def request_pass(state: Certifier) -> PassRequest:
    """Return the request of the next pass for columns that are not in the pool."""
    solution = state.latest_solution()
    return PassRequest(
        state.open_stages(solution),
        solution.thresholds,
        solution.tolerance,
        solution.incumbent_arrivals,
        state.eviction_thresholds,
        state.limit,
    )


def reduced_state(state: Certifier) -> dict[str, Any]:
    """Return the state, for a file, with only the columns that the candidate solution needs."""
    solution, table = state.latest_solution(), state.pool.table
    indices = np.sort([state.index_of[solution.names[j]] for j in solution.pinned]).astype(np.intp)
    names = [state.names[j] for j in indices.tolist()]
    rows = {field: table[field][indices] for field in table.fields}
    return state.to_state() | {"table": {"names": names} | rows, "n_solved": len(names)}


def score_part(
    state: Certifier, chunk: Chunk, stats: Stats, known: PoolFingerprint, found: StageResult
) -> None:
    """Score the next columns of a part, without any change to the state.

    Parameters
    ----------
    state
        A reduced state.
    chunk, stats
        The columns, and their moments.
    known
        Columns of the pool that the state was reduced from.
    found
        Result of the pass over the part so far.
    """
    solution, pool, first = state.latest_solution(), state.pool, found.first + found.n_read
    known.expect(chunk, stats, first)
    indices = np.flatnonzero(pool.adjusted_squares(stats) > 0.0)
    indices = indices[~known.among(first + indices)]
    for piece in index_runs(indices, chunk.n):
        scores = solution.scores_of(chunk, stats, piece)
        moments = {field: array[piece] for field, array in stats._asdict().items()}
        bounds = state.solver.upper_bound(pool, moments)
        copied = solution.duplicated_incumbents(chunk, stats, piece, first + piece, scores)
        kept = found.request.eligible(scores, first + piece) | (copied >= 0)
        scored = ScoredColumns(scores, bounds, copied)
        found.record_discarded(scored.subset(~kept))
        if kept.any():
            mine = piece[kept]
            rows = {"arrival": (first + mine).astype(np.float64)}
            rows |= pool.rows_of(chunk, stats, mine)
            names = [chunk.names[j] for j in mine.tolist()]
            found.keep(names, rows, scored.subset(kept))
    found.n_read += stats.m2.size


def combine(state: Certifier, found: StageResult) -> None:
    """Add the results of a pass over all columns, and make a new candidate solution."""
    if found.first or found.n_read != state.total:
        raise pool_changed_error(f"{found.first + found.n_read} columns instead of {state.total}")
    names = set(state.index_of)
    for name in found.names:
        if name in names:
            raise pool_changed_error(f"two columns with the name {name!r}")
        names.add(name)
    n_certified = count_leading_true(~state.open_stages(state.latest_solution()))
    state.record_pass(found.best_discarded, found.score_upper_bound)
    if found.names:
        table = VariableTable(state.pool.table.fields)
        table.append(found.names, **found.rows)
        state.pool.append_all(table, 0)
        state.solve_again(state.seen, n_certified)
        _raise_thresholds(state)
    if len(state.names) >= 2 * state.limit:
        state.cut_back(state.latest_solution())
