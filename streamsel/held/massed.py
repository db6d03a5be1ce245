"""Joint moments of variables, some of which stand for columns that were let go."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import numpy as np

from streamsel.held.beside import Along
from streamsel.held.crossed import Crossed
from streamsel.held.moments import Moments
from streamsel.held.part import Floats
from streamsel.shapes import Array, Names, expect

_OWN = 1.0


class Massed(Crossed):
    """Joint moments, and the masses that variables had as columns: on rows these do not change.

    Attributes
    ----------
    masses
        Of the columns that rows went on from: name -> mass. Who comes back has it again.
    """

    changing = (*Crossed.changing, "masses")

    def __init__(self, fading_factor: float) -> None:
        super().__init__(fading_factor)
        self.masses: dict[Hashable, float] = {}

    def mass_of(self, names: list[Hashable]) -> Floats:
        """Return the masses of variables; one that came with a row stands for itself."""
        return np.array([self.masses.get(name, _OWN) for name in names])

    def merged(self, theirs: Self, along: Along, moments: Moments, others: Moments) -> None:
        """Go on with the rows of both; who had a mass in either keeps the larger."""
        for name, mass in theirs.masses.items():
            self.masses[name] = max(mass, self.masses.get(name, _OWN))
        super().merged(theirs, along, moments, others)

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        masses = np.array(list(self.masses.values()), dtype=np.float64)
        return super().to_state() | {"massed": list(self.masses), "masses": masses}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        super().set_state(state)
        expect(state, massed=Names())
        expect(state, masses=Array((len(state["massed"]),), least=0.99, below=2.0**53))
        self.masses = dict(zip(state["massed"], state["masses"].tolist(), strict=True))
