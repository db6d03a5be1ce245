"""Open the input files of the command: pipes are copied, and the content of text is inferred."""

from __future__ import annotations

import itertools
import os
import stat
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import click

from streamsel.cli.checkpoint import Interrupts, exit_code_of
from streamsel.cli.errors import CommandError, message_of
from streamsel.cli.progress import spool_progress
from streamsel.cli.settings import STDIN
from streamsel.cli.source import Source
from streamsel.stream.files import (
    DEFAULT_READ_OPTIONS,
    FIRST_BYTES,
    LineBound,
    Orientation,
    ReadOptions,
    delimiter_of,
    file_format,
    find_delimiter,
    find_numerals,
    infer_orientation,
    is_number,
    numbered_lines,
    open_files,
    open_text,
    orientation_of_names,
    paths_of,
    split_cells,
    text_errors,
)
from streamsel.stream.formats import FORMATS, format_of_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from streamsel.cli.log import Log
    from streamsel.stream.files import OnBad

_CHUNK_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
# Cells and lines searched for identifiers, and the share that must be known identifiers.
_MAX_CELLS = 8
_MAX_LINES = 5
_MIN_SHARE = 0.5
_HINTS = {
    "samples": "use --orientation samples: each line is a sample, below a header of names",
    "variables": "use --orientation variables: each line is a variable that begins with its name",
}


def expand_files(given: Sequence[str]) -> list[str]:
    """Expand paths and patterns into files, in order."""
    return [path for one in given for path in paths_of(one)]


def check_layer(files: Sequence[str], log: Log, *, layer: str | None, raw: bool) -> None:
    """Raise if --layer or --raw is given and no file is AnnData."""
    if (raw or layer is not None) and not any(
        "layer" in FORMATS[file_format(spool(path, log))].options for path in files
    ):
        option = "--raw" if raw else f"--layer {layer}"
        raise CommandError(
            f"{option}: expected an AnnData file (.h5ad). Got: {files[0]}. Hint: remove {option}"
        )


def open_source(
    files: Sequence[str],
    log: Log,
    orientation: str,
    expected_names: Sequence[str],
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
    log
        The log.
    orientation
        Content of a text line: "samples", "variables", or "auto" to infer it from the position of
        the `expected_names` names.
    expected_names
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
    files = [spool(path, log) for path in files]
    formats = [file_format(path) for path in files]
    texts = [path for path, format_ in zip(files, formats, strict=True) if format_ == "text"]
    if texts and orientation == "auto":
        must_contain = len(texts) == len(files)
        orientation = text_orientation(
            texts, expected_names, options.delimiter, ids, must_contain=must_contain
        )
    is_lines = bool(texts) and orientation == "variables"
    with_commas = [] if options.decimal else [p for p in texts if _has_commas(p, options)]
    if with_commas:
        log.note(
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


def text_orientation(
    paths: Sequence[str],
    expected_names: Sequence[str],
    delimiter: str | None = None,
    ids: Collection[str] = (),
    *,
    must_contain: bool = True,
) -> str:
    """Return "samples" or "variables": the content of a line, inferred from where names are found.

    Files without these names are inferred from the cells of the first lines.

    Parameters
    ----------
    paths
        The files.
    expected_names
        Names to search for.
    delimiter
        Delimiter of cells; None to infer it.
    ids
        Possible identifiers of samples.
    must_contain
        Whether the names must be in one of these files.
    """
    guesses = []
    for path in paths if expected_names or ids else ():
        by_ids = _orientations_by_ids(path, delimiter, ids)
        if by_ids:
            return by_ids[0]
        found, guess = (
            orientation_of_names(path, expected_names, delimiter) if expected_names else (False, "")
        )
        if found:
            return guess
        guesses += [guess] if guess else []
    if orientation := infer_orientation(paths[0], delimiter):
        return orientation
    if guesses and must_contain:
        # The names were not found: the guess lets the caller report close matches.
        return guesses[0]
    raise CommandError(
        f"{paths[0]}: cannot infer whether a line is a sample or a variable. Hint: use "
        "--orientation samples (a header names the columns) or --orientation variables (a "
        "line begins with its name)"
    )


def _orientations_by_ids(path: str, delimiter: str | None, ids: Collection[str]) -> list[str]:
    """Return the possible contents of a line, by where the first lines have identifiers."""
    # Numbers may be data.
    known = {value for value in ids if not is_number(value)}
    if not known:
        return []
    with open_text(path) as file, text_errors(path):
        lines = [line for _, line in itertools.islice(numbered_lines(file, path), _MAX_LINES)]
    separator = delimiter_of(path, delimiter)
    rows = [[cell.strip() for cell in split_cells(line, separator)] for line in lines]
    if not rows:
        return []
    header = rows[0][1:]
    in_header = header and sum(cell in known for cell in header) >= _MIN_SHARE * len(header)
    columns = itertools.zip_longest(*(row[:_MAX_CELLS] for row in rows[1:]), fillvalue="")
    in_rows = any(all(cell in known for cell in cells) for cells in columns)
    return [*(["variables"] if in_header else []), *(["samples"] if in_rows else [])]


def orientation_hint(
    files: Sequence[str],
    orientation: str,
    options: ReadOptions,
    ids: Collection[str] = (),
    n: int | None = None,
) -> str:
    """Return a hint if the other orientation fits a text better than the one used; otherwise "".

    Parameters
    ----------
    files, orientation, options
        The files, and how they were read.
    ids
        Identifiers of the samples.
    n
        Number of samples.
    """
    texts = [path for path in files if file_format(path) == "text"]
    if not texts or orientation not in _HINTS:
        return ""
    path, (other,) = texts[0], {*_HINTS} - {orientation}
    if ids:
        # A matrix of samples by samples has identifiers on both axes.
        return (
            _HINTS[other] if _orientations_by_ids(path, options.delimiter, ids) == [other] else ""
        )
    with open_text(path) as file, text_errors(path):
        lines = numbered_lines(file, path)
        if other == "samples":
            # Without the header.
            fits = sum(1 for _ in lines) - 1 == n
        else:
            first_lines = [line for _, line in itertools.islice(lines, 2)]
            # Without the name.
            separator = delimiter_of(path, options.delimiter)
            fits = len(split_cells(first_lines[-1], separator)) - 1 == n
    return _HINTS[other] if fits else ""


def spool(path: str, log: Log, *, is_table: bool = False) -> str:
    """Return a file that can be read more than once: the given one, or a copy of a pipe.

    Each pipe is copied once per command, to the directory of `tempfile` (TMPDIR); the copy is
    removed when the command ends.

    Parameters
    ----------
    path
        A file, a named pipe or process substitution, or "-" for standard input.
    log
        The log.
    is_table
        Whether text must be a table, even if it has only one column.

    Raises
    ------
    CommandError
        If standard input is a terminal, or the copy cannot be written.
    """
    if path != STDIN and not _is_pipe(path):
        return path
    root = click.get_current_context().find_root()
    copies: dict[str, str] = root.meta.setdefault(__name__, {})
    if path not in copies:
        import tempfile

        name = "standard input" if path == STDIN else path
        # Signals raise here as in a run, so that the copy is removed.
        with Interrupts():
            try:
                directory = root.with_resource(tempfile.TemporaryDirectory(prefix="streamsel-"))
                copies[path] = str(_copy(path, name, Path(directory), log, is_table=is_table))
            except KeyboardInterrupt as error:
                log.stop(f"interrupted while copying {name}", exit_code_of(error))
        log.display_names[copies[path]] = name
    return copies[path]


def _is_pipe(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 (the error names the file as the user did)
    except OSError:
        return False  # reported when it is opened
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def _opened(path: str, log: Log) -> Iterator[IO[bytes]]:
    if path != STDIN:
        with log.waiting_for_writer(path):
            file = open(path, "rb")  # noqa: PTH123, SIM115 (as above; closed below)
        with file:
            yield file
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise CommandError(
            "expected a file or pipe on standard input. Got: a terminal. Hint: streamsel ... "
            "- < FILE"
        )
    yield sys.stdin.buffer


def _copy(path: str, name: str, directory: Path, log: Log, *, is_table: bool) -> Path:
    """Copy a pipe; return the copy, with the suffix of its format."""
    copy, n_bytes, is_text = directory / "copy", 0, True
    # Stop endless text without line breaks before the disk is full.
    bound = LineBound(name, FIRST_BYTES, FIRST_BYTES)
    with _opened(path, log) as source, spool_progress(log, name) as show:
        try:
            with copy.open("wb") as file:
                while chunk := source.read(_CHUNK_BYTES):
                    if not n_bytes:
                        is_text = format_of_bytes(chunk) is None and not chunk.startswith(_GZIP)
                    if is_text:
                        bound.check(chunk)
                    file.write(chunk)
                    n_bytes += len(chunk)
                    show(n_bytes)
        except OSError as error:
            raise CommandError(
                f"{name}: cannot copy it to {directory.parent}: {error.strerror or error} "
                f"(after {n_bytes:,} bytes). Hint: set TMPDIR to another directory"
            ) from error
    if not n_bytes:
        raise CommandError(f"{name}: no data")
    return copy.rename(directory / f"copy{_suffix(copy, name, is_table=is_table)}")


def _suffix(copy: Path, name: str, *, is_table: bool) -> str:
    """Return the file suffix for the content of a copy."""
    import gzip

    with copy.open("rb") as file:
        compression = ".gz" if file.read(2) == _GZIP else ""
    try:
        with gzip.open(copy) if compression else copy.open("rb") as file:
            line = file.readline(_CHUNK_BYTES)
    except (OSError, EOFError):  # reported when it is read
        line = b""
    if format_ := format_of_bytes(line):
        suffix, others = FORMATS[format_].suffixes[0], FORMATS[format_].companions
        if others:
            raise CommandError(
                f"{name}: expected a format of one file. Got: {suffix}, which needs its "
                f"{' and '.join(others)} files. Hint: pass the path of the {suffix} file"
            )
        return suffix + compression
    separator = find_delimiter(line.decode(errors="replace"), None, "")
    if separator == "\t":
        return ".tsv" + compression
    # Text without a delimiter may be a list of values.
    return (".csv" if is_table or separator.encode() in line else ".txt") + compression
