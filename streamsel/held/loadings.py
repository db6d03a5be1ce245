"""Loadings of columns that are not kept."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple, Self

import numpy as np

from streamsel.held.part import Floats
from streamsel.held.possible import expect_between, expect_bounded
from streamsel.shapes import Names, expect, expect_shapes


class Loadings(NamedTuple):
    """Loadings that map a row to components: z = (x - means) @ weights.

    Parameters
    ----------
    names, means
        s variables in order of arrival, and the values to subtract, (s,).
    weights
        (s, q).
    deviations
        (s,) standard deviations of the variables.
    """

    names: list[Hashable]
    means: Floats
    weights: Floats
    deviations: Floats

    def expect_possible(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        expect_bounded("loadings", self.means, self.weights)
        expect_between("standard deviations", self.deviations, 0.0, 1e300)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the loadings in a file, if its parts are consistent."""
        expect(state, names=Names())
        s, q = len(state["names"]), np.shape(state["weights"])[-1]
        expect_shapes(state, means=(s,), weights=(s, q), deviations=(s,))
        return cls(*(state[name] for name in cls._fields))
