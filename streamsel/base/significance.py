"""Compute noise floors, adjusted p-values and warnings about their validity."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from streamsel import params
from streamsel.base.axis import Axis, cached_until_update
from streamsel.base.null import (
    build_density,
    count_row_variables,
    exceedance_probability,
    genomic_inflation,
    noise_floor,
)
from streamsel.base.report import NOISE_LEVEL, Density, ResultWarning, number
from streamsel.base.windows import Window
from streamsel.state.base import Floats
from streamsel.state.moments.moments import Moments
from streamsel.state.permutation_null import PermutationNull
from streamsel.state.stream_summary import KURTOSES, MOST_POINTS, ColumnSample
from streamsel.targets.normal_scores import NormalScores
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import Target

# Maximum inflation factor without a warning, and the probability with which correlated columns may
# exceed it.
_MAX_INFLATION, _INFLATION_LEVEL = 1.1, 0.01
# Maximum probability that noise exceeds the noise floor without a warning.
_MAX_EXCEEDANCE = 0.1


def inflation_warning(factor: float | None, sample: ColumnSample) -> ResultWarning | None:
    """Warn if the test statistics of all columns are larger than expected under the null.

    The factor also varies by chance if columns correlate, most if one common factor f explains all
    correlation: then a statistic is (√a f + √(1 - a) e)², a² the mean squared correlation of two
    columns, and conditional on f its median is that of a noncentral χ²₁.

    Parameters
    ----------
    factor
        The median statistic divided by its median under the null; None if not known.
    sample
        A sample of the columns.
    """
    if factor is None or not factor > _MAX_INFLATION:
        return None
    if factor <= _chance_inflation(sample.mean_squared_correlation()):
        return None
    return ResultWarning(
        "inflation",
        f"The median test statistic is {factor:.2f} times that under no association: samples may "
        "be related or confounded, or very many columns are associated; p-values may be too "
        "small. Hint: adjust for batch or ancestry (covariates)",
    )


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
    n, r = target.effective_rows - len(space.covariate_map), space.rank
    if space.kernel.name != "linear" or n - 1 <= r or not sample.counts.any():
        return None
    basis = target.basis_of(space) if scores is None else scores.Y
    floor = noise_floor(n, r, p, NOISE_LEVEL)
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


METHODS = ("auto", "gaussian", "permutation")


class Significance(Axis):
    """Compare the learnt relevances with those of pure noise."""

    _moments: Moments | None
    _window: Window | None

    def noise_floor(self, level: float = 0.05, *, method: str = "auto") -> float:
        """Return the relevance that the best of as many noise columns exceeds by chance.

        Parameters
        ----------
        level
            Probability, over all columns seen, that noise exceeds the noise floor.
        method
            `"gaussian"`: from the distribution for Gaussian observations. `"permutation"`: from
            permuted targets, if the parameter `permutations` is above 0. `"auto"`: from
            permutations if there are any.

        Returns
        -------
        A relevance in [0, 1]; NaN if there is none: for instance without a target, or before a
        window of rows is full.

        Raises
        ------
        ValueError
            For a level outside (0, 1), before the target is known, and for a noise floor by
            permutation if no column was compared with permuted targets.

        Notes
        -----
        **Gaussian.** For n Gaussian observations without association, relevance² ~ Beta(r/2,
        (n - 1 - r)/2), r the rank of the target. Among p columns the largest is below the
        1 - level/p quantile with probability at least 1 - level (Bonferroni). If n - 1 <= r, every
        column is explained in full, and the noise floor is 1. Covariates of rank d leave n - d
        observations. Fading rows and weighted rows count as (Σw)² / Σw² rows of equal weight.

        The distribution is valid if either the columns or the target have no heavy tails. It is not
        valid for counts and rare variants in combination with a small class, few cases or a
        heavy-tailed target: there noise exceeds the noise floor far more often than `level`
        states. Reports contain a warning if a sample of the columns indicates this; with
        `permutations=1000` the level is valid in these cases, too.

        **Permutation.** A permuted target has no association with any column. The noise floor
        is the 1 - level quantile, over the permutations, of the largest relevance of all columns
        (Westfall and Young 1993): its level is exact, whatever the distributions and the
        correlations of the columns. The noise floor is 1 if there are too few permutations for the
        level, fewer than 1 / level - 1.

        The noise floor is valid for single columns: a component of SOSPCA, selected and rotated
        among them, exceeds it more often. With a kernel that is not linear the noise floor is the
        largest relevance in feature space of 4,096 directions, drawn once, along which a variable
        is as relevant as the linear noise floor; NaN if that kernel depends on the scale of a
        variable (scale=False).
        """
        if not isinstance(level, numbers.Real) or not 0.0 < level < 1.0:
            expected = "a number in the range (0, 1)"
            raise params.parameter_error("noise_floor", "level", expected, level)
        if not isinstance(method, str) or method not in METHODS:
            expected = f"one of {', '.join(map(repr, METHODS))}"
            raise params.parameter_error("noise_floor", "method", expected, method)
        level, null = float(level), self._permutation_null
        if method == "permutation" and null is None:
            raise ValueError(
                "Expected columns that were compared with permuted targets. Got: none.\n"
                f"Hint: {type(self).__name__}(permutations=1000) before learning columns; "
                "permutation results are dropped when rows are learnt."
            )
        in_first_window = self._window is not None and self._space is None
        if self._without_target or in_first_window:
            return float("nan")
        if null is not None and method != "gaussian":
            return null.quantile(level)
        n, space = self._space_of_rows()
        floor = noise_floor(n - len(space.covariate_map), space.linear_rank, self._n_varying, level)
        return space.largest_relevance(floor)

    def _normal_scores(self) -> NormalScores | None:
        """Return normal scores to compare with noise; None to use the target itself."""
        return None

    @property
    def _n_varying(self) -> int:
        """Number of non-constant variables among those seen."""
        return self.n_columns - self.n_constant

    @property
    def _permutation_null(self) -> PermutationNull | None:
        """Permutation null distribution of the columns learnt; None if there is none."""
        null = None if self._summary is None else self._summary.null
        return null if null is not None and null.n_tests else None

    def _report_noise_floor(self) -> float | None:
        """Return the noise floor for a report."""
        return number(self.noise_floor(NOISE_LEVEL)) if self.n_rows else None

    def _adjusted_p_values(self, relevance: Floats) -> Floats:
        """Return the p-values of columns, adjusted for all columns; NaN without permutations."""
        null = self._permutation_null
        return np.full(relevance.size, np.nan) if null is None else null.adjusted(relevance)

    def _space_of_rows(self) -> tuple[float, TargetSpace]:
        """Return the effective number of observations, and the target space."""
        if self._moments is not None and self._moments.space is not None:
            return self._moments.effective_rows, self._moments.space
        if self._target is None or self._space is None:
            raise ValueError(
                "Expected a target before the noise floor is computed.\n"
                "Hint: call learn_target(y) first, or learn rows."
            )
        return self._target.effective_rows, self._space

    # For reports

    @cached_until_update
    def _density_now(self) -> Density | None:
        """Return the histogram of columns, or of the variables of rows if none was evicted."""
        moments, summary, histogram_and_points = self._moments, self._summary, None
        if moments is not None:
            histogram_and_points = count_row_variables(moments)
        elif summary is not None:
            histogram_and_points = summary.histogram, summary.first
        if histogram_and_points is None or self._without_target or not self.n_columns:
            return None
        if moments is None and self._space is None:  # before a window of rows is full
            return None
        n, space = self._space_of_rows()
        histogram, relevances = histogram_and_points
        points = relevances if self.n_columns <= MOST_POINTS else None
        return build_density(histogram, space, n, points, self._permutation_null)

    def _significance(self) -> dict[str, Any]:
        """Return the fields of a report about noise and the validity of its statistics."""
        density, null = self._density_now(), self._permutation_null
        fields: dict[str, Any] = {"density": density}
        if null is not None:
            fields["n_permutations"] = null.n_permutations
        if density is None:
            return fields
        n, space = self._space_of_rows()
        fields["inflation"] = genomic_inflation(density, n - len(space.covariate_map), space.rank)
        cautions: list[ResultWarning | None] = []
        if self._summary is not None and isinstance(self._target, Target):
            sample = self._summary.sample
            scores = self._normal_scores()
            fields["normal_scores"] = scores is not None
            cautions.append(inflation_warning(fields["inflation"], sample))
            if null is None:
                cautions.append(
                    heavy_tail_warning(sample, self._target, space, self._n_varying, scores)
                )
        fields["warnings"] = tuple(caution for caution in cautions if caution is not None)
        return fields
