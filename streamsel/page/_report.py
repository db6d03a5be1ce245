"""The door of the page: a model in, text out."""

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
    """Return a page that tells what a model has found, whether to believe it, and how it was made.

    It is one HTML file that fetches nothing and runs nothing, can be read on a telephone and in the
    dark, and grows with what was found, not with what was read. As Markdown it has no pictures, and
    as JSON all of what was found.

    Parameters
    ----------
    model
        A learner, or the `Report` of one.
    data
        Rows with the columns that the model uses, as `transform_many` takes them: for a picture of
        components, or of the correlations among the chosen. Without it only what the model holds is
        drawn.
    y
        The target of these rows, by which their points are coloured.
    notes
        What was noted beside the model, as `read_notes` returns it: the page then knows its files,
        its command, and what was skipped.
    stability
        What is selected of other samples, as `streamsel.evaluate.subsample_stability` returns it.
    format
        `"html"`, `"json"` or `"md"`.

    Returns
    -------
    The page, as text.

    Raises
    ------
    ValueError
        For another format.
    TypeError
        For a model that is none.
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

    In a notebook a model shows verdict and table by itself. The whole page goes to a file:

    >>> from pathlib import Path
    >>> Path("page.html").write_text(streamsel.report(model), encoding="utf-8")  # doctest: +SKIP
    """
    if format not in FORMATS:
        raise ValueError(f"Expected format='html', 'json' or 'md'. Got: {format!r}.")
    found = report_of(model)
    told = notes if isinstance(notes, Mapping) else {}
    if not is_complete(told):
        found = found.unfinished()
    if format == "json":
        return _json(found, told, stability)
    if format == "md":
        from streamsel.page._markdown import markdown

        return markdown(content(found, told, [] if stability is None else [again(stability)]))
    from streamsel.page._html import html
    from streamsel.page._pictures import pictures

    return html(content(found, told, pictures(model, found, data, y, stability)))


def _json(found: Report, notes: Mapping[str, Any], stability: SubsampleStability | None) -> str:
    from streamsel.cli._json import as_json

    told = {
        "streamsel": __version__,
        "verdict": verdict(found, complete=is_complete(notes)),
        "alarms": alarms(found, notes),
        **found.as_dict(),
        "stability": None if stability is None else stability.as_dict(),
        "notes": notes,
        "cite": bibtex(found.learner),
    }
    return as_json(told, indent=2) + "\n"
