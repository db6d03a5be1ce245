"""Selection path: relevance and score of the selected variables in order of selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils import optional
from streamsel.plot._axes import add_legend_above, draw_noise_level, height_of_rows, label_rows
from streamsel.plot._labels import count_label, variable_label
from streamsel.plot.inputs import report_from
from streamsel.plot.style import (
    ACCENT,
    FAINT,
    MARKS,
    NOISE,
    SELECTED,
    SERIES,
    TINY,
    axes_in_style,
    set_description,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from matplotlib.axes import Axes

    from streamsel.base.report import Report

# Number of coefficients with a colour and a name.
_N_NAMED = 6


def selection_path(model: Any, ax: Axes | None = None) -> Axes:
    """Plot relevance and score of the selected variables, in order of selection.

    Parameters
    ----------
    model
        A selector, or its report.
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
        For a model that has selected nothing.
    ImportError
        Without matplotlib.

    Notes
    -----
    Dots are relevances, open for variables that are not certified as picks over all columns;
    diamonds are scores at the time of the pick, relative to the largest. The dashed line is the
    noise floor, and thin lines separate rounds. A `Lasso`, unlike its report, is shown by its
    coefficients on the original scale along decreasing penalties; the six with the largest final
    values are named.

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
    report = report_from(model, "selected")
    solutions = getattr(model, "path", None)
    if isinstance(solutions, dict) and len(solutions) > 1:
        return _coefficients(solutions, report, ax)
    with axes_in_style(ax, height_of_rows(len(report.results)) + 5.0) as panel:
        _draw_relevances(panel, report)
        _draw_scores(panel, report)
        _part_rounds(panel, [row["round"] for row in report.results])
        label_rows(panel, [row["name"] for row in report.results])
        # Long names leave little width, so the label is right-aligned and grows to the left.
        panel.set_xlabel("relevance; score as a part of the largest", loc="right")
        add_legend_above(panel, n_columns=3)
        label = count_label(len(report.results), "variable")
        set_description(panel, f"Relevance and score of {label} in order of selection.")
    return panel


def _part_rounds(panel: Axes, rounds: list[int]) -> None:
    if len({*rounds}) == len(rounds):  # one variable per round
        return
    for i in range(1, len(rounds)):
        if rounds[i] != rounds[i - 1]:
            panel.axhline(i - 0.5, color=FAINT, lw=0.5, gid="round")


def _draw_relevances(panel: Axes, report: Report) -> None:
    known = [
        (i, row["relevance"], row["certified"])
        for i, row in enumerate(report.results)
        if row["relevance"] is not None
    ]
    for proven, label in ((True, "relevance"), (False, "relevance, not proven")):
        points = [(i, value) for i, value, certified in known if certified is proven]
        if points:
            y, x = zip(*points, strict=True)
            face = SELECTED if proven else "none"
            panel.plot(
                x, y, "o", ms=4.0, mec=SELECTED, mfc=face, mew=0.9, label=label, gid=label, zorder=3
            )
    if known and report.noise_floor is not None:
        draw_noise_level(panel, report.noise_floor, vertical=True, label="noise floor")
    panel.set_xlim(0.0, 1.04)


def _draw_scores(panel: Axes, report: Report) -> None:
    scores = np.array([np.nan if row["score"] is None else row["score"] for row in report.results])
    largest = np.nanmax(np.abs(scores), initial=0.0)
    if not largest > 0.0:
        return
    relative = scores / largest
    panel.plot(
        relative,
        range(len(relative)),
        "D",
        ms=3.2,
        mec=ACCENT,
        mfc="none",
        mew=0.9,
        label="score",
        gid="score",
    )
    if np.nanmin(relative) < 0.0:
        panel.set_xlim(1.04 * np.nanmin(relative), 1.04)


def _coefficients(
    solutions: Mapping[float, Mapping[Hashable, float]], report: Report, ax: Axes | None
) -> Axes:
    """Draw the coefficients of a Lasso, from the largest penalty to the smallest."""
    alphas = list(solutions)
    names = list(dict.fromkeys(name for found in solutions.values() for name in found))
    last = solutions[alphas[-1]]
    named = sorted(last, key=lambda name: -abs(last[name]))[:_N_NAMED]
    with axes_in_style(ax) as panel:
        for name in sorted(names, key=lambda name: name in named):
            values = [found.get(name, 0.0) for found in solutions.values()]
            if name not in named:
                panel.plot(alphas, values, color=FAINT, lw=0.6, gid="other")
                continue
            index = named.index(name)
            panel.plot(
                alphas,
                values,
                color=SERIES[index],
                marker=MARKS[index],
                markevery=[-1],
                clip_on=False,
                label=variable_label(name),
                gid=variable_label(name),
            )
        panel.axhline(0.0, color=NOISE, lw=0.5)
        panel.set_xscale("log", subs=[])
        panel.set_xlim(alphas[0], alphas[-1])
        ticks = optional.import_matplotlib("ticker")
        panel.xaxis.set_major_locator(ticks.LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set(xlabel="penalty α", ylabel="coefficient")
        panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=TINY)
        label = f"{count_label(len(names), 'variable')} in {count_label(len(alphas), 'solution')}"
        set_description(panel, f"Coefficients of {label}; {len(report.results):,} are selected.")
    return panel
