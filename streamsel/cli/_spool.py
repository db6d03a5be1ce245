"""What can be read once, a pipe or standard input, made a file that can be read again."""

from __future__ import annotations

import os
import stat
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from streamsel.cli._errors import CommandError, note, stop
from streamsel.cli._interrupt import Interrupts, exit_code_of
from streamsel.cli._log import log
from streamsel.cli._progress import spooling
from streamsel.cli._request import STDIN
from streamsel.stream._line_bound import FIRST_BYTES, LineBound

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 1 << 20
_MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\x93NUMPY": ".npy"}
_GZIP = b"\x1f\x8b"
# Seconds after which it is said that a named pipe has no writer.
PATIENCE = 3.0


def spooled(path: str, *, is_table: bool = False) -> str:
    """Return a file that can be read more than once: the one that is meant, or a copy of a pipe.

    A copy is made once a command, in the directory that `tempfile` says (TMPDIR), and is gone when
    the command ends.

    Parameters
    ----------
    path
        A file, a named pipe or process substitution, or "-" for standard input.
    is_table
        Whether text must be a table, even of one column.

    Raises
    ------
    CommandError
        If standard input is a terminal, or there is no room for the copy.
    """
    if path != STDIN and not _is_pipe(path):
        return path
    root = click.get_current_context().find_root()
    copies: dict[str, str] = root.meta.setdefault(__name__, {})
    if path not in copies:
        import tempfile

        name = "standard input" if path == STDIN else path
        # A signal ends it as it ends a run: what was copied is removed.
        with Interrupts():
            try:
                directory = root.with_resource(tempfile.TemporaryDirectory(prefix="streamsel-"))
                copies[path] = str(_copy(path, name, Path(directory), is_table=is_table))
            except KeyboardInterrupt as error:
                stop(f"interrupted while {name} was copied", exit_code_of(error))
        log().known_as[copies[path]] = name
    return copies[path]


def _is_pipe(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 (the error names the file as the user did)
    except OSError:
        return False  # whoever opens it says so
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def waiting_for_writer(path: str) -> Iterator[None]:
    """Say what is waited for where opening a named pipe takes more than a few seconds."""
    text = f"{path}: a named pipe that no program writes to yet; waiting for one (Ctrl-C ends it)"
    timer = threading.Timer(PATIENCE, note, [text])
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
            "standard input is a terminal, and no file. Hint: streamsel ... - < FILE, or a pipe"
        )
    yield sys.stdin.buffer


def _copy(path: str, name: str, directory: Path, *, is_table: bool) -> Path:
    """Copy what can be read once; return the copy, whose name ends as its format does."""
    copy, n_bytes, is_text = directory / "copy", 0, True
    # Text without line endings would be copied until there is no room left.
    bound = LineBound(name, FIRST_BYTES, FIRST_BYTES)
    with _opened(path) as source, spooling(name) as show:
        try:
            with copy.open("wb") as file:
                while piece := source.read(_PIECE):
                    if not n_bytes:
                        is_text = not piece.startswith((*_MAGIC, _GZIP))
                    if is_text:
                        bound.check(piece)
                    file.write(piece)
                    n_bytes += len(piece)
                    show(n_bytes)
        except OSError as error:
            raise CommandError(
                f"{name}: no copy could be kept in {directory.parent} after {n_bytes:,} bytes "
                f"({error.strerror or error}). Hint: TMPDIR names another directory"
            ) from error
    if not n_bytes:
        raise CommandError(f"{name}: nothing came")
    return copy.rename(directory / f"copy{_suffix(copy, is_table=is_table)}")


def _suffix(copy: Path, *, is_table: bool) -> str:
    """Return what the name of a file of such content would end in."""
    import gzip

    from streamsel.stream._cells import find_delimiter

    with copy.open("rb") as file:
        start = file.read(8)
        for magic, suffix in _MAGIC.items():
            if start.startswith(magic):
                return suffix
    packed = ".gz" if start.startswith(_GZIP) else ""
    try:
        with gzip.open(copy) if packed else copy.open("rb") as file:
            line = file.readline(_PIECE)
    except (OSError, EOFError):  # whoever reads it says so
        line = b""
    mark = find_delimiter(line.decode(errors="replace"), None, "")
    if mark == "\t":
        return ".tsv" + packed
    # Text without one may be a list of values.
    return (".csv" if is_table or mark.encode() in line else ".txt") + packed
