"""The contract of two axes: what every learner is, and how River sees it."""

from __future__ import annotations

import abc
import copy
import numbers
from collections.abc import Hashable
from typing import Any, ClassVar, Self

from streamsel import params
from streamsel.column_axis import ColumnAxis
from streamsel.merging import merge_columns, merge_rows, same_rows
from streamsel.moments import Moments
from streamsel.noise import noise_floor
from streamsel.row_axis import RowAxis
from streamsel.target import KINDS, NoTarget, Target, TargetSpace


class Learner(ColumnAxis, RowAxis):
    """What selectors and extractors have in common: one state that columns and rows fill."""

    _rules: ClassVar[dict[str, params.Rule]] = {
        "fading_factor": params.Real(0.0, below=1.0),
        "max_features": params.Whole(1, optional=True),
        "grace_period": params.Whole(1),
        "target": params.Choice(KINDS),
        "n_jobs": params.Jobs(),
    }

    def __init__(self) -> None:
        params.check(type(self).__name__, self._rules, vars(self))
        ColumnAxis.__init__(self)
        RowAxis.__init__(self)

    # What was learnt

    @property
    def n_rows(self) -> int | None:
        """Rows seen: observations in every column, and rows since; None before there is one."""
        if self._moments is not None:
            return int(self._moments.rows)
        return None if self._target is None else self._target.n

    @property
    def n_constant(self) -> int:
        """Variables among those seen that do not vary."""
        if self._moments is None:
            return self._n_constant
        return self._n_constant + int((self._moments.over_all_rows().m2 == 0.0).sum())

    @property
    @abc.abstractmethod
    def relevance(self) -> dict[Hashable, float]:
        """Relevance, in [0, 1], of what the model puts out: name -> ‖Uᵀx̃‖ / ‖x̃‖."""

    def noise_floor(self, level: float = 0.05) -> float:
        """Return the relevance that the best of as many noise columns exceeds with this chance.

        Parameters
        ----------
        level
            The chance, over all columns seen, that noise passes for more.

        Returns
        -------
        A relevance in [0, 1]; NaN where there is none: without a target, for one.

        Raises
        ------
        ValueError
            For a level outside (0, 1), or before the target is known.

        Notes
        -----
        Of n Gaussian observations without association relevance² ~ Beta(r/2, (n - 1 - r)/2), r the
        rank of the target. Among p columns the largest is below the 1 - level/p quantile with
        chance at least 1 - level (Bonferroni). Where n - 1 <= r every column is explained in full,
        and the floor is 1.

        The floor is for single columns: a component of SOSPCA, chosen and rotated among them,
        passes it more often. Rows that fade count as so many of equal weight, (Σw)² / Σw². With a
        kernel that is not linear it is the largest relevance in feature space of 4,096 directions,
        drawn once, along which a variable is as relevant as the linear floor; NaN where that kernel
        sees the scale of a variable (scale=False).
        """
        if not isinstance(level, numbers.Real) or not 0.0 < level < 1.0:
            raise ValueError(f"The 'level' must be in the range (0, 1). Got {level!r} instead.")
        if self._without_target:
            return float("nan")
        if self._moments is not None:
            n, space = self._moments.effective_rows, self._row_space(self._moments)
        elif self._target is None or self._space is None:
            raise ValueError(
                "Expected a target before the noise floor is asked for.\n"
                "Hint: call learn_target(y) first, or learn rows."
            )
        else:
            n, space = float(self._target.n), self._space
        floor = noise_floor(n, space.linear_rank, self.n_columns - self.n_constant, level)
        return space.largest_relevance(floor)

    # Merging

    def merge(self, other: Self, along: str = "columns") -> None:
        """Take in what another model has learnt.

        Parameters
        ----------
        other
            A model of the same class and parameters; left as it is.
        along
            `"columns"`: the other learnt other variables over the same rows; `"rows"`: it learnt
            other rows.

        Raises
        ------
        ValueError
            Where class, parameters or targets do not fit, or, along columns, a variable is held by
            both.
        """
        # The number of threads is the one parameter that changes nothing.
        apart = {"n_jobs": None}
        if type(other) is not type(self) or (
            other._get_params() | apart != self._get_params() | apart
        ):
            raise ValueError(
                f"Expected a {type(self).__name__} with the same parameters. Got: {other!r}.\n"
                "Hint: models that are to be merged are clones of one another."
            )
        if other is self:
            raise ValueError("Expected another model to merge. Got: the model itself.")
        if along == "rows":
            self._merge_along_rows(other)
        elif along != "columns":
            raise ValueError(f"Expected along='columns' or 'rows'. Got: {along!r}.")
        elif other._moments is not None or self._moments is not None:
            self._merge_along_columns_of_rows(other)
        elif other._target is not None:
            self._merge_along_columns(other)

    def _merge_along_columns(self, other: Self) -> None:
        if self._target is None and not self._without_target:
            raise ValueError(
                "Expected a model with a target to merge into. Got: one without.\n"
                "Hint: call learn_target(y) on both, with the same y."
            )
        assert other._target is not None  # noqa: S101
        mine = self._expected_target(other._target.n)
        if not mine.same_as(other._target):
            raise ValueError(
                "Expected two models of the same target. Got: different targets.\n"
                "Hint: models can be merged that learnt different columns of the same rows; "
                "merge(other, along='rows') joins different rows."
            )
        self._refuse_common(self._held_names(), other._held_names())
        mark = self._mark()
        try:
            self._merge(other)
        except BaseException:
            self._rewind(mark)
            raise
        self._target = mine
        self.n_columns += other.n_columns
        self._n_constant += other._n_constant

    @staticmethod
    def _refuse_common(mine: dict[Hashable, int], theirs: dict[Hashable, int]) -> None:
        both = mine.keys() & theirs.keys()
        if both:
            raise ValueError(
                f"Expected models of different columns. Got: {next(iter(both))!r} in both.\n"
                "Hint: merge(other, along='rows') joins different rows of the same variables."
            )

    def _merge_along_columns_of_rows(self, other: Self) -> None:
        mine, theirs = self._moments, other._moments
        if mine is None or theirs is None or not same_rows(mine, theirs):
            raise ValueError(
                "Expected two models of the same rows. Got: models of different rows.\n"
                "Hint: merge(other, along='rows') joins different rows."
            )
        self._refuse_common(mine.table.slots, theirs.table.slots)
        merge_columns(mine, theirs)
        self.n_columns += other.n_columns
        self._merged(other, "columns")

    def _merge_along_rows(self, other: Self) -> None:
        theirs = other._rows_so_far() if other._moments is None else other._moments
        if theirs.rows == 0:
            return
        mine = self._rows_so_far() if self._moments is None else self._moments
        if mine.rows == 0:
            self._set_state(copy.deepcopy(other)._get_state())
            return
        kinds = theirs.target.kinds.items()
        if mine.target.form != theirs.target.form or any(
            mine.target.kinds.get(name, is_label) is not is_label for name, is_label in kinds
        ):
            raise ValueError(
                "Expected two models of the same form of target. Got: "
                f"{mine.target.form!r} and {theirs.target.form!r}, or other kinds of several."
            )
        if self._moments is None:
            self._begin(mine)
        common = len(mine.table.slots.keys() & theirs.table.slots.keys())
        merge_rows(mine, theirs)
        self.n_columns += other.n_columns - common
        self._merged(other, "rows")

    def _merged(self, other: Self, along: str) -> None:  # noqa: ARG002
        """Follow a merge of the moments, along "columns" or "rows"."""
        assert self._moments is not None  # noqa: S101
        carried = other._carried_constant() if other._moments is None else 0
        self._n_constant += other._n_constant - carried
        self._outdate()
        self._let_go_at_once(self._moments)

    @abc.abstractmethod
    def _merge(self, other: Self) -> None:
        """Take in another model's state; the target is the same, the columns are not."""

    # Persistence

    def __getstate__(self) -> dict[str, Any]:
        return {"params": self._get_params(), "state": self._get_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, **state["params"])
        self._set_state(state["state"])

    def _get_state(self) -> dict[str, Any]:
        """Return what was learnt, as arrays and values that JSON can hold (names as lists)."""
        target = self._target
        state: dict[str, Any] = {
            "n_columns": self.n_columns,
            "n_constant": self._n_constant,
            "without_target": self._without_target,
            "n_rows": None if target is None else target.n,
        }
        if self._moments is not None:
            state["moments"] = self._moments.to_state()
            state["full_until"] = self._vocabulary.full_until
        if isinstance(target, Target):
            state |= target.to_state()
        return state

    def _set_state(self, state: dict[str, Any]) -> None:
        """Take up what `_get_state` returned."""
        self.n_columns = state["n_columns"]
        self._n_constant = state["n_constant"]
        self._without_target = state["without_target"]
        if "moments" in state:
            self._moments = Moments.from_state(state["moments"], self.fading_factor, self.target)
            self._vocabulary.full_until = state["full_until"]
        elif "target_Y" in state:
            self._target = Target.restored(state)
            self._space = TargetSpace(self._target.cyy, self._target.n, self._variable_kernel())
        elif state["n_rows"] is not None:
            self._target = NoTarget(state["n_rows"])
