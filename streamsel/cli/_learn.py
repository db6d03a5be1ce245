"""A run of `select` or `reduce`: columns in, a model out, whatever happens on the way."""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from contextlib import ExitStack
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
from streamsel.cli._outputs import check_table, check_writable, write_table
from streamsel.cli._progress import Meter, meter
from streamsel.cli._report import count, describe, show, skipped_text
from streamsel.cli._resume import rest_of
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
    skipped_to
        Where the columns left out are listed; None for nowhere.
    """

    def __init__(self, request: Request, skipped_to: IO[str] | None) -> None:
        self._request = request
        self._skipped_to = skipped_to
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
        self.notes: dict[str, Any] = {
            "command": request.command,
            "file": request.file,
            "orientation": request.orientation,
            "target": list(request.target),
            "target_file": request.target_file,
            "dropped": list(request.drop),
            "missing": request.missing or "skip",
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
        self.model = request.make_model()
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
        source = open_source(self._request.file, orientation, wanted, self._on_bad_line)
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
        return Screen(stream, n_rows, self.notes["missing"], self._list_skipped)

    # What is left out -----------------------------------------------------------------------------

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

    def _save(self) -> None:
        from streamsel.persist import save

        if self._request.model is not None:
            save(self.model, self._request.model, self.notes)

    def _save_in_between(self, start: float) -> None:
        every = self._request.checkpoint
        if every is not None and time.monotonic() - self._saved_at >= every:
            self._note_time(start)
            self._save()
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
        self._save()
        return f"after {count(n_read, 'column')}; what was learnt is in {path}"

    def _stop(self, exit_code: int, start: float) -> None:
        request, what = self._request, self._keep(start)
        if self.notes["columns_read"]:
            self.show()
            if request.model is not None and not self._is_exact:
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

    def write(self) -> None:
        """Write the selected columns, or the components of all rows, to the file asked for."""
        out = self._request.out
        if out is None:
            return
        if hasattr(self.model, "selected"):
            names = self.model.selected
            columns = self._screen.take(names) if names else {}
            write_table(out, names, [columns[name] for name in names])
        else:
            embedding = self.model.embedding
            write_table(out, self.model.components, list(embedding.T))

    def show(self) -> None:
        """Print what was found; say what was left out."""
        show(describe(self.model), self.notes, as_json=self._request.as_json)
        skipped = skipped_text(self.notes["skipped"])
        if skipped and not sys.stdout.isatty():
            n_skipped = sum(self.notes["skipped"].values())
            note(f"left out {count(n_skipped, 'column')}: {skipped}")


def run(request: Request) -> None:
    """Learn from a file as asked, save, write and print what comes of it."""
    _check_outputs(request)
    with ExitStack() as stack:
        skipped_to: IO[str] | None = None
        if request.skipped_file == "-":
            skipped_to = sys.stderr
        elif request.skipped_file is not None:
            skipped_to = stack.enter_context(
                Path(request.skipped_file).open("w", encoding="utf-8", buffering=1)
            )
        learning = Run(request, skipped_to)
        learning.learn()
        learning.write()
        learning.show()


def _check_outputs(request: Request) -> None:
    """Find out now what would go wrong only after hours."""
    if request.out is not None:
        check_table(request.out)
    if request.model is not None:
        check_writable(request.model, "--model")
    if request.skipped_file not in (None, "-"):
        check_writable(str(request.skipped_file), "--list-skipped")
    file_format(request.file)
