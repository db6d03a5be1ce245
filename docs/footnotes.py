"""References of a docstring, which are in a section of their own.

Each section is converted to HTML separately, so a mark in the text has no note in its section, and
a note has no mark to link back to.
"""
# ruff: noqa: INP001

import xml.etree.ElementTree as ET
from re import Match
from typing import Any

from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from markdown.treeprocessors import Treeprocessor


class _Mark(InlineProcessor):
    """Show the number of a note in another section."""

    def handleMatch(self, m: Match[str], data: str) -> tuple[ET.Element, int, int]:
        """Return the number, raised."""
        del data
        mark = ET.Element("sup")
        mark.text = m[1]
        return mark, m.start(0), m.end(0)


class _WaysBack(Treeprocessor):
    """Remove links to missing marks."""

    def run(self, root: ET.Element) -> None:
        marks = {element.get("id") for element in root.iter()}
        for parent in root.iter():
            for link in parent.findall("a[@class='footnote-backref']"):
                if link.get("href", "").removeprefix("#") not in marks:
                    parent.remove(link)


class Footnotes(Extension):
    """References of a docstring."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after footnotes, and after the extension that renames their targets."""
        md.inlinePatterns.register(_Mark(r"\[\^(\d+)\]", md), "mark of a note", 10)
        md.treeprocessors.register(_WaysBack(md), "ways back", -20)


def makeExtension(**settings: Any) -> Footnotes:
    """Return the extension; Markdown calls this."""
    return Footnotes(**settings)
