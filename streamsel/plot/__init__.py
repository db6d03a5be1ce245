"""Plots of fitted models: each function takes a learner or its report, and returns Axes."""

from __future__ import annotations

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
