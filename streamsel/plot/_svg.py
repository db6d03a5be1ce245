"""SVG as matplotlib writes it, made fit to stand beside others in a page."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Mapping

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_POINTED_AT = re.compile(r"url\(#([^)]+)\)")
_FONTS = re.compile(r"(font: [^;\"]*?\d(?:px|pt)?) '[^;]*")
# Of the width that is printed: 8 points are 12 pixels on a screen.
_PIXELS_A_POINT = 1.5
# What a picture says of an image that is but shade: how much ink there is where.
SHADE = "shade"


def for_a_page(svg: str, roles: Mapping[str, str], title: str) -> str:
    """Return an SVG that is part of a page.

    Parameters
    ----------
    svg
        What matplotlib has written.
    roles
        Colours that become variables of the page's style: role -> colour.
    title
        What the picture shows, in words.
    """
    root = ET.fromstring(svg)  # noqa: S314 (what matplotlib has just written)
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
    room = f"width:100%;max-width:{width * _PIXELS_A_POINT:.0f}px;height:auto"
    root.set("style", f"{room};stroke-linejoin:round;stroke-linecap:butt")
    root.set("role", "img")
    if title:
        root.set("aria-label", title)
        said = ET.Element("title")
        said.text = title
        root.insert(0, said)
    return ET.tostring(root, encoding="unicode")


def _drop(root: ET.Element, *names: str) -> None:
    """Drop elements: a style in a picture would be one of the whole page."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.removeprefix(_SVG).rpartition("}")[2] in names:
                parent.remove(child)


def _shades_by_mask(root: ET.Element, colour: str) -> None:
    """Let shades be a colour of the page, seen through an image, instead of an image of it."""
    for parent in list(root.iter()):
        for place, child in enumerate(list(parent)):
            if child.tag != f"{_SVG}image" or child.get("id") != SHADE:
                continue
            size = {name: child.attrib[name] for name in ("width", "height")}
            turned = ET.Element(f"{_SVG}g", {"transform": child.attrib.pop("transform", "")})
            del child.attrib["id"]
            mask = ET.SubElement(
                turned, f"{_SVG}mask", {"id": SHADE, "style": "mask-type:alpha;mask-mode:alpha"}
            )
            mask.append(child)
            seen = {"style": f"fill: {colour}", "mask": f"url(#{SHADE})"}
            ET.SubElement(turned, f"{_SVG}rect", size | seen)
            parent[place] = turned


def _only_ids_in_use(root: ET.Element, prefix: str) -> None:
    """Drop the ids that nothing points at, and make the others this picture's own."""
    pointed_at = set()
    for element in root.iter():
        if _HREF in element.attrib:
            target = element.attrib.pop(_HREF)
            if target.startswith("#"):
                pointed_at.add(target[1:])
                target = f"#{prefix}{target[1:]}"
            element.set("href", target.replace("\n", ""))
        for name, value in element.attrib.items():
            pointed_at.update(_POINTED_AT.findall(value))
            element.set(name, _POINTED_AT.sub(rf"url(#{prefix}\1)", value))
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in pointed_at:
            element.set("id", prefix + own)
