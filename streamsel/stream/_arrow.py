"""Streams of Arrow columns: Parquet files, IPC (Feather) files, tables in memory."""

from __future__ import annotations

import base64
import functools
import itertools
import os
import re
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from streamsel._utils.optional import arrow_errors, import_pyarrow
from streamsel.data.chunks import Block
from streamsel.data.names import expect_distinct_names
from streamsel.stream._blocks import (
    BLOCK_BYTES,
    MAX_COLUMNS,
    columns_per_block,
    gather_blocks,
    prefetch,
    storable,
)
from streamsel.stream._ipc import IpcFile
from streamsel.stream._parts import Stamp, cached_reader, split_columns
from streamsel.stream._remote import is_url, open_binary
from streamsel.stream._stream import ColumnStream, find_indices, indexed_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Sequence

    from streamsel.stream._ipc_numbers import NumberColumns
    from streamsel.stream._parts import Cut, StreamPart

# Where pyarrow stores the types of the columns that it wrote, if Parquet lacks them.
_WRITTEN_SCHEMA = b"ARROW:schema"
# The name under which pandas stores an unnamed index.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


def iter_parquet(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None
) -> ColumnStream:
    """Stream the columns of a Parquet file that may exceed memory.

    Parameters
    ----------
    path
        Parquet file, or its URL.
    columns
        Names of the columns to read, all by default; they come in the order of the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a Parquet file, is damaged, or two columns have the same name.
    KeyError
        If it lacks one of `columns`; the message suggests similar names.
    ImportError
        If pyarrow is not installed: ``pip install "streamsel[io]"``.

    Notes
    -----
    The footer is read once, when the function is called; it takes about 2 kB of memory for every
    column of every row group, so wide files are best written with few row groups. Columns are
    then read about 4 MiB at a time, or one column if that is more; with a second core the next
    block is prefetched. float64, float32, int8 and uint8 keep their dtype, booleans become uint8,
    other numbers float64; nulls become NaN in a float column. Text, dates and nested values are
    passed on as object columns, which the learner rejects with the column's name; categories are
    labels, also those of numbers that pandas has stored. An unnamed index that pandas has stored is
    excluded.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x.parquet")
    ...     pl.DataFrame({"a": [1.5, 2.5], "b": [0, None]}).write_parquet(path)
    ...     for name, values in iter_parquet(path):
    ...         print(name, values)
    a [1.5 2.5]
    b [ 0. nan]
    """
    import_pyarrow()
    stamp = Stamp.of(path)
    file = ParquetFile(path)
    fields = _choose_fields(file, columns)
    cut = _splitter(path, stamp, file.n_rows, _select(file.sizes, fields), fields, _parquet_part)
    return _parquet_stream(file, fields, cut)


def _is_utf8(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is valid UTF-8, as Arrow requires; file systems allow others."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _parquet_part(path: str, fields: Sequence[int]) -> ColumnStream:
    return _parquet_stream(cached_reader(ParquetFile, path), fields)


@functools.cache
def _parquet_reader() -> Any:
    """Return the class of pyarrow that opens a Parquet file, for columns by index."""

    class ParquetReader(import_pyarrow().parquet.ParquetFile):  # type: ignore[misc]
        def _build_nested_paths(self) -> dict[str, list[int]]:
            # Only columns by name need them. Half of the time to open a wide file.
            return {}

    return ParquetReader


class ParquetFile:
    """An open Parquet file.

    Attributes
    ----------
    sizes
        Bytes per entry of each field in a block, 0 for non-numeric fields.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.error_context = partial(arrow_errors, "Parquet", path)
        with self.error_context():
            # Few files have checksums; verifying them takes an eighth of the decoding time.
            source: Any = path
            if is_url(path) or not _is_utf8(path):
                source = open_binary(path, anywhere=True)
                weakref.finalize(self, source.close)
            self._file = _parquet_reader()(
                source, pre_buffer=False, page_checksum_verification=True
            )
            self.schema = self._file.schema_arrow
            self.names: list[str] = self.schema.names
            self._categories = _restored_categories(self._file.metadata.metadata, self.schema)
        self.n_rows = self._file.metadata.num_rows
        self.sizes = _stored_sizes(self.schema, self._categories)
        self._leaves = _leaf_ranges(self.schema, self._file.metadata.num_columns)
        self._read_lock = threading.Lock()

    def table(self, fields: Sequence[int]) -> Any:
        """Return a table of the fields at these indices."""
        # By index: by name, pyarrow would take "x.1" as a part of "x", and read both.
        indices = [leaf for k in fields for leaf in self._leaves[k]]
        # `take` may run while a thread prefetches.
        with self._read_lock:
            table = self._file.reader.read_all(column_indices=indices, use_threads=False)
        if table.num_rows != self.n_rows:
            raise ValueError(
                f"a column has {table.num_rows} entries, but {self.n_rows} according to the footer"
            )
        for j, k in enumerate(fields if self._categories else ()):
            if k in self._categories:
                table = table.set_column(j, self.names[k], table.column(j).dictionary_encode())
        return table


def _parquet_stream(
    file: ParquetFile, fields: Sequence[int], cut: Cut | None = None
) -> ColumnStream:
    pa, n = import_pyarrow(), file.n_rows
    names = [file.names[i] for i in fields]
    sizes = _select(file.sizes, fields)
    before = [0, *itertools.accumulate(sizes)]

    def read(start: int) -> Iterator[Block]:
        a = start
        while a < len(fields):
            b = a + 1
            # The size of text is unknown: it is read one column at a time.
            while b < len(fields) and sizes[a] and sizes[b] and fits(a, b):
                b += 1
            with file.error_context():
                yield from _blocks(file.table(fields[a:b]), names[a:b])
            a = b
        # Not after each group: allocating the memory again takes longer than decoding into it.
        pa.default_memory_pool().release_unused()

    def fits(a: int, b: int) -> bool:
        return (before[b + 1] - before[a]) * n <= BLOCK_BYTES and b - a < MAX_COLUMNS

    def fetch(positions: list[int]) -> Iterator[npt.NDArray[Any]]:
        with file.error_context():
            for k in positions:
                yield _to_numpy(file.table([fields[k]]).column(0))

    return indexed_stream(names, n, lambda start: prefetch(read(start)), fetch, cut)


def iter_ipc(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> ColumnStream:
    """Stream the columns of an Arrow IPC (Feather) file that may exceed memory.

    Parameters
    ----------
    path
        Arrow IPC file, or its URL: the file format, not the streaming format.
    columns
        Names of the columns to read, all by default; they come in the order of the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not an Arrow IPC file, is damaged, or two columns have the same name.
    KeyError
        If it lacks one of `columns`; the message suggests similar names.
    ImportError
        If pyarrow is not installed: ``pip install "streamsel[io]"``.

    Notes
    -----
    The file is memory-mapped, and its pages are released after each block of about 4 MiB (on
    POSIX platforms). A compressed file is also decompressed about 4 MiB at a time if it has one
    record batch, of numbers of one type without nulls; otherwise about 16 MiB at a time. Dtypes,
    nulls and non-numeric columns are treated as by `iter_parquet`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x.arrow")
    ...     pl.DataFrame({"a": [1.5, 2.5], "b": [0, None]}).write_ipc(path)
    ...     for name, values in iter_ipc(path, columns=["b"]):
    ...         print(name, values)
    b [ 0. nan]
    """
    import_pyarrow()
    stamp = Stamp.of(path)
    file = IpcFile(path)
    fields = _choose_fields(file, columns)
    sizes = _select(_stored_sizes(file.schema), fields)
    cut = _splitter(path, stamp, file.n_rows, sizes, fields, _ipc_part)
    return _ipc_stream(file, fields, cut)


def _ipc_part(path: str, fields: Sequence[int]) -> ColumnStream:
    return _ipc_stream(cached_reader(IpcFile, path), fields)


def _ipc_stream(file: IpcFile, fields: Sequence[int], cut: Cut | None = None) -> ColumnStream:
    names, numbers = [file.names[i] for i in fields], file.numbers

    def read_numbers(columns: NumberColumns, start: int) -> Iterator[Block]:
        width = columns_per_block(columns.n_rows, columns.dtype.itemsize)
        for a in range(start, len(fields), width):
            with file.error_context():
                values = columns.columns(fields[a : a + width])
            yield Block(names[a : a + width], values)
            file.release_pages()

    def read(start: int) -> Iterator[Block]:
        if numbers is not None:
            yield from read_numbers(numbers, start)
            return
        for a in range(start, len(fields), file.group_width):
            b = min(a + file.group_width, len(fields))
            with file.error_context():
                for block in _blocks(file.table(list(fields[a:b])), names[a:b]):
                    yield block
                    file.release_pages()

    def fetch(positions: list[int]) -> list[npt.NDArray[Any]]:
        ordered = sorted(fields[k] for k in positions)
        with file.error_context():
            if numbers is not None:
                return [numbers.columns([fields[k]])[:, 0].copy() for k in positions]
            group = file.table(ordered)
            return [_to_numpy(group.column(ordered.index(fields[k]))).copy() for k in positions]

    def blocks_from(start: int) -> Iterator[Block]:
        # Views of a mapped file need no decoding, so that prefetching would gain nothing.
        return read(start) if file.is_viewed else prefetch(read(start))

    return indexed_stream(names, file.n_rows, blocks_from, fetch, cut)


def table_stream(table: Any) -> ColumnStream:
    """Stream the columns of a pyarrow.Table."""
    names = table.column_names
    expect_distinct_names(names)

    def read(start: int) -> Iterator[Block]:
        return _blocks(table.select(range(start, len(names))), names[start:])

    def fetch(positions: list[int]) -> list[npt.NDArray[Any]]:
        return [_to_numpy(table.column(j)) for j in positions]

    return indexed_stream(names, table.num_rows, read, fetch)


def _splitter(
    path: str | os.PathLike[str],
    stamp: Stamp,
    n_rows: int,
    sizes: bytes,
    fields: Sequence[int],
    open_part: Callable[[str, Sequence[int]], ColumnStream],
) -> Cut:
    """Return the splitter of some fields of a file, which does not keep it open.

    Parameters
    ----------
    path, stamp
        The file, and its state.
    n_rows
        Number of rows.
    sizes
        Bytes per entry of each field, 0 for non-numeric ones.
    fields
        Indices of the fields.
    open_part
        Opens the fields of some indices.
    """

    def opener(a: int, b: int) -> partial[ColumnStream]:
        indices = fields[a:b]
        is_contiguous = indices[-1] - indices[0] == b - a - 1
        run = range(indices[0], indices[-1] + 1)
        return partial(open_part, stamp.path, run if is_contiguous else tuple(indices))

    def cut(parts: int | None, start: int) -> list[StreamPart]:
        # Non-numeric entries are assumed to be as long as numbers.
        widths = np.frombuffer(sizes, dtype=np.uint8).astype(np.int64)
        widths[widths == 0] = 8
        before = [0, *np.cumsum(np.maximum(1, n_rows * widths)).tolist()]
        return split_columns(path, (stamp,), before, opener, parts, start)

    return cut


def _choose_fields(file: ParquetFile | IpcFile, columns: Sequence[str] | None) -> Sequence[int]:
    """Return the indices of the fields to read, in the order of the file."""
    names = file.names
    expect_distinct_names(names)
    if columns is not None:
        if isinstance(columns, str):
            raise TypeError(
                f"Expected columns to be a list. Got: {columns!r}.\nHint: columns=[{columns!r}]."
            )
        return sorted(set(find_indices(names, columns)))
    if b"pandas" in (file.schema.metadata or {}):
        return [i for i, name in enumerate(names) if not _PANDAS_INDEX.fullmatch(name)]
    return range(len(names))


def _leaf_ranges(schema: Any, n_leaves: int) -> list[range]:
    """Return the Parquet columns of every field: several if it is nested."""
    if n_leaves == len(schema):
        return [range(i, i + 1) for i in range(n_leaves)]
    ranges = []
    start = 0
    for field_type in schema.types:
        stop = start + _count_leaves(field_type)
        ranges.append(range(start, stop))
        start = stop
    return ranges


def _count_leaves(arrow_type: Any) -> int:
    pa = import_pyarrow()
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _count_leaves(arrow_type.storage_type)
    if not pa.types.is_nested(arrow_type):
        return 1
    children: Iterator[Any] = (arrow_type.field(i) for i in range(arrow_type.num_fields))
    return sum(_count_leaves(child.type) for child in children)


def _restored_categories(metadata: Any, schema: Any) -> frozenset[int]:
    """Return the indices of categories of pandas that Parquet stores as numbers, dates or others.

    pyarrow restores categories of text by itself.

    Parameters
    ----------
    metadata
        Metadata of the file; None for none.
    schema
        The types that pyarrow reads.
    """
    written = (metadata or {}).get(_WRITTEN_SCHEMA)
    # To decode it takes a sixth of the time to open a wide file, so only if pandas had categories.
    if written is None or b'"categorical"' not in metadata.get(b"pandas", b""):
        return frozenset()
    pa = import_pyarrow()
    original = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(written)))
    if original.equals(schema) or len(original) != len(schema):
        return frozenset()
    is_dictionary = pa.types.is_dictionary
    pairs = enumerate(zip(original.types, schema.types, strict=True))
    return frozenset(k for k, (was, now) in pairs if is_dictionary(was) and not is_dictionary(now))


def _stored_sizes(schema: Any, categories: Collection[int] = ()) -> bytes:
    """Return the bytes per entry of each field in a block, 0 for categories and non-numbers."""
    arrow_types = schema.types
    known = {arrow_type.id: _stored_size(arrow_type) for arrow_type in _distinct(arrow_types)}
    sizes = bytearray(known[arrow_type.id] for arrow_type in arrow_types)
    for k in categories:
        sizes[k] = 0
    return bytes(sizes)


def _select(sizes: bytes, fields: Sequence[int]) -> bytes:
    """Return the sizes of the fields at these indices."""
    if isinstance(fields, range):
        return sizes[fields.start : fields.stop]
    return bytes([sizes[i] for i in fields])


def _stored_size(arrow_type: Any) -> int:
    types = import_pyarrow().types
    if types.is_boolean(arrow_type) or types.is_int8(arrow_type) or types.is_uint8(arrow_type):
        return 1
    if types.is_float32(arrow_type):
        return 4
    checks: tuple[Callable[[Any], bool], ...] = (
        types.is_floating,
        types.is_integer,
        types.is_decimal,
    )
    return 8 if any(check(arrow_type) for check in checks) else 0


def _distinct(arrow_types: Sequence[Any]) -> list[Any]:
    """Return the distinct types: a wide file has far more columns than types."""
    return list({arrow_type.id: arrow_type for arrow_type in arrow_types}.values())


def _blocks(table: Any, names: Sequence[Hashable]) -> Iterator[Block]:
    """Convert a table to blocks, by matrices if its columns are numbers of one type."""
    kinds = _distinct(table.schema.types)
    size = _stored_size(kinds[0]) if len(kinds) == 1 else 0
    width = columns_per_block(table.num_rows, size or 8)
    if not size or table.num_rows == 0:
        yield from gather_blocks(_one_by_one(table, names))
        return
    for a in range(0, len(names), width):
        part = table.select(range(a, min(a + width, len(names))))
        values = _matrix(part)
        if values is None:
            yield from gather_blocks(_one_by_one(part, names[a : a + width]))
        else:
            yield Block(names[a : a + width], values)


def _one_by_one(
    table: Any, names: Sequence[Hashable]
) -> Iterator[tuple[Hashable, npt.NDArray[Any]]]:
    return ((name, _to_numpy(table.column(j))) for j, name in enumerate(names))


def _matrix(table: Any) -> npt.NDArray[Any] | None:
    """Convert a table of numbers of one type to a matrix.

    Return None for booleans, decimals and integers with nulls, which are converted one by one.
    """
    pa = import_pyarrow()
    # Arrow would read beyond the end of a buffer that is too small. Validated per block, so that
    # the pages are still resident when the values are read.
    table.validate(full=True)
    arrow_type = table.schema.types[0]
    is_float = pa.types.is_floating(arrow_type)
    if not (is_float or pa.types.is_integer(arrow_type)):
        return None
    parts = []
    for batch in table.to_batches():
        try:
            part = batch.to_tensor(null_to_nan=is_float, row_major=False).to_numpy()
        except pa.ArrowTypeError:
            return None
        parts.append(part)
    if len(parts) == 1:
        return storable(parts[0])
    values = np.empty((table.num_columns, table.num_rows), dtype=parts[0].dtype)
    np.concatenate([part.T for part in parts], axis=1, out=values)
    return storable(values.T)


def _is_text(arrow_type: Any) -> bool:
    types = import_pyarrow().types
    return bool(types.is_string(arrow_type) or types.is_large_string(arrow_type))


def _to_numpy(column: Any) -> npt.NDArray[Any]:
    """Convert an Arrow column to a dtype that blocks hold, with NaN for nulls."""
    pa = import_pyarrow()
    types = pa.types
    arrow_type = column.type
    column.validate(full=True)
    if types.is_boolean(arrow_type):
        column = column.cast(pa.uint8())
    elif types.is_decimal(arrow_type):
        column = column.cast(pa.float64())
    elif types.is_null(arrow_type):
        return np.full(len(column), np.nan)
    elif types.is_dictionary(arrow_type):
        # pyarrow before version 23 cannot convert a dictionary with unsigned indices.
        column = column.cast(arrow_type.value_type)
        if not _is_text(arrow_type.value_type):
            # Numeric categories are labels, not quantities.
            labels = [None if value is None else str(value) for value in column.to_pylist()]
            return np.array(labels, dtype=object)
    # Arrow's to_numpy imports pandas, which takes 0.2 s; conversion of a matrix does not.
    numbers = (types.is_floating, types.is_integer)
    if len(column) and any(is_kind(column.type) for is_kind in numbers):
        matrix = _matrix(pa.table([column], names=["values"]))
        if matrix is not None:
            return matrix[:, 0]
    try:
        values: npt.NDArray[Any] = column.to_numpy()
    except pa.ArrowNotImplementedError:  # such as a union of types
        values = np.fromiter(column.to_pylist(), dtype=object, count=len(column))
    if types.is_dictionary(arrow_type):
        values = values.astype(object)
    return storable(values)
