"""Reasons to doubt what a model found: conditions of the tests that do not hold."""

from __future__ import annotations

import math

import numpy as np

from streamsel.held.column_sample import KURTOSES, ColumnSample
from streamsel.learner.noise import chance_above, noise_floor
from streamsel.learner.report import NOISE_LEVEL, Caution
from streamsel.target.normal_scores import NormalScores
from streamsel.target.space import TargetSpace
from streamsel.target.target import Target

# Test statistics may be larger than expected by this factor, or by what correlated columns reach
# with this chance.
_INFLATED, _LEVEL = 1.1, 0.01
# The chance that noise exceeds the floor may be so large before a report warns.
_CHANCE = 0.1


def of_inflation(factor: float | None, sample: ColumnSample) -> Caution | None:
    """Warn where the statistics of all columns are larger than expected under no association.

    Chance alone moves the factor where columns correlate, most where one common factor f explains
    all correlation: then a statistic is (√a f + √(1 - a) e)², a² the mean squared correlation of
    two columns, and given f its median is that of a noncentral χ²₁.

    Parameters
    ----------
    factor
        The median statistic, in units of that under no association; None if not known.
    sample
        Of the columns.
    """
    if factor is None or not factor > _INFLATED:
        return None
    if factor <= _by_chance(sample.mean_squared_correlation()):
        return None
    return Caution(
        "inflation",
        f"The median test statistic is {factor:.2f} times that under no association: samples may "
        "be related or confounded, or very many columns are associated; p-values are too small "
        "then. Hint: adjust for batch or ancestry (covariates)",
    )


def _by_chance(squared_correlation: float) -> float:
    """Return the factor that correlated columns exceed with the chance `_LEVEL` at most."""
    from scipy.special import chdtri, chndtrix

    share = min(math.sqrt(squared_correlation), 1.0 - 1e-9)
    noncentrality = share / (1.0 - share) * float(chdtri(1.0, _LEVEL))
    return (1.0 - share) * float(chndtrix(0.5, 1.0, noncentrality)) / float(chdtri(1.0, 0.5))


def of_tails(
    sample: ColumnSample,
    target: Target,
    space: TargetSpace,
    p: int,
    scores: NormalScores | None = None,
) -> Caution | None:
    """Warn where noise exceeds the Gaussian noise floor more often than its level says.

    Parameters
    ----------
    sample
        Of the columns.
    target, space
        The target, and its space.
    p
        Columns that vary.
    scores
        What columns are compared with instead of the target: scores of a target of which many
        values are equal have heavy tails, too.
    """
    n, r = target.effective_rows - len(space.given), space.rank
    if space.kernel.name != "linear" or n - 1 <= r or not sample.counts.any():
        return None
    basis = target.basis_of(space) if scores is None else scores.Y
    floor = noise_floor(n, r, p, NOISE_LEVEL)
    each = chance_above(floor, n, r, target.kurtosis(basis), KURTOSES)
    found = -math.expm1(-p * float(np.average(each, weights=sample.counts)))
    if found <= _CHANCE:
        return None
    return Caution(
        "tails",
        f"Noise exceeds the noise floor with a chance of about {found:.0%} rather than "
        f"{NOISE_LEVEL:.0%}: columns have heavy tails or few carriers, and the target "
        f"{_about(target, scores)}. Hint: permutations=1000 (--permutations 1000) holds the level",
    )


def _about(target: Target, scores: NormalScores | None) -> str:
    if scores is not None:
        return "has many equal values, which normal scores cannot spread"
    if target.is_class:
        sizes = np.round(target.columns().sum(axis=0))
        return f"has a class of {int(np.nanmin(sizes))} in {target.n} rows"
    return "has heavy tails, too"
