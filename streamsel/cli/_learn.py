"""A run of `select` or `reduce`: columns in, a model out, whatever happens on the way."""

from __future__ import annotations

import math
import shlex
import sys
import time
from typing import TYPE_CHECKING, Any

from streamsel.cli._errors import EXPECTED, CommandError, message_of, note, stop
from streamsel.cli._inputs import Source, file_format, open_source
from streamsel.cli._interrupt import Interrupts
from streamsel.cli._outputs import check_distinct, check_table, check_writable, write_table
from streamsel.cli._progress import Meter, meter
from streamsel.cli._report import count, n_found, show, skipped_text
from streamsel.cli._request import takes_none
from streamsel.cli._resume import rest_of
from streamsel.cli._skipped import Skipped
from streamsel.cli._target import TargetFile, read_covariates, read_target, together
from streamsel.cli._warmup import compile_for
from streamsel.memory import peak_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamsel.cli._request import Request
    from streamsel.columns import Block
    from streamsel.learner.report import Report
    from streamsel.stream._screen import Screen


class Run:
    """One pass over the columns of a file, or what is left of it.

    Parameters
    ----------
    request
        What the user asks for.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self.skipped = Skipped(request.skipped_file)
        self._unwritten: dict[str, str] = {}  # why, by option
        self._n_filled = 0
        self._seconds = 0.0
        self._saved_at = time.monotonic()
        if request.resume is None:
            self._start()
        else:
            self._resume(request.resume)

    def _start(self) -> None:
        request = self._request
        self.notes: dict[str, Any] = {
            "command": request.command,
            "file": request.file,
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
        self._screen = self._screened(source, left_out)

    def _resume(self, path: str) -> None:
        from streamsel.persist import load, read_notes

        request = self._request
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
        source = self._open(notes["orientation"] or "auto", left_out)
        self._screen = self._screened(source, left_out)

    def _open(self, orientation: str, wanted: Sequence[str]) -> Source:
        delimiter = self.notes.get("delimiter")
        heard = self.skipped.on_bad_line
        source = open_source(self._request.file, orientation, wanted, heard, delimiter)
        is_text = source.format in ("samples", "variables")
        self.notes["orientation"] = source.format if is_text else None
        return source

    def _screened(self, source: Source, left_out: Sequence[str]) -> Screen:
        """Return what is left to read, screened."""
        self.skipped.left_out = left_out
        self.skipped.strict = self.notes["missing"] == "error"
        self._source = source
        # Lines that are no columns of numbers do not count where the stream is concerned.
        n_read = self.notes["columns_read"] - self.notes["bad_lines"]
        return self._screened_from(n_read, self.notes["last_column"], self.skipped.list_)

    def _screened_from(self, n_read: int, last_read: str, report: Any) -> Screen:
        """Return what comes after some columns, screened; what is left out goes to the report."""
        from streamsel.stream._screen import Screen

        source = self._source
        names = [source.name(name) for name in self.skipped.left_out]
        stream = rest_of(source.stream, names, n_read, last_read, source.path)
        min_count = self.notes.get("min_count", 0)  # files of 0.2.0 do not say
        return Screen(stream, self.model.n_rows, self.notes["missing"], report, min_count)

    # Learning -------------------------------------------------------------------------------------

    def learn(self) -> None:
        """Learn all that is left to read.

        Raises
        ------
        CommandError
            If that ends before its time by an error; what the model has learnt until then is saved.
        """
        total, done = self._screen.n_columns, self.notes["columns_read"]
        with Interrupts() as interrupts:
            start = time.monotonic()
            try:
                with meter(
                    {"select": "selecting", "reduce": "reducing"}[self._request.command],
                    None if total is None else total + done,
                    done,
                ) as bar:
                    self._compile(bar)
                    start = time.monotonic()
                    self.skipped.listening = True
                    if self.model._one_source:
                        self._learn_at_once(bar)
                    else:
                        self._learn_in_blocks(bar, interrupts)
                        if self.model._reads_again and not self.skipped.refused["refused"]:
                            self._read_again(bar)
                self.notes["complete"] = True
            except KeyboardInterrupt:
                self._stop(interrupts.exit_code, start)
            except EXPECTED as error:
                self._fail(error, start)
            finally:
                self.skipped.listening = False
            self._note_time(start)
            self._save()

    def _compile(self, bar: Meter) -> None:
        bar.compiling()
        supervised = bool(self.notes["target"] or self.notes["target_file"])
        compile_for(self.model, self._screen._source, supervised=supervised)
        bar.begin()

    def _learn_in_blocks(self, bar: Meter, interrupts: Interrupts) -> None:
        start = time.monotonic()
        before = self.notes["columns_read"] - self.notes["bad_lines"]
        blocks = self._screen.blocks()
        while (block := next(blocks, None)) is not None:
            with interrupts.learning():
                self._learn_block(block)
                self._note_progress(before)
                bar.update(self.notes["columns_read"], self.model)
                self._save_in_between(start)
        self._note_progress(before)

    def _learn_block(self, block: Block) -> None:
        try:
            self.model.learn_columns(block.values, names=block.names)
        except ValueError as error:
            # A name that the model holds, or values too large to be squared: find out which.
            if len(block.names) == 1:
                self.skipped.refuse(block.names[0], "refused", message_of(error))
                return
            half = len(block.names) // 2
            for part in (slice(None, half), slice(half, None)):
                names, values = block.names[part], block.values[:, part]
                self._learn_block(block._replace(names=names, values=values))

    def _read_again(self, bar: Meter) -> None:
        """Read all columns once more, for what the model did not keep of them."""
        from streamsel.stream._base import ColumnStream

        screen = self._screened_from(0, "", None)
        # Of what is bad a second reading has nothing new to tell.
        self.skipped.listening = False

        def watched() -> Iterator[Block]:
            n_read = 0
            for block in screen.blocks():
                yield block
                n_read += len(block.names)
                bar.update(n_read, reading="second reading")

        self.model.learn_loadings(ColumnStream(watched, n_rows=screen.n_rows))

    def _learn_at_once(self, bar: Meter) -> None:
        from streamsel.stream._base import ColumnStream

        n_passes = 0

        def watched() -> Iterator[Block]:
            nonlocal n_passes
            n_passes += 1
            n_read = 0
            # Of what is bad a second pass has nothing new to tell.
            self.skipped.listening = n_passes == 1
            for block in self._screen.blocks():
                yield block
                n_read += len(block.names)
                self._note_progress(0)
                reading = _reading(self.model, n_passes) if n_passes > 1 else ""
                bar.update(n_read, reading=reading)

        self.model.learn_columns(
            ColumnStream(watched, n_rows=self._screen.n_rows, n_columns=self._screen.n_columns)
        )
        self._note_progress(0)

    # Notes, saving, ending ------------------------------------------------------------------------

    def _note_progress(self, before: int) -> None:
        self.notes["bad_lines"] = self.skipped.n_bad_lines
        self.notes["columns_read"] = before + self._screen.n_read + self.notes["bad_lines"]
        if self._screen.n_read:
            self.notes["last_column"] = str(self._screen.last_read)
        self.notes["skipped"] = dict(self.skipped.refused + self._screen.skipped)
        self.notes["filled"] = self._n_filled + self._screen.n_filled

    def _note_time(self, start: float) -> None:
        self.notes["seconds"] = self._seconds + time.monotonic() - start
        self.notes["peak_memory"] = peak_bytes()

    def _save(self) -> bool:
        """Save the model; a failure is kept for the end, as the result is not to be lost by it."""
        from streamsel.persist import save

        path = self._request.model
        if path is None:
            return True
        try:
            save(self.model, path, self.notes)
        except EXPECTED as error:
            self._unwritten["--model"] = f"--model {path}: not written ({_reason(error)})"
            return False
        self._unwritten.pop("--model", None)
        return True

    def _save_in_between(self, start: float) -> None:
        every = self._request.checkpoint
        if every is not None and time.monotonic() - self._saved_at >= every:
            self._note_time(start)
            if not self._save():
                note(f"warning: {self._unwritten['--model']}")
            self._saved_at = time.monotonic()

    def _keep(self, start: float) -> str:
        """Save what was learnt so far; say where it is."""
        self._note_time(start)
        n_read = self.notes["columns_read"]
        if not n_read:
            return "before the first column was learnt"
        path = self._request.model
        if path is None:
            return f"after {count(n_read, 'column')}; nothing was saved (no --model)"
        if not self._save():
            return f"after {count(n_read, 'column')}; {self._unwritten['--model']}"
        return f"after {count(n_read, 'column')}; what was learnt is in {path}"

    def _stop(self, exit_code: int, start: float) -> None:
        request, what = self._request, self._keep(start)
        if self.notes["columns_read"]:
            self.show(self._report())
            if request.model is not None and not self.model._one_source and not self._unwritten:
                words = ["streamsel", request.command, request.file, "--resume", request.model]
                what += f"\nstreamsel: to go on: {shlex.join(words)}"
        if request.out is not None:
            what += f"\nstreamsel: {request.out} was not written"
        stop(f"interrupted {what}", exit_code)

    def _fail(self, error: BaseException, start: float) -> None:
        # Over a file that can be read again, learning all at once is undone by an error.
        if self.model._one_source or not self.notes["columns_read"]:
            raise error
        raise CommandError(f"{message_of(error)} (stopped {self._keep(start)})") from error

    # Results --------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Write and print what came of it.

        Raises
        ------
        CommandError
            If nothing came of it, or a file could not be written; what there is has been printed.
        """
        out, report = self._request.out, self._report()
        n, asked = n_found(report), report.asked
        if out is not None and n:
            try:
                self._write(out, report)
            except EXPECTED as error:
                self._unwritten["--out"] = f"--out {out}: not written ({_reason(error)})"
        self.show(report)
        if not n:
            done = {"select": "selected", "reduce": "learnt"}[self._request.command]
            raise CommandError(f"nothing was {done}: {self._why_no_more(report)}")
        if asked is not None and n < asked:
            done = {"select": "selected", "reduce": "built"}[self._request.command]
            note(f"{asked} asked for, {n} {done}: {self._why_no_more(report)}")
        if self._unwritten:
            raise CommandError("; ".join(self._unwritten.values()))

    def _report(self) -> Report:
        report: Report = self.model.report()
        return report if self.notes["complete"] else report.unfinished()

    def _why_no_more(self, report: Report) -> str:
        n_usable = report.columns_seen - report.columns_constant
        if not n_usable:
            n_read = self.notes["columns_read"]
            return f"of {count(n_read, 'column')} read none could be used"
        if report.asked is None:
            return f"none of {count(n_usable, 'column')} passes"
        n = n_found(report)
        if n == n_usable:
            return f"only {count(n_usable, 'column')} could be used"
        if report.parameters.get("after_rank") == "stop":
            return "there is nothing left to explain (--after-rank stop)"
        # All but the mean, and what covariates take.
        n_free = (report.rows or 0) - 1 - len(self.model.covariates or ())
        if report.kind == "components" and n >= n_free:
            return f"{count(report.rows or 0, 'row')} have no more"
        why: str = self.model._why_no_more
        return why

    def _write(self, out: str, report: Report) -> None:
        if report.kind == "selected":
            names = [row["name"] for row in report.found]
            columns = self._screen.take(names)
            write_table(out, names, [columns[name] for name in names])
        else:
            matrix = self._components()
            write_table(out, self.model.components[: matrix.shape[1]], list(matrix.T))

    def _components(self) -> Any:
        """Return the components of the rows that were learnt."""
        if hasattr(self.model, "landmarks") or self.model.takes_missing:
            # New rows are placed by landmarks, or with means in their gaps: those that were learnt
            # are known better.
            return self.model.embedding
        # What they are made of is read again, and nothing else.
        return self.model.transform_many(self._screen)

    def show(self, report: Report) -> None:
        """Print what was found; say what was left out."""
        show(report, self.notes, as_json=self._request.as_json)
        if "caution" in report.facts and not sys.stdout.isatty():
            note(f"caution: {report.facts['caution']}")
        skipped = skipped_text(self.notes["skipped"])
        if skipped and not sys.stdout.isatty():
            n_skipped = sum(self.notes["skipped"].values())
            note(f"left out {count(n_skipped, 'column')}: {skipped}")


def _reading(model: Any, number: int) -> str:
    """Say which reading it is, of how many as it looks now, and what it has proven."""
    expected = max(number, math.ceil(model.n_passes_expected))
    proven = f"{model.n_certified} of {len(model.selected)} proven"
    return f"reading {number} of about {expected}, {proven}"


def run(request: Request) -> None:
    """Learn from a file as asked, save, write and print what comes of it."""
    _check_outputs(request)
    learning = Run(request)
    # Only now that the input is known to be right: opening the list empties an older one.
    with learning.skipped.listing():
        learning.learn()
    learning.finish()


def _reason(error: BaseException) -> str:
    """Say what went wrong, without the name of a temporary file."""
    return str(getattr(error, "strerror", None) or message_of(error))


def _check_outputs(request: Request) -> None:
    """Find out now what would go wrong only after hours."""
    skipped_file = None if request.skipped_file == "-" else request.skipped_file
    saved_as = "--resume" if request.model == request.resume else "--model"
    written = {"--out": request.out, "--list-skipped": skipped_file}
    check_distinct(
        {saved_as: request.model, **written},
        {"FILE": request.file, "--target-file": request.target_file},
    )
    check_distinct(written, {"--resume": request.resume})
    if request.out is not None:
        check_table(request.out)
    if request.model is not None:
        check_writable(request.model, "--model")
    if skipped_file is not None:
        check_writable(skipped_file, "--list-skipped")
    file_format(request.file)
