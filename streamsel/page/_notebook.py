"""The representation of a model in a notebook: summary, key figures and table, without plots."""

from __future__ import annotations

from html import escape
from typing import Any

from streamsel.escape import shown
from streamsel.page._blocks import Bar, Cell, Name, Table
from streamsel.page._chosen import chosen
from streamsel.page._html import inline
from streamsel.page._sections import alarms, sentence
from streamsel.page._verdict import verdict
from streamsel.words import rows_left_out_text

_MAX_ROWS = 10
_CELL = "padding:0.2em 0.9em 0.2em 0;text-align:left;vertical-align:top"
_NUMBER = "padding:0.2em 0.9em 0.2em 0;text-align:right"


def notebook(model: Any) -> str:
    """Return the HTML that a notebook shows for a model.

    Parameters
    ----------
    model
        A learner.
    """
    report = model.report()
    parts = [f"<p><b>{escape(report.learner)}</b>: {escape(verdict(report))}</p>"]
    parts += [f"<p>⚠ {escape(sentence(shown(alarm['text'])))}</p>" for alarm in alarms(report, {})]
    if report.columns_seen:
        tables = chosen(report, "see streamsel.report(model)", _MAX_ROWS)
        parts += [_table(table) for table in tables if isinstance(table, Table)]
        size = f"{report.columns_seen:,} columns of {report.rows:,} rows"
        size += escape(shown(rows_left_out_text(report.rows_left_out)))
        size += "" if report.target is None else f", target: {escape(shown(report.target))}"
        parts.append(
            f"<p><small>{size}; streamsel.report(model) returns the full report.</small></p>"
        )
    return f'<div class="streamsel" style="max-width:50em">{"".join(parts)}</div>'


def _table(table: Table) -> str:
    def styled(i: int) -> str:
        return _NUMBER if i in table.numeric else _CELL

    head = "".join(
        f'<th scope="col" style="{styled(i)}">{escape(t)}</th>' for i, t in enumerate(table.head)
    )
    body = "".join(
        f"<tr{' style=opacity:0.65' * row.is_faint}>"
        + "".join(f'<td style="{styled(i)}">{_cell(cell)}</td>' for i, cell in enumerate(row.cells))
        + "</tr>"
        for row in table.rows
    )
    rest = f"<p><small>{escape(table.rest)}</small></p>" if table.rest else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Bar):
        return f"{cell.value:.3f}"
    if isinstance(cell, Name):
        return f'<b style="overflow-wrap:anywhere">{inline(cell)}</b>'
    return inline(cell)
