"""Bar plot of the largest loadings of a component."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamsel import params
from streamsel.plot._axes import draw_bars, height_of_rows
from streamsel.plot._labels import count_label, hover_name
from streamsel.plot.inputs import report_from
from streamsel.plot.style import ACCENT, SELECTED, axes_in_style, ink, set_description

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streamsel.base.report import Report

_RULES = {"component": params.IntRule(0), "n": params.IntRule(1)}


def loadings(
    model: Any, ax: Axes | None = None, component: int = 0, n: int = 15, **kwargs: Any
) -> Axes:
    """Plot the largest loadings of a component: weight times standard deviation.

    This makes variables in different units comparable. Raw weights are in `model.loadings`.
    Negative loadings are blue.

    Parameters
    ----------
    model
        An extractor whose components are linear in the variables, or its report.
    ax
        Axes to draw on; None draws on the current axes of pyplot.
    component
        Number of the component, as in its name: 0 is `pca0`.
    n
        Number of loadings, the largest first.
    **kwargs
        Further arguments of `Axes.barh`.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    TypeError
        For a selector, and for objects that are not models.
    ValueError
        For a model without results or loadings, and for a component that does not exist.
    ImportError
        Without matplotlib.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import SOSPCA, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 500))
    >>> model = SOSPCA(n_components=2)
    >>> model.learn_target(X[:, 7] - X[:, 400])
    >>> model.learn_columns(X)
    >>> ax = plot.loadings(model, n=5)
    >>> ax.get_xlabel()
    'loading on sospca0'
    """
    params.check("loadings", _RULES, {"component": component, "n": n})
    report = report_from(model, "components")
    name, parts = _of(report, component)
    shown = parts[:n]
    weights = [part["loading"] or 0.0 for part in shown]
    with axes_in_style(ax, height_of_rows(len(shown)), has_rows=True) as panel:
        colours = [ACCENT if weight < 0.0 else SELECTED for weight in weights]
        names = [part["variable"] for part in shown]
        texts = [f"{hover_name(v)}: {w:.4g}" for v, w in zip(names, weights, strict=True)]
        draw_bars(panel, names, weights, colours, texts, kwargs)
        panel.axvline(0.0, color=ink(), lw=0.6)
        panel.spines["left"].set_visible(False)
        panel.set_xlabel(f"loading on {name}")
        total = count_label(len(parts), "variable")
        set_description(panel, f"The {len(shown)} largest loadings on {name}, of {total}.")
    return panel


def _of(report: Report, component: int) -> tuple[str, list[dict[str, Any]]]:
    """Return the name of a component, and its loadings."""
    component_name = f"{report.learner.lower()}{component}"
    for row in report.results:
        if row["name"] == component_name:
            if not row["loadings"]:
                raise ValueError(
                    f"Expected a component that is linear in the variables. Got: "
                    f"{component_name}, which has no loadings.\nHint: use scatter to show the rows."
                )
            return component_name, row["loadings"]
    known = sorted(int(row["name"].removeprefix(report.learner.lower())) for row in report.results)
    raise ValueError(
        f"Expected a component from {known[0]} to {known[-1]}. Got: {component}.\n"
        "Hint: components are counted from 0, as in their names."
    )
