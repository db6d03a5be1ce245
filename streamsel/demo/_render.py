"""The report of the demonstration, for people to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from streamsel.demo._report import DemoReport

_SELECTED = 20  # n-grams shown of those selected
_HEAVIEST = 4  # and of a component


def render_report(report: DemoReport, console: Console) -> None:
    """Print the report: what passed, what was chosen, how good it is, what it cost."""
    libraries = " and ".join(
        f"{report.documents[name]:,} of {name} {report.versions[name]}" for name in report.documents
    )
    console.print(
        f"[bold]{report.n_columns:,}[/] variables, all 1- to {report.longest}-grams of "
        f"{report.n_train:,} docstrings, in one pass; {report.n_test:,} docstrings of other source "
        f"files were held out. Docstrings: {libraries}; the names of the two were masked."
    )
    console.print(f"Noise floor: best of {report.n_columns:,} columns of noise, relevance ", end="")
    console.print(f"[bold]{report.noise_floor:.3f}[/] (5 %)")
    console.print(_selected(report), _components(report), _scores(report), sep="\n")
    console.print(_costs(report))


def _selected(report: DemoReport) -> Table:
    """Lay out the n-grams that `ProjSe` selected."""
    shown = report.selected[:_SELECTED]
    title = f"ProjSe: the first {len(shown)} of {len(report.selected)} n-grams"
    table = Table(title=title, title_justify="left")
    table.add_column("n-gram")
    table.add_column("relevance", justify="right")
    table.add_column("says")
    for library in report.documents:
        table.add_column(f"in {library}", justify="right")
    for chosen in shown:
        table.add_row(
            Text(chosen.name),
            f"{chosen.relevance:.3f}" + ("" if chosen.above_noise else " (noise)"),
            chosen.library,
            *(f"{count:,}" for count in chosen.documents.values()),
            style=None if chosen.above_noise else "dim",
        )
    return table


def _components(report: DemoReport) -> Table:
    """Lay out the components that `SOSPCA` built."""
    table = Table(title=f"SOSPCA: {len(report.components)} components", title_justify="left")
    table.add_column("component")
    table.add_column("relevance", justify="right")
    table.add_column("n-grams", justify="right")
    table.add_column("heaviest, with weights")
    for built in report.components:
        heaviest = list(built.loadings.items())[:_HEAVIEST]
        table.add_row(
            built.name,
            f"{built.relevance:.3f}",
            str(len(built.loadings)),
            Text(", ".join(f"{name} {weight:+.2f}" for name, weight in heaviest)),
        )
    return table


def _scores(report: DemoReport) -> Table:
    """Lay out how the classifiers did."""
    table = Table(
        title="The same logistic regression on each, docstrings held out", title_justify="left"
    )
    table.add_column("variables")
    table.add_column("how many", justify="right")
    table.add_column("right", justify="right")
    for score in report.scores:
        table.add_row(score.variables, f"{score.n_variables:,}", f"{score.accuracy:.1%}")
    return table


def _costs(report: DemoReport) -> Text:
    """Say what it cost."""
    lines = [f"{seconds:6.1f} s  {stage}" for stage, seconds in report.seconds.items()]
    lines.append(f"Streamed {report.columns_per_second:,.0f} columns/s through both models.")
    dense = f"a dense matrix of the variables would take {_size(report.dense_bytes)}."
    if report.peak_bytes is None or report.growth_bytes is None:
        lines.append(f"Memory: not told by this system; {dense}")
    else:
        lines.append(
            f"Memory: {_size(report.peak_bytes)} at most, of which streaming added "
            f"{_size(report.growth_bytes)}; {dense}"
        )
    return Text("\n".join(lines))


def _size(n_bytes: int) -> str:
    """Write a number of bytes for people to read."""
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"
