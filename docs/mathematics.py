"""Formulas as MathML, which browsers draw by themselves: no script, and no network.

`pymdownx.arithmatex` finds them, and leaves each as TeX between its delimiters.
"""
# ruff: noqa: INP001

import xml.etree.ElementTree as ET
from typing import Any

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor

MATHML = "http://www.w3.org/1998/Math/MathML"


class _Formulas(Treeprocessor):
    """Puts MathML in the place of TeX."""

    def run(self, root: ET.Element) -> None:
        for element in root.iter():
            if element.get("class") == "arithmatex" and element.text:
                tex, element.text = element.text.strip(), None
                display = "block" if tex.startswith("\\[") else "inline"
                math = ET.fromstring(convert(tex[2:-2], display=display))  # noqa: S314 (ours)
                for part in math.iter():
                    part.tag = part.tag.removeprefix(f"{{{MATHML}}}")
                    if part.text and "\\" in part.text:
                        raise ValueError(f"Expected known commands of TeX. Got: {part.text}")
                # The text that a reader copies.
                math.set("alttext", " ".join(tex[2:-2].split()))
                element.append(math)


class Mathematics(Extension):
    """Formulas as MathML."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after all other tree processors."""
        md.treeprocessors.register(_Formulas(md), "mathematics", -10)


def makeExtension(**settings: Any) -> Mathematics:
    """Return the extension; Markdown calls this."""
    return Mathematics(**settings)
