"""Scatter plot of rows by two components."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.text import printable
from streamsel.base.frame_columns import as_frame
from streamsel.base.report import Report
from streamsel.plot._labels import count_label, variable_label
from streamsel.plot.inputs import check_has_columns, report_from
from streamsel.plot.style import (
    ACCENT,
    MARKS,
    SERIES,
    add_colour_bar,
    axes_in_style,
    relative_size,
    set_description,
    set_hover,
)
from streamsel.serialization.json_values import as_array
from streamsel.state.base import Floats
from streamsel.targets.encoding import FEW_VALUES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More points than this are rasterised in an SVG.
_MAX_VECTOR_POINTS = 800
# Labels in a legend, its columns, and the height of a row in millimetres.
_MAX_IN_LEGEND, _LEGEND_COLUMNS, _ROW_HEIGHT = 40, 3, 3.4


def scatter(
    model: Any,
    X: Any = None,
    y: Any = None,
    ax: Axes | None = None,
    components: tuple[int, int] = (0, 1),
    **kwargs: Any,
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
        Values of the rows by which to colour them: labels, or numbers; None for one colour. Whole
        numbers with at most 20 distinct values are labels. Up to 36 labels have a colour and a
        marker of their own; the legend has at most 40 labels, the most frequent ones.
    ax
        Axes to draw on; None draws on the current axes of pyplot.
    components
        Numbers of two components, as in their names: (0, 1) are `pca0` and `pca1`.
    **kwargs
        Properties of the points, as of `Axes.scatter`, such as `s` or `cmap`.

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
    Z = Z[:, list(components)]
    labels = set(values.tolist()) if values is not None and _are_labels(values) else set()
    n_lines = -(-min(len(labels), _MAX_IN_LEGEND) // _LEGEND_COLUMNS)
    with axes_in_style(ax, height=62.0 + _ROW_HEIGHT * n_lines) as panel:
        if values is None:
            _points(panel, Z, range(len(Z)), kwargs, color=ACCENT)
        elif labels:
            _groups(panel, Z, values, kwargs)
        else:
            drawn = _points(panel, Z, range(len(Z)), kwargs, values, c=values.astype(np.float64))
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
    return bool(len(distinct) <= FEW_VALUES and (distinct == np.rint(distinct)).all())


def _groups(panel: Axes, Z: Floats, y: Any, given: dict[str, Any]) -> None:
    """Draw groups of rows, each with a colour and a marker."""
    sizes = Counter(y.tolist())
    labels = sorted(sizes, key=_sort_key)
    rows: dict[Any, list[int]] = {label: [] for label in labels}
    for row, label in enumerate(y.tolist()):
        rows[label].append(row)
    in_legend = {*sorted(labels, key=lambda label: -sizes[label])[:_MAX_IN_LEGEND]}
    n = len(SERIES)
    for index, label in enumerate(labels):
        # Each further cycle of the colours has the markers in another order.
        style = {"color": SERIES[index % n], "marker": MARKS[(index + index // n) % n]}
        if label in in_legend:
            # Whole numbers of a text file, or next to missing values, are floats.
            is_whole = isinstance(label, float) and label.is_integer()
            text = variable_label(int(label) if is_whole else label)
            style["label"] = f"{text} ({sizes[label]:,})"
        _points(panel, Z, rows[label], given, y, **style)
    if (n_others := len(labels) - len(in_legend)) > 0:
        panel.plot([], [], linestyle="none", label=f"and {n_others:,} more")
    legend: dict[str, Any] = {
        "loc": "lower center",
        "bbox_to_anchor": (0.5, 1.0),
        "ncols": _LEGEND_COLUMNS,
    }
    panel.legend(**legend, handletextpad=0.2, columnspacing=1.0)


def _sort_key(label: Any) -> tuple[str, Any]:
    """Return a key that sorts numbers by value, also those in texts."""
    if isinstance(label, int | float):
        return type(label).__name__, label
    parts = re.split(r"(\d+)", str(label))
    return type(label).__name__, [(int(p), p) if p.isdecimal() else (-1, p) for p in parts]


def _points(
    panel: Axes, Z: Floats, rows: Sequence[int], given: dict[str, Any], y: Any = None, **style: Any
) -> Any:
    """Draw rows as points."""
    is_image = len(Z) > _MAX_VECTOR_POINTS
    defaults = {
        "s": 9.0 * relative_size() ** 2,
        "linewidths": 0.0,
        "alpha": 0.75,
        "rasterized": is_image,
    }
    points = panel.scatter(Z[rows, 0], Z[rows, 1], **defaults | style | given)
    if not is_image:
        texts = [f"row {row:,}" for row in rows]
        if y is not None:
            texts = [f"{t}: {_value_text(y[row])}" for t, row in zip(texts, rows, strict=True)]
        set_hover(panel, points, texts)
    return points


def _value_text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else printable(value)
