"""Streams of genotypes: what files of variants share, whatever their format."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from streamsel._kernels.allele_counts import fill_missing_counts
from streamsel.data.chunks import Block
from streamsel.params import parameter_repr
from streamsel.stream._blocks import columns_per_block, drop_first
from streamsel.stream._metadata import LazyMetadata
from streamsel.stream._parts import cached_reader, split_columns
from streamsel.stream._stream import ColumnStream, indexed_stream

if TYPE_CHECKING:
    from streamsel.stream._parts import Cut, Stamp, StreamPart
    from streamsel.targets.kept_rows import KeptRows

# Columns that share a dtype, which depends on whether any of them has missing values: a dtype per
# column would make blocks of single columns.
_GROUP_SIZE = 64
# Positions are integers of 64 bits.
_MAX_POSITION = 2**63


class GenotypeFile(ABC):
    """A file of genotypes.

    Parameters
    ----------
    names
        Names of the variants.
    samples
        Metadata of the samples; the first holds their names.
    missing
        Treatment of missing genotypes: "mean" or "keep".

    Attributes
    ----------
    n_rows
        Number of samples.
    group_size
        Number of neighbouring variants that share a dtype.
    bytes_before
        Bytes of the file before each variant, and before its end.
    imputes
        Whether the mean of a variant replaces missing genotypes.
    is_sequential
        Whether the file is read from its beginning only, and so cannot be split.
    """

    bytes_before: Sequence[int]
    is_sequential = False

    def __init__(
        self, names: Sequence[Hashable], samples: Mapping[str, npt.NDArray[Any]], missing: str
    ) -> None:
        self.names, self.samples = names, samples
        self.n_rows = len(next(iter(samples.values())))
        self.group_size = min(_GROUP_SIZE, columns_per_block(self.n_rows, 4))
        self.imputes = missing == "mean"

    @abstractmethod
    def open(self) -> BinaryIO:
        """Open the file."""

    @abstractmethod
    def loci(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield chromosome, position, counted allele and other allele of every variant."""

    def variants(self) -> dict[str, npt.NDArray[Any]]:
        """Read the metadata of the variants, in order.

        Raises
        ------
        ValueError
            If a position is not a whole number, or the file has another number of variants than
            before.
        """
        p, n_read = len(self.names), 0
        texts = np.empty((3, p), dtype=object)
        positions = np.empty(p, dtype=np.int64)
        for i, (chromosome, position, counted, other) in enumerate(self.loci()):
            n_read = i + 1
            if i < p:
                positions[i] = _as_position(position, self.names[i])
                # Few distinct texts: each is kept once.
                texts[:, i] = [sys.intern(text) for text in (chromosome, counted, other)]
        if n_read != p:
            raise ValueError(
                f"Expected {p:,} variants, as when the file was opened. Got: {n_read:,}.\n"
                "Hint: open the file again."
            )
        return {
            "name": np.array(self.names, dtype=object),
            "chromosome": texts[0],
            "position": positions,
            "effect_allele": texts[1],
            "other_allele": texts[2],
        }

    @abstractmethod
    def allele_counts(
        self, file: BinaryIO, a: int, b: int
    ) -> tuple[npt.NDArray[np.int8], ValueError | None]:
        """Return the allele counts of the variants a, ..., b - 1, one per row, -1 if missing.

        If a variant is damaged, return those before it, and the error. `a` is at least the `b` of
        earlier calls with the same file.
        """

    def read(
        self, start: int, end: int, kept: KeptRows | None = None
    ) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield (index of the first column, columns); `start` must be the start of a group."""
        step = self.group_size * max(1, columns_per_block(self.n_rows, 4) // self.group_size)
        with self.open() as file:
            for a in range(start, end, step):
                # To the end of the last group, whose columns share a dtype.
                b = min(a + step, -(-end // self.group_size) * self.group_size, len(self.names))
                counts, error = self.allele_counts(file, a, b)
                for j, values in self._columns(counts, kept):
                    if a + j < end:
                        yield a + j, values[:, : end - a - j]
                if error is not None:
                    raise error

    def take(
        self, indices: Iterable[int], kept: KeptRows | None = None
    ) -> dict[int, npt.NDArray[Any]]:
        """Return index -> column, with the dtype of its group."""
        found: dict[int, npt.NDArray[Any]] = {}
        first, end = 0, 0
        with self.open() as file:
            for j in sorted(set(indices)):
                if j >= end:
                    first = j - j % self.group_size
                    end = min(first + self.group_size, len(self.names))
                    counts, error = self.allele_counts(file, first, end)
                    if error is not None:
                        raise error
                    ((_, values),) = self._columns(counts, kept)
                found[j] = values[:, j - first].copy()
        return found

    def _columns(
        self, counts: npt.NDArray[np.int8], kept: KeptRows | None
    ) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield (first index, columns): complete groups as int8, others as float32."""
        if not len(counts):
            return
        if kept is not None:
            counts = kept.dense(counts)
        has_missing = counts.min(axis=1, initial=0) < 0
        groups = np.logical_or.reduceat(has_missing, range(0, len(counts), self.group_size))
        edges = np.flatnonzero(np.diff(groups)) + 1
        starts = [0, *(self.group_size * edges).tolist(), len(counts)]
        for a, b in pairwise(starts):
            complete = not has_missing[a:b].any()
            yield a, (counts[a:b] if complete else self._with_missing(counts[a:b])).T

    def _with_missing(self, counts: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
        """Convert allele counts to floats, with NaN or the mean of the variant where missing."""
        values = np.empty(counts.shape, np.float32)
        fill_missing_counts(counts, self.imputes, values)
        return values


def open_genotypes(
    kind: Callable[[str | os.PathLike[str], str], GenotypeFile],
    path: str | os.PathLike[str],
    missing: Any,
    files: tuple[Stamp, ...],
) -> ColumnStream:
    """Stream the variants of a file.

    Parameters
    ----------
    kind
        Class of the file, called with `path` and `missing`.
    path
        The file.
    missing
        Treatment of missing genotypes: "mean" or "keep".
    files
        State of the file, and of those that belong to it.
    """
    if not isinstance(missing, str) or missing not in ("mean", "keep"):
        raise ValueError(
            f"Expected missing to be 'mean' or 'keep'. Got: {parameter_repr(missing)}."
        )
    file = kind(path, missing)

    def opener(a: int, b: int) -> partial[ColumnStream]:
        return partial(_part, kind, files[0].path, missing, a, b)

    def cut(parts: int | None, start: int) -> list[StreamPart]:
        parts = 1 if file.is_sequential else parts
        return split_columns(path, files, file.bytes_before, opener, parts, start)

    def variants() -> dict[str, npt.NDArray[Any]]:
        for each in files:
            each.check()
        return file.variants()

    return _stream(file, 0, len(file.names), cut, LazyMetadata(variants))


def _part(
    kind: Callable[..., GenotypeFile], path: str, missing: str, first: int, end: int
) -> ColumnStream:
    return _stream(cached_reader(kind, path, missing), first, end)


def _as_position(cell: str, name: Hashable) -> int:
    """Convert the position of a variant to an integer; 0 if it is unknown: 0 or negative."""
    try:
        position = int(cell)
    except ValueError:
        position = _MAX_POSITION
    if not abs(position) < _MAX_POSITION:
        raise ValueError(
            f"Expected the position of variant {name!r} to be a whole number. Got: {cell[:40]!r}."
        )
    return max(position, 0)


def _stream(
    file: GenotypeFile,
    first: int,
    end: int,
    cut: Cut | None = None,
    variants: Mapping[str, Any] | None = None,
    kept: KeptRows | None = None,
) -> ColumnStream:
    def read(start: int) -> Iterator[Block]:
        # From the start of a group, so that the dtype of a column does not depend on `start`.
        n_before = (first + start) % file.group_size
        for a, values in file.read(first + start - n_before, end, kept):
            block = Block(file.names[a : a + values.shape[1]], values)
            yield from drop_first([block], n_before)
            n_before = max(0, n_before - values.shape[1])

    def fetch(positions: list[int]) -> list[npt.NDArray[Any]]:
        found = file.take((first + j for j in positions), kept)
        return [found[first + j] for j in positions]

    names = file.names[first:end]
    if kept is not None:
        return indexed_stream(names, kept.index.size, read, fetch)
    # Means impute genotypes of the rows in use only.
    restrict = partial(_stream, file, first, end, None, None) if file.imputes else None
    return indexed_stream(names, file.n_rows, read, fetch, cut, file.samples, variants, restrict)


def distinct_names(ids: list[str], loci: Callable[[list[int]], Iterable[str]]) -> list[Hashable]:
    """Return the names of variants: their identifiers, or else their loci.

    Parameters
    ----------
    ids
        Identifiers. Those that are "." or occur more than once are replaced.
    loci
        Returns the loci of the variants at some ascending indices, chromosome:position:alleles. The
        suffixes :2, :3 and so on make them distinct.
    """
    names: list[Hashable] = [*ids]
    counts = Counter(ids)
    if len(counts) == len(ids) and "." not in counts:
        return names
    indices = [i for i, name in enumerate(ids) if name == "." or counts[name] > 1]
    taken = counts.keys() - {ids[i] for i in indices}
    for i, locus in zip(indices, loci(indices), strict=True):
        name, number = locus, 2
        while name in taken:
            name, number = f"{locus}:{number}", number + 1
        taken.add(name)
        names[i] = name
    return names
