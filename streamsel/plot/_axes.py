"""Parts of axes that several plots share: rows with names or lengths, noise levels, legends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamsel._utils import optional
from streamsel.plot._labels import variable_label
from streamsel.plot.style import (
    merge_properties,
    muted,
    relative_size,
    set_hover,
    small_size,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from matplotlib.axes import Axes

# Height of a row and of the margins, in millimetres.
_ROW, _MARGINS = 3.6, 17.0
# With more rows names are left out, and the height is fixed.
MAX_NAMED = 50
_UNNAMED_HEIGHT = 110.0
# Distances between the ranks that are ticks.
_STEPS = [factor * 10**power for power in range(1, 12) for factor in (1, 2, 5)]


def height_of_rows(n: int) -> float:
    """Return the height of a plot with n rows, in millimetres."""
    return _MARGINS + _ROW * max(3, n) if n <= MAX_NAMED else _UNNAMED_HEIGHT


def label_rows(ax: Axes, names: Sequence[Hashable]) -> None:
    """Label rows 0, 1, ... from the top with their names, or with ranks if there are many."""
    ax.set_ylim(len(names) - 0.4, -0.6)
    if len(names) > MAX_NAMED:
        ax.set_ylabel("rank")
        ax.set_yticks(*rank_ticks(len(names)))
        return
    ax.set_yticks(range(len(names)), [variable_label(name) for name in names])
    ax.tick_params(axis="y", length=0)


def rank_ticks(n: int) -> tuple[list[int], list[str]]:
    """Return the indices of at most eleven ranks from 1 to n, and their labels."""
    step = next(step for step in _STEPS if n <= 10 * step)
    ranks = [1, *range(step, n + 1, step)]
    return [rank - 1 for rank in ranks], [f"{rank:,}" for rank in ranks]


def draw_bars(
    ax: Axes,
    names: Sequence[Hashable],
    lengths: Sequence[float],
    colours: Sequence[str],
    texts: Sequence[str],
    given: dict[str, Any],
) -> None:
    """Draw a horizontal bar per row, and label the rows.

    Parameters
    ----------
    ax
        The axes.
    names, lengths, colours, texts
        One per row; a page shows the texts under the mouse.
    given
        Properties given by the user.
    """
    patches = optional.import_matplotlib("patches")
    properties = merge_properties(patches.Rectangle, {"color": colours, "height": 0.62}, given)
    bars = ax.barh(range(len(names)), lengths, **properties)
    for bar, text in zip(bars, texts, strict=True):
        set_hover(ax, bar, [text])
    label_rows(ax, names)


def draw_points(
    ax: Axes, x: Any, y: Any, texts: Sequence[str], given: dict[str, Any], **defaults: Any
) -> Any:
    """Draw points, and return them.

    Parameters
    ----------
    ax
        The axes.
    x, y, texts
        One per point; a page shows the texts under the mouse.
    given
        Properties given by the user.
    **defaults
        Properties otherwise, by their long names; `markersize` for text of 8 points.
    """
    lines = optional.import_matplotlib("lines")
    properties = {"marker": "o", "linestyle": "none"} | defaults
    properties["markersize"] *= relative_size()
    (points,) = ax.plot(x, y, **merge_properties(lines.Line2D, properties, given))
    set_hover(ax, points, texts)
    return points


def draw_noise_level(ax: Axes, level: float, *, vertical: bool = False, **how: Any) -> None:
    """Draw the level of noise, a dashed line across the axes."""
    draw = ax.axvline if vertical else ax.axhline
    draw(level, color=muted(), lw=0.9, ls=(0, (4, 2.5)), **how)


def annotate_noise(
    ax: Axes, text: str, point: tuple[float, float], offset: tuple[float, float], **how: Any
) -> None:
    """Write a note about noise at an offset, in points, from a point."""
    style: dict[str, Any] = {"color": muted(), "fontsize": small_size()}
    ax.annotate(text, point, offset, textcoords="offset points", **style, **how)


def add_legend_above(ax: Axes, n_columns: int = 1) -> None:
    """Draw the legend above the right end of the axes."""
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=n_columns, borderpad=0.1)
