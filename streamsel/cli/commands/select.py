"""A run of `select` or `reduce`: learn the columns, also in parts; save the model and results."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from streamsel.cli.checkpoint import Checkpointer, Interrupts, exit_code_of
from streamsel.cli.errors import EXPECTED_ERRORS, CommandError
from streamsel.cli.exclusions import learn_accepted
from streamsel.cli.inputs import spool
from streamsel.cli.output import check_run_files, output_locks
from streamsel.cli.progress import Meter, meter
from streamsel.cli.results import write_results
from streamsel.cli.run import Run, stop_argument
from streamsel.stream import ColumnStream
from streamsel.stream.files import file_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamsel.cli.log import Log
    from streamsel.cli.settings import RunSettings
    from streamsel.data.chunks import Block
    from streamsel.distributed import LearnSummary
    from streamsel.stream.files import CleanStream

# Results merged by one task. Its square is the size of a wave; after each wave progress is
# reported and the model may be saved.
_FAN_IN = 4


def learn_in_parts(run: Run, keeper: Checkpointer, bar: Meter) -> None:
    """Learn the remaining parts of a run's files."""
    from streamsel.distributed.cluster import connect
    from streamsel.distributed.collections import split_source
    from streamsel.distributed.learning import DistributedJob, check_columns

    settings, metadata = run.settings, run.metadata
    check_columns(run.model)
    leaves = split_source(run.clean_stream, None, None)
    done = metadata.get("parts", 0)
    if metadata.setdefault("of_parts", len(leaves)) != len(leaves):
        raise CommandError(
            f"{settings.file}: not the file that the model was learnt from. Expected: "
            f"{metadata['of_parts']} parts. Got: {len(leaves)}"
        )
    earlier = _ProgressBefore(run, done)
    job = DistributedJob(run.model, leaves[done:], rows=False, fan_in=_FAN_IN, retries=2)
    with (
        connect(settings.scheduler, settings.workers) as client,
        closing(job.results(client)) as results,
    ):
        for found in results:
            with keeper.interrupts.deferred():
                job.merge_wave(found)
                earlier.note(job.summary)
                # A multi-pass model has no intermediate result.
                shown = None if run.model._needs_single_source else run.model
                bar.update(metadata["columns_read"], shown)
                if shown is not None:
                    keeper.save_if_due()
        # Loadings need all columns; a resumed run reads only the remaining parts.
        job.finish(client, loadings=not done)


class _ProgressBefore:
    """Counts of earlier runs, to which this run adds."""

    def __init__(self, run: Run, n_parts: int) -> None:
        self._run = run
        self._n_parts, self._n_read = n_parts, run.metadata["columns_read"]
        self._skipped, self._n_filled = Counter(run.metadata["skipped"]), run.metadata["filled"]
        self._encoded = Counter(run.metadata["encoded"])
        self._n_made = run.metadata["columns_made"]
        self._n_values = run.metadata["filled_values"]

    def note(self, summary: LearnSummary) -> None:
        """Record the progress of this run."""
        self._run.metadata |= {
            "parts": self._n_parts + summary.n_parts,
            "columns_read": self._n_read + summary.n_read,
            "skipped": dict(self._skipped + summary.skipped),
            "encoded": dict(self._encoded + summary.encoded),
            "columns_made": self._n_made + summary.n_made,
            "filled": self._n_filled + summary.n_filled,
            "filled_values": self._n_values + summary.n_filled_values,
        }
        self._run.record_remote_progress()


# Metadata of a run that the log's end event reports.
_OUTCOME_KEYS = ("columns_read", "skipped", "complete", "peak_memory")


def run_learning(settings: RunSettings, log: Log) -> None:
    """Learn from a file as requested; save, write and print the results."""
    outputs = {
        "--resume" if settings.model == settings.resume else "--model": settings.model,
        "--out": settings.out,
        "--statistics": settings.statistics,
        "--list-skipped": None if settings.skipped_file == "-" else settings.skipped_file,
    }
    with Interrupts() as interrupts:
        check_run_files(settings, outputs)
        for path in settings.files:
            file_format(spool(path, log))
        with output_locks(outputs):
            run = Run(settings, log)
            keeper = Checkpointer(run, interrupts)
            try:
                if run.metadata["complete"]:
                    run.check_result()
                    keeper.save_completed()
                else:
                    # Opened after the input is validated, as this empties an older list.
                    with run.skipped.open_list():
                        Learning(run, keeper).learn()
                write_results(run, run.report(), keeper.failed_outputs)
            except KeyboardInterrupt as error:
                interrupts.ignore_signals()
                keeper.stop(exit_code_of(error))
            finally:
                log.outcome = {name: run.metadata[name] for name in _OUTCOME_KEYS}


class Learning:
    """Learns the columns of a run: block by block, or in several passes for multi-pass models.

    Parameters
    ----------
    run
        The run.
    keeper
        Saves checkpoints, and delays signals while a block is learnt or the model is saved.
    """

    def __init__(self, run: Run, keeper: Checkpointer) -> None:
        self._run = run
        self._keeper = keeper
        self._interrupts = keeper.interrupts

    def learn(self) -> None:
        """Learn all columns that remain.

        Raises
        ------
        CommandError
            If an error ends the run early; the state so far is saved.
        """
        run = self._run
        total, done = run.n_columns, run.metadata["columns_read"]
        n_columns = None if total is None else total + done
        run.log.begin(
            run.settings.command,
            file=run.settings.arguments,
            **{"class": type(run.model).__name__},
            parameters=run.model._get_params(),
            n_rows=run.clean_stream.n_rows,
            n_columns=n_columns,
            columns_read=done,
        )
        run.side_inputs.report_target(run.model)
        try:
            title = {"select": "selecting", "reduce": "reducing"}[run.settings.command]
            with meter(run.log, title, n_columns, done) as bar:
                run.compile(bar)
                run.skipped.is_recording = True
                if run.in_parts:
                    learn_in_parts(run, self._keeper, bar)
                elif run.model._needs_single_source:
                    self._learn_in_passes(bar)
                else:
                    self._learn_in_blocks(bar)
                if (
                    run.model._wants_second_pass
                    and not run.skipped.rejected["refused"]
                    and not self._is_stopped
                ):
                    self._second_pass(bar)
        except EXPECTED_ERRORS as error:
            with self._interrupts.deferred():
                self._keeper.fail(run.side_inputs.with_row_ids(error))
        finally:
            run.skipped.is_recording = False
        with self._interrupts.deferred():
            if self._is_stopped and run.stop is not None:
                run.stop.note()
            run.metadata["complete"] = True
            run.record_time()
            # Save before the checks, so that they cannot lose the result.
            self._keeper.save()
            if run.check_result():
                self._keeper.save()

    def _learn_in_blocks(self, bar: Meter) -> None:
        run, model = self._run, self._run.model
        before = run.metadata["columns_read"] - run.metadata["bad_lines"]
        blocks = run.clean_stream.blocks()
        while not self._is_stopped and (block := next(blocks, None)) is not None:
            with self._interrupts.deferred():
                # Progress is that of whole blocks, also if the condition is checked within one.
                for part in [block] if run.stop is None else run.stop.cut([block]):
                    learn_accepted(partial(_learn_block, model), part, run.skipped)
                    if run.stop is not None:
                        run.stop.update()
                run.row_number_detector.check_block(block)
                run.record_progress(before)
                bar.update(run.metadata["columns_read"], model)
                self._keeper.save_if_due()
        run.record_progress(before)

    @property
    def _is_stopped(self) -> bool:
        """Whether the condition of --until was met."""
        return self._run.stop is not None and self._run.stop.is_met

    def _second_pass(self, bar: Meter) -> None:
        """Read all columns once more, for data that the model did not keep."""
        stream = self._run.all_columns()
        # Bad columns were reported in the first pass.
        self._run.skipped.is_recording = False

        def watched() -> Iterator[Block]:
            for n_read, block in _with_counts(stream, self._run.n_columns):
                yield block
                bar.update(n_read, pass_name="second pass")  # noqa: S106

        self._run.model.learn_loadings(ColumnStream(watched, n_rows=stream.n_rows))

    def _learn_in_passes(self, bar: Meter) -> None:
        run, stream, n_passes = self._run, self._run.clean_stream, 0

        def watched() -> Iterator[Block]:
            nonlocal n_passes
            n_passes += 1
            # Bad columns were reported in the first pass.
            run.skipped.is_recording = n_passes == 1
            for n_read, block in _with_counts(stream, self._run.n_columns):
                if n_passes == 1:
                    run.row_number_detector.check_block(block)
                yield block
                run.record_progress(0)
                pass_name = _pass_text(run.model, n_passes) if n_passes > 1 else ""
                bar.update(n_read, pass_name=pass_name)

        run.model.learn_columns(
            ColumnStream(watched, n_rows=stream.n_rows, n_columns=run.n_columns),
            until=stop_argument(run.settings.until),
        )
        run.record_progress(0)


def _learn_block(model: Any, block: Block) -> None:
    if block.groups is None:
        model.learn_columns(block.values, names=block.names)
    else:
        model.learn_columns(ColumnStream(lambda: [block]))


def _with_counts(stream: CleanStream, n_columns: int | None) -> Iterator[tuple[int, Block]]:
    """Yield the blocks of a stream, each with the number of columns up to its end.

    At most `n_columns`: encoded columns are more than those of the file.
    """
    n_read = 0
    for block in stream.blocks():
        n_read += len(block.names)
        yield n_read if n_columns is None else min(n_read, n_columns), block


def _pass_text(model: Any, number: int) -> str:
    """Return a text with the number of the pass, the expected total, and how many are proven."""
    expected = max(number, math.ceil(model._n_passes_expected))
    proven = f"{model.n_certified} of {len(model.selected)} proven"
    return f"pass {number} of about {expected}, {proven}"
