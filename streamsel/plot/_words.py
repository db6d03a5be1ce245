"""Names and numbers as pictures show them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.escape import shown
from streamsel.plot._style import TINY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

_LONGEST = 24
# Of the size of the letters: their mean width, and the height of a line.
_WIDE, _HIGH = 0.66, 1.15
# Where a name may stand, in points from its point.
_BESIDE = ((4, 0), (-4, 0), (3, 7), (3, -7), (-3, 7), (-3, -7))
_Room = tuple[float, float, float, float]


def name_of(name: Hashable) -> str:
    """Write a variable's name so that all of it can be seen, and none is taken for a formula."""
    text = shown(name)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 9]}…{text[-8:]}"
    return text.replace("$", r"\$")


def count(n: int, what: str) -> str:
    """Write how many there are of something."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def whole(value: float, _: float = 0.0) -> str:
    """Write a whole number on an axis; nothing at other ticks."""
    return f"{value:,.0f}" if value == round(value) else ""


def name_points(
    ax: Axes, names: Sequence[Hashable], x: Sequence[float], y: Sequence[float]
) -> None:
    """Write names beside points, the first ones first, where there is room.

    The limits of the axes must stand.
    """
    figure: Any = ax.get_figure(root=True)
    engine = figure.get_layout_engine()
    if engine is not None:  # what stands beside the axes takes room
        engine.execute(figure)
    points = 72.0 / ax.figure.dpi
    panel = ax.get_window_extent()
    left, right = panel.x0 * points, panel.x1 * points
    spots = ax.transData.transform(np.column_stack([x, y])) * points
    taken = [(px - 2.0, py - 2.0, px + 2.0, py + 2.0) for px, py in spots.tolist()]
    for i, name in enumerate(names):
        text = name_of(name)
        wide, high = _WIDE * TINY * len(text), _HIGH * TINY
        for dx, dy in _BESIDE:
            px, py = spots[i, 0] + dx, spots[i, 1] + dy
            start = px if dx > 0 else px - wide
            room = (start, py - high / 2, start + wide, py + high / 2)
            fits = room[0] >= left and room[2] <= right
            if fits and not any(_overlap(room, other) for other in taken):
                ax.annotate(
                    text,
                    (x[i], y[i]),
                    (dx, dy),
                    textcoords="offset points",
                    ha="left" if dx > 0 else "right",
                    va="center",
                    fontsize=TINY,
                )
                taken.append(room)
                break


def _overlap(one: _Room, other: _Room) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
