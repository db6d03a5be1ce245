"""A run of `select` or `reduce`: columns in, a model out, whatever happens on the way."""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from streamsel.cli._errors import EXPECTED, CommandError, message_of, note, stop
from streamsel.cli._inputs import (
    Source,
    file_format,
    open_source,
    target_from_file,
    target_of,
)
from streamsel.cli._interrupt import Interrupts
from streamsel.cli._outputs import check_distinct, check_table, check_writable, write_table
from streamsel.cli._progress import Meter, meter
from streamsel.cli._report import count, describe, show, skipped_text
from streamsel.cli._resume import rest_of
from streamsel.cli._warmup import compile_for
from streamsel.memory import peak_bytes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from streamsel.cli._request import Request
    from streamsel.columns import Block
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
        self._skipped_to: IO[str] | None = None
        self._unwritten: dict[str, str] = {}  # why, by option
        self._listening = False  # whether text lines that are not numbers are news
        self._n_bad_lines = 0
        self._n_known_bad_lines = 0  # an earlier run has told of them
        self._refused: Counter[str] = Counter()
        self._left_out: Sequence[str] = ()
        self._n_filled = 0
        self._seconds = 0.0
        self._saved_at = time.monotonic()
        if request.resume is None:
            self._start()
        else:
            self._resume(request.resume)

    def _start(self) -> None:
        request = self._request
        self.model = request.make_model()
        self.notes: dict[str, Any] = {
            "command": request.command,
            "file": request.file,
            "orientation": request.orientation,
            "delimiter": request.delimiter,
            "target": list(request.target),
            "target_file": request.target_file,
            "dropped": list(request.drop),
            "missing": request.missing or "skip",
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
        in_file = [] if request.target_file else list(request.target)
        source = self._open(request.orientation, [*in_file, *request.drop])
        source.check(request.drop)
        self.model.learn_target(self._read_target(source))
        self._screen = self._screened(source, [*in_file, *request.drop], self.model.n_rows)

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
        if self._is_exact:
            raise CommandError(
                f"--resume {path}: a run with --exact cannot be taken up in the middle. "
                "Hint: run it again without --resume"
            )
        self.notes = {**notes, "missing": request.missing or notes["missing"]}
        self._refused.update(notes["skipped"])
        self._n_known_bad_lines = notes["bad_lines"]
        self._seconds, self._n_filled = notes["seconds"], notes["filled"]
        left_out = [*([] if notes["target_file"] else notes["target"]), *notes["dropped"]]
        source = self._open(notes["orientation"] or "auto", left_out)
        self._screen = self._screened(source, left_out, self.model.n_rows)

    @property
    def _is_exact(self) -> bool:
        return bool(getattr(self.model, "exact", False))

    def _open(self, orientation: str, wanted: Sequence[str]) -> Source:
        delimiter = self.notes.get("delimiter")
        source = open_source(self._request.file, orientation, wanted, self._on_bad_line, delimiter)
        is_text = source.format in ("samples", "variables")
        self.notes["orientation"] = source.format if is_text else None
        return source

    def _read_target(self, source: Source) -> Any:
        request = self._request
        if request.target_file is not None:
            y = target_from_file(request.target_file, request.target, request.target_kind)
        elif request.target:
            return target_of(source, request.target, request.target_kind)
        else:
            return None
        n_rows = source.stream.n_rows
        if n_rows is not None and len(y) != n_rows:
            raise CommandError(
                f"{request.target_file}: {len(y):,} values, but {request.file} has {n_rows:,} rows"
            )
        return y

    def _screened(self, source: Source, left_out: Sequence[str], n_rows: int | None) -> Screen:
        from streamsel.stream._screen import Screen

        self._left_out = left_out
        names = [source.name(name) for name in left_out]
        stream = rest_of(
            source.stream,
            names,
            # Lines that are no columns of numbers do not count where the stream is concerned.
            self.notes["columns_read"] - self.notes["bad_lines"],
            self.notes["last_column"],
            source.path,
        )
        min_count = self.notes.get("min_count", 0)  # files of 0.2.0 do not say
        return Screen(stream, n_rows, self.notes["missing"], self._list_skipped, min_count)

    # What is left out -----------------------------------------------------------------------------

    @contextmanager
    def listing(self) -> Iterator[None]:
        """Write the list of the columns left out, if it was asked for."""
        path = self._request.skipped_file
        if path is None or path == "-":
            self._skipped_to = None if path is None else sys.stderr
            yield
            return
        with Path(path).open("w", encoding="utf-8", buffering=1) as file:
            self._skipped_to = file
            yield

    def _list_skipped(self, name: Hashable, reason: str, detail: str) -> None:
        if self._skipped_to is not None:
            cells = (" ".join(str(cell).split()) for cell in (name, reason, detail))
            self._skipped_to.write("\t".join(cells) + "\n")

    def _on_bad_line(self, name: Hashable, reason: str, detail: str) -> None:
        if not self._listening or name in self._left_out:
            return
        self._n_bad_lines += 1
        if self._n_bad_lines <= self._n_known_bad_lines:
            return
        if self.notes["missing"] == "error":
            raise ValueError(detail)
        self._refuse(name, reason, detail)

    def _refuse(self, name: Hashable, reason: str, detail: str) -> None:
        self._refused[reason] += 1
        self._list_skipped(name, reason, detail)

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
                    self._listening = True
                    if self._is_exact:
                        self._learn_at_once(bar)
                    else:
                        self._learn_in_blocks(bar, interrupts)
                self.notes["complete"] = True
            except KeyboardInterrupt:
                self._stop(interrupts.exit_code, start)
            except EXPECTED as error:
                self._fail(error, start)
            finally:
                self._listening = False
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
                self._refuse(block.names[0], "refused", message_of(error))
                return
            half = len(block.names) // 2
            for part in (slice(None, half), slice(half, None)):
                names, values = block.names[part], block.values[:, part]
                self._learn_block(block._replace(names=names, values=values))

    def _learn_at_once(self, bar: Meter) -> None:
        from streamsel.stream._base import ColumnStream

        n_passes = 0

        def watched() -> Iterator[Block]:
            nonlocal n_passes
            n_passes += 1
            n_read = 0
            # Of what is bad a second pass has nothing new to tell.
            self._listening = n_passes == 1
            for block in self._screen.blocks():
                yield block
                n_read += len(block.names)
                self._note_progress(0)
                bar.update(n_read, n_passes=n_passes)

        self.model.learn_columns(
            ColumnStream(watched, n_rows=self._screen.n_rows, n_columns=self._screen.n_columns)
        )
        self._note_progress(0)

    # Notes, saving, ending ------------------------------------------------------------------------

    def _note_progress(self, before: int) -> None:
        self.notes["bad_lines"] = max(self._n_bad_lines, self._n_known_bad_lines)
        self.notes["columns_read"] = before + self._screen.n_read + self.notes["bad_lines"]
        if self._screen.n_read:
            self.notes["last_column"] = str(self._screen.last_read)
        self.notes["skipped"] = dict(self._refused + self._screen.skipped)
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
            self.show()
            if request.model is not None and not self._is_exact and not self._unwritten:
                words = ["streamsel", request.command, request.file, "--resume", request.model]
                what += f"\nstreamsel: to go on: {shlex.join(words)}"
        if request.out is not None:
            what += f"\nstreamsel: {request.out} was not written"
        stop(f"interrupted {what}", exit_code)

    def _fail(self, error: BaseException, start: float) -> None:
        # Over a file that can be read again, learning all at once is undone by an error.
        if self._is_exact or not self.notes["columns_read"]:
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
        out, (n_found, n_asked) = self._request.out, self._n_found()
        if out is not None and n_found:
            try:
                self._write(out)
            except EXPECTED as error:
                self._unwritten["--out"] = f"--out {out}: not written ({_reason(error)})"
        self.show()
        if not n_found:
            done = {"select": "selected", "reduce": "learnt"}[self._request.command]
            raise CommandError(f"nothing was {done}: {self._why_no_more(n_asked)}")
        if n_found < n_asked:
            done = {"select": "selected", "reduce": "built"}[self._request.command]
            note(f"{n_asked} asked for, {n_found} {done}: {self._why_no_more(n_asked)}")
        if self._unwritten:
            raise CommandError("; ".join(self._unwritten.values()))

    def _n_found(self) -> tuple[int, int]:
        """Return how many variables or components there are, and how many were asked for."""
        if hasattr(self.model, "selected"):
            return len(self.model.selected), self.model.k
        filled = {name for weights in self.model.loadings.values() for name in weights}
        return len(filled), self.model.n_components

    def _why_no_more(self, n_asked: int) -> str:
        n_usable = self.model.n_columns - self.model.n_constant
        if not n_usable:
            n_read = self.notes["columns_read"]
            return f"of {count(n_read, 'column')} read none could be used"
        if n_usable < n_asked:
            return f"only {count(n_usable, 'column')} could be used"
        if getattr(self.model, "after_rank", "") == "stop":
            return "there is nothing left to explain (--after-rank stop)"
        return "no other column adds to what they explain"

    def _write(self, out: str) -> None:
        if hasattr(self.model, "selected"):
            names = self.model.selected
            columns = self._screen.take(names)
            write_table(out, names, [columns[name] for name in names])
        else:
            embedding = self.model.embedding
            write_table(out, self.model.components, list(embedding.T))

    def show(self) -> None:
        """Print what was found; say what was left out."""
        description = describe(self.model, complete=self.notes["complete"])
        show(description, self.notes, as_json=self._request.as_json)
        skipped = skipped_text(self.notes["skipped"])
        if skipped and not sys.stdout.isatty():
            n_skipped = sum(self.notes["skipped"].values())
            note(f"left out {count(n_skipped, 'column')}: {skipped}")


def run(request: Request) -> None:
    """Learn from a file as asked, save, write and print what comes of it."""
    _check_outputs(request)
    learning = Run(request)
    # Only now that the input is known to be right: opening the list empties an older one.
    with learning.listing():
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
