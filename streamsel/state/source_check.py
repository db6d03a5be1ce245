"""Check that the columns of a later pass are those of the first."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

import numpy as np

from streamsel.data.chunks import Stats
from streamsel.state.base import VariableState

# Largest relative difference between two passes over the same columns.
PASS_RTOL = 1e-6
_MEAN_RTOL = 1e-12


class LearntColumns:
    """Expected columns of a later pass: moments of the tracked ones, and the number of all.

    Parameters
    ----------
    state
        The state that tracks some of the columns.
    n_columns
        Number of columns learnt.
    """

    def __init__(self, state: VariableState, n_columns: int) -> None:
        self._index_of, self._space = dict(state.index_of), state.space
        self._stats = Stats(*(array.copy() for array in state.stats()))
        self._n_columns = n_columns

    def check(self, names: Sequence[Hashable], stats: Stats) -> set[Hashable]:
        """Raise ValueError for a tracked name with other values; return the tracked names."""
        mine, seen = self._stats, {name for name in names if name in self._index_of}
        for j, name in enumerate(names):
            if name not in seen:
                continue
            i = self._index_of[name]
            difference = abs(mine.mean[i] - stats.mean[j])
            differs = difference > PASS_RTOL * np.sqrt(stats.m2[j]) + _MEAN_RTOL * abs(
                stats.mean[j]
            )
            differs |= abs(mine.m2[i] - stats.m2[j]) > PASS_RTOL * mine.m2[i]
            if self._space is not None and not differs:
                expected = self._space.coordinates(mine.m2[i : i + 1], mine.cxy[i : i + 1])
                found = self._space.coordinates(stats.m2[j : j + 1], stats.cxy[j : j + 1])
                differs = not np.allclose(expected, found, rtol=0.0, atol=PASS_RTOL)
            if differs:
                raise source_changed_error(f"other values of {name!r}")
        return seen

    def check_complete(self, n_read: int, seen: Collection[Hashable]) -> None:
        """Raise ValueError if a pass of `n_read` columns, `seen` tracked, is incomplete."""
        if n_read != self._n_columns:
            raise source_changed_error(f"{n_read} columns, after {self._n_columns}")
        if len(seen) < len(self._index_of):
            missing = next(name for name in self._index_of if name not in seen)
            raise source_changed_error(f"columns without {missing!r}")


class PassVerifier:
    """Checks the columns of a later pass as they arrive.

    Parameters
    ----------
    state, n_columns
        As in `LearntColumns`.
    """

    def __init__(self, state: VariableState, n_columns: int) -> None:
        self._learnt = LearntColumns(state, n_columns)
        self._n_read = 0
        self._seen = set[Hashable]()

    def check(self, names: Sequence[Hashable], stats: Stats) -> None:
        """Raise ValueError for a column with a tracked name and other values."""
        self._seen |= self._learnt.check(names, stats)
        self._n_read += len(names)

    def check_complete(self) -> None:
        """Raise ValueError for an incomplete pass."""
        self._learnt.check_complete(self._n_read, self._seen)


def source_changed_error(got: str) -> ValueError:
    """Return the error for columns that differ from those learnt."""
    return ValueError(
        f"Expected the same columns as before. Got: {got}.\n"
        "Hint: a second pass needs the same source, under the same names."
    )
