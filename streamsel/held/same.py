"""Whether columns that are read again are those that were learnt."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

import numpy as np

from streamsel.columns import Stats
from streamsel.held.part import Held

# What two readings of the same columns may differ by.
ROUGH = 1e-6
_ROUNDING = 1e-12


class Learnt:
    """What is known of columns that were learnt: the moments of those held, of the rest the number.

    Parameters
    ----------
    held
        What holds some of the columns.
    n_columns
        How many were learnt.
    """

    def __init__(self, held: Held, n_columns: int) -> None:
        self._slots, self._space = dict(held.slots), held.space
        self._stats = Stats(*(array.copy() for array in held.stats()))
        self._n_columns = n_columns

    def check(self, names: Sequence[Hashable], stats: Stats) -> set[Hashable]:
        """Refuse columns that bear a name of those held and are others; return these names."""
        mine, seen = self._stats, {name for name in names if name in self._slots}
        for j, name in enumerate(names):
            if name not in seen:
                continue
            i = self._slots[name]
            off = abs(mine.mean[i] - stats.mean[j])
            is_off = off > ROUGH * np.sqrt(stats.m2[j]) + _ROUNDING * abs(stats.mean[j])
            is_off |= abs(mine.m2[i] - stats.m2[j]) > ROUGH * mine.m2[i]
            if self._space is not None and not is_off:
                was = self._space.coordinates(mine.m2[i : i + 1], mine.cxy[i : i + 1])
                now = self._space.coordinates(stats.m2[j : j + 1], stats.cxy[j : j + 1])
                is_off = not np.allclose(was, now, rtol=0.0, atol=ROUGH)
            if is_off:
                raise unlike_before(f"other values of {name!r}")
        return seen

    def expect_all(self, n_read: int, seen: Collection[Hashable]) -> None:
        """Refuse a reading of so many columns, these of them held, that was not of all."""
        if n_read != self._n_columns:
            raise unlike_before(f"{n_read} columns, after {self._n_columns}")
        if len(seen) < len(self._slots):
            missing = next(name for name in self._slots if name not in seen)
            raise unlike_before(f"columns without {missing!r}")


class Same:
    """Follows a further reading of columns, and refuses it where they are others.

    Parameters
    ----------
    held, n_columns
        As `Learnt` has them.
    """

    def __init__(self, held: Held, n_columns: int) -> None:
        self._learnt = Learnt(held, n_columns)
        self._n_read = 0
        self._seen = set[Hashable]()

    def check(self, names: Sequence[Hashable], stats: Stats) -> None:
        """Refuse columns that bear a name of those held and are others."""
        self._seen |= self._learnt.check(names, stats)
        self._n_read += len(names)

    def end(self) -> None:
        """Refuse a reading that was not of all columns."""
        self._learnt.expect_all(self._n_read, self._seen)


def unlike_before(got: str) -> ValueError:
    """Return the error for columns that are not those learnt."""
    return ValueError(
        f"Expected the same columns as before. Got: {got}.\n"
        "Hint: a second reading is one of the same source, under the same names."
    )
