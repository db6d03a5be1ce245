"""Extractors whose components are functions of the inner products of the observations."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamsel import params
from streamsel.columns import Stats
from streamsel.extraction._weighted import signs
from streamsel.held.common import OnRows
from streamsel.held.foremost import Foremost
from streamsel.held.inner import About, Inner, left_of, of_variables
from streamsel.held.part import Floats, Held, Places
from streamsel.held.pool import Pool
from streamsel.learner.cached import until_learnt
from streamsel.learner.extractor import LinearMap
from streamsel.learner.joint_extractor import JointExtractor
from streamsel.params import param


class Solution(NamedTuple):
    """Components, signed: the largest loading of each is positive.

    Parameters
    ----------
    scores, duals
        (s, k) scores of the observations, and α: loadings are (Dx̃)ᵀα.
    relevance
        (k,) of each.
    places, scale
        (m,) indices of the variables with loadings, and their factors D.
    loadings
        (m, k) their exact loadings.
    trace, n, weight
        As in `Inner`.
    probe, of_probe
        (s, j) random vectors, and their products with K.
    """

    scores: Floats
    duals: Floats
    relevance: Floats
    places: Places
    scale: Floats
    loadings: Floats
    trace: float
    n: float
    weight: float
    probe: Floats
    of_probe: Floats


class OfInner(JointExtractor, Foremost):
    """An extractor of linear components, given by `_duals` as a function of inner products."""

    _hooks = ("_linear_map", "_duals")
    # Whether a pool ranks columns by relevance, and not by variance.
    _by_relevance: ClassVar[bool] = False

    scale: bool = param(
        params.Flag(),
        default=False,
        doc="""
        Whether all columns are standardised to variance 1: for columns whose units are not
        comparable.
        """,
    )

    # Implemented by methods

    @abc.abstractmethod
    def _duals(self, inner: Inner, q: int) -> Floats:
        """Return α (s, k) of the first k components, at most q: their scores are Kα."""

    def _places(self, held: Any) -> Places:
        """Return the indices of the variables that components may be made of."""
        return np.flatnonzero(left_of(held))

    # Ranking of a pool

    def _bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        if self._by_relevance:
            assert pool.space is not None  # noqa: S101
            return np.maximum(pool.space.relevance(rows["m2"], rows["cxy"]), 0.0)
        return np.ones(rows["m2"].size) if self.scale else rows["m2"]

    def _relevance_at(self, bound: float) -> float:
        return bound if self._by_relevance else super()._relevance_at(bound)

    def _all_relevances(self, stats: Stats) -> Floats:
        # On rows, the vocabulary evicts by the same ranking.
        return super()._all_relevances(stats) if self._by_relevance else stats.m2

    # Components

    @until_learnt
    def _solution(self) -> Solution | None:
        """Return the components; None if there are no variables for them."""
        held = self._held
        if held is None or not held.names:
            return None
        if self.supervised and (held.space is None or not held.space.rank):
            return None
        indices = self._places(held)
        if not indices.size:
            return None
        return self._solved(held, indices)

    def _solved(self, held: Any, places: Places) -> Solution:
        weight = self._weight_of(held)
        scale = self._scale_of(held, places, weight)
        inner, weighted = of_variables(held, places, scale, self._about(held, weight))
        return self._components_of(inner, weighted, places, scale)

    def _components_of(
        self, inner: Inner, weighted: Floats, places: Places, scale: Floats, probes: int = 0
    ) -> Solution:
        alpha = self._duals(inner, inner.size if self._n_asked is None else self._n_asked)
        loadings = weighted @ alpha
        up = signs(loadings)
        scores = inner.times(alpha) * up
        length = np.linalg.norm(scores, axis=0)
        if self.supervised:
            along = np.linalg.norm(inner.U.T @ scores, axis=0)
            relevance = np.minimum(along / np.where(length > 0.0, length, 1.0), 1.0)
        else:
            relevance = np.ones(length.size)
        probe = np.random.default_rng(0).choice([-1.0, 1.0], size=(inner.size, probes))
        return Solution(
            scores=scores,
            duals=alpha * up,
            relevance=relevance,
            places=places,
            scale=scale,
            loadings=loadings * up,
            trace=inner.trace,
            n=inner.n,
            weight=inner.weight,
            probe=probe,
            of_probe=inner.times(probe),
        )

    def _weight_of(self, held: Held) -> float:
        """Return the sum of squares of a variable of variance 1."""
        n = float(held.n)
        equal = held.effective_rows if isinstance(held, OnRows) else n
        return max(n - n / equal, 0.0) if equal else 0.0

    def _about(self, held: Held, weight: float) -> About:
        n = held.effective_rows if isinstance(held, OnRows) else float(held.n)
        space = held.space
        n_covariates = 0 if space is None else len(space.given)
        cyy = np.zeros((0, 0)) if space is None else space.own_products
        return About(n - n_covariates, float(held.n), weight, 0, 0.0, cyy)

    def _scale_of(self, held: Held, places: Places, weight: float) -> Floats:
        """Return the factors of centred variables, (m,)."""
        if not self.scale:
            return np.ones(places.size)
        scale: Floats = np.sqrt(weight / left_of(held, places))
        return scale

    def _loadings_of(self, found: Solution) -> Floats:
        """Return the loadings of the variables in the state, (m, k), for transforms."""
        return found.loadings

    def _linear_map(self, names: Iterable[Hashable] = ()) -> LinearMap:
        del names  # the map contains all variables with loadings
        held, found = self._held, self._solution()
        if held is None or found is None:
            return LinearMap([], np.zeros(0), np.zeros((0, self._n_asked or 1)))
        weights = found.scale[:, None] * self._loadings_of(found)
        mean = held.stats(found.places).mean
        names = [held.names[place] for place in found.places]
        return LinearMap(names, mean, self._padded(weights))

    def _padded(self, weights: Floats) -> Floats:
        """Return weights (m, k) with zeros for the components that do not exist."""
        k = weights.shape[1]
        width = max(1, k) if self._n_asked is None else self._n_asked
        return np.pad(weights, ((0, 0), (0, width - k)))

    # Results

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component on the rows learnt: name -> relevance.

        Without a target it is 1.
        """
        found = self._solution()
        if found is None:
            return {}
        names = self._names_of(found.relevance.size)
        return dict(zip(names, found.relevance.tolist(), strict=True))

    def _embedding(self) -> Floats:
        found = self._solution()
        return np.zeros((self.n_rows, 0)) if found is None else found.scores.copy()
