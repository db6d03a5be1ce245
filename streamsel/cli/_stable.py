"""Run `stability` and print its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._crowd import MEGABYTE, learn_crowd, n_rows, show
from streamsel.cli._errors import CommandError
from streamsel.cli._outputs import write_table
from streamsel.escape import shown
from streamsel.evaluate.subsamples import EXCELLENT, POOR, SubsampleStability, Subsampling
from streamsel.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamsel.cli._interrupt import Interrupts
    from streamsel.cli._job import Job

TITLES = ("name", "count", "frequency", "rank")
# Longest table on a terminal, in rows.
_MAX_TABLE_ROWS = 25


def judge(job: Job, interrupts: Interrupts, *, options: dict[str, Any]) -> None:
    """Learn the subsamples, and write and print the selection frequencies."""
    drawn = Subsampling(
        job.request.learner.clone({"covariates": job.model.covariates}),
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
    learn_crowd(job, drawn.crowd, "selecting", interrupts, MEGABYTE * options["max_memory"])
    job.check(drawn.whole.report())
    found = drawn.result()
    if job.request.out is not None:
        write_table(job.request.out, TITLES, _columns(found))
    show(job, found, _show_table, TITLES, _lines(found), _words(found))
    if not found.frequency:
        n = job.notes["columns_read"]
        raise CommandError(f"no variable was selected from {count(n, 'column')} in any subsample")


def _lines(found: SubsampleStability) -> Iterator[list[Any]]:
    """Yield a row of values per variable."""
    for row in found.as_dict()["frequency"]:
        share, rank = f"{row['frequency']:.6g}", row["rank"]
        yield [row["name"], row["count"], share, "" if rank is None else rank]


def _words(found: SubsampleStability) -> list[str]:
    """Return sentences that summarise the stability."""
    if found.index is None:
        return ["stability is undefined: no variable, or every variable, is selected"]
    value, low, high = found.index
    frequency = found.frequency
    n_often = sum(frequency.get(name, 0.0) >= 0.8 for name in found.selected)
    return [
        (
            f"stability {value:.2f} ({found.level:.0%} interval {low:.2f} to {high:.2f}): "
            f"{found.verdict} (below {POOR:g} is poor, above {EXCELLENT:g} excellent)"
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
        table.add_row(Text(shown(row["name"])), f"{row['frequency']:.0%}", rank)
    console.print(table)
    if len(rows) > _MAX_TABLE_ROWS:
        more = count(len(rows) - _MAX_TABLE_ROWS, "variable")
        console.print(Text(f"and {more} more (use --out FILE to list all)", style="dim"))
    for line in _words(found):
        console.print(Text(f"{line[0].upper()}{line[1:]}.", style="dim"))


def _columns(found: SubsampleStability) -> list[Any]:
    rows = found.as_dict()["frequency"]
    names, ranks = ([row[key] for row in rows] for key in ("name", "rank"))
    return [
        np.array([str(name) for name in names], dtype=object),
        np.array([row["count"] for row in rows], dtype=np.int64),
        np.array([row["frequency"] for row in rows], dtype=np.float64),
        np.array(ranks, dtype=object),
    ]
