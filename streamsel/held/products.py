"""Rows of a pool's correlation matrix, cached from one candidate solution to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamsel.held.part import Floats, Places

# A matrix product with this many variables takes as long as three single ones.
TOGETHER = 32


class Products:
    """Cache of rows of the correlation matrix of a pool's variables, computed on request.

    Parameters
    ----------
    unit
        (p, n) the variables, one per row, centred and of length 1.
    before, origin
        A cache to take rows from, and (p,) the index of each variable there; -1 for new ones.
    most
        Largest number of rows to take over, the latest first.
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
        # Index of a variable -> row.
        self._row_of: dict[int, int] = {}
        if before is not None and origin is not None:
            self._go_on(unit, before, origin, most)

    def _go_on(self, unit: Any, before: Products, origin: Places, most: int) -> None:
        index_of = {previous: j for j, previous in enumerate(origin.tolist()) if previous >= 0}
        kept = [(j, row) for j, row in before._row_of.items() if j in index_of][-most:]
        if not kept:
            return
        indices = [index_of[j] for j, _ in kept]
        new = np.flatnonzero(origin < 0)
        self._rows = before._rows[[row for _, row in kept]][:, origin]
        self._rows[:, new] = self._between(unit[indices], unit[new])
        self._row_of = {j: row for row, j in enumerate(indices)}

    def of(self, j: int, likely: Callable[[], Places]) -> Floats:
        """Return the (p,) correlations with j; those with `likely` ones are computed along."""
        if j not in self._row_of:
            assert self._unit is not None  # noqa: S101
            wanted = [j, *(i for i in likely().tolist() if i != j and i not in self._row_of)]
            size = len(self._rows)
            rows = self._between(self._unit[wanted], self._unit)
            self._rows = np.vstack([self._rows, rows])
            self._row_of |= {i: size + row for row, i in enumerate(wanted)}
        row: Floats = self._rows[self._row_of[j]]
        return row

    def _between(self, some: Any, right: Any) -> Floats:
        products: Floats = some @ right.T
        return products

    def close(self) -> None:
        """Release the observations; only cached rows are available afterwards."""
        self._unit = None
