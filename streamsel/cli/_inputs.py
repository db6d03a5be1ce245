"""What the command reads: a file of columns in any of its formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._errors import CommandError, no_column
from streamsel.cli._spool import spooled
from streamsel.stream._formats import delimiter_of, file_format, open_columns

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from streamsel.stream._base import ColumnStream

OnBad = Callable[[str, str, str], None]

MAX_COMPARED = 20_000  # names that a misspelt one is compared with


@dataclass(frozen=True)
class Source:
    """A file of columns.

    Parameters
    ----------
    path
        Where it is.
    format
        "parquet", "ipc", "npy", or text: "samples" (a line is a sample) or "variables" (a line is a
        variable).
    stream
        Its columns.
    delimiter
        Of text.
    """

    path: str
    format: str
    stream: ColumnStream
    delimiter: str = ""

    def name(self, text: str) -> Hashable:
        """Return the column's name that the user means by this text: npy columns are numbered."""
        return int(text) if self.format == "npy" and text.isdecimal() else text

    def take(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch columns; if there are no such columns say which, and what comes close."""
        try:
            if self.format == "variables":
                return values_of_lines(self.path, names, self.delimiter)
            return self.stream.take(names)
        except KeyError as error:
            raise CommandError(no_column(self.path, error)) from None

    def take_some(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch those of the columns that are there."""
        if self.format == "variables":
            return lines_found(self.path, names, self.delimiter)[0]
        wanted = set(names)
        there = wanted.intersection(name for name in self.stream.names or () if name in wanted)
        return self.stream.take([name for name in names if name in there])

    def check(self, names: Sequence[str]) -> None:
        """Raise unless all these columns are there."""
        if self.stream.names is None:
            self.take(names)
            return
        from streamsel.stream._base import find_positions

        try:
            find_positions(self.stream.names, [self.name(name) for name in names])
        except KeyError as error:
            raise CommandError(no_column(self.path, error)) from None


def open_source(
    path: str,
    orientation: str,
    wanted: Sequence[str],
    on_bad: OnBad | None = None,
    delimiter: str | None = None,
) -> Source:
    """Open a file of columns, in the format that its name or its first bytes say.

    Parameters
    ----------
    path
        The file.
    orientation
        Of a text file: "samples", "variables", or "auto" to see where `wanted` names are found.
    wanted
        Names that are in the file.
    on_bad
        Called with name, reason and detail for a line of text that is not all numbers.
    delimiter
        Of a text file; None goes by the file's suffix and first line.
    """
    path = spooled(path)
    format_ = file_format(path)
    if format_ != "text":
        return Source(path, format_, open_columns(path, None))
    if orientation == "auto":
        orientation = text_orientation(path, wanted, delimiter)
    mark = delimiter_of(path, delimiter)
    return Source(path, orientation, open_columns(path, orientation, mark, on_bad), mark)


def text_orientation(path: str, wanted: Sequence[str], delimiter: str | None = None) -> str:
    """Find out whether a line of text is a sample or a variable, by where names are found."""
    from streamsel.stream._cells import numbered_lines, open_text, split_cells

    if not wanted:
        raise CommandError(
            f"{path}: is a line a sample or a variable? Hint: say --orientation samples "
            "(a header names the columns) or --orientation variables (a line begins with its name)"
        )
    with open_text(path) as file:
        lines = (line for _, line in numbered_lines(file, path))
        line = next(lines, "")
        delimiter = delimiter_of(path, delimiter)
        first = [cell.strip() for cell in split_cells(line, delimiter)] if line else []
        if not set(wanted).isdisjoint(first):
            # A variable's line may stand first, where a header would: then numbers follow its name.
            is_variable = first[0] in wanted and all(map(is_number, first[1:])) and len(first) > 1
            return "variables" if is_variable else "samples"
        second = name_of(next(lines, ""), delimiter)
        if second in wanted or any(name_of(line, delimiter) in wanted for line in lines):
            return "variables"
    # Found nowhere: whoever says so should look for what comes close in the right place.
    return "samples" if is_number(second) and not any(map(is_number, first)) else "variables"


def name_of(line: str, delimiter: str) -> str:
    """Return the first cell of a line."""
    from streamsel.stream._cells import split_cells

    if line.startswith('"'):
        return split_cells(line, delimiter)[0].strip()
    return line.partition(delimiter)[0].strip()


def is_number(cell: str) -> bool:
    """Tell whether a cell holds a number, or stands for a missing one."""
    from streamsel.stream._cells import to_number

    return to_number(cell) is not None


def values_of_lines(path: str, names: Sequence[Hashable], delimiter: str) -> dict[Hashable, Any]:
    """Read some variables of a text that holds one a line, be they numbers or labels."""
    from streamsel.stream._base import raise_missing

    found, seen = lines_found(path, names, delimiter)
    missing = [name for name in names if name not in found]
    if missing:
        raise_missing(missing, seen)
    return {name: found[name] for name in names}


def lines_found(
    path: str, names: Sequence[Hashable], delimiter: str
) -> tuple[dict[Hashable, Any], list[str]]:
    """Read those of some variables that a text holds, and some names of what else it holds."""
    from streamsel.stream._cells import numbered_lines, open_text, split_cells

    found: dict[Hashable, Any] = {}
    seen: list[str] = []
    with open_text(path) as file:
        for _, line in numbered_lines(file, path):
            name = name_of(line, delimiter)
            if name in names and name not in found:
                found[name] = numbers_or_labels(split_cells(line, delimiter)[1:])
            if len(found) == len(set(names)):
                break
            if len(seen) < MAX_COMPARED:
                seen.append(name)
    return found, seen


def numbers_or_labels(cells: Sequence[str]) -> Any:
    """Return an array of numbers if all cells are, of labels otherwise; None is a missing one."""
    from streamsel.stream._cells import to_number

    numbers = [to_number(cell) for cell in cells]
    if None in numbers:
        texts = [
            None if number != number else cell.strip()  # noqa: PLR0124 (NaN)
            for cell, number in zip(cells, numbers, strict=True)
        ]
        return np.array(texts, dtype=object)
    return integral(np.array(numbers, dtype=np.float64))


def integral(values: Any) -> Any:
    """Turn floats that are all whole numbers into integers: text does not tell codes from sizes."""
    if values.ndim == 1 and values.dtype.kind == "f" and np.isfinite(values).all():
        whole = values.astype(np.int64) if np.abs(values).max(initial=0) < 2**53 else values
        return whole if (whole == values).all() else values
    return values
