"""Merge models of other columns or other rows, and the results of passes over parts."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from streamsel.base.columns import ColumnAxis
from streamsel.base.rows import RowAxis
from streamsel.params import parameter_repr
from streamsel.state.base import ColumnState
from streamsel.state.moments.merging import (
    have_same_rows,
    merge_moments_of_columns,
    merge_moments_of_rows,
)
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import MergeAxis
from streamsel.stream import ColumnStream


class Merging(ColumnAxis, RowAxis):
    """Merge the learnt state of another model into this one."""

    def merge(self, other: Self, along: str = "columns") -> None:
        """Merge the learnt state of another model into this one.

        Parameters
        ----------
        other
            A model of the same class and parameters; it is not changed.
        along
            `"columns"` if the other model has learnt other variables of the same rows; `"rows"` if
            it has learnt other rows.

        Raises
        ------
        ValueError
            If class, parameters or targets differ, or, along columns, if both models track the same
            variable.
        """
        if type(other) is not type(self) or _comparable_parameters(other) != _comparable_parameters(
            self
        ):
            raise ValueError(
                f"Expected a {type(self).__name__} with the same parameters. Got: "
                f"{parameter_repr(other)}.\n"
                "Hint: create the models to be merged with clone()."
            )
        if not isinstance(along, str) or along not in ("columns", "rows"):
            raise ValueError(f"Expected along='columns' or 'rows'. Got: {parameter_repr(along)}.")
        if other is self:
            raise ValueError("Expected another model to merge. Got: the model itself.")
        if (
            self._window is not None
            or other._window is not None
            or (self._by_window and along == "rows")
        ):
            raise ValueError(
                "Expected models whose rows can be merged. Got: windows of rows.\n"
                "Hint: models of this kind can be merged along columns, before they learn rows."
            )
        self._learn_atomically(self._merge, other, along)

    def _merge(self, other: Self, along: str) -> None:
        self._recheck_due()
        for part in (self._moments, self._row_extension):
            if part is not None:
                part.detach()
        if along == "rows":
            self._merge_along_rows(other)
        elif other._on_rows or self._on_rows:
            self._merge_along_columns_of_rows(other)
        elif other._target is not None:
            self._merge_along_columns(other)

    def _merge_along_columns(self, other: Self) -> None:
        if self._target is None and not self._without_target:
            raise ValueError(
                "Expected a model with a target to merge into. Got: a model without a target.\n"
                "Hint: call learn_target(y) on both, with the same y."
            )
        assert other._target is not None  # noqa: S101
        target = self._expected_target(other._target.n)
        if not target.same_as(other._target):
            raise ValueError(
                "Expected two models of the same target, weights and included rows. "
                "Got: different targets, weights or rows.\n"
                "Hint: merge(other) joins different columns of the same rows; "
                "merge(other, along='rows') joins different rows."
            )
        _refuse_shared_names(self._tracked_names(), other._tracked_names())
        if other._columns is not None:
            if self._columns is None:
                self._columns = self._new_columns(target.n)
            self._columns.merge(other._columns, self.n_columns)
        self._target = target
        if self._summary is None or other._summary is None:
            self._summary = None
        else:
            self._summary.merge(other._summary, self.n_columns, other.n_columns)
        self.n_columns += other.n_columns
        self._n_constant += other._n_constant
        self.n_passes = max(self.n_passes, other.n_passes)
        self._invalidate()

    def _merge_along_columns_of_rows(self, other: Self) -> None:
        moments, theirs = self._moments, other._moments
        if moments is None or theirs is None or not have_same_rows(moments, theirs):
            raise ValueError(
                "Expected two models of the same rows. Got: models of different rows.\n"
                "Hint: merge(other, along='rows') joins different rows."
            )
        _refuse_shared_names(moments.index_of, theirs.index_of)
        if self._row_extension is not None and "columns" not in self._row_extension.merges_along:
            raise ValueError(
                "Expected models that have not learnt rows, to merge along columns. Got: models "
                "that have, so covariances between their variables are not known.\n"
                "Hint: merge them before they learn rows; merge(other, along='rows') joins "
                "different rows."
            )
        merge_moments_of_columns(moments, theirs)
        self.n_columns += other.n_columns
        self._finish_merge(other, moments, theirs, "columns")

    def _merge_along_rows(self, other: Self) -> None:
        theirs = other._current_or_new_moments() if other._moments is None else other._moments
        if theirs.rows == 0:
            return
        moments = self._current_or_new_moments() if self._moments is None else self._moments
        if moments.rows == 0:
            self._set_state(copy.deepcopy(other)._get_state())
            return
        if not moments.target.is_compatible(theirs.target):
            raise ValueError(
                "Expected two models with the same type of target. Got: "
                f"{moments.target.form!r} and {theirs.target.form!r}, or different types of "
                "several targets or of covariates."
            )
        columns = moments.target.index_of.keys() | theirs.target.index_of.keys()
        self._check_target(
            moments.target.count_targets(columns), is_class=moments.target.form == "class"
        )
        if self._moments is None:
            self._switch_to_rows(moments)
        n_shared = len(moments.index_of.keys() & theirs.index_of.keys())
        merge_moments_of_rows(moments, theirs)
        self.n_columns += other.n_columns - n_shared
        self._finish_merge(other, moments, theirs, "rows")

    def _finish_merge(
        self, other: Self, moments: Moments, others: Moments, along: MergeAxis
    ) -> None:
        """Update the model after a merge of the moments."""
        carried = other._n_constant_carried() if other._moments is None else 0
        self._n_constant += other._n_constant - carried
        self._invalidate()
        theirs = (
            other._new_row_extension() if other._row_extension is None else other._row_extension
        )
        if self._row_extension is None or theirs is None:
            self._evict_to_capacity(moments)
        else:
            self._row_extension.before_merge(theirs, along)
            self._evict_to_capacity(moments)
            self._row_extension.after_merge(theirs, along, moments, others)
            self._invalidate()
        self._refresh_if_due(moments.rows)

    if TYPE_CHECKING:
        # Provided by River's base class and by the learner.
        def _get_params(self) -> dict[str, Any]: ...

        def _get_state(self) -> dict[str, Any]: ...

        def _set_state(self, state: dict[str, Any]) -> None: ...


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

    def read(self, stream: ColumnStream, arrival: int) -> Any:
        """Return the `PassResult` of the columns of a part, without changing the pass.

        Parameters
        ----------
        stream
            The columns of the part.
        arrival
            Number of columns before them.
        """


class PartitionedLearning(Merging):
    """Base class of learners that can learn parts of the columns in clones, and merge these."""

    _column_state_type: ClassVar[type[ColumnState]]

    def _reason_not_partitioned(self) -> str | None:
        """Return why columns cannot be learnt in parts; None if they can."""
        return self._column_state_type.why_not_mergeable or None

    def _learn_part(self, stream: ColumnStream) -> None:
        """Learn the columns of a part as `learn_columns` does, without further passes."""
        self._refuse_after_rows()
        self._learn_in_session(Exception if stream.reiterable else (), self._learn_once, stream)

    def _empty_clone(self) -> Self:
        """Return a clone with the same target, which has learnt no columns."""
        twin: Self = self.clone()  # type: ignore[attr-defined]
        for name in ("_target", "_space", "_without_target"):
            setattr(twin, name, getattr(self, name))
        twin._summary = self._new_summary()
        return twin

    def _next_pass(self) -> Pass | None:
        """Return the next pass over the columns; None if no further pass is required.

        An exact selector requires passes until its answer is proven; an extractor for which
        `learn_loadings` adds results requires one pass.
        """
        return None

    def _apply_pass(self, reading: Any, found: Any) -> None:
        """Update the model with the result of the next pass over all columns."""
        raise NotImplementedError
