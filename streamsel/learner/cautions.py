"""Warn about results whose tests have violated assumptions."""

from __future__ import annotations

import math

import numpy as np

from streamsel.held.column_sample import KURTOSES, ColumnSample
from streamsel.learner.noise import chance_above, noise_floor
from streamsel.learner.report import NOISE_LEVEL, Caution
from streamsel.target.normal_scores import NormalScores
from streamsel.target.space import TargetSpace
from streamsel.target.target import Target

# Maximum inflation factor without a warning, and the probability with which correlated columns may
# exceed it.
_MAX_INFLATION, _INFLATION_LEVEL = 1.1, 0.01
# Maximum probability that noise exceeds the noise floor without a warning.
_MAX_EXCEEDANCE = 0.1


def of_inflation(factor: float | None, sample: ColumnSample) -> Caution | None:
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
    return Caution(
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


def of_tails(
    sample: ColumnSample,
    target: Target,
    space: TargetSpace,
    p: int,
    scores: NormalScores | None = None,
) -> Caution | None:
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
    n, r = target.effective_rows - len(space.given), space.rank
    if space.kernel.name != "linear" or n - 1 <= r or not sample.counts.any():
        return None
    basis = target.basis_of(space) if scores is None else scores.Y
    floor = noise_floor(n, r, p, NOISE_LEVEL)
    each = chance_above(floor, n, r, target.kurtosis(basis), KURTOSES)
    found = -math.expm1(-p * float(np.average(each, weights=sample.counts)))
    if found <= _MAX_EXCEEDANCE:
        return None
    return Caution(
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
