"""Named rows of bar and dot plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsel.plot._words import name_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from matplotlib.axes import Axes

# Height of a row and of the margins, in millimetres.
_ROW, _MARGINS = 3.6, 17.0
# With more rows names are left out, and the height is fixed.
MAX_NAMED = 50
_UNNAMED_HEIGHT = 110.0


def height_of(n: int) -> float:
    """Return the height of a plot with n rows, in millimetres."""
    return _MARGINS + _ROW * max(3, n) if n <= MAX_NAMED else _UNNAMED_HEIGHT


def name_rows(ax: Axes, names: Sequence[Hashable]) -> None:
    """Label rows 0, 1, ... from the top with their names, or with ranks if there are many."""
    ax.set_ylim(len(names) - 0.4, -0.6)
    if len(names) > MAX_NAMED:
        ax.set_ylabel("rank")
        return
    ax.set_yticks(range(len(names)), [name_of(name) for name in names])
    ax.tick_params(axis="y", length=0)
