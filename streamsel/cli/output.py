"""Output files: checked and locked before a long run, and written completely or not at all."""

from __future__ import annotations

import csv
import errno
import hashlib
import os
import platform
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import numpy as np

from streamsel._utils.text import printable, utc_text
from streamsel.cli.errors import CommandError
from streamsel.cli.settings import STDIN, RunSettings
from streamsel.serialization.atomic import atomic_write, ensure_writable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from streamsel.cli.log import Log

if sys.platform != "win32":
    import fcntl


def row_writer(file: IO[str], delimiter: str) -> Any:
    """Return a `csv.writer` whose lines end in a line feed.

    Cells with any kind of line break are quoted. Python before 3.13 does not quote a carriage
    return unless lines end with one.
    """
    return csv.writer(_UnixLines(file), delimiter=delimiter, lineterminator="\r\n")


def cell_text(value: Any) -> str:
    """Return a value as text; an empty cell means not applicable."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class _UnixLines:
    """Replaces the CR LF at the end of each line by LF."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> int:
        return self._file.write(line[:-2] + "\n")


# Errors about the file itself rather than its directory.
_FILE_ERRORS = frozenset({errno.EISDIR, errno.EINVAL, errno.ENAMETOOLONG, errno.ELOOP})

SUFFIXES = (".parquet", ".feather", ".arrow", ".npy", ".csv", ".tsv")


def check_writable(path: str, option: str) -> None:
    """Raise now if a file could not be written at the end of the run."""
    directory = Path(os.path.realpath(path)).parent
    try:
        ensure_writable(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CommandError(f"{option} {path}: no such directory: {directory}") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if error.errno in _FILE_ERRORS:
            raise CommandError(f"{option} {path}: {reason}") from error
        raise CommandError(
            f"{option} {path}: the directory {directory} is not writable ({reason})"
        ) from error


def note_written(log: Log, path: str, what: str) -> None:
    """Write a note that a file was written, with its content and size."""
    size = os.path.getsize(path)  # noqa: PTH202 (a string, as the user gave it)
    text = f"wrote {path}: {what}, {max(1, round(size / 1000)):,} kB"
    log.emit("note", text, file=path, bytes=size)


def check_distinct_outputs(
    outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]
) -> None:
    """Refuse to overwrite an input, or to write two outputs to the same file.

    Parameters
    ----------
    outputs, inputs
        Paths by option or argument name; None if not given.
    """
    known = {what: path for what, path in inputs.items() if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        for what, other in known.items():
            if _same_file(path, other):
                raise click.UsageError(f"{option} {path}: the same file as {what}")
        known[option] = path


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121 (strings, as the user gave them)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


# Longest file name, in bytes, that is part of the lock's name; longer ones are hashed.
_MAX_NAME_BYTES = 60


@contextmanager
def output_locks(outputs: Mapping[str, str | None]) -> Iterator[None]:
    """Prevent other runs from writing the same files.

    The locks are advisory and end with the process, however it ends. On Windows, and on file
    systems without locks, nothing is locked.

    Parameters
    ----------
    outputs
        Paths by option; None if not given.

    Raises
    ------
    CommandError
        For a file that another run is writing; the message names that run.
    """
    with ExitStack() as stack:
        for option, path in outputs.items():
            if path is not None and sys.platform != "win32":
                stack.enter_context(_locked(option, path))
        yield


def lock_path(path: str) -> Path:
    """Return the lock file of a path."""
    target = Path(os.path.realpath(path))
    name = target.name
    if len(os.fsencode(name)) > _MAX_NAME_BYTES:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:_MAX_NAME_BYTES]
    return target.with_name(f".lock-{name}")


@contextmanager
def _locked(option: str, path: str) -> Iterator[None]:
    lock = lock_path(path)
    opened = _open_locked(lock, f"{option} {path}")
    try:
        if opened is not None:
            with suppress(OSError):
                os.truncate(opened, 0)
                os.write(opened, _run_description().encode())
        yield
    finally:
        if opened is not None:
            # Removed before unlocking, as it may then belong to another run.
            lock.unlink(missing_ok=True)
            os.close(opened)


def _open_locked(lock: Path, what: str) -> int | None:
    """Open and lock a lock file; None if that is not possible."""
    while True:
        try:
            opened = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            return None
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.read(opened, 1000).decode(errors="replace").strip()
            os.close(opened)
            raise CommandError(
                f"{what}: another run is writing this file{other and f' ({other})'}. Hint: "
                "wait for it to end, or use another file"
            ) from None
        except OSError:  # a file system without locks
            os.close(opened)
            lock.unlink(missing_ok=True)
            return None
        # Meanwhile its owner may have removed it and another run created it again.
        with suppress(OSError):
            if os.path.samestat(os.fstat(opened), lock.stat()):
                return opened
        os.close(opened)


def _run_description() -> str:
    return f"process {os.getpid()} on {platform.node()}, since {utc_text(time.time())}"


def check_table(path: str, option: str = "--out", suffixes: Sequence[str] = SUFFIXES) -> None:
    """Raise now if a table cannot be written to this file, or not in a format of `suffixes`."""
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        raise click.UsageError(
            f"{option} {path}: expected a file name that ends in {', '.join(suffixes)}. Got: "
            f"{suffix!r}"
        )
    if suffix in SUFFIXES[:3] and find_spec("pyarrow") is None:
        raise CommandError(
            f'{option} {path}: {suffix} needs pyarrow. Hint: pip install "streamsel[io]"'
        )
    check_writable(path, option)


def check_run_files(settings: RunSettings, outputs: Mapping[str, str | None]) -> None:
    """Raise early for outputs of a run, by option, that could not be written at its end."""
    if [*settings.arguments, settings.target_file].count(STDIN) > 1:
        raise click.UsageError("-: standard input can be used only once")
    check_distinct_outputs(
        outputs,
        {
            **{path if len(settings.files) > 1 else "FILE": path for path in settings.files},
            "--target-file": settings.target_file,
        },
    )
    others = {name: outputs[name] for name in ("--out", "--statistics", "--list-skipped")}
    check_distinct_outputs(others, {"--resume": settings.resume})
    if settings.out is not None:
        check_table(settings.out)
    if settings.statistics is not None:
        # An .npy file has no titles, and one type for all columns.
        suffixes = [suffix for suffix in SUFFIXES if suffix != ".npy"]
        check_table(settings.statistics, "--statistics", suffixes)
    if settings.model is not None:
        check_writable(settings.model, "--model")
    if outputs["--list-skipped"] is not None:
        check_writable(outputs["--list-skipped"], "--list-skipped")


def write_table(path: str, names: Sequence[Any], columns: Sequence[Any]) -> None:
    """Write columns of equal length to a file in the format of its suffix.

    The dtype of the columns is kept if the format allows it (.npy has one for all columns).
    """
    titles = [str(name) for name in names]
    writers: dict[str, Callable[[Any, Sequence[str], Sequence[Any]], None]] = {
        ".parquet": _write_parquet,
        ".feather": _write_ipc,
        ".arrow": _write_ipc,
        ".npy": _write_npy,
        ".csv": partial(_write_text, ","),
        ".tsv": partial(_write_text, "\t"),
    }
    with atomic_write(path) as temporary:
        writers[Path(path).suffix.lower()](temporary, titles, columns)


def write_csv(file: IO[str], names: Sequence[Any], columns: Sequence[Any], delimiter: str) -> None:
    """Write columns of equal length as text: a header, then one line per row."""
    writer = row_writer(file, delimiter)
    writer.writerow([str(name) for name in names])
    if columns:
        # tolist returns Python numbers, whose repr is the shortest that round-trips.
        rows: Iterable[tuple[Any, ...]] = zip(*(c.tolist() for c in columns), strict=True)
        writer.writerows(rows)


def write_csv_to_stdout(names: Sequence[Any], columns: Sequence[Any]) -> None:
    """Write columns of equal length to stdout as CSV."""
    titles = [printable(name) for name in names] if sys.stdout.isatty() else names
    write_csv(sys.stdout, titles, columns, ",")


def _write_text(delimiter: str, path: Path, names: Sequence[str], columns: Sequence[Any]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        write_csv(file, names, columns, delimiter)


def _write_npy(path: Path, _: Sequence[str], columns: Sequence[Any]) -> None:
    with path.open("wb") as file:
        np.save(file, np.column_stack(columns), allow_pickle=False)


def _arrow_table(names: Sequence[str], columns: Sequence[Any]) -> Any:
    import pyarrow as pa

    return pa.Table.from_arrays([pa.array(column) for column in columns], names=list(names))


def _write_parquet(path: Path, names: Sequence[str], columns: Sequence[Any]) -> None:
    import pyarrow.parquet as pq

    # Arrow rejects paths that are not UTF-8.
    with path.open("wb") as file:
        pq.write_table(_arrow_table(names, columns), file)


def _write_ipc(path: Path, names: Sequence[str], columns: Sequence[Any]) -> None:
    import pyarrow as pa

    table = _arrow_table(names, columns)
    with path.open("wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def prepend_columns(
    columns: dict[str, Any], names: Sequence[Any], further: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Return the names and the columns of the copied columns followed by the others."""
    pairs = [pair for pair in zip(names, further, strict=True) if str(pair[0]) not in columns]
    return (
        [*columns, *(name for name, _ in pairs)],
        [*columns.values(), *(values for _, values in pairs)],
    )
