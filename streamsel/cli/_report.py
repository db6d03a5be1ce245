"""What a model has found: for a terminal, for a pipe (tab-separated), or as JSON."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamsel.cli._progress import bytes_text, seconds_text

if TYPE_CHECKING:
    from rich.table import Table

TOP_LOADINGS = 5
NOISE_LEVEL = 0.05


def describe(model: Any, *, complete: bool = True) -> dict[str, Any]:
    """Describe a model in terms that JSON knows.

    Parameters
    ----------
    model
        The model.
    complete
        Whether it has seen all columns of its file: before, nothing is certain.
    """
    floor = number(model.noise_floor(NOISE_LEVEL)) if model.n_rows else None
    description = {
        "class": type(model).__name__,
        "parameters": dict(model._get_params()),
        "rows": model.n_rows,
        "columns_seen": model.n_columns,
        "columns_constant": model.n_constant,
        "noise_floor": floor,
    }
    if hasattr(model, "selected"):
        n_certified = model.n_certified if complete else 0
        description["n_certified"] = n_certified
        description["n_passes"] = model.n_passes
        description["selected"] = _selected(model, floor, n_certified)
    else:
        description["components"] = _components(model, floor)
    return description


def number(value: float) -> float | None:
    """Return a number for JSON, which does not know NaN."""
    return float(value) if math.isfinite(value) else None


def _above(relevance: float | None, floor: float | None) -> bool | None:
    return None if relevance is None or floor is None else relevance > floor


def _selected(model: Any, floor: float | None, n_certified: int) -> list[dict[str, Any]]:
    relevance, scores, rounds = model.relevance, model.scores, model.rounds
    rows = []
    for rank, name in enumerate(model.selected):
        value = number(relevance[name])
        rows.append(
            {
                "name": name,
                "relevance": value,
                "score": number(scores[name]),
                "round": rounds[name],
                "certified": rank < n_certified,
                "above_noise": _above(value, floor),
            }
        )
    return rows


def _components(model: Any, floor: float | None) -> list[dict[str, Any]]:
    relevance = model.relevance
    loadings: dict[str, list[dict[str, Any]]] = {name: [] for name in relevance}
    for variable, weights in model.loadings.items():
        for component, weight in weights.items():
            loadings[component].append({"variable": variable, "weight": float(weight)})
    rows = []
    for name in sorted(relevance, key=relevance.__getitem__, reverse=True):
        value = number(relevance[name])
        loadings[name].sort(key=lambda loading: -abs(loading["weight"]))
        rows.append(
            {
                "name": name,
                "relevance": value,
                "above_noise": _above(value, floor),
                "loadings": loadings[name],
            }
        )
    return rows


def show(description: Mapping[str, Any], notes: Any, *, as_json: bool) -> None:
    """Print a description of a model and the notes of the run it is from, as stdout likes it."""
    if as_json:
        json.dump({**description, "notes": notes}, sys.stdout, indent=2, default=str)
        sys.stdout.write("\n")
    elif sys.stdout.isatty():
        _show_table(description, notes)
    else:
        _show_text(description)
    sys.stdout.flush()


def _show_text(description: Mapping[str, Any]) -> None:
    """Print tab-separated values: a line for every variable, or for every loading."""
    writer = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    if "selected" in description:
        writer.writerow(["name", "relevance", "score", "round", "certified", "above_noise"])
        writer.writerows(map(_cell, row.values()) for row in description["selected"])
        return
    writer.writerow(["component", "relevance", "above_noise", "variable", "weight"])
    for row in description["components"]:
        for loading in row["loadings"]:
            cells = [row["name"], row["relevance"], row["above_noise"], *loading.values()]
            writer.writerow(map(_cell, cells))


def _cell(value: Any) -> str:
    """Write a value as text: an empty cell is one that does not apply."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _show_table(description: Mapping[str, Any], notes: Any) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if "selected" in description:
        console.print(_selection_table(description))
    else:
        console.print(_component_table(description))
    for line in _footer(description, notes):
        console.print(Text(line, style="dim"))


def _table(title: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # Names and titles are Text everywhere: a name such as [red] is no markup.
    return Table(title=Text(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)


def _mark(above: bool | None) -> tuple[str, str | None]:
    """Return the mark and the style of a row."""
    return ("below noise", "dim") if above is False else ("", None)


def _decimals(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _selection_table(description: Mapping[str, Any]) -> Table:
    from rich.text import Text

    rows: Sequence[Mapping[str, Any]] = description["selected"]
    table = _table(f"{count(len(rows), 'variable')} of {description['columns_seen']:,} selected")
    has_rounds = any(row["round"] != rows[0]["round"] for row in rows)
    has_doubts = not all(row["certified"] for row in rows)
    table.add_column("", justify="right", style="dim")
    table.add_column("variable", overflow="fold", style="bold")
    table.add_column("relevance", justify="right")
    table.add_column("score", justify="right")
    if has_rounds:
        table.add_column("round", justify="right")
    if has_doubts:
        table.add_column("certified")
    table.add_column("")
    for rank, row in enumerate(rows, start=1):
        mark, style = _mark(row["above_noise"])
        cells = [_decimals(row["relevance"]), _decimals(row["score"])]
        if has_rounds:
            cells.append(str(row["round"]))
        if has_doubts:
            cells.append("yes" if row["certified"] else "")
        table.add_row(str(rank), Text(str(row["name"])), *cells, mark, style=style)
    return table


def _component_table(description: Mapping[str, Any]) -> Table:
    from rich.text import Text

    rows: Sequence[Mapping[str, Any]] = description["components"]
    variables = {loading["variable"] for row in rows for loading in row["loadings"]}
    table = _table(
        f"{count(len(rows), 'component')} of {count(len(variables), 'variable')} "
        f"out of {description['columns_seen']:,}"
    )
    table.add_column("component", style="bold", no_wrap=True)
    table.add_column("relevance", justify="right")
    table.add_column("variables", justify="right")
    table.add_column("largest loadings", overflow="fold")
    table.add_column("")
    for row in rows:
        mark, style = _mark(row["above_noise"])
        largest = Text()
        for loading in row["loadings"][:TOP_LOADINGS]:
            # No line may end between a weight and its variable: \xa0 does not break.
            largest.append(f"{loading['weight']:+.2f}\xa0", style="cyan" if style is None else None)
            largest.append(f"{loading['variable']}  ")
        if len(row["loadings"]) > TOP_LOADINGS:
            largest.append("…")
        cells = [_decimals(row["relevance"]), str(len(row["loadings"]))]
        table.add_row(row["name"], *cells, largest, mark, style=style)
    return table


def _footer(description: Mapping[str, Any], notes: Any) -> list[str]:
    """Say what the table leaves open: noise, certificate, what was read and left out."""
    lines = []
    if description["noise_floor"] is not None:
        lines.append(
            f"Noise floor {description['noise_floor']:.4f}: among "
            f"{count(description['columns_seen'], 'column')} of pure noise the best would reach "
            f"it in {NOISE_LEVEL:.0%} of cases."
        )
    if description.get("selected"):
        n_certified, n = description["n_certified"], len(description["selected"])
        if n_certified < n:
            lines.append(
                f"{count(n_certified, 'pick')} of {n} certified: proven to be those of a search "
                "over all columns at once."
            )
    if not isinstance(notes, Mapping) or "columns_read" not in notes:
        return lines
    skipped, n_passes = skipped_text(notes["skipped"]), description.get("n_passes", 1)
    lines.append(
        f"{count(notes['columns_read'], 'column')} of {description['rows']:,} rows read in "
        f"{seconds_text(notes['seconds'])}"
        + (f" and {n_passes} passes" if n_passes > 1 else "")
        + (f", {bytes_text(notes['peak_memory'])} of memory" if notes.get("peak_memory") else "")
        + (f"; left out: {skipped}." if skipped else ".")
    )
    return lines


def skipped_text(skipped: Mapping[str, int]) -> str:
    """Say how many columns were left out for what reasons."""
    return ", ".join(f"{n:,} {reason}" for reason, n in sorted(skipped.items()) if n)


def count(n: int, what: str) -> str:
    """Count things: 1 column, 2 columns."""
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def show_info(path: str, description: Mapping[str, Any], notes: Any, *, as_json: bool) -> None:
    """Print what a model file holds."""
    if as_json or not sys.stdout.isatty():
        if as_json:
            show(description, notes, as_json=True)
        else:
            _show_facts_as_text(path, description, notes)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in facts(path, description, notes):
        grid.add_row(name, Text(value))
    console.print(grid)
    show(description, None, as_json=False)


def _show_facts_as_text(path: str, description: Mapping[str, Any], notes: Any) -> None:
    rows = facts(path, description, notes)
    if description["noise_floor"] is not None:
        rows.append(("noise floor", f"{description['noise_floor']:.6g}"))
    for name, value in rows:
        sys.stdout.write(f"# {name}: {value}\n")
    show(description, None, as_json=False)


def facts(path: str, description: Mapping[str, Any], notes: Any) -> list[tuple[str, str]]:
    """List what is known of a model besides what it has found."""
    parameters = ", ".join(f"{k}={v!r}" for k, v in description["parameters"].items())
    rows = [
        ("model file", path),
        ("model", f"{description['class']}({parameters})"),
        ("rows", f"{description['rows'] or 0:,}"),
        ("columns seen", f"{description['columns_seen']:,}"),
    ]
    if description["columns_constant"]:
        rows.append(("constant", f"{description['columns_constant']:,}"))
    if "selected" in description:
        rows.append(
            ("certified", f"{description['n_certified']} of {len(description['selected'])}")
        )
        if description["n_passes"]:  # a model that learnt from rows has made none
            rows.append(("passes", str(description["n_passes"])))
    items = notes.items() if isinstance(notes, Mapping) else [("notes", notes)]
    for name, value in items:
        if value or value is False:
            rows.append((str(name).replace("_", " "), _fact(name, value)))
    return rows


def _fact(name: str, value: Any) -> str:
    if name == "seconds":
        return seconds_text(value)
    if name == "peak_memory":
        return bytes_text(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
