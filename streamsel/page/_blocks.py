"""Elements of a report, independent of the output format, HTML or Markdown.

Elements contain plain text; the writers escape it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from streamsel.escape import shown

# Numbers of characters shown of a long name: its first, and its last.
_FIRST, _LAST = 80, 30


@dataclass(frozen=True)
class Name:
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
            return shown(name)
        ends = f"{shown(name[:_FIRST])}…{shown(name[-_LAST:])}"
        return f"{ends} ({len(name):,} characters)"


@dataclass(frozen=True)
class Bar:
    """A number from 0 to 1, drawn as a bar with an optional mark at a reference value."""

    value: float
    mark: float | None = None


Inline = str | Name
Cell = str | Bar | Name | tuple[Inline, ...]


@dataclass(frozen=True)
class Row:
    """A row of a table; `below` is shown under its name, and a faint row is not significant."""

    cells: tuple[Cell, ...]
    below: tuple[Inline, ...] = ()
    is_faint: bool = False

    @property
    def about(self) -> int:
        """Index of the row's header cell: the first name, or else the first cell."""
        return next((i for i, cell in enumerate(self.cells) if isinstance(cell, Name)), 0)


@dataclass(frozen=True)
class Table:
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
    n_open
        Number of rows that are not collapsed.
    rest
        Number of omitted rows, and where they are available.
    is_stacked
        Whether on a narrow screen the cells of a row are stacked under its name.
    """

    title: str
    head: tuple[str, ...]
    rows: Sequence[Row]
    numeric: frozenset[int] = frozenset()
    n_open: int = 20
    rest: str = ""
    is_stacked: bool = False


@dataclass(frozen=True)
class Facts:
    """A definition list: pairs of terms and values."""

    pairs: Sequence[tuple[str, str | tuple[Inline, ...]]]


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    parts: tuple[Inline, ...]


@dataclass(frozen=True)
class Code:
    """A command or other text to copy."""

    text: str
    language: str = ""


@dataclass(frozen=True)
class Picture:
    """A plot as SVG, with its own text alternative."""

    svg: str


@dataclass(frozen=True)
class Fold:
    """A collapsed section of details."""

    title: str
    blocks: tuple[Block, ...]


Block = Table | Facts | Text | Code | Picture | Fold


@dataclass(frozen=True)
class Section:
    """A section with a title and blocks; a wide one takes the full width of the page."""

    title: str
    blocks: tuple[Block, ...]
    is_wide: bool = False
    is_alarm: bool = False


@dataclass(frozen=True)
class Content:
    """The content of a report.

    Parameters
    ----------
    title
        Title of the document.
    kicker
        The method and its data, in one line.
    verdict
        Summary in one sentence.
    keys
        The key figures, in pairs.
    sections
        The other sections.
    """

    title: str
    kicker: str
    verdict: str
    keys: Sequence[tuple[str, str]]
    sections: Sequence[Section] = field(default_factory=tuple)
