"""Conversion of matplotlib's SVG to one that can be embedded in an HTML page."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Mapping

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_URL_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FONTS = re.compile(r"(font: [^;\"]*?\d(?:px|pt)?) '[^;]*")
# 8 points in print are 12 pixels on a screen.
_PIXELS_PER_POINT = 1.5
# Id of an image that is drawn as a mask: only its opacity varies.
SHADE = "shade"


def for_a_page(svg: str, roles: Mapping[str, str], title: str) -> str:
    """Return an SVG element to embed in an HTML page.

    Parameters
    ----------
    svg
        SVG as written by matplotlib.
    roles
        Colours to replace by CSS variables: role -> colour.
    title
        Text alternative.
    """
    root = ET.fromstring(svg)  # noqa: S314 (written by matplotlib)
    _drop(root, "metadata", "style")
    _shades_by_mask(root, roles["accent"])
    _only_ids_in_use(root, "s" + sha256(svg.encode()).hexdigest()[:8] + "-")
    colours = {colour: f"var(--{role}, {colour})" for role, colour in roles.items()}
    known = re.compile("|".join(colours))
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        style = element.get("style")
        if style is not None:
            style = _FONTS.sub(r"\1 var(--sans, sans-serif)", style)
            element.set("style", known.sub(lambda found: colours[found[0]], style))
    width = float(root.get("viewBox", "").split()[2])
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    style_of_size = f"width:100%;max-width:{width * _PIXELS_PER_POINT:.0f}px;height:auto"
    root.set("style", f"{style_of_size};stroke-linejoin:round;stroke-linecap:butt")
    root.set("role", "img")
    if title:
        root.set("aria-label", title)
        element_title = ET.Element("title")
        element_title.text = title
        root.insert(0, element_title)
    return ET.tostring(root, encoding="unicode")


def _drop(root: ET.Element, *names: str) -> None:
    """Drop elements by name; a style element would apply to the whole page."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.removeprefix(_SVG).rpartition("}")[2] in names:
                parent.remove(child)


def _shades_by_mask(root: ET.Element, colour: str) -> None:
    """Replace shade images by a rectangle in a CSS colour, with the image as its mask."""
    for parent in list(root.iter()):
        for index, child in enumerate(list(parent)):
            if child.tag != f"{_SVG}image" or child.get("id") != SHADE:
                continue
            size = {name: child.attrib[name] for name in ("width", "height")}
            group = ET.Element(f"{_SVG}g", {"transform": child.attrib.pop("transform", "")})
            del child.attrib["id"]
            mask = ET.SubElement(
                group, f"{_SVG}mask", {"id": SHADE, "style": "mask-type:alpha;mask-mode:alpha"}
            )
            mask.append(child)
            fill = {"style": f"fill: {colour}", "mask": f"url(#{SHADE})"}
            ET.SubElement(group, f"{_SVG}rect", size | fill)
            parent[index] = group


def _only_ids_in_use(root: ET.Element, prefix: str) -> None:
    """Drop ids that are not referenced, and give the others a prefix unique to this plot."""
    referenced = set()
    for element in root.iter():
        if _HREF in element.attrib:
            target = element.attrib.pop(_HREF)
            if target.startswith("#"):
                referenced.add(target[1:])
                target = f"#{prefix}{target[1:]}"
            element.set("href", target.replace("\n", ""))
        for name, value in element.attrib.items():
            referenced.update(_URL_REFERENCE.findall(value))
            element.set(name, _URL_REFERENCE.sub(rf"url(#{prefix}\1)", value))
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in referenced:
            element.set("id", prefix + own)
