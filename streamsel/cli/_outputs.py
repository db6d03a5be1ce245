"""The files the command writes: known to be writable before a long run, whole or not at all."""

from __future__ import annotations

import errno
import os
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import numpy as np

from streamsel.cli._errors import CommandError
from streamsel.cli._rows import row_writer
from streamsel.escape import shown
from streamsel.files import try_writing, whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

# Errors that tell of a file itself, not of its directory.
_OF_THE_FILE = frozenset({errno.EISDIR, errno.EINVAL, errno.ENAMETOOLONG, errno.ELOOP})

SUFFIXES = (".parquet", ".feather", ".arrow", ".npy", ".csv", ".tsv")


def check_writable(path: str, option: str) -> None:
    """Fail now if this file could not be written after hours of work."""
    directory = Path(os.path.realpath(path)).parent
    try:
        try_writing(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CommandError(f"{option} {path}: there is no directory {directory}") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if error.errno in _OF_THE_FILE:
            raise CommandError(f"{option} {path}: {reason}") from error
        raise CommandError(
            f"{option} {path}: the directory {directory} is not writable ({reason})"
        ) from error


def check_distinct(outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]) -> None:
    """Refuse to write over what is read, or to the same file twice.

    Parameters
    ----------
    outputs, inputs
        Paths by what the user calls them; None where there is none.
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
    """Fail now if a table cannot be written to this file, or in this format."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise click.UsageError(
            f"--out {path}: unknown format {suffix!r}. Hint: the name must end in one of "
            f"{', '.join(SUFFIXES)}"
        )
    if suffix in SUFFIXES[:3] and find_spec("pyarrow") is None:
        raise CommandError(
            f'--out {path}: {suffix} needs pyarrow. Hint: pip install "streamsel[io]"'
        )
    check_writable(path, "--out")


def write_table(path: str, names: Sequence[Any], columns: Sequence[Any]) -> None:
    """Write columns of equal length to a file in the format that its suffix says.

    The dtype of the columns is kept where the format can (in .npy it is one for all).
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
    with whole_file(path) as beside:
        writers[Path(path).suffix.lower()](beside, titles, columns)


def write_csv(file: IO[str], names: Sequence[Any], columns: Sequence[Any], delimiter: str) -> None:
    """Write columns of equal length as text: a header, then one row a line."""
    writer = row_writer(file, delimiter)
    writer.writerow([str(name) for name in names])
    if columns:
        # tolist gives Python's numbers, whose repr is the shortest that reads back the same.
        rows: Iterable[tuple[Any, ...]] = zip(*(c.tolist() for c in columns), strict=True)
        writer.writerows(rows)


def write_csv_to_stdout(names: Sequence[Any], columns: Sequence[Any]) -> None:
    """Write columns of equal length to stdout as CSV."""
    titles = [shown(name) for name in names] if sys.stdout.isatty() else names
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

    # Arrow takes no path that is not UTF-8.
    with path.open("wb") as file:
        pq.write_table(_arrow_table(names, columns), file)


def _write_ipc(path: Path, names: Sequence[str], columns: Sequence[Any]) -> None:
    import pyarrow as pa

    table = _arrow_table(names, columns)
    with path.open("wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
