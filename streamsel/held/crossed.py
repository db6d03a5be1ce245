"""Cross-moments of all variables over an aligned window of rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamsel.held.beside import ENDLESS, Along, Beside, Steps
from streamsel.held.common import Common, OnRows
from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Places
from streamsel.held.period import Period
from streamsel.held.period_merging import merge_periods
from streamsel.rollback import Restore
from streamsel.shapes import Count, Flag, expect


class Crossed(Beside):
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
    now
        The window in use.
    then
        The next window; None if there is none.
    due
        The row at which the next window comes into use.
    """

    changing: ClassVar[tuple[str, ...]] = ("now", "then", "due", "_followed", "_size", "_open")
    offers: ClassVar[frozenset[str]] = frozenset({"products"})
    merges_along: ClassVar[frozenset[Along]] = frozenset({"rows"})

    def __init__(self, fading_factor: float) -> None:
        self.keep = 1.0 - fading_factor
        self.now = Period(self.keep)
        self.then: Period | None = None
        self.due = 0
        # The `slots` that the windows are synchronised with, and their number.
        self._followed: Any = None
        self._size = 0
        # Whether new variables are known to have been 0 in all earlier rows.
        self._open = True

    def rows_used(self, moments: Moments) -> int:  # noqa: ARG002
        """Return the number of rows behind the cross-moments in use."""
        return self.now.rows

    @property
    def periods(self) -> list[Period]:
        """The windows that learn rows."""
        return [self.now] if self.then is None else [self.now, self.then]

    def in_use(self, moments: Moments) -> OnRows:
        """Return a view of the variables of the window in use, valid until the next row."""
        self.follow(moments)
        return Common(self.now, moments)

    # Arrival and discard of variables

    def take_up(self, names: list[Hashable], moments: Moments) -> None:  # noqa: ARG002
        """Register variables that first occur in the next row; other indices may have changed."""
        self.follow(moments)

    def follow(self, moments: Moments) -> None:
        """Drop discarded variables, and add new ones to the window in use or the next.

        A variable is added to the window in use if it was 0 in all earlier rows.
        """
        slots, names = moments.table.slots, moments.table.names
        if slots is self._followed and len(slots) == self._size:
            return
        self._open &= moments.complete
        # Within a table names are only added; otherwise the table was replaced.
        if slots is not self._followed:
            for period in self.periods:
                period.add_targets(len(moments.target) - len(period.targets))
                period.keep_only(slots.keys())
                period.forget_places()
            self._size = 0
        if self._open:
            self.now.add([name for name in names[self._size :] if name not in self.now.slots])
        elif self.then is None and len(self.now.slots) < len(slots):
            self._begin_next(moments)
        for period in self.periods:
            period.find_places(names)
        self._followed, self._size = slots, len(slots)

    def _begin_next(self, moments: Moments) -> None:
        """Begin the next window at the next row, for all tracked variables."""
        self.then = Period(self.keep)
        self.then.add_targets(len(moments.target))
        self.then.add(list(moments.table.slots))
        # After this many rows its weight equals the remaining weight of the earlier rows.
        rows: float = moments.rows
        if self.keep < 1.0:
            rows = math.log1p((1.0 - self.keep) * moments.n) / -math.log(self.keep)
        self.due = moments.rows + max(1, math.ceil(rows))

    # Learning

    prepares = True
    asks_for_targets = True

    @property
    def takes_gaps(self) -> bool:
        """Whether all rows with missing values can be learnt without `make_ready`."""
        return False

    def is_ready_for(self, X: Floats, slots: Places) -> bool:
        """Return whether rows, (b, m), can be learnt without `make_ready`."""
        if len(X) == 1:
            return not any(period.lacks_gap(X[0], slots) for period in self.periods)
        missing = slots[_are_missing(X)]
        return all(period.has_gaps_for(missing) for period in self.periods)

    def make_ready(self, X: Floats, slots: Places, moments: Moments) -> None:
        """Register variables and missing values that first occur in rows, (b, m)."""
        self.follow(moments)
        missing = slots[_are_missing(X)]
        if missing.size:
            for period in self.periods:
                period.note_gaps(missing, moments.table.names)

    def prepare_one(
        self,
        values: Floats,  # noqa: ARG002
        slots: Places,  # noqa: ARG002
        y: Floats,  # noqa: ARG002
        moments: Moments,  # noqa: ARG002
        w: float,  # noqa: ARG002
    ) -> None:
        """Run the part of learning a row that can fail."""
        self.now.prepare_one()
        if self.then is not None:
            self.then.prepare_one()

    def learn_one(
        self, values: Floats, slots: Places, y: Floats, moments: Moments, w: float
    ) -> None:
        """Learn a row after the moments have, unless it was learnt already."""
        self.now.learn_one(moments.counts, 0.0, values, slots, y, w)
        if self.then is not None:
            self.then.learn_one(moments.counts, 2.0, values, slots, y, w)

    def prepare_many(
        self, X: Floats, slots: Places, Y: Floats, moments: Moments, w: Floats | None
    ) -> Steps:
        """Return the steps that learn rows, by matrix products."""
        return [
            period.prepare_many((moments.counts, 2.0 * i), X, slots, Y, w)
            for i, period in enumerate(self.periods)
        ]

    def rows_at_once(self, width: int) -> int:
        """Return how many rows of so many variables and targets can be learnt at once."""
        return Period.rows_at_once(width)

    def saved(self, slots: Places) -> Restore | None:
        """Return a function that undoes a row of these variables."""
        saved = [period.saved(slots) for period in self.periods]

        def restore() -> None:
            for of_period in saved:
                of_period()

        return restore

    def detach(self) -> None:
        """Copy the arrays that compiled loops write into, so that a snapshot keeps the old ones."""
        for period in self.periods:
            period.detach()

    def until_due(self, moments: Moments) -> float:
        """Return how many rows may be learnt before other work than learning is due."""
        return min(self.until_refresh(moments), *(period.until_due for period in self.periods))

    def is_due(self, moments: Moments) -> bool:
        """Return whether `refresh_if_due` must be called after the next row."""
        due = self.then is not None and moments.rows + 1 >= self.due
        return due or any(period.is_due for period in self.periods)

    def until_refresh(self, moments: Moments) -> int:
        """Return how many rows are left before the next window comes into use."""
        return ENDLESS if self.then is None else max(1, self.due - moments.rows)

    def refresh_if_due(self, moments: Moments) -> None:
        """Put the next window into use when it is due."""
        for period in self.periods:
            period.tidy()
        if self.then is None or moments.rows < self.due:
            return
        self.now, self.then = self.then, None
        self._followed = None
        self.follow(moments)

    def protected(self) -> Collection[Hashable]:
        """Return the names that must not be discarded."""
        return ()

    # Merging

    def merging(self, theirs: Self, along: Along) -> None:
        """Note the variables to protect: none."""

    def merged(self, theirs: Self, along: Along, moments: Moments, others: Moments) -> None:  # noqa: ARG002
        """Continue with the rows of both models, over the variables in both windows in use.

        While no variable was discarded these are all variables: one unknown to a model was 0 there.
        """
        theirs.follow(others)
        names = [*moments.target.slots], [*others.target.slots]
        merge_periods((self.now, self._open, names[0]), (theirs.now, theirs._open, names[1]))
        self._open &= theirs._open
        self.then = None
        self._followed = None
        self.follow(moments)

    def expect_possible(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        for period in self.periods:
            period.expect_possible()

    # Files

    def check(self, moments: Moments) -> None:
        """Raise ValueError if a state from a file does not belong to these moments."""
        for period in self.periods:
            known = period.slots.keys() <= moments.slots.keys()
            if not known or len(period.targets) != len(moments.target):
                raise ValueError(
                    "Expected cross-moments of tracked variables. Got: moments of others."
                )

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        state: dict[str, Any] = {"now": self.now.to_state(), "due": self.due, "open": self._open}
        return state if self.then is None else state | {"then": self.then.to_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, due=Count(), open=Flag())
        self.now.set_state(state["now"])
        self.due, self._open = state["due"], state["open"]
        if "then" in state:
            self.then = Period(self.keep)
            self.then.set_state(state["then"])


def _are_missing(X: Floats) -> NDArray[np.bool_]:
    """Return which variables are missing in one of the rows, (m,): their sums are NaN."""
    missing: NDArray[np.bool_] = np.isnan(X.sum(axis=0))
    return missing
