"""A run of `select` or `reduce`: a model, a source of columns, and the metadata of both."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

from streamsel._utils.system import peak_bytes
from streamsel._version import __version__
from streamsel.base.learn_target import learn_used_rows
from streamsel.cli.diagnostics import (
    DataWarning,
    count_similar,
    is_univariate_ranking,
    ranking_warning,
    result_warnings,
    target_columns,
    target_warnings,
)
from streamsel.cli.errors import EXPECTED_ERRORS
from streamsel.cli.identifiers import split_id_option
from streamsel.cli.inputs import Source, open_source
from streamsel.cli.log import log
from streamsel.cli.request import check_same_parts
from streamsel.cli.resume import read_options_metadata, unread_columns
from streamsel.cli.row_numbers import RowCounterFinder, row_number_exclusion_warning
from streamsel.cli.side_inputs import SideInputs
from streamsel.cli.skipped import Skipped
from streamsel.cli.source_comparison import SourceComparison, fingerprint, iso_utc
from streamsel.cli.spool import spool
from streamsel.stream.files import Fingerprint, file_format
from streamsel.stream.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from streamsel.base.report import Report
    from streamsel.cli.request import Request
    from streamsel.cli.resume import SavedRun
    from streamsel.stream import ColumnStream
    from streamsel.stream.files import CleanStream, Missing, OnBad

# Values of selected variables fetched to compare them, at most: 8 MB.
MAX_CELLS = 2**20
# Size up to which text with one variable per line is read once more for that: about a second.
MAX_BYTES = 2**25


class Run:
    """One pass over the columns of a file, or over those that remain to be read.

    Parameters
    ----------
    request
        The settings of the run.

    Attributes
    ----------
    model
        The learner; it has its target.
    metadata
        Metadata saved with the model: what it was learnt from, and the progress.
    source, screen
        The file, and the screened columns that remain to be read.
    passthrough
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
        self.metadata: dict[str, Any] = _new_notes(request) if saved is None else saved.metadata
        self._seconds, self._n_filled = self.metadata["seconds"], self.metadata["filled"]
        self._n_values = self.metadata["filled_values"]
        self._began = time.monotonic()
        self._warnings: list[DataWarning] = []
        self.row_number_detector = RowCounterFinder(self.metadata["counting"])
        if saved is None:
            self._start()
        else:
            self._resume(saved)

    def _start(self) -> None:
        request = self.request
        self.given = given = SideInputs(request)
        source = self._open(given)
        given.read(source)
        # Column names come from the file: the columns of an array are numbered.
        known = {"covariates": tuple(given.covariates)} if given.covariates else {}
        self.model = request.learner.clone(known)
        self.metadata["index"] = given.row_number_columns
        self._report_warnings(row_number_exclusion_warning(source.path, given.row_number_columns))
        self._report_warnings(
            target_warnings(target_columns(given.y, request.target), self.model.target_type)
        )
        with warnings.catch_warnings():
            # The warning above has the same content, and the name of the column.
            warnings.filterwarnings("ignore", "Expected classes that several rows share")
            self._learn_target()
        self.metadata["fingerprint"] = fingerprint(source, given.values())
        self._screen_source(source, given)

    def _resume(self, saved: SavedRun) -> None:
        request, metadata, self.model = self.request, self.metadata, saved.model
        check_same_parts(request, metadata)
        self.given = given = SideInputs(request)
        source = self._open(given)
        given.read(source, begins=False)
        self._report_warnings(
            target_warnings(target_columns(given.y, request.target), self.model.target_type)
        )
        now = fingerprint(source, given.values())
        compared = SourceComparison(saved.path, request.file, metadata, now, force=request.force)
        compared.check_before_reading()
        if source.stream.names is None:
            # A column that differs, if any, is found while reading, and is more specific.
            compared.check_size()
            if saved.is_finished:
                compared.note_if_modified()
        known = metadata["fingerprint"] or {}
        self.skipped.resume(metadata)
        self.metadata = metadata | {
            "missing": request.missing,
            "file": _file_argument(request),
            "max_skipped": request.max_skipped,
        }
        self.metadata["fingerprint"] = {**now, "read": known.get("read")}
        self._note_force(compared)
        self._screen_source(source, given, compared)

    def _learn_target(self) -> None:
        """Let the model learn the target of the used rows."""
        given = self.given
        try:
            if given.used_rows.kept is None:
                self.model.learn_target(given.y, **given.target_arguments())
            else:
                known = {"weights": None} | given.target_arguments()
                learn_used_rows(self.model, given.y, **known, kept=given.used_rows.kept)
        except (ValueError, TypeError) as error:
            raise self.with_row_ids(error) from error

    def report_target(self) -> None:
        """Report how the target was interpreted, and how to change that if it was inferred."""
        target, taken = self.model._target, self.model._target_description()
        if target is None or taken is None:
            return
        text = f"target: {taken}"
        if target.decided_by_values and target.is_class:
            text += " (inferred as classes; --target-type numeric treats it as numeric)"
        elif target.decided_by_values:
            text += " (inferred as numeric; --target-type class treats its values as classes)"
        log().emit("target", text, target=taken, by_rule=target.decided_by_values)
        self.given.report_dropped_rows()

    def _open(self, given: SideInputs) -> Source:
        request = self.request
        # With parts, the reader of a part also counts its bad lines.
        on_bad: OnBad = "pass" if request.in_parts else self.skipped.on_bad_line
        source = open_source(
            request.files,
            request.orientation,
            given.wanted,
            on_bad,
            request.read_options,
            display_name=request.file,
            ids=given.ids(),
            id_=None if request.id is None else split_id_option(request.id)[0],
        )
        is_text = source.format in ("samples", "variables")
        self.metadata["orientation"] = source.format if is_text else None
        return source

    def _screen_source(
        self, source: Source, given: SideInputs, compared: SourceComparison | None = None
    ) -> None:
        """Screen the columns that remain, after checking those already read."""
        self.source = source
        self.passthrough = given.passthrough
        # An ordered set.
        self.skipped.excluded = dict.fromkeys(given.excluded)
        self.skipped.strict = self.metadata["missing"] == "error"
        self.skipped.add_row_ids = given.used_rows.with_row_ids
        # Lines that are not numeric are no columns of the stream.
        n_read = self.metadata["columns_read"] - self.metadata["bad_lines"]

        def check() -> None:
            if compared is not None:
                compared.check_read(self._seen)
                compared.check_size()
                compared.note_if_modified()
                self._note_force(compared)

        if self.request.in_parts:
            # Progress is counted in parts, which are formed from all columns again.
            if n_read and self._fingerprint_read(n_read):
                check()
            self.screen = self.all_columns()
            return
        self.screen = self._screened(
            unread_columns(source.stream, self._left_out(), n_read, self._seen, check),
            self.skipped.list_column,
        )

    def with_row_ids(self, error: BaseException) -> BaseException:
        """Return an error whose text names a row by its identifier, if known."""
        if type(error) not in (ValueError, TypeError):
            return error
        return type(error)(self.given.used_rows.with_row_ids(str(error)))

    def _fingerprint_read(self, n_read: int) -> bool:
        """Fingerprint the columns read by other processes, if the file has column names."""
        stream = self.source.stream
        if stream.names is None:
            return False
        self._seen = Fingerprint()
        self._seen.look_at(stream.without(self._left_out()), n_read)
        return True

    def record_remote_progress(self) -> None:
        """Record which columns were read by other processes."""
        if self._fingerprint_read(self.metadata["columns_read"]):
            self.metadata |= {
                "last_column": str(self._seen.last),
                "fingerprint": {**self.metadata["fingerprint"], "read": self._seen.as_notes()},
            }

    def _note_force(self, compared: SourceComparison) -> None:
        if compared.ignored_differences:
            before = self.metadata.get("forced", [])
            self.metadata["forced"] = list(dict.fromkeys([*before, *compared.ignored_differences]))

    def all_columns(self) -> CleanStream:
        """Return all columns of the file, screened again without reporting."""
        return self._screened(self.source.stream.without(self._left_out()), None)

    def _left_out(self) -> list[Hashable]:
        return [self.source.name(name) for name in self.skipped.excluded]

    def _screened(self, stream: ColumnStream, report: Any) -> CleanStream:
        from streamsel.stream.files import CleanStream

        metadata, kept = self.metadata, self.given.used_rows.kept
        return CleanStream(
            stream,
            self.model.n_rows or None,
            metadata["missing"],
            report,
            metadata["min_count"],
            kept,
        )

    def start_clock(self) -> None:
        """Start counting the learning time."""
        self._began = time.monotonic()

    def record_progress(self, before: int) -> None:
        """Record the progress, given the number of stream columns read by earlier runs."""
        screen, n_bad_lines = self.screen, self.skipped.n_bad_lines
        # One assignment: a signal must find consistent metadata.
        self.metadata |= {
            "bad_lines": n_bad_lines,
            "columns_read": before + screen.n_read + n_bad_lines,
            "last_column": str(screen.last_read) if screen.n_read else self.metadata["last_column"],
            "skipped": dict(self.skipped.rejected + screen.skipped),
            "examples": dict(self.skipped.examples),
            "counting": list(self.row_number_detector.names),
            "filled": self._n_filled + screen.n_filled,
            "filled_values": self._n_values + screen.n_filled_values,
            "fingerprint": {**self.metadata["fingerprint"], "read": self._seen.as_notes()},
            "listed": self.skipped.listed,
        }

    def record_time(self) -> None:
        """Record the time, the learning time so far, and the peak memory."""
        now = time.time()
        self.metadata |= {
            "version": __version__,
            "saved": iso_utc(now),
            "seconds": self._seconds + time.monotonic() - self._began,
            "peak_memory": peak_bytes(),
        }

    def check_result(self) -> bool:
        """Report warnings about the result; return whether there are any."""
        report, space = self.report(), self.model._space
        found = (
            result_warnings(report, self.metadata, self.request.target)
            + self.row_number_detector.warnings()
        )
        found += [DataWarning(*caution) for caution in report.warnings]
        if is_univariate_ranking(report, None if space is None else space.rank):
            warning = ranking_warning(len(report.results), self._count_redundant(report))
            found += [] if warning is None else [warning]
        self._report_warnings(found)
        return bool(found)

    def check(self, report: Report) -> None:
        """Report warnings about one of the models of a run of many."""
        found = result_warnings(report, self.metadata, self.request.target)
        self._report_warnings([*found, *(DataWarning(*caution) for caution in report.warnings)])

    def _count_redundant(self, report: Report) -> int | None:
        """Count the variables that nearly repeat an earlier one; None if that is too expensive."""
        names = [row["name"] for row in report.results]
        # Columns in lines require another pass.
        cheap = self.source.stream.names is not None or self._n_bytes() <= MAX_BYTES
        if not cheap or len(names) * report.rows > MAX_CELLS:
            return None
        try:
            return count_similar([*self.screen.take(names).values()])
        except EXPECTED_ERRORS:
            return None  # an optional check must not lose the result

    def _n_bytes(self) -> int:
        return int((self.metadata["fingerprint"] or {}).get("bytes", 0))

    def _report_warnings(self, warnings: Sequence[DataWarning]) -> None:
        for warning in warnings:
            log().emit("warning", warning.text, level="warning", code=warning.code)
        self._warnings += warnings
        self.metadata["warnings"] = [warning._asdict() for warning in self._warnings]

    def report(self) -> Report:
        """Return the report of the model."""
        report: Report = self.model.report()
        return report if self.metadata["complete"] else report.without_certification()


def _file_argument(request: Request) -> str | list[str]:
    return request.arguments[0] if len(request.arguments) == 1 else list(request.arguments)


def _default_missing(request: Request) -> Missing:
    """Return how missing values are handled by default."""
    if request.learner._takes_missing:
        return "keep"
    # Nearly every variant has missing values, and mean imputation is usual for genotypes.
    formats = (FORMATS[file_format(spool(path))] for path in request.files)
    return "mean" if all(one.genotypes for one in formats) else "skip"


def _new_notes(request: Request) -> dict[str, Any]:
    """Return the metadata of a new run."""
    return {
        "command": request.command,
        "file": _file_argument(request),
        "orientation": request.orientation,
        **read_options_metadata(request.read_options),
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
        "warnings": [],
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
        "begun": iso_utc(time.time()),
        "saved": None,
        "fingerprint": None,
        "listed": None,
    }
