"""What the command reads: files of columns, in any of its formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from streamsel.cli._errors import CommandError, no_column, note
from streamsel.cli._orientation import text_orientation
from streamsel.cli._spool import spooled
from streamsel.stream._base import find_positions, raise_missing
from streamsel.stream._cells import numbered_lines, open_text, split_cells, text_of, to_number
from streamsel.stream._decimal import find_decimal
from streamsel.stream._files import Files, Orientation, iter_files, paths_of
from streamsel.stream._formats import delimiter_of, file_format
from streamsel.stream._layout import split_off_name

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from streamsel.stream._base import ColumnStream
    from streamsel.stream._decimal import Decimal
    from streamsel.stream._lines import OnBad

MAX_COMPARED = 20_000  # names that a misspelt one is compared with


@dataclass(frozen=True)
class Source:
    """One file of columns, or several whose columns stand side by side.

    Parameters
    ----------
    path
        Where it is, for messages.
    files
        The files.
    format
        As `file_format` says (of several files the first one's); if there is text among them, what
        its lines are: "samples" or "variables".
    stream
        The columns.
    lines
        Files of text with one variable a line, and their delimiters.
    is_numbered
        Whether there are columns without names: of .npy files, and of Zarr arrays.
    delimiter, decimal
        Of text, if one was asked for.
    """

    path: str
    files: Sequence[str]
    format: str
    stream: ColumnStream
    lines: Sequence[tuple[str, str]]
    is_numbered: bool
    delimiter: str | None = None
    decimal: Decimal | None = None

    def name(self, text: str) -> Hashable:
        """Return the column's name that the user means by this text: npy columns are numbered."""
        if not (self.is_numbered and text.isdecimal()):
            return text
        names = self.stream.names
        # Beside arrays there may be tables, whose columns have names that are numbers.
        is_name = names is not None and not isinstance(names, range) and text in names
        return text if is_name else int(text)

    def take(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch columns, or what is said of the rows beside them; say which are not there."""
        try:
            if not self.lines:
                if self.stream.beside and self.stream.names is not None:
                    find_positions([*self.stream.beside, *self.stream.names], names)
                beside = self._beside(names)
                found = self.stream.take([name for name in names if name not in beside])
                return {name: beside.get(name, found.get(name)) for name in names}
            found, seen = lines_found(self.lines, names, self.decimal)
            found |= self._take_beside_lines([name for name in names if name not in found])
            missing = [name for name in names if name not in found]
            if missing:
                raise_missing(missing, seen)
            return {name: found[name] for name in names}
        except KeyError as error:
            raise CommandError(no_column(self.path, error)) from None

    def take_some(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch those of the columns that are there."""
        if self.lines:
            found = lines_found(self.lines, names, self.decimal)[0]
            return found | self._take_beside_lines([name for name in names if name not in found])
        wanted = set(names)
        there = wanted.intersection(name for name in self.stream.names or () if name in wanted)
        found = self.stream.take([name for name in names if name in there])
        return found | self._beside(names)

    def _beside(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return what is said of the rows by these names; a column goes before that."""
        beside = [name for name in names if name in self.stream.beside]
        columns = {*(self.stream.names or ())}.intersection(beside) if beside else ()
        return {str(name): self.stream.beside[str(name)] for name in beside if name not in columns}

    def _take_beside_lines(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch those of the columns that files of another kind have."""
        if names and isinstance(self.stream, Files) and len(self.files) > len(self.lines):
            return self.stream.take_some(names)
        return {}

    def check(self, names: Sequence[str]) -> None:
        """Raise unless all these columns are there."""
        if self.stream.names is None:
            self.take([self.name(name) for name in names])
            return
        try:
            find_positions(self.stream.names, [self.name(name) for name in names])
        except KeyError as error:
            raise CommandError(no_column(self.path, error)) from None


def files_of(given: Sequence[str]) -> list[str]:
    """Return the files that are meant by paths and patterns, in their order."""
    return [path for one in given for path in paths_of(one)]


def open_source(
    files: Sequence[str],
    orientation: str,
    wanted: Sequence[str],
    on_bad: OnBad | None = None,
    delimiter: str | None = None,
    decimal: Decimal | None = None,
    shown: str | None = None,
    ids: Collection[str] = (),
    id_: str | None = None,
) -> Source:
    """Open files of columns, each in the format that its name or its first bytes say.

    Parameters
    ----------
    files
        The files, in the order of their columns.
    orientation
        Of text: "samples", "variables", or "auto" to see where `wanted` names are found.
    wanted
        Names that are in the files.
    on_bad
        Called with name, reason and detail for a line of text that is not all numbers; "pass" has
        it passed on.
    delimiter, decimal
        Of text; None goes by each file's suffix and first lines.
    shown
        What the user calls them; one file is called by its path.
    ids
        What rows may be called.
    id_
        The column that says what they are called, if that is known.
    """
    files = [spooled(path) for path in files]
    formats = [file_format(path) for path in files]
    texts = [path for path, format_ in zip(files, formats, strict=True) if format_ == "text"]
    if texts and orientation == "auto":
        alone = len(texts) == len(files)
        orientation = text_orientation(texts, wanted, delimiter, ids, alone=alone)
    is_lines = bool(texts) and orientation == "variables"
    with_commas = [] if decimal else [p for p in texts if _has_commas(p, delimiter)]
    if with_commas:
        note(f"{with_commas[0]}: decimal commas, read as such. Hint: --decimal . if they are none")
    return Source(
        path=shown or files[0],
        files=files,
        format=orientation if texts else formats[0],
        stream=iter_files(
            files,
            orientation=cast("Orientation", orientation),
            delimiter=delimiter,
            decimal=decimal,
            on_bad=on_bad,
            ids=id_,
        ),
        lines=[(path, delimiter_of(path, delimiter)) for path in texts] if is_lines else [],
        is_numbered=not {"npy", "zarr"}.isdisjoint(formats),
        delimiter=delimiter,
        decimal=decimal,
    )


def _has_commas(path: str, delimiter: str | None) -> bool:
    return find_decimal(path, delimiter_of(path, delimiter), None) == ","


def lines_found(
    files: Sequence[tuple[str, str]], names: Sequence[Hashable], decimal: Decimal | None = None
) -> tuple[dict[Hashable, Any], list[str]]:
    """Read those of some variables that texts hold, and some names of what else they hold."""
    found: dict[Hashable, Any] = {}
    seen: list[str] = []
    for path, delimiter in files:
        point = find_decimal(path, delimiter, decimal)
        with open_text(path) as file, text_of(path):
            for _, line in numbered_lines(file, path):
                if len(found) == len(set(names)):
                    return found, seen
                name, _ = split_off_name(line, delimiter)
                if name in names and name not in found:
                    found[name] = numbers_or_labels(split_cells(line, delimiter)[1:], point)
                if len(seen) < MAX_COMPARED:
                    seen.append(name)
    return found, seen


def numbers_or_labels(cells: Sequence[str], decimal: str = ".") -> Any:
    """Return an array of numbers if all cells are, of labels otherwise; None is a missing one."""
    numbers = [to_number(cell, decimal) for cell in cells]
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
