"""What a run of `select` or `reduce` stands on: a model, a source of columns, notes of both."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from streamsel.cli._errors import CommandError
from streamsel.cli._inputs import Source, open_source
from streamsel.cli._request import takes_none
from streamsel.cli._resume import rest_of
from streamsel.cli._skipped import Skipped
from streamsel.cli._target import TargetFile, read_covariates, read_target, together
from streamsel.memory import peak_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamsel.cli._request import Request
    from streamsel.learner.report import Report
    from streamsel.stream._screen import Screen


class Job:
    """One pass over the columns of a file, or what is left of it.

    Parameters
    ----------
    request
        What the user asks for.

    Attributes
    ----------
    model
        What learns; it has its target.
    notes
        What is saved beside the model: what it was learnt from, and how far.
    source, screen
        The file, and what is left to read of it.
    skipped
        What was not learnt.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.skipped = Skipped(request.skipped_file)
        self._n_filled = 0
        self._seconds = 0.0
        self._began = time.monotonic()
        if request.resume is None:
            self._start()
        else:
            self._resume(request.resume)

    def _start(self) -> None:
        request = self.request
        self.notes: dict[str, Any] = {
            "command": request.command,
            "file": request.given[0] if len(request.given) == 1 else list(request.given),
            "orientation": request.orientation,
            "delimiter": request.delimiter,
            "target": list(request.target),
            "target_file": request.target_file,
            "covariates": list(request.covariates),
            "dropped": list(request.drop),
            "missing": request.missing or ("keep" if request.learner.takes_missing else "skip"),
            "min_count": request.min_count,
            "columns_read": 0,
            "last_column": "",
            "bad_lines": 0,
            "complete": False,
            "skipped": {},
            "filled": 0,
            "seconds": 0.0,
            "peak_memory": None,
        }
        file = TargetFile(request.target_file, request.target) if request.target_file else None
        left_out = [*([] if file else request.target), *request.drop, *request.covariates]
        # A name that the target's file has may not be in this one.
        elsewhere = [name for name in request.covariates if file is not None and file.holds(name)]
        wanted = [name for name in left_out if name not in elsewhere]
        source = self._open(request.orientation, wanted)
        source.check(request.drop)
        covariates = read_covariates(request.covariates, source, file)
        # Only the file says what its columns are called: those of an array are numbers.
        known = {"covariates": tuple(covariates)} if covariates else {}
        self.model = request.learner.clone(known)
        self.model.learn_target(
            read_target(request, source, file, self.model.target),
            covariates=together(covariates) if covariates else None,
        )
        self._screen_source(source, left_out)

    def _resume(self, path: str) -> None:
        from streamsel.persist import load, read_notes

        request = self.request
        self.model, notes = load(path), read_notes(path)
        if not isinstance(notes, dict) or "columns_read" not in notes:
            raise CommandError(f"--resume {path}: not a model that this command has saved")
        if notes["command"] != request.command:
            raise CommandError(f"--resume {path}: saved by streamsel {notes['command']}")
        if notes["complete"]:
            raise CommandError(f"--resume {path}: that run was complete, nothing is left to read")
        if self.model._one_source:
            raise CommandError(
                f"--resume {path}: a run with --exact cannot be taken up in the middle. "
                "Hint: run it again without --resume"
            )
        if request.missing == "keep" and not self.model.takes_missing:
            raise CommandError(f"--resume {path}: {takes_none(type(self.model).__name__)}")
        self.notes = {**notes, "missing": request.missing or notes["missing"]}
        self.skipped.go_on(notes)
        self._seconds, self._n_filled = notes["seconds"], notes["filled"]
        left_out = [*([] if notes["target_file"] else notes["target"]), *notes["dropped"]]
        left_out += notes.get("covariates", [])  # files of 0.3.0 have none
        self._screen_source(self._open(notes["orientation"] or "auto", left_out), left_out)

    def _open(self, orientation: str, wanted: Sequence[str]) -> Source:
        delimiter = self.notes.get("delimiter")
        heard = self.skipped.on_bad_line
        request = self.request
        source = open_source(
            request.files, orientation, wanted, heard, delimiter, shown=request.file
        )
        is_text = source.format in ("samples", "variables")
        self.notes["orientation"] = source.format if is_text else None
        return source

    def _screen_source(self, source: Source, left_out: Sequence[str]) -> None:
        """Screen what is left to read."""
        self.source = source
        self.skipped.left_out = left_out
        self.skipped.strict = self.notes["missing"] == "error"
        # Lines that are no columns of numbers do not count where the stream is concerned.
        n_read = self.notes["columns_read"] - self.notes["bad_lines"]
        self.screen = self.screened_from(n_read, self.notes["last_column"], self.skipped.list_)

    def screened_from(self, n_read: int, last_read: str, report: Any) -> Screen:
        """Return what comes after some columns, screened; what is left out goes to the report."""
        from streamsel.stream._screen import Screen

        source = self.source
        names = [source.name(name) for name in self.skipped.left_out]
        stream = rest_of(source.stream, names, n_read, last_read, source.path)
        min_count = self.notes.get("min_count", 0)  # files of 0.2.0 do not say
        return Screen(stream, self.model.n_rows, self.notes["missing"], report, min_count)

    def begin(self) -> None:
        """Count the time of learning from now on."""
        self._began = time.monotonic()

    def note_progress(self, before: int) -> None:
        """Note how far the screen has come, after so many columns that are no lines of text."""
        self.notes["bad_lines"] = self.skipped.n_bad_lines
        self.notes["columns_read"] = before + self.screen.n_read + self.notes["bad_lines"]
        if self.screen.n_read:
            self.notes["last_column"] = str(self.screen.last_read)
        self.notes["skipped"] = dict(self.skipped.refused + self.screen.skipped)
        self.notes["filled"] = self._n_filled + self.screen.n_filled

    def note_time(self) -> None:
        """Note how long it took so far, and how much memory."""
        self.notes["seconds"] = self._seconds + time.monotonic() - self._began
        self.notes["peak_memory"] = peak_bytes()

    def report(self) -> Report:
        """Return what was found."""
        report: Report = self.model.report()
        return report if self.notes["complete"] else report.unfinished()
