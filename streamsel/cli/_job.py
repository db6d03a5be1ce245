"""A run of `select` or `reduce`: a model, a source of columns, and the metadata of both."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

from streamsel import __version__
from streamsel.cli._alarms import (
    Alarm,
    columns_of,
    count_alike,
    is_ranking,
    of_result,
    of_target,
    ranking,
)
from streamsel.cli._distributed import check_resumed
from streamsel.cli._errors import EXPECTED
from streamsel.cli._given import Given
from streamsel.cli._ids import parted
from streamsel.cli._inputs import Source, open_source
from streamsel.cli._log import log
from streamsel.cli._resume import rest_of
from streamsel.cli._row_numbers import Counters, left_out
from streamsel.cli._saved import notes_on
from streamsel.cli._skipped import Skipped
from streamsel.cli._spool import spooled
from streamsel.cli._unchanged import Comparison, fingerprint, utc
from streamsel.memory import peak_bytes
from streamsel.stream._fingerprint import Fingerprint
from streamsel.stream._formats import file_format

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from streamsel.cli._request import Request
    from streamsel.cli._saved import Saved
    from streamsel.learner.report import Report
    from streamsel.stream import ColumnStream
    from streamsel.stream._lines import OnBad
    from streamsel.stream._screen import Missing, Screen

# Values of selected variables fetched to compare them, at most: 8 MB.
MAX_CELLS = 2**20
# Size up to which text with one variable per line is read again for that: about a second.
MAX_BYTES = 2**25


class Job:
    """One pass over the columns of a file, or over those that remain to be read.

    Parameters
    ----------
    request
        The settings of the run.

    Attributes
    ----------
    model
        The learner; it has its target.
    notes
        Metadata saved with the model: what it was learnt from, and the progress.
    source, screen
        The file, and the screened columns that remain to be read.
    carried
        Columns that are copied to the output.
    skipped
        Columns that were not learnt.
    given
        Inputs other than the columns.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.skipped = Skipped(request.skipped_file)
        self._seen = Fingerprint()
        saved = request.saved
        self.notes: dict[str, Any] = _new_notes(request) if saved is None else saved.notes
        self._seconds, self._n_filled = self.notes["seconds"], self.notes["filled"]
        self._n_values = self.notes["filled_values"]
        self._began = time.monotonic()
        self._alarms: list[Alarm] = []
        self.counters = Counters(self.notes["counting"])
        if saved is None:
            self._start()
        else:
            self._resume(saved)

    def _start(self) -> None:
        request = self.request
        self.given = given = Given(request)
        source = self._open(given)
        given.read(source)
        # Column names come from the file: the columns of an array are numbered.
        known = {"covariates": tuple(given.covariates)} if given.covariates else {}
        self.model = request.learner.clone(known)
        self.notes["index"] = given.index
        self._sound(left_out(source.path, given.index))
        self._sound(of_target(columns_of(given.y, request.target), self.model.target))
        with warnings.catch_warnings():
            # The warning above has the same content, and the name of the column.
            warnings.filterwarnings("ignore", "Expected classes that several rows share")
            self._learn_target()
        self.notes["fingerprint"] = fingerprint(source, given.values())
        self._screen_source(source, given)

    def _resume(self, saved: Saved) -> None:
        request, notes, self.model = self.request, self.notes, saved.model
        check_resumed(request, notes)
        self.given = given = Given(request)
        source = self._open(given)
        given.read(source, begins=False)
        self._sound(of_target(columns_of(given.y, request.target), self.model.target))
        now = fingerprint(source, given.values())
        compared = Comparison(saved.path, request.file, notes, now, force=request.force)
        compared.check_given()
        if source.stream.names is None:
            # A column that differs, if any, is found while reading, and is more specific.
            compared.check_size()
            if saved.is_whole:
                compared.tell_if_written()
        known = notes["fingerprint"] or {}
        self.skipped.go_on(notes)
        self.notes = notes | {
            "missing": request.missing,
            "file": _file_argument(request),
            "max_skipped": request.max_skipped,
        }
        self.notes["fingerprint"] = {**now, "read": known.get("read")}
        self._note_force(compared)
        self._screen_source(source, given, compared)

    def _learn_target(self) -> None:
        """Let the model learn the target of the used rows."""
        given = self.given
        try:
            if given.counted.kept is None:
                self.model.learn_target(given.y, **given.beside())
            else:
                known = {"weights": None} | given.beside()
                self.model._learn_target(given.y, **known, kept=given.counted.kept)
        except (ValueError, TypeError) as error:
            raise self.named(error) from error

    def report_target(self) -> None:
        """Report how the target was interpreted, and how to change that if it was inferred."""
        target, taken = self.model._target, self.model._target_description()
        if target is None or taken is None:
            return
        text = f"target: {taken}"
        if target.by_rule and target.is_class:
            text += " (inferred as classes; --target-kind numeric treats it as numeric)"
        elif target.by_rule:
            text += " (inferred as numeric; --target-kind class treats its values as classes)"
        log().say("target", text, target=taken, by_rule=target.by_rule)
        self.given.report_left_out()

    def _open(self, given: Given) -> Source:
        request = self.request
        # With parts, the reader of a part also counts its bad lines.
        on_bad: OnBad = "pass" if request.in_parts else self.skipped.on_bad_line
        source = open_source(
            request.files,
            request.orientation,
            given.wanted,
            on_bad,
            request.reading,
            shown=request.file,
            ids=given.ids(),
            id_=None if request.id is None else parted(request.id)[0],
        )
        is_text = source.format in ("samples", "variables")
        self.notes["orientation"] = source.format if is_text else None
        return source

    def _screen_source(
        self, source: Source, given: Given, compared: Comparison | None = None
    ) -> None:
        """Screen the columns that remain, after checking those already read."""
        self.source = source
        self.carried = given.carried
        # An ordered set.
        self.skipped.left_out = dict.fromkeys(given.left_out)
        self.skipped.strict = self.notes["missing"] == "error"
        self.skipped.named = given.counted.named
        # Lines that are not numeric are no columns of the stream.
        n_read = self.notes["columns_read"] - self.notes["bad_lines"]

        def check() -> None:
            if compared is not None:
                compared.check_read(self._seen)
                compared.check_size()
                compared.tell_if_written()
                self._note_force(compared)

        if self.request.in_parts:
            # Progress is counted in parts, which are formed from all columns again.
            if n_read and self._fingerprint_read(n_read):
                check()
            self.screen = self.whole()
            return
        self.screen = self._screened(
            rest_of(source.stream, self._left_out(), n_read, self._seen, check), self.skipped.list_
        )

    def named(self, error: BaseException) -> BaseException:
        """Return an error whose text names a row by its identifier, if known."""
        if type(error) not in (ValueError, TypeError):
            return error
        return type(error)(self.given.counted.named(str(error)))

    def _fingerprint_read(self, n_read: int) -> bool:
        """Fingerprint the columns read by other processes, if the file has column names."""
        stream = self.source.stream
        if stream.names is None:
            return False
        self._seen = Fingerprint()
        self._seen.look_at(stream.without(self._left_out()), n_read)
        return True

    def note_read_elsewhere(self) -> None:
        """Record which columns were read by other processes."""
        if self._fingerprint_read(self.notes["columns_read"]):
            self.notes |= {
                "last_column": str(self._seen.last),
                "fingerprint": {**self.notes["fingerprint"], "read": self._seen.as_notes()},
            }

    def _note_force(self, compared: Comparison) -> None:
        if compared.told:
            before = self.notes.get("forced", [])
            self.notes["forced"] = list(dict.fromkeys([*before, *compared.told]))

    def whole(self) -> Screen:
        """Return all columns of the file, screened again without reporting."""
        return self._screened(self.source.stream.without(self._left_out()), None)

    def _left_out(self) -> list[Hashable]:
        return [self.source.name(name) for name in self.skipped.left_out]

    def _screened(self, stream: ColumnStream, report: Any) -> Screen:
        from streamsel.stream._screen import Screen

        notes, kept = self.notes, self.given.counted.kept
        return Screen(
            stream, self.model.n_rows or None, notes["missing"], report, notes["min_count"], kept
        )

    def begin(self) -> None:
        """Start counting the learning time."""
        self._began = time.monotonic()

    def note_progress(self, before: int) -> None:
        """Record the progress, given the number of stream columns read by earlier runs."""
        screen, n_bad_lines = self.screen, self.skipped.n_bad_lines
        # One assignment: a signal must find consistent metadata.
        self.notes |= {
            "bad_lines": n_bad_lines,
            "columns_read": before + screen.n_read + n_bad_lines,
            "last_column": str(screen.last_read) if screen.n_read else self.notes["last_column"],
            "skipped": dict(self.skipped.refused + screen.skipped),
            "examples": dict(self.skipped.examples),
            "counting": list(self.counters.names),
            "filled": self._n_filled + screen.n_filled,
            "filled_values": self._n_values + screen.n_filled_values,
            "fingerprint": {**self.notes["fingerprint"], "read": self._seen.as_notes()},
            "listed": self.skipped.listed,
        }

    def note_time(self) -> None:
        """Record the time, the learning time so far, and the peak memory."""
        now = time.time()
        self.notes |= {
            "version": __version__,
            "saved": utc(now),
            "seconds": self._seconds + time.monotonic() - self._began,
            "peak_memory": peak_bytes(),
        }

    def look_at_result(self) -> bool:
        """Report warnings about the result; return whether there are any."""
        report, space = self.report(), self.model._space
        found = of_result(report, self.notes, self.request.target) + self.counters.alarms()
        found += [Alarm(*caution) for caution in report.warnings]
        if is_ranking(report, None if space is None else space.rank):
            alarm = ranking(len(report.found), self._count_alike(report))
            found += [] if alarm is None else [alarm]
        self._sound(found)
        return bool(found)

    def check(self, report: Report) -> None:
        """Report warnings about one of the models of a run of many."""
        found = of_result(report, self.notes, self.request.target)
        self._sound([*found, *(Alarm(*caution) for caution in report.warnings)])

    def _count_alike(self, report: Report) -> int | None:
        """Count the variables that nearly repeat an earlier one; None if that is too expensive."""
        names = [row["name"] for row in report.found]
        # Columns in lines must be read again.
        cheap = self.source.stream.names is not None or self._n_bytes() <= MAX_BYTES
        if not cheap or len(names) * report.rows > MAX_CELLS:
            return None
        try:
            return count_alike([*self.screen.take(names).values()])
        except EXPECTED:
            return None  # an optional check must not lose the result

    def _n_bytes(self) -> int:
        return int((self.notes["fingerprint"] or {}).get("bytes", 0))

    def _sound(self, alarms: Sequence[Alarm]) -> None:
        for alarm in alarms:
            log().say("alarm", alarm.text, level="warning", code=alarm.code)
        self._alarms += alarms
        self.notes["alarms"] = [alarm._asdict() for alarm in self._alarms]

    def report(self) -> Report:
        """Return the report of the model."""
        report: Report = self.model.report()
        return report if self.notes["complete"] else report.unfinished()


def _file_argument(request: Request) -> str | list[str]:
    return request.given[0] if len(request.given) == 1 else list(request.given)


def _default_missing(request: Request) -> Missing:
    """Return how missing values are handled by default."""
    if request.learner.takes_missing:
        return "keep"
    # Nearly every variant has missing values, and mean imputation is usual for genotypes.
    is_bed = all(file_format(spooled(path)) == "bed" for path in request.files)
    return "mean" if is_bed else "skip"


def _new_notes(request: Request) -> dict[str, Any]:
    """Return the metadata of a new run."""
    return {
        "command": request.command,
        "file": _file_argument(request),
        "orientation": request.orientation,
        **notes_on(request.reading),
        "target": list(request.target),
        "target_file": request.target_file,
        "id": request.id,
        "covariates": list(request.covariates),
        "weights": request.weights,
        "strata": request.strata,
        "dropped": list(request.drop),
        "missing_target": request.missing_target,
        "missing": request.missing or _default_missing(request),
        "min_count": request.min_count,
        "max_skipped": request.max_skipped,
        "alarms": [],
        "columns_read": 0,
        "last_column": "",
        "bad_lines": 0,
        "complete": False,
        "skipped": {},
        "index": [],
        "counting": [],
        "examples": {},
        "filled": 0,
        "filled_values": 0,
        "seconds": 0.0,
        "peak_memory": None,
        "version": __version__,
        "begun": utc(time.time()),
        "saved": None,
        "fingerprint": None,
        "listed": None,
    }
