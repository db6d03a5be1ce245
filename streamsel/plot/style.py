"""Style of the plots: sizes, colours, display in notebooks, and byte-reproducible SVG.

Colours are Okabe and Ito's palette, which is safe for colour-blind readers. Each has a role, by
which a page can override it: `var(--chosen, #d55e00)`.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from io import BytesIO, StringIO
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree as ET

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from streamsel._utils import optional

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_URL_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FONTS = re.compile(r"(font: [^;\"]*?\d(?:px|pt)?) '[^;]*")
# 8 points in print are 12 pixels on a screen.
_PIXELS_PER_POINT = 1.5
# Id of an image that is drawn as a mask: only its opacity varies.
SHADE = "shade"


def embed_svg(svg: str, roles: Mapping[str, str], title: str) -> str:
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


class NotebookFigure(Figure):
    """Figure in the style of this package, whatever style is set when it is saved."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save as `matplotlib.figure.Figure.savefig` does, without a date."""
        with style_context():
            super().savefig(fname, **reproducible_options(fname, options))

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


class NotebookAxes(Axes):
    """Axes that a notebook shows as their figure at the end of a cell."""

    def _repr_png_(self) -> bytes | None:
        picture = self.get_figure(root=True)
        return picture._repr_png_() if isinstance(picture, NotebookFigure) else None


INK = "#1c1c1c"
FAINT = "#a8a8a8"
ACCENT = "#0072b2"
SELECTED = "#d55e00"
NOISE = "#5f5f5f"
ROLES = {
    "ink": INK,
    "faint": FAINT,
    "accent": ACCENT,
    "chosen": SELECTED,
    "noise": NOISE,
    "third": "#009e73",
    "fourth": "#cc79a7",
    "fifth": "#56b4e9",
    "sixth": "#e69f00",
}
# Colours and markers of groups; readers do not distinguish more than six.
SERIES = (ACCENT, SELECTED, *(ROLES[role] for role in ("third", "fourth", "fifth", "sixth")))
MARKS = "osD^vP"

# Widths of a journal's column and page, in millimetres.
WIDTHS = {"column": 85.0, "page": 175.0}
_MM_AN_INCH = 25.4
# In points. On an HTML page a point is 1.5 pixels, and no text is smaller than 10 pixels.
SMALL, TINY = 7.0, 6.8

STYLE: dict[str, Any] = {
    "font.size": 8.0,
    # This font comes with matplotlib, so that plots are the same on every machine.
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "axes.titlesize": 8.0,
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "savefig.dpi": 200.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "streamsel",
    "pdf.fonttype": 42,
}


def style_context() -> AbstractContextManager[None]:
    """Return a context in which matplotlib draws in this style, overriding the user's."""
    style: AbstractContextManager[None] = optional.import_matplotlib("style").context(
        ["default", STYLE]
    )
    return style


def figure(
    width: Literal["column", "page"] = "column", height: float = 62.0
) -> tuple[Figure, Axes]:
    """Return a figure with one panel, not registered with pyplot.

    Parameters
    ----------
    width
        A journal's column, 85 mm, or its page, 175 mm.
    height
        In millimetres.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    optional.import_matplotlib()

    size = WIDTHS[width] / _MM_AN_INCH, height / _MM_AN_INCH
    with style_context():
        result = NotebookFigure(figsize=size, layout="constrained")
        ax: Axes = result.add_subplot(axes_class=NotebookAxes)
        # Ticks are created lazily, in the style of that time, so theirs is set here.
        ax.tick_params(labelsize=SMALL, width=STYLE["axes.linewidth"], length=2.5)
        ax.tick_params(color=INK, labelcolor=INK)
    return result, ax


@contextmanager
def axes_in_style(ax: Axes | None, height: float = 62.0) -> Iterator[Axes]:
    """Draw on the given axes unchanged, or on new ones in this style."""
    if ax is not None:
        yield ax
        return
    _, ax = figure(height=height)
    with style_context():
        yield ax


def colour_map(*colours: str, bad: str) -> Any:
    """Return a colour map from the first colour to the last, with `bad` for missing values."""
    linear = optional.import_matplotlib("colors").LinearSegmentedColormap.from_list
    return linear("streamsel", colours).with_extremes(bad=bad)


def add_colour_bar(panel: Axes, drawn: Any, label: str, **how: Any) -> None:
    """Draw a colour bar next to a panel."""
    bar = panel.figure.colorbar(drawn, ax=panel, fraction=0.046, pad=0.03, **how)
    solids: Any = bar.solids
    solids.set_rasterized(True)  # otherwise an SVG has hundreds of rectangles
    outline: Any = bar.outline
    outline.set_visible(False)
    bar.ax.tick_params(labelsize=TINY, length=2)
    bar.set_label(label)


def reproducible_options(to: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return options of `savefig` that leave the date and program out of the file."""
    suffix = PurePath(to).suffix if isinstance(to, str | PurePath) else ""
    dates = {"svg": ("Date", "Creator"), "pdf": ("CreationDate", "Creator", "Producer")}
    keys = dates.get(options.get("format") or suffix.lstrip(".").lower(), ())
    return options | {"metadata": dict.fromkeys(keys) | options.get("metadata", {})}


def to_svg(figure: Figure, *, page: bool = False) -> str:
    """Return a figure as SVG: the same bytes for the same figure, with text as text.

    Parameters
    ----------
    figure
        The figure.
    page
        Whether to make it embeddable in an HTML page: without prolog and fixed size, with colours
        as CSS variables, and with ids and styles that do not clash with other plots.
    """
    file = StringIO()
    with style_context():
        figure.savefig(file, **reproducible_options("", {"format": "svg", "transparent": page}))
    if not page:
        return file.getvalue()

    return embed_svg(file.getvalue(), ROLES, description_of(figure))


def set_description(ax: Axes, text: str) -> None:
    """Set the text alternative of a plot."""
    ax.set_label(text)


def description_of(figure: Figure) -> str:
    """Return the text alternatives of a figure's panels."""
    texts = (str(ax.get_label()) for ax in figure.axes)
    return " ".join(text for text in texts if text and not text.startswith("<"))
