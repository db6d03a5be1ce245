"""Run many models over shared passes of the files, for `stability` and `evaluate`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import click

from streamsel._utils.text import count_text, encoded_text, skipped_text
from streamsel._version import __version__
from streamsel.cli.checkpoint import Interrupts, exit_code_of
from streamsel.cli.display import stdout_console
from streamsel.cli.exclusions import Skipped, learn_accepted
from streamsel.cli.output import (
    check_distinct_outputs,
    check_table,
    output_locks,
    row_writer,
    write_table,
)
from streamsel.cli.progress import meter
from streamsel.cli.request import make_settings
from streamsel.cli.results import check_skipped
from streamsel.cli.run import Run
from streamsel.data.chunks import Block
from streamsel.reporting.json import as_json
from streamsel.stream import ColumnStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from streamsel.base.report import Report
    from streamsel.cli.log import Log
    from streamsel.cli.progress import Meter
    from streamsel.evaluate.model_batch import ModelBatch, PassSchedule

MEGABYTE = 1_000_000
# Memory of the models above which the plan is reported, in bytes.
_MIN_REPORTED_BYTES = 10_000_000


def with_covariates(learner: Any, run: Run) -> Any:
    """Return an unfitted learner with the covariates of a run, if the run has a target."""
    names = run.model.covariates
    return learner.clone({"covariates": names} if names else {})


class BatchTask(Protocol):
    """Interface of a command that fits many models and shows their result."""

    @property
    def progress_title(self) -> str:
        """Title of the progress bar."""

    @property
    def has_groups(self) -> bool:
        """Whether the models select groups of columns."""

    @property
    def titles(self) -> Sequence[str]:
        """Titles of the lines that are printed."""

    def start(self, run: Run, options: Mapping[str, Any], max_bytes: int) -> ModelBatch:
        """Return the models, which learn together in at most `max_bytes`."""

    def record(self, block: Block) -> None:
        """Look at a block of the first pass."""

    def report(self) -> Report:
        """Return the report of one of the models, which have learnt."""

    def result(self, run: Run) -> Any:
        """Return the result, which has `as_dict`."""

    def columns(self, found: Any) -> tuple[Sequence[str], Sequence[Any]]:
        """Return the titles and the columns of the table that is written to a file."""

    def lines(self, found: Any) -> Iterable[Sequence[Any]]:
        """Yield the lines that are printed."""

    def words(self, found: Any) -> Sequence[str]:
        """Return sentences that summarise the result."""

    def show_table(self, found: Any, console: Console) -> None:
        """Print the result on a terminal."""

    def check(self, run: Run, found: Any) -> None:
        """Report what the printed result lacks."""


def run_model_batch(ctx: click.Context, task: BatchTask) -> None:
    """Run the task of a command on the columns that its options describe."""
    log: Log = ctx.obj
    settings = make_settings(ctx)
    out = settings.out
    if out is not None:
        check_distinct_outputs({"--out": out}, {path: path for path in settings.files})
        if out.lower().endswith(".npy"):
            raise click.UsageError(
                f"--out {out}: an .npy file cannot hold variable names. Hint: use .csv or .parquet",
                ctx,
            )
        check_table(out)
    with Interrupts() as interrupts, output_locks({"--out": out}):
        run = Run(settings, log, has_groups=task.has_groups)
        with _explained(run, interrupts):
            max_bytes = MEGABYTE * ctx.params["max_memory"]
            _learn(run, task, task.start(run, ctx.params, max_bytes), interrupts, max_bytes)
            run.check(task.report())
            found = task.result(run)
            try:
                if out is not None:
                    write_table(out, *task.columns(found))
            finally:
                # A file that cannot be written must not lose the printed results.
                _show(run, task, found)
            task.check(run, found)


@contextmanager
def _explained(run: Run, interrupts: Interrupts) -> Iterator[None]:
    """Add identifiers of rows to errors, and report an interrupt."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise run.side_inputs.with_row_ids(error) from error
    except KeyboardInterrupt as error:
        interrupts.ignore_signals()
        n_read = run.metadata["columns_read"]
        run.log.stop(f"interrupted after {count_text(n_read, 'column')}", exit_code_of(error))


def _learn(
    run: Run, task: BatchTask, models: ModelBatch, interrupts: Interrupts, max_bytes: int
) -> None:
    """Let many models learn all columns of a run, with progress."""
    run.log.begin(run.settings.command, file=run.settings.arguments, n_columns=run.n_columns)
    run.side_inputs.report_target(run.model)
    with meter(run.log, task.progress_title, run.n_columns) as bar:
        run.compile(bar)
        run.skipped.is_recording = True
        plan = None
        for block in run.clean_stream.blocks():
            plan = plan or _planned(run, models, block, max_bytes)
            with interrupts.deferred():
                learn_accepted(partial(_learn_first, models, task, plan), block, run.skipped)
                run.row_number_detector.check_block(block)
                run.record_progress(0)
                bar.update(run.metadata["columns_read"])
        run.record_progress(0)
        run.skipped.is_recording = False
        plan = plan or models.plan(run.n_columns)
        models.end_pass(plan.passes[0])
        # Columns that later passes reject were counted in the first.
        skipped = Skipped(None, run.log)
        for number, part in enumerate(models.further_passes(plan), start=2):
            for block in _with_progress(_columns_of(run, models), bar, f"pass {number}").blocks():
                with interrupts.deferred():
                    learn_accepted(partial(models.learn_block, part=part), block, skipped)
            models.end_pass(part)
        columns = _with_progress(_columns_of(run, models), bar, "separate pass per model")
        models.learn_individually(columns)
    run.metadata["complete"] = True
    run.record_time()
    check_skipped(run)


def _planned(run: Run, models: ModelBatch, first: Block, max_bytes: int) -> PassSchedule:
    """Return the schedule, given the first block; report it if it takes much memory or time."""
    plan = models.plan(run.n_columns, first)
    if len(plan.passes) > 1 or plan.n_individual or plan.bytes_each >= _MIN_REPORTED_BYTES:
        run.log.note(plan.text(max_bytes))
    return plan


def _columns_of(run: Run, models: ModelBatch) -> ColumnStream:
    """Return the columns for a further pass: the copy, or all columns of the file."""
    return models.columns.stream() or run.all_columns()


def _learn_first(models: ModelBatch, task: BatchTask, plan: PassSchedule, block: Block) -> None:
    models.learn_first(block, plan)
    task.record(block)


def _with_progress(stream: ColumnStream, bar: Meter, reading: str) -> ColumnStream:
    """Return a stream whose passes are shown by a progress meter."""

    def blocks() -> Iterator[Block]:
        n_read = 0
        for block in stream.blocks():
            yield block
            n_read += len(block.names)
            bar.update(n_read, pass_name=reading)

    return ColumnStream(blocks, n_rows=stream.n_rows, n_columns=stream.n_columns, take=stream.take)


def _show(run: Run, task: BatchTask, found: Any) -> None:
    """Print the result, its summary, and how many columns were skipped."""
    on_terminal = sys.stdout.isatty()
    if run.settings.as_json:
        known = {"streamsel": __version__, **found.as_dict(), "warnings": run.metadata["warnings"]}
        known["target"] = run.model._target_description()
        known["rows_excluded"] = run.model._rows_excluded()
        known["metadata"] = run.metadata
        sys.stdout.write(as_json(known, indent=2) + "\n")
    elif on_terminal:
        from rich.text import Text

        console = stdout_console()
        task.show_table(found, console)
        for line in task.words(found):
            console.print(Text(f"{line[0].upper()}{line[1:]}.", style="dim"))
    else:
        writer = row_writer(sys.stdout, "\t")
        writer.writerow(task.titles)
        writer.writerows(task.lines(found))
    sys.stdout.flush()
    if not on_terminal:
        for line in task.words(found):
            run.log.note(line)
    if text := encoded_text(run.metadata):
        run.log.note(text)
    skipped = run.metadata["skipped"]
    if text := skipped_text(skipped):
        run.log.note(f"skipped {count_text(sum(skipped.values()), 'column')}: {text}")
