"""What a notebook shows of a model: verdict, numbers and table; no picture, and no style sheet."""

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

_MOST = 10
_CELL = "padding:0.2em 0.9em 0.2em 0;text-align:left;vertical-align:top"
_NUMBER = "padding:0.2em 0.9em 0.2em 0;text-align:right"


def notebook(model: Any) -> str:
    """Return what a notebook shows of a model.

    Parameters
    ----------
    model
        A learner.
    """
    report = model.report()
    parts = [f"<p><b>{escape(report.learner)}</b>: {escape(verdict(report))}</p>"]
    parts += [f"<p>⚠ {escape(sentence(shown(told['text'])))}</p>" for told in alarms(report, {})]
    if report.columns_seen:
        tables = chosen(report, "streamsel.report(model) has them", _MOST)
        parts += [_table(table) for table in tables if isinstance(table, Table)]
        seen = f"{report.columns_seen:,} columns of {report.rows:,} rows"
        seen += escape(shown(rows_left_out_text(report.rows_left_out)))
        seen += "" if report.target is None else f", target: {escape(shown(report.target))}"
        parts.append(
            f"<p><small>{seen}; streamsel.report(model) returns the whole page.</small></p>"
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
