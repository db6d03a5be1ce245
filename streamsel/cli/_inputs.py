"""The input of the command: files of columns in any supported format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from streamsel.cli._errors import CommandError, message_of, no_column, note
from streamsel.cli._orientation import text_orientation
from streamsel.cli._spool import spooled
from streamsel.stream._base import find_positions, raise_missing
from streamsel.stream._cells import null_in, numbered_lines, open_text, split_cells, text_of
from streamsel.stream._decimal import find_numerals
from streamsel.stream._exact import LARGE, exact_column, integers_of, may_be_inexact
from streamsel.stream._files import Files, Orientation, open_files, paths_of
from streamsel.stream._formats import delimiter_of, file_format
from streamsel.stream._layout import split_off_name
from streamsel.stream._read_options import AS_FOUND, ReadOptions

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from streamsel.stream._base import ColumnStream
    from streamsel.stream._lines import OnBad
    from streamsel.stream._numerals import Numerals

MAX_COMPARED = 20_000  # names compared with a misspelt one


@dataclass(frozen=True)
class Source:
    """One file of columns, or several whose columns are concatenated.

    Parameters
    ----------
    path
        Its path, for messages.
    files
        The files.
    format
        The format returned by `file_format` (that of the first of several files); if any is text,
        the content of its lines: "samples" or "variables".
    stream
        The columns.
    lines
        Text files with one variable per line, and their delimiters.
    is_numbered
        Whether there are columns without names: of .npy files, and of Zarr arrays.
    options
        How the files are read.
    """

    path: str
    files: Sequence[str]
    format: str
    stream: ColumnStream
    lines: Sequence[tuple[str, str]]
    is_numbered: bool
    options: ReadOptions = AS_FOUND

    def name(self, text: str) -> Hashable:
        """Return the column name that a text means: columns of npy files are numbered."""
        if not (self.is_numbered and text.isdecimal()):
            return text
        names = self.stream.names
        # Tables among the files may have column names that look like numbers.
        is_name = names is not None and not isinstance(names, range) and text in names
        return text if is_name else int(text)

    def take(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch columns or row metadata; raise for missing names."""
        try:
            if not self.lines:
                if self.stream.beside and self.stream.names is not None:
                    find_positions([*self.stream.beside, *self.stream.names], names)
                beside = self._beside(names)
                found = self.stream.take([name for name in names if name not in beside])
                return {name: beside.get(name, found.get(name)) for name in names}
            found, seen = lines_found(self.lines, names, self.options)
            found |= self._take_from_other_files([name for name in names if name not in found])
            missing = [name for name in names if name not in found]
            if missing:
                raise_missing(missing, seen)
            return {name: found[name] for name in names}
        except KeyError as error:
            raise CommandError(no_column(self.path, error)) from None

    def take_some(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch those of the columns that exist."""
        if self.lines:
            found = lines_found(self.lines, names, self.options)[0]
            return found | self._take_from_other_files(
                [name for name in names if name not in found]
            )
        wanted = set(names)
        existing = wanted.intersection(name for name in self.stream.names or () if name in wanted)
        found = self.stream.take([name for name in names if name in existing])
        return found | self._beside(names)

    def exact(self, name: Hashable, values: Any) -> Any:
        """Return the exact integers of a fetched column, if they are too large for floats.

        Identifiers of 16 digits and more are such integers.
        """
        if may_be_inexact(values) and str(name) not in self.stream.beside:
            for path in self.files:
                found = exact_column(path, name, self.format, self.options)
                if found is not None and len(found) == len(values):
                    return found
        return values

    def _beside(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the row metadata of these names; columns take precedence."""
        beside = [name for name in names if name in self.stream.beside]
        columns = {*(self.stream.names or ())}.intersection(beside) if beside else ()
        return {str(name): self.stream.beside[str(name)] for name in beside if name not in columns}

    def _take_from_other_files(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch columns from files that do not have one variable per line."""
        if names and isinstance(self.stream, Files) and len(self.files) > len(self.lines):
            return self.stream.take_some(names)
        return {}

    def check(self, names: Sequence[str]) -> None:
        """Raise unless all these columns exist."""
        if self.stream.names is None:
            self.take([self.name(name) for name in names])
            return
        try:
            find_positions(self.stream.names, [self.name(name) for name in names])
        except KeyError as error:
            raise CommandError(no_column(self.path, error)) from None


def files_of(given: Sequence[str]) -> list[str]:
    """Expand paths and patterns into files, in order."""
    return [path for one in given for path in paths_of(one)]


def check_layer(files: Sequence[str], *, layer: str | None, raw: bool) -> None:
    """Raise if --layer or --raw is given and no file is AnnData."""
    if (raw or layer is not None) and all(file_format(spooled(path)) != "h5ad" for path in files):
        option = "--raw" if raw else f"--layer {layer}"
        raise CommandError(
            f"{option}: expected an AnnData file (.h5ad). Got: {files[0]}. Hint: remove {option}"
        )


def open_source(
    files: Sequence[str],
    orientation: str,
    wanted: Sequence[str],
    on_bad: OnBad | None = None,
    options: ReadOptions = AS_FOUND,
    shown: str | None = None,
    ids: Collection[str] = (),
    id_: str | None = None,
) -> Source:
    """Open files of columns, each in the format of its suffix or first bytes.

    Parameters
    ----------
    files
        The files, in the order of their columns.
    orientation
        Of text: "samples", "variables", or "auto" to infer it from the position of the `wanted`
        names.
    wanted
        Names that are in the files.
    on_bad
        Called with name, reason and detail for a line of text that is not all numbers; "pass"
        yields such lines instead.
    options
        How files are read; options that are None are inferred from each file's suffix and first
        lines.
    shown
        Name of the files in messages; by default the first path.
    ids
        Possible row identifiers.
    id_
        The column of row identifiers, if known.
    """
    files = [spooled(path) for path in files]
    formats = [file_format(path) for path in files]
    texts = [path for path, format_ in zip(files, formats, strict=True) if format_ == "text"]
    if texts and orientation == "auto":
        alone = len(texts) == len(files)
        orientation = text_orientation(texts, wanted, options.delimiter, ids, alone=alone)
    is_lines = bool(texts) and orientation == "variables"
    with_commas = [] if options.decimal else [p for p in texts if _has_commas(p, options)]
    if with_commas:
        note(
            f"{with_commas[0]}: read with decimal commas. Hint: use --decimal . if commas are not "
            "decimal marks"
        )
    try:
        stream = open_files(files, cast("Orientation", orientation), options, on_bad, id_)
    except KeyError as error:  # the message lists the layers
        if options.layer is None:
            raise
        raise CommandError(f"--layer: {message_of(error)}") from None
    return Source(
        path=shown or files[0],
        files=files,
        format=orientation if texts else formats[0],
        stream=stream,
        lines=[(path, delimiter_of(path, options.delimiter)) for path in texts] if is_lines else [],
        is_numbered=not {"npy", "zarr"}.isdisjoint(formats),
        options=options,
    )


def _has_commas(path: str, options: ReadOptions) -> bool:
    return find_numerals(path, delimiter_of(path, options.delimiter), options).decimal == ","


def lines_found(
    files: Sequence[tuple[str, str]], names: Sequence[Hashable], options: ReadOptions
) -> tuple[dict[Hashable, Any], list[str]]:
    """Read some variables from files of lines; also return names of other variables there."""
    found: dict[Hashable, Any] = {}
    seen: list[str] = []
    for path, delimiter in files:
        numerals = find_numerals(path, delimiter, options)
        with open_text(path) as file, text_of(path):
            for number, line in numbered_lines(file, path):
                if len(found) == len(set(names)):
                    return found, seen
                name, _ = split_off_name(line, delimiter)
                if name in names and name not in found:
                    cells = split_cells(line, delimiter)[1:]
                    found[name] = numbers_or_labels(cells, numerals)
                    if found[name].dtype == object:
                        for j, cell in enumerate(cells, start=2):
                            refuse_null(cell, path, f"line {number}, column {j}")
                if len(seen) < MAX_COMPARED:
                    seen.append(name)
    return found, seen


def numbers_or_labels(cells: Sequence[str], numerals: Numerals) -> Any:
    """Return an array of numbers if all cells are numeric, otherwise of labels; None is missing."""
    numbers = numerals.numbers(cells)
    if numbers is not None:
        exact = integers_of(cells) if may_be_inexact(numbers) else None
        return integral(numbers) if exact is None else exact
    texts = [None if numerals.is_missing(cell) else cell.strip() for cell in cells]
    return np.array(texts, dtype=object)


def refuse_null(cell: str, path: str, where: str) -> None:
    """Raise CommandError for a cell with a null byte."""
    if null := null_in(cell, path, where):
        raise CommandError(null)


def integral(values: Any) -> Any:
    """Convert floats that are all whole numbers to integers: text has no types."""
    if values.ndim == 1 and values.dtype.kind == "f" and np.isfinite(values).all():
        whole = values.astype(np.int64) if np.abs(values).max(initial=0) < LARGE else values
        return whole if (whole == values).all() else values
    return values
