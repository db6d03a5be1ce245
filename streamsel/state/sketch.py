"""Random projections: sums of columns times random weights, without any state per variable."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from streamsel._kernels.random_entries import (
    GAUSSIAN,
    SIGN,
    SPARSE,
    add_sparse_entries,
    add_sparsely,
    fill_entries,
)
from streamsel.data.chunks import Chunk, SparseChunk, Stats
from streamsel.data.names import NameHash
from streamsel.serialization.invariants import expect_sums
from streamsel.serialization.schema import CountKind, expect, expect_shapes
from streamsel.state.base import ColumnState, Floats, State, VariableTable

KINDS = {"sign": SIGN, "sparse": SPARSE, "gaussian": GAUSSIAN}
# Size limit of a block of weights generated at once.
_BLOCK_SIZE = 1 << 19
# Rows processed at once with sparse weights: the part of a column stays in the L1 cache.
_ROW_BLOCK = 1024


class RandomEntries(NamedTuple):
    """Random weights of variables, one row per variable, as a function of its name.

    Parameters
    ----------
    k
        Length of a row.
    kind
        `"sign"`: ±1; `"sparse"`: ±1, or mostly 0; `"gaussian"`: standard normal.
    density
        Probability that an entry of a sparse row is not 0.
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
        """Add the first b columns of a chunk, each times its row of weights, to Z (n, k)."""
        if not isinstance(chunk, SparseChunk):
            self.add_dense(chunk.names, chunk.X[:b].T, Z)
            return
        scratch = np.empty(self.k), np.empty(self.k, dtype=np.intp)
        keys = self.keys(chunk.names[:b])
        parts = chunk.data, chunk.indices, chunk.indptr
        add_sparse_entries(*parts, keys, KINDS[self.kind], self.density, *scratch, Z)

    def add_dense(self, names: Sequence[Hashable], X: Floats, Z: Floats) -> None:
        """Add columns (n, b), each times its row of weights, to Z (n, k)."""
        step = max(1, _BLOCK_SIZE // max(1, self.k, len(X)))
        is_sparse_sum = self.kind == "sparse" and X.T.flags.c_contiguous
        if not len(X):
            return
        scratch = np.empty((self.k, min(len(X), _ROW_BLOCK)) if is_sparse_sum else (0, 0))
        for start in range(0, X.shape[1], step):
            block = slice(start, min(start + step, X.shape[1]))
            W = self.matrix(names[block])
            if is_sparse_sum:
                columns = X.T[block]
                columns.flags.writeable = False  # numba would compile again for a writable array
                add_sparsely(columns, W, scratch, Z)
            else:
                Z += np.asarray(X[:, block], dtype=np.float64) @ W


class RandomSketch(ColumnState):
    """Sum of all columns, each times the random weights of its name.

    No variable is tracked, not even by name.

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

    def __init__(self, n: int, entries: RandomEntries) -> None:
        super().__init__(n)
        self._entries = entries
        self.table = VariableTable({"mean": (), "mean_error": (), "m2": (), "cxy": (0,)})
        self.Z: Floats = np.zeros((n, entries.k))

    @property
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""
        return False

    @property
    def space(self) -> None:
        """The target space: None, because there is no target."""

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:  # noqa: ARG002
        """Learn the columns of a chunk, as many as stats has."""
        self._copy_before_write()
        self._entries.add(chunk, stats.m2.size, self.Z)

    def merge(self, other: Self, arrived: int) -> None:  # noqa: ARG002
        """Add other variables of the same rows."""
        self._copy_before_write()
        self.Z += other.Z

    def _copied(self) -> dict[str, Any]:
        return vars(self) | {"Z": self.Z.copy()}

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        expect_sums("projections", self.Z)

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {"Z": self.Z}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`."""
        expect_shapes(state, Z=self.Z.shape)
        self.Z = np.array(state["Z"])


class Stateless(State):
    """Row state that only counts rows.

    Attributes
    ----------
    rows
        Number of rows, including the observations of columns before them.
    n
        Number of observations of the columns; 0 without columns.
    """

    changing = ("rows", "n")

    def __init__(self, n: int = 0) -> None:
        self.rows = self.n = n

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {"rows": self.rows, "n": self.n}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`."""
        expect(state, rows=CountKind(), n=CountKind())
        rows, n = state["rows"], state["n"]
        if n > rows:
            raise ValueError(f"Expected at least {n!r} rows, as the columns had. Got: {rows!r}.")
        self.rows, self.n = rows, n
