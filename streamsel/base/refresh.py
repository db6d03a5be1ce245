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
from streamsel.base.undo import Transactional
from streamsel.params import param


class RefreshSchedule(Transactional, params.Declared):
    """Schedule refreshes of the snapshot that transforms use; a method defines the snapshot."""

    refresh_factor: float = param(
        params.FloatRule(1.0),
        default=2.0,
        doc="""
        On rows a transform uses the snapshot that `in_use` shows. The snapshot is refreshed once
        the number of new rows is `refresh_factor` - 1 times the number of rows it is based on (in
        rows of equal weight, if rows fade): at 2 whenever the number of rows has doubled, at 1 at
        every row. Other results always reflect the current state.
        """,
    )

    def _begin_refresh(self) -> None:
        # Snapshot that transforms use on rows; None if there is none.
        self._snapshot: Any = None
        # Row number of its next refresh.
        self._refresh_at = self.warm_up

    # Implemented by methods

    @abc.abstractmethod
    def _current(self) -> Any:
        """Return the current results as a snapshot; None if nothing is learnt."""

    @abc.abstractmethod
    def _refreshed(self, *, keep_stable: bool) -> Any:
        """Return the new snapshot; as similar to the old one as possible if `keep_stable`."""

    @property
    def _refreshes_always(self) -> bool:
        """Whether the snapshot always equals the current results, and need not be stored."""
        return False

    # Shared behaviour

    @property
    @abc.abstractmethod
    def in_use(self) -> Any:
        """Snapshot that a transform uses."""

    def refresh(self) -> None:
        """Refresh the snapshot that transforms use at once, for example when a drift is detected.

        On columns transforms always use the current results. Selectors keep only the best k,
        regardless of `hysteresis`.
        """
        self._learn_atomically(self._refresh_now)

    def _refresh_now(self) -> None:
        self._refresh(keep_stable=False)

    def _refresh(self, *, keep_stable: bool) -> None:
        if not self._on_rows or self._current() is None:
            return
        rows, weight = self._row_counts()
        self._recheck_due()
        if self._refreshes_always:
            self._refresh_at = rows
            return
        self._snapshot = self._refreshed(keep_stable=keep_stable)
        self._refresh_at = self._next_due(rows, weight)

    def _next_due(self, rows: int, weight: float) -> int:
        return rows + max(1, math.ceil((self.refresh_factor - 1.0) * weight))

    def _rows_until_equal_weight(self, rows: int) -> int:
        """Return the number of rows until new rows weigh `refresh_factor` - 1 times these rows.

        Observations of columns have not faded yet, and begin to.
        """
        wanted, fading = (self.refresh_factor - 1.0) * rows, self.fading_factor
        if fading > 0.0:
            wanted = math.log1p(wanted * fading) / -math.log1p(-fading)
        return max(1, math.ceil(wanted))

    def _refresh_if_due(self, rows: int) -> None:
        """Refresh the snapshot in use if it is due after this number of rows."""
        if rows >= self._refresh_at and not self._refreshes_always:
            self._refresh(keep_stable=True)

    def _rows_until_refresh(self, rows: int) -> int | None:
        """Return the number of rows before a `_refresh_if_due` is necessary; None for any."""
        return None if self._refreshes_always else max(1, self._refresh_at - rows)

    def _start_rows(self, rows: int) -> None:
        """Start rows after this number of observations in columns, whose results are in use."""
        found = self._current()
        if found is None:
            self._refresh_at = rows + self.warm_up
        elif self._refreshes_always:
            self._refresh_at = rows
        else:
            self._snapshot, self._refresh_at = found, rows + self._rows_until_equal_weight(rows)

    def _in_use(self) -> Any:
        """Return the snapshot that a transform uses; None if there is none."""
        if not self._on_rows:
            return self._current()
        if self._refreshes_always:
            return self._current() if self._row_counts()[0] >= self._refresh_at else None
        return self._snapshot

    # Files

    def _restore_in_use(self, due: Any, snapshot: Any) -> None:
        """Restore the snapshot from a file; `due` is None in file versions without a snapshot."""
        if due is None:
            self._refresh_now()
            return
        if type(due) is not int or due < 0:
            raise ValueError(f"Expected the row number of the next refresh. Got: {due!r}.")
        self._refresh_at = due
        self._restore_snapshot(snapshot)

    def _snapshot_to_state(self) -> Any:
        """Return the snapshot in use, for a file."""
        return self._snapshot

    def _restore_snapshot(self, state: Any) -> None:
        """Restore the snapshot returned by `_snapshot_to_state`."""
        self._snapshot = state

    # Implemented by the learner

    @abc.abstractmethod
    def _row_counts(self) -> tuple[int, float]:
        """Return the number of rows seen, and their effective number of equal weight."""
