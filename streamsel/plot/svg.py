"""SVG to embed in an HTML page: colours are CSS variables, artists have texts, no ids clash."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_URL_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FONTS = re.compile(r"(font: [^;\"]*?\d(?:px|pt)?) '[^;]*")
# 8 points in print are 12 pixels on a screen.
_PIXELS_PER_POINT = 1.5
# Id of an image that is drawn as a mask: only its opacity varies.
SHADE = "shade"


def embed_svg(
    svg: str, roles: Mapping[str, str], title: str, hover: Mapping[str, Sequence[str]]
) -> str:
    """Return an SVG element to embed in an HTML page.

    Parameters
    ----------
    svg
        SVG as written by matplotlib.
    roles
        Colours to replace by CSS variables: role -> colour.
    title
        Text alternative.
    hover
        Id of an artist -> the texts that a browser shows under the mouse: one per marker, or one
        for all of it.
    """
    root = ET.fromstring(svg)  # noqa: S314 (written by matplotlib)
    _drop(root, "metadata", "style")
    _add_titles(root, hover)
    _shades_by_mask(root, roles["noise"])
    _only_ids_in_use(root, "s" + sha256(svg.encode()).hexdigest()[:8] + "-")
    colours = {colour: f"var(--{role}, {colour})" for role, colour in roles.items()}
    known = re.compile("|".join(colours))
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        style = element.get("style")
        if style is not None:
            style = _FONTS.sub(r"\1 var(--sans, sans-serif)", style)
            element.set("style", known.sub(lambda found: colours[found[0]], style))
    _share_styles(root)
    width = float(root.get("viewBox", "").split()[2])
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    style_of_size = f"width:100%;max-width:{width * _PIXELS_PER_POINT:.0f}px;height:auto"
    root.set("style", f"{style_of_size};stroke-linejoin:round;stroke-linecap:butt")
    root.set("role", "img")
    if title:
        root.set("aria-label", title)
        root.insert(0, _title(title))
    return ET.tostring(root, encoding="unicode")


def _title(text: str) -> ET.Element:
    element = ET.Element("title")
    element.text = text
    return element


def _add_titles(root: ET.Element, hover: Mapping[str, Sequence[str]]) -> None:
    """Insert the texts of artists as titles."""
    for group in root.iter(f"{_SVG}g"):
        texts = hover.get(group.get("id", ""), ())
        if len(texts) == 1:
            group.insert(0, _title(texts[0]))
            continue
        markers = [*group.iter(f"{_SVG}use")] if texts else []
        # A marker outside of the figure is not in the file: then none is identified.
        if len(markers) == len(texts):
            for marker, text in zip(markers, texts, strict=True):
                marker.append(_title(text))


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


def _share_styles(root: ET.Element) -> None:
    """Move the style of many markers to their group, if all have the same."""
    for group in root.iter("g"):
        markers = group.findall("use")
        styles = {marker.get("style", "") for marker in markers}
        if len(markers) > 1 and len(styles) == 1 and group.get("style") is None:
            group.set("style", styles.pop())
            for marker in markers:
                marker.attrib.pop("style", None)


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


def reproducible_options(to: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return options of `savefig` that leave the date and program out of the file."""
    suffix = PurePath(to).suffix if isinstance(to, str | PurePath) else ""
    dates = {"svg": ("Date", "Creator"), "pdf": ("CreationDate", "Creator", "Producer")}
    keys = dates.get(options.get("format") or suffix.lstrip(".").lower(), ())
    return options | {"metadata": dict.fromkeys(keys) | options.get("metadata", {})}
