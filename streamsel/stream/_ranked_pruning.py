"""Greedy pruning in the order of a ranking, in passes over columns that come in another order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from streamsel.stream._correlated import Indices, Tile, correlated_pairs, joined
from streamsel.stream._kept_columns import KeptColumns, PruneCallback, append_piece

BoolArray = NDArray[np.bool_]

# Bytes of the columns that are compared with all others in one pass, and their minimum number.
POOL_BYTES, _MIN_POOL_COLUMNS = 64 << 20, 64


def prune_by_rank(
    read: Callable[[BoolArray], Iterable[Tile]],
    rank: Indices,
    compared: BoolArray,
    report: PruneCallback | None,
) -> BoolArray:
    """Return which columns correlate with a kept one of a better rank.

    In every pass the undecided columns are compared with those that the last pass kept; the best
    ranked of the remaining are collected, and decided after the pass.

    Parameters
    ----------
    read
        Makes a pass over the columns of a mask.
    rank
        (p,) ranks, 0 for the column that is decided first.
    compared
        (p,) which columns are compared; the others are kept.
    report
        Called for every pruned column.
    """
    undecided, pruned = compared.copy(), np.zeros_like(compared)
    kept = KeptColumns(report)
    while undecided.any():
        pool = _BestRanked(rank)
        for tile in read(undecided):
            remaining = kept.uncorrelated(tile)
            out = np.setdiff1d(tile.index, remaining.index, assume_unique=True)
            pruned[out], undecided[out] = True, False
            pool.add(remaining)
        kept = KeptColumns(report)
        for tile in pool.in_order():
            undecided[tile.index], pruned[tile.index] = False, True
            pruned[kept.keep(tile).index] = False
    return pruned


class _BestRanked:
    """The best ranked of the columns that were added, as many as fit into memory."""

    def __init__(self, rank: Indices) -> None:
        self._rank = rank
        self._tiles: list[Tile] = []
        self._n_bytes = 0
        # All columns of a better rank are in.
        self._complete_below = rank.size

    def add(self, tile: Tile) -> None:
        """Add columns; the worst are discarded if they become too many."""
        self._append(tile)
        if self._n_bytes > 2 * POOL_BYTES:
            ranks = np.concatenate([self._rank[tile.index] for tile in self._tiles])
            size = max(_MIN_POOL_COLUMNS, ranks.size * POOL_BYTES // self._n_bytes)
            if size < ranks.size:
                self._complete_below = int(np.partition(ranks, size)[size])
                tiles, self._tiles, self._n_bytes = self._tiles, [], 0
                for each in tiles:
                    self._append(each)

    def _append(self, tile: Tile) -> None:
        better = np.flatnonzero(self._rank[tile.index] < self._complete_below)
        if better.size:
            self._tiles.append(tile.subset(better) if better.size < len(tile) else tile)
            self._n_bytes += self._tiles[-1].n_bytes

    def in_order(self) -> Iterator[Tile]:
        """Yield the columns in order of rank, in tiles."""
        if not self._tiles:
            return
        width = self._tiles[0].rule.columns_per_tile
        sizes = [len(tile) for tile in self._tiles]
        source = np.repeat(np.arange(len(sizes)), sizes)
        column = np.concatenate([np.arange(size) for size in sizes])
        order = np.argsort(np.concatenate([self._rank[tile.index] for tile in self._tiles]))
        kinds: list[Tile] = []
        kind = np.empty(len(sizes), dtype=np.intp)
        for i, tile in enumerate(self._tiles):
            same = [k for k, other in enumerate(kinds) if tile.can_join(other)]
            kind[i] = same[0] if same else len(kinds)
            kinds += [] if same else [tile]
        # Columns of one tile are of one kind.
        ends = np.flatnonzero(np.diff(kind[source[order]])) + 1
        for run in np.split(order, ends):
            for start in range(0, run.size, width):
                part = run[start : start + width]
                by_source = part[np.argsort(source[part], kind="stable")]
                parts, starts = np.unique(source[by_source], return_index=True)
                columns = np.split(column[by_source], starts[1:])
                tile = joined(
                    [self._tiles[i].subset(c) for i, c in zip(parts, columns, strict=True)]
                )
                yield tile.subset(np.argsort(self._rank[tile.index]))


def prune_within_reach(
    read: Callable[[BoolArray], Iterable[Tile]],
    rank: Indices,
    compared: BoolArray,
    report: PruneCallback | None,
) -> BoolArray:
    """Return what `prune_by_rank` does, in one pass, if columns far apart are not compared."""
    window = _Window(rank, report)
    for tile in read(compared):
        window.add(tile)
    window.decide(np.inf)
    return window.pruned


class _Window:
    """The columns within reach of the latest, and the decisions that they wait for.

    A column is blocked by the correlated columns of a better rank that are undecided. It is kept
    when all columns within reach have been added and nothing blocks it, and pruned when a column
    that blocks it is kept.

    Parameters
    ----------
    rank
        (p,) ranks of all columns.
    report
        Called for every pruned column with the best ranked kept one that it correlates with, which
        may be decided later than the column itself.

    Attributes
    ----------
    pruned
        (p,) which columns are pruned.
    """

    def __init__(self, rank: Indices, report: PruneCallback | None) -> None:
        self.pruned = np.zeros(rank.size, dtype=np.bool_)
        self._rank, self._report = rank, report
        self._pieces: list[Tile] = []
        # Locations and indices of the columns whose neighbours are not all known.
        self._incomplete: deque[tuple[float, int]] = deque()
        self._blockers: dict[int, dict[int, float]] = {}
        self._blocked: dict[int, list[int]] = {}
        # For reports: the names, and the best representatives so far.
        self._names: dict[int, Hashable] = {}
        self._best: dict[int, tuple[int, Hashable, float]] = {}

    def add(self, tile: Tile) -> None:
        """Add columns, and decide on those that are now out of reach."""
        for piece in (*self._pieces, tile):
            pairs = correlated_pairs(tile, piece)
            self._block(tile.index[pairs.first], piece.index[pairs.second], pairs.correlation)
        if tile.names is not None:
            self._names.update(zip(tile.index.tolist(), tile.names, strict=True))
        self._incomplete.extend(zip(tile.location.tolist(), tile.index.tolist(), strict=True))
        append_piece(self._pieces, tile)
        self.decide(float(tile.location[-1]) - tile.rule.reach)
        self._evict()

    def _block(self, a: Indices, b: Indices, r: NDArray[np.float64]) -> None:
        a_first = self._rank[a] < self._rank[b]
        better, worse = np.where(a_first, a, b), np.where(a_first, b, a)
        # Pruned columns block none; they are blocked only to find their representatives.
        counts = ~self.pruned[better]
        if self._report is None:
            counts &= ~self.pruned[worse]
        pairs = (array[counts].tolist() for array in (better, worse, r))
        for i, j, correlation in zip(*pairs, strict=True):
            self._blockers.setdefault(j, {})[i] = correlation
            self._blocked.setdefault(i, []).append(j)

    def decide(self, location: float) -> None:
        """Decide on the columns before a location, whose neighbours are all known."""
        while self._incomplete and self._incomplete[0][0] < location:
            _, j = self._incomplete.popleft()
            if not self._blockers.get(j) and (self._report is not None or not self.pruned[j]):
                self._settle(j)

    def _settle(self, j: int) -> None:
        """Settle a complete column that nothing blocks, and those that are settled by it."""
        settled = [j]
        while settled:
            j = settled.pop()
            self._blockers.pop(j, None)
            name = self._names.pop(j, None)
            if self.pruned[j]:
                _, representative, r = self._best.pop(j)
                assert self._report is not None  # noqa: S101
                self._report(name, representative, r)
                continue
            for worse in self._blocked.pop(j, ()):
                if worse not in self._blockers:
                    continue
                r = self._blockers[worse].pop(j)
                if not self.pruned[worse]:
                    self.pruned[worse] = True
                    settled += self._unblocked_by(worse)
                if self._report is None:
                    del self._blockers[worse]
                    continue
                if worse not in self._best or self._rank[j] < self._best[worse][0]:
                    self._best[worse] = int(self._rank[j]), name, r
                if self._is_free(worse):
                    settled.append(worse)

    def _unblocked_by(self, j: int) -> list[int]:
        """Return the complete columns that nothing blocks once j is pruned."""
        free = []
        for worse in self._blocked.pop(j, ()):
            if worse in self._blockers:
                del self._blockers[worse][j]
                if self._is_free(worse):
                    free.append(worse)
        return free

    def _is_free(self, j: int) -> bool:
        is_complete = not self._incomplete or j < self._incomplete[0][1]
        return is_complete and not self._blockers[j]

    def _evict(self) -> None:
        """Evict the values of columns that need no more comparison, once they are many."""
        first = self._incomplete[0][1] if self._incomplete else self._rank.size
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            needed = piece.index >= first
            if self._report is None:
                needed &= ~self.pruned[piece.index]
            count = int(np.count_nonzero(needed))
            if count:
                half = 2 * count > len(piece)
                self._pieces.append(piece if half else piece.subset(np.flatnonzero(needed)))
