"""Run `stability` and print its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamsel._utils.text import count_text, printable
from streamsel.cli.errors import CommandError
from streamsel.cli.methods import MethodCommand
from streamsel.cli.options import (
    LEARNER,
    OUTPUT,
    candidates_each_option,
    input_options,
    json_option,
    log_options,
    max_memory_option,
    method_options,
    no_target_option,
    option,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamsel.cli.run import Run
    from streamsel.cli.signals import Interrupts
    from streamsel.evaluate.subsamples import SubsampleStability

TITLES = ("name", "count", "frequency", "rank")
# Longest table on a terminal, in rows.
_MAX_TABLE_ROWS = 25


def run_stability(job: Run, interrupts: Interrupts, *, options: dict[str, Any]) -> None:
    """Learn the subsamples, and write and print the selection frequencies."""
    from streamsel.cli.model_batch import MEGABYTE, learn_model_batch, n_rows, show_batch_result
    from streamsel.cli.output import write_table
    from streamsel.evaluate.subsamples import Subsampling

    drawn = Subsampling(
        job.request.learner.clone({"covariates": names} if (names := job.model.covariates) else {}),
        job.given.y,
        job.given.covariates or None,
        job.given.weights,
        n=n_rows(job),
        n_subsamples=options["subsamples"],
        share=options["share"],
        seed=options["seed"],
        level=0.95,
        max_bytes=MEGABYTE * options["max_memory"],
    )
    learn_model_batch(job, drawn.crowd, "selecting", interrupts, MEGABYTE * options["max_memory"])
    job.check(drawn.full_model.report())
    found = drawn.result()
    if job.request.out is not None:
        write_table(job.request.out, TITLES, _columns(found))
    show_batch_result(job, found, _show_table, TITLES, _lines(found), _words(found))
    if not found.frequency:
        n = job.metadata["columns_read"]
        raise CommandError(
            f"no variable was selected from {count_text(n, 'column')} in any subsample"
        )


def _lines(found: SubsampleStability) -> Iterator[list[Any]]:
    """Yield a row of values per variable."""
    for row in found.as_dict()["frequency"]:
        share, rank = f"{row['frequency']:.6g}", row["rank"]
        yield [row["name"], row["count"], share, "" if rank is None else rank]


def _words(found: SubsampleStability) -> list[str]:
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


def _show_table(found: SubsampleStability) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
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
    for line in _words(found):
        console.print(Text(f"{line[0].upper()}{line[1:]}.", style="dim"))


def _columns(found: SubsampleStability) -> list[Any]:
    import numpy as np

    rows = found.as_dict()["frequency"]
    names, ranks = ([row[key] for row in rows] for key in ("name", "rank"))
    return [
        np.array([str(name) for name in names], dtype=object),
        np.array([row["count"] for row in rows], dtype=np.int64),
        np.array([row["frequency"] for row in rows], dtype=np.float64),
        np.array(ranks, dtype=object),
    ]


_SUBSAMPLES = "Subsamples"


@click.command(
    cls=MethodCommand,
    kind="selector",
    short_help="Measure the stability of a selection on subsamples.",
)
@input_options
@no_target_option
@method_options("selector")
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
    help="Share of the rows in each subsample; stratified by class.",
)
@option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    section=_SUBSAMPLES,
    help="Random seed of the subsamples.",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    section=OUTPUT,
    common="Write the frequencies to this file.",
    help="Write the selection frequency of each variable, as .csv, .tsv, .parquet, .feather or "
    ".arrow.",
)
@max_memory_option
@json_option
@log_options
@click.pass_context
def stability_command(ctx: click.Context, /, **_: Any) -> None:
    """Select variables on many subsamples of the rows of FILE, and measure how well they agree.

    All models learn from the same pass over FILE. With --set exact=yes each model reads FILE
    separately.

    \b
      streamsel stability expression.parquet --target survival -k 20
      streamsel stability expression.parquet --target survival -k 20 --json > stability.json
    """  # noqa: D301 (\b is a click escape)
    from streamsel.cli.model_batch import run_model_batch

    run_model_batch(ctx, run_stability)
