"""Selection path: relevance or score of the selected variables in order of selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel import params
from streamsel._utils import optional
from streamsel._utils.text import printable
from streamsel.plot._axes import (
    add_legend_above,
    draw_noise_level,
    draw_points,
    height_of_rows,
    label_rows,
)
from streamsel.plot._labels import count_label, hover_name, label_line_ends
from streamsel.plot.inputs import report_from
from streamsel.plot.style import (
    FAINT,
    SELECTED,
    SERIES,
    axes_in_style,
    merge_properties,
    muted,
    set_description,
    set_hover,
)
from streamsel.state.base import Floats

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from matplotlib.axes import Axes

    from streamsel.base.report import Report

# Number of coefficients with a colour and a name.
_N_NAMED = 5
_RULES = {"quantity": params.ChoiceRule(("relevance", "score"))}


def selection_path(
    model: Any, ax: Axes | None = None, quantity: str = "relevance", **kwargs: Any
) -> Axes:
    """Plot relevance or score of the selected variables, in order of selection.

    Parameters
    ----------
    model
        A selector, or its report.
    ax
        Axes to draw on; None draws on the current axes of pyplot.
    quantity
        `"relevance"`, or `"score"`: the value of the criterion when the variable was picked. It is
        the score without a target.
    **kwargs
        Properties of the points, or of the lines of a `Lasso`, as of `Axes.plot`.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    TypeError
        For an extractor, and for objects that are not models.
    ValueError
        For a model that has selected nothing, and for another quantity.
    ImportError
        Without matplotlib.

    Notes
    -----
    Points are open for variables that are not certified as picks over all columns. The dashed line
    is the noise floor of the relevance, and thin lines separate rounds. A `Lasso`, unlike its
    report, is shown by its coefficients on the original scale along decreasing penalties; the five
    with the largest final values are coloured and named.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import ProjSe, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 500))
    >>> model = ProjSe(k=3)
    >>> model.learn_target(X[:, 7] - 0.5 * X[:, 400])
    >>> model.learn_columns(X)
    >>> ax = plot.selection_path(model)
    >>> [tick.get_text() for tick in ax.get_yticklabels()][:2]
    ['7', '400']
    """
    params.check("selection_path", _RULES, {"quantity": quantity})
    report = report_from(model, "selected")
    solutions = getattr(model, "path", None)
    if isinstance(solutions, dict) and len(solutions) > 1:
        return _draw_coefficients(solutions, report, ax, kwargs)
    rows = report.results
    if report.target is None or all(row[quantity] is None for row in rows):
        quantity = "score"
    values = np.array([_number(row[quantity]) for row in rows])
    with axes_in_style(ax, height_of_rows(len(rows)) + 5.0, has_rows=True) as panel:
        _draw_values(panel, report, values, quantity, kwargs)
        _part_rounds(panel, [row["round"] for row in rows])
        label_rows(panel, [row["name"] for row in rows])
        panel.set_xlabel(quantity)
        if len(panel.get_legend_handles_labels()[1]) > 1:
            add_legend_above(panel, n_columns=3)
        label = count_label(len(rows), "variable")
        set_description(panel, f"{quantity.capitalize()} of {label} in order of selection.")
    return panel


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _part_rounds(panel: Axes, rounds: list[int]) -> None:
    if len({*rounds}) == len(rounds):  # one variable per round
        return
    for i in range(1, len(rounds)):
        if rounds[i] != rounds[i - 1]:
            panel.axhline(i - 0.5, color=FAINT, lw=0.5, gid="round")


def _draw_values(
    panel: Axes, report: Report, values: Floats, quantity: str, given: dict[str, Any]
) -> None:
    """Draw a point per variable, and the noise floor if the values are relevances."""
    certified = np.array([row["certified"] for row in report.results])
    for proven, label in ((True, quantity), (False, f"{quantity}, not certified")):
        indices = np.flatnonzero(~np.isnan(values) & (certified == proven))
        if indices.size:
            texts = [
                f"{i + 1}. {hover_name(report.results[i]['name'])}: {values[i]:.4g}"
                for i in indices.tolist()
            ]
            style: dict[str, Any] = {"color": SELECTED, "markersize": 4.0, "markeredgewidth": 0.9}
            style |= {"label": label, "gid": label, "zorder": 3}
            style |= {} if proven else {"markerfacecolor": "none"}
            draw_points(panel, values[indices], indices, texts, given, **style)
    low = float(np.nanmin(values, initial=0.0))
    high = float(np.nanmax(values, initial=0.0))
    if quantity == "relevance":
        high = 1.0
        if report.noise_floor is not None:
            draw_noise_level(panel, report.noise_floor, vertical=True, label="noise floor")
    margin = 0.04 * (high - low or 1.0)
    panel.set_xlim(low - margin if low < 0.0 else 0.0, high + margin)


def _draw_coefficients(
    solutions: Mapping[float, Mapping[Hashable, float]],
    report: Report,
    ax: Axes | None,
    given: dict[str, Any],
) -> Axes:
    """Draw the coefficients of a Lasso, from the largest penalty to the smallest."""
    alphas = list(solutions)
    names = list(dict.fromkeys(name for found in solutions.values() for name in found))
    last = solutions[alphas[-1]]
    named = sorted(last, key=lambda name: -abs(last[name]))[:_N_NAMED]
    lines = optional.import_matplotlib("lines")
    colours: list[Any] = []
    with axes_in_style(ax) as panel:
        for name in [*(name for name in names if name not in named), *named]:
            values = [found.get(name, 0.0) for found in solutions.values()]
            style: dict[str, Any] = {
                "color": FAINT,
                "linewidth": 0.6,
                "gid": f"other {printable(name)}",
            }
            if name in named:
                style = {"color": SERIES[named.index(name)], "gid": printable(name)}
            (drawn,) = panel.plot(alphas, values, **merge_properties(lines.Line2D, style, given))
            colours.append(drawn.get_color())
            set_hover(panel, drawn, [f"{hover_name(name)}: {last.get(name, 0.0):.4g} at the end"])
        panel.axhline(0.0, color=muted(), lw=0.5)
        panel.set_xscale("log", subs=[])
        panel.set_xlim(alphas[0], alphas[-1])
        ticks = optional.import_matplotlib("ticker")
        panel.xaxis.set_major_locator(ticks.LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set(xlabel="penalty α", ylabel="coefficient")
        ends = [last[name] for name in named]
        label_line_ends(panel, named, ends, colours[len(colours) - len(named) :])
        label = f"{count_label(len(names), 'variable')} in {count_label(len(alphas), 'solution')}"
        set_description(panel, f"Coefficients of {label}; {len(report.results):,} are selected.")
    return panel
