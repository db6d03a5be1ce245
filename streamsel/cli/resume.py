"""The saved model of an earlier run, and checks that its input has not changed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any

from streamsel.cli.errors import CommandError
from streamsel.cli.settings import RunSettings, stored_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamsel.cli.log import Log
    from streamsel.cli.options import Stored
    from streamsel.stream.files import Fingerprint

# Metadata of a run that are not settings.
PROGRESS: dict[str, Stored] = {
    "warnings": ((list,), []),
    "columns_read": ((int,), 0),
    "last_column": ((str,), ""),
    "bad_lines": ((int,), 0),
    "complete": ((bool,), False),
    "skipped": ((dict,), {}),
    "encoded": ((dict,), {}),
    "columns_made": ((int,), 0),
    "until_state": ((list, NoneType), None),
    "index": ((list,), []),
    "counting": ((list,), []),
    "examples": ((dict,), {}),
    "filled": ((int,), 0),
    "filled_values": ((int,), 0),
    "seconds": ((int, float), 0.0),
    "peak_memory": ((int, float, NoneType), None),
    "version": ((str, NoneType), None),
    "begun": ((str, NoneType), None),
    "saved": ((str, NoneType), None),
    "fingerprint": ((dict, NoneType), None),
    "listed": ((list, NoneType), None),
}


@dataclass(frozen=True)
class SavedRun:
    """A model that a run has saved, and its metadata.

    Parameters
    ----------
    path
        The model file.
    model
        The model.
    metadata
        Metadata: what it was learnt from, and the progress.
    """

    path: str
    model: Any
    metadata: dict[str, Any]

    @property
    def is_finished(self) -> bool:
        """Whether that run is complete."""
        return bool(self.metadata["complete"])

    @property
    def cannot_continue(self) -> bool:
        """Whether that run was interrupted and cannot be continued."""
        is_single = self.model._needs_single_source or self.metadata["groups"] is not None
        return bool(is_single) and not self.is_finished


def read_saved(path: str, command: str) -> SavedRun | None:
    """Read the saved model of an earlier run; None if there is no such file.

    Raises
    ------
    CommandError
        For a model that was not saved by a run of this command.
    ValueError
        For a file that is damaged, or not a model.
    """
    from streamsel.serialization.archive import load, read_metadata

    try:
        os.stat(path)  # noqa: PTH116 (the error names the file as the user did)
    except FileNotFoundError:
        return None
    model, metadata = load(path), read_metadata(path)
    if not isinstance(metadata, dict) or not {"command", "columns_read"} <= metadata.keys():
        raise CommandError(f"--resume {path}: expected a model saved by streamsel {command}")
    expected = PROGRESS | {key: one.stored for _, key, one in stored_settings() if one.stored}
    metadata |= {name: absent for name, (_, absent) in expected.items() if name not in metadata}
    for name, (kinds, _) in (expected | {"command": ((str,), "")}).items():
        if not isinstance(metadata[name], kinds):
            raise CommandError(f"--resume {path}: corrupt metadata ({name})")
    for reason, example in list(metadata["examples"].items()):
        if not (isinstance(example, list) and [*map(type, example)] == [str, str, str]):
            raise CommandError(f"--resume {path}: corrupt metadata (examples: {reason})")
    if metadata["command"] != command:
        raise CommandError(
            f"--resume {path}: expected a model saved by streamsel {command}. Got: one saved by "
            f"streamsel {metadata['command']}"
        )
    return SavedRun(path, model, metadata)


def check_same_parts(settings: RunSettings, metadata: Mapping[str, Any]) -> None:
    """Refuse to resume a run in parts as one without parts, or the reverse.

    Progress is counted in parts, not columns: only the same parts give bit-identical results.
    """
    if metadata["columns_read"] and settings.in_parts != ("parts" in metadata):
        begun = "without --workers and --scheduler; it must be resumed without them"
        if "parts" in metadata:
            begun = "with --workers or --scheduler; it must be resumed with one of them"
        raise CommandError(f"--resume {settings.resume}: that run was started {begun}")


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
    log
        The log.
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
        log: Log,
        *,
        force: bool,
    ) -> None:
        self.ignored_differences: list[str] = []
        self._log = log
        self._model, self._file, self._force = model, file, force
        self._last = metadata["last_column"]
        # Older versions have no fingerprint: then only the last name is compared.
        self._known, self._now = metadata["fingerprint"] or {}, now
        self._known_relatedness = metadata.get("relatedness") is not None

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
            self._report_difference(
                "the values of the target or a covariate, or the relatedness, have changed"
                if self._known_relatedness
                else "the values of the target or a covariate have changed"
            )
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
            self._log.note(
                f"{self._file} was modified since the last run; no difference was detected"
            )

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
        self._log.show_warning(f"--force: {what}")
