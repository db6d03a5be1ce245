"""Parts of axes that several plots share: rows with names or lengths, noise levels, legends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamsel.plot._labels import variable_label
from streamsel.plot.style import NOISE, TINY

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from matplotlib.axes import Axes

# Height of a row and of the margins, in millimetres.
_ROW, _MARGINS = 3.6, 17.0
# With more rows names are left out, and the height is fixed.
MAX_NAMED = 50
_UNNAMED_HEIGHT = 110.0


def height_of_rows(n: int) -> float:
    """Return the height of a plot with n rows, in millimetres."""
    return _MARGINS + _ROW * max(3, n) if n <= MAX_NAMED else _UNNAMED_HEIGHT


def label_rows(ax: Axes, names: Sequence[Hashable]) -> None:
    """Label rows 0, 1, ... from the top with their names, or with ranks if there are many."""
    ax.set_ylim(len(names) - 0.4, -0.6)
    if len(names) > MAX_NAMED:
        ax.set_ylabel("rank")
        return
    ax.set_yticks(range(len(names)), [variable_label(name) for name in names])
    ax.tick_params(axis="y", length=0)


def draw_bars(
    ax: Axes, names: Sequence[Hashable], lengths: Sequence[float], colours: Sequence[str]
) -> None:
    """Draw a horizontal bar per row, and label the rows."""
    ax.barh(range(len(names)), lengths, height=0.62, color=colours)
    label_rows(ax, names)


def draw_noise_level(ax: Axes, level: float, *, vertical: bool = False, **how: Any) -> None:
    """Draw the level of noise, a dashed line across the axes."""
    draw = ax.axvline if vertical else ax.axhline
    draw(level, color=NOISE, lw=0.9, ls=(0, (4, 2.5)), **how)


def annotate_noise(
    ax: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **how: Any
) -> None:
    """Write a note about noise at an offset, in points, from a point."""
    ax.annotate(text, at, offset, textcoords="offset points", color=NOISE, fontsize=TINY, **how)


def add_legend_above(ax: Axes, n_columns: int = 1) -> None:
    """Draw the legend above the right end of the axes."""
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=n_columns, borderpad=0.1)
