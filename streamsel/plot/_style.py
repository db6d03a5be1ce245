"""Style of the plots: sizes, colours, and byte-reproducible SVG.

Colours are Okabe and Ito's palette, which is safe for colour-blind readers. Each has a role, by
which a page can override it: `var(--chosen, #d55e00)`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from io import StringIO
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

from streamsel import extras

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1c1c1c"
FAINT = "#a8a8a8"
ACCENT = "#0072b2"
CHOSEN = "#d55e00"
NOISE = "#5f5f5f"
ROLES = {
    "ink": INK,
    "faint": FAINT,
    "accent": ACCENT,
    "chosen": CHOSEN,
    "noise": NOISE,
    "third": "#009e73",
    "fourth": "#cc79a7",
    "fifth": "#56b4e9",
    "sixth": "#e69f00",
}
# Colours and markers of groups; readers do not distinguish more than six.
SERIES = (ACCENT, CHOSEN, *(ROLES[role] for role in ("third", "fourth", "fifth", "sixth")))
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


def styled() -> AbstractContextManager[None]:
    """Return a context in which matplotlib draws in this style, overriding the user's."""
    style: AbstractContextManager[None] = extras.matplotlib("style").context(["default", STYLE])
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
    extras.matplotlib()
    from streamsel.plot._figure import Panel, Picture

    size = WIDTHS[width] / _MM_AN_INCH, height / _MM_AN_INCH
    with styled():
        result = Picture(figsize=size, layout="constrained")
        ax: Axes = result.add_subplot(axes_class=Panel)
        # Ticks are created lazily, in the style of that time, so theirs is set here.
        ax.tick_params(labelsize=SMALL, width=STYLE["axes.linewidth"], length=2.5)
        ax.tick_params(color=INK, labelcolor=INK)
    return result, ax


@contextmanager
def drawing(ax: Axes | None, height: float = 62.0) -> Iterator[Axes]:
    """Draw on the given axes unchanged, or on new ones in this style."""
    if ax is not None:
        yield ax
        return
    _, ax = figure(height=height)
    with styled():
        yield ax


def blend(*colours: str, bad: str) -> Any:
    """Return a colour map from the first colour to the last, with `bad` for missing values."""
    linear = extras.matplotlib("colors").LinearSegmentedColormap.from_list
    return linear("streamsel", colours).with_extremes(bad=bad)


def key_of_colours(panel: Axes, drawn: Any, label: str, **how: Any) -> None:
    """Draw a colour bar next to a panel."""
    bar = panel.figure.colorbar(drawn, ax=panel, fraction=0.046, pad=0.03, **how)
    solids: Any = bar.solids
    solids.set_rasterized(True)  # otherwise an SVG has hundreds of rectangles
    outline: Any = bar.outline
    outline.set_visible(False)
    bar.ax.tick_params(labelsize=TINY, length=2)
    bar.set_label(label)


def dateless(to: Any, options: dict[str, Any]) -> dict[str, Any]:
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
    with styled():
        figure.savefig(file, **dateless("", {"format": "svg", "transparent": page}))
    if not page:
        return file.getvalue()
    from streamsel.plot._svg import for_a_page

    return for_a_page(file.getvalue(), ROLES, title_of(figure))


def describe(ax: Axes, text: str) -> None:
    """Set the text alternative of a plot."""
    ax.set_label(text)


def title_of(figure: Figure) -> str:
    """Return the text alternatives of a figure's panels."""
    texts = (str(ax.get_label()) for ax in figure.axes)
    return " ".join(text for text in texts if text and not text.startswith("<"))
