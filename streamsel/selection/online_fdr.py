"""OnlineFDR: every column tested on arrival, with few false discoveries among those selected."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel.held.decided import Decisions, Offer
from streamsel.held.part import Floats
from streamsel.learner.noise import chance, noise_floor
from streamsel.learner.on_arrival import OnArrival
from streamsel.params import param

# What rounding may take from a relevance.
_CLEARLY = 1e-9


class _Rule(NamedTuple):
    """A rule: when its clock ticks, how fast it ages, and what part of the level it spends.

    Parameters
    ----------
    above, up_to
        The clock ticks at every p-value in (above, up_to].
    share
        What part of the wealth may be spent.
    most
        No test is of a greater level than this.
    """

    above: float
    up_to: float
    share: float
    most: float


_RULES = {
    "lord++": _Rule(-1.0, 1.0, 1.0, 1.0),
    "saffron": _Rule(0.5, 1.0, 0.5, 0.5),
    "addis": _Rule(0.25, 0.5, 0.25, 0.25),
}


class _Tests(NamedTuple):
    """Columns of a chunk: relevances and p-values, NaN while unknown, and the clock before each.

    The clock has an entry more: how it stands after the last.
    """

    relevance: Floats
    p_value: Floats
    clock: Floats


class OnlineFDR(OnArrival):
    r"""Every column tested on arrival, with few false discoveries among those selected.

    SelectKBest with `fdr` waits for the last column, as Benjamini and Hochberg do. Here a column is
    selected or let go when it comes, whatever else will come, and the share of noise among the
    selected is at most `fdr` at any time, in expectation. A column is tested by itself, as
    by SelectKBest: copies of a good one are all good.

    Parameters
    ----------
    fdr
        The share of noise among the selected, in expectation.
    rule
        `"lord++"` spends its level on all tests alike. `"saffron"` spends it on p-values above 1/2
        only, which is more where many columns tell something. `"addis"` spends it on those between
        1/4 and 1/2: it does not mind columns whose p-values are larger than noise has them.
    max_candidates
        Most variables to select; None for any number. Once there are as many nothing more is
        tested, and memory is constant.

    Raises
    ------
    ValueError
        For a parameter out of its range, and where two models that have both learnt columns are to
        be merged: what either decided depends on what came before.

    Notes
    -----
    **The p-value** is that of SelectKBest's F: the chance of noise to be as relevant to the target,
    given covariates.

    **The level.** With $w = \text{fdr}/2$ and a clock that stood at $N_j$ after the $j$-th
    discovery, and stands at $N$, the next column is selected if its p-value is at most

    $$\alpha = s \left(w \gamma_{N+1} + (\text{fdr} - w) \gamma_{N - N_1 + 1} + \text{fdr} \sum_{j
    \geq 2} \gamma_{N - N_j + 1}\right).$$

    lord++: the clock counts the tests, $s = 1$, $\gamma_i \propto \frac{\log \max(i, 2)}{i
    e^{\sqrt{\log i}}}$. saffron: it counts the p-values above $\lambda = 1/2$, $s = 1 - \lambda$.
    addis: those above $\lambda = 1/4$ and not above $\tau = 1/2$, $s = \tau - \lambda$. For both
    $\gamma_i \propto i^{-1.6}$, and no $\alpha$ is above $\lambda$. These are the constants that
    their authors recommend. The rate holds for columns that are independent given the target; a
    column that does not vary is no test.

    **Cost.** A column costs its products with the target; one whose p-value is below the level of
    the last test one $\gamma$ a discovery more.

    **Memory.** $c + 7$ numbers a discovery, and $O(n c)$ for the target.

    **Order.** What is selected depends on the order of the columns: the level falls with every test
    and rises with every discovery, so that the good had better come first.

    **Rows.** By windows: `window_size` rows are gathered, and decided on as columns from the
    beginning. The answer is that of the last full window, and before there is one everything
    passes. Windows know no covariates and no fading.

    **Missing and new features.** A column with a missing value is refused. In a row of a window a
    variable that is absent is 0, one that is NaN or None counts as if it had its mean.

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
    A stream of 5,000 columns, 40 of which tell something of the target:

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

    keeps = Decisions
    _tests_normal_scores = True

    fdr: float = param(params.Real(0.0, open=True, below=1.0), default=0.05, kw_only=False)
    rule: str = param(params.Choice(tuple(_RULES)), default="lord++")

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"fdr": 0.2, "window_size": 20}
        yield {"fdr": 0.3, "rule": "saffron", "window_size": 30, "max_features": 4}
        yield {"fdr": 0.3, "rule": "addis", "window_size": 40}

    def _remembered(self) -> dict[str, float]:
        return {"clock": 0.0}

    def _noted(self) -> tuple[str, ...]:
        return (*super()._noted(), "clock")

    def _decide(self, held: Decisions, offer: Offer) -> None:
        space, rule = held.space, _RULES[self.rule]
        assert space is not None  # noqa: S101
        free = space.effective_rows - len(space.given), space.rank
        if free[0] - 1 <= free[1]:
            # The target explains every column, and no p-value is below 1.
            return
        relevance = space.relevance(*offer.moments)
        if held.scores is not None:
            left = space.left(*offer.moments)
            products = held.scores.products(offer.chunk, offer.places)
            relevance = np.abs(products) / np.sqrt(left)
        # Nearly all columns are no discoveries, and their p-values need not be known.
        ticks = (relevance < _relevance_of(rule.above, *free)) & (
            relevance >= _relevance_of(rule.up_to, *free)
        )
        clock = held.memory["clock"] + np.concatenate([[0.0], np.cumsum(ticks)])
        tests, start = _Tests(relevance, np.full(ticks.size, np.nan), clock), 0
        while start < ticks.size and not held.is_full:
            start = self._decide_some(held, offer, tests, start)
        held.remember(clock=clock[start])

    def _decide_some(self, held: Decisions, offer: Offer, tests: _Tests, start: int) -> int:
        """Decide from a column on, up to the next discovery; return where to go on."""
        assert held.space is not None  # noqa: S101
        free = held.space.effective_rows - len(held.space.given), held.space.rank
        relevance, p_values, clock = tests
        level = self._level(held, clock[start])
        # The level falls until something is discovered.
        bar = noise_floor(*free, 1, level) - _CLEARLY
        promising = start + np.flatnonzero(relevance[start:] >= bar)
        unknown = promising[np.isnan(p_values[promising])]
        p_values[unknown] = chance(relevance[unknown], *free)
        promising = promising[p_values[promising] <= level]
        for i, p_value in zip(promising.tolist(), p_values[promising].tolist(), strict=True):
            if p_value <= self._level(held, clock[i]):
                place = int(offer.places[i])
                m2, cxy = offer.stats.m2[place, None], offer.stats.cxy[place, None]
                score = float(held.space.relevance(m2, cxy)[0])
                held.accept(offer, place, score=score, p_value=p_value, clock=clock[i + 1])
                return i + 1
        return clock.size - 1

    def _level(self, held: Decisions, clock: float) -> float:
        """Return the level of the next test."""
        rule = _RULES[self.rule]
        since = clock - held.noted("clock") + 1.0
        # The first discovery pays less, for the wealth that began is part of the level.
        first = 0.5 * self.fdr
        level = first * self._gamma(np.array([clock + 1.0, *since[:1]])).sum()
        level += self.fdr * self._gamma(since[1:]).sum()
        return min(rule.most, rule.share * float(level))

    def _gamma(self, index: Floats) -> Floats:
        """Return what part of a wealth is spent at the index-th test after it was earned."""
        if self.rule != "lord++":
            return 0.4374901658 * index**-1.6
        logs = np.log(index)
        found: Floats = (
            0.07720838 * np.log(np.maximum(index, 2.0)) / (index * np.exp(np.sqrt(logs)))
        )
        return found


@functools.lru_cache(maxsize=64)
def _relevance_of(p_value: float, n: float, r: int) -> float:
    """Return the relevance of this p-value; what is less relevant has a greater one."""
    if p_value < 0.0:
        return float("inf")
    return noise_floor(n, r, 1, p_value)
