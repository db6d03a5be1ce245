"""The report as one HTML file, without scripts or requests, with all user text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby

from streamsel.reporting.csv_export import csv_uri
from streamsel.reporting.document import (
    BarCell,
    Block,
    Cell,
    CodeBlock,
    DefinitionList,
    DocumentSection,
    DocumentTable,
    Download,
    Figure,
    HistogramCell,
    Inline,
    NameText,
    Paragraph,
    ReportDocument,
    Swatch,
    TableRow,
)

# Forbids requests and scripts, even if a name contained markup.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render_html(content: ReportDocument) -> str:
    """Return a report as HTML.

    Parameters
    ----------
    content
        The content of the report.
    """
    cards = "\n".join(_cards(content.sections))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(content.title)}</title>
<style>
{style()}</style>
</head>
<body>
<header>
<p class="kicker">{escape(content.subtitle)}</p>
<h1>{escape(content.summary)}</h1>
{_target(content.target)}{key_numbers(content.key_figures)}
</header>
<main>
{cards}
</main>
<footer><p>Made by streamsel. This file contains no scripts and makes no requests.</p></footer>
</body>
</html>
"""


def _target(text: str) -> str:
    return f'<p class="target">{escape(text)}</p>\n' if text else ""


@cache
def style() -> str:
    """Return the style sheet."""
    return files("streamsel.reporting").joinpath("page.css").read_text(encoding="utf-8")


def key_numbers(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the key figures."""
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs
    )
    return f'<dl class="keys">{items}</dl>'


def _cards(sections: Sequence[DocumentSection]) -> Iterator[str]:
    """Yield the sections: wide ones separately, the others in a grid."""
    for is_wide, group in groupby(sections, lambda section: section.is_wide):
        cards = "\n".join(map(_section, group))
        yield cards if is_wide else f'<div class="cards">\n{cards}\n</div>'


def _section(section: DocumentSection) -> str:
    kinds = "card warning" if section.is_warning else "card"
    title = f"<h2>{escape(section.title)}</h2>"
    return f'<section class="{kinds}">\n{title}\n{_all(section.blocks)}\n</section>'


def _all(blocks: Iterable[Block]) -> str:
    return "\n".join(map(block_html, blocks))


def block_html(block: Block) -> str:
    """Return an element."""
    if isinstance(block, DocumentTable):
        return table_html(block)
    if isinstance(block, DefinitionList):
        pairs = (
            f"<div><dt>{escape(name)}</dt><dd>{inline_html(value)}</dd></div>"
            for name, value in block.pairs
        )
        return f'<dl class="facts">{"".join(pairs)}</dl>'
    if isinstance(block, Paragraph):
        return f"<p>{inline_html(block.parts)}</p>"
    if isinstance(block, CodeBlock):
        return f'<pre tabindex="0"><code>{escape(block.text)}</code></pre>'
    if isinstance(block, Figure):
        return f'<div class="picture">{block.svg}</div>'
    if isinstance(block, Download):
        name, label = escape(block.file_name), escape(block.label)
        return f'<p><a download="{name}" href="{escape(csv_uri(block.text))}">{label}</a></p>'
    return f"<details><summary>{escape(block.title)}</summary>\n{_all(block.blocks)}\n</details>"


def table_html(table: DocumentTable) -> str:
    """Return a table; all but its first rows are collapsed."""
    shown, folded = table.rows[: table.n_visible], table.rows[table.n_visible :]
    parts = [_rows(table, shown)] if shown else []
    if folded:
        more = f"{len(folded):,} more" if shown else f"As a table ({len(folded):,})"
        parts.append(f"<details><summary>{more}</summary>\n{_rows(table, folded)}\n</details>")
    if table.omitted_note:
        parts.append(f"<p>{escape(table.omitted_note)}</p>")
    return "\n".join(parts)


def _rows(table: DocumentTable, rows: Sequence[TableRow]) -> str:
    head = "".join(
        f'<th scope="col"{_right(table, i)}>{escape(title) or _HIDDEN_RANK}</th>'
        for i, title in enumerate(table.head)
    )
    body = "\n".join(_row(table, row) for row in rows)
    label, stack = escape(table.title), ' class="stack"' if table.is_stacked else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table{stack}>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


_HIDDEN_RANK = '<span class="unseen">rank</span>'


def _right(table: DocumentTable, i: int) -> str:
    return ' class="number"' if i in table.numeric else ""


def _row(table: DocumentTable, row: TableRow) -> str:
    cells = []
    for i, cell in enumerate(row.cells):
        kind = "number" if i in table.numeric else "measure" if isinstance(cell, BarCell) else ""
        if table.head[i] == "":
            kind += " rank"
        styled = f' class="{kind.strip()}"' if kind else ""
        if i == row.header_index:
            below = f"<small>{inline_html(row.subtext)}</small>" if row.subtext else ""
            cells.append(f'<th scope="row"{styled}>{_cell(cell)}{below}</th>')
            continue
        # On a narrow screen a cell is below its row's name, and needs a label of its own.
        is_labelled = table.is_stacked and table.head[i] and not isinstance(cell, BarCell)
        label = f' data-label="{escape(table.head[i])}"' if is_labelled else ""
        cells.append(f"<td{styled}{label}>{_cell(cell)}</td>")
    faint = ' class="faint"' if row.is_insignificant else ""
    return f"<tr{faint}>{''.join(cells)}</tr>"


# Size of a small histogram.
_WIDTH, _HEIGHT = 120, 32


def _histogram(cell: HistogramCell) -> str:
    """Return a small histogram: a line per group, filled down to zero."""
    top = max(max(shares) for shares in cell.shares)
    step = _WIDTH / len(cell.shares[0])
    lines = []
    for index, (shares, title) in enumerate(zip(cell.shares, cell.titles, strict=True)):
        path = [f"M0 {_HEIGHT}"]
        for j, share in enumerate(shares, start=1):
            y = _HEIGHT - (_HEIGHT - 1) * share / top
            path.append(f"V{y:.3g}H{j * step:g}")
        named = f"<title>{escape(title)}</title>" if title else ""
        lines.append(f'<path class="l{index}" d="{"".join(path)}V{_HEIGHT}z">{named}</path>')
    return (
        f'<svg class="histogram" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(cell.text)}">{"".join(lines)}</svg>'
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, HistogramCell):
        return _histogram(cell)
    if not isinstance(cell, BarCell):
        return inline_html(cell)
    mark = "" if cell.reference is None else f'<b style="left:{_percent(cell.reference)}"></b>'
    level = f'<i style="width:{_percent(cell.value)}"></i>'
    bar = f'<span class="bar" aria-hidden="true">{level}{mark}</span>'
    return f'<span class="level">{bar}{cell.value:.3f}</span>'


def _percent(value: float) -> str:
    return f"{100.0 * min(1.0, max(0.0, value)):.1f}%"


def inline_html(parts: Inline | tuple[Inline, ...]) -> str:
    """Return text, with every name isolated from the writing direction around it."""
    sequence = parts if isinstance(parts, tuple) else (parts,)
    return "".join(map(_inline, sequence))


def _inline(part: Inline) -> str:
    if isinstance(part, Swatch):
        return f'<i class="swatch l{part.index}"></i>'
    return f"<bdi>{escape(part.text)}</bdi>" if isinstance(part, NameText) else escape(part)
