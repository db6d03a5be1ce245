"""Columns that are not learnt: skipped, excluded by name, or only numbering the rows."""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from contextlib import contextmanager, suppress
from fnmatch import translate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from streamsel._utils.sparse import is_sparse
from streamsel._utils.text import printable
from streamsel.cli.diagnostics import MAX_EXAMPLES
from streamsel.cli.errors import CommandError, message_of, missing_columns_text
from streamsel.cli.output import row_writer
from streamsel.data.chunks import group_starts
from streamsel.stream.files import (
    CellMessage,
    ReadOptions,
    find_layout,
    iter_files,
    numbered_lines,
    open_text,
    part_of,
    raise_unknown_names,
    split_name,
    text_errors,
)

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Hashable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from streamsel.cli.log import Log
    from streamsel.cli.source import Source
    from streamsel.data.chunks import Block

# Names used by pandas, R and databases.
_USUAL_NAMES = frozenset(
    ["", "Unnamed: 0", "Unnamed: 0.1", "index", "Index", "level_0", "rowid", "ROWID", "rownames"]
) | {f"__index_level_{i}__" for i in range(4)}
# Fewer rows may be consecutive by chance.
_MIN_ROWS = 8


class Skipped:
    """Columns that were read but not learnt.

    The stream of `clean` counts most of them and passes each to `list_column`. Lines that never
    reach it come through `on_bad_line`, and columns that the learner rejects through `reject`.

    Parameters
    ----------
    path
        The file that lists them; "-" is stderr, None is no list.
    log
        The log.

    Attributes
    ----------
    rejected
        Counts of columns that `clean` has not counted: reason -> number.
    is_recording
        Whether text lines that are not numeric are recorded.
    strict
        Whether the first such line is an error.
    encodes_text
        Whether lines of text are passed on, to be encoded.
    excluded
        Names of columns that are not to be learnt, and so are not reported.
    examples
        For some reasons, name, detail and cell of the first column.
    n_bad_lines
        Number of lines of text that are not numeric, in this run and earlier ones.
    listed
        Path and size of the list; None if there is none.
    add_row_ids
        Adds identifiers, if known, to a text about a row.
    """

    def __init__(self, path: str | None, log: Log) -> None:
        self.rejected: Counter[str] = Counter()
        self.is_recording = False
        self.strict = False
        self.encodes_text = False
        self.excluded: Collection[str] = ()
        self.examples: dict[str, list[str]] = {}
        self.add_row_ids: Callable[[str], str] = str
        self._path, self._log = path, log
        self._file: io.FileIO | None = None
        self.n_bad_lines = 0
        self.listed: list[Any] | None = None
        # Lines that are not numeric, in this run and in earlier ones.
        self._n_seen = self._n_known = 0

    def resume(self, metadata: Mapping[str, Any]) -> None:
        """Continue with the counts of an earlier run."""
        self.rejected.update(metadata["skipped"])
        self.examples |= metadata["examples"]
        self.n_bad_lines = self._n_known = metadata["bad_lines"]
        listed = metadata["listed"]
        self.listed = [*listed] if listed and listed[0] == self._path else None

    @contextmanager
    def open_list(self) -> Iterator[None]:
        """Write the list during the context, if requested."""
        if self._path is None or self._path == "-":
            yield
            return
        path = Path(self._path)
        known = self.listed if path.exists() else None
        with path.open("wb" if known is None else "ab", buffering=0) as file:
            if known is not None:
                # Lines written after the last save of a killed run are written again.
                file.truncate(min(known[1], file.tell()))
            self._file, self.listed = file, [self._path, file.seek(0, os.SEEK_END)]
            try:
                yield
            finally:
                self.flush()
                self._file = None

    def flush(self) -> None:
        """Flush the list to disk, before a model that refers to it is saved."""
        if self._file is not None:
            with suppress(OSError):  # a file system without fsync
                os.fsync(self._file.fileno())

    def list_column(self, name: Hashable, reason: str, detail: str) -> None:
        """Write a line of the list."""
        cell = detail.cell if isinstance(detail, CellMessage) else None
        detail = self.add_row_ids(detail)
        if cell is not None:
            self.examples.setdefault(reason, [str(name), str(detail), cell])
        cells = str(name), reason, " ".join(detail.split())
        if self._path == "-":
            self._print(*cells)
        elif self._file is not None and self.listed is not None:
            line = io.StringIO(newline="")
            row_writer(line, "\t").writerow(cells)
            # A name that cannot be encoded must not end the run.
            size = self._file.write(line.getvalue().encode("utf-8", "backslashreplace"))
            # Another list: metadata that refer to this one must not change.
            self.listed = [self._path, self.listed[1] + size]

    def on_bad_line(self, name: Hashable, reason: str, detail: str) -> bool:
        """Record a line of text that is not numeric; return whether it is passed on."""
        if self.encodes_text and reason == "text":
            return True
        if not self.is_recording or name in self.excluded:
            return False
        self._n_seen += 1
        if self._n_seen <= self._n_known:
            return False
        self.n_bad_lines = self._n_seen
        if self.strict:
            raise ValueError(detail)
        self.reject(name, reason, detail)
        return False

    def reject(self, name: Hashable, reason: str, detail: str) -> None:
        """Count a column, and list it."""
        self.rejected[reason] += 1
        self.list_column(name, reason, detail)

    def _print(self, name: str, reason: str, detail: str) -> None:
        """List a column on stderr."""
        if self._log.as_json:
            self._log.emit("skipped", name=name, reason=reason, detail=detail)
        elif not self._log.quiet:
            click.echo("\t".join(map(printable, (name, reason, detail))), err=True)


def learn_accepted(learn: Callable[[Block], None], block: Block, skipped: Skipped) -> None:
    """Learn a block; if it is rejected, learn all columns except those that cause the error.

    A group of columns is rejected as a whole.
    """
    try:
        learn(block)
    except ValueError as error:
        # A name that the model already has, or an overflow: bisect to find the column.
        starts = group_starts(block.groups, len(block.names))
        if starts.size == 2:
            for name in block.names:
                skipped.reject(name, "refused", message_of(error))
            return
        half = int(starts[(starts.size - 1) // 2])
        for start, stop in ((0, half), (half, len(block.names))):
            learn_accepted(learn, part_of(block, start, stop), skipped)


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


def find_row_numbers(source: Source, excluded: Collection[str]) -> list[str]:
    """Return the columns of a file that have a usual name of an index and number the rows.

    In text with one variable per line only the first variable is checked.

    Parameters
    ----------
    source
        The file.
    excluded
        Names of columns that are something else.
    """
    names = source.stream.names
    if isinstance(names, range):
        return []
    if names is None:
        names = [_first_variable(path, delimiter) for path, delimiter in source.line_files]
    found = sorted(_USUAL_NAMES.intersection(names).difference(excluded))
    columns = source.take_existing(found) if found else {}
    return [str(name) for name, values in columns.items() if is_row_number(values)]


def _first_variable(path: str, delimiter: str) -> str:
    """Return the name of the first variable of text with one variable per line."""
    first = find_layout(path, ReadOptions(delimiter)).first_line
    with open_text(path) as file, text_errors(path):
        lines = (line for number, line in numbered_lines(file, path) if number >= first)
        return split_name(next(lines), delimiter)[0]


def is_row_number(values: Any) -> bool:
    """Return whether values are 0, 1, 2, ... or 1, 2, 3, ..., in this order."""
    if is_sparse(values) or values.ndim != 1 or values.dtype.kind not in "iuf" or len(values) < 2:
        return False
    return values[0] in (0, 1) and bool((values == values[0] + np.arange(len(values))).all())


class RowCounterFinder:
    """Finds columns that number the rows without a usual name of an index.

    Parameters
    ----------
    known
        Such columns of an earlier run.
    """

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.names = list(known)

    def check_block(self, block: Block) -> None:
        """Check the columns of a block."""
        values = block.values
        if is_sparse(values) or values.dtype.kind not in "iuf" or len(values) < _MIN_ROWS:
            return
        # The first values rule out all but the columns that are sought.
        head, counts = values[:_MIN_ROWS], np.arange(_MIN_ROWS)[:, None]
        could = (head == counts).all(axis=0) | (head == counts + 1).all(axis=0)
        for j in np.flatnonzero(could).tolist():
            if len(self.names) > MAX_EXAMPLES:
                break
            if is_row_number(values[:, j]) and str(block.names[j]) not in self.names:
                self.names.append(str(block.names[j]))
