"""Streams of the columns of text files with one variable per line."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from streamsel import params
from streamsel.data.chunks import Block
from streamsel.stream._blocks import BLOCK_DTYPES, columns_per_block
from streamsel.stream._csv_layout import (
    Layout,
    Line,
    find_layout,
    line_start,
    split_name,
    split_names,
    start_of_line,
)
from streamsel.stream._numerals import (
    CellMessage,
    ReadOptions,
    diagnose_non_numeric,
)
from streamsel.stream._parts import Stamp, StreamPart, n_parts
from streamsel.stream._remote import open_binary
from streamsel.stream._stream import ColumnStream
from streamsel.stream._text_cells import (
    NumberParser,
    is_zipped,
    null_byte_message,
    numbered_lines,
    split_cells,
    text_errors,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from streamsel.stream._numerals import Numerals
    from streamsel.stream._parts import Cut

OnBad = Callable[[str, str, str], object] | Literal["pass"]


def open_csv_by_variable(
    path: str | os.PathLike[str],
    options: ReadOptions,
    on_bad: OnBad | None = None,
    header: bool | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> ColumnStream:
    """Stream the variables of a text file, as `iter_csv` does."""
    block_type = block_dtype(dtype)
    is_word = isinstance(on_bad, str) and on_bad == "pass"
    if not (on_bad is None or is_word or callable(on_bad)):
        got = params.parameter_repr(on_bad)
        raise ValueError(f"Expected on_bad to be a function, 'pass' or None. Got: {got}.")
    stamp = Stamp.of(path)
    layout = find_layout(path, options, header)
    return _stream(layout, block_type, on_bad, partial(_cut, layout, block_type, on_bad, stamp))


def block_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the requested dtype of blocks; refuse all but the four supported ones."""
    try:
        result = np.dtype(dtype)
        got = str(result)
    except Exception:  # noqa: BLE001 (NumPy can raise any error for an invalid dtype)
        result, got = np.dtype(object), params.parameter_repr(dtype)
    if result not in BLOCK_DTYPES:
        raise ValueError(f"Expected dtype to be float64, float32, int8 or uint8. Got: {got}.")
    return result


def _stream(
    layout: Layout, dtype: np.dtype[Any], on_bad: OnBad | None, cut: Cut | None = None
) -> ColumnStream:
    return ColumnStream(
        lambda: _read(layout, dtype, on_bad),
        n_rows=layout.n_rows,
        take=lambda names: _take(layout, dtype, on_bad, names),
        # on_bad excludes lines only when they are parsed, so that none can be skipped before.
        blocks_from=None if callable(on_bad) else (lambda n: _read(layout, dtype, on_bad, skip=n)),
        cut=cut,
    )


def _cut(
    layout: Layout,
    dtype: np.dtype[Any],
    on_bad: OnBad | None,
    stamp: Stamp,
    parts: int | None,
    start: int,
) -> list[StreamPart]:
    """Cut a file into parts of complete lines, after the first `start` lines of values."""
    check_skip(start, on_bad)
    has_header = layout.row_names is not None
    opener = partial(
        _open_part, stamp.path, layout.delimiter, has_header, layout.numerals, dtype, on_bad
    )
    shown = os.fspath(layout.path)
    if is_zipped(layout.path):
        part = StreamPart(None, stamp.size, str(shown), (stamp,), partial(opener, 0, None))
        return [part.then(methodcaller("skip", start), None) if start else part]
    with open_binary(layout.path, anywhere=True) as file:
        first = start_of_line(file, layout.first_line, start)
        n_requested = n_parts(stamp.size - first, parts)
        inner = (first + (stamp.size - first) * i // n_requested for i in range(1, n_requested))
        edges = sorted({first, *(line_start(file, offset) for offset in inner), stamp.size})
    return [
        StreamPart(
            None, b - a, f"bytes {a:,} to {b - 1:,} of {shown}", (stamp,), partial(opener, a, b)
        )
        for a, b in pairwise(edges)
    ]


def check_skip(start: int, on_bad: OnBad | None) -> None:
    """Raise ValueError if lines cannot be skipped because `on_bad` is a function."""
    if start and callable(on_bad):
        raise ValueError(
            "Expected a stream without skipped columns, as the lines that on_bad excludes are "
            "unknown before reading. Got: stream.skip(n).\n"
            "Hint: use on_bad='pass', and apply clean to the stream."
        )


def count_variables(path: str | os.PathLike[str], options: ReadOptions) -> int:
    """Return the number of lines of values."""
    layout = find_layout(path, options)
    with layout.open() as file:
        return sum(number >= layout.first_line for number, _ in numbered_lines(file, path))


def take_available(
    path: str | os.PathLike[str],
    options: ReadOptions,
    on_bad: OnBad | None,
    names: Sequence[Hashable],
) -> dict[Hashable, npt.NDArray[Any]]:
    """Fetch the named variables that the file contains, the first of each name."""
    return _find(find_layout(path, options), np.dtype(np.float64), on_bad, names)


def _open_part(
    path: str,
    delimiter: str,
    header: bool,
    numerals: Numerals,
    dtype: np.dtype[Any],
    on_bad: OnBad | None,
    start: int,
    end: int | None,
) -> ColumnStream:
    layout = find_layout(path, ReadOptions(delimiter), header, numerals)
    if start:
        layout = layout._replace(start=start, first_line=1)
    return _stream(layout._replace(end=end), dtype, on_bad)


def _read(
    layout: Layout,
    dtype: np.dtype[Any],
    on_bad: OnBad | None,
    skip: int = 0,
) -> Iterator[Block]:
    """Yield the blocks after `skip` lines of values; raise an error after the columns before it."""
    parser = NumberParser(layout.delimiter, layout.numerals)
    width = columns_per_block(layout.n_rows)
    with layout.open() as file, text_errors(layout.path):
        numbered = numbered_lines(file, layout.path)
        values_only = itertools.dropwhile(lambda line: line[0] < layout.first_line, numbered)
        lines = split_names(itertools.islice(values_only, skip, None), layout)
        ragged = None
        while ragged is None:
            batch = []
            for line, message in itertools.islice(lines, width):
                if message is not None:
                    ragged = message
                    break
                batch.append(line)
            if not batch:
                break
            yield from _parse(batch, layout, parser, dtype, on_bad)
    if ragged is not None:
        raise ValueError(ragged)


def _take(
    layout: Layout,
    dtype: np.dtype[Any],
    on_bad: OnBad | None,
    names: Sequence[Hashable],
) -> dict[Hashable, npt.NDArray[Any]]:
    """Fetch some variables by name, the first of each name."""
    found = _find(layout, dtype, on_bad, names)
    if len(found) < len(set(names)):
        # A full pass raises the error of an unreadable line, or a KeyError with similar names.
        return ColumnStream(lambda: _read(layout, dtype, on_bad)).take(names)
    return {name: found[name] for name in names}


def _find(
    layout: Layout, dtype: np.dtype[Any], on_bad: OnBad | None, names: Sequence[Hashable]
) -> dict[Hashable, npt.NDArray[Any]]:
    """Fetch the named variables that the file contains."""
    parser = NumberParser(layout.delimiter, layout.numerals)
    requested = set(names)
    found: dict[Hashable, npt.NDArray[Any]] = {}
    with layout.open() as file, text_errors(layout.path):
        for number, text in numbered_lines(file, layout.path):
            if len(found) == len(requested):
                break
            if number < layout.first_line:
                continue
            name, _ = split_name(text, layout.delimiter)
            if name not in requested or name in found:
                continue
            ((line, message),) = split_names(iter([(number, text)]), layout)
            if message is not None:
                raise ValueError(message)
            # A requested line that is bad raises, even if on_bad is a function.
            (block,) = _parse([line], layout, parser, dtype, "pass" if on_bad == "pass" else None)
            found[name] = block.values[:, 0]
    return found


def _parse(
    batch: list[Line],
    layout: Layout,
    parser: NumberParser,
    dtype: np.dtype[Any],
    on_bad: OnBad | None,
) -> Iterator[Block]:
    """Parse lines into blocks, without those that were passed to `on_bad`."""
    numbers = parser.parse([line.cells for line in batch], layout.n_rows)
    if numbers is not None and _fits(numbers, dtype):
        yield Block([line.name for line in batch], numbers.T.astype(dtype, copy=False))
        return
    good: list[str] = []
    values = np.empty((len(batch), layout.n_rows))
    error = None
    for line in batch:
        numbers = parser.parse([line.cells], layout.n_rows)
        if numbers is None or not _fits(numbers, dtype):
            numbers, reason, message = _parse_line(line, layout, dtype)
            # A null byte means a damaged file, not a bad column.
            if message and (on_bad is None or reason == "null"):
                error = message
                break
            if message and callable(on_bad) and on_bad(line.name, reason, message) is not True:
                continue
            if message:
                if good:
                    yield Block(good, values[: len(good)].T.astype(dtype))
                    good = []
                yield _raw_column(line, layout)
                continue
        values[len(good)] = numbers
        good.append(line.name)
    if good:
        yield Block(good, values[: len(good)].T.astype(dtype, copy=False))
    if error is not None:
        raise ValueError(error)


def _raw_column(line: Line, layout: Layout) -> Block:
    """Return a line as a column of float64, or of texts if it is not numeric."""
    cells = [cell.strip() for cell in split_cells(line.cells, layout.delimiter)]
    values: npt.NDArray[Any] | None = layout.numerals.numbers(cells)
    if values is None:
        values = np.array(cells, dtype=object)
        values[[layout.numerals.is_missing(cell) for cell in cells]] = None
    return Block([line.name], values.reshape(-1, 1))


def _parse_line(
    line: Line, layout: Layout, dtype: np.dtype[Any]
) -> tuple[npt.NDArray[np.float64], str, str]:
    """Parse a line cell by cell; return its numbers, and the reason and message if one is bad."""
    cells = split_cells(line.cells, layout.delimiter)
    numbers = layout.numerals.numbers(cells)
    if numbers is not None:
        if _fits(numbers, dtype):
            return numbers, "", ""
        j = next(j for j, number in enumerate(numbers) if not _fits(number, dtype))
        expected, reason, detail = f"a number that {dtype} can hold", "dtype", ""
    else:
        is_missing = layout.numerals.is_missing
        why = diagnose_non_numeric([None if is_missing(cell) else cell for cell in cells])
        j, expected, reason = why.position, "a number", why.reason
        detail = f", {why.detail}" if why.detail else ""
    where = f"{layout.line(line.number)}, {layout.where(j)}"
    if null := null_byte_message(cells[j], layout.path, where):
        return np.empty(0), "null", null
    got = f"(variable {line.name!r}). Got: {cells[j][:40]!r}{detail}."
    message = f"Expected {expected} in {where} of {os.fspath(layout.path)!r} {got}"
    return np.empty(0), reason, CellMessage(message, cells[j].strip())


def _fits(numbers: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype can hold numbers; an integer dtype only integers within its limits."""
    if dtype.kind == "f":
        return True
    limits = np.iinfo(dtype)
    within = (numbers >= limits.min) & (numbers <= limits.max) & (numbers == np.floor(numbers))
    return bool(np.all(within))
