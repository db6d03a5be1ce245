"""OSFS: online streaming feature selection by conditional-independence tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel._kernels.independence import update_kept
from streamsel.base.streaming_selector import StreamingSelector
from streamsel.params import param
from streamsel.selection._independence import (
    critical_values,
    degrees_of_freedom,
    independence_p_value,
    min_relevance,
)
from streamsel.state.base import Floats
from streamsel.state.pool.accepted import AcceptedColumns, ColumnBatch
from streamsel.targets.space import TargetSpace


class OSFS(StreamingSelector):
    r"""Online streaming feature selection by conditional-independence tests (OSFS).

    A new variable is selected if it depends on the target, marginally and conditional on every
    small set of selected variables. Selected variables are tested again as others are selected, and
    discarded once some set makes them independent of the target. In linear systems the result
    approximates the target's Markov blanket: its causes, its effects, and the other causes of its
    effects.

    Parameters
    ----------
    alpha
        Level of every single test: the probability that an independent variable passes it.
    max_conditioning_set
        Maximum number of variables in a conditioning set.
    fast
        True (Fast-OSFS) tests the new variable first, and the selected ones given it only if it
        passes. False (OSFS) tests the selected ones first: a new variable can then evict redundant
        ones even if it is rejected itself.

    Attributes
    ----------
    scores, p_values
        Relevance of each selected variable, and its marginal p-value: that of its first test, with
        an empty conditioning set.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **The test** of one numeric target or two classes is Fisher's: for the partial correlation
    $\rho$ given $s$ variables, $\operatorname{atanh}(\rho) \sqrt{n - s - 3}$ is standard normal
    under independence. Several target columns or classes are tested jointly, by the F test of the
    share of the variable they explain beyond the $s$ given. A variable with a residual below 1e-10
    given a set counts as independent. Sets too large for the observations are not tested.

    **Noise.** Each independent variable passes the first test with probability `alpha`, and later
    tests reject most of those that pass. With $n = 500$, about 10 of 5,000 noise columns are
    selected (9 with `fast=False`); `SAOLA` selects about 40.

    **Order** matters: a rejected variable is not tested again, so a variable that is informative
    only together with a later one is missed.

    **Cost.** A column costs its products with the target, by which nearly all are rejected. Each of
    the others costs its products with the $h$ tracked variables, and tests given $O(h^d)$ sets of
    up to $d$ = `max_conditioning_set` of them, about ten numbers each for any number of classes. If
    it is selected, testing the tracked variables again costs as much in total.

    **Memory.** $O(n)$ for each tracked variable, and $h^2$.

    **Rows** are buffered in windows; each is learnt as columns, in the order of names. The result
    is that of the last full window; before the first, all variables pass.

    **Missing and new features.** A column with a missing value is refused. In a row an absent
    variable is 0, and NaN or None counts as the mean of the window.

    References
    ----------
    [^1]: Wu, X., Yu, K., Ding, W., Wang, H. and Zhu, X. (2013). Online feature selection with
    streaming features. IEEE Transactions on Pattern Analysis and Machine Intelligence 35,
    1178-1192.

    Examples
    --------
    In a causal chain, the first variable is independent of the last given the middle one:

    >>> import numpy as np
    >>> from streamsel import OSFS

    >>> rng = np.random.default_rng(0)
    >>> cause = rng.normal(size=500)
    >>> middle = cause + rng.normal(size=500)
    >>> y = middle + rng.normal(size=500)

    >>> model = OSFS()
    >>> model.learn_target(y)
    >>> model.learn_column("cause", cause)
    >>> model.selected
    ['cause']
    >>> model.learn_column("middle", middle)
    >>> model.learn_column("copy", -middle)
    >>> model.selected
    ['middle']

    Two of a thousand variables are selected; each explains a part of the target:

    >>> X = rng.normal(size=(500, 1000))
    >>> y = X[:, 300] + X[:, 700] + rng.normal(size=500)
    >>> model = OSFS(alpha=0.001)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> model.selected
    [300, 700]
    """

    alpha: float = param(params.FloatRule(0.0, open=True, below=1.0), default=0.01, kw_only=False)
    max_conditioning_set: int = param(params.IntRule(1), default=3)
    fast: bool = param(params.FlagRule(), default=True)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"window_size": 20}
        yield {
            "alpha": 0.1,
            "max_conditioning_set": 2,
            "fast": False,
            "window_size": 30,
            "max_features": 4,
        }

    def _policy(self) -> OSFSPolicy:
        return OSFSPolicy(self.alpha, self.max_conditioning_set, self.fast)


class OSFSPolicy(NamedTuple):
    """Decisions of OSFS on arrival; the parameters are those of OSFS."""

    alpha: float
    max_conditioning_set: int
    fast: bool

    def _critical_values(self, space: TargetSpace) -> Floats:
        return critical_values(*degrees_of_freedom(space), self.max_conditioning_set, self.alpha)

    def rejection_threshold(self, space: TargetSpace) -> float:
        """Return the relevance below which a column is rejected without any other effect."""
        return min_relevance(self._critical_values(space))

    def accept(self, state: AcceptedColumns, batch: ColumnBatch) -> None:
        """Accept columns that depend on the target given any set of the accepted ones."""
        dof, critical = degrees_of_freedom(batch.space), self._critical_values(batch.space)
        m2, cxy = batch.moments
        relevance = batch.relevance
        for i in np.flatnonzero(relevance > min_relevance(critical)):
            if state.is_full:
                return
            index = batch.indices[i]
            x, g = (
                state.units(batch, index[None])[0],
                batch.space.coordinates(m2[i, None], cxy[i, None]),
            )
            C, G, M = _with_candidate(state, x, g[0])
            is_kept = np.empty(len(C), dtype=np.bool_)
            update_kept(C, G, M, critical, self.fast, is_kept)
            if is_kept[-1]:
                score = float(relevance[i])
                p_value = independence_p_value(score, *dof)
                state.accept(batch, int(index), score=score, p_value=p_value)
            if not is_kept[:-1].all():
                state.drop(np.flatnonzero(~is_kept[:-1]))
            pairs = np.ix_(is_kept, is_kept)
            state.derived = C[pairs], G[is_kept], M[pairs]


def _with_candidate(state: AcceptedColumns, x: Floats, g: Floats) -> tuple[Floats, Floats, Floats]:
    """Return correlations of the tracked variables and, last, of x of target coordinates g.

    Returns
    -------
    The correlations C, the target coordinates G, and C - G Gᵀ, as the compiled tests take them.
    """
    unit = state.pool.table["unit"]
    if state.derived is None:
        C, G = unit @ unit.T, state.coordinates()
        state.derived = C, G, C - G @ G.T
    before = state.derived
    h, r = before[1].shape
    C, G, M = np.ones((h + 1, h + 1)), np.empty((h + 1, r)), np.empty((h + 1, h + 1))
    C[:h, :h], G[:h], M[:h, :h] = before
    C[h, :h] = C[:h, h] = unit @ x
    G[h] = g
    M[h] = M[:, h] = C[h] - G @ g
    return C, G, M
