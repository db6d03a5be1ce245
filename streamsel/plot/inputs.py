"""Inputs of plots: a report, passed directly or taken from a learner, and density of relevance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from streamsel.base.report import Density, Report
from streamsel.base.row_input import frame_columns
from streamsel.params import type_name


def report_density(report: Report) -> Density:
    """Return the density of relevance of a report's columns.

    Raises
    ------
    ValueError
        If it is not known.
    """
    if report.density is not None:
        return report.density
    if not report.columns_seen:
        raise ValueError(
            f"Expected a model that has seen columns. Got: {report.learner}, which has seen none.\n"
            "Hint: call learn_target(y) and learn_columns(X) first, or learn rows."
        )
    raise ValueError(
        f"Expected a model with the relevance of its columns. Got: {report.learner}, "
        "without a target.\nHint: use selection_path for a selector, scree or loadings for an "
        "extractor."
    )


def report_from(model: Any, kind: str | None = None) -> Report:
    """Return the report of a learner, or the given report.

    Parameters
    ----------
    model
        A learner, or its report.
    kind
        The kind that the report must be of, with results; None for any report.

    Raises
    ------
    TypeError
        For any other object, and for a report of another kind.
    ValueError
        For a report without results, if `kind` is given.
    """
    report = getattr(model, "report", None)
    result = report() if callable(report) and not isinstance(model, type) else model
    if not isinstance(result, Report):
        hint = "for a pipeline pass the learner's step, pipeline['ProjSe'] or pipeline['History']."
        if type(model).__module__ == "streamsel.sklearn":
            hint = "a fitted estimator has its learner in learner_."
        raise TypeError(
            f"Expected a learner, or its report(). Got: {type_name(model)}.\nHint: {hint}"
        )
    if kind is not None:
        check_has_results_of_kind(result, kind)
    return result


def check_has_results_of_kind(report: Report, kind: str) -> None:
    """Raise if a report is of another kind or has no results."""
    if report.kind != kind:
        wanted = {"selected": "a selector", "components": "an extractor"}[kind]
        others = {
            "selected": "use scree, loadings or scatter for components",
            "components": "use selection_path or manhattan for selected variables",
        }[kind]
        raise TypeError(f"Expected {wanted}. Got: {report.learner}.\nHint: {others}.")
    if not report.results:
        seen = f"{report.columns_seen:,} columns" if report.rows else "nothing yet"
        raise ValueError(
            f"Expected a model with results. Got: {report.learner}, which has seen "
            f"{seen}.\nHint: call learn_columns(X) first, or learn rows."
        )


def check_has_columns(X: Any, names: Sequence[Hashable]) -> None:
    """Raise if a frame has none of these columns, because absent ones count as 0."""
    found = frame_columns(X, names) if names else None
    if found is not None and not found[0]:
        raise ValueError(
            f"Expected rows with the variables of the model, such as {names[0]!r}. Got: a frame "
            "that has none of them.\nHint: name its columns as in the data that were learnt."
        )
