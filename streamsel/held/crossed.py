"""Joint moments of all variables with one another, over a period that all of them share."""

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
    """Two periods: the one that is in use, and the next, as soon as somebody has to wait for it.

    A variable that is new has been 0 before. So, as long as none was ever let go, all is known of
    it from its first row on. Once some were, it may have been among them, and what it was then is
    not known; and products over fewer rows beside others over more make a matrix indefinite. So
    what is solved together has one period, and a newcomer waits for the next. That begins with the
    row at which the first has to wait, for everyone who is there then, and is taken into use when
    its rows have half the weight of all rows: whenever the rows have doubled, so that there are
    O(log n) periods, or with every half-life where rows fade. Those who came after it had begun
    wait once more: at longest until the rows are four times as many as when they came, and as long
    as none must wait the period in use goes on.

    Parameters
    ----------
    fading_factor
        In [0, 1): what part of its weight a row loses with every later one.

    Attributes
    ----------
    now
        The period in use.
    then
        The next, if there is one, and
    due
        the row at which it is taken into use.
    """

    changing: ClassVar[tuple[str, ...]] = ("now", "then", "due", "_followed", "_size", "_open")
    offers: ClassVar[frozenset[str]] = frozenset({"products"})
    merges_along: ClassVar[frozenset[Along]] = frozenset({"rows"})

    def __init__(self, fading_factor: float) -> None:
        self.keep = 1.0 - fading_factor
        self.now = Period(self.keep)
        self.then: Period | None = None
        self.due = 0
        # The slots that the periods follow, and how many they were.
        self._followed: Any = None
        self._size = 0
        # Whether newcomers are known to have been 0.
        self._open = True

    def rows_used(self, moments: Moments) -> int:  # noqa: ARG002
        """Return how many rows tell how the variables in use vary with one another."""
        return self.now.rows

    @property
    def periods(self) -> list[Period]:
        """Those that learn."""
        return [self.now] if self.then is None else [self.now, self.then]

    def in_use(self, moments: Moments) -> OnRows:
        """Return what is held of the variables of the period in use, until the next row."""
        self.follow(moments)
        return Common(self.now, moments)

    # Variables that come and go

    def take_up(self, names: list[Hashable], moments: Moments) -> None:  # noqa: ARG002
        """Note variables that come for the first time with the next row; others may have moved."""
        self.follow(moments)

    def follow(self, moments: Moments) -> None:
        """Drop who was let go, and take up who came: in the period in use if that knows them."""
        slots, names = moments.table.slots, moments.table.names
        if slots is self._followed and len(slots) == self._size:
            return
        self._open &= moments.complete
        # Names are only added, or all is another table.
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
        """Begin the next period with the next row, for all variables that there are."""
        self.then = Period(self.keep)
        self.then.add_targets(len(moments.target))
        self.then.add(list(moments.table.slots))
        # After so many rows they have as much weight as is left of those before.
        rows: float = moments.rows
        if self.keep < 1.0:
            rows = math.log1p((1.0 - self.keep) * moments.n) / -math.log(self.keep)
        self.due = moments.rows + max(1, math.ceil(rows))

    # Learning

    prepares = True
    asks_for_targets = True

    @property
    def takes_gaps(self) -> bool:
        """Whether it is ready for all rows with values that were not observed."""
        return False

    def is_ready_for(self, X: Floats, slots: Places) -> bool:
        """Whether rows, (b, m), can be learnt without `make_ready`."""
        if len(X) == 1:
            return not any(period.lacks_gap(X[0], slots) for period in self.periods)
        lacking = slots[_lacking(X)]
        return all(period.has_gaps_for(lacking) for period in self.periods)

    def make_ready(self, X: Floats, slots: Places, moments: Moments) -> None:
        """Take up what rows, (b, m), bring for the first time."""
        self.follow(moments)
        lacking = slots[_lacking(X)]
        if lacking.size:
            for period in self.periods:
                period.note_gaps(lacking, moments.table.names)

    def prepare_one(
        self,
        values: Floats,  # noqa: ARG002
        slots: Places,  # noqa: ARG002
        y: Floats,  # noqa: ARG002
        moments: Moments,  # noqa: ARG002
        w: float,  # noqa: ARG002
    ) -> None:
        """Do what can fail of learning a row."""
        self.now.prepare_one()
        if self.then is not None:
            self.then.prepare_one()

    def learn_one(
        self, values: Floats, slots: Places, y: Floats, moments: Moments, w: float
    ) -> None:
        """Learn a row after the moments have, unless that was done."""
        self.now.learn_one(moments.counts, 0.0, values, slots, y, w)
        if self.then is not None:
            self.then.learn_one(moments.counts, 2.0, values, slots, y, w)

    def prepare_many(
        self, X: Floats, slots: Places, Y: Floats, moments: Moments, w: Floats | None
    ) -> Steps:
        """Return the steps of learning rows, by matrix products."""
        return [
            period.prepare_many((moments.counts, 2.0 * place), X, slots, Y, w)
            for place, period in enumerate(self.periods)
        ]

    def rows_at_once(self, width: int) -> int:
        """Return how many rows, of so many variables and targets, can be learnt at once."""
        return Period.rows_at_once(width)

    def saved(self, slots: Places) -> Restore | None:
        """Return what undoes a row of these variables."""
        saved = [period.saved(slots) for period in self.periods]

        def restore() -> None:
            for of_period in saved:
                of_period()

        return restore

    def detach(self) -> None:
        """Replace what loops write into by copies, so that a snapshot keeps it as it is."""
        for period in self.periods:
            period.detach()

    def until_due(self, moments: Moments) -> float:
        """Return how many rows may be learnt before there is more to do than to learn them."""
        return min(self.until_refresh(moments), *(period.until_due for period in self.periods))

    def is_due(self, moments: Moments) -> bool:
        """Whether there is more to do after the next row than to learn it."""
        due = self.then is not None and moments.rows + 1 >= self.due
        return due or any(period.is_due for period in self.periods)

    def until_refresh(self, moments: Moments) -> int:
        """Return how many rows are left before the next period is due."""
        return ENDLESS if self.then is None else max(1, self.due - moments.rows)

    def refresh_if_due(self, moments: Moments) -> None:
        """Take the next period into use, when it is time."""
        for period in self.periods:
            period.tidy()
        if self.then is None or moments.rows < self.due:
            return
        self.now, self.then = self.then, None
        self._followed = None
        self.follow(moments)

    def protected(self) -> Collection[Hashable]:
        """Return the names that must not be let go."""
        return ()

    # Merging

    def merging(self, theirs: Self, along: Along) -> None:
        """Note whom to protect: nobody, beyond whom the method does."""

    def merged(self, theirs: Self, along: Along, moments: Moments, others: Moments) -> None:  # noqa: ARG002
        """Go on with the rows of both: over the variables that both periods in use know.

        As long as no variable was let go, that is all of them: who is unknown to one was 0 there.
        """
        theirs.follow(others)
        names = [*moments.target.slots], [*others.target.slots]
        merge_periods((self.now, self._open, names[0]), (theirs.now, theirs._open, names[1]))
        self._open &= theirs._open
        self.then = None
        self._followed = None
        self.follow(moments)

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        for period in self.periods:
            period.expect_possible()

    # Files

    def check(self, moments: Moments) -> None:
        """Refuse what a file says, if it is not about these moments."""
        for period in self.periods:
            known = period.slots.keys() <= moments.slots.keys()
            if not known or len(period.targets) != len(moments.target):
                raise ValueError("Expected joint moments of the variables held. Got: of others.")

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        state: dict[str, Any] = {"now": self.now.to_state(), "due": self.due, "open": self._open}
        return state if self.then is None else state | {"then": self.then.to_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        expect(state, due=Count(), open=Flag())
        self.now.set_state(state["now"])
        self.due, self._open = state["due"], state["open"]
        if "then" in state:
            self.then = Period(self.keep)
            self.then.set_state(state["then"])


def _lacking(X: Floats) -> NDArray[np.bool_]:
    """Return which variables were not observed in one of the rows, (m,): a sum shows it."""
    lacking: NDArray[np.bool_] = np.isnan(X.sum(axis=0))
    return lacking
