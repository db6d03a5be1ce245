"""Files of any format: detection of the format, opening, and exact reading of integers."""

from __future__ import annotations

import itertools
import math
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from streamsel._utils.optional import import_pyarrow
from streamsel.stream._csv import first_record, open_csv, read_raw_cells
from streamsel.stream._csv_by_variable import open_csv_by_variable
from streamsel.stream._csv_layout import split_name
from streamsel.stream._numerals import (
    DEFAULT_READ_OPTIONS,
    ReadOptions,
    is_number,
    parse_integers,
    to_number,
)
from streamsel.stream._remote import is_file, is_url, open_binary
from streamsel.stream._text_cells import (
    find_delimiter,
    numbered_lines,
    open_text,
    split_cells,
    text_errors,
)
from streamsel.stream.formats import (
    FORMATS,
    format_of_bytes,
    format_of_suffix,
    suffixes_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

    import numpy.typing as npt

    from streamsel.stream._csv_by_variable import OnBad
    from streamsel.stream._stream import ColumnStream

_LIKELY_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
# Lines of a text file, and cells of each, from which the orientation is inferred.
_LINES, _CELLS = 20, 200
# Bytes that show the format of any file.
_N_START = 16


def open_columns(
    path: str,
    orientation: str | None,
    options: ReadOptions = DEFAULT_READ_OPTIONS,
    on_bad: OnBad | None = None,
    names: Sequence[Hashable] | None = None,
) -> ColumnStream:
    """Open a file of columns, in the format that its name or its first bytes indicate.

    Parameters
    ----------
    path
        The file.
    orientation, on_bad
        Orientation and handling of bad lines of text files, as in `iter_files`.
    options
        Read options.
    names
        Names of the columns, if those of the format have none.
    """
    format_ = FORMATS[file_format(path)]
    given = {**options._asdict(), "options": options, "orientation": orientation, "on_bad": on_bad}
    found = {name: given[name] for name in format_.options}
    return format_.open(path, **found, **({} if names is None else {"names": names}))


def open_text_columns(
    path: str, *, orientation: str | None, options: ReadOptions, on_bad: OnBad | None
) -> ColumnStream:
    """Open a text file."""
    options = options._replace(delimiter=delimiter_of(path, options.delimiter))
    if orientation == "variables":
        return open_csv_by_variable(path, options, on_bad)
    if orientation == "samples":
        return open_csv(path, options)
    raise ValueError(
        f"Expected orientation to be 'samples' or 'variables' for the text file {path!r}. Got: "
        f"{orientation!r}.\nHint: 'samples' has a header with the column names, 'variables' a "
        "variable name at the start of each line."
    )


def open_by_name(
    path: str | os.PathLike[str], expected_names: Collection[str] = ()
) -> ColumnStream:
    """Open a file of columns by its path alone; infer the orientation of text.

    Parameters
    ----------
    path
        The file.
    expected_names
        Names of columns, whose position shows the orientation if the cells do not.

    Raises
    ------
    ValueError
        If the orientation of text is ambiguous, and where `open_columns` raises it.
    """
    name = os.fspath(path)
    if file_format(name) != "text":
        return open_columns(name, None)
    orientation = infer_orientation(name)
    if orientation is None and expected_names:
        found, guess = orientation_of_names(name, expected_names)
        orientation = guess if found else None
    if orientation is None:
        absent = (
            f", and has no column {' or '.join(map(repr, expected_names))}"
            if expected_names
            else ""
        )
        raise ValueError(
            f"Expected a text file whose lines are samples or variables. Got: {name!r}, which may "
            f"be either{absent:.200}.\nHint: use streamsel.stream.iter_csv(path) for one sample "
            "per line, iter_csv(path, orientation='variables') for one variable per line."
        )
    return open_columns(name, orientation)


def infer_orientation(path: str, delimiter: str | None = None) -> str | None:
    """Infer "samples" or "variables" from the first lines of a text; None if ambiguous.

    Lines below a header of names are samples if each begins with a number, or if every column is
    all numbers or all text and not every line is. Lines are variables if numbers follow a name in
    each; distinct integers in the first line may be a header.
    """
    delimiter = delimiter_of(path, delimiter)
    with open_text(path) as file, text_errors(path):
        lines = itertools.islice(numbered_lines(file, path), _LINES)
        first, *rest = [split_cells(line, delimiter)[:_CELLS] for _, line in lines] or [[]]
    header = [cell for cell in first[1:] if cell.strip()]
    kinds = [[_kind(cell) for cell in row] for row in rest]
    if any(map(is_number, header)):
        is_header = all(map(str.isdigit, header)) and len({*header}) == len(header)
        has_names = not any(is_number(row[0]) for row in (first, *rest))
        has_numbers = all(_kind(cell) != "text" for row in (first, *rest) for cell in row[1:])
        return "variables" if has_names and has_numbers and not is_header else None
    if not rest or (first[0].strip() and is_number(first[0])):
        return None
    if all(row[0] != "text" for row in kinds):
        return "samples"
    columns = list(itertools.zip_longest(*kinds, fillvalue=""))[1:]
    is_table = _are_pure(columns) and not _are_pure([row[1:] for row in kinds])
    return "samples" if is_table else None


def orientation_of_names(
    path: str, expected_names: Collection[str], delimiter: str | None = None
) -> tuple[bool, str]:
    """Return whether a text has one of the names, and the (possibly guessed) line content."""
    with open_text(path) as file, text_errors(path):
        lines = (line for _, line in numbered_lines(file, path))
        line = next(lines, "")
        delimiter = delimiter_of(path, delimiter)
        if line.count('"') % 2:
            # A name in the header may have a line break; otherwise quotes are never closed.
            with suppress(ValueError):
                line = first_record(path)
        first = [cell.strip() for cell in split_cells(line, delimiter)] if line else []
        if not set(expected_names).isdisjoint(first):
            # The first line may be a variable, not a header: then numbers follow its name.
            is_variable = (
                first[0] in expected_names and all(map(is_number, first[1:])) and len(first) > 1
            )
            return True, "variables" if is_variable else "samples"
        second = split_name(next(lines, ""), delimiter)[0]
        if second in expected_names or any(
            split_name(line, delimiter)[0] in expected_names for line in lines
        ):
            return True, "variables"
    is_table = is_number(second) and not any(map(is_number, first))
    return False, "samples" if is_table else "variables"


def _kind(cell: str) -> str:
    value = to_number(cell)
    if value is not None:
        return "" if math.isnan(value) else "number"
    return "number" if is_number(cell) else "text"


def _are_pure(lines: Sequence[Sequence[str]]) -> bool:
    return all(not {"number", "text"} <= {*line} for line in lines)


def file_format(path: str) -> str:
    """Return the name of a file's format, one of `FORMATS`.

    The format is inferred from the file's name, or else from its first bytes.

    Raises
    ------
    ValueError
        If the file is empty, not regular, or of an unknown format.
    """
    if is_url(path):
        return _format_of_url(path)
    if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):  # noqa: PTH112, PTH116
        raise ValueError(
            f"Expected a file that can be read more than once. Got: {path!r}, which is not a "
            "regular file.\nHint: write the data to a file first."
        )
    # A folder, such as an array inside a Zarr group, needs no suffix.
    if name := _format_of_folder(lambda file: Path(path, file).is_file()):
        return name
    with open(path, "rb") as file:  # noqa: PTH123 (the error shows the path as the user wrote it)
        start = file.read(_N_START)
    return _format_of_file(path, start)


def _format_of_folder(has_file: Callable[[str], bool]) -> str | None:
    """Return the format of a folder, by the files that it has; None if it is of no format."""
    found = (one.name for one in FORMATS.values() if any(map(has_file, one.folder)))
    return next(found, None)


def _format_of_url(url: str) -> str:
    name = format_of_suffix(suffix_of(url))
    if name is not None and FORMATS[name].folder:
        return name
    if name is None and (name := _format_of_folder(lambda file: is_file(f"{url}/{file}"))):
        return name
    with open_binary(url) as file:
        return _format_of_file(url, file.read(_N_START))


def _format_of_file(path: str, start: bytes) -> str:
    """Return the format by the suffix; if that is of text or unknown, by the first bytes first."""
    if not start:
        raise ValueError(f"Expected a file of columns. Got: {path!r}, which is empty.")
    by_suffix = format_of_suffix(suffix_of(path))
    found = by_suffix if by_suffix not in {None, "text"} else format_of_bytes(start) or by_suffix
    if found is None:
        raise ValueError(
            f"Expected a file of columns. Got: {path!r}, of an unknown format.\nHint: supported "
            f"suffixes are {suffixes_text()} (for text also with .gz)."
        )
    return found


def suffix_of(path: str) -> str:
    """Return the suffix that indicates the format, in lower case and without .gz or .bgz."""
    name = "".join(urlsplit(path)[1:3]) if is_url(path) else path
    return Path(name.lower().removesuffix(".gz").removesuffix(".bgz")).suffix


def delimiter_of(path: str, delimiter: str | None) -> str:
    """Return `delimiter`, or by default infer it from the file's suffix and first line."""
    with open_text(path) as file:
        _, line = next(numbered_lines(file, path), (0, ""))
    return find_delimiter(line, delimiter, _LIKELY_DELIMITERS.get(suffix_of(path), ""))


def read_exact_integers(
    path: str, name: Hashable, orientation: str, options: ReadOptions
) -> npt.NDArray[Any] | None:
    """Read an integer column of a file exactly.

    Returns
    -------
    The integers; None if the file lacks the column or does not store it as integers.
    """
    kind = file_format(path)
    if kind == "text" and orientation == "samples":
        options = options._replace(delimiter=delimiter_of(path, options.delimiter))
        cells = read_raw_cells(path, options, name)
        return None if cells is None else parse_integers(cells)
    if kind == "npy":
        from streamsel.stream._npy import open_npy

        array = open_npy(path)
        has_column = isinstance(name, int) and array.ndim == 2 and name < array.shape[1]
        return np.array(array[:, name]) if has_column and array.dtype.kind in "iu" else None
    if kind in ("parquet", "ipc"):
        from streamsel.stream._arrow import ParquetFile
        from streamsel.stream._ipc import IpcFile

        file = ParquetFile(path) if kind == "parquet" else IpcFile(path)
        if name not in file.names:
            return None
        with file.error_context():
            column = file.table([file.names.index(str(name))]).column(0)
            is_integer = import_pyarrow().types.is_integer(column.type)
            return parse_integers(column.to_pylist()) if is_integer else None
    return None
