"""Minimal learners that are not registered, as a contributor would write them.

They are in the registry while the conformance suite runs; no test mentions them by name.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsel import params
from streamsel._utils.numeric import argsort_by_relevance
from streamsel.base.extractor import Extractor
from streamsel.base.joint_rows import max_joint_features
from streamsel.base.linear_map import LinearMap
from streamsel.base.river import Supervised, Unsupervised
from streamsel.base.selector import Selector
from streamsel.base.windows import Window
from streamsel.params import param
from streamsel.registry import Entry
from streamsel.state.base import VariableState
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.pool.pool import Picks, Pool, TopRanked

ENTRIES = (
    Entry("Centroid", __name__, "extractor", "the sum of the standardised variables"),
    Entry("LargestVariance", __name__, "selector", "the most variable"),
    Entry("Apart", __name__, "selector", "relevant, and unlike the others"),
    Entry("ApartJointly", __name__, "selector", "the same, and on rows by joint moments"),
)


class Centroid(Extractor, Unsupervised):
    """One component, the sum of the standardised variables; others are 0.

    Examples
    --------
    >>> model = Centroid(1)
    >>> model.learn_columns(np.array([[1.0, 8.0], [3.0, 4.0]]))
    >>> model.transform_one({0: 3.0, 1: 8.0})
    {'centroid0': 2.0}
    """

    _column_state_type = Pool

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 1}
        yield {"n_components": 1, "fading_factor": 0.05}

    def _new_columns(self, n: int) -> Pool:
        return Pool(None, n, None)

    @property
    def relevance(self) -> dict[Any, float]:
        return {} if self._state is None else dict.fromkeys(self.components, 1.0)

    @property
    def loadings(self) -> dict[Any, dict[str, float]]:
        return self._weights_of(self._map())

    def _component_map(self) -> LinearMap:
        state = self._state
        if state is None:
            return LinearMap.empty(self.n_components)
        indices = np.flatnonzero(state.stats().m2)
        stats = state.stats(indices)
        weights = np.zeros((len(indices), self.n_components))
        weights[:, 0] = np.sqrt(state.n / stats.m2)
        return LinearMap([state.names[j] for j in indices], stats.mean, weights)


class LargestVariance(Selector[VariableState], Unsupervised):
    """The k variables of the largest variance.

    Examples
    --------
    >>> model = LargestVariance(1)
    >>> model.learn_columns(np.array([[1.0, 8.0], [3.0, 4.0]]))
    >>> model.selected
    [1]
    """

    k: int = param(params.IntRule(1), default=10, kw_only=False)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 2}
        yield {"k": 2, "fading_factor": 0.05}
        yield {"k": 2, "max_features": 4, "grace_period": 20}

    def _ranking(self) -> TopRanked:
        return TopRanked(lambda pool, rows: rows["m2"] / pool.n)

    def _select(self, state: VariableState, k: int) -> Picks:
        variance = state.stats().m2 / state.n
        order = np.argsort(-variance, kind="stable")
        order = order[variance[order] > 0.0][:k]
        return Picks(order.tolist(), variance[order].tolist(), [0] * len(order))


class Apart(Selector[Pool], Supervised):
    """Greedy selection by relevance minus the mean absolute correlation with earlier picks.

    Examples
    --------
    >>> model = Apart(2)
    >>> model.learn_target([1.0, 2.0, 3.0, 4.0])
    >>> model.learn_columns(np.array([[1, 1, 0], [1, 1, 2], [3, 3, 1], [4, 5, 2]]))
    >>> model.selected
    [0, 2]
    """

    _needs_samples = True
    _row_state_type = Window

    k: int = param(params.IntRule(1), default=10, kw_only=False)
    window_size: int = param(params.IntRule(2), default=100)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 2, "window_size": 30}
        yield {"k": 3, "window_size": 20, "max_features": 4}

    def _select(self, state: Pool, k: int) -> Picks:
        return apart(state, k)


class ApartJointly(Selector[Pool], Supervised):
    """Selection as in `Apart`, on rows by joint moments.

    Examples
    --------
    >>> model = ApartJointly(2)
    >>> for x, y in [((1, 1, 0), 1.0), ((1, 1, 2), 2.0), ((3, 3, 1), 3.0), ((4, 5, 2), 4.0)]:
    ...     model.learn_one(dict(enumerate(x)), y)
    >>> model.selected
    [0, 2]
    """

    _needs_samples = True

    _row_state_type = CrossMoments

    k: int = param(params.IntRule(1), default=10, kw_only=False)
    max_features: int | None = max_joint_features()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 2}
        yield {"k": 2, "fading_factor": 0.05}
        yield {"k": 2, "max_features": 4, "grace_period": 20}

    def _select(self, state: Pool, k: int) -> Picks:
        return apart(state, k)


def apart(state: Pool, k: int) -> Picks:
    """Return k of the variables, picked greedily."""
    relevance, redundancy = state.relevance(), np.zeros(len(state.names))
    picks = Picks([], [], [])
    while len(picks.indices) < min(k, len(state.names)):
        score = relevance - redundancy / max(1, len(picks.indices))
        score[picks.indices] = -np.inf
        j = int(argsort_by_relevance(score)[0])
        if score[j] == -np.inf:
            break
        for part, value in zip(picks, (j, float(score[j]), 0), strict=True):
            part.append(value)
        redundancy += np.abs(state.products(j))
    return picks
