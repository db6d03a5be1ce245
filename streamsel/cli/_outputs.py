"""The files the command writes: known to be writable before a long run, whole or not at all."""

from __future__ import annotations

import csv
import os
import secrets
import stat
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import numpy as np

from streamsel.cli._errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

SUFFIXES = (".parquet", ".feather", ".arrow", ".npy", ".csv", ".tsv")


def check_writable(path: str, option: str) -> None:
    """Fail now if this file could not be written after hours of work."""
    target = Path(os.path.realpath(path))
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        kind = "a directory" if target.is_dir() else "not a regular file"
        raise CommandError(f"{option} {path}: {kind}")
    if not target.parent.is_dir():
        raise CommandError(f"{option} {path}: there is no directory {target.parent}")
    try:
        # Trying is the only way to know: permissions say nothing of a read-only file system.
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name[:40]}."):
            pass
    except OSError as error:
        raise CommandError(
            f"{option} {path}: the directory {target.parent} is not writable "
            f"({error.strerror or error})"
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

    The dtype of the columns is kept where the format can (in .npy it is one for all). The file is
    written beside its destination and moved over it when it is whole.
    """
    titles = [str(name) for name in names]
    writer: Callable[[Any, Sequence[str], Sequence[Any]], None] = {
        ".parquet": _write_parquet,
        ".feather": _write_ipc,
        ".arrow": _write_ipc,
        ".npy": _write_npy,
        ".csv": _write_text,
        ".tsv": _write_text,
    }[Path(path).suffix.lower()]
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp{target.suffix}")
    try:
        writer(beside, titles, columns)
        beside.replace(target)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def write_csv(file: IO[str], names: Sequence[Any], columns: Sequence[Any], delimiter: str) -> None:
    """Write columns of equal length as text: a header, then one row a line."""
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow([str(name) for name in names])
    if columns:
        # tolist gives Python's numbers, whose repr is the shortest that reads back the same.
        rows: Iterable[tuple[Any, ...]] = zip(*(c.tolist() for c in columns), strict=True)
        writer.writerows(rows)


def write_csv_to_stdout(names: Sequence[Any], columns: Sequence[Any]) -> None:
    """Write columns of equal length to stdout as CSV."""
    write_csv(sys.stdout, names, columns, ",")


def _write_text(path: Path, names: Sequence[str], columns: Sequence[Any]) -> None:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
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

    pq.write_table(_arrow_table(names, columns), path)


def _write_ipc(path: Path, names: Sequence[str], columns: Sequence[Any]) -> None:
    import pyarrow as pa

    table = _arrow_table(names, columns)
    with path.open("wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
