"""The input of the command: files of columns in any supported format, and columns to exclude."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from streamsel.cli.errors import CommandError, message_of, missing_columns_text, note
from streamsel.cli.orientation import text_orientation
from streamsel.cli.spool import spool
from streamsel.stream.files import (
    DEFAULT_READ_OPTIONS,
    EXACT_INTEGER_LIMIT,
    MultiFileStream,
    Orientation,
    ReadOptions,
    delimiter_of,
    file_format,
    find_indices,
    find_layout,
    find_numerals,
    iter_files,
    may_be_rounded_integers,
    null_byte_message,
    numbered_lines,
    open_files,
    open_text,
    parse_integers,
    paths_of,
    raise_unknown_names,
    read_exact_integers,
    split_cells,
    split_name,
    text_errors,
)
from streamsel.stream.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence

    from streamsel.stream import ColumnStream
    from streamsel.stream.files import Numerals, OnBad


def may_be_pattern(name: str) -> bool:
    """Return whether a text contains wildcards; a column may have such a name too."""
    return "*" in name or "?" in name


def expand_drop(source: Source, given: Sequence[str], *, strict: bool = True) -> list[str]:
    """Return the names of the columns that match.

    Parameters
    ----------
    source
        The file.
    given
        Names and patterns: * matches anything, ? one character, and [0-9] one of a set. A pattern
        that is itself the name of a column matches only that column.
    strict
        Whether every name and pattern must match.

    Raises
    ------
    CommandError
        For a name that the file does not have, and a pattern that matches no column.
    """
    if not given:
        return []
    patterns = [name for name in given if may_be_pattern(name)]
    plain = [name for name in given if name not in patterns]
    if strict:
        source.check(plain)
    if not patterns:
        return plain
    known = [str(name) for name in _names(source)]
    names_present = set(known)
    found = dict.fromkeys(plain)
    for pattern in patterns:
        matches = re.compile(translate(pattern)).match
        names = [pattern] if pattern in names_present else [name for name in known if matches(name)]
        if strict and not names:
            _refuse(source, pattern, known)
        found.update(dict.fromkeys(names))
    return list(found)


def _names(source: Source) -> Iterable[object]:
    return _names_in_lines(source) if source.stream.names is None else source.stream.names


def _names_in_lines(source: Source) -> Iterator[object]:
    """Yield the names of all columns if they are the first cells of lines."""
    for path, delimiter in source.line_files:
        first = find_layout(path, ReadOptions(delimiter)).first_line
        with open_text(path) as file, text_errors(path):
            for number, line in numbered_lines(file, path):
                if number >= first:
                    yield split_name(line, delimiter)[0]
    lines = {path for path, _ in source.line_files}
    others = [path for path in source.files if path not in lines]
    yield from (iter_files(others).names or ()) if others else ()


def _refuse(source: Source, pattern: str, known: Sequence[str]) -> None:
    try:
        raise_unknown_names([pattern], known)
    except KeyError as error:
        raise CommandError(missing_columns_text(source.path, error)) from None


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
    line_files
        Text files with one variable per line, and their delimiters.
    is_numbered
        Whether there are columns without names, such as those of .npy files.
    options
        How the files are read.
    """

    path: str
    files: Sequence[str]
    format: str
    stream: ColumnStream
    line_files: Sequence[tuple[str, str]]
    is_numbered: bool
    options: ReadOptions = DEFAULT_READ_OPTIONS

    @property
    def has_genotypes(self) -> bool:
        """Whether the columns are genotypes."""
        return self.format in FORMATS and FORMATS[self.format].genotypes

    def name(self, text: str) -> Hashable:
        """Return the column name that a text means: some columns have only numbers."""
        if not (self.is_numbered and text.isdecimal()):
            return text
        names = self.stream.names
        # Tables among the files may have column names that look like numbers.
        is_name = names is not None and not isinstance(names, range) and text in names
        return text if is_name else int(text)

    def take(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch columns or row metadata; raise for missing names."""
        try:
            if not self.line_files:
                if self.stream.row_metadata and self.stream.names is not None:
                    find_indices([*self.stream.row_metadata, *self.stream.names], names)
                metadata = self._row_metadata_of(names)
                found = self.stream.take([name for name in names if name not in metadata])
                return {name: metadata.get(name, found.get(name)) for name in names}
            found, seen = read_from_lines(self.line_files, names, self.options)
            found |= self._take_from_other_files([name for name in names if name not in found])
            missing = [name for name in names if name not in found]
            if missing:
                raise_unknown_names(missing, seen)
            return {name: found[name] for name in names}
        except KeyError as error:
            raise CommandError(missing_columns_text(self.path, error)) from None

    def take_existing(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch those of the columns that exist."""
        if self.line_files:
            found = read_from_lines(self.line_files, names, self.options)[0]
            return found | self._take_from_other_files(
                [name for name in names if name not in found]
            )
        wanted = set(names)
        existing = wanted.intersection(name for name in self.stream.names or () if name in wanted)
        found = self.stream.take([name for name in names if name in existing])
        return found | self._row_metadata_of(names)

    def exact(self, name: Hashable, values: Any) -> Any:
        """Return the exact integers of a fetched column, if they are too large for floats.

        Identifiers of 16 digits and more are such integers.
        """
        if may_be_rounded_integers(values) and str(name) not in self.stream.row_metadata:
            for path in self.files:
                found = read_exact_integers(path, name, self.format, self.options)
                if found is not None and len(found) == len(values):
                    return found
        return values

    def _row_metadata_of(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the row metadata of these names; columns take precedence."""
        found = [name for name in names if name in self.stream.row_metadata]
        columns = {*(self.stream.names or ())}.intersection(found) if found else ()
        return {
            str(name): self.stream.row_metadata[str(name)] for name in found if name not in columns
        }

    def _take_from_other_files(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch columns from files that do not have one variable per line."""
        if (
            names
            and isinstance(self.stream, MultiFileStream)
            and len(self.files) > len(self.line_files)
        ):
            return self.stream.take_available(names)
        return {}

    def check(self, names: Sequence[str]) -> None:
        """Raise unless all these columns exist."""
        if self.stream.names is None:
            self.take([self.name(name) for name in names])
            return
        try:
            find_indices(self.stream.names, [self.name(name) for name in names])
        except KeyError as error:
            raise CommandError(missing_columns_text(self.path, error)) from None


def expand_files(given: Sequence[str]) -> list[str]:
    """Expand paths and patterns into files, in order."""
    return [path for one in given for path in paths_of(one)]


def check_layer(files: Sequence[str], *, layer: str | None, raw: bool) -> None:
    """Raise if --layer or --raw is given and no file is AnnData."""
    if (raw or layer is not None) and not any(
        "layer" in FORMATS[file_format(spool(path))].options for path in files
    ):
        option = "--raw" if raw else f"--layer {layer}"
        raise CommandError(
            f"{option}: expected an AnnData file (.h5ad). Got: {files[0]}. Hint: remove {option}"
        )


def open_source(
    files: Sequence[str],
    orientation: str,
    wanted: Sequence[str],
    on_bad: OnBad | None = None,
    options: ReadOptions = DEFAULT_READ_OPTIONS,
    display_name: str | None = None,
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
    display_name
        Name of the files in messages; by default the first path.
    ids
        Possible row identifiers.
    id_
        The column of row identifiers, if known.
    """
    files = [spool(path) for path in files]
    formats = [file_format(path) for path in files]
    texts = [path for path, format_ in zip(files, formats, strict=True) if format_ == "text"]
    if texts and orientation == "auto":
        must_contain = len(texts) == len(files)
        orientation = text_orientation(
            texts, wanted, options.delimiter, ids, must_contain=must_contain
        )
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
        path=display_name or files[0],
        files=files,
        format=orientation if texts else formats[0],
        stream=stream,
        line_files=[(path, delimiter_of(path, options.delimiter)) for path in texts]
        if is_lines
        else [],
        is_numbered=any(FORMATS[format_].numbered for format_ in formats),
        options=options,
    )


def _has_commas(path: str, options: ReadOptions) -> bool:
    return find_numerals(path, delimiter_of(path, options.delimiter), options).decimal == ","


def read_from_lines(
    files: Sequence[tuple[str, str]], names: Sequence[Hashable], options: ReadOptions
) -> tuple[dict[Hashable, Any], list[str]]:
    """Read some variables from files of lines; also return names of other variables there."""
    found: dict[Hashable, Any] = {}
    seen: list[str] = []
    for path, delimiter in files:
        numerals = find_numerals(path, delimiter, options)
        with open_text(path) as file, text_errors(path):
            for number, line in numbered_lines(file, path):
                if len(found) == len(set(names)):
                    return found, seen
                name, _ = split_name(line, delimiter)
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
        exact = parse_integers(cells) if may_be_rounded_integers(numbers) else None
        return as_integers(numbers) if exact is None else exact
    texts = [None if numerals.is_missing(cell) else cell.strip() for cell in cells]
    return np.array(texts, dtype=object)


def refuse_null(cell: str, path: str, where: str) -> None:
    """Raise CommandError for a cell with a null byte."""
    if null := null_byte_message(cell, path, where):
        raise CommandError(null)


def as_integers(values: Any) -> Any:
    """Convert floats that are all whole numbers to integers: text has no types."""
    if values.ndim == 1 and values.dtype.kind == "f" and np.isfinite(values).all():
        whole = (
            values.astype(np.int64)
            if np.abs(values).max(initial=0) < EXACT_INTEGER_LIMIT
            else values
        )
        return whole if (whole == values).all() else values
    return values
