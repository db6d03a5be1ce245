"""A stream of columns: the one thing that every source is and every learner takes."""

from __future__ import annotations

import difflib
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Never

from streamsel.columns import Block
from streamsel.stream._blocks import csc_columns, cut_out, drop_first, is_sparse
from streamsel.stream._split import check_parts, cut_without

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from streamsel.stream._split import Cut, Part

# A misspelt name is compared with this many names at most: difflib takes microseconds for each.
_MAX_COMPARED = 20_000


class ColumnStream:
    """An iterable of (name, values) that knows its size and how to yield blocks.

    Parameters
    ----------
    blocks
        Called once for every pass; yields `streamsel.columns.Block`s.
    n_rows
        Observations in every column, None if unknown before the first column.
    n_columns
        Columns in the stream, None if unknown.
    rereadable
        Whether `blocks` may be called again and then yields the same columns in the same order.
    take
        A faster way to fetch a few columns by name than reading the whole stream.
    names
        The names of all columns in order, where they are known before reading.
    blocks_from
        A faster way to reach the n-th column (counted from 0) than reading those before it: called
        with n, it yields the blocks from there on.
    cut
        How `split` makes parts of it: called with the number of parts (None for as many as it
        takes) and with the first column that is wanted. None where no other process can open it.
    beside
        What the source says of the rows beside its columns, by name: values (n,) each, the first
        of them what the rows are called.

    Attributes
    ----------
    n_rows, n_columns
        As given; what was unknown is filled in by the first block and by the first whole pass.
    names
        As given, or None.
    rereadable
        As given.
    beside
        As given; empty where there is nothing. It is never streamed.

    Notes
    -----
    A block holds a bounded number of bytes (about 4 MiB) where a source reads or copies; blocks
    that are views of an array in memory hold up to 65,536 columns. Every method but `take`
    returns at once; the reading is done by the loop over the result.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel.stream import iter_array
    >>> stream = iter_array(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), names=["a", "b", "c"])
    >>> for name, values in stream.without(["b"]):
    ...     print(name, values)
    a [1. 4.]
    c [3. 6.]
    >>> stream.take(["c"])
    {'c': array([3., 6.])}
    """

    def __init__(
        self,
        blocks: Callable[[], Iterable[Block]],
        *,
        n_rows: int | None = None,
        n_columns: int | None = None,
        rereadable: bool = True,
        take: Callable[[Sequence[Hashable]], dict[Hashable, Any]] | None = None,
        names: Sequence[Hashable] | None = None,
        blocks_from: Callable[[int], Iterable[Block]] | None = None,
        cut: Cut | None = None,
        beside: Mapping[str, Any] | None = None,
    ) -> None:
        self.n_rows = n_rows
        self.n_columns = len(names) if n_columns is None and names is not None else n_columns
        self.rereadable = rereadable
        self.names = names
        self.beside = {} if beside is None else beside
        self._blocks = blocks
        self._take = take
        self._blocks_from = blocks_from
        self._cut = cut
        self._spent = False

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_rows={self.n_rows}, n_columns={self.n_columns}, "
            f"rereadable={self.rereadable})"
        )

    def blocks(self) -> Iterator[Block]:
        """Yield the columns, block by block.

        Returns
        -------
        Iterator of blocks; all columns of a block have one dtype, and the order is the stream's.

        Raises
        ------
        RuntimeError
            If the stream can be read only once, and has been.
        """
        if self._spent and not self.rereadable:
            raise RuntimeError(
                "Expected a stream of columns that is still to be read, got: a one-shot stream "
                "that has been read. Hint: make it anew, or hand iter_columns a function that "
                "returns a fresh iterator, and it can be read again."
            )
        self._spent = True
        return self._observed(self._blocks())

    def __iter__(self) -> Iterator[tuple[Hashable, Any]]:
        """Yield (name, values) one column at a time; values are (n,), or CSC (n, 1) if sparse."""
        for names, values in self.blocks():
            if is_sparse(values):
                for j, name in enumerate(names):
                    yield name, csc_columns(values, j, j + 1)
            else:
                yield from zip(names, values.T, strict=True)

    def take(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch a few columns by name, reading no more than needed.

        Parameters
        ----------
        names
            Names of columns.

        Returns
        -------
        Name to values, in the order of `names`.

        Raises
        ------
        KeyError
            If the stream has no column of that name; it says which names come close.

        Notes
        -----
        Files and arrays fetch these columns alone. Other sources are read until all are found; a
        one-shot stream is then spent.
        """
        wanted = _names_asked_for(names)
        if self.names is not None:
            find_positions(self.names, wanted)
        if self._take is not None:
            return self._take(wanted)
        found: dict[Hashable, Any] = {}
        missing = set(wanted)
        seen: list[Hashable] = []
        for block in self.blocks() if wanted else ():
            for j, name in enumerate(block.names):
                if name in missing:
                    missing.remove(name)
                    found[name] = _own_column(block.values, j)
            if not missing:
                break
            seen.extend(islice(block.names, max(0, _MAX_COMPARED - len(seen))))
        if missing:
            raise_missing([name for name in wanted if name in missing], seen)
        return {name: found[name] for name in wanted}

    def without(self, names: Iterable[Hashable]) -> ColumnStream:
        """Return the same stream but for the columns of these names.

        Parameters
        ----------
        names
            Names to leave out. Where the stream does not know its names before reading, `n_columns`
            takes it that all of them occur.
        """
        left_out = frozenset(_names_asked_for(names))
        kept = None
        n_columns = self.n_columns
        if self.names is not None:
            kept = [name for name in self.names if name not in left_out]
            n_columns = len(kept)
        elif n_columns is not None:
            n_columns = max(0, n_columns - len(left_out))

        def take(wanted: Sequence[Hashable]) -> dict[Hashable, Any]:
            if refused := [name for name in wanted if name in left_out]:
                raise_missing(refused, kept or ())
            return self.take(wanted)

        cut = self._cut
        return ColumnStream(
            lambda: (part for block in self.blocks() for part in _without(block, left_out)),
            n_rows=self.n_rows,
            n_columns=n_columns,
            rereadable=self.rereadable,
            take=take,
            names=kept,
            cut=None if cut is None else partial(cut_without, cut, self.names, left_out),
            beside=self.beside,
        )

    def skip(self, n: int) -> ColumnStream:
        """Return the same stream but for its first n columns (to resume a long run).

        Parameters
        ----------
        n
            Columns not yielded. Arrays and column-wise files do not read them either.
        """
        if n < 0:
            raise ValueError(f"Expected a number of columns to skip of 0 or more, got: {n}.")
        jump, cut = self._blocks_from, self._cut
        rest = None if self.names is None else self.names[n:]
        return ColumnStream(
            (lambda: drop_first(self.blocks(), n)) if jump is None else (lambda: jump(n)),
            n_rows=self.n_rows,
            n_columns=None if self.n_columns is None else max(0, self.n_columns - n),
            rereadable=self.rereadable,
            take=None if rest is None else self._take,
            names=rest,
            blocks_from=None if jump is None else (lambda m: jump(n + m)),
            cut=None if cut is None else (lambda parts, start: cut(parts, n + start)),
            beside=self.beside,
        )

    def split(self, parts: int | None = None) -> list[Part]:
        """Cut the stream into parts that other processes can open and read.

        Parameters
        ----------
        parts
            How many there are to be, at most; by default as many as hold about 128 MB each.

        Returns
        -------
        Parts; their columns, in order, are those of the stream.

        Raises
        ------
        ValueError
            For a number of parts below 1; if the columns are in memory, or follow from those
            before them, so that no other process can open them from somewhere on.

        Notes
        -----
        Streams of files of any format can be split, and what `without`,
        `skip` and `screen` make of them. Parts hold about equally many bytes; where they end does
        not depend on the machine. Text with one variable a line is cut where lines begin, and how
        many columns a part has is not known before it is read; if gzipped it is one part. Text
        with one observation a line is written by columns anew in each process that reads of it.

        `on_bad` of `iter_lines` and `report` of `screen` go with the parts, which can be pickled if
        these can: they are called where a part is read.
        """
        check_parts(parts)
        if self._cut is None:
            raise ValueError(
                "Expected a stream of columns that another process can open from any column on. "
                "Got: one of what is in memory, or of what is made of the columns before.\n"
                "Hint: split a stream of a file, such as of a .npy or Parquet file, before prune "
                "and with_dummies."
            )
        return self._cut(parts, 0)

    def _observed(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Pass the blocks on, and learn the size of the stream from them."""
        n_columns = 0
        for block in blocks:
            if self.n_rows is None:
                self.n_rows = int(block.values.shape[0])
            n_columns += len(block.names)
            yield block
        if self.n_columns is None:
            self.n_columns = n_columns


def indexed_stream(
    names: Sequence[Hashable],
    n_rows: int,
    read: Callable[[int], Iterator[Block]],
    fetch: Callable[[list[int]], Iterable[Any]],
    cut: Cut | None = None,
    beside: Mapping[str, Any] | None = None,
) -> ColumnStream:
    """Make a stream of a source that knows its names and can start at any column.

    Parameters
    ----------
    names
        All names, in order.
    n_rows
        Observations.
    read
        Yields the blocks from a position on.
    fetch
        Returns the values of the columns at some positions, in their order.
    cut
        Makes parts of it.
    beside
        What is said of the rows.
    """

    def take(wanted: Sequence[Hashable]) -> dict[Hashable, Any]:
        return dict(zip(wanted, fetch(find_positions(names, wanted)), strict=True))

    return ColumnStream(
        lambda: read(0),
        n_rows=n_rows,
        names=names,
        take=take,
        blocks_from=read,
        cut=cut,
        beside=beside,
    )


def check_names(names: Any, n_columns: int) -> Sequence[Hashable]:
    """Return the names of the columns of an array: a range, or a list of distinct hashables."""
    if names is None:
        return range(n_columns)
    if isinstance(names, str) or is_sparse(names):
        got = f"the string {names!r}" if isinstance(names, str) else type(names).__name__
        raise TypeError(f"Expected a sequence of names, got: {got}.")
    if isinstance(names, range) and len(names) == n_columns:
        return names
    try:
        # tolist() makes plain Python objects of the entries of arrays and pandas indexes.
        result: list[Hashable] = list(names.tolist() if hasattr(names, "tolist") else names)
    except (TypeError, ValueError, IndexError, NotImplementedError) as error:
        raise TypeError(
            f"Expected a sequence of names, got: {type(names).__name__} ({error})."
        ) from error
    if len(result) != n_columns:
        raise ValueError(
            f"Expected {n_columns} names, one for each column, got: {len(result)} names."
        )
    check_distinct(result)
    return result


def check_distinct(names: Sequence[Hashable]) -> None:
    """Raise ValueError if a name occurs twice, and say which."""
    try:
        seen = set(names)
    except TypeError as error:
        raise TypeError(
            f"Expected names that can be hashed, got: {error}. Hint: tuples can be, lists cannot."
        ) from error
    if len(seen) == len(names):
        return
    repeated = []
    for name in names:
        if name in seen:
            seen.remove(name)
        elif name not in repeated:
            repeated.append(name)
    listed = ", ".join(map(repr, repeated[:5])) + (", ..." if len(repeated) > 5 else "")
    raise ValueError(
        f"Expected distinct names of columns, got: {listed} more than once. "
        "Hint: rename or drop the repeated columns."
    )


def find_positions(names: Sequence[Hashable], wanted: Sequence[Hashable]) -> list[int]:
    """Return where the wanted names stand among all names, or raise KeyError."""
    if len(wanted) == 0:
        return []
    sought = set(wanted)
    found = {name: i for i, name in enumerate(names) if name in sought}
    if len(found) < len(sought):
        raise_missing([name for name in wanted if name not in found], names)
    return [found[name] for name in wanted]


def raise_missing(missing: Sequence[Hashable], known: Iterable[Hashable]) -> Never:
    """Raise the KeyError for names that a source does not have, with those that come close."""
    known = list(islice(known, _MAX_COMPARED))
    texts = [name for name in known if isinstance(name, str)]
    close = [
        match
        for name in missing[:3]
        if isinstance(name, str)
        for match in difflib.get_close_matches(name, texts)
    ]
    if close:
        hint = "did you mean " + " or ".join(map(repr, dict.fromkeys(close))) + "?"
    else:
        hint = "its columns are " + ", ".join(map(repr, known[:5]))
        hint += ", ..." if len(known) > 5 else "."
    listed = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
    raise KeyError(f"Expected names of columns in the stream, got: {listed}. Hint: {hint}")


def _names_asked_for(names: Iterable[Hashable]) -> list[Hashable]:
    """Return the distinct names in their order; a lone string is a mistake, not its letters."""
    if isinstance(names, str):
        raise TypeError(f"Expected a list of names, got: {names!r}. Hint: write [{names!r}].")
    return list(dict.fromkeys(names))


def _own_column(values: Any, j: int) -> Any:
    """Copy a column out of a block, so that the block can go."""
    return csc_columns(values, j, j + 1).copy() if is_sparse(values) else values[:, j].copy()


def _without(block: Block, left_out: frozenset[Hashable]) -> Iterator[Block]:
    """Yield what remains of a block without the columns of some names, in parts."""
    return cut_out(block, [j for j, name in enumerate(block.names) if name in left_out])
