"""OnlineFDR: online false discovery rate control by LORD++, SAFFRON and ADDIS."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from streamsel import params
from streamsel.base.null import marginal_p_values, noise_floor
from streamsel.base.streaming_selector import StreamingSelector
from streamsel.params import param
from streamsel.selection._independence import degrees_of_freedom
from streamsel.state.base import Floats
from streamsel.state.pool.accepted import AcceptedColumns, ColumnBatch
from streamsel.targets.space import TargetSpace

# Upper bound of the rounding error of a relevance.
_ROUNDING = 1e-9


class _Rule(NamedTuple):
    """Parameters of an online FDR procedure.

    Parameters
    ----------
    above, up_to
        The clock counts the p-values in (above, up_to].
    factor
        Factor of the test level.
    max_level
        Upper bound of the test level.
    """

    above: float
    up_to: float
    factor: float
    max_level: float


_RULES = {
    "lord++": _Rule(-1.0, 1.0, 1.0, 1.0),
    "saffron": _Rule(0.5, 1.0, 0.5, 0.5),
    "addis": _Rule(0.25, 0.5, 0.25, 0.25),
}


class _Tests(NamedTuple):
    """Relevances and p-values of a chunk's columns, NaN while unknown, and the clock before each.

    The clock has one more entry: its value after the last.
    """

    relevance: Floats
    p_value: Floats
    clock: Floats


class OnlineFDR(StreamingSelector):
    r"""Online FDR control: test each column on arrival (LORD++, SAFFRON, ADDIS).

    `SelectKBest` with `fdr` decides after the last column, by the Benjamini-Hochberg procedure.
    Here each column is selected or discarded for good on arrival, and the expected share of false
    discoveries among the selected is at most `fdr` at any time. Columns are tested one by one, as
    by SelectKBest, so redundant copies of a good column are all selected.

    Parameters
    ----------
    fdr
        Expected share of false discoveries among the selected variables.
    rule
        Procedure: `"lord++"` spends its level on all tests equally. `"saffron"` spends it on
        p-values above 1/2 only, which is more powerful if many columns are informative. `"addis"`
        spends it on those between 1/4 and 1/2, and so loses no power to conservative p-values.
    max_candidates
        Maximum number of variables to select; None for no limit. Once it is reached no column is
        tested, and memory is constant.

    Raises
    ------
    ValueError
        For a parameter out of its range, and for merging two models that have both learnt columns:
        each decision depends on the columns before.

    Notes
    -----
    **The p-value** is that of SelectKBest's F statistic, conditional on covariates; for a numeric
    target with an excess kurtosis above 1 and no relatedness, that of the F statistic of its normal
    scores.

    **The level.** With $w = \text{fdr}/2$, $N$ the current value of a clock and $N_j$ its value
    after the $j$-th discovery, the next column is selected if its p-value is at most

    $$\alpha = s \left(w \gamma_{N+1} + (\text{fdr} - w) \gamma_{N - N_1 + 1} + \text{fdr} \sum_{j
    \geq 2} \gamma_{N - N_j + 1}\right).$$

    With `"lord++"` the clock counts the tests, $s = 1$ and $\gamma_i \propto \frac{\log \max(i,
    2)}{i e^{\sqrt{\log i}}}$. With `"saffron"` it counts the p-values above $\lambda = 1/2$, and
    $s = 1 - \lambda$. With `"addis"` it counts those above $\lambda = 1/4$ up to $\tau = 1/2$, and
    $s = \tau - \lambda$. For the last two $\gamma_i \propto i^{-1.6}$, and $\alpha$ is at most
    $\lambda$. These constants are recommended by their authors. The bound holds for columns that
    are independent given the target; a constant column is not tested.

    **Cost.** A column costs its products with the target. If its p-value is below the level of the
    last test, it also costs one $\gamma$ per discovery.

    **Memory.** $c + 7$ numbers per discovery, and $O(n c)$ for the target.

    **Order.** The selection depends on the order of the columns: the level falls with every test
    and rises with every discovery, so promising columns should come first.

    **Rows.** `window_size` rows are buffered; then their columns are tested from the beginning. The
    result is that of the last full window; before the first, all variables pass. Windows support
    neither covariates nor fading.

    **Missing and new features.** A column with a missing value is refused. In a row of a window an
    absent variable is 0, and NaN or None counts as the variable's mean.

    References
    ----------
    [^1]: Ramdas, A., Yang, F., Wainwright, M. J. and Jordan, M. I. (2017). Online control of the
    false discovery rate with decaying memory. Advances in Neural Information Processing Systems 30
    (LORD++).

    [^2]: Ramdas, A., Zrnic, T., Wainwright, M. J. and Jordan, M. I. (2018). SAFFRON: an adaptive
    algorithm for online control of the false discovery rate. Proceedings of Machine Learning
    Research 80, 4286-4294.

    [^3]: Tian, J. and Ramdas, A. (2019). ADDIS: an adaptive discarding algorithm for online FDR
    control with conservative nulls. Advances in Neural Information Processing Systems 32.

    Examples
    --------
    A stream of 5,000 columns; 40 of them depend on the target:

    >>> import numpy as np
    >>> from streamsel import OnlineFDR

    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=300)
    >>> X = rng.normal(size=(300, 5000))
    >>> X[:, ::125] += 0.5 * y[:, None]

    >>> model = OnlineFDR(fdr=0.1)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> len(model.selected), sum(j % 125 > 0 for j in model.selected)
    (42, 2)
    """

    _needs_samples = False
    _is_univariate = True
    _tests_normal_scores = True

    fdr: float = param(params.FloatRule(0.0, open=True, below=1.0), default=0.05, kw_only=False)
    rule: str = param(params.ChoiceRule(tuple(_RULES)), default="lord++")

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"fdr": 0.2, "window_size": 20}
        yield {"fdr": 0.3, "rule": "saffron", "window_size": 30, "max_features": 4}
        yield {"fdr": 0.3, "rule": "addis", "window_size": 40}

    def _initial_memory(self) -> dict[str, float]:
        return {"clock": 0.0}

    def _extra_fields(self) -> tuple[str, ...]:
        return (*super()._extra_fields(), "clock")

    def _policy(self) -> OnlineFDRPolicy:
        return OnlineFDRPolicy(self.fdr, self.rule)

    def _level_left(self) -> float:
        state = cast("AcceptedColumns | None", self._columns)
        if state is None:
            return 1.0
        level = self._policy().level(state, state.memory["clock"])
        return 0.0 if state.is_full else level / self.fdr


class OnlineFDRPolicy(NamedTuple):
    """Decisions of online FDR control on arrival; the parameters are those of OnlineFDR."""

    fdr: float
    rule: str

    def rejection_threshold(self, space: TargetSpace) -> float:  # noqa: ARG002
        """Return -inf: every test changes the clock."""
        return -math.inf

    def accept(self, state: AcceptedColumns, batch: ColumnBatch) -> None:
        """Accept the columns whose p-value is at most the level of their test."""
        rule, dof = _RULES[self.rule], degrees_of_freedom(batch.space)
        if dof[0] - 1 <= dof[1]:
            # Too few rows: the target explains every column in full, and every p-value is 1.
            return
        relevance, scores = batch.relevance, state.pool.normal_scores
        if scores is not None:
            products = scores.products(batch.chunk, batch.indices)
            relevance = np.abs(products) / np.sqrt(batch.space.adjusted_squares(*batch.moments))
        # Relevance thresholds avoid computing the p-values of nearly all columns.
        ticks = (relevance < _critical_relevance(rule.above, *dof)) & (
            relevance >= _critical_relevance(rule.up_to, *dof)
        )
        clock = state.memory["clock"] + np.concatenate([[0.0], np.cumsum(ticks)])
        tests, start = _Tests(relevance, np.full(ticks.size, np.nan), clock), 0
        while start < ticks.size and not state.is_full:
            start = self._decide_until_selected(state, batch, tests, start)
        state.remember(clock=clock[start])

    def _decide_until_selected(
        self, state: AcceptedColumns, batch: ColumnBatch, tests: _Tests, start: int
    ) -> int:
        """Decide on columns from `start` up to the next discovery; return the index after it."""
        dof = degrees_of_freedom(batch.space)
        relevance, p_values, clock = tests
        level = self.level(state, clock[start])
        # The level only falls until the next discovery, so the first one bounds all.
        threshold = noise_floor(*dof, 1, level) - _ROUNDING
        promising = start + np.flatnonzero(relevance[start:] >= threshold)
        untested = promising[np.isnan(p_values[promising])]
        p_values[untested] = marginal_p_values(relevance[untested], *dof)
        promising = promising[p_values[promising] <= level]
        for i, p_value in zip(promising.tolist(), p_values[promising].tolist(), strict=True):
            if p_value <= self.level(state, clock[i]):
                index = int(batch.indices[i])
                m2, cxy = batch.stats.m2[index, None], batch.stats.cxy[index, None]
                score = float(batch.space.relevance(m2, cxy)[0])
                state.accept(batch, index, score=score, p_value=p_value, clock=clock[i + 1])
                return i + 1
        return clock.size - 1

    def level(self, state: AcceptedColumns, clock: float) -> float:
        """Return the level of a test at this value of the clock."""
        rule = _RULES[self.rule]
        since = clock - state.extra_field("clock") + 1.0
        # The first discovery earns less, because the initial wealth is part of the level.
        first = 0.5 * self.fdr
        level = first * self._gamma(np.array([clock + 1.0, *since[:1]])).sum()
        level += self.fdr * self._gamma(since[1:]).sum()
        return min(rule.max_level, rule.factor * float(level))

    def _gamma(self, index: Floats) -> Floats:
        """Return the share of a wealth spent at the index-th test after it was earned."""
        if self.rule != "lord++":
            return 0.4374901658 * index**-1.6
        logs = np.log(index)
        gammas: Floats = (
            0.07720838 * np.log(np.maximum(index, 2.0)) / (index * np.exp(np.sqrt(logs)))
        )
        return gammas


@functools.lru_cache(maxsize=64)
def _critical_relevance(p_value: float, n: float, r: int) -> float:
    """Return the relevance with this p-value; inf for a negative one."""
    if p_value < 0.0:
        return float("inf")
    return noise_floor(n, r, 1, p_value)
