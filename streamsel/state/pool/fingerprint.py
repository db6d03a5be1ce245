"""Fingerprint of the columns of a pool, to verify a source in a later pass."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Self

import numpy as np

from streamsel.data.chunks import Chunk, Stats
from streamsel.state.base import Floats, Indices, VariableTable
from streamsel.state.pool.candidate_solution import BoolArray


class PoolFingerprint(NamedTuple):
    """Columns that are in a pool.

    Parameters
    ----------
    names, arrivals, m2
        Name, number of earlier columns, and sum of squares of each column.
    """

    names: Sequence[Hashable]
    arrivals: Indices
    m2: Floats

    @classmethod
    def of(cls, table: VariableTable) -> Self:
        """Return the columns of a pool's table."""
        return cls(table.names, table["arrival"].astype(np.intp), table["m2"])

    def among(self, arrivals: Indices) -> BoolArray:
        """Return which of some columns, given by ascending arrival, are in the pool."""
        is_known = np.zeros(arrivals.size, dtype=np.bool_)
        if arrivals.size:
            mine = self.arrivals
            mine = mine[(mine >= arrivals[0]) & (mine <= arrivals[-1])]
            positions = np.searchsorted(arrivals, mine)
            is_known[positions[arrivals[positions] == mine]] = True
        return is_known

    def expect(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Raise ValueError where columns of the pool differ from those of the first pass."""
        arrival = self.arrivals - first_arrival
        mine = np.flatnonzero((arrival >= 0) & (arrival < stats.m2.size))
        indices = arrival[mine]
        for index, j in zip(indices.tolist(), mine.tolist(), strict=True):
            if chunk.names[index] != self.names[j]:
                raise pool_changed_error(f"{chunk.names[index]!r} instead of {self.names[j]!r}")
        same = np.isclose(stats.m2[indices], self.m2[mine], rtol=1e-9, atol=0.0)
        if not same.all():
            raise pool_changed_error(f"other values of {self.names[mine[np.argmin(same)]]!r}")


def pool_changed_error(what: str) -> ValueError:
    """Return the error for a source that has changed between passes."""
    return ValueError(
        "Expected the same columns in the same order in every pass, as exact=True requires. "
        f"Got: {what}.\nHint: exact=False needs a single pass."
    )
