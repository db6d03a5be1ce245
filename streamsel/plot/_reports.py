"""What a picture is made of: a report, whether it is handed over or a learner's."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from streamsel.learner.report import Report
from streamsel.params import kind_of
from streamsel.rows import columns_of


def report_of(model: Any) -> Report:
    """Return a report, or that of a learner.

    Raises
    ------
    TypeError
        For anything else.
    """
    if isinstance(model, Report):
        return model
    report = getattr(model, "report", None)
    found = None if isinstance(model, type) or not callable(report) else report()
    if isinstance(found, Report):
        return found
    hint = "of a pipeline take the step that learns, pipeline['ProjSe'] or pipeline['History']."
    if type(model).__module__ == "streamsel.sklearn":
        hint = "an estimator that was fitted has its learner in learner_."
    raise TypeError(f"Expected a learner, or its report(). Got: {kind_of(model)}.\nHint: {hint}")


def expect_found(report: Report, kind: str) -> None:
    """Refuse a report of another kind, and one that tells of nothing yet."""
    if report.kind != kind:
        wanted = {"selected": "a selector", "components": "an extractor"}[kind]
        others = {
            "selected": "scree, loadings and scatter show components",
            "components": "path and relevance show what was selected",
        }[kind]
        raise TypeError(f"Expected {wanted}. Got: {report.learner}.\nHint: {others}.")
    expect_learnt(report)


def expect_learnt(report: Report) -> None:
    """Refuse a report that tells of nothing yet."""
    if not report.found:
        seen = f"{report.columns_seen:,} columns" if report.rows else "nothing yet"
        raise ValueError(
            f"Expected a model that has found something. Got: {report.learner}, which has seen "
            f"{seen}.\nHint: learn_columns(X), or rows, come first."
        )


def expect_some(X: Any, names: Sequence[Hashable]) -> None:
    """Refuse a frame without any of the columns of these names: each would count as 0."""
    held = columns_of(X, names) if names else None
    if held is not None and not held[0]:
        raise ValueError(
            f"Expected rows with the variables of the model, such as {names[0]!r}. Got: a frame "
            "that has none of them.\nHint: its columns are to have the names that were learnt."
        )
