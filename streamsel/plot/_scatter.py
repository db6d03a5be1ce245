"""Scatter plot of rows by two components."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.base.report import Report
from streamsel.base.row_input import as_frame
from streamsel.plot._labels import count_label, variable_label
from streamsel.plot.inputs import check_has_columns, report_from
from streamsel.plot.style import (
    ACCENT,
    FAINT,
    MARKS,
    SERIES,
    add_colour_bar,
    axes_in_style,
    set_description,
)
from streamsel.serialization.json_values import as_array
from streamsel.state.base import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More points than this are rasterised in an SVG.
_MAX_VECTOR_POINTS = 800


def scatter(
    model: Any,
    X: Any = None,
    y: Any = None,
    ax: Axes | None = None,
    components: tuple[int, int] = (0, 1),
) -> Axes:
    """Plot rows by two components.

    Parameters
    ----------
    model
        A fitted extractor; not its report, which does not hold the rows.
    X
        Rows, as for `transform_many`; None for the rows that were learnt, by a model that has
        learnt columns only.
    y
        Values of the rows by which to colour them: labels, the six most frequent in
        colour, or numbers; None for one colour. Whole numbers with at most six distinct values are
        labels.
    ax
        Axes to draw on; None makes a figure, 85 mm wide.
    components
        Numbers of two components, as in their names: (0, 1) are `pca0` and `pca1`.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    TypeError
        For a selector, a report, and for objects that are not models.
    ValueError
        For a model without results, one that has learnt rows if X is None, a component
        that does not exist, and a y of another length.
    ImportError
        Without matplotlib.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import PCA, plot
    >>> X = np.random.default_rng(0).normal(size=(100, 500))
    >>> X[:50] += 1.0
    >>> model = PCA(n_components=2)
    >>> model.learn_columns(X)
    >>> ax = plot.scatter(model, y=["a"] * 50 + ["b"] * 50)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a (50)', 'b (50)']
    """
    if isinstance(model, Report):
        raise TypeError(
            f"Expected an extractor. Got: a report of {model.learner}, which holds no rows.\n"
            "Hint: pass the model itself."
        )
    report = report_from(model, "components")
    used = {one["variable"]: None for row in report.results for one in row["loadings"]}
    check_has_columns(X, list(used))
    Z = _placed(model, X)
    numbers = list(components) if isinstance(components, Iterable) else []
    known = [c for c in numbers if isinstance(c, Integral) and 0 <= c < Z.shape[1]]
    if len(known) != 2 or len(numbers) != 2:
        raise ValueError(
            f"Expected two components, from 0 to {Z.shape[1] - 1}. Got: {components!r}.\n"
            "Hint: components are counted from 0, as in their names."
        )
    values = None if y is None else as_array(y, "y")
    if values is not None and values.shape != (len(Z),):
        raise ValueError(f"Expected a y for each of {len(Z)} rows. Got: shape {values.shape}.")
    a, b = (Z[:, component] for component in components)
    with axes_in_style(ax, height=70.0) as panel:
        if values is None:
            _points(panel, a, b, color=ACCENT, marker="o")
        elif _are_labels(values):
            _groups(panel, a, b, values)
        else:
            drawn = _points(panel, a, b, c=values.astype(np.float64), cmap="cividis", marker="o")
            add_colour_bar(panel, drawn, "y")
        names = [model.components[component] for component in components]
        panel.set(xlabel=names[0], ylabel=names[1])
        panel.margins(0.05)
        set_description(panel, f"{count_label(len(Z), 'row')} by {names[0]} and {names[1]}.")
    return panel


def _placed(model: Any, X: Any) -> Floats:
    """Return the components of rows, (n, q)."""
    if X is None:
        found: Floats = model.embedding
        if not found.size:
            raise ValueError(
                f"Expected a model that holds its rows. Got: {type(model).__name__}, which does "
                "not.\nHint: pass the rows, scatter(model, X)."
            )
        return found
    Z = model.transform_many(X)
    frame = as_frame(Z)
    return np.asarray(Z if frame is None else frame.to_numpy(), dtype=np.float64)


def _are_labels(y: Any) -> bool:
    if y.dtype.kind not in "iuf":
        return True
    distinct = np.unique(y)
    return bool(len(distinct) <= len(SERIES) and (distinct == np.rint(distinct)).all())


def _groups(panel: Axes, a: Floats, b: Floats, y: Any) -> None:
    """Draw groups of rows, the most frequent with a colour and a marker each."""
    labels = y.tolist()
    sizes = Counter(labels)
    ranked = sorted(sizes, key=lambda label: (-sizes[label], str(label)))
    first = sorted(ranked[: len(SERIES)], key=str)
    rest = np.array([label not in first for label in labels])
    if rest.any():
        style = {"color": FAINT, "marker": ".", "label": f"other ({rest.sum():,})"}
        _points(panel, a[rest], b[rest], **style)
    for index, label in enumerate(first):
        is_member = np.array([other == label for other in labels])
        style = {"color": SERIES[index], "marker": MARKS[index]}
        _points(
            panel,
            a[is_member],
            b[is_member],
            label=f"{variable_label(label)} ({sizes[label]:,})",
            **style,
        )
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, handletextpad=0.2)


def _points(panel: Axes, a: Floats, b: Floats, **how: Any) -> Any:
    return panel.scatter(
        a, b, s=9, linewidths=0, alpha=0.75, rasterized=len(a) > _MAX_VECTOR_POINTS, **how
    )
