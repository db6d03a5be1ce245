"""What a page is made of, before anybody says how it looks: HTML and Markdown are made of the same.

Whatever stands in a block is text as it is; the one that writes it escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from streamsel.escape import shown

# The characters of a name that are shown: its first, and its last.
_FIRST, _LAST = 80, 30


@dataclass(frozen=True)
class Name:
    """What a user calls something: another direction of writing in it is to turn nothing else.

    Parameters
    ----------
    name
        As it is.
    """

    name: Any

    @property
    def text(self) -> str:
        """The name, its middle left out if it is long, and every character of it to be seen."""
        name = str(self.name)
        if len(name) <= _FIRST + _LAST + 20:
            return shown(name)
        ends = f"{shown(name[:_FIRST])}…{shown(name[-_LAST:])}"
        return f"{ends} ({len(name):,} characters)"


@dataclass(frozen=True)
class Bar:
    """A number from 0 to 1 that is drawn beside itself, and what it is to be held against."""

    value: float
    mark: float | None = None


Inline = str | Name
Cell = str | Bar | Name | tuple[Inline, ...]


@dataclass(frozen=True)
class Row:
    """A row of a table; what does not rise above noise is faint. `below` stands under its name."""

    cells: tuple[Cell, ...]
    below: tuple[Inline, ...] = ()
    is_faint: bool = False

    @property
    def about(self) -> int:
        """Which cell says what the row is about: the first name, or else the first cell."""
        return next((i for i, cell in enumerate(self.cells) if isinstance(cell, Name)), 0)


@dataclass(frozen=True)
class Table:
    """A table. Its first rows are shown, the next folded away; of the rest it is said where.

    Parameters
    ----------
    title
        What it holds.
    head
        Titles of its columns.
    rows
        All that are in it.
    numeric
        Which columns stand to the right.
    n_open
        How many rows are not folded away.
    rest
        Of further rows, how many there are and where.
    is_stacked
        Whether on a narrow screen the cells of a row stand under its name, not beside it.
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
    """Things and what they are, in pairs."""

    pairs: Sequence[tuple[str, str | tuple[Inline, ...]]]


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    parts: tuple[Inline, ...]


@dataclass(frozen=True)
class Code:
    """What is typed, or copied."""

    text: str
    language: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture, drawn already: SVG that says by itself what is to be seen."""

    svg: str


@dataclass(frozen=True)
class Fold:
    """What is there for those who ask."""

    title: str
    blocks: tuple[Block, ...]


Block = Table | Facts | Text | Code | Picture | Fold


@dataclass(frozen=True)
class Section:
    """A card: a title, and blocks; a wide one takes the whole width of the page."""

    title: str
    blocks: tuple[Block, ...]
    is_wide: bool = False
    is_alarm: bool = False


@dataclass(frozen=True)
class Content:
    """All that a page says.

    Parameters
    ----------
    title
        Of the window.
    kicker
        What this is, in a line.
    verdict
        In a sentence, what is to be thought of it.
    keys
        The numbers that matter, in pairs.
    sections
        The rest.
    """

    title: str
    kicker: str
    verdict: str
    keys: Sequence[tuple[str, str]]
    sections: Sequence[Section] = field(default_factory=tuple)
