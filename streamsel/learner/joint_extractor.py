"""Extractors that keep observations of columns, and joint moments of rows."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import numpy as np

from streamsel.held.common import Common
from streamsel.held.part import Floats
from streamsel.learner.extractor import Extractor, LinearMap, least_motion, weights_for
from streamsel.learner.jointly import Jointly


class JointExtractor(Jointly, Extractor):
    """An extractor whose components are functions of how the variables vary with one another.

    All variables tracked have loadings, and cannot all be kept when others come. Who is let go
    stays part of what stands until that is renewed.
    """

    def _begin_rows(self) -> None:
        super()._begin_rows()
        # What stood when it was last asked who matters most for it, and who does.
        self._largest: tuple[LinearMap | None, frozenset[Hashable]] = None, frozenset()

    def _turn(self, new: LinearMap, standing: LinearMap | None) -> Floats:
        held = self._held
        if standing is None or not isinstance(held, Common):
            return np.eye(self.n_components)
        slots = held.slots
        names = [name for name in dict.fromkeys([*new.names, *standing.names]) if name in slots]
        places = np.array([slots[name] for name in names], dtype=np.intp)
        length = np.sqrt(held.stats(places).m2)[:, None]
        R = held.products(places)[places]
        mine, theirs = (weights_for(names, part) * length for part in (new, standing))
        variances = (
            np.einsum("ik,ij,jk->k", part, R, part, optimize=True) for part in (mine, theirs)
        )
        return least_motion(mine.T @ R @ theirs, *variances)

    def _protected(self) -> Collection[Hashable]:
        """Return who matters most for what stands: as many as leave half of the room."""
        standing, moments = self._standing, self._moments
        if standing is None or moments is None or self.max_features is None:
            return ()
        if self._largest[0] is not standing:
            slots, names = moments.slots, list(standing.names)
            known = [i for i, name in enumerate(names) if name in slots]
            places = np.array([slots[names[i]] for i in known], dtype=np.intp)
            sizes = np.square(standing.weights[known]).sum(axis=1) * moments.stats(places).m2
            first = np.argsort(-sizes, kind="stable")[: self.max_features // 2]
            self._largest = standing, frozenset(names[known[i]] for i in first.tolist())
        return self._largest[1]

    def _expect_held(self, names: Any) -> None:
        if type(names) is not list or len({*names}) < len(names):
            raise ValueError(f"Expected a list of distinct names to stand. Got: {names!r}.")
