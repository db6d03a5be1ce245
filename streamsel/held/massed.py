"""Cross-moments of variables, some of which represent discarded columns."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import numpy as np

from streamsel.held.beside import Along
from streamsel.held.crossed import Crossed
from streamsel.held.moments import Moments
from streamsel.held.part import Floats
from streamsel.shapes import Array, Names, expect

_DEFAULT_WEIGHT = 1.0


class Massed(Crossed):
    """Cross-moments, and the weights of representatives, which rows do not change.

    Attributes
    ----------
    masses
        Weights from the columns: name -> weight. A variable that returns has its weight again.
    """

    changing = (*Crossed.changing, "masses")

    def __init__(self, fading_factor: float) -> None:
        super().__init__(fading_factor)
        self.masses: dict[Hashable, float] = {}

    def mass_of(self, names: list[Hashable]) -> Floats:
        """Return the weights of variables; 1 for a variable that arrived with a row."""
        return np.array([self.masses.get(name, _DEFAULT_WEIGHT) for name in names])

    def merged(self, theirs: Self, along: Along, moments: Moments, others: Moments) -> None:
        """Continue with the rows of both models; a variable keeps the larger of its weights."""
        for name, mass in theirs.masses.items():
            self.masses[name] = max(mass, self.masses.get(name, _DEFAULT_WEIGHT))
        super().merged(theirs, along, moments, others)

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        masses = np.array(list(self.masses.values()), dtype=np.float64)
        return super().to_state() | {"massed": list(self.masses), "masses": masses}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        super().set_state(state)
        expect(state, massed=Names())
        expect(state, masses=Array((len(state["massed"]),), least=0.99, below=2.0**53))
        self.masses = dict(zip(state["massed"], state["masses"].tolist(), strict=True))
