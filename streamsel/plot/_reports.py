"""Inputs of plots: a report, passed directly or taken from a learner."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from streamsel.learner.report import Report
from streamsel.params import kind_of
from streamsel.rows import columns_of


def report_of(model: Any) -> Report:
    """Return the report of a learner, or the given report.

    Raises
    ------
    TypeError
        For any other object.
    """
    if isinstance(model, Report):
        return model
    report = getattr(model, "report", None)
    result = None if isinstance(model, type) or not callable(report) else report()
    if isinstance(result, Report):
        return result
    hint = "for a pipeline pass the learner's step, pipeline['ProjSe'] or pipeline['History']."
    if type(model).__module__ == "streamsel.sklearn":
        hint = "a fitted estimator has its learner in learner_."
    raise TypeError(f"Expected a learner, or its report(). Got: {kind_of(model)}.\nHint: {hint}")


def expect_found(report: Report, kind: str) -> None:
    """Raise if a report is of another kind or has no results."""
    if report.kind != kind:
        wanted = {"selected": "a selector", "components": "an extractor"}[kind]
        others = {
            "selected": "use scree, loadings or scatter for components",
            "components": "use path or relevance for selected variables",
        }[kind]
        raise TypeError(f"Expected {wanted}. Got: {report.learner}.\nHint: {others}.")
    expect_learnt(report)


def expect_learnt(report: Report) -> None:
    """Raise if a report has no results."""
    if not report.found:
        seen = f"{report.columns_seen:,} columns" if report.rows else "nothing yet"
        raise ValueError(
            f"Expected a model with results. Got: {report.learner}, which has seen "
            f"{seen}.\nHint: call learn_columns(X) first, or learn rows."
        )


def expect_some(X: Any, names: Sequence[Hashable]) -> None:
    """Raise if a frame has none of these columns, because absent ones count as 0."""
    found = columns_of(X, names) if names else None
    if found is not None and not found[0]:
        raise ValueError(
            f"Expected rows with the variables of the model, such as {names[0]!r}. Got: a frame "
            "that has none of them.\nHint: name its columns as in the data that were learnt."
        )
