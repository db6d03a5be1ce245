"""The report on a model in one of several formats, and its plots with titles and captions."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import PurePath
from typing import Any

from streamsel import plot
from streamsel._version import __version__
from streamsel.base.report import Report
from streamsel.evaluate import SubsampleStability
from streamsel.plot.inputs import report_from
from streamsel.reporting.document import DocumentSection, Figure, NameText, Paragraph
from streamsel.reporting.histograms import (
    SelectedValues,
    target_of_model,
    values_of_data,
    values_of_model,
)
from streamsel.reporting.json import as_json
from streamsel.reporting.provenance import bibtex
from streamsel.reporting.sections import all_warnings, build_document, is_complete
from streamsel.reporting.summary import summarize
from streamsel.reporting.tables import stability_section
from streamsel.stream import iter_array

# Maximum number of results plotted, and of variables whose values are: more would be illegible.
_MAX_PLOTTED, MAX_VALUES = 500, 50
# Parameters of the pool of candidates, which bound memory.
_POOL_PARAMETERS = ("max_candidates", "max_pool_bytes", "exact")
# Maximum number of names of variables that a remark or an error lists.
_MAX_LISTED = 10

ARRIVAL, NULL, ORDER = "Relevance of all columns", "Q–Q plot against noise", "Selection path"
GENOME = "Manhattan plot"
SCREE, LOADINGS, ROWS = "Scree plot", "Largest loadings", "Scatter plot of rows"
CORRELATIONS = "Correlation of selected variables"
_CAPTIONS = {
    ARRIVAL: "All columns by arrival and relevance: points, or for more than 500 columns a shade "
    "by their density. Selected ones are coloured. The line is the noise floor.",
    GENOME: "Every point is a column, by chromosome, position and p-value; the line is that of the "
    "noise floor.",
    NULL: "p-values of the columns, against those expected if all are noise. Columns above the "
    "diagonal are associated with the target. For more than 500 columns, relevances are rounded "
    "down by up to 4 %, and p-values up. For more than 1,000, λ is the inflation factor.",
    ORDER: "The score of each variable when it was selected; for Lasso, coefficients by penalty.",
    SCREE: "Relevance, or share of variance, of each component; and the noise floor, if it is "
    "known.",
    LOADINGS: "The loadings of variables on component 0, by absolute value.",
    ROWS: "Every point is a row, placed by two components.",
    CORRELATIONS: "Correlations over the rows of the data: red is positive, blue is negative.",
}
# Draws a plot on axes.
_Draw = Callable[[Any], Any]


def plot_sections(
    model: Any,
    report: Report,
    data: Any,
    y: Any,
    stability: SubsampleStability | None,
    values: SelectedValues | None,
) -> list[DocumentSection]:
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
    values
        Values of the selected variables in `data`, or in the model; None if not known.

    Raises
    ------
    ImportError
        Without matplotlib.
    ValueError
        For rows that cannot be plotted.
    """
    # Plots that do not apply to a model are left out; but `data` must be valid.
    drawn = []
    for title, draw in _of_model(model, replace(report, results=report.results[:_MAX_PLOTTED])):
        drawn += _optional_section(title, draw, _first(len(report.results), _MAX_PLOTTED))
    positions = getattr(data, "column_metadata", None)
    if positions:
        along = _optional_section(GENOME, lambda ax: plot.manhattan(model, ax, metadata=positions))
        # It replaces the plot by arrival.
        drawn = along + drawn[1:] if along else drawn
    if report.kind == "selected" and report.results and data is not None:
        drawn.append(_correlations(report, values, _single_columns(model, report)))
    elif report.candidate == "group":
        # Groups have no rows to plot without data.
        pass
    elif len(report.results) > 1 and data is not None:
        drawn.append(_section(ROWS, lambda ax: plot.scatter(model, data, y, ax)))
    elif not isinstance(model, Report):
        drawn += _optional_section(
            ROWS, lambda ax: plot.scatter(model, y=target_of_model(model), ax=ax)
        )
    if stability is not None:
        picture = _picture(lambda ax: plot.stability(stability, ax))
        drawn.append(stability_section(stability, picture))
    return drawn


def _of_model(model: Any, first: Report) -> Iterator[tuple[str, _Draw]]:
    """Yield the titles of plots that may apply to a model, and functions that draw them."""
    if first.density is not None:
        yield ARRIVAL, lambda ax: plot.manhattan(first, ax)
        yield NULL, lambda ax: plot.qq(model, ax)
    # A model may store more than its report, such as the path of Lasso.
    whole = first if len(first.results) == _MAX_PLOTTED else model
    if first.kind == "selected":
        yield ORDER, lambda ax: plot.selection_path(whole, ax, quantity="score")
    else:
        yield SCREE, lambda ax: plot.scree(whole, ax)
        yield LOADINGS, lambda ax: plot.loadings(first, ax)


def _single_columns(model: Any, report: Report) -> dict[Hashable, Hashable]:
    """Return the selected variables that are one column, and the name of that column."""
    names = [row["name"] for row in report.results]
    if report.candidate != "group":
        return {name: name for name in names}
    # A report has the number of columns of each group, but not their names.
    members = {} if isinstance(model, Report) else model.members
    return {name: members[name][0] for name in names if len(members.get(name, ())) == 1}


def _correlations(
    report: Report, values: SelectedValues | None, single: Mapping[Hashable, Hashable]
) -> DocumentSection:
    """Return the correlations of the variables that are one column, and which ones are not."""
    left_out = [row["name"] for row in report.results if row["name"] not in single]
    remark = _first(len(single), MAX_VALUES)
    if left_out:
        listed = ", ".join(NameText(name).text for name in left_out[:_MAX_LISTED])
        listed += ", …" * (len(left_out) > _MAX_LISTED)
        remark += (
            f" Only variables of one column are shown here, and as histograms; not shown: {listed}."
        )
    if values is None:
        return DocumentSection(CORRELATIONS, (Paragraph((remark.strip(),)),))
    plotted = {*values.names}
    rows = [row for row in report.results if row["name"] in plotted]
    details = {name: value for name, value in report.details.items() if name != "n_columns"}
    first = replace(report, results=rows, details=details)  # of variables, not of groups
    stream = iter_array(values.X, values.names)
    return _section(CORRELATIONS, lambda ax: plot.heatmap(first, stream, ax), remark)


def _first(n: int, limit: int) -> str:
    """Return a remark that only the first of n are plotted, if there are more."""
    return f" The first {limit:,} of {n:,} are shown." if n > limit else ""


def _section(title: str, draw: _Draw, further: str = "") -> DocumentSection:
    return DocumentSection(title, (_picture(draw), Paragraph((_CAPTIONS[title] + further,))))


def _optional_section(title: str, draw: _Draw, further: str = "") -> list[DocumentSection]:
    """Return the section of a plot; none if the plot does not apply to the model."""
    try:
        return [_section(title, draw, further)]
    except (ValueError, TypeError):
        return []


def _picture(draw: _Draw) -> Figure:
    from streamsel.plot.style import figure, to_svg

    drawn_on, ax = figure()
    draw(ax)
    return Figure(to_svg(drawn_on, page=True))


FORMATS = ("html", "json", "md")
_BY_SUFFIX = {"": "html", ".html": "html", ".htm": "html", ".json": "json"}
_BY_SUFFIX |= {".md": "md", ".markdown": "md"}


def format_of_path(path: str | os.PathLike[str] | None) -> str:
    """Return the format of a report by the suffix of its file; HTML without one.

    Raises
    ------
    ValueError
        For any other suffix.
    """
    suffix = "" if path is None else PurePath(path).suffix.lower()
    if suffix not in _BY_SUFFIX:
        raise ValueError(
            f"Expected a report that ends in .html, .json or .md. Got: {os.fspath(path or '')!r}.\n"
            "Hint: format, in the command --format, sets the format of any file."
        )
    return _BY_SUFFIX[suffix]


def report(
    model: Any,
    data: Any = None,
    *,
    y: Any = None,
    metadata: Mapping[str, Any] | None = None,
    stability: SubsampleStability | None = None,
    format: str = "html",  # noqa: A002 (as the command calls it)
) -> str:
    """Return a report on a model: its results, their significance, and how they were obtained.

    The HTML report is one file without scripts or network requests, for screens of any size and
    dark mode; its size grows with the results, not with the data. It has the results as CSV, too,
    and the values of points are shown under the mouse. The Markdown report has no plots; the JSON
    report has all results.

    Parameters
    ----------
    model
        A learner, or the `Report` of one.
    data
        Rows with the columns that the model uses, as for `transform_many`: for a scatter plot of
        components, or the correlations and histograms of the first 50 selected variables; groups
        of several columns, such as the categories of a text, have none. A
        `ColumnStream` that has the chromosomes of its columns, such as that of `iter_bed`, adds the
        p-values along the genome (`plot.manhattan`). Without it, only the data in the model are
        plotted: histograms need a method that stores the selected columns, such as
        `ForwardSelection`, without covariates, weights and relatedness.
    y
        The target of these rows: points have its colours, and there is a histogram per class, or
        per half of a numeric target.
    metadata
        Metadata of the model file, as from `read_metadata`: its input files, command, and skipped
        columns.
    stability
        Selections over subsamples, as from `streamsel.evaluate.subsample_stability`: of the same
        class and k, and of the same rows and columns.
    format
        `"html"`, `"json"` or `"md"`.

    Returns
    -------
    The report, as text.

    Raises
    ------
    ValueError
        For another format; for fewer than two rows with a selector, rows that lack a variable, or a
        target of another length; and for the stability of another selection.
    TypeError
        For a model that is not a learner.
    ImportError
        For HTML, without matplotlib.

    Examples
    --------
    >>> import numpy as np
    >>> import streamsel

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1000))
    >>> model = streamsel.ProjSe(k=1)
    >>> model.learn_target(X[:, 7] + rng.normal(size=100))
    >>> model.learn_columns(X)
    >>> print(streamsel.report(model, format="md").splitlines()[0])
    # 1 of 1,000 variables selected. 1 exceeds the noise floor (0.39).

    In a notebook a model shows summary and table by itself. The full report goes to a file:

    >>> from pathlib import Path
    >>> Path("page.html").write_text(streamsel.report(model), encoding="utf-8")  # doctest: +SKIP
    """
    if format not in FORMATS:
        raise ValueError(f"Expected format='html', 'json' or 'md'. Got: {format!r}.")
    found = report_from(model)
    if stability is not None:
        _expect_stability_of(found, stability)
    metadata = metadata if isinstance(metadata, Mapping) else {}
    if not is_complete(metadata):
        found = found.without_certification()
    if format == "json":
        return _json(found, metadata, stability)
    if format == "md":
        from streamsel.reporting.markdown import render_markdown

        drawn = [] if stability is None else [stability_section(stability)]
        return render_markdown(build_document(found, metadata, drawn, stability, has_bars=False))
    from streamsel.reporting.html import render_html

    values = _values(model, found, data, y)
    drawn = plot_sections(model, found, data, y, stability, values)
    return render_html(build_document(found, metadata, drawn, stability, values))


def _expect_stability_of(report: Report, stability: SubsampleStability) -> None:
    """Raise ValueError for the stability of another selection."""
    parameters = stability.parameters
    for what, expected, got in (
        ("the class", report.learner, stability.learner),
        ("k", report.parameters.get("k"), parameters.get("k")),
        ("the number of rows", report.rows, stability.rows),
    ):
        if expected != got:
            raise _other_stability_error(f"{what} {expected}", str(got))
    # JSON may have changed the types of names.
    of_model = {as_json(row["name"]): row["name"] for row in report.results}
    of_all_rows, of_any = (
        {as_json(name): name for name in names}
        for names in (stability.selected, chain(stability.selected, *stability.selections))
    )
    # A bounded pool may have another selection, which subsamples select from as well.
    is_same = all(report.parameters.get(name) == parameters.get(name) for name in _POOL_PARAMETERS)
    missing = of_model.keys() - of_any.keys()
    if missing or (is_same and of_model.keys() != of_all_rows.keys()):
        raise _other_stability_error(
            f"the selection {_listed(of_model.values())}", _listed(of_all_rows.values())
        )


def _other_stability_error(expected: str, got: str) -> ValueError:
    return ValueError(
        f"Expected the stability of the selection of this model, with {expected}. Got: {got}.\n"
        "Hint: run streamsel stability, in Python streamsel.evaluate.subsample_stability, with the "
        "data and parameters of the model."
    )


def _listed(names: Iterable[Hashable]) -> str:
    first = [NameText(name).text for name in islice(names, _MAX_LISTED + 1)]
    return ", ".join(first[:_MAX_LISTED]) + ", …" * (len(first) > _MAX_LISTED) or "of nothing"


def _values(model: Any, report: Report, data: Any, y: Any) -> SelectedValues | None:
    """Return the values of selected variables in `data`, or those that the model stores.

    Groups of several columns are left out; None if there are no others.
    """
    if report.kind != "selected" or not report.results:
        return None
    if data is not None:
        single = _single_columns(model, report)
        return values_of_data(report, data, y, MAX_VALUES, single) if single else None
    if report.candidate == "group":
        return None
    return values_of_model(model, report, MAX_VALUES)


def _json(found: Report, metadata: Mapping[str, Any], stability: SubsampleStability | None) -> str:
    document = {
        "streamsel": __version__,
        "summary": summarize(found, complete=is_complete(metadata), stability=stability),
        **found.as_dict(),
        "warnings": all_warnings(found, metadata),
        "stability": None if stability is None else stability.as_dict(),
        "metadata": metadata,
        "cite": bibtex(found.learner),
    }
    return as_json(document, indent=2) + "\n"
