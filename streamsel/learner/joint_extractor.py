"""Define extractors that keep samples of columns and joint moments of rows."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import numpy as np

from streamsel.held.common import OnRows
from streamsel.held.part import Floats
from streamsel.learner.extractor import Extractor, LinearMap, least_motion, weights_for
from streamsel.learner.jointly import Jointly
from streamsel.ties import most_relevant_first


class JointExtractor(Jointly, Extractor):
    """Base class of extractors whose components depend on the covariances of the variables.

    All tracked variables have loadings, so not all of them can be protected from eviction. An
    evicted variable remains part of the map in use until the next refresh.
    """

    def _turn(self, new: LinearMap, standing: LinearMap | None) -> Floats:
        state = self._held
        if standing is None or not isinstance(state, OnRows):
            return np.eye(new.weights.shape[1])
        index_of = state.slots
        names = [name for name in dict.fromkeys([*new.names, *standing.names]) if name in index_of]
        indices = np.array([index_of[name] for name in names], dtype=np.intp)
        new_weights, weights_in_use = (weights_for(names, part) for part in (new, standing))
        q = new_weights.shape[1]
        covariance = state.among(indices, np.hstack([new_weights, weights_in_use]))
        squares = np.diag(covariance)
        return least_motion(covariance[:q, q:], squares[:q], squares[q:])

    def _protected(self) -> Collection[Hashable]:
        """Return the most relevant variables past their grace period, up to half of `max_features`.

        Otherwise a row with many new variables would evict all others, and the next such row these.
        """
        moments = self._moments
        if moments is None or self.max_features is None:
            return ()
        indices = np.flatnonzero(moments.born + self.grace_period <= moments.rows)
        ranking = most_relevant_first(self._all_relevances(moments.stats(indices)))
        names = moments.names
        return [names[place] for place in indices[ranking[: self.max_features // 2]].tolist()]

    def _expect_held(self, names: Any) -> None:
        if type(names) is not list or len({*names}) < len(names):
            raise ValueError(f"Corrupt model file: names in use must be distinct. Got: {names!r}.")
