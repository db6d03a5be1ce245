"""Heat map of the correlations of the selected variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.base.row_input import select_features
from streamsel.plot._labels import count_label, variable_label
from streamsel.plot.inputs import check_has_columns, report_from
from streamsel.plot.style import (
    ACCENT,
    FAINT,
    SELECTED,
    TINY,
    add_colour_bar,
    axes_in_style,
    colour_map,
    set_description,
)
from streamsel.state.base import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With more variables names are left out.
_MAX_NAMED = 32


def heatmap(model: Any, X: Any, ax: Axes | None = None) -> Axes:
    """Plot the correlations of the selected variables, in order of selection.

    Parameters
    ----------
    model
        A selector, or its report.
    X
        Rows with these variables: a frame, an array or sparse matrix (whose columns are named
        from 0), or a `ColumnStream`. Only the selected variables are read.
    ax
        Axes to draw on; None makes a figure, 85 mm wide.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    TypeError
        For an extractor, and for objects that are not models.
    ValueError
        For a model that has selected nothing, and for rows without one of the variables, or with
        infinite values.
    ImportError
        Without matplotlib.

    Notes
    -----
    Missing values are replaced by the mean of the others. Variables that are constant
    in these rows have no correlation, and are grey.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import SelectKBest, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 500))
    >>> model = SelectKBest(k=3)
    >>> model.learn_target(X[:, 7])
    >>> model.learn_columns(X)
    >>> ax = plot.heatmap(model, X)
    >>> ax.images[0].get_array().shape
    (3, 3)
    """
    report = report_from(model, "selected")
    names = [row["name"] for row in report.results]
    check_has_columns(X, names)
    found = correlation_matrix(select_features(X, names))
    with axes_in_style(ax, height=72.0) as panel:
        image = panel.imshow(
            np.ma.masked_invalid(found),
            cmap=colour_map(SELECTED, "#f7f7f7", ACCENT, bad=FAINT),
            vmin=-1.0,
            vmax=1.0,
            interpolation="none",
        )
        add_colour_bar(panel, image, "correlation", ticks=[-1, 0, 1])
        if len(names) <= _MAX_NAMED:
            shown = [variable_label(name) for name in names]
            panel.set_xticks(range(len(names)), shown, rotation=90, fontsize=TINY)
            panel.set_yticks(range(len(names)), shown, fontsize=TINY)
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
        set_description(panel, f"Correlations of {count_label(len(names), 'selected variable')}.")
    return panel


def correlation_matrix(X: Floats) -> Floats:
    """Return the correlations of the columns of X; NaN for constant columns."""
    if np.isinf(X).any():
        raise ValueError("Expected finite values, or missing ones. Got: an infinite one.")
    missing = np.isnan(X)
    n = np.maximum(1, (~missing).sum(axis=0))
    C = np.where(missing, 0.0, X - np.where(missing, 0.0, X).sum(axis=0) / n)
    length = np.linalg.norm(C, axis=0)
    # A constant column has a residual of rounding errors.
    size = np.abs(np.where(missing, 0.0, X)).max(axis=0, initial=0.0)
    length[length <= 1e-12 * size * np.sqrt(len(X))] = np.nan
    C /= length
    found: Floats = np.clip(C.T @ C, -1.0, 1.0)
    return found
