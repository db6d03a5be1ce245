"""Entry point of the report: a model in, text out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamsel import __version__
from streamsel.evaluate import SubsampleStability
from streamsel.learner.report import Report
from streamsel.page._again import again
from streamsel.page._cite import bibtex
from streamsel.page._sections import alarms, content, is_complete
from streamsel.page._verdict import verdict
from streamsel.plot._reports import report_of

FORMATS = ("html", "json", "md")


def report(
    model: Any,
    data: Any = None,
    *,
    y: Any = None,
    notes: Mapping[str, Any] | None = None,
    stability: SubsampleStability | None = None,
    format: str = "html",  # noqa: A002 (as the command calls it)
) -> str:
    """Return a report on a model: its results, their significance, and how they were obtained.

    The HTML report is one file without scripts or network requests, for screens of any size and
    dark mode; its size grows with the results, not with the data. The Markdown report has no plots;
    the JSON report has all results.

    Parameters
    ----------
    model
        A learner, or the `Report` of one.
    data
        Rows with the columns that the model uses, as for `transform_many`: for a scatter plot of
        components, or a heatmap of correlations of selected variables. Without it, only the data in
        the model are plotted.
    y
        The target of these rows, by which their points are coloured.
    notes
        Metadata of the model file, as from `read_notes`: its input files, command, and skipped
        columns.
    stability
        Selections over subsamples, as from `streamsel.evaluate.subsample_stability`.
    format
        `"html"`, `"json"` or `"md"`.

    Returns
    -------
    The report, as text.

    Raises
    ------
    ValueError
        For another format.
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
    found = report_of(model)
    metadata = notes if isinstance(notes, Mapping) else {}
    if not is_complete(metadata):
        found = found.unfinished()
    if format == "json":
        return _json(found, metadata, stability)
    if format == "md":
        from streamsel.page._markdown import markdown

        return markdown(content(found, metadata, [] if stability is None else [again(stability)]))
    from streamsel.page._html import html
    from streamsel.page._pictures import pictures

    return html(content(found, metadata, pictures(model, found, data, y, stability)))


def _json(found: Report, notes: Mapping[str, Any], stability: SubsampleStability | None) -> str:
    from streamsel.cli._json import as_json

    document = {
        "streamsel": __version__,
        "verdict": verdict(found, complete=is_complete(notes)),
        "alarms": alarms(found, notes),
        **found.as_dict(),
        "stability": None if stability is None else stability.as_dict(),
        "notes": notes,
        "cite": bibtex(found.learner),
    }
    return as_json(document, indent=2) + "\n"
