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

    All variables tracked have loadings, so none is protected: one that is let go stays part of
    what stands until that is renewed.
    """

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
        return ()

    def _expect_held(self, names: Any) -> None:
        if type(names) is not list or len({*names}) < len(names):
            raise ValueError(f"Expected a list of distinct names to stand. Got: {names!r}.")
