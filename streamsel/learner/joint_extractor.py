"""Extractors that keep observations of columns, and joint moments of rows."""

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
    """An extractor whose components are functions of how the variables vary with one another.

    All variables tracked have loadings, and cannot all be kept when others come. Who is let go
    stays part of what stands until that is renewed.
    """

    def _turn(self, new: LinearMap, standing: LinearMap | None) -> Floats:
        held = self._held
        if standing is None or not isinstance(held, OnRows):
            return np.eye(new.weights.shape[1])
        slots = held.slots
        names = [name for name in dict.fromkeys([*new.names, *standing.names]) if name in slots]
        places = np.array([slots[name] for name in names], dtype=np.intp)
        mine, theirs = (weights_for(names, part) for part in (new, standing))
        q = mine.shape[1]
        among = held.among(places, np.hstack([mine, theirs]))
        squares = np.diag(among)
        return least_motion(among[:q, q:], squares[:q], squares[q:])

    def _protected(self) -> Collection[Hashable]:
        """Return the most relevant of those who are no newcomers: as many as leave half the room.

        A row of many newcomers would otherwise take the room of all, and the next that of these.
        """
        moments = self._moments
        if moments is None or self.max_features is None:
            return ()
        places = np.flatnonzero(moments.born + self.grace_period <= moments.rows)
        first = most_relevant_first(self._all_relevances(moments.stats(places)))
        names = moments.names
        return [names[place] for place in places[first[: self.max_features // 2]].tolist()]

    def _expect_held(self, names: Any) -> None:
        if type(names) is not list or len({*names}) < len(names):
            raise ValueError(f"Expected a list of distinct names to stand. Got: {names!r}.")
