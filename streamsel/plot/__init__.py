"""Plots of fitted models: each function takes a learner or its report, and returns Axes."""

from __future__ import annotations

from streamsel.plot._heatmap import heatmap
from streamsel.plot._history import history
from streamsel.plot._loadings import loadings
from streamsel.plot._null import null
from streamsel.plot._path import path
from streamsel.plot._relevance import relevance
from streamsel.plot._scatter import scatter
from streamsel.plot._scree import scree
from streamsel.plot._stability import stability

__all__ = [
    "heatmap",
    "history",
    "loadings",
    "null",
    "path",
    "relevance",
    "scatter",
    "scree",
    "stability",
]
