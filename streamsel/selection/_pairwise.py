"""Scores of columns with missing values, each on its observed rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.pairwise import observed_products
from streamsel._kernels.scan import ROUNDING_RTOL, UNDERFLOW
from streamsel.base.null import Freedom, f_statistic
from streamsel.base.significance import Significance
from streamsel.data.chunks import Chunk, Stats
from streamsel.selection._binned_scores import ScoreOptions
from streamsel.selection._effects import Effects
from streamsel.selection._scores import SCORES, MomentScore, correlation, t_statistic
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.targets.kernels import VariableKernel
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import Target

# Maximum numbers per batch of columns.
_BATCH_NUMBERS = 1 << 18
# A target that varies by less than this share of its sum of squares is constant.
_CONSTANT_RTOL = 1e-24
# Smaller p-values are compared by likelihood ratios, which do not underflow.
_MIN_P_VALUE = 1e-280


class PairwiseFields(NamedTuple):
    """Fields that are kept of columns in addition to their moments.

    Parameters
    ----------
    correlation
        (b,) relevances on the observed rows.
    observed, target_rank
        (b,) number of observed rows, and rank of the target in these.
    target_square
        (b,) sum of squares of the first target column in these.
    """

    correlation: Floats
    observed: Floats
    target_rank: Floats
    target_square: Floats

    def p_values(self) -> Floats:
        """Return the p-values of the F tests."""
        from scipy.special import betaincc

        dof = self.observed - 1.0 - self.target_rank
        valid = (dof > 0.0) & (self.target_rank > 0.0)
        ranks, dof = np.where(valid, self.target_rank, 1.0), np.where(valid, dof, 1.0)
        squares = np.clip(self.correlation, 0.0, 1.0) ** 2
        return np.where(valid, betaincc(ranks / 2.0, dof / 2.0, squares), 1.0)

    def f_statistics(self) -> Floats:
        """Return the F statistics."""
        squares = np.clip(self.correlation, 0.0, 1.0) ** 2
        dof = np.maximum(self.observed - 1.0 - self.target_rank, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = dof / self.target_rank * (squares / (1.0 - squares))
        return np.nan_to_num(found, nan=0.0, posinf=np.inf)


class PairwiseTarget:
    """A target, and the moments of columns on their observed rows.

    The moments of a column with missing values are scaled so that its relevance is the one that has
    the same p-value on all rows: ranking, noise floor and histograms then compare p-values.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._space = TargetSpace(target.cyy, target.n, VariableKernel(), is_pair=target.is_pair)
        # The chunk that was scanned last, with the fields of its columns.
        self._last: tuple[Chunk, PairwiseFields] | None = None

    def moments(self, chunk: Chunk, stats: Stats) -> Stats:
        """Return the moments of the columns of a chunk; 0 for one without observed values."""
        gaps = np.flatnonzero(~np.isfinite(stats.m2))
        size, space = stats.m2.size, self._space
        n, rank = np.full(size, float(self._target.n)), np.full(size, float(space.rank))
        found, square = np.empty(size), np.full(size, self._target.cyy[0, 0])
        step = max(1, _BATCH_NUMBERS // chunk.n)
        for start in range(0, gaps.size, step):
            batch = gaps[start : start + step]
            fields = self._score(chunk, stats, batch)
            found[batch], n[batch], rank[batch], square[batch] = fields
        complete = np.ones(size, dtype=np.bool_)
        complete[gaps] = False
        found[complete] = np.maximum(space.relevance(stats.m2, stats.cxy)[complete], 0.0)
        self._last = chunk, PairwiseFields(found, n, rank, square)
        return stats

    def fields(self, chunk: Chunk, size: int) -> PairwiseFields:
        """Return the fields of the first columns of the chunk that was scanned last."""
        assert self._last is not None  # noqa: S101
        assert self._last[0] is chunk  # noqa: S101
        return PairwiseFields(*(field[:size] for field in self._last[1]))

    def _score(self, chunk: Chunk, stats: Stats, batch: Indices) -> PairwiseFields:
        """Write the moments of some columns to `stats`; return their fields."""
        target, b = self._target, batch.size
        c = target.c
        inner = 0 if target.is_class else c
        n, mean, low, m2 = (np.empty(b) for _ in range(4))
        y_sum, cxy, cyy = np.empty((b, c)), np.empty((b, c)), np.empty((b, inner, inner))
        X = chunk.columns(batch)
        observed_products(X, target.Y[:c], n, mean, low, m2, y_sum, cxy, cyy)
        complete = np.isfinite(X).all(axis=1)
        is_empty = n == 0.0
        mean[is_empty] = low[is_empty] = m2[is_empty] = 0.0
        m2[m2 <= n * np.square(ROUNDING_RTOL * mean)] = 0.0
        m2[complete | (m2 > 1e300) | ((m2 > 0.0) & (m2 < UNDERFLOW))] = np.nan
        if target.is_class:
            sizes = np.round(y_sum + n[:, None] * target.mean)
            explained, rank = self._between_classes(sizes, cxy)
            square = sizes[:, 0] * (1.0 - sizes[:, 0] / np.maximum(n, 1.0))
        else:
            explained, rank = self._explained(cxy, cyy)
            square = cyy[:, 0, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.sqrt(np.clip(np.where(m2 > 0.0, explained / m2, 0.0), 0.0, 1.0))
        fields = PairwiseFields(found, n, rank, square)
        stats.mean[batch], stats.mean_error[batch], stats.m2[batch] = mean, low, m2
        stats.cxy[batch] = self._scaled(m2, cxy, fields)
        return fields

    def _between_classes(self, sizes: Floats, cxy: Floats) -> tuple[Floats, Floats]:
        """Return the sums of squares between classes, and the number of these minus 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = np.where(sizes > 0.0, np.square(cxy) / sizes, 0.0)
        return squares.sum(axis=1), np.maximum((sizes > 0.0).sum(axis=1) - 1.0, 0.0)

    def _explained(self, cxy: Floats, cyy: Floats) -> tuple[Floats, Floats]:
        """Return the sums of squares that numeric targets explain, and the ranks of these."""
        squares = np.einsum("bkk->bk", cyy)
        is_constant = squares <= _CONSTANT_RTOL * self._target.cyy.diagonal()
        cxy = np.where(is_constant, 0.0, cxy)
        if cxy.shape[1] == 1:
            return np.square(cxy[:, 0]) / np.where(is_constant, 1.0, squares)[:, 0], np.where(
                is_constant[:, 0], 0.0, 1.0
            )
        found, ranks = np.zeros(len(cxy)), np.zeros(len(cxy))
        for j, products in enumerate(cyy):
            products[is_constant[j]] = 0.0
            products[:, is_constant[j]] = 0.0
            space = TargetSpace(products, self._target.n, VariableKernel())
            found[j], ranks[j] = np.square(space.weights @ cxy[j]).sum(), space.rank
        return found, ranks

    def _scaled(self, m2: Floats, cxy: Floats, fields: PairwiseFields) -> Floats:
        """Return products with the target for which the relevance has the column's p-value."""
        space, p_values = self._space, fields.p_values()
        n, rank, _ = Freedom.of(self._target.n, space)
        matched = np.zeros(m2.size)
        if n - 1 > rank:
            matched = Freedom(n, rank).relevance_of(np.maximum(p_values, _MIN_P_VALUE))
            dof = (fields.observed - 1.0 - fields.target_rank) / (n - 1.0 - rank)
            with np.errstate(divide="ignore", invalid="ignore"):
                equivalent = -np.expm1(dof * np.log1p(-np.square(fields.correlation)))
            matched = np.where(p_values < _MIN_P_VALUE, np.sqrt(equivalent), matched)
        relevance = np.zeros(m2.size)
        varies = m2 > 0.0
        relevance[varies] = space.relevance(m2[varies], cxy[varies])
        factor = np.divide(matched, relevance, out=np.zeros(m2.size), where=relevance > 0.0)
        scaled: Floats = cxy * factor[:, None]
        return scaled


def _f(fields: PairwiseFields) -> Floats:
    return fields.f_statistics()


def _t(fields: PairwiseFields) -> Floats:
    return np.sqrt(fields.f_statistics())


def _correlation(fields: PairwiseFields) -> Floats:
    return fields.correlation


@dataclass(frozen=True, kw_only=True)
class PairwiseScore(MomentScore):
    """Score of columns on their observed rows; of variables of rows, where NaN counts as the mean.

    Parameters
    ----------
    of_fields
        Returns the scores from the fields of columns.
    """

    fields: tuple[str, ...] = PairwiseFields._fields
    of_fields: Callable[[PairwiseFields], Floats]

    def prepare(self, target: Target, options: ScoreOptions) -> Any:  # noqa: ARG002
        """Return the target of columns with missing values."""
        return PairwiseTarget(target)

    def of_chunk(self, chunk: Chunk, stats: Stats, prepared: Any, n_jobs: int) -> dict[str, Floats]:  # noqa: ARG002
        """Return the fields of the columns of a chunk, which was scanned before."""
        return dict(prepared.fields(chunk, stats.m2.size)._asdict())

    def relevance(self, view: VariableState, indices: Indices) -> Floats:
        """Return the relevances of variables on their observed rows."""
        return view.extra_field("correlation")[indices]

    def observed(self, view: VariableState, indices: Indices, n_rows: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Return the number of observed rows of variables."""
        return view.extra_field("observed")[indices].astype(np.int64)

    def effects(
        self,
        view: VariableState,
        indices: Indices,
        column: int,
        significance: Significance,  # noqa: ARG002
    ) -> Effects | None:
        """Return the effects of variables on a target column, on the observed rows."""
        stats, fields = view.stats(indices), _fields_of(view, indices)
        # The products with the target have been scaled, but keep their signs.
        slopes = np.sign(stats.cxy[:, column]) * fields.correlation
        variance = 1.0 - np.square(np.minimum(fields.correlation, 1.0))
        dof = fields.observed - 2.0
        # On fewer rows, and for a constant target, there are no standard errors, and no test.
        exists = (dof > 0.0) & (fields.target_rank > 0.0)
        ratio = np.sqrt(np.where(exists, fields.target_square, np.nan) / stats.m2)
        return Effects(slopes * ratio, np.sqrt(variance / np.where(exists, dof, 1.0)) * ratio)

    def scores(self, view: VariableState, indices: Indices, significance: Significance) -> Floats:  # noqa: ARG002
        """Return the scores of variables."""
        return self.of_fields(_fields_of(view, indices))

    def p_values(self, view: VariableState, indices: Indices, significance: Significance) -> Floats:  # noqa: ARG002
        """Return the p-values of variables."""
        return _fields_of(view, indices).p_values()


def _fields_of(view: VariableState, indices: Indices) -> PairwiseFields:
    return PairwiseFields(*(view.extra_field(name)[indices] for name in PairwiseFields._fields))


def _pairwise(
    name: str,
    of_relevance: Callable[[Floats, float, int, float | None], Floats],
    of_fields: Callable[[PairwiseFields], Floats],
) -> PairwiseScore:
    score = SCORES[name]
    return PairwiseScore(
        meaning=f"{score.meaning} on the observed rows",
        targets=score.targets,
        of_relevance=of_relevance,
        of_fields=of_fields,
    )


PAIRWISE_SCORES = {
    "correlation": _pairwise("correlation", correlation, _correlation),
    "f": _pairwise("f", f_statistic, _f),
    "t": _pairwise("t", t_statistic, _t),
}
