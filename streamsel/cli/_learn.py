"""A run of `select` or `reduce`: columns in, a model out, whatever happens on the way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from streamsel._jit.policy import leave_it_unsaid
from streamsel.cli._distributed import learn_in_parts
from streamsel.cli._errors import EXPECTED
from streamsel.cli._interrupt import Interrupts, exit_code_of
from streamsel.cli._job import Job
from streamsel.cli._keep import Keeper
from streamsel.cli._log import log, stderr_is_terminal
from streamsel.cli._outputs import check_distinct, check_table, check_writable
from streamsel.cli._progress import Meter, meter
from streamsel.cli._request import STDIN, Request
from streamsel.cli._reserved import reserved
from streamsel.cli._results import finish
from streamsel.cli._skipped import learn_good
from streamsel.cli._spool import spooled
from streamsel.cli._warmup import compile_for
from streamsel.stream._formats import file_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamsel.columns import Block
    from streamsel.stream._screen import Screen

# What a program is told of a run when it ends, besides how.
OUTCOME = ("columns_read", "skipped", "complete", "peak_memory")


def run(request: Request) -> None:
    """Learn from a file as asked, save, write and print what comes of it."""
    if not stderr_is_terminal():
        leave_it_unsaid()
    with Interrupts() as interrupts:
        _check_outputs(request)
        with reserved(_written(request)):
            _run(request, interrupts)


def _run(request: Request, interrupts: Interrupts) -> None:
    job = Job(request)
    keeper = Keeper(job)
    try:
        if job.notes["complete"]:
            job.look_at_result()
            keeper.keep_complete()
        else:
            # Only now is the input known to be right: opening the list empties an older one.
            with job.skipped.listing():
                Learning(job, keeper, interrupts).learn()
        finish(job, keeper.unwritten)
    except KeyboardInterrupt as error:
        interrupts.end()
        keeper.stop(exit_code_of(error))
    finally:
        log().outcome = {name: job.notes[name] for name in OUTCOME}


def _written(request: Request) -> dict[str, str | None]:
    """Return the files that a run writes, by option."""
    return {
        "--resume" if request.model == request.resume else "--model": request.model,
        "--out": request.out,
        "--list-skipped": None if request.skipped_file == "-" else request.skipped_file,
    }


def _check_outputs(request: Request) -> None:
    """Find out now what would go wrong only after hours."""
    if [*request.given, request.target_file].count(STDIN) > 1:
        raise click.UsageError("-: standard input can be read only once")
    written = _written(request)
    skipped_file = written["--list-skipped"]
    check_distinct(
        written,
        {
            **{path if len(request.files) > 1 else "FILE": path for path in request.files},
            "--target-file": request.target_file,
        },
    )
    others = {"--out": request.out, "--list-skipped": skipped_file}
    check_distinct(others, {"--resume": request.resume})
    if request.out is not None:
        check_table(request.out)
    if request.model is not None:
        check_writable(request.model, "--model")
    if skipped_file is not None:
        check_writable(skipped_file, "--list-skipped")
    for path in request.files:
        file_format(spooled(path))


class Learning:
    """The learning of a job: in blocks, or all at once where columns are read in a circle.

    Parameters
    ----------
    job
        What is learnt.
    keeper
        Who saves it on the way.
    interrupts
        What must not interrupt it while it learns a block, or saves.
    """

    def __init__(self, job: Job, keeper: Keeper, interrupts: Interrupts) -> None:
        self._job = job
        self._keeper = keeper
        self._interrupts = interrupts

    def learn(self) -> None:
        """Learn all that is left to read.

        Raises
        ------
        CommandError
            If that ends before its time by an error; what the model has learnt until then is saved.
        """
        job = self._job
        total, done = job.screen.n_columns, job.notes["columns_read"]
        n_columns = None if total is None else total + done
        log().begin(job.request.command, **_about(job), n_columns=n_columns, columns_read=done)
        job.report_target()
        job.begin()
        try:
            with meter(
                {"select": "selecting", "reduce": "reducing"}[job.request.command],
                n_columns,
                done,
            ) as bar:
                self._compile(bar)
                job.begin()
                job.skipped.listening = True
                if job.request.in_parts:
                    learn_in_parts(job, self._keeper, bar, self._interrupts)
                elif job.model._one_source:
                    self._learn_at_once(bar)
                else:
                    self._learn_in_blocks(bar)
                if job.model._reads_again and not job.skipped.refused["refused"]:
                    self._read_again(bar)
        except EXPECTED as error:
            with self._interrupts.held():
                self._keeper.fail(job.named(error))
        finally:
            job.skipped.listening = False
        with self._interrupts.held():
            job.notes["complete"] = True
            job.note_time()
            # What was learnt comes first: nothing that is found in it may cost it.
            self._keeper.save()
            if job.look_at_result():
                self._keeper.save()

    def _compile(self, bar: Meter) -> None:
        job = self._job
        bar.compiling()
        supervised = bool(job.notes["target"] or job.notes["target_file"])
        compile_for(job.model, job.source.stream, supervised=supervised)
        bar.begin()

    def _learn_in_blocks(self, bar: Meter) -> None:
        job = self._job
        before = job.notes["columns_read"] - job.notes["bad_lines"]
        blocks = job.screen.blocks()
        while (block := next(blocks, None)) is not None:
            with self._interrupts.held():
                learn_good(self._learn_block, block, job.skipped)
                job.counters.look_at(block)
                job.note_progress(before)
                bar.update(job.notes["columns_read"], job.model)
                self._keeper.save_in_between()
        job.note_progress(before)

    def _learn_block(self, block: Block) -> None:
        self._job.model.learn_columns(block.values, names=block.names)

    def _read_again(self, bar: Meter) -> None:
        """Read all columns once more, for what the model did not keep of them."""
        from streamsel.stream._base import ColumnStream

        screen = self._job.whole()
        # Of what is bad a second reading has nothing new to tell.
        self._job.skipped.listening = False

        def watched() -> Iterator[Block]:
            for n_read, block in _counted(screen):
                yield block
                bar.update(n_read, reading="second reading")

        self._job.model.learn_loadings(ColumnStream(watched, n_rows=screen.n_rows))

    def _learn_at_once(self, bar: Meter) -> None:
        from streamsel.stream._base import ColumnStream

        job, screen, n_passes = self._job, self._job.screen, 0

        def watched() -> Iterator[Block]:
            nonlocal n_passes
            n_passes += 1
            # Of what is bad a second pass has nothing new to tell.
            job.skipped.listening = n_passes == 1
            for n_read, block in _counted(screen):
                if n_passes == 1:
                    job.counters.look_at(block)
                yield block
                job.note_progress(0)
                reading = _reading(job.model, n_passes) if n_passes > 1 else ""
                bar.update(n_read, reading=reading)

        job.model.learn_columns(
            ColumnStream(watched, n_rows=screen.n_rows, n_columns=screen.n_columns)
        )
        job.note_progress(0)


def _about(job: Job) -> dict[str, Any]:
    """Tell programs what begins."""
    request, model = job.request, job.model
    return {
        "file": request.given,
        "class": type(model).__name__,
        "parameters": model._get_params(),
        "n_rows": job.screen.n_rows,
    }


def _counted(screen: Screen) -> Iterator[tuple[int, Block]]:
    """Yield the blocks of a screen, each with the number of columns up to its end."""
    n_read = 0
    for block in screen.blocks():
        n_read += len(block.names)
        yield n_read, block


def _reading(model: Any, number: int) -> str:
    """Say which reading it is, of how many as it looks now, and what it has proven."""
    expected = max(number, math.ceil(model.n_passes_expected))
    proven = f"{model.n_certified} of {len(model.selected)} proven"
    return f"reading {number} of about {expected}, {proven}"
