"""Correlations of a pool's variables with a few of them, kept from one plan to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamsel.held.part import Floats, Places

# A matrix product with so many variables takes as long as with three, one after another.
TOGETHER = 32


class Products:
    """Rows of the correlation matrix of a pool's variables, made when they are asked for.

    Parameters
    ----------
    unit
        (p, n) the variables, one a row, centred and of length 1.
    before, origin
        Products to go on from, and (p,) where the variables stand there; -1 for new ones.
    most
        How many rows are taken over from there at most, the latest.
    """

    def __init__(
        self,
        unit: Any,
        before: Products | None = None,
        origin: Places | None = None,
        most: int = 0,
    ) -> None:
        self._unit: Any = unit
        self._rows: Floats = np.empty((0, len(unit)))
        # Place -> row.
        self._row_of: dict[int, int] = {}
        if before is not None and origin is not None:
            self._go_on(unit, before, origin, most)

    def _go_on(self, unit: Any, before: Products, origin: Places, most: int) -> None:
        place = {there: j for j, there in enumerate(origin.tolist()) if there >= 0}
        kept = [(j, row) for j, row in before._row_of.items() if j in place][-most:]
        if not kept:
            return
        mine = [place[j] for j, _ in kept]
        new = np.flatnonzero(origin < 0)
        self._rows = before._rows[[row for _, row in kept]][:, origin]
        self._rows[:, new] = self._between(unit[mine], unit[new])
        self._row_of = {j: row for row, j in enumerate(mine)}

    def of(self, j: int, likely: Callable[[], Places]) -> Floats:
        """Return the (p,) correlations of all with one; what is likely to be asked next, along."""
        if j not in self._row_of:
            assert self._unit is not None  # noqa: S101
            asked = [j, *(i for i in likely().tolist() if i != j and i not in self._row_of)]
            size = len(self._rows)
            rows = self._between(self._unit[asked], self._unit)
            self._rows = np.vstack([self._rows, rows])
            self._row_of |= {i: size + row for row, i in enumerate(asked)}
        row: Floats = self._rows[self._row_of[j]]
        return row

    def _between(self, some: Any, others: Any) -> Floats:
        """Return the (s, b) products of some variables with others."""
        found: Floats = some @ others.T
        return found

    def close(self) -> None:
        """Let the observations go: nothing more is asked that is not known."""
        self._unit = None
