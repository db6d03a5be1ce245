"""Tables of results on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Never

from streamsel._utils.text import (
    bytes_text,
    count_text,
    filled_text,
    printable,
    rows_excluded_text,
    seconds_text,
    stopped_text,
)
from streamsel.base.report import NOISE_LEVEL
from streamsel.cli.output import cell_text
from streamsel.reporting.counts import ColumnCounts
from streamsel.reporting.glossary import COMPONENT_TERMS, SELECTION_TERMS, explain_columns
from streamsel.reporting.summary import direction_text, is_certificate_needed, summarize

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from streamsel.base.report import Report

TOP_LOADINGS = 5
# Report columns of a selected variable; a method may add others.
SELECTED_FIELDS = ("name", "relevance", "score", "round", "certified", "above_noise", "arrival")


def stdout_console() -> Console:
    """Return a console for stdout, which raises BrokenPipeError if the reader closed the pipe."""
    from rich.console import Console

    class StdoutConsole(Console):
        def on_broken_pipe(self) -> Never:
            # rich would exit with code 1; the command has a code of its own.
            raise BrokenPipeError

    return StdoutConsole(highlight=False)


def show_table(report: Report, metadata: Any) -> None:
    """Print the results of a model, a summary, and the metadata of its run."""
    from rich.text import Text

    console = stdout_console()
    table = _selection(report) if report.kind == "selected" else _components(report)
    console.print(table)
    console.print(Text(printable(summarize(report)), style="bold"))
    if report.results:
        known = SELECTION_TERMS if report.kind == "selected" else COMPONENT_TERMS
        if report.score_meaning is not None:
            known = known | {"score": report.score_meaning}
        line = explain_columns([str(column.header) for column in table.columns], known)
        console.print(Text(line, style="dim"))
    for line in _footer(report, metadata):
        console.print(Text(printable(line), style="dim"))


def _table(title: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # Names and titles are Text, so that a name such as [red] is not parsed as markup.
    return Table(title=Text(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)


def _mark(above: bool | None) -> tuple[str, str | None]:
    """Return the mark and the style of a row."""
    return ("below noise", "dim") if above is False else ("", None)


def _decimals(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _selection(report: Report) -> Table:
    from rich.text import Text

    rows = report.results
    what = report.candidate
    table = _table(f"{count_text(len(rows), what)} of {report.columns_seen:,} selected")
    show_rounds = any(row["round"] != rows[0]["round"] for row in rows)
    needed = is_certificate_needed(report)
    show_certified = needed and not all(row["certified"] for row in rows)
    extra = [name for name in (rows[0] if rows else ()) if name not in SELECTED_FIELDS]
    table.add_column("", justify="right", style="dim")
    table.add_column(what, overflow="fold", style="bold")
    table.add_column("relevance", justify="right")
    table.add_column("score", justify="right")
    if report.directions:
        table.add_column("direction", overflow="fold")
    if report.redundancy:
        table.add_column("redundancy", justify="right")
    if show_rounds:
        table.add_column("round", justify="right")
    if show_certified:
        table.add_column("certified")
    for name in extra:
        table.add_column(name.replace("_", " "), justify="right")
    table.add_column("")
    for rank, row in enumerate(rows, start=1):
        mark, style = _mark(row["above_noise"])
        cells: list[str | Text] = [_decimals(row["relevance"]), _decimals(row["score"])]
        if report.directions:
            cells.append(Text(direction_text(report, row)))
        if report.redundancy:
            closest = report.redundancy.get(row["name"])
            cells.append("" if closest is None else f"{closest[1]:.2f}")
        if show_rounds:
            cells.append(str(row["round"]))
        if show_certified:
            cells.append("yes" if row["certified"] else "")
        cells += [Text(printable(cell_text(row[name]))) for name in extra]
        table.add_row(str(rank), Text(printable(row["name"])), *cells, mark, style=style)
    return table


def _components(report: Report) -> Table:
    if "n_landmarks" in report.details:
        return _landmark_components(report)
    from rich.text import Text

    variables = {loading["variable"] for row in report.results for loading in row["loadings"]}
    table = _table(
        f"{count_text(len(report.results), 'component')} of "
        f"{count_text(len(variables), 'variable')} out of {report.columns_seen:,}"
    )
    table.add_column("component", style="bold", no_wrap=True)
    table.add_column("relevance", justify="right")
    table.add_column("variables", justify="right")
    table.add_column("largest loadings", overflow="fold")
    table.add_column("")
    for row in report.results:
        mark, style = _mark(row["above_noise"])
        largest = Text()
        for loading in row["loadings"][:TOP_LOADINGS]:
            # \xa0 prevents a line break between a weight and its variable.
            value = loading["loading"]
            size = "?" if value is None else f"{value:+.2f}"
            largest.append(f"{size}\xa0", style="cyan" if style is None else None)
            largest.append(f"{printable(loading['variable'])}  ")
        if len(row["loadings"]) > TOP_LOADINGS:
            largest.append("…")
        cells = [_decimals(row["relevance"]), str(len(row["loadings"]))]
        table.add_row(row["name"], *cells, largest, mark, style=style)
    return table


def _landmark_components(report: Report) -> Table:
    """Return a table of components without loadings on variables."""
    table = _table(
        f"{count_text(len(report.results), 'component')} out of "
        f"{count_text(report.columns_seen, 'column')}"
    )
    table.add_column("component", style="bold", no_wrap=True)
    table.add_column("relevance", justify="right")
    for row in report.results:
        table.add_row(row["name"], _decimals(row["relevance"]))
    return table


def _footer(report: Report, metadata: Any) -> list[str]:
    """Return the lines below a table: target, noise floor, columns read and skipped."""
    lines = [] if report.target is None else [f"Target: {report.target}."]
    unit = "group" if report.candidate == "group" else "column"
    if report.noise_floor is not None:
        lines.append(
            f"Noise floor {report.noise_floor:.4f}: the largest relevance of "
            f"{count_text(report.columns_seen, unit)} of pure noise exceeds it in "
            f"{NOISE_LEVEL:.0%} of cases, {_assumption(report)}."
        )
    if report.inflation is not None:
        lines.append(
            f"Inflation factor {report.inflation:.2f}: the median statistic of all columns; 1 "
            "if no column is associated with the target."
        )
    n_above = report.details.get("n_above_noise")
    if n_above is not None:
        lines.append(f"{count_text(n_above, 'variable')} above the noise floor.")
    if "n_landmarks" in report.details:
        lines.append(
            f"New rows are compared with {count_text(report.details['n_landmarks'], 'landmark')} "
            f"on {count_text(report.details['n_variables'], 'variable')}, which explain "
            f"{report.details['share_of_variance']:.0%} of the variance."
        )
    if caution := report.details.get("caution"):
        lines.append(f"Caution: {caution}.")
    if not isinstance(metadata, Mapping) or "columns_read" not in metadata:
        return lines
    counts, n_passes = ColumnCounts.of(report, metadata), report.details.get("n_passes", 1)
    rest = rows_excluded_text(report.rows_excluded)
    rest += "," if rest else ""
    lines.append(
        f"{count_text(counts.n_source, 'column')} of {report.rows:,} rows{rest} read in "
        f"{seconds_text(metadata['seconds'])}"
        + (f" and {n_passes:.3g} passes" if n_passes > 1 else "")
        + (
            f", {bytes_text(metadata['peak_memory'])} of memory"
            if metadata.get("peak_memory")
            else ""
        )
        + f"{counts.outcome_text}."
    )
    texts = stopped_text(report.details), filled_text(metadata)
    return lines + [f"{text[0].upper()}{text[1:]}." for text in texts if text]


def _assumption(report: Report) -> str:
    """Return how the noise floor was determined."""
    if report.n_permutations is not None:
        return f"by {report.n_permutations:,} permutations"
    if report.normal_scores:
        return "from normal scores of the target, as its tails are heavy"
    return "assuming normal columns or target"
