"""Whether a file and a target are still what a model was learnt from."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._errors import CommandError, note, warn
from streamsel.cli._spool import spooled
from streamsel.stream._fingerprint import digest
from streamsel.stream._split import Stamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamsel.cli._inputs import Source
    from streamsel.stream._fingerprint import Fingerprint


def utc(seconds: float) -> str:
    """Write a time as ISO 8601 has it."""
    time = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return time.isoformat(timespec="seconds")


def fingerprint(source: Source, given: Sequence[Any]) -> dict[str, Any]:
    """Return what is noted of a file before its columns are read.

    Parameters
    ----------
    source
        The file.
    given
        Target and covariates, as they were read.
    """
    paths = [spooled(path) for path in source.files]
    found, copied = [Stamp.of(path) for path in paths], paths != list(source.files)
    times = [one.changed for one in found if isinstance(one.changed, int)]
    return {
        "rows": source.stream.n_rows,
        "columns": source.stream.n_columns,
        "files": len(found),
        "bytes": sum(one.size for one in found),
        # A copy of a pipe is always new, and what is at a URL has no time.
        "modified": None if copied or not times else utc(max(times) / 1e9),
        "target": _digest_of(given),
    }


class Comparison:
    """Compares a file and a target with what a model was learnt from.

    Parameters
    ----------
    model
        Where the model is.
    file
        The file of columns.
    notes
        Of the model.
    now
        The file's and the target's fingerprint.
    force
        Whether to go on whatever is found, but for another number of rows.

    Attributes
    ----------
    told
        What is not as it was, where one goes on all the same.

    Raises
    ------
    CommandError
        By every method, if what it compares is not as it was.
    """

    def __init__(
        self,
        model: str,
        file: str,
        notes: Mapping[str, Any],
        now: Mapping[str, Any],
        *,
        force: bool,
    ) -> None:
        self.told: list[str] = []
        self._model, self._file, self._force = model, file, force
        self._last = notes["last_column"]
        # Versions before had none: then there is nothing to compare but a name.
        self._known, self._now = notes["fingerprint"] or {}, now

    def check_given(self) -> None:
        """Compare what is known before columns are read."""
        rows, n_rows = self._both("rows")
        if rows != n_rows:
            raise CommandError(
                f"--resume {self._model}: {self._file} has {n_rows:,} rows, and had {rows:,}. "
                "Hint: begin another --model"
            )
        target, found = self._both("target")
        if target != found:
            self._tell("the target, or a covariate, has other values")
        columns, n_columns = self._both("columns")
        if columns != n_columns:
            self._tell(f"{self._file} has {n_columns:,} columns, and had {columns:,}")

    def check_read(self, seen: Fingerprint) -> None:
        """Compare the columns that were read."""
        if str(seen.last) != self._last:
            where = f"{self._file}: column {seen.n_columns:,} of those read"
            self._tell(f"{where} is {str(seen.last)!r}, and was {self._last!r}")
        elif known := self._known.get("read"):
            for text in seen.differences(known):
                self._tell(f"{self._file}: {text}")

    def check_size(self) -> None:
        """Compare what differs most easily, and tells least."""
        size, n_bytes = self._both("bytes")
        if size != n_bytes and not self.told:
            self._tell(f"{self._file} has {n_bytes:,} bytes, and had {size:,}")

    def tell_if_written(self) -> None:
        """Tell if the file was written again, though nothing was found that is not as it was."""
        before, modified = self._both("modified")
        if before != modified and not self.told:
            note(f"{self._file} was written again since; what was compared of it is as it was")

    def _both(self, what: str) -> tuple[Any, Any]:
        """Return what was known then and is now; nothing twice, if either is not known."""
        pair = self._known.get(what), self._now[what]
        return (None, None) if None in pair else pair

    def _tell(self, what: str) -> None:
        if not self._force:
            raise CommandError(
                f"--resume {self._model}: not what the model was learnt from: {what}. "
                "Hint: --force goes on all the same, another --model begins anew"
            )
        self.told.append(what)
        warn(f"--force: {what}")


def _digest_of(given: Sequence[Any]) -> str:
    """Return a checksum of arrays, tables and None: of all that is in them."""
    parts: list[Any] = []
    for one in given:
        if hasattr(one, "column_names"):
            parts += [one.column_names, *(column.to_pylist() for column in one.columns)]
        else:
            parts.append(None if one is None else digest(one))
    return digest(np.array([repr(part) for part in parts], dtype=object))
