"""Provide stable transforms: a snapshot is in use until its scheduled refresh.

Downstream models learn about the transformed features, and lose what they learnt if the set of
features changes at every row. Results such as `selected` always reflect the current state; a
transform uses a snapshot, which is refreshed after a growing number of rows, and then changes as
little as possible.
"""

from __future__ import annotations

import math
from typing import Any

from streamsel._utils.rollback import Rollback
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
        Row number of its next refresh.
    """

    changing = ("stored", "due_at")

    def __init__(
        self, factor: float, warm_up: int, fading_factor: float, *, is_always: bool
    ) -> None:
        self.is_always = is_always
        self.stored: Any = None
        self.due_at = warm_up
        self._factor, self._warm_up, self._fading_factor = factor, warm_up, fading_factor

    def start(self, rows: int, current: Any) -> None:
        """Start rows after this number of observations in columns, whose results are in use."""
        if current is None:
            self.due_at = rows + self._warm_up
        elif self.is_always:
            self.due_at = rows
        else:
            self.stored, self.due_at = current, rows + self._rows_until_equal_weight(rows)

    def _rows_until_equal_weight(self, rows: int) -> int:
        """Return the number of rows until new rows weigh `factor` - 1 times these rows.

        Observations of columns have not faded yet, and begin to.
        """
        wanted, fading = (self._factor - 1.0) * rows, self._fading_factor
        if fading > 0.0:
            wanted = math.log1p(wanted * fading) / -math.log1p(-fading)
        return max(1, math.ceil(wanted))

    def next_due(self, rows: int, weight: float) -> int:
        """Return the row of the refresh that follows one after `rows` rows of this weight."""
        return rows + max(1, math.ceil((self._factor - 1.0) * weight))

    def is_due(self, rows: int) -> bool:
        """Whether the snapshot is to be refreshed after this number of rows."""
        return rows >= self.due_at and not self.is_always

    @property
    def due_or_never(self) -> float:
        """Row number of the next refresh; one that is never reached if none is ever due."""
        return NEVER if self.is_always else self.due_at

    def rows_until_due(self, rows: int) -> int | None:
        """Return the number of rows before the next refresh; None for any number."""
        return None if self.is_always else max(1, self.due_at - rows)
