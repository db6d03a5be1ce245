"""Runs of many models over shared passes of the files, for `stability` and `evaluate`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from streamsel import __version__
from streamsel._jit.policy import leave_it_unsaid
from streamsel.cli._errors import note, stop
from streamsel.cli._interrupt import Interrupts, exit_code_of
from streamsel.cli._job import Job
from streamsel.cli._json import as_json
from streamsel.cli._log import log, stderr_is_terminal
from streamsel.cli._outputs import check_distinct, check_table
from streamsel.cli._progress import meter
from streamsel.cli._request import make_request
from streamsel.cli._reserved import reserved
from streamsel.cli._results import check_skipped
from streamsel.cli._rows import row_writer
from streamsel.cli._skipped import Skipped, learn_good
from streamsel.cli._warmup import compile_for
from streamsel.words import count, skipped_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from streamsel.cli._progress import Meter
    from streamsel.columns import Block
    from streamsel.evaluate._crowd import Crowd
    from streamsel.stream import ColumnStream

MEGABYTE = 1_000_000
# Memory of the models above which the plan is reported, in bytes.
_MIN_REPORTED_BYTES = 10_000_000
# Options of `select` that these runs lack: they save no model and cannot be resumed.
NOT_ASKED = {
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
def job_of(ctx: click.Context) -> Iterator[tuple[Job, Interrupts]]:
    """Yield the job that the options describe; report an interrupt."""
    if not stderr_is_terminal():
        leave_it_unsaid()
    ctx.params = {**NOT_ASKED, **ctx.params}
    request = make_request(ctx)
    if request.out is not None:
        check_distinct({"--out": request.out}, {path: path for path in request.files})
        if request.out.lower().endswith(".npy"):
            raise click.UsageError(
                f"--out {request.out}: an .npy file cannot hold variable names. Hint: use .csv or "
                ".parquet",
                ctx,
            )
        check_table(request.out)
    with Interrupts() as interrupts, reserved({"--out": request.out}):
        job = Job(request)
        try:
            yield job, interrupts
        except (ValueError, TypeError) as error:
            raise job.named(error) from error
        except KeyboardInterrupt as error:
            interrupts.end()
            n_read = job.notes["columns_read"]
            stop(f"interrupted after {count(n_read, 'column')}", exit_code_of(error))


def learn_crowd(
    job: Job,
    crowd: Crowd,
    title: str,
    interrupts: Interrupts,
    max_bytes: int,
    see: Callable[[Block], None] | None = None,
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
    see
        Called with each block of the first pass.
    """
    plan = crowd.plan(job.screen.n_columns)
    if len(plan.passes) > 1 or plan.n_alone or plan.bytes_each >= _MIN_REPORTED_BYTES:
        note(plan.text(max_bytes))
    log().begin(job.request.command, file=job.request.given, n_columns=job.screen.n_columns)
    job.report_target()
    with meter(title, job.screen.n_columns) as bar:
        bar.compiling()
        compile_for(job.model, job.source.stream, supervised=job.given.y is not None)
        bar.begin()
        job.begin()
        job.skipped.listening = True
        skipped = job.skipped
        for number, part in enumerate(plan.passes):
            learn = partial(_learn, crowd, part, see if number == 0 else None)
            stream = job.screen if number == 0 else watched(job.whole(), bar, f"pass {number + 1}")
            for block in stream.blocks():
                with interrupts.held():
                    learn_good(learn, block, skipped)
                    if number == 0:
                        job.counters.look_at(block)
                        job.note_progress(0)
                        bar.update(job.notes["columns_read"])
            if number == 0:
                job.note_progress(0)
                skipped.listening = False
                # Columns that later passes reject were counted in the first.
                skipped = Skipped(None)
            crowd.end(part)
        crowd.read_alone(watched(job.whole(), bar, "separate pass per model"))
    job.notes["complete"] = True
    job.note_time()
    check_skipped(job)
    job._sound(job.counters.alarms())


def _learn(
    crowd: Crowd, part: Sequence[int], see: Callable[[Block], None] | None, block: Block
) -> None:
    crowd.learn_block(block, part)
    if see is not None:
        see(block)


def watched(stream: ColumnStream, bar: Meter, reading: str) -> ColumnStream:
    """Return a stream whose passes are shown by a progress meter."""
    from streamsel.stream import ColumnStream

    def blocks() -> Iterator[Block]:
        n_read = 0
        for block in stream.blocks():
            yield block
            n_read += len(block.names)
            bar.update(n_read, reading=reading)

    return ColumnStream(blocks, n_rows=stream.n_rows, n_columns=stream.n_columns, take=stream.take)


def n_rows(job: Job) -> int:
    """Return the number of rows: of the target, or else of the file."""
    if job.given.y is not None:
        return len(job.given.y)
    stream = job.source.stream
    if stream.n_rows is None:
        next(stream.blocks(), None)  # reading a block sets n_rows
    return stream.n_rows or 0


def show(
    job: Job,
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
        known = {"streamsel": __version__, **found.as_dict(), "alarms": job.notes["alarms"]}
        known["target"] = job.model._target_description()
        known["rows_left_out"] = job.model._rows_left_out()
        known["notes"] = job.notes
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
    skipped = job.notes["skipped"]
    if text := skipped_text(skipped):
        note(f"skipped {count(sum(skipped.values()), 'column')}: {text}")


def run(ctx: click.Context, work: Callable[..., None], **further: Any) -> None:
    """Run the work of a command on the job that its options describe."""
    with job_of(ctx) as (job, interrupts):
        work(job, interrupts, options=ctx.params, **further)
