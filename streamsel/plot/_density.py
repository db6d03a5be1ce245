"""Density of relevance over the stream, from a report."""

from __future__ import annotations

from streamsel.learner.report import Density, Report


def density_of(report: Report) -> Density:
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
        "without a target.\nHint: use path for a selector, scree or loadings for an extractor."
    )
