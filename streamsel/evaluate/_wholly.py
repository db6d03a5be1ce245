"""Records of all columns of a stream: random names, and all values if they fit into memory."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from streamsel.columns import Block
from streamsel.stream import ColumnStream


class Lots:
    """Uniform random sample of the names of a stream.

    Parameters
    ----------
    most
        Size of the sample.
    seed
        Random seed; the sample does not depend on how columns are cut into blocks.
    """

    def __init__(self, most: int, seed: Any) -> None:
        self._most, self._rng = most, np.random.default_rng(seed)
        self._keys = np.empty(0)
        self._names: list[Hashable] = []

    def see(self, block: Block) -> None:
        """Sample the columns of a block."""
        keys = self._rng.random(len(block.names))
        full = len(self._names) == self._most
        sampled = np.flatnonzero(keys < self._keys[-1]) if full else np.arange(len(keys))
        keys = np.concatenate([self._keys, keys[sampled]])
        names = self._names + [block.names[j] for j in sampled.tolist()]
        order = np.argsort(keys, kind="stable")[: self._most]
        self._keys, self._names = keys[order], [names[j] for j in order.tolist()]

    def drawn(self, n: int) -> list[Hashable]:
        """Return n names of the sample, or as many as there are."""
        return self._names[:n]


class Wholly:
    """Copy of all columns, unless they take too much memory.

    Parameters
    ----------
    most
        Memory limit of the columns as float64, in bytes.

    Attributes
    ----------
    blocks
        The columns; None if they exceed the limit.
    n_bytes
        Memory of all columns, stored or not.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.blocks: list[Block] | None = []
        self.n_bytes = self.n_columns = 0

    def see(self, block: Block) -> None:
        """Store a copy of a block, or drop all blocks above the limit."""
        n, b = block.values.shape
        self.n_bytes += 8 * n * b
        self.n_columns += b
        if self.n_bytes > self._most:
            self.blocks = None
        elif self.blocks is not None:
            self.blocks.append(Block(list(block.names), block.values.copy()))

    def stream(self) -> ColumnStream | None:
        """Return the columns; None if they are not stored."""
        if not self.blocks:
            return None
        blocks = self.blocks
        positions = {
            name: (i, j) for i, block in enumerate(blocks) for j, name in enumerate(block[0])
        }

        def take(names: Any) -> dict[Hashable, Any]:
            return {
                name: _column(blocks[positions[name][0]].values, positions[name][1])
                for name in names
            }

        n = blocks[0].values.shape[0]
        return ColumnStream(lambda: blocks, n_rows=n, names=list(positions), take=take)

    def matrix(self) -> Any:
        """Return all columns as one array, (n, p); None if they are not stored."""
        if not self.blocks:
            return None
        return np.hstack([_dense(block.values) for block in self.blocks])


def _dense(values: Any) -> Any:
    dense = values.toarray() if hasattr(values, "toarray") else values
    return np.asarray(dense, dtype=np.float64)


def _column(values: Any, j: int) -> Any:
    return values[:, [j]].toarray()[:, 0] if hasattr(values, "toarray") else values[:, j]
