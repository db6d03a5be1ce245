"""Check that a file and a target are those that a model was learnt from."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli.errors import CommandError, note, warn
from streamsel.cli.spool import spool
from streamsel.stream.files import Stamp, digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamsel.cli.inputs import Source
    from streamsel.stream.files import Fingerprint


def iso_utc(seconds: float) -> str:
    """Return a time in ISO 8601 format, in UTC."""
    time = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return time.isoformat(timespec="seconds")


def fingerprint(source: Source, given: Sequence[Any]) -> dict[str, Any]:
    """Return the fingerprint of a file before its columns are read.

    Parameters
    ----------
    source
        The file.
    given
        Target and covariates, as they were read.
    """
    paths = [spool(path) for path in source.files]
    found, copied = [Stamp.of(path) for path in paths], paths != list(source.files)
    times = [one.changed for one in found if isinstance(one.changed, int)]
    return {
        "rows": source.stream.n_rows,
        "columns": source.stream.n_columns,
        "files": len(found),
        "bytes": sum(one.size for one in found),
        # A copy of a pipe is always new, and a URL has no modification time.
        "modified": None if copied or not times else iso_utc(max(times) / 1e9),
        "target": _checksum(given),
    }


class SourceComparison:
    """Compares a file and a target with those that a model was learnt from.

    Parameters
    ----------
    model
        The model file.
    file
        The file of columns.
    metadata
        Metadata of the model.
    now
        The fingerprint of the file and the target.
    force
        Whether to continue despite differences, other than in the number of rows.

    Attributes
    ----------
    ignored_differences
        Differences that were ignored because of `force`.

    Raises
    ------
    CommandError
        By every method, for a difference.
    """

    def __init__(
        self,
        model: str,
        file: str,
        metadata: Mapping[str, Any],
        now: Mapping[str, Any],
        *,
        force: bool,
    ) -> None:
        self.ignored_differences: list[str] = []
        self._model, self._file, self._force = model, file, force
        self._last = metadata["last_column"]
        # Older versions have no fingerprint: then only the last name is compared.
        self._known, self._now = metadata["fingerprint"] or {}, now

    def check_before_reading(self) -> None:
        """Compare what is known before columns are read."""
        rows, n_rows = self._saved_and_current("rows")
        if rows != n_rows:
            raise CommandError(
                f"--resume {self._model}: expected {rows:,} rows in {self._file}. Got: "
                f"{n_rows:,}. Hint: use another --model to start a new run"
            )
        target, found = self._saved_and_current("target")
        if target != found:
            self._report_difference("the values of the target or a covariate have changed")
        columns, n_columns = self._saved_and_current("columns")
        if columns != n_columns:
            self._report_difference(
                f"{self._file} had {columns:,} columns and now has {n_columns:,}"
            )

    def check_read(self, seen: Fingerprint) -> None:
        """Compare the columns that were read."""
        if str(seen.last) != self._last:
            where = f"{self._file}: the last of {seen.n_columns:,} columns read"
            self._report_difference(f"{where} was {self._last!r} and is now {str(seen.last)!r}")
        elif known := self._known.get("read"):
            for text in seen.differences(known):
                self._report_difference(f"{self._file}: {text}")

    def check_size(self) -> None:
        """Compare the size, the least specific difference."""
        size, n_bytes = self._saved_and_current("bytes")
        if size != n_bytes and not self.ignored_differences:
            self._report_difference(f"{self._file} had {size:,} bytes and now has {n_bytes:,}")

    def note_if_modified(self) -> None:
        """Print a note if the file was modified without a detected difference."""
        before, modified = self._saved_and_current("modified")
        if before != modified and not self.ignored_differences:
            note(f"{self._file} was modified since the last run; no difference was detected")

    def _saved_and_current(self, what: str) -> tuple[Any, Any]:
        """Return the saved and the current value; None for both if either is unknown."""
        pair = self._known.get(what), self._now[what]
        return (None, None) if None in pair else pair

    def _report_difference(self, what: str) -> None:
        if not self._force:
            raise CommandError(
                f"--resume {self._model}: the input has changed since the last run: {what}. "
                "Hint: --force continues anyway; another --model starts a new run"
            )
        self.ignored_differences.append(what)
        warn(f"--force: {what}")


def _checksum(given: Sequence[Any]) -> str:
    """Return a checksum of the contents of arrays, tables and None."""
    parts: list[Any] = []
    for one in given:
        if hasattr(one, "column_names"):
            parts += [one.column_names, *(column.to_pylist() for column in one.columns)]
        else:
            parts.append(None if one is None else digest(one))
    return digest(np.array([repr(part) for part in parts], dtype=object))
