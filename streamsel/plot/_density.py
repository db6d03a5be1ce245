"""Where the columns lie, as a report tells it."""

from __future__ import annotations

from streamsel.learner.report import Density, Report


def density_of(report: Report) -> Density:
    """Return where the columns of a report lie.

    Raises
    ------
    ValueError
        Where that is not known.
    """
    if report.density is not None:
        return report.density
    if not report.columns_seen:
        raise ValueError(
            f"Expected a model that has seen columns. Got: {report.learner}, which has seen none.\n"
            "Hint: learn_target(y) and learn_columns(X), or rows, come first."
        )
    raise ValueError(
        f"Expected a model that knows how relevant the columns were. Got: {report.learner}, "
        "without a target.\nHint: of a selector path, of an extractor scree and loadings show what "
        "was found."
    )
