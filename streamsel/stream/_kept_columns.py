"""Greedy pruning: columns are kept, in order, unless they correlate with a kept one."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from streamsel._kernels.correlated_pairs import keep_first
from streamsel.stream._correlated import Pairs, Tile, correlated_pairs, joined

# Columns of one piece of those kept, and the bytes that it may take.
_PIECE_COLUMNS, _PIECE_BYTES = 2048, 16 << 20

PruneCallback = Callable[[Hashable, Hashable, float], None]
"""Called with the names of a pruned column and of its representative, and their correlation."""


class KeptColumns:
    """Columns kept so far, and the comparison of the next ones with them.

    Parameters
    ----------
    report
        Called for every column that is not kept, with the first kept column that it correlates
        with; tiles then need names. None for no calls.
    """

    def __init__(self, report: PruneCallback | None = None) -> None:
        # In order of the greedy.
        self._pieces: list[Tile] = []
        self._report = report

    def keep(self, tile: Tile) -> Tile:
        """Return the columns of the next tile that are kept, and keep them."""
        tile = self.uncorrelated(tile)
        if len(tile):
            tile = self._greedy(tile)
            append_piece(self._pieces, tile)
        return tile

    def evict(self, location: float) -> None:
        """Evict the columns that are out of reach of a location and of all after it."""
        while self._pieces:
            first = self._pieces[0]
            in_reach = np.flatnonzero(first.location + first.rule.reach >= location)
            if in_reach.size == len(first):
                return
            # A piece is copied once half of it is evicted.
            if 2 * in_reach.size > len(first):
                return
            self._pieces[:1] = [first.subset(in_reach)] if in_reach.size else []

    def uncorrelated(self, tile: Tile) -> Tile:
        """Return the columns of a tile that correlate with no kept one."""
        # Neighbours are likely to correlate, but the first match is reported.
        pieces = self._pieces if self._report else reversed(self._pieces)
        for piece in pieces:
            pairs = correlated_pairs(tile, piece)
            if not pairs.first.size:
                continue
            pruned, first = np.unique(pairs.first, return_index=True)
            if self._report is not None:
                _report_pairs(self._report, tile, piece, pairs.at(first))
            tile = tile.subset(np.delete(np.arange(len(tile)), pruned))
            if not len(tile):
                break
        return tile

    def _greedy(self, tile: Tile) -> Tile:
        """Return the columns of a tile that correlate with no earlier kept one of it."""
        pairs = correlated_pairs(tile, tile)
        if not pairs.first.size:
            return tile
        is_kept = np.ones(len(tile), dtype=np.bool_)
        representative = np.zeros(len(tile), dtype=np.intp)
        keep_first(pairs.first, pairs.second, is_kept, representative)
        if self._report is not None:
            _report_pairs(self._report, tile, tile, pairs.at(representative[~is_kept]))
        return tile.subset(np.flatnonzero(is_kept))


def append_piece(pieces: list[Tile], tile: Tile) -> None:
    """Append columns; pieces of similar sizes are joined, so that there are few."""
    pieces.append(tile)
    while len(pieces) > 1:
        first, second = pieces[-2:]
        if (
            not first.can_join(second)
            or len(first) > 2 * len(second)
            or len(first) + len(second) > _PIECE_COLUMNS
            or first.n_bytes + second.n_bytes > _PIECE_BYTES
        ):
            return
        pieces[-2:] = [joined([first, second])]


def _report_pairs(report: PruneCallback, a: Tile, b: Tile, pairs: Pairs) -> None:
    assert a.names is not None and b.names is not None  # noqa: S101, PT018
    for i, j, r in zip(*(array.tolist() for array in pairs), strict=True):
        report(a.names[i], b.names[j], r)
