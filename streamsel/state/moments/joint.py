"""Cross-moments of all variables over an aligned window of rows, also with weights."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._utils.rollback import Restore
from streamsel.serialization.schema import ArrayKind, BoolKind, CountKind, NamesKind, expect
from streamsel.state.base import ColumnState, Floats, Indices
from streamsel.state.moments.aligned import AlignedMoments, merge_windows
from streamsel.state.moments.aligned_view import AlignedView, RowView
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import NO_LIMIT, MergeAxis, RowExtension, Steps
from streamsel.targets.target import NoTarget, Target


class CrossMoments(RowExtension):
    """Cross-moments over two aligned windows: the one in use, and the next if it is needed.

    A new variable was 0 in all earlier rows. While no variable has been discarded, its moments are
    complete from its first row on. After a discard, a new variable may be a discarded one, whose
    earlier values are unknown; and products over different sets of rows form an indefinite matrix.
    All variables of one system therefore share a window, and a new variable waits for the next. The
    next window begins at the row where the first variable has to wait, for all variables tracked
    then. It comes into use when its rows have half the weight of all rows: whenever the number of
    rows has doubled, which gives O(log n) windows, or once per half-life if rows fade. A variable
    that arrives after the next window began waits for the one after it, at most until the rows are
    four times as many as at its arrival. While no variable waits, the window in use continues.

    Parameters
    ----------
    fading_factor
        In [0, 1): the fraction of its weight that a row loses with each later row.

    Attributes
    ----------
    current
        The window in use.
    next
        The next window; None if there is none.
    switch_at
        The row at which the next window comes into use.
    """

    changing: ClassVar[tuple[str, ...]] = (
        "current",
        "next",
        "switch_at",
        "_synced_index_of",
        "_synced_size",
        "_open",
    )
    merges_along: ClassVar[frozenset[MergeAxis]] = frozenset({"rows"})

    def __init__(self, fading_factor: float) -> None:
        self.keep = 1.0 - fading_factor
        self.current = AlignedMoments(self.keep)
        self.next: AlignedMoments | None = None
        self.switch_at = 0
        # The `index_of` that the windows are synchronised with, and its size.
        self._synced_index_of: Any = None
        self._synced_size = 0
        # Whether new variables are known to have been 0 in all earlier rows.
        self._open = True

    def n_aligned_rows(self, moments: Moments) -> int:  # noqa: ARG002
        """Return the number of rows behind the cross-moments in use."""
        return self.current.rows

    @property
    def n_variables(self) -> int:
        """Number of variables in the window in use."""
        return len(self.current.index_of)

    @property
    def windows(self) -> list[AlignedMoments]:
        """The windows that learn rows."""
        return [self.current] if self.next is None else [self.current, self.next]

    def view(self, moments: Moments) -> RowView:
        """Return a view of the variables of the window in use, valid until the next row."""
        self.synchronise(moments)
        return AlignedView(self.current, moments)

    # From columns to rows

    starts_from_columns: ClassVar[bool] = True

    def start(
        self, columns: ColumnState | None, target: Target | NoTarget | None, moments: Moments
    ) -> None:
        """Continue from the cross-moments of those columns that are still tracked."""
        if target is not None:
            pool = columns if columns is not None and columns.has_products else None
            _start_window(self.current, pool, moments, target)
        self.synchronise(moments)

    # Arrival and discard of variables

    def add_variables(self, names: list[Hashable], moments: Moments) -> None:  # noqa: ARG002
        """Register variables that first occur in the next row; other indices may have changed."""
        self.synchronise(moments)

    def synchronise(self, moments: Moments) -> None:
        """Drop discarded variables, and add new ones to the window in use or the next.

        A variable is added to the window in use if it was 0 in all earlier rows.
        """
        index_of, names = moments.table.index_of, moments.table.names
        if index_of is self._synced_index_of and len(index_of) == self._synced_size:
            return
        self._open &= moments.complete
        # Within a table names are only added; otherwise the table was replaced.
        if index_of is not self._synced_index_of:
            for window in self.windows:
                window.add_targets(len(moments.target) - len(window.targets))
                window.keep_only(index_of.keys())
                window.clear_indices()
            self._synced_size = 0
        if self._open:
            self.current.add(
                [name for name in names[self._synced_size :] if name not in self.current.index_of]
            )
        elif self.next is None and len(self.current.index_of) < len(index_of):
            self._begin_next(moments)
        for window in self.windows:
            window.extend_indices(names)
        self._synced_index_of, self._synced_size = index_of, len(index_of)

    def _begin_next(self, moments: Moments) -> None:
        """Begin the next window at the next row, for all tracked variables."""
        self.next = AlignedMoments(self.keep)
        self.next.add_targets(len(moments.target))
        self.next.add(list(moments.table.index_of))
        # After this many rows its weight equals the remaining weight of the earlier rows.
        rows: float = moments.rows
        if self.keep < 1.0:
            rows = math.log1p((1.0 - self.keep) * moments.n) / -math.log(self.keep)
        self.switch_at = moments.rows + max(1, math.ceil(rows))

    # Learning

    needs_preparation = True
    needs_targets = True

    @property
    def accepts_missing(self) -> bool:
        """Whether all rows with missing values can be learnt without `prepare_new`."""
        return False

    def is_ready_for(self, X: Floats, indices: Indices) -> bool:
        """Return whether rows, (b, m), can be learnt without `prepare_new`."""
        if len(X) == 1:
            return not any(window.has_new_missing(X[0], indices) for window in self.windows)
        missing = indices[_are_missing(X)]
        return all(window.has_missing_columns(missing) for window in self.windows)

    def prepare_new(self, X: Floats, indices: Indices, moments: Moments) -> None:
        """Register variables and missing values that first occur in rows, (b, m)."""
        self.synchronise(moments)
        missing = indices[_are_missing(X)]
        if missing.size:
            for window in self.windows:
                window.note_missing(missing, moments.table.names)

    def prepare_one(
        self,
        values: Floats,  # noqa: ARG002
        indices: Indices,  # noqa: ARG002
        y: Floats,  # noqa: ARG002
        moments: Moments,  # noqa: ARG002
        w: float,  # noqa: ARG002
    ) -> None:
        """Run the part of learning a row that can fail."""
        self.current.prepare_one()
        if self.next is not None:
            self.next.prepare_one()

    def learn_one(
        self, values: Floats, indices: Indices, y: Floats, moments: Moments, w: float
    ) -> None:
        """Learn a row after the moments have, unless it was learnt already."""
        self.current.learn_one(moments.counts, 0.0, values, indices, y, w)
        if self.next is not None:
            self.next.learn_one(moments.counts, 2.0, values, indices, y, w)

    def prepare_many(
        self, X: Floats, indices: Indices, Y: Floats, moments: Moments, w: Floats | None
    ) -> Steps:
        """Return the steps that learn rows, by matrix products."""
        return [
            window.prepare_many((moments.counts, 2.0 * i), X, indices, Y, w)
            for i, window in enumerate(self.windows)
        ]

    def rows_at_once(self, width: int) -> int:
        """Return how many rows of so many variables and targets can be learnt at once."""
        return AlignedMoments.rows_at_once(width)

    def undo_row(self, indices: Indices) -> Restore | None:
        """Return a function that undoes a row of these variables."""
        saved = [window.saved(indices) for window in self.windows]

        def restore() -> None:
            for undo_window in saved:
                undo_window()

        return restore

    def detach(self) -> None:
        """Copy the arrays that compiled loops write into, so that a snapshot keeps the old ones."""
        for window in self.windows:
            window.detach()

    def rows_until_maintenance(self, moments: Moments) -> float:
        """Return how many rows may be learnt before other work than learning is due."""
        return min(
            self.rows_until_refresh(moments),
            *(window.rows_until_maintenance for window in self.windows),
        )

    def needs_maintenance(self, moments: Moments) -> bool:
        """Return whether `refresh_if_due` must be called after the next row."""
        due = self.next is not None and moments.rows + 1 >= self.switch_at
        return due or any(window.needs_maintenance for window in self.windows)

    def rows_until_refresh(self, moments: Moments) -> int:
        """Return how many rows are left before the next window comes into use."""
        return NO_LIMIT if self.next is None else max(1, self.switch_at - moments.rows)

    def refresh_if_due(self, moments: Moments) -> None:
        """Put the next window into use when it is due."""
        for window in self.windows:
            window.maintain()
        if self.next is None or moments.rows < self.switch_at:
            return
        self.current, self.next = self.next, None
        self._synced_index_of = None
        self.synchronise(moments)

    def protected(self) -> Collection[Hashable]:
        """Return the names that must not be discarded."""
        return ()

    # Merging

    def before_merge(self, theirs: Self, along: MergeAxis) -> None:
        """Do nothing before a merge: no variable needs protection."""

    def after_merge(
        self,
        theirs: Self,
        along: MergeAxis,  # noqa: ARG002
        moments: Moments,
        others: Moments,
    ) -> None:
        """Continue with the rows of both models, over the variables in both windows in use.

        If no variable was discarded, these are all: one unknown to a model was 0 there.
        """
        theirs.synchronise(others)
        names = [*moments.target.index_of], [*others.target.index_of]
        merge_windows(
            (self.current, self._open, names[0]), (theirs.current, theirs._open, names[1])
        )
        self._open &= theirs._open
        self.next = None
        self._synced_index_of = None
        self.synchronise(moments)

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        for window in self.windows:
            window.expect_valid()

    # Files

    def check_matches(self, moments: Moments) -> None:
        """Raise ValueError if a state from a file does not belong to these moments."""
        for window in self.windows:
            known = window.index_of.keys() <= moments.index_of.keys()
            if not known or len(window.targets) != len(moments.target):
                raise ValueError(
                    "Expected cross-moments of tracked variables. Got: moments of others."
                )

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        state: dict[str, Any] = {
            "current": self.current.to_state(),
            "switch_at": self.switch_at,
            "open": self._open,
        }
        return state if self.next is None else state | {"next": self.next.to_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, switch_at=CountKind(), open=BoolKind())
        self.current.set_state(state["current"])
        self.switch_at, self._open = state["switch_at"], state["open"]
        if "next" in state:
            self.next = AlignedMoments(self.keep)
            self.next.set_state(state["next"])


def _are_missing(X: Floats) -> NDArray[np.bool_]:
    """Return which variables are missing in one of the rows, (m,): their sums are NaN."""
    missing: NDArray[np.bool_] = np.isnan(X.sum(axis=0))
    return missing


_DEFAULT_WEIGHT = 1.0


class WeightedCrossMoments(CrossMoments):
    """Cross-moments, and the weights of representatives, which rows do not change.

    Attributes
    ----------
    representative_weights
        Weights from the columns: name -> weight. A variable that returns has its weight again.
    """

    changing = (*CrossMoments.changing, "representative_weights")

    def __init__(self, fading_factor: float) -> None:
        super().__init__(fading_factor)
        self.representative_weights: dict[Hashable, float] = {}

    def start(
        self, columns: ColumnState | None, target: Target | NoTarget | None, moments: Moments
    ) -> None:
        """Continue from the cross-moments of the columns, and from their weights."""
        super().start(columns, target, moments)
        if columns is not None:
            weights = columns.extra_field("weight").tolist()
            self.representative_weights = dict(zip(columns.names, weights, strict=True))

    def weights_of(self, names: list[Hashable]) -> Floats:
        """Return the weights of variables; 1 for a variable that arrived with a row."""
        return np.array([self.representative_weights.get(name, _DEFAULT_WEIGHT) for name in names])

    def after_merge(
        self, theirs: Self, along: MergeAxis, moments: Moments, others: Moments
    ) -> None:
        """Continue with the rows of both models; a variable keeps the larger of its weights."""
        for name, weight in theirs.representative_weights.items():
            self.representative_weights[name] = max(
                weight, self.representative_weights.get(name, _DEFAULT_WEIGHT)
            )
        super().after_merge(theirs, along, moments, others)

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        representative_weights = np.array(
            list(self.representative_weights.values()), dtype=np.float64
        )
        return super().to_state() | {
            "represented": list(self.representative_weights),
            "representative_weights": representative_weights,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        super().set_state(state)
        expect(state, represented=NamesKind())
        expect(
            state,
            representative_weights=ArrayKind(
                (len(state["represented"]),), minimum=0.99, below=2.0**53
            ),
        )
        self.representative_weights = dict(
            zip(state["represented"], state["representative_weights"].tolist(), strict=True)
        )


def _start_window(
    window: AlignedMoments,
    columns: ColumnState | None,
    moments: Moments,
    target: Target | NoTarget,
) -> None:
    """Start a window with the cross-moments of those columns that are still tracked.

    Variables that the columns do not have were constant.
    """
    names = [] if columns is None else [*moments.index_of]
    c = 0 if isinstance(target, NoTarget) else len(target.cyy)
    size = c + len(names)
    mean, products = np.zeros(size), np.zeros((size, size))
    if isinstance(target, Target):
        mean[:c], products[:c, :c] = target.mean + target.low, target.cyy
    if columns is not None and names:
        mean[c:] = moments.stats().mean
        known = [j for j, name in enumerate(names) if name in columns.index_of]
        indices = np.array([columns.index_of[names[j]] for j in known], dtype=np.intp)
        stats, at = columns.stats(indices), c + np.array(known, dtype=np.intp)
        mean[at] = stats.mean + stats.mean_error
        products[at, :c], products[:c, at] = stats.cxy, stats.cxy.T
        products[np.ix_(at, at)] = columns.cross_products(indices)
    window.begin(names, mean, products, c, target.n)
    window.squares = moments.squares
