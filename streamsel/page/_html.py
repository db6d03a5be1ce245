"""The report as one HTML file, without scripts or requests, with all user text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby

from streamsel.page._blocks import (
    Bar,
    Block,
    Cell,
    Code,
    Content,
    Facts,
    Inline,
    Name,
    Picture,
    Row,
    Section,
    Table,
    Text,
)

# Forbids requests and scripts, even if a name contained markup.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def html(content: Content) -> str:
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
<p class="kicker">{escape(content.kicker)}</p>
<h1>{escape(content.verdict)}</h1>
{keys(content.keys)}
</header>
<main>
{cards}
</main>
<footer><p>Made by streamsel. This file contains no scripts and makes no requests.</p></footer>
</body>
</html>
"""


@cache
def style() -> str:
    """Return the style sheet."""
    return files("streamsel.page").joinpath("page.css").read_text(encoding="utf-8")


def keys(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the key figures."""
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs
    )
    return f'<dl class="keys">{items}</dl>'


def _cards(sections: Sequence[Section]) -> Iterator[str]:
    """Yield the sections: wide ones separately, the others in a grid."""
    for is_wide, group in groupby(sections, lambda section: section.is_wide):
        cards = "\n".join(map(_section, group))
        yield cards if is_wide else f'<div class="cards">\n{cards}\n</div>'


def _section(section: Section) -> str:
    kinds = "card alarm" if section.is_alarm else "card"
    title = f"<h2>{escape(section.title)}</h2>"
    return f'<section class="{kinds}">\n{title}\n{_all(section.blocks)}\n</section>'


def _all(blocks: Iterable[Block]) -> str:
    return "\n".join(map(block_html, blocks))


def block_html(block: Block) -> str:
    """Return an element."""
    if isinstance(block, Table):
        return table_html(block)
    if isinstance(block, Facts):
        pairs = (
            f"<div><dt>{escape(name)}</dt><dd>{inline(value)}</dd></div>"
            for name, value in block.pairs
        )
        return f'<dl class="facts">{"".join(pairs)}</dl>'
    if isinstance(block, Text):
        return f"<p>{inline(block.parts)}</p>"
    if isinstance(block, Code):
        return f'<pre tabindex="0"><code>{escape(block.text)}</code></pre>'
    if isinstance(block, Picture):
        return f'<div class="picture">{block.svg}</div>'
    return f"<details><summary>{escape(block.title)}</summary>\n{_all(block.blocks)}\n</details>"


def table_html(table: Table) -> str:
    """Return a table; all but its first rows are collapsed."""
    shown, folded = table.rows[: table.n_open], table.rows[table.n_open :]
    parts = [_rows(table, shown)] if shown else []
    if folded:
        more = f"{len(folded):,} more" if shown else f"As a table ({len(folded):,})"
        parts.append(f"<details><summary>{more}</summary>\n{_rows(table, folded)}\n</details>")
    if table.rest:
        parts.append(f"<p>{escape(table.rest)}</p>")
    return "\n".join(parts)


def _rows(table: Table, rows: Sequence[Row]) -> str:
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


def _right(table: Table, i: int) -> str:
    return ' class="number"' if i in table.numeric else ""


def _row(table: Table, row: Row) -> str:
    cells = []
    for i, cell in enumerate(row.cells):
        kind = "number" if i in table.numeric else "measure" if isinstance(cell, Bar) else ""
        if table.head[i] == "":
            kind += " rank"
        styled = f' class="{kind.strip()}"' if kind else ""
        if i == row.about:
            below = f"<small>{inline(row.below)}</small>" if row.below else ""
            cells.append(f'<th scope="row"{styled}>{_cell(cell)}{below}</th>')
            continue
        # On a narrow screen a cell is below its row's name, and needs a label of its own.
        is_labelled = table.is_stacked and table.head[i] and not isinstance(cell, Bar)
        label = f' data-label="{escape(table.head[i])}"' if is_labelled else ""
        cells.append(f"<td{styled}{label}>{_cell(cell)}</td>")
    faint = ' class="faint"' if row.is_faint else ""
    return f"<tr{faint}>{''.join(cells)}</tr>"


def _cell(cell: Cell) -> str:
    if not isinstance(cell, Bar):
        return inline(cell)
    mark = "" if cell.mark is None else f'<b style="left:{_percent(cell.mark)}"></b>'
    level = f'<i style="width:{_percent(cell.value)}"></i>'
    bar = f'<span class="bar" aria-hidden="true">{level}{mark}</span>'
    return f'<span class="level">{bar}{cell.value:.3f}</span>'


def _percent(value: float) -> str:
    return f"{100.0 * min(1.0, max(0.0, value)):.1f}%"


def inline(parts: Inline | tuple[Inline, ...]) -> str:
    """Return text, with every name isolated from the writing direction around it."""
    sequence = parts if isinstance(parts, tuple) else (parts,)
    return "".join(
        f"<bdi>{escape(one.text)}</bdi>" if isinstance(one, Name) else escape(one)
        for one in sequence
    )
