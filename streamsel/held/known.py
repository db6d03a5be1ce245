"""The columns of a pool, as they are known again when the source is read again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Self

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.part import Floats, Places
from streamsel.held.plan import Bools
from streamsel.held.table import Table


class Known(NamedTuple):
    """Columns that are held.

    Parameters
    ----------
    names, arrivals, m2
        Of each: its name, how many came before it, its sum of squares.
    """

    names: Sequence[Hashable]
    arrivals: Places
    m2: Floats

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return those of a pool's table."""
        return cls(table.names, table["arrival"].astype(np.intp), table["m2"])

    def among(self, arrivals: Places) -> Bools:
        """Return which of some columns, by their arrival, ascending, are held."""
        held = np.zeros(arrivals.size, dtype=np.bool_)
        if arrivals.size:
            mine = self.arrivals
            mine = mine[(mine >= arrivals[0]) & (mine <= arrivals[-1])]
            at = np.searchsorted(arrivals, mine)
            held[at[arrivals[at] == mine]] = True
        return held

    def expect(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Refuse columns that are not those of the first reading, as far as they are held."""
        arrival = self.arrivals - first_arrival
        mine = np.flatnonzero((arrival >= 0) & (arrival < stats.m2.size))
        at = arrival[mine]
        for place, j in zip(at.tolist(), mine.tolist(), strict=True):
            if chunk.names[place] != self.names[j]:
                raise unlike_before(f"{chunk.names[place]!r} in the place of {self.names[j]!r}")
        same = np.isclose(stats.m2[at], self.m2[mine], rtol=1e-9, atol=0.0)
        if not same.all():
            raise unlike_before(f"other values of {self.names[mine[np.argmin(same)]]!r}")


def unlike_before(what: str) -> ValueError:
    """Return the error for a source that is not the same when it is read again."""
    return ValueError(
        "Expected the same columns in the same order at every reading, as exact=True needs. "
        f"Got: {what}.\nHint: exact=False reads once."
    )
