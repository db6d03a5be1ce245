"""Run `stability` and print its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamsel._utils.text import count_text, printable
from streamsel.cli.errors import CommandError
from streamsel.cli.methods import (
    MethodCommand,
    batch_options,
    candidates_each_option,
    input_options,
)
from streamsel.cli.options import LEARNER, option

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from streamsel.base.report import Report
    from streamsel.cli.run import Run
    from streamsel.data.chunks import Block
    from streamsel.evaluate.model_batch import ModelBatch
    from streamsel.evaluate.subsamples import SubsampleStability

# Longest table on a terminal, in rows.
_MAX_TABLE_ROWS = 25


class StabilityTask:
    """Select on subsamples, and show how often each variable is selected."""

    progress_title = "selecting"
    titles = ("name", "count", "frequency", "rank")
    has_groups = True

    def start(self, run: Run, options: Mapping[str, Any], max_bytes: int) -> ModelBatch:
        """Return the models, one per subsample."""
        from streamsel.cli.model_batch import with_covariates
        from streamsel.evaluate.subsamples import Subsampling

        self._drawn = Subsampling(
            with_covariates(run.settings.learner, run),
            run.side_inputs.y,
            run.side_inputs.covariates or None,
            run.side_inputs.weights,
            n=run.count_rows(),
            n_subsamples=options["subsamples"],
            share=options["share"],
            seed=options["seed"],
            level=0.95,
            max_bytes=max_bytes,
        )
        return self._drawn.model_batch

    def record(self, block: Block) -> None:
        """Do nothing: the models have what is needed."""

    def report(self) -> Report:
        """Return the report of the model of all rows."""
        return self._drawn.full_report

    def result(self, run: Run) -> SubsampleStability:  # noqa: ARG002 (as other tasks)
        """Return the selection frequencies."""
        return self._drawn.result()

    def columns(self, found: SubsampleStability) -> tuple[Sequence[str], Sequence[Any]]:
        """Return the titles and the columns of the table that is written to a file."""
        import numpy as np

        rows = found.as_dict()["frequency"]
        names, ranks = ([row[key] for row in rows] for key in ("name", "rank"))
        return self.titles, [
            np.array([str(name) for name in names], dtype=object),
            np.array([row["count"] for row in rows], dtype=np.int64),
            np.array([row["frequency"] for row in rows], dtype=np.float64),
            np.array(ranks, dtype=object),
        ]

    def lines(self, found: SubsampleStability) -> Iterator[list[Any]]:
        """Yield a row of values per variable."""
        for row in found.as_dict()["frequency"]:
            share, rank = f"{row['frequency']:.6g}", row["rank"]
            yield [row["name"], row["count"], share, "" if rank is None else rank]

    def words(self, found: SubsampleStability) -> list[str]:
        """Return sentences that summarise the stability."""
        from streamsel.evaluate.subsamples import EXCELLENT, POOR

        if found.index is None:
            return ["stability is undefined: no variable, or every variable, is selected"]
        value, low, high = found.index
        frequency = found.frequency
        n_often = sum(frequency.get(name, 0.0) >= 0.8 for name in found.selected)
        return [
            (
                f"stability {value:.2f} ({found.level:.0%} interval {low:.2f} to {high:.2f}): "
                f"{found.rating} (below {POOR:g} is poor, above {EXCELLENT:g} excellent)"
            ),
            (
                f"{n_often} of the {len(found.selected)} variables selected on all rows are "
                f"selected in 80 % or more of {found.n_subsamples} subsamples of "
                f"{found.rows_drawn:,} of {found.rows:,} rows"
            ),
        ]

    def show_table(self, found: SubsampleStability, console: Console) -> None:
        """Print the most frequent variables."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("variable", overflow="fold", style="bold")
        table.add_column("selected", justify="right")
        table.add_column("rank", justify="right")
        rows = found.as_dict()["frequency"]
        for row in rows[:_MAX_TABLE_ROWS]:
            rank = "" if row["rank"] is None else str(row["rank"])
            table.add_row(Text(printable(row["name"])), f"{row['frequency']:.0%}", rank)
        console.print(table)
        if len(rows) > _MAX_TABLE_ROWS:
            more = count_text(len(rows) - _MAX_TABLE_ROWS, "variable")
            console.print(Text(f"and {more} more (use --out FILE to list all)", style="dim"))

    def check(self, run: Run, found: SubsampleStability) -> None:
        """Raise if no variable was selected."""
        if not found.frequency:
            columns = count_text(run.metadata["columns_read"], "column")
            raise CommandError(f"no variable was selected from {columns} in any subsample")


_SUBSAMPLES = "Subsamples"


@click.command(
    cls=MethodCommand,
    kind="selector",
    short_help="Measure the stability of a selection on subsamples.",
)
@input_options("stability", "selector")
@option(
    "-k",
    metavar="K",
    section=LEARNER,
    parameter="k",
    common="Number of variables.",
    help="Number of variables to select; the default depends on the method.",
)
@candidates_each_option
@option(
    "--subsamples",
    type=click.IntRange(min=2),
    default=50,
    show_default=True,
    metavar="M",
    section=_SUBSAMPLES,
    common="Number of subsamples.",
    help="Number of subsamples.",
)
@option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.5,
    show_default=True,
    metavar="X",
    section=_SUBSAMPLES,
    common="Share of the rows in each subsample.",
    help="Share of the rows in each subsample; stratified by class, event, or zero count.",
)
@batch_options(
    "stability",
    section=_SUBSAMPLES,
    seed_of="the subsamples",
    out="Write the frequencies to this file.",
    out_help="Write the selection frequency of each variable, as .csv, .tsv, .parquet, .feather or "
    ".arrow.",
)
@click.pass_context
def stability_command(ctx: click.Context, /, **_: Any) -> None:
    """Select variables on many subsamples of the rows of FILE, and measure how well they agree.

    FILE is read once if --max-memory suffices for all models, or for a copy of its columns.

    \b
      streamsel stability expression.parquet --target survival -k 20
      streamsel stability expression.parquet --target survival -k 20 --json > stability.json
    """  # noqa: D301 (\b is a click escape)
    from streamsel.cli.model_batch import run_model_batch

    run_model_batch(ctx, StabilityTask())
