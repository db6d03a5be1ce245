"""Compute noise floors, adjusted p-values and warnings about their validity."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from streamsel import params
from streamsel.held.moments import Moments
from streamsel.held.part import Floats
from streamsel.held.permutations import PermutationNull
from streamsel.held.summary import MOST_POINTS
from streamsel.learner.axis import Axis
from streamsel.learner.cached import until_learnt
from streamsel.learner.cautions import of_inflation, of_tails
from streamsel.learner.density import counted_on_rows, density_of
from streamsel.learner.noise import inflation, noise_floor
from streamsel.learner.report import NOISE_LEVEL, Caution, Density, number
from streamsel.learner.window import Window
from streamsel.target.normal_scores import NormalScores
from streamsel.target.space import TargetSpace
from streamsel.target.target import Target

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
            Probability, over all columns seen, that noise exceeds the floor.
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
            For a level outside (0, 1), before the target is known, and for a permutation floor if
            no column was compared with permuted targets.

        Notes
        -----
        **Gaussian.** For n Gaussian observations without association, relevance² ~ Beta(r/2,
        (n - 1 - r)/2), r the rank of the target. Among p columns the largest is below the
        1 - level/p quantile with probability at least 1 - level (Bonferroni). If n - 1 <= r, every
        column is explained in full, and the floor is 1. Covariates of rank d leave n - d
        observations. Fading rows and weighted rows count as (Σw)² / Σw² rows of equal weight.

        The distribution is valid if either the columns or the target have no heavy tails. It is not
        valid for counts and rare variants in combination with a small class, few cases or a
        heavy-tailed target: there noise exceeds the floor far more often than `level` states.
        Reports contain a warning if a sample of the columns indicates this; with
        `permutations=1000` the level is valid in these cases, too.

        **Permutation.** A permuted target has no association with any column. The floor is the
        1 - level quantile, over the permutations, of the largest relevance of all columns (Westfall
        and Young 1993): its level is exact, whatever the distributions and the correlations of the
        columns. The floor is 1 if there are too few permutations for the level, fewer than 1 /
        level - 1.

        The floor is valid for single columns: a component of SOSPCA, selected and rotated among
        them, exceeds it more often. With a kernel that is not linear the floor is the largest
        relevance in feature space of 4,096 directions, drawn once, along which a variable is as
        relevant as the linear floor; NaN if that kernel depends on the scale of a variable
        (scale=False).
        """
        if not isinstance(level, numbers.Real) or not 0.0 < level < 1.0:
            raise ValueError(
                f"The 'level' must be in the range (0, 1). Got {params.shown(level)} instead."
            )
        if not isinstance(method, str) or method not in METHODS:
            raise ValueError(
                f"The 'method' must be one of {', '.join(map(repr, METHODS))}. Got "
                f"{params.shown(method)} instead."
            )
        level, null = float(level), self._null
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
        floor = noise_floor(n - len(space.given), space.linear_rank, self._n_varying, level)
        return space.largest_relevance(floor)

    def _normal_scores(self) -> NormalScores | None:
        """Return normal scores to compare with noise; None to use the target itself."""
        return None

    @property
    def _n_varying(self) -> int:
        """Number of non-constant variables among those seen."""
        return self.n_columns - self.n_constant

    @property
    def _null(self) -> PermutationNull | None:
        """Permutation null distribution of the columns learnt; None if there is none."""
        null = None if self._summary is None else self._summary.null
        return null if null is not None and null.n_tests else None

    def _floor(self) -> float | None:
        """Return the noise floor for a report."""
        return number(self.noise_floor(NOISE_LEVEL)) if self.n_rows else None

    def _adjusted_p_values(self, relevance: Floats) -> Floats:
        """Return the p-values of columns, adjusted for all columns; NaN without permutations."""
        null = self._null
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

    @until_learnt
    def _density_now(self) -> Density | None:
        """Return the histogram of columns, or of the variables of rows if none was evicted."""
        moments, summary, histogram_and_points = self._moments, self._summary, None
        if moments is not None:
            histogram_and_points = counted_on_rows(moments)
        elif summary is not None:
            histogram_and_points = summary.histogram, summary.first
        if histogram_and_points is None or self._without_target or not self.n_columns:
            return None
        if moments is None and self._space is None:  # before a window of rows is full
            return None
        n, space = self._space_of_rows()
        histogram, relevances = histogram_and_points
        points = relevances if self.n_columns <= MOST_POINTS else None
        return density_of(histogram, space, n, points, self._null)

    def _significance(self) -> dict[str, Any]:
        """Return the fields of a report about noise and the validity of its statistics."""
        density, null = self._density_now(), self._null
        fields: dict[str, Any] = {"density": density}
        if null is not None:
            fields["n_permutations"] = null.n_permutations
        if density is None:
            return fields
        n, space = self._space_of_rows()
        fields["inflation"] = inflation(density, n - len(space.given), space.rank)
        cautions: list[Caution | None] = []
        if self._summary is not None and isinstance(self._target, Target):
            sample = self._summary.sample
            scores = self._normal_scores()
            fields["normal_scores"] = scores is not None
            cautions.append(of_inflation(fields["inflation"], sample))
            if null is None:
                cautions.append(of_tails(sample, self._target, space, self._n_varying, scores))
        fields["warnings"] = tuple(caution for caution in cautions if caution is not None)
        return fields
