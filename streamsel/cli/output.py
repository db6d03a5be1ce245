"""Output files and CSV lines: checked before a long run, and written completely or not at all."""

from __future__ import annotations

import csv
import errno
import os
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import numpy as np

from streamsel._utils.text import printable
from streamsel.cli.errors import CommandError
from streamsel.serialization.atomic import atomic_write, ensure_writable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


def row_writer(file: IO[str], delimiter: str) -> Any:
    """Return a `csv.writer` whose lines end in a line feed.

    Cells with any kind of line break are quoted. Python before 3.13 does not quote a carriage
    return unless lines end with one.
    """
    return csv.writer(_UnixLines(file), delimiter=delimiter, lineterminator="\r\n")


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


def check_table(path: str) -> None:
    """Raise now if a table cannot be written to this file or in this format."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise click.UsageError(
            f"--out {path}: expected a file name that ends in {', '.join(SUFFIXES)}. Got: "
            f"{suffix!r}"
        )
    if suffix in SUFFIXES[:3] and find_spec("pyarrow") is None:
        raise CommandError(
            f'--out {path}: {suffix} needs pyarrow. Hint: pip install "streamsel[io]"'
        )
    check_writable(path, "--out")


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
