"""A run of `select` or `reduce`: learn the columns, save the model, write the results."""

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

# Metadata of a run that the log's end event reports.
_OUTCOME_KEYS = ("columns_read", "skipped", "complete", "peak_memory")


def run(request: Request) -> None:
    """Learn from a file as requested; save, write and print the results."""
    if not stderr_is_terminal():
        leave_it_unsaid()
    with Interrupts() as interrupts:
        _check_outputs(request)
        with reserved(_output_files(request)):
            _run(request, interrupts)


def _run(request: Request, interrupts: Interrupts) -> None:
    job = Job(request)
    keeper = Keeper(job)
    try:
        if job.notes["complete"]:
            job.look_at_result()
            keeper.keep_complete()
        else:
            # The list is opened after the input is validated, as opening empties an older list.
            with job.skipped.listing():
                Learning(job, keeper, interrupts).learn()
        finish(job, keeper.unwritten)
    except KeyboardInterrupt as error:
        interrupts.end()
        keeper.stop(exit_code_of(error))
    finally:
        log().outcome = {name: job.notes[name] for name in _OUTCOME_KEYS}


def _output_files(request: Request) -> dict[str, str | None]:
    """Return the files that a run writes, by option."""
    return {
        "--resume" if request.model == request.resume else "--model": request.model,
        "--out": request.out,
        "--list-skipped": None if request.skipped_file == "-" else request.skipped_file,
    }


def _check_outputs(request: Request) -> None:
    """Raise early for problems that would otherwise occur at the end of a long run."""
    if [*request.given, request.target_file].count(STDIN) > 1:
        raise click.UsageError("-: standard input can be used only once")
    written = _output_files(request)
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
    """Learns the columns of a job: block by block, or in several passes for multi-pass models.

    Parameters
    ----------
    job
        The job.
    keeper
        Saves checkpoints.
    interrupts
        Delays signals while a block is learnt or the model is saved.
    """

    def __init__(self, job: Job, keeper: Keeper, interrupts: Interrupts) -> None:
        self._job = job
        self._keeper = keeper
        self._interrupts = interrupts

    def learn(self) -> None:
        """Learn all columns that remain.

        Raises
        ------
        CommandError
            If an error ends the run early; the state so far is saved.
        """
        job = self._job
        total, done = job.screen.n_columns, job.notes["columns_read"]
        n_columns = None if total is None else total + done
        log().begin(
            job.request.command, **_begin_facts(job), n_columns=n_columns, columns_read=done
        )
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
                    self._learn_in_passes(bar)
                else:
                    self._learn_in_blocks(bar)
                if job.model._reads_again and not job.skipped.refused["refused"]:
                    self._second_pass(bar)
        except EXPECTED as error:
            with self._interrupts.held():
                self._keeper.fail(job.named(error))
        finally:
            job.skipped.listening = False
        with self._interrupts.held():
            job.notes["complete"] = True
            job.note_time()
            # Save before the checks, so that they cannot lose the result.
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

    def _second_pass(self, bar: Meter) -> None:
        """Read all columns once more, for data that the model did not keep."""
        from streamsel.stream._base import ColumnStream

        screen = self._job.whole()
        # Bad columns were reported in the first pass.
        self._job.skipped.listening = False

        def watched() -> Iterator[Block]:
            for n_read, block in _with_counts(screen):
                yield block
                bar.update(n_read, reading="second pass")

        self._job.model.learn_loadings(ColumnStream(watched, n_rows=screen.n_rows))

    def _learn_in_passes(self, bar: Meter) -> None:
        from streamsel.stream._base import ColumnStream

        job, screen, n_passes = self._job, self._job.screen, 0

        def watched() -> Iterator[Block]:
            nonlocal n_passes
            n_passes += 1
            # Bad columns were reported in the first pass.
            job.skipped.listening = n_passes == 1
            for n_read, block in _with_counts(screen):
                if n_passes == 1:
                    job.counters.look_at(block)
                yield block
                job.note_progress(0)
                reading = _pass_text(job.model, n_passes) if n_passes > 1 else ""
                bar.update(n_read, reading=reading)

        job.model.learn_columns(
            ColumnStream(watched, n_rows=screen.n_rows, n_columns=screen.n_columns)
        )
        job.note_progress(0)


def _begin_facts(job: Job) -> dict[str, Any]:
    """Return the facts of the begin event of the log."""
    request, model = job.request, job.model
    return {
        "file": request.given,
        "class": type(model).__name__,
        "parameters": model._get_params(),
        "n_rows": job.screen.n_rows,
    }


def _with_counts(screen: Screen) -> Iterator[tuple[int, Block]]:
    """Yield the blocks of a screen, each with the number of columns up to its end."""
    n_read = 0
    for block in screen.blocks():
        n_read += len(block.names)
        yield n_read, block


def _pass_text(model: Any, number: int) -> str:
    """Return a text with the number of the pass, the expected total, and how many are proven."""
    expected = max(number, math.ceil(model.n_passes_expected))
    proven = f"{model.n_certified} of {len(model.selected)} proven"
    return f"pass {number} of about {expected}, {proven}"
