"""Copy a pipe or standard input to a temporary file that can be read more than once."""

from __future__ import annotations

import os
import stat
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from streamsel.cli.errors import CommandError, note, stop_with_note
from streamsel.cli.log import log
from streamsel.cli.progress import spool_progress
from streamsel.cli.signals import Interrupts, exit_code_of
from streamsel.stream.files import FIRST_BYTES, LineBound
from streamsel.stream.formats import FORMATS, format_of_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

# The file name that denotes standard input.
STDIN = "-"

_CHUNK_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
# Seconds until a message that a named pipe has no writer.
WRITER_WAIT_SECONDS = 3.0


def spool(path: str, *, is_table: bool = False) -> str:
    """Return a file that can be read more than once: the given one, or a copy of a pipe.

    Each pipe is copied once per command, to the directory of `tempfile` (TMPDIR); the copy is
    removed when the command ends.

    Parameters
    ----------
    path
        A file, a named pipe or process substitution, or "-" for standard input.
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
                copies[path] = str(_copy(path, name, Path(directory), is_table=is_table))
            except KeyboardInterrupt as error:
                stop_with_note(f"interrupted while copying {name}", exit_code_of(error))
        log().display_names[copies[path]] = name
    return copies[path]


def _is_pipe(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 (the error names the file as the user did)
    except OSError:
        return False  # reported when it is opened
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def waiting_for_writer(path: str) -> Iterator[None]:
    """Print a note if opening a named pipe takes more than a few seconds."""
    text = f"{path}: waiting for a program to write to this named pipe (Ctrl-C to stop)"
    timer = threading.Timer(WRITER_WAIT_SECONDS, note, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path != STDIN:
        with waiting_for_writer(path):
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


def _copy(path: str, name: str, directory: Path, *, is_table: bool) -> Path:
    """Copy a pipe; return the copy, with the suffix of its format."""
    copy, n_bytes, is_text = directory / "copy", 0, True
    # Stop endless text without line breaks before the disk is full.
    bound = LineBound(name, FIRST_BYTES, FIRST_BYTES)
    with _opened(path) as source, spool_progress(name) as show:
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

    from streamsel.stream.files import find_delimiter

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
