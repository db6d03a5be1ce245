"""Whether columns that are read again are those that were learnt."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from streamsel.columns import Stats
from streamsel.held.part import Held

# What two readings of the same columns may differ by.
ROUGH = 1e-6
_ROUNDING = 1e-12


class Same:
    """Follows a further reading of columns, and refuses it where they are others.

    Of those held the moments are compared, of the rest no more than their number can be.

    Parameters
    ----------
    held
        What holds some of the columns.
    n_columns
        How many were learnt.
    """

    def __init__(self, held: Held, n_columns: int) -> None:
        self._held, self._learnt = held, n_columns
        self._read = 0
        self._missing = set(held.names)

    def check(self, names: Sequence[Hashable], stats: Stats) -> None:
        """Refuse columns that bear a name of those held and are others."""
        slots, space = self._held.slots, self._held.space
        self._read += len(names)
        for j, name in enumerate(names):
            if name not in slots:
                continue
            self._missing.discard(name)
            mine = self._held.stats(np.array([slots[name]]))
            off = abs(mine.mean[0] - stats.mean[j])
            is_off = off > ROUGH * np.sqrt(stats.m2[j]) + _ROUNDING * abs(stats.mean[j])
            is_off |= abs(mine.m2[0] - stats.m2[j]) > ROUGH * mine.m2[0]
            if space is not None and not is_off:
                was = space.coordinates(mine.m2, mine.cxy)
                now = space.coordinates(stats.m2[j : j + 1], stats.cxy[j : j + 1])
                is_off = not np.allclose(was, now, rtol=0.0, atol=ROUGH)
            if is_off:
                raise unlike_before(f"other values of {name!r}")

    def end(self) -> None:
        """Refuse a reading that was not of all columns."""
        if self._read != self._learnt:
            raise unlike_before(f"{self._read} columns, after {self._learnt}")
        if self._missing:
            raise unlike_before(f"columns without {next(iter(self._missing))!r}")


def unlike_before(got: str) -> ValueError:
    """Return the error for columns that are not those learnt."""
    return ValueError(
        f"Expected the same columns as before. Got: {got}.\n"
        "Hint: a second reading is one of the same source, under the same names."
    )
