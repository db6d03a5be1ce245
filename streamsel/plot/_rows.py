"""What stands one below the other, each with its name: bars and dots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsel.plot._words import name_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from matplotlib.axes import Axes

# In millimetres, of a row and of all that is around them.
_ROW, _AROUND = 3.6, 17.0
# More names than these nobody reads, and no page holds.
MOST_NAMED = 50
_NAMELESS = 110.0


def height_of(n: int) -> float:
    """Return the height of a picture of so many rows, in millimetres."""
    return _AROUND + _ROW * max(3, n) if n <= MOST_NAMED else _NAMELESS


def name_rows(ax: Axes, names: Sequence[Hashable]) -> None:
    """Let rows 0, 1, ... go down from the top, each with its name; many with their rank."""
    ax.set_ylim(len(names) - 0.4, -0.6)
    if len(names) > MOST_NAMED:
        ax.set_ylabel("rank")
        return
    ax.set_yticks(range(len(names)), [name_of(name) for name in names])
    ax.tick_params(axis="y", length=0)
