"""Inputs of plots: a report, passed directly or taken from a learner, and density of relevance."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.base.frame_columns import frame_columns
from streamsel.base.learner import Learner
from streamsel.base.report import NOISE_LEVEL, Density, Report
from streamsel.params import type_name
from streamsel.state.base import Floats


class Tests(NamedTuple):
    """Tests of all columns that vary.

    Parameters
    ----------
    names, p_values
        Names in order of arrival, and their p-values.
    selected
        Indices of the selected columns, in order of selection.
    threshold
        p-value of the noise floor.
    """

    names: list[Hashable]
    p_values: Floats
    selected: NDArray[np.intp]
    threshold: float


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
    check_has_varying_columns(report)
    why = "without a target" if report.target is None else "which discarded variables"
    raise ValueError(
        f"Expected a model with the relevance of its columns. Got: {report.learner}, "
        f"{why}.\nHint: use selection_path for a selector, scree or loadings for an "
        "extractor."
    )


def check_has_varying_columns(report: Report) -> None:
    """Raise if all columns that the model has seen are constant."""
    if report.columns_seen and report.columns_constant >= report.columns_seen:
        raise ValueError(
            f"Expected a model that has seen columns that vary. Got: {report.learner}, which has "
            f"seen {report.columns_seen:,} constant columns.\n"
            "Hint: check the source: each column has one value in all rows."
        )


def selected_columns(model: Any, report: Report) -> list[Hashable]:
    """Return the columns that a model has selected, in order; for groups, their members.

    Raises
    ------
    ValueError
        For a report of groups.
    """
    if report.candidate != "group":
        return [row["name"] for row in report.results]
    if isinstance(model, Report):
        raise ValueError(  # noqa: TRY004
            f"Expected a model, as its groups have columns. Got: a report of {report.learner}."
        )
    return list(dict.fromkeys(chain.from_iterable(model.members.values())))


def own_p_values(model: Any) -> Floats | None:
    """Return the p-values of all columns of a learner if they do not follow from the relevance.

    None if they do, or are not known.
    """
    own = None if isinstance(model, Report) else model._own_tests()
    return None if own is None else own.p_values


def tests_of(model: Any, report: Report) -> Tests:
    """Return the tests of all columns of a `SelectKBest`.

    Raises
    ------
    ValueError
        For a model without the p-values of all columns.
    """
    state = getattr(model, "_state", None)
    if not hasattr(model, "_all_scores") or state is None or not state.complete:
        got = f"{report.learner} without columns"
        if isinstance(model, Report):
            got = "a report"
        elif not hasattr(model, "_all_scores"):
            got = report.learner
        elif state is not None:
            got = f"{report.learner}, which discarded columns"
        raise ValueError(
            f"Expected a SelectKBest that has learnt, and tracks every column. Got: {got}.\n"
            "Hint: use SelectKBest with max_candidates=None and max_features=None, or plot the "
            "relevance by arrival, without metadata."
        )
    check_has_varying_columns(report)
    names, _, p_values = model._all_scores()
    if p_values is None:
        raise ValueError(
            f"Expected a score with p-values. Got: score={model.score!r}, which has none.\n"
            "Hint: plot the relevance by arrival, without metadata."
        )
    threshold = NOISE_LEVEL / max(1, len(names))
    null = model._significance.null
    if null is not None:
        threshold = float(null.p_values(np.array([model.noise_floor()]))[0])
    index_of = {name: i for i, name in enumerate(names)}
    selected = np.array([index_of[name] for name in model.selected], dtype=np.intp)
    return Tests(names, p_values, selected, threshold)


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
    # The report of a result of `select` is text.
    is_result = isinstance(getattr(model, "model", None), Learner)
    is_model = not (is_result or isinstance(model, type))
    result = report() if callable(report) and is_model else model
    if not isinstance(result, Report):
        hint = "for a pipeline pass the learner's step, pipeline['ProjSe'] or pipeline['History']."
        if is_result:
            hint = "pass result.model, the learner of a result; result.report() returns its report."
        elif isinstance(model, str | os.PathLike):
            hint = "streamsel.load(path) reads a saved model."
        elif type(model).__module__ == "streamsel.sklearn":
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
        expected = {"selected": "a selector", "components": "an extractor"}[kind]
        others = {
            "selected": "use scree, loadings or scatter for components",
            "components": "use selection_path or manhattan for selected variables",
        }[kind]
        raise TypeError(f"Expected {expected}. Got: {report.learner}.\nHint: {others}.")
    if not report.results:
        seen = f"{report.columns_seen:,} columns" if report.rows else "nothing yet"
        raise ValueError(
            f"Expected a model with results. Got: {report.learner}, which has seen "
            f"{seen}.\nHint: call learn_columns(X) first, or learn rows."
        )


def check_has_rows(X: Any) -> None:
    """Raise unless an array has the two rows that a correlation needs."""
    if len(X) < 2:
        raise ValueError(
            f"Expected at least 2 rows of data, for correlations. Got: {len(X)}.\nHint: the rows "
            "that the model has learnt from, or others like these."
        )


def check_has_columns(X: Any, names: Sequence[Hashable]) -> None:
    """Raise if a frame has none of these columns, because absent ones count as 0."""
    found = frame_columns(X, names) if names else None
    if found is not None and not found[0]:
        raise ValueError(
            f"Expected rows with the variables of the model, such as {names[0]!r}. Got: a frame "
            "that has none of them.\nHint: name its columns as in the data that were learnt."
        )
