"""Score tests of a GLM as scores of columns, with p-values by saddlepoint approximation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from streamsel._kernels.saddlepoint import saddlepoint_p_values
from streamsel._utils.system import effective_jobs, run_in_threads
from streamsel.base.null import f_statistic, marginal_p_values
from streamsel.base.significance import Significance
from streamsel.data.chunks import Chunk, Stats
from streamsel.selection._binned_scores import ScoreOptions
from streamsel.selection._scores import MomentScore, TargetKind, correlation, t_statistic
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.targets.glm import NullModel
from streamsel.targets.kernels import VariableKernel
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import Target

# Above this statistic the normal distribution is replaced by the saddlepoint approximation.
_MIN_CHI_SQUARE = 4.0
_ONE = TargetKind("one target", 1, 0)
# Maximum numbers per batch of columns.
_BATCH_NUMBERS = 1 << 18


class FittedNull(NamedTuple):
    """A null model, and what score tests of columns need of it.

    Parameters
    ----------
    model
        The null model.
    space
        The space of the target.
    root, basis
        As in `saddlepoint_p_values`.
    """

    model: NullModel
    space: TargetSpace
    root: Floats
    basis: Floats

    @classmethod
    def of(cls, target: Target) -> Self:
        """Return the null model of a target."""
        model, n = target.null_model, target.n
        assert model is not None  # noqa: S101
        space = TargetSpace(target.cyy, n, VariableKernel(), target.is_covariate)
        # A certain outcome is no part of the distribution: a leverage of many standard deviations
        # would shift the saddlepoint by an event of no probability.
        root = np.where(model.is_certain, 0.0, np.sqrt(model.variance))
        rows = space.covariate_map @ target.Y[: target.c]
        if target.row_transform is not None:
            rows = target.row_transform.reflect(rows)
        rows[:, model.is_certain] = 0.0
        intercept = root / np.sqrt(root @ root)
        return cls(model, space, root, np.ascontiguousarray(np.vstack([intercept, rows])))

    def p_values(self, chunk: Chunk, stats: Stats, n_jobs: int) -> Floats:
        """Return the p-values of the leading columns of a chunk, as many as `stats` has."""
        relevance, scale = self.space.relevance(stats.m2, stats.cxy), self.model.pearson
        found = marginal_p_values(relevance, self.space.n, 1, scale)
        far = np.flatnonzero(scale * np.square(np.maximum(relevance, 0.0)) > _MIN_CHI_SQUARE)
        step = max(1, _BATCH_NUMBERS // chunk.n)

        def approximate(part: slice) -> None:
            for start in range(part.start, part.stop, step):
                batch = far[start : min(start + step, part.stop)]
                p_values = np.empty(batch.size)
                saddlepoint_p_values(
                    chunk.observations(batch),
                    self.root,
                    self.basis,
                    self.model.mean,
                    self.model.residual,
                    self.model.family == "binary",
                    p_values,
                )
                found[batch] = p_values

        run_in_threads(approximate, far.size, effective_jobs(n_jobs))
        return found


@dataclass(frozen=True, kw_only=True)
class ScoreTest(MomentScore):
    """Score of a GLM's score test: a function of the relevance, with a p-value of its own."""

    p_values_of_relevance = False

    fields: tuple[str, ...] = ("p_value",)
    targets: TargetKind = _ONE

    @property
    def tests_noise(self) -> bool:
        """Whether its own p-values, not those of the relevance, are compared with noise."""
        return True

    def prepare(self, target: Target, options: ScoreOptions) -> Any:  # noqa: ARG002
        """Return what `of_chunk` needs of a target."""
        return FittedNull.of(target)

    def of_chunk(self, chunk: Chunk, stats: Stats, prepared: Any, n_jobs: int) -> dict[str, Floats]:
        """Return the p-values of the columns of a chunk that `stats` has moments of."""
        return {"p_value": prepared.p_values(chunk, stats, n_jobs)}

    def noise_relevance(
        self, view: VariableState, indices: Indices, significance: Significance
    ) -> Floats:
        """Return the relevances that have these p-values under the chi-squared distribution."""
        if significance.null is not None:
            return view.relevance(indices)
        return significance.freedom.relevance_of(view.extra_field("p_value")[indices])

    def p_values(self, view: VariableState, indices: Indices, significance: Significance) -> Floats:
        """Return the p-values of variables: of permutations, or of the score test."""
        if significance.null is not None:
            return significance.null.p_values(view.relevance(indices))
        return view.extra_field("p_value")[indices]


SCORE_TESTS = {
    "correlation": ScoreTest(meaning="relevance", of_relevance=correlation),
    "f": ScoreTest(meaning="chi-squared statistic of the score test", of_relevance=f_statistic),
    "t": ScoreTest(meaning="absolute z statistic of the score test", of_relevance=t_statistic),
}
