"""Figure with a notebook representation, saved byte-reproducibly.

It is not registered with pyplot, so that drawing leaves no global state. This module imports
matplotlib, and is itself imported only when a plot is drawn.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from streamsel.plot._style import dateless, styled


class Picture(Figure):
    """Figure in the style of this package, whatever style is set when it is saved."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save as `matplotlib.figure.Figure.savefig` does, without a date."""
        with styled():
            super().savefig(fname, **dateless(fname, options))

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


class Panel(Axes):
    """Axes that a notebook shows as their figure at the end of a cell."""

    def _repr_png_(self) -> bytes | None:
        picture = self.get_figure(root=True)
        return picture._repr_png_() if isinstance(picture, Picture) else None
