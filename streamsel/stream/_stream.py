"""`ColumnStream`, the common type of all sources and the input of all learners."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Never

from streamsel._utils.sparse import is_sparse
from streamsel._utils.text import close_spellings
from streamsel.data.chunks import Block
from streamsel.data.columns import made_blocks
from streamsel.data.names import LazyNames
from streamsel.stream._blocks import csc_columns, drop_columns, drop_first
from streamsel.stream._parts import check_parts, split_without

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from streamsel.stream._parts import Cut, StreamPart
    from streamsel.targets.kept_rows import KeptRows

    Restrict = Callable[[KeptRows], "ColumnStream"]

# Cap on the names that a misspelt one is compared with: comparing takes microseconds for each.
_MAX_COMPARED = 20_000


class ColumnStream:
    """An iterable of (name, values) with a known size that yields columns in blocks.

    Parameters
    ----------
    blocks
        Called once for every pass; yields `streamsel.data.chunks.Block`s, also of
        `GeneratedColumns`.
    n_rows
        Observations in every column, None if unknown before the first column.
    n_columns
        Columns in the stream, None if unknown.
    reiterable
        Whether `blocks` can be called again and yields the same columns in the same order.
    take
        Fetches a few columns by name, faster than a pass over the stream.
    names
        The names of all columns in order, None if unknown before reading.
    blocks_from
        Called with n, yields the blocks from the n-th column (counted from 0) on, faster than by
        reading the columns before it.
    cut
        Makes the parts that `split` returns: called with the number of parts (None for the
        default) and the index of the first column. None if no other process can open the source.
    row_metadata
        Row metadata of the source by name, arrays of shape (n,); the first holds the row names.
    column_metadata
        Column metadata of the source by name, arrays of one length; the first holds the column
        names.
    restrict
        Returns the stream as it would be without the rows that are excluded for lack of a target;
        its blocks have all rows, or the others. None if no value depends on other rows.

    Attributes
    ----------
    n_rows, n_columns
        As passed; an unknown one is set by the first block, or by the first complete pass.
    names
        As passed, or None.
    reiterable
        As passed.
    row_metadata
        As passed; empty if there is no row metadata. It is never streamed.
    column_metadata
        As passed; empty if there is no column metadata. It describes the columns of the source:
        after `without`, `skip`, `clean` and `prune` also those that are no longer in the stream.
        Readers read it at the first access, and keep it from then on.

    Notes
    -----
    A block holds about 4 MiB at most where a source reads or copies; blocks that are views of an
    array in memory hold up to 65,536 columns. Every method except `take` returns at once; columns
    are read while the result is iterated over.

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
        reiterable: bool = True,
        take: Callable[[Sequence[Hashable]], dict[Hashable, Any]] | None = None,
        names: Sequence[Hashable] | None = None,
        blocks_from: Callable[[int], Iterable[Block]] | None = None,
        cut: Cut | None = None,
        row_metadata: Mapping[str, Any] | None = None,
        column_metadata: Mapping[str, Any] | None = None,
        restrict: Restrict | None = None,
    ) -> None:
        self.n_rows = n_rows
        self.n_columns = len(names) if n_columns is None and names is not None else n_columns
        self.reiterable = reiterable
        self.names = names
        self.row_metadata = {} if row_metadata is None else row_metadata
        self.column_metadata = {} if column_metadata is None else column_metadata
        self._blocks = blocks
        self._take = take
        self._blocks_from = blocks_from
        self._cut = cut
        self._restrict = restrict
        self._is_consumed = False

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_rows={self.n_rows}, n_columns={self.n_columns}, "
            f"reiterable={self.reiterable})"
        )

    def blocks(self, *, generated: bool = False) -> Iterator[Block]:
        """Iterate over the columns in blocks.

        Parameters
        ----------
        generated
            Whether the values of a block may be `streamsel.data.generated.GeneratedColumns`, which
            compute moments without making columns. If not, these are made, about 4 MiB at a time.

        Returns
        -------
        Iterator of blocks; all columns of a block have one dtype, and the order is the stream's. A
        block is read when it is requested.

        Raises
        ------
        RuntimeError
            If the stream can be read only once, and has been.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel.stream import iter_array
        >>> stream = iter_array(np.ones((4, 3)), names=["a", "b", "c"])
        >>> for block in stream.blocks():
        ...     print(block.names, block.values.shape)
        ['a', 'b', 'c'] (4, 3)
        """
        if self._is_consumed and not self.reiterable:
            raise RuntimeError(
                "Expected a stream that can still be read. Got: a one-shot stream that has been "
                "read.\nHint: create it again, or pass iter_columns a function that returns a new "
                "iterator, so that the stream can be read more than once."
            )
        self._is_consumed = True
        blocks = self._track_size(self._blocks())
        if generated:
            return blocks
        return (made for block in blocks for made in made_blocks(block))

    def __iter__(self) -> Iterator[tuple[Hashable, Any]]:
        """Yield (name, values) one column at a time; values are (n,), or CSC (n, 1) if sparse."""
        for names, values, _ in self.blocks():
            if is_sparse(values):
                for j, name in enumerate(names):
                    yield name, csc_columns(values, j, j + 1)
            else:
                yield from zip(names, values.T, strict=True)

    def take(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch a few columns by name, reading as little as possible.

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
            If the stream has no column of that name; the message suggests similar names.

        Notes
        -----
        Files and arrays fetch only these columns. Other sources are read until all are found,
        which consumes a one-shot stream.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel.stream import iter_array
        >>> stream = iter_array(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), names=["a", "b", "c"])
        >>> stream.take(["c", "a"])
        {'c': array([3., 6.]), 'a': array([1., 4.])}
        """
        requested = _requested_names(names)
        if self.names is not None:
            find_indices(self.names, requested)
        if self._take is not None:
            return self._take(requested)
        found: dict[Hashable, Any] = {}
        missing = set(requested)
        seen: list[Hashable] = []
        for block in self.blocks() if requested else ():
            for j, name in enumerate(block.names):
                if name in missing:
                    missing.remove(name)
                    found[name] = _copy_column(block.values, j)
            if not missing:
                break
            seen.extend(islice(block.names, max(0, _MAX_COMPARED - len(seen))))
        if missing:
            raise_unknown_names([name for name in requested if name in missing], seen)
        return {name: found[name] for name in requested}

    def without(self, names: Iterable[Hashable]) -> ColumnStream:
        """Return the stream without the columns of these names.

        Parameters
        ----------
        names
            Names to exclude. If the names of the stream are unknown before reading, `n_columns`
            assumes that all of them occur.

        Raises
        ------
        TypeError
            If `names` is a single string, or one of them is not hashable.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel.stream import iter_array
        >>> stream = iter_array(np.ones((4, 3)), names=["a", "b", "c"])
        >>> stream.without(["b"]).names
        ['a', 'c']
        """
        excluded = frozenset(_requested_names(names))
        kept = None
        n_columns = self.n_columns
        if self.names is not None:
            kept = [name for name in self.names if name not in excluded]
            n_columns = len(kept)
        elif n_columns is not None:
            n_columns = max(0, n_columns - len(excluded))

        def take(requested: Sequence[Hashable]) -> dict[Hashable, Any]:
            if refused := [name for name in requested if name in excluded]:
                raise_unknown_names(refused, kept or ())
            return self.take(requested)

        cut = self._cut
        return ColumnStream(
            lambda: (
                part
                for block in self.blocks(generated=True)
                for part in _drop_columns(block, excluded)
            ),
            n_rows=self.n_rows,
            n_columns=n_columns,
            reiterable=self.reiterable,
            take=take,
            names=kept,
            cut=None if cut is None else partial(split_without, cut, self.names, excluded),
            row_metadata=self.row_metadata,
            column_metadata=self.column_metadata,
            restrict=derived_restrict(self, lambda stream: stream.without(excluded)),
        )

    def skip(self, n: int) -> ColumnStream:
        """Return the stream without its first n columns (to resume a long run).

        Parameters
        ----------
        n
            Number of columns to skip. Arrays and column-wise files do not read them.

        Raises
        ------
        ValueError
            If n is negative.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel.stream import iter_array
        >>> stream = iter_array(np.ones((4, 3)), names=["a", "b", "c"])
        >>> [name for name, _ in stream.skip(2)]
        ['c']
        """
        if n < 0:
            raise ValueError(f"Expected n, the number of columns to skip, to be >= 0. Got: {n}.")
        blocks_from, cut = self._blocks_from, self._cut
        rest = None if self.names is None else self.names[n:]
        return ColumnStream(
            (lambda: drop_first(self.blocks(generated=True), n))
            if blocks_from is None
            else (lambda: blocks_from(n)),
            n_rows=self.n_rows,
            n_columns=None if self.n_columns is None else max(0, self.n_columns - n),
            reiterable=self.reiterable,
            take=None if rest is None else self._take,
            names=rest,
            blocks_from=None if blocks_from is None else (lambda m: blocks_from(n + m)),
            cut=None if cut is None else (lambda parts, start: cut(parts, n + start)),
            row_metadata=self.row_metadata,
            column_metadata=self.column_metadata,
            restrict=derived_restrict(self, lambda stream: stream.skip(n)),
        )

    def split(self, parts: int | None = None) -> list[StreamPart]:
        """Split the stream into parts that other processes can open and read.

        Parameters
        ----------
        parts
            Maximum number of parts; by default parts of about 128 MB each.

        Returns
        -------
        Parts; their columns, in order, are those of the stream.

        Raises
        ------
        ValueError
            If `parts` is below 1; if the columns are in memory or depend on preceding columns, so
            that no other process can open the stream at an arbitrary column.

        Notes
        -----
        Streams of files of any format can be split, also after `without`, `skip` and `clean`.
        Parts hold about equally many bytes; their limits do not depend on the machine. Text with
        one variable per line is cut at line starts, and the number of columns of a part is unknown
        before it is read; a gzipped file is one part. Text with one observation per line is
        transposed again by each process that reads a part of it.

        `on_bad` of `iter_csv` and `report` of `clean` travel with the parts, which can
        be pickled if these can: they are called in the process that reads the part.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> from streamsel.stream import iter_npy
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "x.npy")
        ...     np.save(path, np.ones((4, 3)))
        ...     parts = iter_npy(path).split(2)
        ...     [[name for name, _ in part.open()] for part in parts]
        [[0, 1], [2]]
        """
        check_parts(parts)
        if self._cut is None:
            raise ValueError(
                "Expected a stream that another process can open at any column. Got: one that is "
                "in memory, or whose columns depend on preceding ones.\n"
                "Hint: split a stream of a file, such as .npy or Parquet, before prune and "
                "with_probes."
            )
        return self._cut(parts, 0)

    def _track_size(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield the blocks, and set the size of the stream from them."""
        n_columns = 0
        for block in blocks:
            if self.n_rows is None:
                self.n_rows = int(block.values.shape[0])
            n_columns += len(block.names)
            yield block
        if self.n_columns is None:
            self.n_columns = n_columns


def restricted(stream: ColumnStream, kept: KeptRows | None) -> ColumnStream:
    """Return a stream whose values do not depend on excluded rows, such as those imputed by means.

    Parameters
    ----------
    stream
        A stream of all rows, or of the rows in use, which is returned as it is.
    kept
        The rows in use; None for all.

    Returns
    -------
    A stream of the same columns. Its blocks have the rows in use, or all rows if no value depends
    on other rows.
    """
    if kept is None or stream._restrict is None or stream.n_rows not in (None, kept.n):
        return stream
    return stream._restrict(kept)


def derived_restrict(
    source: ColumnStream, derive: Callable[[ColumnStream], ColumnStream]
) -> Restrict | None:
    """Return the argument `restrict` of a stream that a function derives from another one."""
    if source._restrict is None:
        return None
    return lambda kept: derive(restricted(source, kept))


def indexed_stream(
    names: Sequence[Hashable],
    n_rows: int,
    read: Callable[[int], Iterator[Block]],
    fetch: Callable[[list[int]], Iterable[Any]],
    cut: Cut | None = None,
    row_metadata: Mapping[str, Any] | None = None,
    column_metadata: Mapping[str, Any] | None = None,
    restrict: Restrict | None = None,
) -> ColumnStream:
    """Create a stream of a source with known names that can start at any column.

    Parameters
    ----------
    names
        All names, in order.
    n_rows
        Observations.
    read
        Yields the blocks from a column index on.
    fetch
        Returns the values of the columns at some indices, in their order.
    cut
        Makes the parts of the stream.
    row_metadata, column_metadata
        Row metadata and column metadata.
    restrict
        As in `ColumnStream`.
    """

    def take(requested: Sequence[Hashable]) -> dict[Hashable, Any]:
        return dict(zip(requested, fetch(find_indices(names, requested)), strict=True))

    return ColumnStream(
        lambda: read(0),
        n_rows=n_rows,
        names=names,
        take=take,
        blocks_from=read,
        cut=cut,
        row_metadata=row_metadata,
        column_metadata=column_metadata,
        restrict=restrict,
    )


def find_indices(names: Sequence[Hashable], requested: Sequence[Hashable]) -> list[int]:
    """Return the indices of the wanted names among all names, or raise KeyError."""
    if len(requested) == 0:
        return []
    requested_set = set(requested)
    found = {name: i for i, name in enumerate(names) if name in requested_set}
    if len(found) < len(requested_set):
        raise_unknown_names([name for name in requested if name not in found], names)
    return [found[name] for name in requested]


def raise_unknown_names(missing: Sequence[Hashable], known: Iterable[Hashable]) -> Never:
    """Raise a KeyError for names that a source does not have, with similar names as a hint."""
    known = list(islice(known, _MAX_COMPARED))
    texts = [name for name in known if isinstance(name, str)]
    close = [
        match
        for name in missing[:3]
        if isinstance(name, str)
        for match in close_spellings(name, texts)
    ]
    if close:
        hint = "did you mean " + " or ".join(map(repr, dict.fromkeys(close))) + "?"
    else:
        hint = "its columns are " + ", ".join(map(repr, known[:5]))
        hint += ", ..." if len(known) > 5 else "."
    listed = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
    raise KeyError(f"Expected names of columns in the stream, got: {listed}. Hint: {hint}")


def _requested_names(names: Iterable[Hashable]) -> list[Hashable]:
    """Return the distinct names in order; refuse a string, which would be split into letters."""
    if isinstance(names, str):
        raise TypeError(f"Expected names to be a list. Got: {names!r}.\nHint: write [{names!r}].")
    return list(dict.fromkeys(names))


def _copy_column(values: Any, j: int) -> Any:
    """Copy a column of a block, so that the block can be freed."""
    return csc_columns(values, j, j + 1).copy() if is_sparse(values) else values[:, j].copy()


def _drop_columns(block: Block, excluded: frozenset[Hashable]) -> Iterator[Block]:
    if isinstance(block.names, LazyNames):
        found = (block.names.find(name) for name in excluded)
        return drop_columns(block, sorted(j for j in found if j is not None))
    return drop_columns(block, [j for j, name in enumerate(block.names) if name in excluded])
