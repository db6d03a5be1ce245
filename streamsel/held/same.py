"""Check that the columns of a later pass are those of the first."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

import numpy as np

from streamsel.columns import Stats
from streamsel.held.part import Held

# Largest relative difference between two passes over the same columns.
ROUGH = 1e-6
_MEAN_RTOL = 1e-12


class Learnt:
    """Expected columns of a later pass: moments of the tracked ones, and the number of all.

    Parameters
    ----------
    held
        The state that tracks some of the columns.
    n_columns
        Number of columns learnt.
    """

    def __init__(self, held: Held, n_columns: int) -> None:
        self._slots, self._space = dict(held.slots), held.space
        self._stats = Stats(*(array.copy() for array in held.stats()))
        self._n_columns = n_columns

    def check(self, names: Sequence[Hashable], stats: Stats) -> set[Hashable]:
        """Raise ValueError for a tracked name with other values; return the tracked names."""
        mine, seen = self._stats, {name for name in names if name in self._slots}
        for j, name in enumerate(names):
            if name not in seen:
                continue
            i = self._slots[name]
            difference = abs(mine.mean[i] - stats.mean[j])
            differs = difference > ROUGH * np.sqrt(stats.m2[j]) + _MEAN_RTOL * abs(stats.mean[j])
            differs |= abs(mine.m2[i] - stats.m2[j]) > ROUGH * mine.m2[i]
            if self._space is not None and not differs:
                expected = self._space.coordinates(mine.m2[i : i + 1], mine.cxy[i : i + 1])
                found = self._space.coordinates(stats.m2[j : j + 1], stats.cxy[j : j + 1])
                differs = not np.allclose(expected, found, rtol=0.0, atol=ROUGH)
            if differs:
                raise unlike_before(f"other values of {name!r}")
        return seen

    def expect_all(self, n_read: int, seen: Collection[Hashable]) -> None:
        """Raise ValueError if a pass of `n_read` columns, `seen` tracked, is incomplete."""
        if n_read != self._n_columns:
            raise unlike_before(f"{n_read} columns, after {self._n_columns}")
        if len(seen) < len(self._slots):
            missing = next(name for name in self._slots if name not in seen)
            raise unlike_before(f"columns without {missing!r}")


class Same:
    """Checks the columns of a later pass as they arrive.

    Parameters
    ----------
    held, n_columns
        As in `Learnt`.
    """

    def __init__(self, held: Held, n_columns: int) -> None:
        self._learnt = Learnt(held, n_columns)
        self._n_read = 0
        self._seen = set[Hashable]()

    def check(self, names: Sequence[Hashable], stats: Stats) -> None:
        """Raise ValueError for a column with a tracked name and other values."""
        self._seen |= self._learnt.check(names, stats)
        self._n_read += len(names)

    def end(self) -> None:
        """Raise ValueError for an incomplete pass."""
        self._learnt.expect_all(self._n_read, self._seen)


def unlike_before(got: str) -> ValueError:
    """Return the error for columns that differ from those learnt."""
    return ValueError(
        f"Expected the same columns as before. Got: {got}.\n"
        "Hint: a second pass needs the same source, under the same names."
    )
