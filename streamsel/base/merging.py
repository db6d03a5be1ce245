"""Merge models of different columns or different rows, and the results of passes over parts."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

from streamsel.base.rows import RowPhase
from streamsel.base.to_rows import new_row_phase
from streamsel.base.windows import WindowPhase
from streamsel.params import parameter_repr
from streamsel.state.moments.merging import (
    have_same_rows,
    merge_moments_of_columns,
    merge_moments_of_rows,
)
from streamsel.state.moments.row_extension import MergeAxis
from streamsel.stream import ColumnStream
from streamsel.targets.whitening import Whitening

if TYPE_CHECKING:
    from streamsel.base.learner import Learner


def check_mergeable(model: Learner, other: Learner, along: Any) -> None:
    """Raise ValueError for models that cannot be merged."""
    if type(other) is not type(model) or _comparable_parameters(other) != _comparable_parameters(
        model
    ):
        raise ValueError(
            f"Expected a {type(model).__name__} with the same parameters. Got: "
            f"{parameter_repr(other)}.\n"
            "Hint: create the models to be merged with clone()."
        )
    if not isinstance(along, str) or along not in ("columns", "rows"):
        raise ValueError(f"Expected along='columns' or 'rows'. Got: {parameter_repr(along)}.")
    if other is model:
        raise ValueError("Expected another model to merge. Got: the model itself.")
    is_on_windows = any(isinstance(part._phase, WindowPhase) for part in (model, other))
    has_windows = model._by_window or any(part._phase.is_grouped for part in (model, other))
    if is_on_windows or (has_windows and along == "rows"):
        raise ValueError(
            "Expected models whose rows can be merged. Got: windows of rows.\n"
            "Hint: models of this kind can be merged along columns, before they learn rows."
        )


def merge_columns(model: Learner, other: Learner) -> None:
    """Add other columns of the same rows."""
    mine, theirs = model._column_phase, other._column_phase
    if theirs.target is None:
        return
    if mine.target is None and not mine.without_target:
        raise ValueError(
            "Expected a model with a target to merge into. Got: a model without a target.\n"
            "Hint: call learn_target(y) on both, with the same y."
        )
    target = mine.expected_target(model, theirs.target.n)
    if not target.same_as(theirs.target):
        related = any(isinstance(one.row_transform, Whitening) for one in (target, theirs.target))
        also = ", relatedness" if related else ""
        raise ValueError(
            f"Expected two models of the same target, weights{also} and included rows. "
            f"Got: different targets, weights{also} or rows.\n"
            "Hint: merge(other) joins different columns of the same rows; "
            "merge(other, along='rows') joins different rows."
        )
    _refuse_shared_names(mine.tracked_names(), theirs.tracked_names())
    mine.target = target
    columns, n_candidates = theirs.columns, theirs.n_candidates
    if columns is not None:
        if mine.is_grouped or theirs.is_grouped:
            columns = theirs.as_groups(other, target)
            mine.start_groups(model, target)
        elif mine.columns is None:
            mine.columns = model._new_columns(target.n)
        assert mine.columns is not None  # noqa: S101
        mine.columns.merge(columns, mine.n_candidates)
    if mine.summary is None or theirs.summary is None:
        mine.summary = None
    else:
        mine.summary.merge(theirs.summary, mine.n_candidates, n_candidates)
    if mine.kept_constants is None or theirs.kept_constants is None:
        mine.kept_constants = None
    else:
        mine.kept_constants = mine.kept_constants | {
            name: column._replace(arrival=column.arrival + mine.n_columns)
            for name, column in theirs.kept_constants.items()
        }
    if mine.group_counts is not None:
        constant = (
            theirs.constant if theirs.group_counts is None else theirs.group_counts.n_constant
        )
        mine.group_counts = mine.group_counts.plus(n_candidates, constant)
    mine.n_columns += theirs.n_columns
    mine.source = mine.source.merged(theirs.source)
    mine.constant += theirs.constant
    mine.n_passes = max(mine.n_passes, theirs.n_passes)
    model._invalidate()


def merge_columns_of_rows(model: Learner, other: Learner) -> None:
    """Add other variables of the same rows, which were learnt as rows."""
    mine, theirs = model._phase, other._phase
    if (
        not isinstance(mine, RowPhase)
        or not isinstance(theirs, RowPhase)
        or not have_same_rows(mine.moments, theirs.moments)
    ):
        raise different_rows_error()
    _refuse_shared_names(mine.moments.index_of, theirs.moments.index_of)
    if mine.extension is not None and "columns" not in mine.extension.merges_along:
        raise ValueError(
            "Expected models that have not learnt rows, to merge along columns. Got: models "
            "that have, so covariances between their variables are not known.\n"
            "Hint: merge them before they learn rows; merge(other, along='rows') joins "
            "different rows."
        )
    merge_moments_of_columns(mine.moments, theirs.moments)
    mine.n_columns += theirs.n_columns
    _finish_merge(model, mine, theirs, "columns")


def merge_rows(model: Learner, other: Learner) -> None:
    """Add other rows of the same variables."""
    mine, theirs = _rows_of(model), _rows_of(other)
    if theirs.moments.rows == 0:
        return
    if mine.moments.rows == 0:
        model._set_state(copy.deepcopy(other)._get_state())
        return
    if theirs is not other._phase and theirs.needs_columns:
        # The extension of the other model continues from its columns.
        other = copy.deepcopy(other)
        theirs = _rows_of(other)
        theirs.start(other)
    target, their_target = mine.moments.target, theirs.moments.target
    if not target.is_compatible(their_target):
        raise ValueError(
            "Expected two models with the same type of target. Got: "
            f"{target.form!r} and {their_target.form!r}, or different types of "
            "several targets or of covariates."
        )
    columns = target.index_of.keys() | their_target.index_of.keys()
    model._check_target(target.count_targets(columns), is_class=target.form == "class")
    if model._phase is not mine:
        mine.start(model)
    n_shared = len(mine.moments.index_of.keys() & theirs.moments.index_of.keys())
    merge_moments_of_rows(mine.moments, theirs.moments)
    mine.n_columns += theirs.n_columns - n_shared
    _finish_merge(model, mine, theirs, "rows")


def _rows_of(model: Learner) -> RowPhase:
    """Return the phase of a model on rows, or a new one that continues from its columns."""
    phase = model._phase
    return phase if isinstance(phase, RowPhase) else new_row_phase(model, phase)


def _finish_merge(model: Learner, mine: RowPhase, theirs: RowPhase, along: MergeAxis) -> None:
    """Update the model after a merge of the moments."""
    mine.constant += theirs.constant
    model._invalidate()
    if mine.extension is None or theirs.extension is None:
        mine.evict_to_capacity(model)
    else:
        mine.extension.before_merge(theirs.extension, along)
        mine.evict_to_capacity(model)
        mine.extension.after_merge(theirs.extension, along, mine.moments, theirs.moments)
        model._invalidate()
    model._refresh_if_due(mine.moments.rows)


def different_rows_error() -> ValueError:
    """Return the error for models of different rows that are merged along columns."""
    return ValueError(
        "Expected two models of the same rows. Got: models of different rows.\n"
        "Hint: merge(other, along='rows') joins different rows."
    )


def _comparable_parameters(model: Any) -> dict[str, str]:
    """Return the parameters as text: equal estimators as parameters do not compare equal."""
    # `n_jobs` is the only parameter that does not affect the result.
    return {name: repr(value) for name, value in model._get_params().items() if name != "n_jobs"}


def _refuse_shared_names(mine: Mapping[Hashable, int], theirs: Mapping[Hashable, int]) -> None:
    both = mine.keys() & theirs.keys()
    if both:
        raise ValueError(
            f"Expected models of different columns. Got: {next(iter(both))!r} in both.\n"
            "Hint: merge(other, along='rows') joins different rows of the same variables."
        )


class PassResult(Protocol):
    """Result of a pass over consecutive columns: of one part, or of several merged parts.

    Attributes
    ----------
    n_read
        Number of columns.
    """

    n_read: int

    def merge(self, other: Self) -> None:
        """Merge the result of the columns that follow directly."""


class Pass(Protocol):
    """A further pass over all columns."""

    def read(self, stream: ColumnStream, arrival: int) -> PassResult:
        """Return the result of the columns of a part, without changing the pass.

        Parameters
        ----------
        stream
            The columns of the part.
        arrival
            Number of columns before them.
        """
