"""Provide stable transforms: a snapshot is in use until its scheduled refresh.

Downstream models learn about the transformed features, and lose what they learnt if the set of
features changes at every row. Results such as `selected` always reflect the current state; a
transform uses a snapshot, which is refreshed after a growing number of rows, and then changes as
little as possible. A snapshot that takes long is computed in another thread, and comes into use a
known number of rows later.
"""

from __future__ import annotations

import math
from typing import Any

from streamsel._utils.rollback import Rollback
from streamsel.base.pending_snapshot import PendingSnapshot
from streamsel.state.moments.moments import NEVER


class RefreshSchedule(Rollback):
    """The snapshot that transforms use on rows, and when it is refreshed.

    Parameters
    ----------
    factor, warm_up, fading_factor
        The parameters of the learner: `refresh_factor`, `warm_up` and `fading_factor`.
    is_always
        Whether transforms use the current results, so that no snapshot is stored.

    Attributes
    ----------
    stored
        The snapshot; None if there is none.
    due_at
        Row number of its next refresh; while one is pending, of its first use.
    pending
        The snapshot that is being computed; None if there is none.
    """

    changing = ("stored", "due_at", "pending")

    def __init__(
        self, factor: float, warm_up: int, fading_factor: float, *, is_always: bool
    ) -> None:
        self.is_always = is_always
        self.stored: Any = None
        self.due_at = warm_up
        self.pending: PendingSnapshot | None = None
        self._factor, self._warm_up, self._fading_factor = factor, warm_up, fading_factor

    def start(self, rows: int, current: Any) -> None:
        """Begin the rows after this number of observations in columns; their results are in use."""
        if current is None:
            self.due_at = rows + self._warm_up
        elif self.is_always:
            self.due_at = rows
        else:
            self.stored, self.due_at = current, rows + self._rows_until_equal_weight(rows)

    def _rows_until_equal_weight(self, rows: int) -> int:
        """Return the number of rows until new rows weigh `factor` - 1 times as much as these.

        Observations of columns begin to fade with the first new row.
        """
        n_rows, fading = (self._factor - 1.0) * rows, self._fading_factor
        if fading > 0.0:
            n_rows = math.log1p(n_rows * fading) / -math.log1p(-fading)
        return max(1, math.ceil(n_rows))

    def next_due(self, rows: int, weight: float) -> int:
        """Return the row of the refresh that follows one after `rows` rows of this weight."""
        return rows + max(1, math.ceil((self._factor - 1.0) * weight))

    def is_due(self, rows: int) -> bool:
        """Whether the snapshot is to be replaced after this number of rows."""
        return rows >= self.due_at and not self.is_always

    def replace(self, snapshot: Any, next_due: int) -> None:
        """Put a snapshot into use until the next refresh."""
        self.stored, self.due_at, self.pending = snapshot, next_due, None

    def expect(self, pending: PendingSnapshot, n_rows: int) -> None:
        """Schedule a snapshot to come into use this number of rows after its refresh."""
        self.due_at, self.pending = pending.started_at + n_rows, pending

    def drop_pending(self) -> None:
        """Drop the pending refresh, which lacks rows of a merge, and make it due again."""
        if self.pending is not None:
            self.due_at, self.pending = self.pending.started_at, None

    def wait(self, rows: int) -> None:
        """Wait for a pending refresh, after this number of rows."""
        if self.pending is not None:
            self.pending.wait(rows)

    @property
    def check_at(self) -> float:
        """Number of rows after which work may be due; infinite if it never is."""
        if self.is_always:
            return NEVER
        return self.due_at if self.pending is None else 0

    def rows_until_due(self, rows: int) -> int | None:
        """Return the number of rows before the next replacement; None for any number."""
        return None if self.is_always else max(1, self.due_at - rows)
