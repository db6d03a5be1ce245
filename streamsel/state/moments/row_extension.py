"""States that learn rows after the moments, for methods that need more than moments."""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, ClassVar, Literal, Self

from streamsel._kernels.row_moments import STEP
from streamsel._utils.rollback import Restore
from streamsel.state.base import ColumnState, Floats, Indices, State, VariableState
from streamsel.state.moments.moments import Moments
from streamsel.targets.target import NoTarget, Target

MergeAxis = Literal["columns", "rows"]

# A number of rows that is never reached.
NO_LIMIT = 1 << 62


# A function with its arguments, and a sequence of them to be called in order.
Step = tuple[Callable[..., object], tuple[Any, ...]]
Steps = Sequence[Step]


class RowExtension(State):
    """Row extension: a state updated with every row after the moments, and revised at fixed rows.

    A row is learnt in steps that cannot fail; the first updates the moments. Each step compares a
    number that the moments count up with its own, to see whether it is due. Code that finds a row
    half learnt therefore calls `learn_one` again: missing steps run, and no step runs twice.
    Everything that can fail comes before: `prepare_new` for rows with new variables or gaps, and
    `prepare_one`.
    """

    # Axes along which models that have learnt rows can be merged.
    merges_along: ClassVar[frozenset[MergeAxis]] = frozenset({"columns", "rows"})
    # Whether `prepare_one` must be called before each row, and whether targets are required.
    needs_preparation: bool = False
    needs_targets: bool = False
    # Whether `start` must be called when rows follow columns.
    starts_from_columns: ClassVar[bool] = False

    def start(
        self, columns: ColumnState | None, target: Target | NoTarget | None, moments: Moments
    ) -> None:
        """Continue from learnt columns, after their moments were reduced to capacity."""

    @abc.abstractmethod
    def add_variables(self, names: list[Hashable], moments: Moments) -> None:
        """Register variables that first occur in the next row; other indices may have changed."""

    @property
    def accepts_missing(self) -> bool:
        """Whether all rows with missing values can be learnt without `prepare_new`."""
        return True

    def is_ready_for(self, X: Floats, indices: Indices) -> bool:  # noqa: ARG002
        """Return whether rows, (b, m), can be learnt without `prepare_new`."""
        return True

    def prepare_new(self, X: Floats, indices: Indices, moments: Moments) -> None:
        """Register variables and missing values that first occur in rows, (b, m)."""

    def prepare_one(
        self, values: Floats, indices: Indices, y: Floats, moments: Moments, w: float
    ) -> None:
        """Run the part of learning a row that can fail; copies and files show no change."""

    @abc.abstractmethod
    def learn_one(
        self, values: Floats, indices: Indices, y: Floats, moments: Moments, w: float
    ) -> None:
        """Learn a row of weight w: values, NaN if missing, their indices, and targets.

        The moments have learnt it already. Nothing is done for a row learnt before.
        """

    @abc.abstractmethod
    def prepare_many(
        self, X: Floats, indices: Indices, Y: Floats, moments: Moments, w: Floats | None
    ) -> Steps:
        """Return the steps that learn rows, (b, m), and their targets, (b, c).

        The rows have weights w, (b,), or 1 each, and number at most `rows_at_once`. Each step
        checks whether it has run already.
        """

    def rows_at_once(self, width: int) -> int:  # noqa: ARG002
        """Return how many rows of so many variables and targets can be learnt at once."""
        return NO_LIMIT

    def learn_many(
        self, X: Floats, indices: Indices, Y: Floats, moments: Moments, w: Floats | None
    ) -> None:
        """Learn rows, (b, m), and their targets, (b, c), as many as `rows_until_refresh` allows.

        The moments have learnt them already.
        """
        size = self.rows_at_once(X.shape[1] + Y.shape[1])
        for start in range(0, len(X), size):
            rows = slice(start, start + size)
            moments.counts[STEP] = 0.0
            of_rows = None if w is None else w[rows]
            run_steps(self.prepare_many(X[rows], indices, Y[rows], moments, of_rows))

    def undo_row(self, indices: Indices) -> Restore | None:  # noqa: ARG002
        """Return a function that undoes a row of these variables; None if `snapshot` suffices.

        Called before `prepare_one`.
        """
        return None

    def detach(self) -> None:
        """Copy the arrays that compiled loops write into, so that a snapshot keeps the old ones."""

    @abc.abstractmethod
    def rows_until_refresh(self, moments: Moments) -> int:
        """Return how many rows may be learnt before `refresh_if_due` must be called, at least 1."""

    def rows_until_maintenance(self, moments: Moments) -> float:
        """Return how many rows may be learnt before other work than learning is due."""
        return self.rows_until_refresh(moments)

    def needs_maintenance(self, moments: Moments) -> bool:
        """Return whether `refresh_if_due` must be called after the next row."""
        return self.rows_until_refresh(moments) <= 1

    @abc.abstractmethod
    def refresh_if_due(self, moments: Moments) -> None:
        """Make the decisions that are due after the rows so far."""

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""

    def check_matches(self, moments: Moments) -> None:
        """Raise ValueError if a state from a file does not belong to these moments."""

    def view(self, moments: Moments) -> VariableState | None:  # noqa: ARG002
        """Return the view for results; None if these are computed from the moments."""
        return None

    def n_aligned_rows(self, moments: Moments) -> int:
        """Return the number of rows from which covariances of the variables are estimated."""
        return int(moments.rows)

    @abc.abstractmethod
    def protected(self) -> Collection[Hashable]:
        """Return the names that must not be discarded."""

    @abc.abstractmethod
    def before_merge(self, theirs: Self, along: MergeAxis) -> None:
        """Note the variables to protect, before merged variables are reduced to capacity."""

    @abc.abstractmethod
    def after_merge(
        self, theirs: Self, along: MergeAxis, moments: Moments, others: Moments
    ) -> None:
        """Update the state after the moments of both models were merged."""


def run_steps(steps: Steps) -> None:
    """Run the steps in order; a step that has run already has no effect."""
    for step, arguments in steps:
        step(*arguments)


def replace_attributes(state: State, moments: Moments, attributes: dict[str, Any]) -> Steps:
    """Return a single step that sets these attributes of a state."""
    return ((_put, (state, moments.counts, attributes)),)


def _put(state: State, counts: Floats, attributes: dict[str, Any]) -> None:
    if counts[STEP] == 0.0:
        for name, value in attributes.items():
            setattr(state, name, value)
        counts[STEP] = 1.0
