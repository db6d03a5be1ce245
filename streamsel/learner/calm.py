"""Provide stable transforms: a snapshot is in use until its scheduled refresh.

Downstream models learn about the transformed features, and lose what they learnt if the set of
features changes at every row. Results such as `selected` always reflect the current state; a
transform uses a snapshot, which is refreshed after a growing number of rows, and then changes as
little as possible.
"""

from __future__ import annotations

import abc
import math
from typing import Any

from streamsel import params
from streamsel.learner.undo import Undoable
from streamsel.params import param


class Calm(Undoable, params.Declared):
    """Schedule refreshes of the snapshot that transforms use; a method defines the snapshot."""

    renewal: float = param(
        params.Real(1.0),
        default=2.0,
        doc="""
        On rows a transform uses the snapshot that `standing` shows. The snapshot is refreshed once
        the number of new rows is `renewal` - 1 times the number of rows it is based on (in rows of
        equal weight, if rows fade): at 2 whenever the number of rows has doubled, at 1 at every
        row. Other results always reflect the current state.
        """,
    )

    def _begin_calm(self) -> None:
        # Snapshot that transforms use on rows; None if there is none.
        self._standing: Any = None
        # Row number of its next refresh.
        self._due = self.warm_up

    # Implemented by methods

    @abc.abstractmethod
    def _now(self) -> Any:
        """Return the current results as a snapshot; None if nothing is learnt."""

    @abc.abstractmethod
    def _renewed(self, *, calmly: bool) -> Any:
        """Return the new snapshot; as similar to the old one as possible if `calmly`."""

    @property
    def _renews_always(self) -> bool:
        """Whether the snapshot always equals the current results, and need not be stored."""
        return False

    # Shared behaviour

    @property
    @abc.abstractmethod
    def standing(self) -> Any:
        """Snapshot that a transform uses."""

    def renew(self) -> None:
        """Refresh the snapshot that transforms use at once, for example when a drift is detected.

        On columns transforms always use the current results. Selectors keep only the best k,
        regardless of `slack`.
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

    def _rows_until_equal_weight(self, rows: int) -> int:
        """Return the number of rows until new rows have `renewal` - 1 times the weight of these.

        Observations of columns have not faded yet, and begin to.
        """
        wanted, fading = (self.renewal - 1.0) * rows, self.fading_factor
        if fading > 0.0:
            wanted = math.log1p(wanted * fading) / -math.log1p(-fading)
        return max(1, math.ceil(wanted))

    def _renew_if_due(self, rows: int) -> None:
        """Refresh the snapshot in use if it is due after this number of rows."""
        if rows >= self._due and not self._renews_always:
            self._renew(calmly=True)

    def _rows_until_renewal(self, rows: int) -> int | None:
        """Return the number of rows before `_renew_if_due` must be called; None for any number."""
        return None if self._renews_always else max(1, self._due - rows)

    def _stand_on(self, rows: int) -> None:
        """Start rows after this number of observations in columns, whose results are in use."""
        found = self._now()
        if found is None:
            self._due = rows + self.warm_up
        elif self._renews_always:
            self._due = rows
        else:
            self._standing, self._due = found, rows + self._rows_until_equal_weight(rows)

    def _in_use(self) -> Any:
        """Return the snapshot that a transform uses; None if there is none."""
        if not self._on_rows:
            return self._now()
        if self._renews_always:
            return self._now() if self._counted()[0] >= self._due else None
        return self._standing

    # Files

    def _stand_again(self, due: Any, standing: Any) -> None:
        """Restore the snapshot from a file; `due` is None in file versions without a snapshot."""
        if due is None:
            self._renew_at_once()
            return
        if type(due) is not int or due < 0:
            raise ValueError(f"Expected the row number of the next refresh. Got: {due!r}.")
        self._due = due
        self._stand_by_state(standing)

    def _standing_to_state(self) -> Any:
        """Return the snapshot in use, for a file."""
        return self._standing

    def _stand_by_state(self, state: Any) -> None:
        """Restore the snapshot returned by `_standing_to_state`."""
        self._standing = state

    # Implemented by the learner

    @abc.abstractmethod
    def _counted(self) -> tuple[int, float]:
        """Return the number of rows seen, and their effective number of equal weight."""
