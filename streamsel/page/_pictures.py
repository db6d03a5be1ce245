"""The plots of a report, each with a title and a caption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from streamsel import plot
from streamsel.evaluate import SubsampleStability
from streamsel.learner.report import Report
from streamsel.page._again import again
from streamsel.page._blocks import Picture, Section, Text
from streamsel.plot._style import to_svg

# Maximum number of results plotted, and of variables in a heatmap: more would be illegible.
_MAX_PLOTTED, _MAX_HEATMAP = 500, 50

ARRIVAL, NULL, ORDER = "Relevance by arrival", "Q-Q plot of relevance", "Selection path"
SCREE, LOADINGS, ROWS = "Scree plot", "Largest loadings", "Scatter plot of rows"
ALIKE = "Correlations of selected variables"
_CAPTIONS = {
    ARRIVAL: "The shade is the density of columns, by arrival and relevance; the line is the noise "
    "floor.",
    NULL: "Quantiles of the columns' relevance, against those of as many columns of noise. Columns "
    "above the diagonal are associated with the target.",
    ORDER: "Relevance and score in the order of selection; for Lasso, coefficients by penalty.",
    SCREE: "Relevance, or share of variance, of each component; and the noise floor, if it is "
    "known.",
    LOADINGS: "The loadings of variables on the first component, by absolute value.",
    ROWS: "Every point is a row, placed by two components.",
    ALIKE: "Correlations over the rows in `data`.",
}


def pictures(
    model: Any, report: Report, data: Any, y: Any, stability: SubsampleStability | None
) -> list[Section]:
    """Return a section for each plot that applies to the model.

    Parameters
    ----------
    model
        A learner, or a report.
    report
        Its results.
    data, y
        Rows to plot, and their target; None for those stored in the model.
    stability
        Selections over subsamples; None for no such section.

    Raises
    ------
    ImportError
        Without matplotlib.
    ValueError
        For rows that cannot be plotted.
    """
    # Plots that do not apply to a model are skipped; but `data` must be valid.
    # What a model has nothing for is left out; what is handed in must do.
    drawn = []
    for title, draw in _of_model(model, replace(report, found=report.found[:_MAX_PLOTTED])):
        try:
            drawn.append(_section(title, draw(), _first(report, _MAX_PLOTTED)))
        except (ValueError, TypeError):
            continue
    if report.kind == "selected" and report.found and data is not None:
        first = replace(report, found=report.found[:_MAX_HEATMAP])
        drawn.append(_section(ALIKE, plot.heatmap(first, data), _first(report, _MAX_HEATMAP)))
    elif len(report.found) > 1 and data is not None:
        drawn.append(_section(ROWS, plot.scatter(model, data, y)))
    elif not isinstance(model, Report):
        drawn += _held_rows(model)
    if stability is not None:
        drawn.append(again(stability, Picture(_svg(plot.stability(stability)))))
    return drawn


def _of_model(model: Any, first: Report) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the titles of plots that may apply to a model, and functions that draw them."""
    if first.density is not None:
        yield ARRIVAL, lambda: plot.relevance(first)
        yield NULL, lambda: plot.null(first)
    # A model may store more than its report, such as the path of Lasso.
    whole = first if len(first.found) == _MAX_PLOTTED else model
    if first.kind == "selected":
        yield ORDER, lambda: plot.path(whole)
    else:
        yield SCREE, lambda: plot.scree(whole)
        yield LOADINGS, lambda: plot.loadings(first)


def _held_rows(model: Any) -> list[Section]:
    """Return a scatter plot of the rows stored in a model, if there are any."""
    try:
        return [_section(ROWS, plot.scatter(model))]
    except (ValueError, TypeError):
        return []


def _first(report: Report, most: int) -> str:
    """Return a remark that only the first are plotted, if there are more."""
    n = len(report.found)
    return f" The first {most:,} of {n:,} are shown." if n > most else ""


def _section(title: str, axes: Any, further: str = "") -> Section:
    return Section(title, (Picture(_svg(axes)), Text((_CAPTIONS[title] + further,))))


def _svg(axes: Any) -> str:
    return to_svg(axes.figure, page=True)
