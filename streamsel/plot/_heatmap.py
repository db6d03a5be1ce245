"""Heat map of the correlations of the selected variables."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.base.frame_columns import select_features
from streamsel.plot._axes import rank_ticks
from streamsel.plot._labels import count_label, hover_name, variable_label
from streamsel.plot.inputs import check_has_columns, check_has_rows, report_from, selected_columns
from streamsel.plot.style import (
    FAINT,
    add_colour_bar,
    apply_layout,
    axes_in_style,
    set_description,
    set_hover_of_cells,
    small_size,
)
from streamsel.state.similar import correlation_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With more variables the texts of cells under the mouse are left out.
_MAX_HOVER = 24


def heatmap(model: Any, X: Any, ax: Axes | None = None, **kwargs: Any) -> Axes:
    """Plot the correlations of the selected variables, in order of selection.

    Selected groups are shown by their columns.

    Parameters
    ----------
    model
        A selector, or its report; a report lacks the columns of groups.
    X
        Rows with these variables: a frame, an array or sparse matrix (whose columns are named
        from 0), or a `ColumnStream`. Only the selected variables are read.
    ax
        Axes to draw on; None draws on the current axes of pyplot.
    **kwargs
        Further arguments of `Axes.imshow`, such as `cmap`.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    TypeError
        For an extractor, and for objects that are not models.
    ValueError
        For a model that has selected nothing, for a report of groups, for fewer than two rows, and
        for rows without one of the variables, or with infinite values.
    ImportError
        Without matplotlib.

    Notes
    -----
    Missing values are replaced by the mean of the others. Variables that are constant in these rows
    have no correlation, and are grey. Negative correlations are blue and positive ones red, unless
    `cmap` is given. Names that would overlap are replaced by ranks. An earlier image on the axes is
    covered, and its colour bar is removed.

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
    names = selected_columns(model, report_from(model, "selected"))
    check_has_columns(X, names)
    values = select_features(X, names)
    check_has_rows(values)
    found = correlation_matrix(values)
    with axes_in_style(ax, height=72.0) as panel:
        for covered in panel.images:
            if covered.colorbar is not None:
                covered.colorbar.remove()
        properties: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -1.0, "vmax": 1.0}
        properties |= {"interpolation": "none"} | kwargs
        image = panel.imshow(np.ma.masked_invalid(found), **properties)
        image.set_cmap(image.get_cmap().with_extremes(bad=FAINT))
        add_colour_bar(panel, image, "correlation")
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
        _label_cells(panel, [variable_label(name) for name in names])
        if len(names) <= _MAX_HOVER:
            texts = [
                [
                    f"{hover_name(a)}, {hover_name(b)}: {'undefined' if isnan(r) else f'{r:.2f}'}"
                    for b, r in zip(names, row, strict=True)
                ]
                for a, row in zip(names, found.tolist(), strict=True)
            ]
            set_hover_of_cells(panel, texts)
        set_description(panel, f"Correlations of {count_label(len(names), 'selected variable')}.")
    return panel


def _label_cells(panel: Axes, names: list[str]) -> None:
    """Label rows and columns with names, or with ranks if the names would overlap."""
    panel.set_xticks(range(len(names)), names, rotation=90, fontsize=small_size())
    panel.set_yticks(range(len(names)), names, fontsize=small_size())
    fits = _lay_out_squares(panel)
    side = min(panel.bbox.width, panel.bbox.height)
    cell = side * 72.0 / panel.figure.dpi / len(names)
    if not fits or cell < small_size():
        panel.set_xticks(*rank_ticks(len(names)), rotation=0)
        panel.set_yticks(*rank_ticks(len(names)))
        panel.set_xlabel("rank")
        _lay_out_squares(panel)


def _lay_out_squares(panel: Axes) -> bool:
    # With an equal aspect the layout needs several passes.
    apply_layout(panel)
    return apply_layout(panel)
