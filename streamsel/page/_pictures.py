"""The pictures of a page, each with its title and what there is to be seen."""

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

# More marks, or rows and columns of correlations, than these are but a smear.
_MOST_DRAWN, _MOST_ALIKE = 500, 50

ARRIVAL, NULL, ORDER = "Relevance, as the columns came", "Against noise alone", "Order of selection"
SCREE, LOADINGS, ROWS = "Component by component", "Largest loadings", "The rows"
ALIKE = "How alike the chosen are"
_SAID = {
    ARRIVAL: "Shade is where columns lie, by arrival and relevance; the line is what the best of "
    "as many columns of noise reaches.",
    NULL: "How relevant columns are, against how relevant as many columns of noise would be. What "
    "leaves the diagonal upwards tells of the target.",
    ORDER: "What each was worth in its turn.",
    SCREE: "What each has of the target, or of the variance; what noise reaches, where that is "
    "known.",
    LOADINGS: "The weights of variables in the component that is numbered 0, up or down.",
    ROWS: "Every point is a row, placed by two components.",
    ALIKE: "Correlations of the chosen, over the rows handed in.",
}


def pictures(
    model: Any, report: Report, data: Any, y: Any, stability: SubsampleStability | None
) -> list[Section]:
    """Return a section for each picture that there is something for.

    Parameters
    ----------
    model
        A learner, or a report.
    report
        What it has found.
    data, y
        Rows to draw, and their target; None for what the model holds.
    stability
        What is selected of other samples; None for nothing of that.

    Raises
    ------
    ImportError
        Without matplotlib.
    ValueError
        For rows that cannot be drawn.
    """
    # What a model has nothing for is left out; what is handed in must do.
    drawn = []
    for title, draw in _of_model(model, replace(report, found=report.found[:_MOST_DRAWN])):
        try:
            drawn.append(_section(title, draw(), _first(report, _MOST_DRAWN)))
        except (ValueError, TypeError):
            continue
    if report.kind == "selected" and report.found and data is not None:
        first = replace(report, found=report.found[:_MOST_ALIKE])
        drawn.append(_section(ALIKE, plot.heatmap(first, data), _first(report, _MOST_ALIKE)))
    elif len(report.found) > 1 and data is not None:
        drawn.append(_section(ROWS, plot.scatter(model, data, y)))
    elif not isinstance(model, Report):
        drawn += _held_rows(model)
    if stability is not None:
        drawn.append(again(stability, Picture(_svg(plot.stability(stability)))))
    return drawn


def _of_model(model: Any, few: Report) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what may be drawn of what a model has found, and how."""
    if few.density is not None:
        yield ARRIVAL, lambda: plot.relevance(few)
        yield NULL, lambda: plot.null(few)
    # Some know more of few than their report does.
    whole = few if len(few.found) == _MOST_DRAWN else model
    if few.kind == "selected":
        yield ORDER, lambda: plot.path(whole)
    else:
        yield SCREE, lambda: plot.scree(whole)
        yield LOADINGS, lambda: plot.loadings(few)


def _held_rows(model: Any) -> list[Section]:
    """Return the rows that were learnt, by two components, where a model holds them."""
    try:
        return [_section(ROWS, plot.scatter(model))]
    except (ValueError, TypeError):
        return []


def _first(report: Report, most: int) -> str:
    """Say that only the first are drawn, where there are more."""
    n = len(report.found)
    return f" Of {n:,} the first {most:,} are drawn." if n > most else ""


def _section(title: str, axes: Any, further: str = "") -> Section:
    return Section(title, (Picture(_svg(axes)), Text((_SAID[title] + further,))))


def _svg(axes: Any) -> str:
    return to_svg(axes.figure, page=True)
