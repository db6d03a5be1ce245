"""What a run of `select` or `reduce` stands on: a model, a source of columns, notes of both."""

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

# Of chosen variables so many values are fetched to compare them: 8 MB.
MAX_CELLS = 2**20
# And text with one variable a line is read again for them, if it is no larger: a second.
MAX_BYTES = 2**25


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
    carried
        Columns that go along into what is written.
    skipped
        What was not learnt.
    given
        What it has beside the columns.
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
        # Only the file says what its columns are called: those of an array are numbers.
        known = {"covariates": tuple(given.covariates)} if given.covariates else {}
        self.model = request.learner.clone(known)
        self.notes["index"] = given.index
        self._sound(left_out(source.path, given.index))
        self._sound(of_target(columns_of(given.y, request.target), self.model.target))
        with warnings.catch_warnings():
            # The alarm above has the same content, and the name of the column.
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
            # What tells more is found on the way, if there is one.
            compared.check_size()
            if saved.is_whole:
                compared.tell_if_written()
        known = notes["fingerprint"] or {}
        self.skipped.go_on(notes)
        self.notes = notes | {
            "missing": request.missing,
            "file": _as_given(request),
            "max_skipped": request.max_skipped,
        }
        self.notes["fingerprint"] = {**now, "read": known.get("read")}
        self._note_force(compared)
        self._screen_source(source, given, compared)

    def _learn_target(self) -> None:
        """Let the model learn the target of the rows that count."""
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
        """Report how the target was taken, and how to change that where its values decided."""
        target, taken = self.model._target, self.model._target_description()
        if target is None or taken is None:
            return
        text = f"target: {taken}"
        if target.by_rule and target.is_class:
            text += " (taken as classes; --target-kind numeric takes it as a quantity)"
        elif target.by_rule:
            text += " (taken as a quantity; --target-kind class takes its values as classes)"
        log().say("target", text, target=taken, by_rule=target.by_rule)
        self.given.report_left_out()

    def _open(self, given: Given) -> Source:
        request = self.request
        # Whoever reads a part counts its bad lines too.
        heard: OnBad = "pass" if request.in_parts else self.skipped.on_bad_line
        source = open_source(
            request.files,
            request.orientation,
            given.wanted,
            heard,
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
        """Screen what is left to read, after a comparison of what was read."""
        self.source = source
        self.carried = given.carried
        # In their order, and quick to find in.
        self.skipped.left_out = dict.fromkeys(given.left_out)
        self.skipped.strict = self.notes["missing"] == "error"
        self.skipped.named = given.counted.named
        # Lines that are no columns of numbers do not count where the stream is concerned.
        n_read = self.notes["columns_read"] - self.notes["bad_lines"]

        def check() -> None:
            if compared is not None:
                compared.check_read(self._seen)
                compared.check_size()
                compared.tell_if_written()
                self._note_force(compared)

        if self.request.in_parts:
            # Parts are counted, not columns: they are made of all columns again.
            if n_read and self._look_at(n_read):
                check()
            self.screen = self.whole()
            return
        self.screen = self._screened(
            rest_of(source.stream, self._left_out(), n_read, self._seen, check), self.skipped.list_
        )

    def named(self, error: BaseException) -> BaseException:
        """Return an error that names a row by its identifier, if that is known."""
        if type(error) not in (ValueError, TypeError):
            return error
        return type(error)(self.given.counted.named(str(error)))

    def _look_at(self, n_read: int) -> bool:
        """Take note of columns that others have read, if the file says what they are called."""
        stream = self.source.stream
        if stream.names is None:
            return False
        self._seen = Fingerprint()
        self._seen.look_at(stream.without(self._left_out()), n_read)
        return True

    def note_read_elsewhere(self) -> None:
        """Note which columns others have read."""
        if self._look_at(self.notes["columns_read"]):
            self.notes |= {
                "last_column": str(self._seen.last),
                "fingerprint": {**self.notes["fingerprint"], "read": self._seen.as_notes()},
            }

    def _note_force(self, compared: Comparison) -> None:
        if compared.told:
            before = self.notes.get("forced", [])
            self.notes["forced"] = list(dict.fromkeys([*before, *compared.told]))

    def whole(self) -> Screen:
        """Return all columns of the file, screened once more; nothing is told of them."""
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
        """Count the time of learning from now on."""
        self._began = time.monotonic()

    def note_progress(self, before: int) -> None:
        """Note how far the screen has come, after so many columns that are no lines of text."""
        screen, n_bad_lines = self.screen, self.skipped.n_bad_lines
        # At once: a signal in between must find notes that agree with each other.
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
        """Note when it was, how long it took so far, and how much memory."""
        now = time.time()
        self.notes |= {
            "version": __version__,
            "saved": utc(now),
            "seconds": self._seconds + time.monotonic() - self._began,
            "peak_memory": peak_bytes(),
        }

    def look_at_result(self) -> bool:
        """Sound the alarms that what was found gives cause for; return whether there are any."""
        report, space = self.report(), self.model._space
        found = of_result(report, self.notes, self.request.target) + self.counters.alarms()
        found += [Alarm(*caution) for caution in report.warnings]
        if is_ranking(report, None if space is None else space.rank):
            alarm = ranking(len(report.found), self._count_alike(report))
            found += [] if alarm is None else [alarm]
        self._sound(found)
        return bool(found)

    def check(self, report: Report) -> None:
        """Warn of what looks wrong about one of the models of a run of many."""
        found = of_result(report, self.notes, self.request.target)
        self._sound([*found, *(Alarm(*caution) for caution in report.warnings)])

    def _count_alike(self, report: Report) -> int | None:
        """Count the variables that repeat one before them; None where looking costs too much."""
        names = [row["name"] for row in report.found]
        # Lines have to be read once more.
        cheap = self.source.stream.names is not None or self._n_bytes() <= MAX_BYTES
        if not cheap or len(names) * report.rows > MAX_CELLS:
            return None
        try:
            return count_alike([*self.screen.take(names).values()])
        except EXPECTED:
            return None  # the result is there, and is not to be lost by a look at it

    def _n_bytes(self) -> int:
        return int((self.notes["fingerprint"] or {}).get("bytes", 0))

    def _sound(self, alarms: Sequence[Alarm]) -> None:
        for alarm in alarms:
            log().say("alarm", alarm.text, level="warning", code=alarm.code)
        self._alarms += alarms
        self.notes["alarms"] = [alarm._asdict() for alarm in self._alarms]

    def report(self) -> Report:
        """Return what was found."""
        report: Report = self.model.report()
        return report if self.notes["complete"] else report.unfinished()


def _as_given(request: Request) -> str | list[str]:
    return request.given[0] if len(request.given) == 1 else list(request.given)


def _usual_missing(request: Request) -> Missing:
    """Return what becomes of missing values where nothing is said of them."""
    if request.learner.takes_missing:
        return "keep"
    # Hardly a variant is without one, and means are what users of genotypes expect.
    is_bed = all(file_format(spooled(path)) == "bed" for path in request.files)
    return "mean" if is_bed else "skip"


def _new_notes(request: Request) -> dict[str, Any]:
    """Return the notes of a run that begins."""
    return {
        "command": request.command,
        "file": _as_given(request),
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
        "missing": request.missing or _usual_missing(request),
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
