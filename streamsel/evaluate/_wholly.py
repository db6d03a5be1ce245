"""What is kept of all columns as they pass: random names, and all values if they are few."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from streamsel.columns import Block
from streamsel.stream import ColumnStream


class Lots:
    """Draws names at random from a stream: each has the same chance.

    Parameters
    ----------
    most
        How many are drawn.
    seed
        Of the draw; it does not depend on how columns are cut into blocks.
    """

    def __init__(self, most: int, seed: Any) -> None:
        self._most, self._rng = most, np.random.default_rng(seed)
        self._lots = np.empty(0)
        self._names: list[Hashable] = []

    def see(self, block: Block) -> None:
        """Let the columns of a block draw."""
        lots = self._rng.random(len(block.names))
        full = len(self._names) == self._most
        better = np.flatnonzero(lots < self._lots[-1]) if full else np.arange(len(lots))
        lots = np.concatenate([self._lots, lots[better]])
        names = self._names + [block.names[j] for j in better.tolist()]
        order = np.argsort(lots, kind="stable")[: self._most]
        self._lots, self._names = lots[order], [names[j] for j in order.tolist()]

    def drawn(self, n: int) -> list[Hashable]:
        """Return n of them, or as many as there are."""
        return self._names[:n]


class Wholly:
    """Holds all columns, unless they take too much memory.

    Parameters
    ----------
    most
        Bytes of the columns as float64.

    Attributes
    ----------
    blocks
        The columns; None if they are too many.
    n_bytes
        What they take, or would take.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.blocks: list[Block] | None = []
        self.n_bytes = self.n_columns = 0

    def see(self, block: Block) -> None:
        """Hold a copy of a block, or let all go."""
        n, b = block.values.shape
        self.n_bytes += 8 * n * b
        self.n_columns += b
        if self.n_bytes > self._most:
            self.blocks = None
        elif self.blocks is not None:
            self.blocks.append(Block(list(block.names), block.values.copy()))

    def stream(self) -> ColumnStream | None:
        """Return the columns; None if they are not held."""
        if not self.blocks:
            return None
        blocks = self.blocks
        places = {name: (i, j) for i, block in enumerate(blocks) for j, name in enumerate(block[0])}

        def take(names: Any) -> dict[Hashable, Any]:
            return {
                name: _column(blocks[places[name][0]].values, places[name][1]) for name in names
            }

        n = blocks[0].values.shape[0]
        return ColumnStream(lambda: blocks, n_rows=n, names=list(places), take=take)

    def matrix(self) -> Any:
        """Return all columns as one array, (n, p); None if they are not held."""
        if not self.blocks:
            return None
        return np.hstack([_dense(block.values) for block in self.blocks])


def _dense(values: Any) -> Any:
    dense = values.toarray() if hasattr(values, "toarray") else values
    return np.asarray(dense, dtype=np.float64)


def _column(values: Any, j: int) -> Any:
    return values[:, [j]].toarray()[:, 0] if hasattr(values, "toarray") else values[:, j]
