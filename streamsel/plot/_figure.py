"""A figure that shows itself in a notebook, and that is saved as the same bytes every time.

It knows nothing of pyplot, so that drawing leaves nothing behind. matplotlib is imported here: this
module is, where something is drawn.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from streamsel.plot._style import dateless, styled


class Picture(Figure):
    """A figure in the style of this package, whatever style is set when it is saved."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save as `matplotlib.figure.Figure.savefig` does, without a date."""
        with styled():
            super().savefig(fname, **dateless(fname, options))

    def _repr_png_(self) -> bytes:
        """Return what a notebook shows."""
        file = BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


class Panel(Axes):
    """Axes whose figure a notebook shows where they stand last in a cell."""

    def _repr_png_(self) -> bytes | None:
        """Return what a notebook shows."""
        picture = self.get_figure(root=True)
        return picture._repr_png_() if isinstance(picture, Picture) else None
