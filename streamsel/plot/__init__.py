"""Plots of fitted models: each function takes a learner or its report, and returns Axes.

As in seaborn, a plot is drawn on `ax`, by default the current axes of pyplot, and further keyword
arguments are properties of what it draws.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from streamsel._utils.lazy import lazy_names

if TYPE_CHECKING:
    from streamsel.plot._heatmap import heatmap
    from streamsel.plot._history import history
    from streamsel.plot._loadings import loadings
    from streamsel.plot._manhattan import manhattan
    from streamsel.plot._qq import qq
    from streamsel.plot._scatter import scatter
    from streamsel.plot._scree import scree
    from streamsel.plot._selection_path import selection_path
    from streamsel.plot._stability import stability

__all__ = [
    "heatmap",
    "history",
    "loadings",
    "manhattan",
    "qq",
    "scatter",
    "scree",
    "selection_path",
    "stability",
]

# Reports without plots do without matplotlib.
__getattr__, __dir__ = lazy_names(
    __name__, __all__, lambda name: getattr(import_module(f"{__name__}._{name}"), name)
)
