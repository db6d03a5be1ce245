"""Merge models that have learnt other columns of the same rows, or other rows."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Self

from streamsel.held.beside import Along
from streamsel.held.merging import merge_columns, merge_rows, same_rows
from streamsel.held.moments import Moments
from streamsel.learner.column_axis import ColumnAxis
from streamsel.learner.row_axis import RowAxis
from streamsel.params import shown


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
                f"Expected a {type(self).__name__} with the same parameters. Got: {shown(other)}.\n"
                "Hint: create the models to be merged with clone()."
            )
        if not isinstance(along, str) or along not in ("columns", "rows"):
            raise ValueError(f"Expected along='columns' or 'rows'. Got: {shown(along)}.")
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
        self._whole(self._merge, other, along)

    def _merge(self, other: Self, along: str) -> None:
        self._forget_due()
        for part in (self._moments, self._beside):
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
        _refuse_shared_names(self._held_names(), other._held_names())
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
        self._outdate()

    def _merge_along_columns_of_rows(self, other: Self) -> None:
        moments, theirs = self._moments, other._moments
        if moments is None or theirs is None or not same_rows(moments, theirs):
            raise ValueError(
                "Expected two models of the same rows. Got: models of different rows.\n"
                "Hint: merge(other, along='rows') joins different rows."
            )
        _refuse_shared_names(moments.slots, theirs.slots)
        if self._beside is not None and "columns" not in self._beside.merges_along:
            raise ValueError(
                "Expected models that have not learnt rows, to merge along columns. Got: models "
                "that have, so covariances between their variables are not known.\n"
                "Hint: merge them before they learn rows; merge(other, along='rows') joins "
                "different rows."
            )
        merge_columns(moments, theirs)
        self.n_columns += other.n_columns
        self._finish_merge(other, moments, theirs, "columns")

    def _merge_along_rows(self, other: Self) -> None:
        theirs = other._rows_so_far() if other._moments is None else other._moments
        if theirs.rows == 0:
            return
        moments = self._rows_so_far() if self._moments is None else self._moments
        if moments.rows == 0:
            self._set_state(copy.deepcopy(other)._get_state())
            return
        if not moments.target.goes_with(theirs.target):
            raise ValueError(
                "Expected two models with the same type of target. Got: "
                f"{moments.target.form!r} and {theirs.target.form!r}, or different types of "
                "several targets or of covariates."
            )
        columns = moments.target.slots.keys() | theirs.target.slots.keys()
        self._check_target(moments.target.asked(columns), is_class=moments.target.form == "class")
        if self._moments is None:
            self._go_over_to(moments)
        n_shared = len(moments.slots.keys() & theirs.slots.keys())
        merge_rows(moments, theirs)
        self.n_columns += other.n_columns - n_shared
        self._finish_merge(other, moments, theirs, "rows")

    def _finish_merge(self, other: Self, moments: Moments, others: Moments, along: Along) -> None:
        """Update the model after a merge of the moments."""
        carried = other._carried_constant() if other._moments is None else 0
        self._n_constant += other._n_constant - carried
        self._outdate()
        theirs = other._new_beside() if other._beside is None else other._beside
        if self._beside is None or theirs is None:
            self._let_go_at_once(moments)
        else:
            self._beside.merging(theirs, along)
            self._let_go_at_once(moments)
            self._beside.merged(theirs, along, moments, others)
            self._outdate()
        self._renew_if_due(moments.rows)

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
