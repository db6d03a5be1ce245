"""Nothing of the variables, but what their random weights make of them together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from streamsel._jit.entries import GAUSSIAN, SIGN, SPARSE, add_sparsely, add_stored, fill_entries
from streamsel.columns import Chunk, SparseChunk, Stats
from streamsel.hashing import NameHash
from streamsel.held.part import ColumnHeld, Floats, Part
from streamsel.held.possible import expect_sums
from streamsel.held.table import Table
from streamsel.shapes import Count, expect, expect_shapes

KINDS = {"sign": SIGN, "sparse": SPARSE, "gaussian": GAUSSIAN}
# Weights are made for so many numbers of a block of columns at a time.
_AT_ONCE = 1 << 19
# Of sparse weights for so many rows at a time: a column's part stays in the first cache.
_ROWS = 1024


class Entries(NamedTuple):
    """The random weights of variables, a row each, as a function of their names.

    Parameters
    ----------
    k
        Length of a row.
    kind
        `"sign"`: ±1; `"sparse"`: ±1, or mostly 0; `"gaussian"`: standard normal.
    density
        Chance that an entry of a sparse row is not 0.
    keys
        Names to keys.
    """

    k: int
    kind: str
    density: float
    keys: NameHash

    def matrix(self, names: Sequence[Hashable]) -> Floats:
        """Return the rows of these names, (b, k)."""
        W = np.empty((len(names), self.k))
        fill_entries(self.keys(names), KINDS[self.kind], self.density, W)
        return W

    def add(self, chunk: Chunk, b: int, Z: Floats) -> None:
        """Add to Z (n, k) the first b columns of a chunk, each times its row."""
        if not isinstance(chunk, SparseChunk):
            self.add_dense(chunk.names, chunk.X[:b].T, Z)
            return
        scratch = np.empty(self.k), np.empty(self.k, dtype=np.intp)
        keys = self.keys(chunk.names[:b])
        parts = chunk.data, chunk.indices, chunk.indptr
        add_stored(*parts, keys, KINDS[self.kind], self.density, *scratch, Z)

    def add_dense(self, names: Sequence[Hashable], X: Floats, Z: Floats) -> None:
        """Add to Z (n, k) columns, (n, b), each times its row."""
        step = max(1, _AT_ONCE // max(1, self.k, len(X)))
        in_place = self.kind == "sparse" and X.T.flags.c_contiguous
        if not len(X):
            return
        scratch = np.empty((self.k, min(len(X), _ROWS)) if in_place else (0, 0))
        for start in range(0, X.shape[1], step):
            some = slice(start, min(start + step, X.shape[1]))
            W = self.matrix(names[some])
            if in_place:
                columns = X.T[some]
                columns.flags.writeable = False  # numba would compile again for what may be written
                add_sparsely(columns, W, scratch, Z)
            else:
                Z += np.asarray(X[:, some], dtype=np.float64) @ W


class Sketch(ColumnHeld):
    """The columns that went by, each times the random weights of its name, all added up.

    Of a variable nothing is kept, not even its name.

    Parameters
    ----------
    n
        Observations of every column.
    entries
        The weights.

    Attributes
    ----------
    Z
        (n, k) the sum.
    """

    def __init__(self, n: int, entries: Entries) -> None:
        super().__init__(n)
        self._entries = entries
        self.table = Table({"mean": (), "low": (), "m2": (), "cxy": (0,)})
        self.Z: Floats = np.zeros((n, entries.k))

    @property
    def complete(self) -> bool:
        """Whether no variable was ever let go."""
        return False

    @property
    def space(self) -> None:
        """There is no target."""

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:  # noqa: ARG002
        """Learn the columns of a chunk, as many as stats has."""
        self._changes()
        self._entries.add(chunk, stats.m2.size, self.Z)

    def merge(self, other: Self, arrived: int) -> None:  # noqa: ARG002
        """Take in other variables of the same rows."""
        self._changes()
        self.Z += other.Z

    def _copied(self) -> dict[str, Any]:
        return vars(self) | {"Z": self.Z.copy()}

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        expect_sums("projections", self.Z)

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs."""
        return {"Z": self.Z}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned."""
        expect_shapes(state, Z=self.Z.shape)
        self.Z = np.array(state["Z"])


class Passed(Part):
    """Rows that went by and left nothing but their number.

    Attributes
    ----------
    rows
        How many, observations of columns before them counted.
    n
        How many observations the columns had; 0 where there were none.
    """

    changing = ("rows", "n")

    def __init__(self, n: int = 0) -> None:
        self.rows = self.n = n

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs."""
        return {"rows": self.rows, "n": self.n}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned."""
        expect(state, rows=Count(), n=Count())
        rows, n = state["rows"], state["n"]
        if n > rows:
            raise ValueError(f"Expected numbers of rows. Got: {rows!r}, after {n!r}.")
        self.rows, self.n = rows, n
