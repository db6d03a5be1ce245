"""A run of a command over many columns: a model, a source of columns, and the metadata of both."""

from __future__ import annotations

import copy
import time
import warnings
from collections import Counter
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._kernels.compile import silence_compile_message
from streamsel._utils.system import peak_bytes
from streamsel._utils.text import utc_text
from streamsel._version import __version__
from streamsel.base.precompile import learn_rehearsal_columns, rehearsal_columns
from streamsel.base.stop_condition import StopCondition
from streamsel.cli.diagnostics import (
    WarningList,
    count_similar,
    is_univariate_ranking,
    ranking_warning,
    result_warnings,
    row_number_exclusion_warning,
    target_columns,
    target_warnings,
)
from streamsel.cli.errors import EXPECTED_ERRORS, CommandError
from streamsel.cli.exclusions import RowCounterFinder, Skipped
from streamsel.cli.groups import check_learns_groups, in_groups, read_groups
from streamsel.cli.relatedness import compute_relatedness, groups_of_columns
from streamsel.cli.resume import PROGRESS, SourceComparison, check_same_parts
from streamsel.cli.settings import AUTO
from streamsel.cli.side_inputs import SideInputs
from streamsel.cli.source import unread_columns
from streamsel.stream.files import CleanStream, Fingerprint, file_format
from streamsel.stream.formats import FORMATS
from streamsel.stream.inputs import EncodedStream

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from streamsel.base.relatedness import Relatedness
    from streamsel.base.report import Report
    from streamsel.cli.log import Log
    from streamsel.cli.progress import Meter
    from streamsel.cli.resume import SavedRun
    from streamsel.cli.settings import RunSettings
    from streamsel.cli.source import Source
    from streamsel.stream import ColumnStream
    from streamsel.stream.files import Missing, OnBad

# Values of selected variables fetched to compare them, at most: 8 MB.
MAX_CELLS = 2**20
# Size up to which text with one variable per line is read once more for that: about a second.
MAX_BYTES = 2**25
# Columns and rows that kernels are compiled with.
_N_REHEARSED, _MAX_REHEARSED_ROWS = 3, 64


class Run:
    """A run of a command over the columns of its files, or over those that remain to be read.

    Parameters
    ----------
    settings
        The settings of the run.
    log
        The log.
    has_groups
        Whether encoded columns may be groups, if the learner selects groups.

    Attributes
    ----------
    model
        The learner; it has its target.
    metadata
        Metadata saved with the model: what it was learnt from, and the progress.
    in_parts
        Whether parts of the files are read by other processes.
    source, clean_stream
        The file, and the cleaned columns that remain to be read.
    n_columns
        Number of columns that remain to be read, before they are encoded; None if unknown.
    stop
        The condition that ends the run early; None for none.
    skipped
        Columns that were not learnt.
    row_number_detector
        Columns that only number the rows.
    given
        Inputs other than the columns.
    """

    def __init__(self, settings: RunSettings, log: Log, *, has_groups: bool = True) -> None:
        self._has_groups = has_groups
        self.settings, self.log, saved = settings, log, settings.saved
        if not log.on_terminal:
            silence_compile_message()
        self.in_parts = settings.in_parts
        self.metadata: dict[str, Any] = (
            settings.metadata()
            | {name: copy.copy(initial) for name, (_, initial) in PROGRESS.items()}
            | {"version": __version__, "begun": utc_text(time.time())}
            if saved is None
            else saved.metadata
        )
        self._warnings = WarningList(log)
        self._seen = Fingerprint()
        self._began = time.monotonic()
        self._seconds, self._n_filled = self.metadata["seconds"], self.metadata["filled"]
        self._n_values = self.metadata["filled_values"]
        self._encoded = Counter(self.metadata["encoded"])
        self._n_made = self.metadata["columns_made"]
        self.skipped = Skipped(settings.skipped_file, log)
        self.row_number_detector = RowCounterFinder(self.metadata["counting"])
        if saved is not None:
            check_same_parts(settings, saved.metadata)
        self.side_inputs = given = SideInputs(settings, log)
        encodes = settings.learner._encodes_tables and settings.groups is None
        self.skipped.encodes_text = encodes and settings.max_categories > 0
        # With parts, the reader of a part also counts its bad lines.
        on_bad: OnBad = "pass" if self.in_parts else self.skipped.on_bad_line
        self.source = source = given.open_columns(on_bad)
        is_text = source.format in ("samples", "variables")
        self.metadata["orientation"] = source.format if is_text else None
        given.read(source)
        # Column names come from the file: the columns of an array are numbered.
        known = {"covariates": tuple(given.covariates)} if given.covariates else {}
        self.model = settings.learner.clone(known) if saved is None else saved.model
        numbering = given.row_number_columns if saved is None else ()
        found = row_number_exclusion_warning(source.path, numbering)
        found += target_warnings(target_columns(given.y, settings.target), self.model.target_type)
        self.metadata["warnings"] = self._warnings.add(found)
        if saved is None:
            self.metadata["index"] = given.row_number_columns
            with warnings.catch_warnings():
                if any(one.code == "classes" for one in found):
                    # That warning has the same content, and the name of the column.
                    warnings.filterwarnings("ignore", "Expected classes of several rows each")
                began = time.monotonic()
                given.learn_target(self.model, self._computed_relatedness())
                if settings.relatedness is not None:
                    self._seconds += time.monotonic() - began
            self.metadata["fingerprint"] = source.fingerprint(given.values())
        self.n_columns: int | None = None
        if settings.groups is not None:
            check_learns_groups(self.model, settings.groups)
        self.clean_stream = self._remaining(None if saved is None else self._compare(saved))
        self.stop = self._stop_condition()

    @cached_property
    def _groups(self) -> dict[Hashable, list[Hashable]] | None:
        """The groups of columns; None for none."""
        path = self.settings.groups
        return None if path is None else read_groups(path, self.source)

    def _computed_relatedness(self) -> Relatedness | None:
        """Return the relatedness that a pass over the columns yields; None unless requested."""
        if self.settings.relatedness != AUTO:
            return None
        if self.in_parts:
            # Raises, if at all, before the pass.
            from streamsel.distributed.cluster import import_distributed

            import_distributed()
        self._prepare_cleaning()
        loco, groups = self.settings.loco, None
        if loco is not None:
            kept = self.side_inputs.used_rows.kept
            n = self.count_rows() if kept is None else kept.index.size
            groups = groups_of_columns(loco, self.source, self._excluded(), n)
        return compute_relatedness(self.all_columns(), groups, loco, self.log)

    def _stop_condition(self) -> StopCondition | None:
        until = self.settings.until
        if until is None:
            return None
        try:
            return StopCondition(stop_argument(until), self.model, self.metadata["until_state"])
        except ValueError as error:
            reason = str(error).partition("\n")[0]  # the hint is about Python
            raise CommandError(f"--until {until}: {reason}") from error

    def _compare(self, saved: SavedRun) -> SourceComparison:
        """Compare the input with that of the saved run, and continue its metadata."""
        settings, metadata, source = self.settings, self.metadata, self.source
        now = source.fingerprint(self.side_inputs.values())
        compared = SourceComparison(
            saved.path, settings.file, metadata, now, self.log, force=settings.force
        )
        compared.check_before_reading()
        if source.stream.names is None:
            # A column that differs, if any, is found while reading, and is more specific.
            compared.check_size()
            if saved.is_finished:
                compared.note_if_modified()
        known = metadata["fingerprint"] or {}
        self.skipped.resume(metadata)
        self.metadata = metadata | settings.metadata(that_may_change=True)
        self.metadata["fingerprint"] = {**now, "read": known.get("read")}
        self._note_force(compared)
        return compared

    def _remaining(self, compared: SourceComparison | None) -> CleanStream:
        """Return the cleaned columns that remain, after checking those already read."""
        self._prepare_cleaning()
        # Lines that are not numeric are no columns of the stream.
        n_read = self.metadata["columns_read"] - self.metadata["bad_lines"]

        def check() -> None:
            if compared is not None:
                compared.check_read(self._seen)
                compared.check_size()
                compared.note_if_modified()
                self._note_force(compared)

        if self.in_parts:
            # Progress is counted in parts, which are formed from all columns again.
            if n_read and self._fingerprint_read(n_read):
                check()
            self.n_columns = self.source.stream.without(self._excluded()).n_columns
            return self.all_columns()
        excluded = self._excluded()
        rest = unread_columns(self.source.stream, excluded, n_read, self._seen, check)
        self.n_columns = rest.n_columns
        return self._cleaned(rest, self.skipped.list_column)

    def _prepare_cleaning(self) -> None:
        """Determine which columns are excluded, and how missing values are handled."""
        if self.metadata["missing"] is None:
            self.metadata["missing"] = _default_missing(self.settings.learner, self.source)
        self.skipped.strict = self.metadata["missing"] == "error"
        self.skipped.excluded = dict.fromkeys(self.side_inputs.excluded)  # an ordered set
        self.skipped.add_row_ids = self.side_inputs.used_rows.with_row_ids

    def _fingerprint_read(self, n_read: int) -> bool:
        """Fingerprint the columns read by other processes, if the file has column names."""
        stream = self.source.stream
        if stream.names is None:
            return False
        self._seen = Fingerprint()
        self._seen.add_first_columns(stream.without(self._excluded()), n_read)
        return True

    def record_remote_progress(self) -> None:
        """Record which columns were read by other processes."""
        if self._fingerprint_read(self.metadata["columns_read"]):
            self.metadata |= {
                "last_column": str(self._seen.last),
                "fingerprint": {**self.metadata["fingerprint"], "read": self._seen.as_metadata()},
            }

    def _note_force(self, compared: SourceComparison) -> None:
        if compared.ignored_differences:
            before = self.metadata.get("forced", [])
            self.metadata["forced"] = list(dict.fromkeys([*before, *compared.ignored_differences]))

    def all_columns(self) -> CleanStream:
        """Return all columns of the file, cleaned again without reporting."""
        return self._cleaned(self.source.stream.without(self._excluded()), None)

    def _excluded(self) -> list[Hashable]:
        return [self.source.name(name) for name in self.skipped.excluded]

    def _cleaned(self, stream: ColumnStream, report: Any) -> CleanStream:
        metadata, kept = self.metadata, self.side_inputs.used_rows.kept
        if self._groups is not None:
            stream = in_groups(stream, self._groups, str(self.settings.groups))
        else:
            strict = metadata["missing"] == "error"
            stream = self._encoded_stream(stream, _refuse_column if strict else report)
        return CleanStream(
            stream,
            self.model.n_rows or None,
            metadata["missing"],
            report,
            metadata["min_count"],
            kept,
        )

    def _encoded_stream(self, stream: ColumnStream, report: Any) -> ColumnStream:
        """Return a stream with text and dates as columns of numbers, if the run encodes them."""
        if not self.metadata["max_categories"] or not self.model._encodes_tables:
            return stream
        return EncodedStream(
            stream,
            self.metadata["max_categories"],
            groups=self._has_groups and self.model._takes_groups,
            report=report,
            whole=self.source.stream,
            max_gathered=1,  # progress is recorded when the source passes columns on
        )

    def take_whole(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return columns by name, with the rows that are not used."""
        stream = self.source.stream
        if self._groups is None:
            stream = self._encoded_stream(stream, None)
        return stream.take(names)

    def count_rows(self) -> int:
        """Return the number of rows: of the target, or else of the file."""
        if self.side_inputs.y is not None:
            return len(self.side_inputs.y)
        stream = self.source.stream
        if stream.n_rows is None:
            next(stream.blocks(), None)  # reading a block sets n_rows
        return stream.n_rows or 0

    def compile(self, bar: Meter) -> None:
        """Compile the kernels of the model, and begin to count columns and the learning time."""
        compile_for(self.model, self.source.stream, supervised=self.side_inputs.y is not None)
        bar.begin()
        self._began = time.monotonic()

    def record_progress(self, before: int) -> None:
        """Record the progress, given the number of stream columns read by earlier runs."""
        stream, n_bad_lines = self.clean_stream, self.skipped.n_bad_lines
        # One assignment: a signal must find consistent metadata.
        self.metadata |= {
            "bad_lines": n_bad_lines,
            "columns_read": before + stream.n_read + n_bad_lines,
            "last_column": str(stream.last_read) if stream.n_read else self.metadata["last_column"],
            "skipped": dict(self.skipped.rejected + stream.skipped),
            "examples": dict(self.skipped.examples),
            "counting": list(self.row_number_detector.names),
            "encoded": dict(self._encoded + stream.encoded),
            "columns_made": self._n_made + stream.n_made,
            "until_state": None if self.stop is None else self.stop.state,
            "filled": self._n_filled + stream.n_filled,
            "filled_values": self._n_values + stream.n_filled_values,
            "fingerprint": {**self.metadata["fingerprint"], "read": self._seen.as_metadata()},
            "listed": self.skipped.listed,
        }

    def record_time(self) -> None:
        """Record the time, the learning time so far, and the peak memory."""
        now = time.time()
        self.metadata |= {
            "version": __version__,
            "saved": utc_text(now),
            "seconds": self._seconds + time.monotonic() - self._began,
            "peak_memory": peak_bytes(),
        }

    def check_result(self) -> bool:
        """Report warnings about the result; return whether there are any."""
        report, space = self.report(), self.model._space
        found = result_warnings(report, self.metadata, self.settings.target)
        if is_univariate_ranking(report, None if space is None else space.rank):
            warning = ranking_warning(len(report.results), self._count_redundant(report))
            found += [] if warning is None else [warning]
        self.metadata["warnings"] = self._warnings.add(found)
        return bool(found)

    def check(self, report: Report) -> None:
        """Report warnings about one of the models of a run of many."""
        found = result_warnings(report, self.metadata, self.settings.target)
        self.metadata["warnings"] = self._warnings.add(found)

    def _count_redundant(self, report: Report) -> int | None:
        """Count the variables that nearly repeat an earlier one; None if that is too expensive."""
        names = [row["name"] for row in report.results]
        if report.candidate == "group":
            return None
        # Columns in lines require another pass.
        cheap = self.source.stream.names is not None or self._n_bytes() <= MAX_BYTES
        if not cheap or len(names) * report.rows > MAX_CELLS:
            return None
        try:
            return count_similar([*self.clean_stream.take(names).values()])
        except EXPECTED_ERRORS:
            return None  # an optional check must not lose the result

    def _n_bytes(self) -> int:
        return int((self.metadata["fingerprint"] or {}).get("bytes", 0))

    def report(self) -> Report:
        """Return the report of the model."""
        report: Report = self.model.report()
        return report if self.metadata["complete"] else report.without_certification()


def stop_argument(until: str | None) -> str | int | None:
    """Return the value of --until as the argument of `learn_columns`."""
    return int(until) if until is not None and until.isdecimal() else until


def _refuse_column(name: Hashable, reason: str, detail: str) -> None:
    """Refuse a column that cannot be encoded, with --missing error."""
    del reason
    raise TypeError(f"Expected numbers or categories in column {name!r}. Got: {detail}")


def _default_missing(learner: Any, source: Source) -> Missing:
    """Return how missing values are handled by default."""
    if learner._allows_missing:
        return "keep"
    # Nearly every variant has missing values, and mean imputation is usual for genotypes.
    formats = (FORMATS[file_format(path)] for path in source.files)
    return "mean" if all(one.genotypes for one in formats) else "skip"


def compile_for(model: Any, stream: ColumnStream, *, supervised: bool) -> None:
    """Compile the kernels of a model by fitting a copy to a few numbers of the stream's dtype.

    Parameters
    ----------
    model
        The model that is about to learn; it is not changed.
    stream
        The stream that it is about to learn; its first block is read.
    supervised
        Whether it has a target.
    """
    # Errors in data or parameters are reported by the run itself.
    with suppress(*EXPECTED_ERRORS, CommandError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        block = next(iter(stream.blocks()), None)
        if block is None:
            return
        values = block.values
        n_rows = min(_MAX_REHEARSED_ROWS, max(8, values.shape[0]))
        dtype = values.dtype if values.dtype.kind in "biuf" else np.dtype(np.float64)
        of_classes = getattr(model._target, "is_class", False)
        kind = {"target_type": "class" if of_classes else "numeric"} if supervised else {}
        twin = type(model)(**model._get_params() | kind)
        y = np.arange(n_rows) % 2 if of_classes else np.random.default_rng(0).normal(size=n_rows)
        learn_rehearsal_columns(
            twin, rehearsal_columns(n_rows, _N_REHEARSED, dtype), y if supervised else None
        )
        _ = twin.relevance
