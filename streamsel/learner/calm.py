"""Calm: what a transform uses stands until it is renewed.

 What stands behind a transformer learns about its features, and a set that flips at every row makes
it forget. So read-outs are always those of now; a transform uses what *stands*, which is renewed at
few rows, and then moves as little as it can.
"""

from __future__ import annotations

import abc
import math
from typing import Any

from streamsel import params
from streamsel.learner.undo import Undoable
from streamsel.params import param


class Calm(Undoable, params.Declared):
    """Says when what stands is renewed; a method says what stands then."""

    renewal: float = param(
        params.Real(1.0),
        default=2.0,
        doc="""
        On rows a transform uses what `standing` shows. It is renewed when as many rows have come as
        `renewal` - 1 times those that stood for it (so many of equal weight, where rows fade): at 2
        whenever the rows have doubled, at 1 at every row. Read-outs are always those of now.
        """,
    )

    def _begin_calm(self) -> None:
        # What transforms use on rows; None while nothing stands.
        self._standing: Any = None
        # The row at which it is renewed.
        self._due = self.warm_up

    # What a method says

    @abc.abstractmethod
    def _now(self) -> Any:
        """Return what would stand if it were renewed at every row; None if nothing is learnt."""

    @abc.abstractmethod
    def _renewed(self, *, calmly: bool) -> Any:
        """Return what is to stand from here on; as near to what stood as can be, if `calmly`."""

    @property
    def _renews_always(self) -> bool:
        """Whether what stands is that of now, whatever stood before: then it need not be kept."""
        return False

    # What follows

    @property
    @abc.abstractmethod
    def standing(self) -> Any:
        """What a transform uses."""

    def renew(self) -> None:
        """Let transforms use what is found now, at once: what one does where a drift is detected.

        On columns they always do. Selectors let go what is not among the best k, whatever `slack`
        there is.
        """
        self._whole(self._renew_at_once)

    def _renew_at_once(self) -> None:
        self._renew(calmly=False)

    def _renew(self, *, calmly: bool) -> None:
        if not self._on_rows or self._now() is None:
            return
        rows, weight = self._counted()
        self._forget_due()
        if self._renews_always:
            self._due = rows
            return
        self._standing = self._renewed(calmly=calmly)
        self._due = self._next_due(rows, weight)

    def _next_due(self, rows: int, weight: float) -> int:
        return rows + max(1, math.ceil((self.renewal - 1.0) * weight))

    def _as_many_new(self, rows: int) -> int:
        """Return after how many rows the new have `renewal` - 1 times the weight of these.

        Rows of columns have not faded yet, and begin to.
        """
        wanted, fading = (self.renewal - 1.0) * rows, self.fading_factor
        if fading > 0.0:
            wanted = math.log1p(wanted * fading) / -math.log1p(-fading)
        return max(1, math.ceil(wanted))

    def _renew_if_due(self, rows: int) -> None:
        """Renew what stands if so many rows are enough."""
        if rows >= self._due and not self._renews_always:
            self._renew(calmly=True)

    def _rows_until_renewal(self, rows: int) -> int | None:
        """Return how many rows may be learnt before `_renew_if_due` must be asked."""
        return None if self._renews_always else max(1, self._due - rows)

    def _stand_on(self, rows: int) -> None:
        """Begin rows after so many that came as columns: what these have found stands."""
        found = self._now()
        if found is None:
            self._due = rows + self.warm_up
        elif self._renews_always:
            self._due = rows
        else:
            self._standing, self._due = found, rows + self._as_many_new(rows)

    def _in_use(self) -> Any:
        """Return what a transform uses; None where nothing stands."""
        if not self._on_rows:
            return self._now()
        if self._renews_always:
            return self._now() if self._counted()[0] >= self._due else None
        return self._standing

    # Files

    def _stand_again(self, due: Any, standing: Any) -> None:
        """Take up what a file says of what stands; due is None where nothing did in its version."""
        if due is None:
            self._renew_at_once()
            return
        if type(due) is not int or due < 0:
            raise ValueError(f"Expected the row of the next renewal. Got: {due!r}.")
        self._due = due
        self._stand_by_state(standing)

    def _standing_to_state(self) -> Any:
        """Return what stands, for a file."""
        return self._standing

    def _stand_by_state(self, state: Any) -> None:
        """Take up what `_standing_to_state` returned."""
        self._standing = state

    # What is known where both axes meet

    @abc.abstractmethod
    def _counted(self) -> tuple[int, float]:
        """Return how many rows were seen, and of how many of equal weight they tell as much."""
