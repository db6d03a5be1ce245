"""Runs of many models over shared passes of the files, for `stability` and `evaluate`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from streamsel._kernels.compile import silence_compile_message
from streamsel._utils.text import count_text, skipped_text
from streamsel._version import __version__
from streamsel.cli.checkpoint import output_locks
from streamsel.cli.errors import note, stop_with_note
from streamsel.cli.log import log, stderr_is_terminal
from streamsel.cli.output import check_distinct_outputs, check_table, row_writer
from streamsel.cli.progress import meter
from streamsel.cli.request import make_request
from streamsel.cli.results import check_skipped
from streamsel.cli.run import Run
from streamsel.cli.signals import Interrupts, exit_code_of
from streamsel.cli.skipped import Skipped, learn_accepted
from streamsel.cli.warmup import compile_for
from streamsel.reporting.json import as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from streamsel.cli.progress import Meter
    from streamsel.data.columns import Block
    from streamsel.evaluate.model_batch import ModelBatch
    from streamsel.stream import ColumnStream

MEGABYTE = 1_000_000
# Memory of the models above which the plan is reported, in bytes.
_MIN_REPORTED_BYTES = 10_000_000
# Options of `select` that these runs lack: they save no model and cannot be resumed.
SELECT_ONLY_OPTIONS = {
    "model": None,
    "resume": None,
    "force": False,
    "checkpoint": None,
    "skipped_file": None,
    "workers": None,
    "scheduler": None,
    "keep": (),
}


@contextmanager
def batch_run(ctx: click.Context) -> Iterator[tuple[Run, Interrupts]]:
    """Yield the job that the options describe; report an interrupt."""
    if not stderr_is_terminal():
        silence_compile_message()
    ctx.params = {**SELECT_ONLY_OPTIONS, **ctx.params}
    request = make_request(ctx)
    if request.out is not None:
        check_distinct_outputs({"--out": request.out}, {path: path for path in request.files})
        if request.out.lower().endswith(".npy"):
            raise click.UsageError(
                f"--out {request.out}: an .npy file cannot hold variable names. Hint: use .csv or "
                ".parquet",
                ctx,
            )
        check_table(request.out)
    with Interrupts() as interrupts, output_locks({"--out": request.out}):
        job = Run(request)
        try:
            yield job, interrupts
        except (ValueError, TypeError) as error:
            raise job.with_row_ids(error) from error
        except KeyboardInterrupt as error:
            interrupts.ignore_signals()
            n_read = job.metadata["columns_read"]
            stop_with_note(f"interrupted after {count_text(n_read, 'column')}", exit_code_of(error))


def learn_model_batch(
    job: Run,
    crowd: ModelBatch,
    title: str,
    interrupts: Interrupts,
    max_bytes: int,
    on_block: Callable[[Block], None] | None = None,
) -> None:
    """Let many models learn all columns of a job, with progress.

    Parameters
    ----------
    job
        The job that provides the columns; its model determines how they are screened.
    crowd
        The models.
    title
        Title of the progress bar.
    interrupts
        Delays signals while a block is learnt.
    max_bytes
        Memory limit for the models of one pass together.
    on_block
        Called with each block of the first pass.
    """
    plan = crowd.plan(job.screen.n_columns)
    if len(plan.passes) > 1 or plan.n_individual or plan.bytes_each >= _MIN_REPORTED_BYTES:
        note(plan.text(max_bytes))
    log().begin(job.request.command, file=job.request.arguments, n_columns=job.screen.n_columns)
    job.report_target()
    with meter(title, job.screen.n_columns) as bar:
        bar.compiling()
        compile_for(job.model, job.source.stream, supervised=job.given.y is not None)
        bar.begin()
        job.start_clock()
        job.skipped.is_recording = True
        skipped = job.skipped
        for number, part in enumerate(plan.passes):
            learn = partial(_learn, crowd, part, on_block if number == 0 else None)
            stream = (
                job.screen
                if number == 0
                else with_progress(job.all_columns(), bar, f"pass {number + 1}")
            )
            for block in stream.blocks():
                with interrupts.deferred():
                    learn_accepted(learn, block, skipped)
                    if number == 0:
                        job.row_number_detector.check_block(block)
                        job.record_progress(0)
                        bar.update(job.metadata["columns_read"])
            if number == 0:
                job.record_progress(0)
                skipped.is_recording = False
                # Columns that later passes reject were counted in the first.
                skipped = Skipped(None)
            crowd.end_pass(part)
        crowd.learn_individually(with_progress(job.all_columns(), bar, "separate pass per model"))
    job.metadata["complete"] = True
    job.record_time()
    check_skipped(job)
    job._report_warnings(job.row_number_detector.warnings())


def _learn(
    crowd: ModelBatch, part: Sequence[int], on_block: Callable[[Block], None] | None, block: Block
) -> None:
    crowd.learn_block(block, part)
    if on_block is not None:
        on_block(block)


def with_progress(stream: ColumnStream, bar: Meter, reading: str) -> ColumnStream:
    """Return a stream whose passes are shown by a progress meter."""
    from streamsel.stream import ColumnStream

    def blocks() -> Iterator[Block]:
        n_read = 0
        for block in stream.blocks():
            yield block
            n_read += len(block.names)
            bar.update(n_read, pass_name=reading)

    return ColumnStream(blocks, n_rows=stream.n_rows, n_columns=stream.n_columns, take=stream.take)


def n_rows(job: Run) -> int:
    """Return the number of rows: of the target, or else of the file."""
    if job.given.y is not None:
        return len(job.given.y)
    stream = job.source.stream
    if stream.n_rows is None:
        next(stream.blocks(), None)  # reading a block sets n_rows
    return stream.n_rows or 0


def show_batch_result(
    job: Run,
    found: Any,
    table: Callable[[Any], None],
    titles: Sequence[str],
    lines: Iterable[Sequence[Any]],
    words: Sequence[str],
) -> None:
    """Print the result, its summary, and how many columns were skipped.

    Parameters
    ----------
    job
        The job that was run.
    found
        The result; it has `as_dict`.
    table
        Prints the result and the summary on a terminal.
    titles, lines
        Header and rows of the tab-separated values printed elsewhere.
    words
        Sentences that summarise the result.
    """
    on_terminal = sys.stdout.isatty()
    if job.request.as_json:
        known = {"streamsel": __version__, **found.as_dict(), "warnings": job.metadata["warnings"]}
        known["target"] = job.model._target_description()
        known["rows_excluded"] = job.model._rows_excluded()
        known["metadata"] = job.metadata
        sys.stdout.write(as_json(known, indent=2) + "\n")
    elif on_terminal:
        table(found)
    else:
        writer = row_writer(sys.stdout, "\t")
        writer.writerow(titles)
        for line in lines:
            writer.writerow(line)
    sys.stdout.flush()
    if not on_terminal:
        for line in words:
            note(line)
    skipped = job.metadata["skipped"]
    if text := skipped_text(skipped):
        note(f"skipped {count_text(sum(skipped.values()), 'column')}: {text}")


def run_model_batch(ctx: click.Context, work: Callable[..., None], **further: Any) -> None:
    """Run the work of a command on the job that its options describe."""
    with batch_run(ctx) as (job, interrupts):
        work(job, interrupts, options=ctx.params, **further)
