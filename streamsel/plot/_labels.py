"""Labels of plots: of variables, numbers and points."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from streamsel._utils.text import printable
from streamsel.plot.style import apply_layout, ink, paper, small_size
from streamsel.state.base import Floats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

# Numbers of characters of a name in a label, and in a text under the mouse.
_MAX_LENGTH, _MAX_HOVER_LENGTH = 24, 40
# Mean width of letters and height of a line, relative to the font size.
_LETTER_WIDTH, _LINE_HEIGHT = 0.66, 1.15
# Candidate offsets of a label from its point, in points.
_OFFSETS = ((4, 0), (-4, 0), (3, 7), (3, -7), (-3, 7), (-3, -7))
_Box = tuple[float, float, float, float]


def variable_label(name: Hashable) -> str:
    """Return a variable's name as a label, with every character visible and no formula."""
    return _shortened(name, _MAX_LENGTH).replace("$", r"\$")


def hover_name(name: Hashable) -> str:
    """Return a variable's name for a text under the mouse, with every character visible."""
    return _shortened(name, _MAX_HOVER_LENGTH)


def _shortened(name: Hashable, n: int) -> str:
    text = printable(name)
    return text if len(text) <= n else f"{text[: n - 9]}…{text[-8:]}"


def count_label(n: int, what: str) -> str:
    """Return a number with its noun: "1 row", "1,000 rows"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def integer_label(value: float, _: float = 0.0) -> str:
    """Return the label of a tick at a whole number; an empty one at other ticks."""
    return f"{value:,.0f}" if value == round(value) else ""


def fitting_labels(ax: Axes, labels: Sequence[str], x: Floats) -> list[str]:
    """Return the labels of ticks at ascending x, empty where the previous one leaves no room.

    The limits of the axes must be final.
    """
    size = float(ax.xaxis.get_major_ticks(1)[0].label1.get_fontsize())
    points = 72.0 / ax.figure.dpi
    panel = ax.get_window_extent()
    left, right = ax.get_xlim()
    positions = (x - left) / (right - left) * panel.width * points
    found, end = [], -np.inf
    for label, centre in zip(labels, positions.tolist(), strict=True):
        half = _LETTER_WIDTH * size * max(1, len(label)) / 2.0
        fits = centre - half >= end
        found.append(label if fits else "")
        end = centre + half if fits else end
    return found


def label_points(
    ax: Axes,
    names: Sequence[Hashable],
    x: Sequence[float],
    y: Sequence[float],
    level: float | None = None,
) -> None:
    """Label points that have room, in the order of `names`.

    The limits of the axes must be final. No label is on the horizontal line at `level`.
    """
    apply_layout(ax)
    points, size = 72.0 / ax.figure.dpi, small_size()
    background = {"facecolor": paper(), "edgecolor": "none", "alpha": 0.7, "pad": 0.6}
    panel = ax.get_window_extent()
    left, right = panel.x0 * points, panel.x1 * points
    positions = ax.transData.transform(np.column_stack([x, y])) * points
    occupied = [(px - 2.0, py - 2.0, px + 2.0, py + 2.0) for px, py in positions.tolist()]
    if level is not None:
        line = float(ax.transData.transform((0.0, level))[1]) * points
        occupied.append((left, line - 0.5, right, line + 0.5))
    for i, name in enumerate(names):
        text = variable_label(name)
        width, height = _LETTER_WIDTH * size * len(text), _LINE_HEIGHT * size
        for dx, dy in _OFFSETS:
            px, py = positions[i, 0] + dx, positions[i, 1] + dy
            start = px if dx > 0 else px - width
            box = (start, py - height / 2, start + width, py + height / 2)
            fits = box[0] >= left and box[2] <= right
            if fits and not any(_overlap(box, other) for other in occupied):
                ax.annotate(
                    text,
                    (x[i], y[i]),
                    (dx, dy),
                    textcoords="offset points",
                    ha="left" if dx > 0 else "right",
                    va="center",
                    fontsize=size,
                    bbox=background,
                )
                occupied.append(box)
                break


def label_line_ends(
    ax: Axes, names: Sequence[Hashable], y: Sequence[float], colours: Sequence[str]
) -> None:
    """Label lines to the right of the axes, at the heights of their ends or close to these.

    The limits of the axes must be final.
    """
    apply_layout(ax)
    size = small_size()
    points = 72.0 / ax.figure.dpi
    ends = [float(ax.transData.transform((0.0, value))[1]) * points for value in y]
    heights = _spread(ends, _LINE_HEIGHT * size)
    right = ax.get_xlim()[1]
    for name, value, end, height, colour in zip(names, y, ends, heights, colours, strict=True):
        ax.annotate(
            variable_label(name),
            (right, value),
            (14.0, height - end),
            textcoords="offset points",
            va="center",
            fontsize=size,
            color=ink(),
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "lw": 1.2,
                "shrinkA": 1.0,
                "shrinkB": 0.0,
                "relpos": (0.0, 0.5),
            },
            annotation_clip=False,
        )


def _spread(preferred: Sequence[float], gap: float) -> list[float]:
    """Return the numbers at least `gap` apart that are closest to the preferred ones, in order."""
    # Of numbers that are too close the mean stays; blocks: sum of preferred - offset, and size.
    order = sorted(range(len(preferred)), key=lambda i: preferred[i])
    blocks: list[tuple[float, int]] = []
    for rank, i in enumerate(order):
        block = (preferred[i] - rank * gap, 1)
        while blocks and blocks[-1][0] / blocks[-1][1] > block[0] / block[1]:
            total, n = blocks.pop()
            block = (total + block[0], n + block[1])
        blocks.append(block)
    levels = [total / n for total, n in blocks for _ in range(n)]
    found = [0.0] * len(preferred)
    for rank, i in enumerate(order):
        found[i] = levels[rank] + rank * gap
    return found


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
