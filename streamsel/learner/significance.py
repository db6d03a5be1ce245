"""What noise would reach: the noise floor, its conditions, and the inflation of all statistics."""

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
    """Compares what was learnt with what noise would reach."""

    _moments: Moments | None
    _window: Window | None

    def noise_floor(self, level: float = 0.05, *, method: str = "auto") -> float:
        """Return the relevance that the best of as many noise columns exceeds with this chance.

        Parameters
        ----------
        level
            The chance, over all columns seen, that noise exceeds the floor.
        method
            `"gaussian"`: from the law of Gaussian observations. `"permutation"`: from permuted
            targets, where the parameter `permutations` is above 0. `"auto"`: from permutations
            where there are any.

        Returns
        -------
        A relevance in [0, 1]; NaN where there is none: without a target, or before a window of rows
        is full, for instance.

        Raises
        ------
        ValueError
            For a level outside (0, 1), before the target is known, and for a permutation floor
            where no column was compared with permuted targets.

        Notes
        -----
        **Gaussian.** Of n Gaussian observations without association relevance² ~ Beta(r/2, (n - 1 -
        r)/2), r the rank of the target. Among p columns the largest is below the 1 - level/p
        quantile with chance at least 1 - level (Bonferroni). Where n - 1 <= r every column is
        explained in full, and the floor is 1. Covariates of rank d leave n - d observations. Rows
        that fade, and those that have weights, count as so many of equal weight, (Σw)² / Σw².

        The law holds where either the columns or the target have no heavy tails. It does not hold
        for counts and rare variants together with a small class, few cases or a heavy-tailed
        target: there noise exceeds the floor far more often than `level` says. Reports warn where a
        sample of the columns says so; `permutations=1000` holds its level there, too.

        **Permutation.** A permuted target has no association with any column. The floor is the 1 -
        level quantile, over the permutations, of the largest relevance of all columns (Westfall and
        Young 1993): its level is exact, whatever the distributions and however columns correlate.
        It is 1 where there are too few permutations for the level, fewer than 1 / level - 1.

        The floor is for single columns: a component of SOSPCA, chosen and rotated among them,
        exceeds it more often. With a kernel that is not linear it is the largest relevance in
        feature space of 4,096 directions, drawn once, along which a variable is as relevant as the
        linear floor; NaN where that kernel sees the scale of a variable (scale=False).
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
                f"Hint: {type(self).__name__}(permutations=1000), before the columns; rows that "
                "come after columns end the permutations."
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
        """Return what variables are compared with noise by, if not by the target itself."""
        return None

    @property
    def _n_varying(self) -> int:
        """How many of the variables seen vary."""
        return self.n_columns - self.n_constant

    @property
    def _null(self) -> PermutationNull | None:
        """Return the permutation null distribution of the columns learnt; None for none."""
        null = None if self._summary is None else self._summary.null
        return null if null is not None and null.n_tests else None

    def _floor(self) -> float | None:
        """Return the noise floor for a report."""
        return number(self.noise_floor(NOISE_LEVEL)) if self.n_rows else None

    def _adjusted_p_values(self, relevance: Floats) -> Floats:
        """Return p-values adjusted for all columns, of columns; NaN without permutations."""
        null = self._null
        return np.full(relevance.size, np.nan) if null is None else null.adjusted(relevance)

    def _space_of_rows(self) -> tuple[float, TargetSpace]:
        """Return how many observations there are, of equal weight, and the target's space."""
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
        """Return where the columns lie, or the variables of rows if none was ever let go."""
        moments, summary, counted = self._moments, self._summary, None
        if moments is not None:
            counted = counted_on_rows(moments)
        elif summary is not None:
            counted = summary.histogram, summary.first
        if counted is None or self._without_target or not self.n_columns:
            return None
        if moments is None and self._space is None:  # before a window of rows is full
            return None
        n, space = self._space_of_rows()
        histogram, first = counted
        points = first if self.n_columns <= MOST_POINTS else None
        return density_of(histogram, space, n, points, self._null)

    def _significance(self) -> dict[str, Any]:
        """Return the fields of a report that say how far its statistics can be trusted."""
        density, null = self._density_now(), self._null
        found: dict[str, Any] = {"density": density}
        if null is not None:
            found["n_permutations"] = null.n_permutations
        if density is None:
            return found
        n, space = self._space_of_rows()
        found["inflation"] = inflation(density, n - len(space.given), space.rank)
        cautions: list[Caution | None] = []
        if self._summary is not None and isinstance(self._target, Target):
            sample = self._summary.sample
            scores = self._normal_scores()
            found["normal_scores"] = scores is not None
            cautions.append(of_inflation(found["inflation"], sample))
            if null is None:
                cautions.append(of_tails(sample, self._target, space, self._n_varying, scores))
        found["warnings"] = tuple(caution for caution in cautions if caution is not None)
        return found
