"""The results as CSV, for the link of a report."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from streamsel._utils.text import printable
from streamsel.base.report import Report

# Characters that need no escape in a data URI.
_UNQUOTED = ",;:/?@&=+$!*'()"
# Characters with which a spreadsheet begins a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def results_csv(report: Report, max_bytes: int) -> tuple[str, int]:
    """Return the results as CSV, as many rows as fit, and the number of rows.

    Parameters
    ----------
    report
        The results.
    max_bytes
        Maximum size of the text in a data URI.

    Notes
    -----
    A name that a spreadsheet would run as a formula has a quote before it.
    """
    rows = _selected(report) if report.kind == "selected" else _loadings(report)
    lines: list[str] = []
    size = 0
    for row in rows:
        line = _line(row)
        size += len(quote(line, safe=_UNQUOTED))
        if size > max_bytes:
            break
        lines.append(line)
    return "".join(lines), max(0, len(lines) - 1)


def csv_uri(text: str) -> str:
    """Return CSV as a data URI."""
    return f"data:text/csv;charset=utf-8,{quote(text, safe=_UNQUOTED)}"


def _selected(report: Report) -> Iterator[Iterable[Any]]:
    keys = list(report.results[0]) if report.results else ["name"]
    directions, closest = report.directions or {}, report.redundancy or {}
    extra = ["direction"] * bool(directions) + ["most_similar", "correlation"] * bool(closest)
    yield ["rank", *keys, *extra]
    for rank, row in enumerate(report.results, start=1):
        name = row["name"]
        direction = directions.get(name)
        more: list[Any] = ["" if direction is None else direction.text] if directions else []
        more += closest.get(name, (None, None)) if closest else ()
        yield [rank, *row.values(), *more]


def _loadings(report: Report) -> Iterator[Iterable[Any]]:
    yield ["component", "relevance", "variable", "loading", "weight"]
    for row in report.results:
        for one in row["loadings"]:
            yield [row["name"], row["relevance"], one["variable"], one["loading"], one["weight"]]


def _line(row: Iterable[Any]) -> str:
    file = io.StringIO()
    csv.writer(file).writerow(map(_cell, row))
    return file.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
