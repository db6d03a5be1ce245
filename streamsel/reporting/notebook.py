"""The representation of a model in a notebook: summary, key figures and table, without plots."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from types import MappingProxyType
from typing import Any

from streamsel._utils.text import count_text, printable, rows_excluded_text
from streamsel.reporting.document import BarCell, Cell, DocumentTable, HistogramCell, NameText
from streamsel.reporting.html import inline_html
from streamsel.reporting.sections import all_warnings, as_sentence
from streamsel.reporting.summary import summarize
from streamsel.reporting.tables import results_table

_MAX_ROWS = 10
_CELL = "padding:0.2em 0.9em 0.2em 0;text-align:left;vertical-align:top"
_NUMBER = "padding:0.2em 0.9em 0.2em 0;text-align:right"


def render_notebook(model: Any, metadata: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return the HTML that a notebook shows for a model.

    Parameters
    ----------
    model
        A learner.
    metadata
        Metadata of its run, which may have warnings.
    """
    report = model.report()
    parts = [f"<p><b>{escape(report.learner)}</b>: {escape(summarize(report))}</p>"]
    parts += [
        f"<p>⚠ {escape(as_sentence(printable(warning['text'])))}</p>"
        for warning in all_warnings(report, metadata)
    ]
    if report.columns_seen:
        tables = results_table(report, "see streamsel.report(model)", _MAX_ROWS)
        parts += [_table(table) for table in tables if isinstance(table, DocumentTable)]
        n_columns = report.details.get("n_columns", report.columns_seen)
        size = f"{count_text(n_columns, 'column')} of {report.rows:,} rows"
        size += escape(printable(rows_excluded_text(report.rows_excluded)))
        size += "" if report.target is None else f", target: {escape(printable(report.target))}"
        parts.append(
            f"<p><small>{size}; streamsel.report(model) returns the full report.</small></p>"
        )
    return f'<div class="streamsel" style="max-width:50em">{"".join(parts)}</div>'


def _table(table: DocumentTable) -> str:
    def styled(i: int) -> str:
        return _NUMBER if i in table.numeric else _CELL

    head = "".join(
        f'<th scope="col" style="{styled(i)}">{escape(t)}</th>' for i, t in enumerate(table.head)
    )
    body = "".join(
        f"<tr{' style=opacity:0.65' * row.is_insignificant}>"
        + "".join(f'<td style="{styled(i)}">{_cell(cell)}</td>' for i, cell in enumerate(row.cells))
        + "</tr>"
        for row in table.rows
    )
    rest = f"<p><small>{escape(table.omitted_note)}</small></p>" if table.omitted_note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cell(cell: Cell) -> str:
    if isinstance(cell, BarCell):
        return f"{cell.value:.3f}"
    if isinstance(cell, HistogramCell):
        return escape(cell.text)
    if isinstance(cell, NameText):
        return f'<b style="overflow-wrap:anywhere">{inline_html(cell)}</b>'
    return inline_html(cell)
