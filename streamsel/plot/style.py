"""Style of the plots: colours, sizes, axes, and byte-reproducible files.

Plots on the axes of a user have the user's style, apart from the colours below. Those of the
command and of reports are drawn on `PrintAxes`, in one style on every machine. Colours are Okabe
and Ito's palette, which is safe for colour-blind readers. Each has a role, by which a page can
override it: `var(--chosen, #d55e00)`.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal

from streamsel._utils import optional
from streamsel.plot.svg import embed_svg, reproducible_options

try:
    from matplotlib import rcParams
    from matplotlib.axes import Axes
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.figure import Figure
except ImportError as error:
    raise optional.missing_matplotlib_error() from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class PrintFigure(Figure):
    """Figure in the style of this package, whatever style is set when it is saved.

    Attributes
    ----------
    hover
        Id of an artist -> texts that a page shows under the mouse; see `set_hover`.
    on_page
        Called before the figure is drawn for a page.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.hover: dict[str, Sequence[str]] = {}
        self.on_page: list[Callable[[], None]] = []

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save as `matplotlib.figure.Figure.savefig` does, without a date."""
        with style_context():
            super().savefig(fname, **reproducible_options(fname, options))


class PrintAxes(Axes):
    """Axes of a `PrintFigure`, whose height follows from what is drawn."""


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
    "card": "#ffffff",
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
_MM_PER_INCH = 25.4
# In points. On an HTML page a point is 1.5 pixels, and no text is smaller than 10 pixels.
SMALL = 7.0

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
) -> tuple[PrintFigure, PrintAxes]:
    """Return a figure with one panel, in the style of this package, not registered with pyplot.

    Parameters
    ----------
    width
        A journal's column, 85 mm, or its page, 175 mm.
    height
        In millimetres, until a plot on the axes sets its own.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    size = WIDTHS[width] / _MM_PER_INCH, height / _MM_PER_INCH
    with style_context():
        result = PrintFigure(figsize=size, layout="constrained")
        ax: Any = result.add_subplot(axes_class=PrintAxes)
        # Ticks are created lazily, in the style of that time, so theirs is set here.
        ax.tick_params(labelsize=SMALL, width=STYLE["axes.linewidth"], length=2.5)
        ax.tick_params(color=INK, labelcolor=INK)
    return result, ax


@contextmanager
def axes_in_style(
    ax: Axes | None, height: float | None = None, *, has_rows: bool = False
) -> Iterator[Axes]:
    """Draw on the given axes; None for the current ones.

    Parameters
    ----------
    ax
        Axes, which keep the style and size that they have; those of `figure` get a height.
    height
        Height of the figure in millimetres, for text of 8 points; None for the default.
    has_rows
        Whether the height is that of rows with names, so that a new figure of pyplot has it, too.
    """
    if ax is None:
        ax = _current_axes(height if has_rows else None)
    if not isinstance(ax, Axes):
        raise TypeError(
            f"Expected the axes of matplotlib as ax. Got: {type(ax).__name__}.\n"
            "Hint: plot.heatmap and plot.scatter take rows of data as well."
        )
    drawn_on = ax.get_figure(root=True)
    if not (isinstance(ax, PrintAxes) and isinstance(drawn_on, PrintFigure)):
        yield ax
        return
    if height is not None:
        drawn_on.set_figheight(height / _MM_PER_INCH)
    with style_context():
        yield ax


def _current_axes(height: float | None) -> Axes:
    """Return the current axes of pyplot, in a new figure if there is none."""
    pyplot = optional.import_matplotlib("pyplot")
    if not pyplot.get_fignums():
        made = pyplot.figure(layout="constrained")
        if height is not None:
            made.set_figheight(relative_size() * height / _MM_PER_INCH)
    ax: Axes = pyplot.gca()
    return ax


def apply_layout(ax: Axes) -> bool:
    """Give the axes their final position: labels, legends and colour bars reduce them.

    Returns
    -------
    Whether there is room for the axes. Drawing the figure warns if there is not.
    """
    drawn_on: Any = ax.get_figure(root=True)
    engine = drawn_on.get_layout_engine()
    if engine is None:
        return True
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        engine.execute(drawn_on)
    return not any("collapsed" in str(warning.message) for warning in found)


def merge_properties(artist: type[Any], defaults: dict[str, Any], given: dict[str, Any]) -> Any:
    """Return the properties of an artist, those given by the user first, whatever their spelling.

    Parameters
    ----------
    artist
        Class of the artist.
    defaults
        Properties by their long names.
    given
        Properties, also by their short names, such as `lw`.
    """
    return defaults | normalize_kwargs(given, artist)


def ink() -> str:
    """Return the colour of text and lines in the style of the axes, which may be dark."""
    colour: str = rcParams["text.color"]
    return colour


def paper() -> str:
    """Return the colour behind a plot, in the style of the axes."""
    colour: str = rcParams["axes.facecolor"]
    return colour


def muted() -> str:
    """Return a less prominent colour than that of text, in the style of the axes."""
    red, green, blue = optional.import_matplotlib("colors").to_rgb(ink())
    return FAINT if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5 else NOISE


def relative_size() -> float:
    """Return the size of text in the style of the axes, relative to that of this package."""
    size: float = rcParams["font.size"] / STYLE["font.size"]
    return size


def small_size() -> float:
    """Return the size of small text, in points."""
    return 6.8 * relative_size()


def set_hover(ax: Axes, artist: Any, texts: Sequence[str]) -> None:
    """Set the texts that a page shows under the mouse.

    Parameters
    ----------
    ax
        Axes of the artist; nothing is set on axes of a user, which are in no page.
    artist
        The artist: a line or a collection with markers, or any other with a single text.
    texts
        One per marker, or one for all of the artist.
    """
    drawn_on = ax.get_figure(root=True)
    if isinstance(drawn_on, PrintFigure):
        if artist.get_gid() is None:
            artist.set_gid(f"hover {len(drawn_on.hover)}")
        drawn_on.hover[artist.get_gid()] = texts


def set_hover_of_cells(ax: Axes, texts: Sequence[Sequence[str]]) -> None:
    """Set the texts of the cells of an image, row by row, that a page shows under the mouse."""
    drawn_on = ax.get_figure(root=True)
    if isinstance(drawn_on, PrintFigure):
        drawn_on.on_page.append(partial(_draw_cells, ax, texts))


def _draw_cells(ax: Axes, texts: Sequence[Sequence[str]]) -> None:
    rows, columns = len(texts), len(texts[0])
    # Squares that are not seen, as an image has no elements: their side is in points.
    apply_layout(ax)
    ax.autoscale(enable=False)
    width = ax.bbox.width * 72.0 / ax.figure.dpi / columns
    cells_at = [(j, i) for i in range(rows) for j in range(columns)]
    x, y = zip(*cells_at, strict=True)
    cells = ax.scatter(x, y, s=width**2, marker="s", alpha=0.0, linewidths=0)
    set_hover(ax, cells, [text for row in texts for text in row])


def add_colour_bar(panel: Axes, drawn: Any, label: str, **how: Any) -> None:
    """Draw a colour bar next to a panel."""
    bar = panel.figure.colorbar(drawn, ax=panel, fraction=0.046, pad=0.03, **how)
    solids: Any = bar.solids
    solids.set_rasterized(True)  # otherwise an SVG has hundreds of rectangles
    outline: Any = bar.outline
    outline.set_visible(False)
    bar.ax.tick_params(labelsize=small_size(), length=2)
    bar.set_label(label)


def to_svg(figure: PrintFigure, *, page: bool = False) -> str:
    """Return a figure as SVG: the same bytes for the same figure, with text as text.

    Parameters
    ----------
    figure
        The figure, by `figure`.
    page
        Whether to make it embeddable in an HTML page: without prolog and fixed size, with colours
        as CSS variables, and with ids and styles that do not clash with other plots.
    """
    while page and figure.on_page:
        figure.on_page.pop()()
    file = StringIO()
    with style_context():
        figure.savefig(file, **reproducible_options("", {"format": "svg", "transparent": page}))
    if not page:
        return file.getvalue()

    return embed_svg(file.getvalue(), ROLES, description_of(figure), figure.hover)


def set_description(ax: Axes, text: str) -> None:
    """Set the text alternative of a plot."""
    ax.set_label(text)


def description_of(figure: Figure) -> str:
    """Return the text alternatives of a figure's panels."""
    texts = (str(ax.get_label()) for ax in figure.axes)
    return " ".join(text for text in texts if text and not text.startswith("<"))
