"""Minimum redundancy, maximum relevance: the greedy picks, and candidate solutions in stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.mutual_information import (
    fold_mrmr_scores,
    mrmr_scores,
    mutual_information,
)
from streamsel.base.null import f_statistic
from streamsel.data.chunks import Chunk, Stats
from streamsel.selection._binned_scores import Codes, bin_columns
from streamsel.state.base import Floats, Indices
from streamsel.state.correlations import MIN_BLOCK, CorrelationCache, correlate_columns
from streamsel.state.pool.candidate_solution import (
    MINUS_FLOAT_MAX,
    GreedySolution,
    StagedSolver,
    picks_from_state,
    previous_indices,
)
from streamsel.state.pool.pool import Picks, Pool, relevance_of_rows, unit_columns
from streamsel.targets.space import TargetSpace

SmallInts = NDArray[np.integer[Any]]

# Lower bound of the redundancy with a pick, for quotients.
MIN_REDUNDANCY = 0.001
# Relative and absolute error of relevance and redundancy.
_RTOL, _ATOL = 1e-12, 1e-14
# Cap of relevance in F, which is infinite at 1 and dominated by rounding errors near 1.
_MAX_RELEVANCE = math.sqrt(1.0 - 1e-9)
# Maximum numbers per batch of columns.
_BATCH_NUMBERS = 1 << 18


def _error_bound(value: Any) -> Any:
    return _RTOL * value + _ATOL


class RelevanceMeasure(NamedTuple):
    """Relevance of a variable to the target, as the criterion uses it.

    Parameters
    ----------
    is_f
        Whether to use the F statistic of the measured relevance instead of that itself.
    zero_threshold
        A measured relevance of at most this counts as none.
    n, rank
        F: number of observations, and rank of the target.
    """

    is_f: bool
    zero_threshold: float
    n: float = 0.0
    rank: int = 1

    def transform(self, found: Floats) -> Floats:
        """Return the relevance of variables from the measured one; -inf for none."""
        relevance = found
        if self.is_f:
            relevance = f_statistic(np.minimum(found, _MAX_RELEVANCE), self.n, self.rank)
        return np.where(found > self.zero_threshold, relevance, -np.inf)

    def error_bound(self, found: Floats) -> Floats:
        """Return error bounds of the relevance."""
        error: Floats = _error_bound(np.maximum(found, 0.0))
        if self.is_f:
            r = np.clip(found, self.zero_threshold, _MAX_RELEVANCE)
            error = 2.0 * f_statistic(r, self.n, self.rank) * error / r / (1.0 - r * r)
        return error


class MRMRCriterion(NamedTuple):
    """Form of the criterion: quotient or difference.

    Parameters
    ----------
    beta
        As in the kernel `mrmr_score`, which is the formula.
    """

    beta: float

    @property
    def min_redundancy(self) -> float:
        """Lower bound of the redundancy of a variable with a pick."""
        return MIN_REDUNDANCY if self.beta < 0.0 else 0.0

    def scores(self, rel: Floats, total: Floats, s: int) -> Floats:
        """Return scores after s picks, from relevances and sums of redundancies."""
        scores = np.empty(rel.size)
        mrmr_scores(rel, total, s, self.beta, scores)
        return scores

    def error_bound(self, relevance_error: Any, score: Any, total: Any, s: int) -> float:
        """Return the error bound of a score."""
        if s == 0:
            return float(relevance_error)
        mean = total / s
        redundancy_error = _error_bound(mean)
        if self.beta < 0.0:
            return float((relevance_error + score * redundancy_error) / mean)
        return float(
            relevance_error
            + (redundancy_error if math.isnan(self.beta) else self.beta * s * redundancy_error)
        )


class MutualInformationCache(CorrelationCache):
    """Rows of the mutual information matrix of a pool's binned variables.

    Parameters
    ----------
    codes
        (p, n) the bin of every observation.
    n_bins
        Number of bins.
    before, origin, max_rows
        As in `CorrelationCache`.
    """

    def __init__(
        self,
        codes: SmallInts,
        n_bins: int,
        before: CorrelationCache | None = None,
        origin: Indices | None = None,
        max_rows: int = 0,
    ) -> None:
        self._n_bins = n_bins
        super().__init__(codes, before, origin, max_rows)

    def _between(self, some: Any, others: Any) -> Floats:
        return mutual_information_matrix(others, some, self._n_bins, self._n_bins).T


def small_codes(codes: Codes, n_codes: int) -> SmallInts:
    """Return codes from 0 to n_codes - 1 as a small integer type."""
    return codes.astype(np.uint8 if n_codes <= 1 << 8 else np.int32)


def bin_columns_by_frequency(X: Floats, n_bins: int) -> SmallInts:
    """Return the bin of every value of columns, one per row."""
    step = max(1, _BATCH_NUMBERS // X.shape[1])
    starts = range(0, max(1, len(X)), step)
    parts = (bin_columns(X[start : start + step], n_bins, "frequency") for start in starts)
    return np.concatenate([small_codes(part, n_bins) for part in parts])


def mutual_information_matrix(
    codes: SmallInts, others: SmallInts, n_codes: int, n_others: int
) -> Floats:
    """Return the (b, q) mutual information of binned columns, (b, n), and others, (q, n)."""
    result = np.empty((len(codes), len(others)))
    mutual_information(codes, np.ascontiguousarray(others.T), n_codes, n_others, result)
    return result


def greedy_mrmr(
    relevance: Floats,
    error_bounds: Floats,
    criterion: MRMRCriterion,
    k: int,
    row: Callable[[int, Callable[[], Indices]], Floats],
    forced: Sequence[int] = (),
) -> tuple[Picks, list[float]]:
    """Pick up to k variables; return them, and the error bound of each score.

    Parameters
    ----------
    relevance, error_bounds
        (p,) relevances to the target, -inf for variables that cannot be picked, and their error
        bounds.
    criterion
        The form of a score.
    row
        Function of a variable and of a callable returning likely next picks: the signed
        redundancies of all variables with it.
    forced
        The picks, if known.
    """
    picks, tolerance = Picks([], [], []), list[float]()
    total, available = np.zeros(relevance.size), relevance.copy()
    while len(picks.indices) < (len(forced) or k):
        s = len(picks.indices)
        scores = criterion.scores(available, total, s)
        highest = int(np.argmax(scores)) if scores.size else -1
        if highest < 0 or scores[highest] == -np.inf:
            break
        error = criterion.error_bound(error_bounds[highest], scores[highest], total[highest], s)
        j = forced[s] if forced else int(np.argmax(scores >= scores[highest] - error))
        picks.indices.append(j)
        picks.scores.append(float(scores[j]))
        picks.rounds.append(0)
        tolerance.append(criterion.error_bound(error_bounds[j], scores[j], total[j], s))
        available[j] = -np.inf
        if s + 1 < k:
            total += np.maximum(np.abs(row(j, partial(_best, scores))), criterion.min_redundancy)
    return picks, tolerance


def _best(scores: Floats) -> Indices:
    size = min(MIN_BLOCK, scores.size)
    return np.argpartition(-scores, size - 1)[:size]


def _no_indices() -> Indices:
    return np.empty(0, dtype=np.intp)


class MRMRMeasures(NamedTuple):
    """Measures of relevance and redundancy.

    Parameters
    ----------
    relevance, criterion
        Relevance of a variable, and the form of the criterion.
    n_bins
        Number of bins of variables; 0 if bins are not needed.
    target
        (1, n) codes of the target, and their number, if relevance is mutual information.
    is_redundancy_binned
        Whether redundancy is mutual information.
    """

    relevance: RelevanceMeasure
    criterion: MRMRCriterion
    n_bins: int
    target: tuple[SmallInts, int] | None
    is_redundancy_binned: bool

    def codes(self, X: Floats) -> SmallInts | None:
        """Return the bins of variables, one per row, if needed."""
        return bin_columns_by_frequency(X, self.n_bins) if self.n_bins else None

    def measured_relevance(
        self, space: TargetSpace, stats: Stats, codes: SmallInts | None
    ) -> Floats:
        """Return the measured relevance of variables, (p,)."""
        if self.target is None or codes is None:
            return space.relevance(stats.m2, stats.cxy)
        return mutual_information_matrix(codes, self.target[0], self.n_bins, self.target[1])[:, 0]


class MRMRSolution(GreedySolution):
    """Picks of mRMR, and the scores of other columns under them.

    Parameters
    ----------
    pool
        The pool it is made of.
    k
        Number of picks wanted.
    measures
        Measures of relevance and redundancy.
    before
        The previous candidate solution, to continue from.
    given
        The picks, if known.
    """

    def __init__(
        self,
        pool: Pool,
        k: int,
        measures: MRMRMeasures,
        before: MRMRSolution | None = None,
        given: Sequence[int] = (),
    ) -> None:
        assert pool.space is not None  # noqa: S101
        self._pool, self._measures = pool, measures
        origin = previous_indices(pool.table["arrival"], before)
        self.codes = self._codes(before, origin)
        relevance = measures.measured_relevance(pool.space, pool.stats(), self.codes)
        self._relevance = measures.relevance.transform(relevance)
        rows = None if before is None else before.rows
        reuse = rows, origin, 2 * k + MIN_BLOCK
        self.rows: CorrelationCache
        if measures.is_redundancy_binned and self.codes is not None:
            self.rows = MutualInformationCache(self.codes, measures.n_bins, *reuse)
        else:
            self.rows = CorrelationCache(pool.table["unit"], *reuse)
        errors = measures.relevance.error_bound(relevance)
        picks, tolerance = greedy_mrmr(
            self._relevance, errors, measures.criterion, k, self._row, given
        )
        self.rows.close()
        # Any relevant variable may be picked, even with a negative score.
        super().__init__(pool, self._rescored(picks), k, min_score=MINUS_FLOAT_MAX / 2.0)
        self.tolerance = np.array([*tolerance, 0.0])[: len(self.keys)]
        self._pick_indices = self.pinned[: len(self.keys) - 1]
        self._V = pool.samples(self._pick_indices)
        self._pick_codes = None if self.codes is None else self.codes[self._pick_indices]

    def _rescored(self, picks: Picks) -> Picks:
        """Return the picks with scores from the picks alone.

        Rounding errors of cached correlations depend on earlier pools, and no file has a cache.
        """
        if self._measures.is_redundancy_binned:
            return picks
        criterion, V = self._measures.criterion, self._pool.samples(np.array(picks.indices, int))
        scores = np.empty((len(V), len(V)))
        fold_mrmr_scores(
            self._relevance[picks.indices],
            V @ V.T,
            criterion.min_redundancy,
            criterion.beta,
            scores,
        )
        return picks._replace(scores=np.diag(scores).tolist())

    def _row(self, j: int, likely: Callable[[], Indices]) -> Floats:
        # For mutual information, rows computed in a batch are not cheaper than single ones.
        return self.rows.of(j, _no_indices if self._measures.is_redundancy_binned else likely)

    def _codes(self, before: MRMRSolution | None, origin: Indices) -> SmallInts | None:
        """Return the bins of the pool's variables, if needed."""
        measures, unit = self._measures, self._pool.table["unit"]
        if before is None or before.codes is None:
            return measures.codes(unit)
        codes = before.codes[origin]
        added = np.flatnonzero(origin < 0)
        if added.size:
            codes[added] = bin_columns_by_frequency(unit[added], measures.n_bins)
        return codes

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for those already picked."""
        if self._measures.is_redundancy_binned:
            rows = [self.rows.of(j, _no_indices) for j in self._pick_indices.tolist()]
            redundancy = np.array(rows).reshape(-1, self._relevance.size).T
        else:
            redundancy = self._pool.table["unit"] @ self._V.T
        scores = self._folded(self._relevance, np.ascontiguousarray(redundancy))
        for s, index in enumerate(self.picks.indices):
            scores[index, s + 1 :] = -np.inf
        return scores

    def scores_of(self, chunk: Chunk, stats: Stats, indices: Indices) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        space, measures = self._pool.space, self._measures
        assert space is not None  # noqa: S101
        selected_stats = Stats(*(array[indices] for array in stats))
        codes = measures.codes(unit_columns(chunk, stats, indices)) if measures.n_bins else None
        relevance = measures.relevance.transform(
            measures.measured_relevance(space, selected_stats, codes)
        )
        if measures.is_redundancy_binned and codes is not None:
            return self._folded(relevance, self._mutual_information(codes))
        left = self._pool.adjusted_squares(stats, indices)
        return self._folded(relevance, correlate_columns(chunk, stats, indices, self._V, left))

    def _mutual_information(self, codes: SmallInts) -> Floats:
        assert self._pick_codes is not None  # noqa: S101
        n_bins = self._measures.n_bins
        return mutual_information_matrix(codes, self._pick_codes, n_bins, n_bins)

    def _folded(self, relevance: Floats, redundancy: Floats) -> Floats:
        criterion = self._measures.criterion
        scores = np.empty((relevance.size, len(self.keys)))
        fold_mrmr_scores(relevance, redundancy, criterion.min_redundancy, criterion.beta, scores)
        return scores


@dataclass(frozen=True, eq=False)
class MRMRSolver(StagedSolver):
    """Solver of mRMR in the pool of a `Certifier`.

    Parameters
    ----------
    k
        Number of picks wanted.
    measures
        Measures of relevance and redundancy.
    """

    k: int
    measures: MRMRMeasures

    def solve(
        self,
        pool: Pool,
        before: MRMRSolution | None,
        n_certified: int | None,  # noqa: ARG002
    ) -> MRMRSolution:
        """Return the candidate solution for the variables of a pool."""
        return MRMRSolution(pool, self.k, self.measures, before)

    def restore(self, pool: Pool, saved: dict[str, Any]) -> MRMRSolution:
        """Return the candidate solution that `MRMRSolution.to_state` saved."""
        return MRMRSolution(pool, self.k, self.measures, given=picks_from_state(pool, saved))

    def upper_bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return upper bounds on all later scores: those of a quotient may rise."""
        if self.measures.criterion.beta < 0.0 or self.measures.target is not None:
            return super().upper_bound(pool, rows)
        return self.measures.relevance.transform(relevance_of_rows(pool, rows))
