"""Define the phase of a learner on tumbling windows of rows, and the buffer of a window.

Rows are buffered, and learnt as columns when the window is full. Windows serve methods on rows
whose criterion is not a function of moments.
"""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsel.base.groups import GroupCounts, groups_to_state
from streamsel.base.phase import LearnerHooks, Phase, columns_to_state
from streamsel.base.row_input import in_canonical_order, read_frame
from streamsel.base.row_values import bad_value_error, first_bad_value, read_strictly, read_values
from streamsel.base.undo import with_rollback
from streamsel.data.names import bad_name_error, first_invalid_name
from streamsel.serialization.invariants import expect_bounded
from streamsel.serialization.schema import (
    ArrayKind,
    CountKind,
    NamesKind,
    expect,
    expect_shapes,
    length_in,
)
from streamsel.state.base import ColumnState, Floats, Indices, State, VariableState, zero_padded
from streamsel.state.stream_summary import StreamSummary
from streamsel.targets.observation import NO_TARGET, Observation
from streamsel.targets.rows import RowTarget, unequal_length_error
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import NoTarget, Target


class TargetRows(NamedTuple):
    """Targets of rows: an observation, and its columns by name, (b,) each."""

    seen: Observation
    columns: dict[Hashable, Floats]


class Window(State):
    """Buffer of the rows since the last full window.

    Parameters
    ----------
    size
        Number of rows of a full window.
    target
        Names and form of the target; None without a target.
    max_features
        Maximum number of variables in a window; None for all. The first ones to occur are kept.

    Attributes
    ----------
    before, count, rows
        Numbers of rows before this window, in it, and in total.
    index_of
        Variables of the window: name -> column of `X`.
    X, Y
        (size, p) values, NaN where not observed, and (size, c) columns of the target.
    """

    changing = (
        "target",
        "before",
        "count",
        "index_of",
        "_names",
        "_row_indices",
        "_column_indices",
        "X",
        "Y",
    )

    def __init__(self, size: int, target: RowTarget | None, max_features: int | None) -> None:
        self.size = size
        self.target = target
        self.max_features = max_features
        self.before = self.count = 0
        self.empty()

    @property
    def rows(self) -> int:
        """Number of rows seen, in this window and before it."""
        return self.before + self.count

    def empty(self) -> None:
        """Start an empty window."""
        self.before, self.count = self.rows, 0
        self.index_of: dict[Hashable, int] = {}
        # Names of the previous row, and the indices of those that are kept: in the row, and in X.
        self._names: list[Hashable] = []
        self._row_indices: Indices = np.zeros(0, dtype=np.intp)
        self._column_indices: Indices = np.zeros(0, dtype=np.intp)
        self.X: Floats = np.zeros((self.size, 0))
        self.Y: Floats = np.zeros((self.size, 0 if self.target is None else len(self.target)))

    @property
    def is_full(self) -> bool:
        """Whether the window is full."""
        return self.count == self.size

    def read_one(self, x: Any, y: Any) -> tuple[list[Hashable], Floats, TargetRows]:
        """Return the names, values (1, m) and targets of a row, without changing the window."""
        seen = Observation(NO_TARGET, {}) if self.target is None else self.target.observe_one(y)
        values, names = read_values(x), list(x)
        if names != self._names:
            values, unfit = read_strictly(x), first_invalid_name(names, {})
            if unfit is not None:
                raise bad_name_error(names[unfit])
        bad = first_bad_value(values)
        if bad is not None:
            raise bad_value_error(names[bad], values[bad])
        columns = {name: np.array([value]) for name, value in seen.first.items()}
        return names, values[None], TargetRows(seen, columns)

    def read_many(self, X: Any, y: Any) -> tuple[list[Hashable], Floats, TargetRows]:
        """Return the names, values (b, m) and targets of rows, without changing the window."""
        names, values = read_frame(X)
        if self.target is None or not len(values):
            return names, values, TargetRows(Observation(NO_TARGET, {}), {})
        seen, encoded = self.target.observe_many(y)
        if len(encoded.columns) != len(values):
            raise unequal_length_error(len(values), len(encoded.columns))
        columns = zip(encoded.names, encoded.columns.T, strict=True)
        return names, values, TargetRows(seen, dict(columns))

    def fits_without_change(
        self, names: list[Hashable], values: Floats, targets: TargetRows
    ) -> bool:
        """Whether rows leave the window not full, and have no new names."""
        if self.count + len(values) >= self.size or names != self._names:
            return False
        target = self.target
        if target is None:
            return True
        return target.form is not None and targets.columns.keys() <= target.index_of.keys()

    def take(self, names: list[Hashable], values: Floats, targets: TargetRows, start: int) -> int:
        """Add rows from `start` on until the window is full; return the index of the next row."""
        stop = min(len(values), start + self.size - self.count)
        if names != self._names:
            self._take_up(names)
        if self.target is not None:
            self.target.add_columns(targets.seen)
            if len(self.target) > self.Y.shape[1]:
                self.Y = zero_padded(self.Y.T, len(self.target)).T
        self.add(values, targets, slice(start, stop))
        return stop

    def add(self, values: Floats, targets: TargetRows, rows: slice) -> None:
        """Add rows without new names that fit into the window: all of them, or none."""
        filled = slice(self.count, self.count + rows.stop - rows.start)
        # An interrupted call may have left values here.
        self.X[filled] = 0.0
        self.X[filled, self._column_indices] = values[rows, self._row_indices]
        if self.target is not None:
            self.Y[filled] = 0.0
            for name, column in targets.columns.items():
                self.Y[filled, self.target.index_of[name]] = column[rows]
        self.count = filled.stop

    def _take_up(self, names: list[Hashable]) -> None:
        """Assign columns to new variables, and cache the indices of these names."""
        for name in in_canonical_order(name for name in names if name not in self.index_of):
            if self.max_features is None or len(self.index_of) < self.max_features:
                self.index_of[name] = len(self.index_of)
        if len(self.index_of) > self.X.shape[1]:
            self.X = zero_padded(self.X.T, max(len(self.index_of), 2 * self.X.shape[1])).T
        among = [j for j, name in enumerate(names) if name in self.index_of]
        self._row_indices = np.array(among, dtype=np.intp)
        self._column_indices = np.array([self.index_of[names[j]] for j in among], dtype=np.intp)
        self._names = names

    def columns(self) -> tuple[list[Hashable], Floats, Target | None]:
        """Return the names and values of the variables, (size, p), and the target.

        Missing values are replaced by the mean of those observed.

        Raises
        ------
        ValueError
            If the target is constant in the window.
        """
        X = self.X[:, : len(self.index_of)].copy()
        missing = np.isnan(X)
        if missing.any():
            counts = (~missing).sum(axis=0)
            means = np.where(missing, 0.0, X).sum(axis=0) / np.maximum(counts, 1)
            X[missing] = np.broadcast_to(means, X.shape)[missing]
        if self.target is None:
            return list(self.index_of), X, None
        is_class = self.target.form == "class"
        target = Target.of_columns(self.Y.copy(), list(self.target.index_of), is_class=is_class)
        return list(self.index_of), X, target

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state for a file, as arrays and JSON-compatible values."""
        # Files contain finite values only, so missing values are stored in a separate mask.
        X = self.X[: self.count, : len(self.index_of)]
        return {
            "rows": self.rows,
            "names": list(self.index_of),
            "X": np.nan_to_num(X, nan=0.0),
            "missing": np.isnan(X),
            "Y": self.Y[: self.count],
            "target": None if self.target is None else self.target.to_state(),
        }

    def expect_valid(self) -> None:
        """Raise ValueError for values in a file that no data can produce."""
        expect_bounded("values", np.nan_to_num(self.X[: self.count]), self.Y[: self.count])

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `to_state`, in a new object with the same parameters."""
        target_state = state["target"]
        if self.target is not None:
            self.target.set_state(target_state)
            self.target.disable_code_warning()
        self.empty()
        expect(state, rows=CountKind(), names=NamesKind())
        self.count = length_in(state, "X")
        self.before = state["rows"] - self.count
        if self.before < 0:
            raise ValueError(f"Expected at least {self.count} rows. Got: {state['rows']}.")
        shape = (self.count, len(state["names"]))
        expect_shapes(state, X=shape, Y=(self.count, self.Y.shape[1]))
        expect(state, missing=ArrayKind(shape, np.bool_))
        if self.count >= self.size:
            raise ValueError(f"Expected fewer than {self.size} rows. Got: {self.count}.")
        self.index_of = {name: j for j, name in enumerate(state["names"])}
        self.X = np.zeros((self.size, shape[1]))
        self.X[: self.count] = np.where(state["missing"], np.nan, state["X"])
        self.Y[: self.count] = state["Y"]


class WindowPhase(Phase):
    """A learner on windows of rows; its results are those of the last full window.

    Until the first window is full, they are those of the columns learnt before.

    Parameters
    ----------
    before
        The phase before it.
    window
        An empty window.
    """

    on_rows = True
    changing = (
        "n_columns",
        "n_passes",
        "constant",
        "without_target",
        "target",
        "space",
        "columns",
        "summary",
        "source",
        "group_counts",
        "groups",
        "window",
    )

    def __init__(self, before: Phase, window: Window) -> None:
        self.adopt(before)
        self.window = window
        # Replaced, never modified.
        self.groups: Mapping[Hashable, Sequence[Hashable]] | None = None

    def adopt(self, results: Phase) -> None:
        """Adopt the results of learnt columns."""
        self.n_columns, self.n_passes = results.n_columns, results.n_passes
        self.constant = results.n_constant
        self.without_target = results.without_target
        self.target: Target | NoTarget | None = results.target
        self.space: TargetSpace | None = results.space
        self.columns: ColumnState | None = results.columns
        self.summary: StreamSummary | None = results.summary
        self.source = results.source
        self.group_counts: GroupCounts | None = results.group_counts

    # Results

    @property
    def state(self) -> VariableState | None:
        """The state of the last full window; None before the first variable."""
        return self.columns

    @property
    def is_blank(self) -> bool:
        """Whether no window was full; the selection of one without variables is empty."""
        return self.columns is None

    @property
    def n_rows(self) -> int:
        """Number of rows seen, in this window and before it."""
        return self.window.rows

    @property
    def target_description(self) -> str | None:
        """How the target was interpreted, without class sizes."""
        of_rows = self.window.target
        if of_rows is not None:
            return of_rows.description
        return None if self.target is None else self.target.description

    def rows_and_space(self, state: VariableState | None) -> tuple[float, TargetSpace | None]:
        """Return the effective number of rows of the last window, and its target space."""
        del state
        return 0.0 if self.target is None else self.target.effective_rows, self.space

    @property
    def weight(self) -> float:
        """Number of rows of a window."""
        return float(self.window.size)

    # Learning

    def learn_row(self, model: LearnerHooks, x: dict[Hashable, Any], y: Any, w: float) -> None:
        """Learn a row."""
        if w != 1.0:
            refuse_weight(model)
        self._learn(model, *self.window.read_one(x, y), y)

    def learn_rows(self, model: LearnerHooks, X: Any, y: Any, w: Any) -> None:
        """Learn many rows."""
        if not isinstance(w, numbers.Real) or w != 1.0:
            refuse_weight(model)
        self._learn(model, *self.window.read_many(X, y), y)

    def _learn(
        self,
        model: LearnerHooks,
        names: list[Hashable],
        values: Floats,
        target_rows: TargetRows,
        y: Any,
    ) -> None:
        """Add rows to the window, and learn it as columns when it is full."""
        if not len(values):
            return
        window = self.window
        if model._phase is self and window.fits_without_change(names, values, target_rows):
            window.add(values, target_rows, slice(0, len(values)))
        else:
            with_rollback(model, self._learn_beyond, model, names, values, target_rows)
        if window.target is not None:
            window.target.check_codes(y, window.rows)

    def _learn_beyond(
        self, model: LearnerHooks, names: list[Hashable], values: Floats, target_rows: TargetRows
    ) -> None:
        """Add any number of rows to the window, and learn it as columns whenever it is full."""
        window = self.window
        if window.target is not None:
            model._check_columns(window.target, target_rows.seen, window.rows + len(values))
        if model._phase is not self:
            model._refresh.start(window.rows, model._current())
            model._phase = self
        start = 0
        while start < len(values):
            stop = window.take(names, values, target_rows, start)
            if window.is_full:
                self._learn_full(model)
                model._refresh_if_due(window.rows)
            start = stop

    def _learn_full(self, model: LearnerHooks) -> None:
        """Learn the rows of the full window as columns, and empty it."""
        try:
            names, X, target = self.window.columns()
        except ValueError:
            # The target is constant in this window: the result of the last window stays in use.
            pass
        else:
            model._learn_window(names, X, target)
        self.window.empty()

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the learnt state for a model file, as arrays and JSON-compatible values."""
        state = columns_to_state(self) | {"window": self.window.to_state()}
        return state if self.groups is None else state | {"groups": groups_to_state(self.groups)}

    @property
    def parts(self) -> tuple[Any, ...]:
        """The states of the phase; each checks its own values."""
        return (*super().parts, self.window)


def refuse_weight(model: LearnerHooks) -> None:
    """Raise ValueError for rows with weights."""
    raise ValueError(
        f"Expected rows of weight 1: {type(model).__name__} with these parameters learns "
        "rows by windows, which have no weights. Got: another weight.\n"
        "Hint: omit w, or use a learner that is based on moments."
    )
