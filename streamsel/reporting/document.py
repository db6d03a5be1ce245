"""Elements of a report, independent of the output format, HTML or Markdown.

Elements contain plain text; the writers escape it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from streamsel._utils.text import printable

# Numbers of characters shown of a long name: its first, and its last.
_FIRST, _LAST = 80, 30


@dataclass(frozen=True)
class NameText:
    """A name given by the user; its writing direction must not affect the text around it.

    Parameters
    ----------
    name
        The name, unescaped.
    """

    name: Any

    @property
    def text(self) -> str:
        """The name, with unprintable characters escaped, and without its middle if it is long."""
        name = str(self.name)
        if len(name) <= _FIRST + _LAST + 20:
            return printable(name)
        ends = f"{printable(name[:_FIRST])}…{printable(name[-_LAST:])}"
        return f"{ends} ({len(name):,} characters)"


@dataclass(frozen=True)
class BarCell:
    """A number from 0 to 1, drawn as a bar with an optional mark at a reference value."""

    value: float
    reference: float | None = None


@dataclass(frozen=True)
class Swatch:
    """The colour of a line of the histograms, by its index."""

    index: int


@dataclass(frozen=True)
class HistogramCell:
    """A small histogram.

    Parameters
    ----------
    shares
        Share of values in each bin, for each line.
    titles
        Text of each line, shown under the mouse.
    text
        Text alternative.
    """

    shares: Sequence[Sequence[float]]
    titles: Sequence[str]
    text: str


Inline = str | NameText | Swatch
Cell = str | BarCell | HistogramCell | NameText | tuple[Inline, ...]


def comma_separated(items: Iterable[Iterable[Inline]]) -> tuple[Inline, ...]:
    """Return the parts of all items, with commas between the items."""
    separated = ((", ", *item) if i else item for i, item in enumerate(items))
    return tuple(chain.from_iterable(separated))


@dataclass(frozen=True)
class TableRow:
    """A row of a table; `subtext` is shown under its name, and a faint row is not significant."""

    cells: tuple[Cell, ...]
    subtext: tuple[Inline, ...] = ()
    is_insignificant: bool = False

    @property
    def header_index(self) -> int:
        """Index of the row's header cell: the first name, or else the first cell."""
        return next((i for i, cell in enumerate(self.cells) if isinstance(cell, NameText)), 0)


@dataclass(frozen=True)
class DocumentTable:
    """A table. Its first rows are shown, the others are collapsed.

    Parameters
    ----------
    title
        Title of the table.
    head
        Titles of its columns.
    rows
        All rows of the table.
    numeric
        Indices of the right-aligned columns.
    n_visible
        Number of rows that are not collapsed.
    omitted_note
        Number of omitted rows, and where they are available.
    is_stacked
        Whether on a narrow screen the cells of a row are stacked under its name.
    """

    title: str
    head: tuple[str, ...]
    rows: Sequence[TableRow]
    numeric: frozenset[int] = frozenset()
    n_visible: int = 20
    omitted_note: str = ""
    is_stacked: bool = False


@dataclass(frozen=True)
class DefinitionList:
    """A definition list: pairs of terms and values."""

    pairs: Sequence[tuple[str, str | tuple[Inline, ...]]]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    parts: tuple[Inline, ...]


@dataclass(frozen=True)
class CodeBlock:
    """A command or other text to copy."""

    text: str
    language: str = ""


@dataclass(frozen=True)
class Figure:
    """A plot as SVG, with its own text alternative."""

    svg: str


@dataclass(frozen=True)
class Download:
    """A link to a file that is part of the page.

    Parameters
    ----------
    label
        Text of the link.
    file_name
        Name of the file.
    text
        Content of the file.
    """

    label: str
    file_name: str
    text: str


@dataclass(frozen=True)
class Details:
    """A collapsed section of details."""

    title: str
    blocks: tuple[Block, ...]


Block = DocumentTable | DefinitionList | Paragraph | CodeBlock | Figure | Download | Details


@dataclass(frozen=True)
class DocumentSection:
    """A section with a title and blocks; a wide one takes the full width of the page."""

    title: str
    blocks: tuple[Block, ...]
    is_wide: bool = False
    is_warning: bool = False


@dataclass(frozen=True)
class ReportDocument:
    """The content of a report.

    Parameters
    ----------
    title
        Title of the document.
    subtitle
        The method and its data, in one line.
    summary
        Summary in one sentence.
    target
        The target, in one line; "" without one.
    key_figures
        The key figures, in pairs.
    sections
        The other sections.
    """

    title: str
    subtitle: str
    summary: str
    target: str
    key_figures: Sequence[tuple[str, str]]
    sections: Sequence[DocumentSection] = field(default_factory=tuple)
