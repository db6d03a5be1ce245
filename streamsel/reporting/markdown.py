"""The report as Markdown: the same text and tables, without plots."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamsel.reporting.document import (
    BarCell,
    Block,
    Cell,
    CodeBlock,
    DefinitionList,
    Details,
    DocumentTable,
    HistogramCell,
    Inline,
    Paragraph,
    ReportDocument,
    Swatch,
)

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


def render_markdown(content: ReportDocument) -> str:
    """Return a report as Markdown.

    Parameters
    ----------
    content
        The content of the report.
    """
    keys = " · ".join(f"{_escaped(value)} {_escaped(name)}" for name, value in content.key_figures)
    lines = [f"# {_escaped(content.summary)}", "", _escaped(content.subtitle), "", keys, ""]
    lines += [_escaped(content.target), ""] if content.target else []
    for section in content.sections:
        body = [line for block in section.blocks for line in _block(block)]
        if body:
            lines += [f"## {section.title}", "", *body]
    return "\n".join(lines).rstrip() + "\n"


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, DocumentTable):
        yield from _table(block)
    elif isinstance(block, DefinitionList):
        yield from (f"- **{_escaped(name)}**: {_inline(value)}" for name, value in block.pairs)
        yield ""
    elif isinstance(block, Paragraph):
        yield from (_inline(block.parts), "")
    elif isinstance(block, CodeBlock):
        # A fence must be longer than any in the text.
        ticks = max((len(run) for run in re.findall("`+", block.text)), default=0)
        fence = "`" * max(3, ticks + 1)
        yield from (f"{fence}{block.language}", block.text, fence, "")
    elif isinstance(block, Details):
        yield from (f"### {_escaped(block.title)}", "")
        for inner in block.blocks:
            yield from _block(inner)


def _table(table: DocumentTable) -> Iterator[str]:
    yield f"| {' | '.join(map(_escaped, table.head))} |"
    yield (
        "|" + "|".join("--:" if i in table.numeric else "---" for i in range(len(table.head))) + "|"
    )
    for row in table.rows:
        cells = [_cell(cell) for cell in row.cells]
        if row.subtext:
            cells[row.header_index] += f"<br>{_inline(row.subtext)}"
        yield f"| {' | '.join(cells)} |"
    yield ""
    if table.omitted_note:
        yield from (_escaped(table.omitted_note), "")


def _cell(cell: Cell) -> str:
    if isinstance(cell, BarCell):
        return f"{cell.value:.4f}"
    return _escaped(cell.text) if isinstance(cell, HistogramCell) else _inline(cell)


def _inline(parts: Inline | tuple[Inline, ...]) -> str:
    sequence = parts if isinstance(parts, tuple) else (parts,)
    texts = ("" if isinstance(p, Swatch) else getattr(p, "text", p) for p in sequence)
    return "".join(_escaped(str(text)) for text in texts)


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)
