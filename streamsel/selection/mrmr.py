"""MRMR: variables that tell much of the target, and not the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from streamsel import params
from streamsel.held.part import Floats
from streamsel.held.plan import MOST
from streamsel.held.pool import SPENT, Picks
from streamsel.held.stage_pool import StagePool
from streamsel.learner.jointly import Jointly
from streamsel.learner.river import Supervised
from streamsel.learner.staged import Staged
from streamsel.params import param
from streamsel.selection._greedy_plan import picked
from streamsel.selection._mrmr_plan import Measures, MRMRPlan
from streamsel.selection._redundancy import Relevance, Trade, greedy, narrow
from streamsel.selection._sample_scores import codes_of
from streamsel.target.target import Target

# A variable of which no more is found tells nothing.
_NOTHING = {"f": math.sqrt(SPENT), "correlation": math.sqrt(SPENT), "mutual_info": 1e-12}


class MRMR(Jointly, Staged[MRMRPlan], Supervised):
    r"""Minimum redundancy, maximum relevance: variables that tell much, and not the same.

    The first pick is the variable that tells most of the target. Each further one is a trade: what
    it tells of the target, *relevance*, against what it has in common with the picks before,
    *redundancy*. Only pairs of variables are looked at, so it works where there are few rows.

    Parameters
    ----------
    k
        How many variables to select.
    score
        What a variable tells of the target by itself, as `SelectKBest` has it: `"f"`, the $F$
        statistic, where the target explains more of it than $1 - 10^{-9}$ that of so much;
        `"correlation"`, its relevance in [0, 1]; `"mutual_info"`, in nats, of its bins with the
        classes or the binned target.
    redundancy
        What two variables have in common: `"correlation"`, the size of theirs, or `"mutual_info"`,
        that of their bins.
    form
        `"quotient"`: relevance over the mean redundancy with the picks, of which none counts for
        less than 0.001. `"difference"`: relevance less the mean redundancy.
    beta
        difference: relevance less $\beta$ times the *sum* of the redundancies. With mutual
        information for both that is $I(X_j; Y) - \beta \sum_i I(X_j; X_i)$. None for the mean.
    n_bins
        mutual_info: into how many equally full bins numbers are cut.
    window_size
        On rows, with mutual information: how many are gathered before they are learnt, as columns.

    Raises
    ------
    ValueError
        For a parameter out of its range, a beta with a quotient, and, when it comes, for several
        numeric targets with `score="mutual_info"`.

    Notes
    -----
    **Cost.** A column costs one pass over it, and its products with the picks, which are one matrix
    product for all columns of a block; mutual information costs a sort, and $O(n)$ for each pick.
    A plan of a pool of $m$ candidates costs $O(n m k)$ at worst, and mostly a part of it, for what
    a variable has in common with some of the picks bounds its score.

    **Memory.** $n + c + 4$ numbers a candidate, $c$ the number of target columns; a byte more an
    observation for mutual information. On rows $m^2$ numbers for $m$ variables, or a window.

    **Exact.** Scores of a quotient may rise as picks are made, so that one reading proves little
    more than the first pick; `exact` proves the others in two or three.

    **Rows.** Scores by $F$ and correlations are functions of the joint moments of the variables,
    which rows accumulate: the answer is that on the columns of the same rows. With mutual
    information it is that of the last full window, before there is one everything passes, and there
    are no covariates and no fading.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None counts as if it had its mean; a new variable, class or
    target was 0 before.

    **Ties** go to the column that arrived first: scores that differ by no more than rounding does,
    for what they are made of is known to 1e-12 of itself and to 1e-14. A variable that tells
    nothing, of a squared relevance or an information of no more than 1e-12, is never selected.

    With the defaults the selection is that of the packages mrmr_selection (relevance "f",
    redundancy "c", denominator "mean") and mrmrs, but for ties, and for mrmr_selection's rule that
    a copy of the first pick cannot be the second.

    References
    ----------
    [^1]: Ding, C. and Peng, H. (2005). Minimum redundancy feature selection from microarray gene
    expression data. Journal of Bioinformatics and Computational Biology 3, 185-205.

    [^2]: Zhao, Z., Anand, R. and Wang, M. (2019). Maximum relevance and minimum redundancy feature
    selection methods for a marketing machine learning platform. arXiv:1908.05376.

    Examples
    --------
    Three variables tell of a target, one of them a copy of another but for noise:

    >>> import numpy as np
    >>> from streamsel import MRMR, SelectKBest

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1000))
    >>> y = 2.0 * X[:, 10] + X[:, 30] + 0.5 * rng.normal(size=100)
    >>> X[:, 20] = X[:, 10] + 0.1 * rng.normal(size=100)

    One by one, the copy passes for better than what is new:

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

    A pool of a few candidates, and the array read again until the answer is proven that of all:

    >>> model = MRMR(k=2, max_candidates=8, exact=True)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> model.selected, model.n_certified
    ([20, 30], 2)
    """

    k: int = param(params.Whole(1), default=20, kw_only=False)
    score: str = param(params.Choice(("f", "correlation", "mutual_info")), default="f")
    redundancy: str = param(params.Choice(("correlation", "mutual_info")), default="correlation")
    form: str = param(params.Choice(("quotient", "difference")), default="quotient")
    beta: float | None = param(params.Real(0.0, optional=True), default=None)
    n_bins: int = param(params.Whole(2), default=10)
    window_size: int = param(params.Whole(2), default=200)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 3, "fading_factor": 0.05}
        pool = {"k": 2, "max_candidates": 3, "exact": True, "max_features": 6, "grace_period": 20}
        yield pool | {"score": "correlation", "form": "difference"}
        both = {"score": "mutual_info", "redundancy": "mutual_info", "n_bins": 3}
        yield both | {"k": 2, "form": "difference", "beta": 0.5, "window_size": 20}

    @property
    def _score_meaning(self) -> str:
        return (
            "relevance divided by the mean redundancy with the variables before it"
            if self.form == "quotient"
            else "relevance less the redundancy with the variables before it"
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.beta is not None and self.form == "quotient":
            raise ValueError(
                "Expected beta=None with form='quotient', which weighs nothing. Got "
                f"beta={self.beta!r} instead.\nHint: form='difference' has a weight."
            )

    def _check_target(self, c: int, *, is_class: bool) -> None:
        if self.score == "mutual_info" and c > 1 and not is_class:
            raise ValueError(
                "Expected one numeric target or classes, as score='mutual_info' asks for. Got: "
                f"{c} numeric columns.\nHint: score='f' takes any target."
            )

    @property
    def _by_window(self) -> bool:
        return super()._by_window or "mutual_info" in (self.score, self.redundancy)

    def _measures(self) -> Measures:
        n, space = self._space_of_rows()
        beta = math.nan if self.beta is None else self.beta
        target = None
        if self.score == "mutual_info" and isinstance(self._target, Target):
            codes, size = codes_of(self._target, self.n_bins, "frequency")
            target = narrow(codes[None], size), size
        # Before a target varies it has no rank, and tells nothing.
        rank = max(1, space.rank)
        return Measures(
            Relevance(self.score == "f", _NOTHING[self.score], n - len(space.given), rank),
            Trade(-1.0 if self.form == "quotient" else beta),
            self.n_bins if "mutual_info" in (self.score, self.redundancy) else 0,
            target,
            self.redundancy == "mutual_info",
        )

    def _select(self, held: Any, k: int) -> Picks:
        if isinstance(held, StagePool):
            return held.answer() if k == self.k else MRMRPlan(held, k, self._measures()).picks
        measures = self._measures()
        found = held.relevance()
        rel, slack = measures.relevance.of(found), measures.relevance.slack(found)
        return greedy(rel, slack, measures.trade, k, lambda j, _: held.products(j))[0]

    def _plan(self, pool: StagePool, before: MRMRPlan | None, n_proven: int) -> MRMRPlan:  # noqa: ARG002
        return MRMRPlan(pool, self.k, self._measures(), before)

    def _restored_plan(self, pool: StagePool, state: dict[str, Any]) -> MRMRPlan:
        return MRMRPlan(pool, self.k, self._measures(), given=picked(pool, state))

    def _ceiling(self, pool: StagePool, rows: Mapping[str, Floats]) -> Floats:
        if self.form == "quotient" or self.score == "mutual_info":
            return np.full(rows["m2"].size, MOST)
        assert pool.space is not None  # noqa: S101
        found = pool.space.relevance(rows["m2"], rows["cxy"])
        return self._measures().relevance.of(found)
