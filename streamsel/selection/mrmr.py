"""MRMR: minimum redundancy, maximum relevance selection."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from streamsel import params
from streamsel.base.certified_selector import CertifiedSelector
from streamsel.base.joint_rows import max_joint_features
from streamsel.base.river import Supervised
from streamsel.params import param
from streamsel.selection._binned_scores import target_codes
from streamsel.selection._mrmr import (
    MRMRCriterion,
    MRMRMeasures,
    MRMRSolver,
    RelevanceMeasure,
    greedy_mrmr,
    small_codes,
)
from streamsel.state.base import VariableState
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.pool.pool import ZERO_TOL, Picks
from streamsel.targets.target import Target

# A variable whose relevance or information is at most this is never selected.
_ZERO_RELEVANCE = {
    "f": math.sqrt(ZERO_TOL),
    "correlation": math.sqrt(ZERO_TOL),
    "mutual_info": 1e-12,
}


class MRMR(CertifiedSelector, Supervised):
    r"""Minimum redundancy, maximum relevance (mRMR) selection.

    The first pick is the variable with the highest *relevance* to the target. Each further pick
    maximises relevance relative to its *redundancy* with the picks before it. Only pairwise
    statistics are used, so the method works with few rows.

    Parameters
    ----------
    k
        Number of variables to select.
    score
        Relevance of a variable to the target, as in `SelectKBest`: `"f"`, the $F$ statistic, capped
        where the target explains more than $1 - 10^{-9}$ of the variable; `"correlation"`,
        relevance in [0, 1]; `"mutual_info"`, mutual information in nats of the binned variable with
        the classes or the binned target.
    redundancy
        Redundancy of two variables: `"correlation"`, the absolute correlation, or `"mutual_info"`,
        the mutual information of the binned variables.
    scheme
        Combination of the two: `"quotient"`, relevance divided by the mean redundancy with the
        picks, each redundancy counting at least 0.001; `"difference"`, relevance minus the mean
        redundancy.
    beta
        With `scheme="difference"`: subtract $\beta$ times the *sum* of the redundancies. With
        mutual information for both, the score is $I(X_j; Y) - \beta \sum_i I(X_j; X_i)$. None
        subtracts their mean.
    n_bins
        With mutual information: number of equal-frequency bins of a numeric variable.
    window_size
        On rows, with mutual information: number of rows buffered before they are learnt as columns.

    Raises
    ------
    ValueError
        For a parameter out of its range, a beta with a quotient, and, when the target arrives, for
        several numeric targets with `score="mutual_info"`.

    Notes
    -----
    **Cost.** One pass over each column, and its products with the picks, which are one matrix
    product per block of columns; mutual information costs a sort, and $O(n)$ for each pick. Solving
    a pool of $m$ candidates costs $O(n m k)$ at worst and usually less, because the redundancy with
    some of the picks bounds a variable's score.

    **Memory.** $n + c + 4$ numbers per candidate, $c$ the number of target columns; one byte more
    per observation for mutual information. On rows $m^2$ numbers for $m$ variables, or a window.

    **Exact.** Scores of a quotient may rise as picks are made, so one pass certifies little more
    than the first pick; `exact` certifies the others in two or three passes.

    **Rows.** With scores by $F$ or correlation the selection is a function of the joint moments of
    the variables, which rows accumulate: the result equals that on the columns of the same rows.
    With mutual information it is that of the last full window; before the first, all variables
    pass. Covariates and fading are then not supported.

    **Missing and new features.** A column with a missing value is refused. In a row an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable, class or target
    counts as 0 in earlier rows.

    **Ties** go to the column that arrived first. Scores are ties within their error bound, if
    relevance and redundancy are accurate to 1e-12 relative and 1e-14 absolute. A variable whose
    squared relevance or mutual information is at most 1e-12 is never selected.

    With the defaults the selection is that of the packages mrmr_selection (relevance "f",
    redundancy "c", denominator "mean") and mrmrs, except for ties, and for mrmr_selection's rule
    that a copy of the first pick cannot be the second.

    References
    ----------
    [^1]: Ding, C. and Peng, H. (2005). Minimum redundancy feature selection from microarray gene
    expression data. Journal of Bioinformatics and Computational Biology 3, 185-205.

    [^2]: Zhao, Z., Anand, R. and Wang, M. (2019). Maximum relevance and minimum redundancy feature
    selection methods for a marketing machine learning platform. arXiv:1908.05376.

    Examples
    --------
    Three variables are related to the target; one is a noisy copy of another:

    >>> import numpy as np
    >>> from streamsel import MRMR, SelectKBest

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1000))
    >>> y = 2.0 * X[:, 10] + X[:, 30] + 0.5 * rng.normal(size=100)
    >>> X[:, 20] = X[:, 10] + 0.1 * rng.normal(size=100)

    A univariate ranking prefers the copy to the third variable:

    >>> one_by_one = SelectKBest(k=2)
    >>> one_by_one.learn_target(y)
    >>> one_by_one.learn_columns(X)
    >>> one_by_one.selected
    [20, 10]

    >>> model = MRMR(k=2)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> model.selected
    [20, 30]

    With a small pool, pass over the array again until the selection over all columns is certified:

    >>> model = MRMR(k=2, max_candidates=8, exact=True)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> model.selected, model.n_certified
    ([20, 30], 2)
    """

    _row_state_type = CrossMoments

    k: int = param(params.IntRule(1), default=20, kw_only=False)
    score: str = param(params.ChoiceRule(("f", "correlation", "mutual_info")), default="f")
    redundancy: str = param(
        params.ChoiceRule(("correlation", "mutual_info")), default="correlation"
    )
    scheme: str = param(params.ChoiceRule(("quotient", "difference")), default="quotient")
    beta: float | None = param(params.FloatRule(0.0, optional=True), default=None)
    n_bins: int = param(params.IntRule(2), default=10)
    window_size: int = param(params.IntRule(2), default=200)
    max_features: int | None = max_joint_features()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 3, "fading_factor": 0.05}
        pool = {"k": 2, "max_candidates": 3, "exact": True, "max_features": 6, "grace_period": 20}
        yield pool | {"score": "correlation", "scheme": "difference"}
        both = {"score": "mutual_info", "redundancy": "mutual_info", "n_bins": 3}
        yield both | {"k": 2, "scheme": "difference", "beta": 0.5, "window_size": 20}

    @property
    def _score_meaning(self) -> str:
        return (
            "relevance divided by the mean redundancy with the earlier picks"
            if self.scheme == "quotient"
            else "relevance minus the redundancy with the earlier picks"
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.beta is not None and self.scheme == "quotient":
            raise ValueError(
                "Expected beta=None with scheme='quotient', which has no weight. Got: "
                f"beta={self.beta!r}.\nHint: scheme='difference' has a weight."
            )

    def _check_target(self, c: int, *, is_class: bool) -> None:
        if self.score == "mutual_info" and c > 1 and not is_class:
            raise ValueError(
                "Expected one numeric target or classes, as score='mutual_info' requires. Got: "
                f"{c} numeric columns.\nHint: score='f' supports any target."
            )

    @property
    def _by_window(self) -> bool:
        return super()._by_window or "mutual_info" in (self.score, self.redundancy)

    def _measures(self) -> MRMRMeasures:
        n_free, rank, _ = self._significance.freedom
        beta = math.nan if self.beta is None else self.beta
        target = None
        if self.score == "mutual_info" and isinstance(self._target, Target):
            codes, size = target_codes(self._target, self.n_bins, "frequency")
            target = small_codes(codes[None], size), size
        # A target that does not vary has rank 0.
        return MRMRMeasures(
            RelevanceMeasure(self.score == "f", _ZERO_RELEVANCE[self.score], n_free, max(1, rank)),
            MRMRCriterion(-1.0 if self.scheme == "quotient" else beta),
            self.n_bins if "mutual_info" in (self.score, self.redundancy) else 0,
            target,
            self.redundancy == "mutual_info",
        )

    def _solver(self) -> MRMRSolver:
        return MRMRSolver(self.k, self._measures())

    def _select_on_rows(self, view: VariableState, k: int) -> Picks:
        measures, relevance = self._measures(), view.relevance()
        return greedy_mrmr(
            measures.relevance.transform(relevance),
            measures.relevance.error_bound(relevance),
            measures.criterion,
            k,
            lambda j, _: view.products(j),
        )[0]
