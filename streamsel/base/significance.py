"""Compute noise floors, adjusted p-values and warnings about their validity."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel._kernels.scan import UNDERFLOW
from streamsel.base.null import (
    Freedom,
    build_density,
    count_row_variables,
    exceedance_probability,
    genomic_inflation,
    marginal_p_values,
    median_inflation,
    noise_floor,
)
from streamsel.base.phase import Phase
from streamsel.base.report import NOISE_LEVEL, Density, ResultWarning
from streamsel.state.base import Floats
from streamsel.state.permutation_null import PermutationNull
from streamsel.state.stream_summary import KURTOSES, MAX_POINTS, ColumnSample
from streamsel.targets.normal_scores import NormalScores
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import Target
from streamsel.targets.weights import ObservationWeights
from streamsel.targets.whitening import Whitening

# Maximum inflation factor without a warning, and the probability with which correlated columns may
# exceed it.
_MAX_INFLATION, _INFLATION_LEVEL = 1.1, 0.01
# Number of digits of a target that are not rounding errors.
_N_DIGITS = 9
# Relative size of a singular value that is 0.
_RANK_RTOL = 1e-10
# Maximum dispersion of counts, 1 for a Poisson distribution, without a warning.
_MAX_DISPERSION = 1.5
# p-value of the association of weights and target up to which there is a warning.
_MAX_WEIGHTS_P_VALUE = 1e-6
# Maximum probability that noise exceeds the noise floor without a warning.
_MAX_EXCEEDANCE = 0.1


def inflation_warning(
    factor: float | None, sample: ColumnSample, target: Target
) -> ResultWarning | None:
    """Warn if the test statistics of all columns are larger than expected under the null.

    The factor also varies by chance if columns correlate, most if one common factor f explains all
    correlation. Then a statistic is (√a f + √(1 - a) e)², where a² is the mean squared correlation
    of two columns. Conditional on f its median is that of a noncentral χ²₁.

    Parameters
    ----------
    factor
        The median statistic divided by its median under the null; None if not known.
    sample
        A sample of the columns.
    target
        The target.
    """
    if factor is None or not factor > _MAX_INFLATION:
        return None
    if factor <= _chance_inflation(sample.mean_squared_correlation()):
        return None
    return ResultWarning(
        "inflation",
        f"The median test statistic is {factor:.2f} times that under no association: samples may "
        "be related or confounded, or very many columns are associated; p-values may be too "
        f"small. Hint: adjust for {_adjustment(target)}",
    )


def _adjustment(target: Target) -> str:
    """Return the advice to adjust; weights and null models do not combine with relatedness."""
    covariates = "batch or ancestry (covariates)"
    if target.row_transform is None and target.null_model is None:
        return f"{covariates}, or for kinship (relatedness)"
    if isinstance(target.row_transform, Whitening):
        return f"{covariates}: relatedness is already accounted for"
    return f"{covariates}, or for the leading principal components"


def _chance_inflation(squared_correlation: float) -> float:
    """Return the factor that correlated columns exceed with probability `_INFLATION_LEVEL`."""
    from scipy.special import chdtri, chndtrix

    share = min(math.sqrt(squared_correlation), 1.0 - 1e-9)
    noncentrality = share / (1.0 - share) * float(chdtri(1.0, _INFLATION_LEVEL))
    return (1.0 - share) * float(chndtrix(0.5, 1.0, noncentrality)) / float(chdtri(1.0, 0.5))


def heavy_tail_warning(
    sample: ColumnSample,
    target: Target,
    space: TargetSpace,
    p: int,
    scores: NormalScores | None = None,
) -> ResultWarning | None:
    """Warn if noise exceeds the Gaussian noise floor more often than its level states.

    Parameters
    ----------
    sample
        A sample of the columns.
    target, space
        The target, and its space.
    p
        Number of non-constant columns.
    scores
        Normal scores that replace the target in comparisons: with many tied values they have heavy
        tails, too.
    """
    n, r, scale = Freedom.of(target.effective_rows, space)
    if space.kernel.name != "linear" or n - 1 <= r or not sample.counts.any():
        return None
    basis = target.basis_of(space) if scores is None else scores.Y
    floor = noise_floor(n, r, p, NOISE_LEVEL, scale)
    each = exceedance_probability(floor, n, r, target.kurtosis(basis), KURTOSES)
    found = -math.expm1(-p * float(np.average(each, weights=sample.counts)))
    if found <= _MAX_EXCEEDANCE:
        return None
    return ResultWarning(
        "tails",
        f"Noise exceeds the noise floor with a probability of about {found:.0%} rather than "
        f"{NOISE_LEVEL:.0%}: columns have heavy tails or few carriers, and the target "
        f"{_tail_cause(target, scores)}. Hint: use permutations=1000 (--permutations 1000)",
    )


def _tail_cause(target: Target, scores: NormalScores | None) -> str:
    if scores is not None:
        return "has many equal values, which normal scores cannot spread"
    if target.is_class:
        sizes = np.round(target.columns().sum(axis=0))
        return f"has a class of {int(np.nanmin(sizes))} in {target.n} rows"
    return "has heavy tails, too"


def overdispersion_warning(target: Target, space: TargetSpace) -> ResultWarning | None:
    """Warn if counts vary more than the Poisson distribution of their null model."""
    model = target.null_model
    if model is None or model.family != "count":
        return None
    found = model.pearson / max(1.0, target.n - 1.0 - len(space.covariate_map))
    if found <= _MAX_DISPERSION:
        return None
    return ResultWarning(
        "overdispersion",
        f"Counts vary {found:.1f} times as much as a Poisson distribution allows: p-values are too "
        "small. Hint: target_type='numeric' (--target-type numeric) estimates the variance",
    )


def weights_warning(target: Target) -> ResultWarning | None:
    """Warn if permutations are not valid because the weights depend on the target.

    By an F test of the weights' ranks on those of the target and of its distance from the median.
    """
    from scipy.stats import rankdata

    weights = target.row_transform
    if not isinstance(weights, ObservationWeights) or target.null_model is not None:
        return None
    counts = weights.row_weights > 0.0
    Y, w = target.columns()[counts], rankdata(weights.row_weights[counts])
    # Equal values have different rounding errors, by which they must not be ranked.
    Y = np.round(Y / np.maximum(np.abs(Y).max(axis=0), UNDERFLOW), _N_DIGITS)
    ranks = rankdata(np.hstack([Y, np.abs(Y - np.median(Y, axis=0))]), axis=0)
    U, singular, _ = np.linalg.svd(ranks - ranks.mean(axis=0), full_matrices=False)
    U = U[:, singular > _RANK_RTOL * singular.max()]
    w -= w.mean()
    # Weights above 0 may all be equal.
    length = float(np.linalg.norm(w)) or 1.0
    relevance = np.array([np.linalg.norm(U.T @ w) / length])
    if marginal_p_values(relevance, w.size, U.shape[1])[0] > _MAX_WEIGHTS_P_VALUE:
        return None
    return ResultWarning(
        "weights",
        "The weights depend on the target, so permutations are not valid: p-values may be too "
        "small. Hint: test without weights that balance classes",
    )


METHODS = ("auto", "gaussian", "permutation")


class OwnTests(NamedTuple):
    """Tests of a score whose p-values do not follow from the relevance.

    Parameters
    ----------
    p_values
        p-values of all columns that vary; None if the score has none, or columns were discarded.
    tests_noise
        Whether they, not the relevance, are compared with noise.
    """

    p_values: Floats | None
    tests_noise: bool


class Significance(NamedTuple):
    """Comparison of learnt relevances with those of pure noise.

    Parameters
    ----------
    n, space
        Effective number of rows, and the target space over them; None before the target is known.
    null
        Permutation null distribution of the columns; None without permutations.
    """

    n: float
    space: TargetSpace | None
    null: PermutationNull | None

    @property
    def freedom(self) -> Freedom:
        """The distribution of relevances under independence."""
        return Freedom.of(self.n, self.known_space)

    @property
    def known_space(self) -> TargetSpace:
        """The target space; ValueError before it is known."""
        if self.space is None:
            raise ValueError(
                "Expected a target before the noise floor is computed.\n"
                "Hint: call learn_target(y) first, or learn rows."
            )
        return self.space

    def noise_floor(self, level: float, method: str, p: int) -> float:
        """Return the relevance that the best of p noise columns exceeds by chance."""
        if self.null is not None and method != "gaussian":
            return self.null.quantile(level)
        space, (n_free, _, scale) = self.known_space, self.freedom
        found = noise_floor(n_free, space.linear_rank, p, level, scale)
        return space.largest_relevance(found)

    def adjusted_p_values(self, relevance: Floats) -> Floats:
        """Return the p-values of columns, adjusted for all columns; NaN without permutations."""
        return (
            np.full(relevance.size, np.nan) if self.null is None else self.null.adjusted(relevance)
        )

    def density(self, phase: Phase) -> Density | None:
        """Return the histogram of columns, or of the variables of rows if none was evicted."""
        moments, summary, histogram_and_points = phase.moments, phase.summary, None
        if moments is not None:
            histogram_and_points = count_row_variables(moments)
        elif summary is not None:
            histogram_and_points = summary.histogram, summary.first
        if histogram_and_points is None or phase.without_target or not phase.n_columns:
            return None
        if self.space is None:  # before a window of rows is full
            return None
        histogram, relevances = histogram_and_points
        points = relevances if phase.n_columns <= MAX_POINTS else None
        return build_density(histogram, self.space, self.n, points, self.null)

    def report_fields(
        self,
        phase: Phase,
        density: Density | None,
        scores: NormalScores | None,
        own: OwnTests | None,
    ) -> dict[str, Any]:
        """Return the fields of a report about noise and the validity of its statistics."""
        fields: dict[str, Any] = {"density": density}
        if self.null is not None:
            fields["n_permutations"] = self.null.n_permutations
        if density is None:
            return fields
        if own is None:
            fields["inflation"] = genomic_inflation(density, *self.freedom)
        else:
            fields["inflation"] = median_inflation(own.p_values)
        cautions: list[ResultWarning | None] = []
        target, summary = phase.target, phase.summary
        if summary is not None and isinstance(target, Target):
            fields["normal_scores"] = scores is not None
            cautions.append(inflation_warning(fields["inflation"], summary.sample, target))
            if self.null is not None:
                cautions.append(weights_warning(target))
            else:
                cautions.append(overdispersion_warning(target, self.known_space))
                p = phase.n_varying
                if own is None or not own.tests_noise:
                    cautions.append(
                        heavy_tail_warning(summary.sample, target, self.known_space, p, scores)
                    )
        fields["warnings"] = tuple(caution for caution in cautions if caution is not None)
        return fields


def check_noise_floor(level: Any, method: Any) -> None:
    """Raise ValueError for arguments of `noise_floor` that it does not accept."""
    if not isinstance(level, numbers.Real) or not 0.0 < float(level) < 1.0:
        expected = "a number in the range (0, 1)"
        raise params.parameter_error("noise_floor", "level", expected, level)
    if not isinstance(method, str) or method not in METHODS:
        expected = f"one of {', '.join(map(repr, METHODS))}"
        raise params.parameter_error("noise_floor", "method", expected, method)
