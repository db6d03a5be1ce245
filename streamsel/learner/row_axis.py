"""Implement the row axis: learning single rows, frames of rows, and windows of rows."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from streamsel._jit.rows import HAS_GAPS, WHAT_HAS_GAPS, WHAT_IS_DUE
from streamsel.held.beside import Beside, Step, Steps
from streamsel.held.moments import NEVER, Moments
from streamsel.held.part import Floats, Places
from streamsel.learner.row_state import RowState
from streamsel.learner.undo import RestOfRows
from streamsel.learner.window import Said, Window
from streamsel.rows import (
    first_bad,
    read_beside,
    read_strictly,
    read_values,
    refuse_infinite,
    why_bad,
)
from streamsel.target.encode import Encoded
from streamsel.target.observed import NO_TARGET, Observation
from streamsel.target.rows import unequal
from streamsel.target.weights import weight_of_row, weights_of_rows

_NO_OBSERVATION = Observation(NO_TARGET, {})


class Many(NamedTuple):
    """A batch of rows after input validation.

    Parameters
    ----------
    names, X
        Variable names, and (n, p) values, NaN where not observed.
    seen, encoded
        The observed and the encoded target; None without one.
    w
        (n,) weights, None for 1 each.
    """

    names: list[Hashable]
    X: Floats
    seen: Observation
    encoded: Encoded | None
    w: Floats | None

    def columns(self, moments: Moments) -> Floats:
        """Return the (n, c) columns of the target, in the order of the moments."""
        if self.encoded is None:
            return np.empty((len(self.X), 0))
        return moments.target.matrix(self.encoded)


class RowAxis(RowState):
    """Validate rows and add them to the moments of their variables.

    A row is learnt in one step, or in a few steps that cannot fail (`held.beside.Beside`). A
    snapshot is taken first only if the row brings something new, or is followed by further work.
    """

    # One row

    def _learn_row(self, x: dict[Hashable, Any], y: Any, w: float) -> None:
        if w == 1.0:
            w = 1.0  # always a float, to avoid compiling loops for another type
        else:
            self._refuse_weights_of_rows()
            w = weight_of_row(w)
            if not w:
                return
        moments = self._moments
        if moments is None:
            self._learn_first(x, y, w)
            return
        target = moments.target
        # Fast path: nearly all rows have the same names as the previous one.
        columns, row = target.again(y), self._door.again(x)
        seen = _NO_OBSERVATION
        if columns is None or row is None:
            x, seen, columns, row = self._read_row(moments, x, y, columns)
        if row is not None and columns is not None:
            self._outdate()
            if self._beside is None:
                status = moments.learn_one(*row, columns, w, WHAT_IS_DUE)
            else:
                status = self._learn_with_extension(moments, self._beside, *row, columns, w)
            if status:
                bad = first_bad(row[0])
                if bad is not None:
                    raise why_bad(list(x)[bad], row[0][bad])
                self._undoably(self._learn_due, moments, *row, columns, w)
        else:
            self._undoably(self._learn_new, moments, x, seen, w)
        if target._codes is not None:
            target.note_codes(y, moments.rows)

    def _learn_first(self, x: dict[Hashable, Any], y: Any, w: float) -> None:
        if self._by_window:
            self._learn_in_window(*self._window_so_far().read_one(x, y), y)
            return
        moments = self._rows_so_far()
        x, seen, _, _ = self._read_row(moments, x, y, None)
        self._undoably(self._learn_new, moments, x, seen, w)
        moments.target.note_codes(y, moments.rows)

    def _learn_with_extension(
        self,
        moments: Moments,
        beside: Beside,
        values: Floats,
        places: Places,
        columns: Floats,
        w: float,
    ) -> int:
        """Learn a row without new names; return the code that `Moments.learn_one` returns."""
        # `origin` may change, so it is added for each row.
        y = columns + moments.target.origin if beside.asks_for_targets else columns
        of_row = (values, places, y, moments, w)
        if beside.prepares:
            beside.prepare_one(*of_row)
        turn, rest = self._at_work, self._rest
        rest.beside, rest.of_row = beside, of_row
        turn.unfinished = rest
        refused_codes = WHAT_IS_DUE if beside.takes_gaps else WHAT_HAS_GAPS
        status = moments.learn_one(values, places, columns, w, refused_codes)
        if status == HAS_GAPS and beside.is_ready_for(values[None], places):
            status = moments.learn_one(values, places, columns, w, WHAT_IS_DUE)
        if not status:
            beside.learn_one(*of_row)
        turn.unfinished = None
        return status

    def _learn_new(
        self, moments: Moments, x: dict[Hashable, Any], seen: Observation, w: float
    ) -> None:
        """Learn a row with new variables or targets; every change can be rolled back."""
        values = read_strictly(x)
        bad = first_bad(values)
        if bad is not None:
            raise why_bad(list(x)[bad], values[bad])
        values, places = self._admit(moments, seen, list(x), values)
        self._learn_due(moments, values, places, moments.target.vector(seen.first), w)

    def _learn_due(
        self, moments: Moments, values: Floats, places: Places, columns: Floats, w: float
    ) -> None:
        """Learn a row and do the work that is due after it; every change can be rolled back."""
        self._outdate()
        moments.learns_until(0.0)
        beside, of_row = self._beside, (values, places, columns + moments.target.origin, moments, w)
        if beside is not None:
            beside.make_ready(values[None], places, moments)
        due = self._is_due(moments)
        if due:
            self._undo_too(moments.saved(places))
            self._undo_too(None if beside is None else beside.saved(places))
        steps: list[Step] = [(moments.learn_one, (values, places, columns, w))]
        if beside is not None:
            beside.prepare_one(*of_row)
            steps.append((beside.learn_one, of_row))
        self._finish(moments, steps, undo=due)
        if due:
            self._after_rows(moments)
        self._note_due(moments)

    def _finish(self, moments: Moments, steps: Steps, *, undo: bool) -> None:
        """Learn rows by steps that cannot fail; the first step is that of the moments.

        After an interrupt the steps are completed rather than rolled back, unless work follows that
        can fail (`undo`).
        """
        rest = RestOfRows(moments, steps)
        if not undo:
            self._at_work.unfinished = rest
        rest.settle()

    def _is_due(self, moments: Moments) -> bool:
        """Whether further work is due after the next row."""
        if moments.until_heavy < 1 or (moments.rows + 1 >= self._due and not self._renews_always):
            return True
        return self._beside is not None and self._beside.is_due(moments)

    def _note_due(self, moments: Moments) -> None:
        """Let the moments learn rows without checks until work may be due again."""
        until, beside = moments.until_heavy, self._beside
        if beside is not None:
            until = min(until, beside.until_due(moments))
        moments.learns_until(min(moments.rows + until, NEVER if self._renews_always else self._due))

    def _after_rows(self, moments: Moments) -> None:
        """Do the work that is due after rows."""
        moments.follow_levels()
        if self._beside is not None:
            self._beside.refresh_if_due(moments)
        self._outdate()
        self._renew_if_due(moments.rows)

    def _read_row(
        self, moments: Moments, x: dict[Hashable, Any], y: Any, columns: Floats | None
    ) -> tuple[dict[Hashable, Any], Observation, Floats | None, tuple[Floats, Places] | None]:
        """Return features without covariates, the observed target, target columns and the row.

        Accepts any valid row. The row is returned as values and their indices. The last two results
        are None if the row brings a new variable or target. `columns` are the target columns, if
        they are known already.
        """
        seen = _NO_OBSERVATION
        if columns is not None and moments is self._moments:
            values = read_values(x)
            places = self._door.places(list(x), moments.table.slots)
            if places is not None:
                return x, seen, columns, (values, places)
        target, covariates = moments.target, moments.target.covariates
        if covariates and isinstance(x, Mapping):
            seen = target.one(y, x)
            x = {name: value for name, value in x.items() if name not in covariates}
        elif self.supervised:
            seen = target.one(y)
        values = read_values(x)
        places = self._known(moments, seen, list(x))
        if places is None:
            return x, seen, None, None
        return x, seen, target.vector(seen.first), (values, places)

    # Many rows

    def _learn_rows(self, X: Any, y: Any, w: Any) -> None:
        moments = self._moments
        if moments is None:
            if self._by_window:
                if not isinstance(w, numbers.Real) or w != 1.0:
                    self._refuse_weights_of_rows()
                self._learn_in_window(*self._window_so_far().read_many(X, y), y)
                return
            moments = self._rows_so_far()
        many = self._read_rows(moments, X, y, w)
        if many is None:
            return
        # If the names are known, the sums are checked instead of each value.
        places = self._known(moments, many.seen, many.names)
        if places is None or not self._learn_known_rows(moments, many, places):
            refuse_infinite(many.names, many.X)
            self._undoably(self._learn_any_rows, moments, many)
        moments.target.note_codes(y, moments.rows)

    def _read_rows(self, moments: Moments, X: Any, y: Any, w: Any) -> Many | None:
        """Return a batch of rows, not yet checked for infinite values; None if it is empty."""
        names, X, covariates = read_beside(X, moments.target.covariates, self._door)
        if len(X) == 0 and (y is None or (not hasattr(y, "tocsc") and len(y) == 0)):
            return None
        if self.supervised:
            seen, encoded = moments.target.many(y, covariates)
            if len(encoded.columns) != len(X):
                raise unequal(len(X), len(encoded.columns))
        else:
            seen, encoded = _NO_OBSERVATION, None
        w = weights_of_rows(w, len(X))
        if w is not None and not w.all():
            X, w, counts = X[w > 0.0], w[w > 0.0], w > 0.0
            if encoded is not None:
                encoded = encoded._replace(columns=encoded.columns[counts])
        return Many(names, X, seen, encoded, w) if len(X) else None

    def _learn_known_rows(self, moments: Moments, many: Many, places: Places) -> bool:
        """Learn rows without new names; return False, without a change, if more work is due."""
        beside, X, Y = self._beside, many.X, many.columns(moments)
        if moments.rows + len(X) >= moments.due or len(moments.pieces(len(X))) > 1:
            return False
        if beside is not None:
            at_once = len(X) <= beside.rows_at_once(X.shape[1] + Y.shape[1])
            if not (at_once and beside.is_ready_for(X, places)):
                return False
        self._outdate()
        if beside is not None:
            refuse_infinite(many.names, X)
        sums = moments.sums_of(X, places, Y, many.w)
        if sums is None:
            refuse_infinite(many.names, X)
            return False
        steps: list[Step] = [(moments.take, (sums,))]
        if beside is not None:
            steps += beside.prepare_many(X, places, Y, moments, many.w)
        self._finish(moments, steps, undo=False)
        self._at_work.unfinished = None
        return True

    def _learn_any_rows(self, moments: Moments, many: Many) -> None:
        """Learn rows with new names or due work; every change can be rolled back."""
        values, places = self._admit(moments, many.seen, many.names, many.X)
        if self._beside is not None:
            self._beside.make_ready(values, places, moments)
        self._note_due(moments)
        is_whole = len(places) == len(many.names)
        if not (is_whole and self._learn_known_rows(moments, many, places)):
            self._learn_in_segments(moments, many, values, places)

    def _learn_in_segments(
        self, moments: Moments, many: Many, values: Floats, places: Places
    ) -> None:
        """Learn admitted rows in segments that end where further work is due."""
        X, w = many.X, many.w
        moments.detach()
        moments.learns_until(0.0)
        if self._beside is not None:
            self._beside.detach()
        start = 0
        while start < len(X):
            if start:
                # After each segment, new variables may find room that they did not find before.
                values, places = self._admit(moments, many.seen, many.names, X[start:])
            beside, Y = self._beside, many.columns(moments)
            limit = self._segment_size(moments, all_held=len(places) == len(many.names))
            stop = len(X) if limit is None else min(len(X), start + limit)
            for piece in moments.pieces(stop - start):
                rows, weights = values[piece], None if w is None else w[start:stop][piece]
                self._outdate()
                moments.learn_many(rows, places, Y[start:stop][piece], weights)
                moments.follow_levels()
                if beside is not None:
                    beside.make_ready(rows, places, moments)
                    beside.learn_many(rows, places, Y[start:stop][piece], moments, weights)
                    beside.refresh_if_due(moments)
            self._renew_if_due(moments.rows)
            start = stop
        self._note_due(moments)

    def _segment_size(self, moments: Moments, *, all_held: bool) -> int | None:
        """Return the number of rows that may be learnt at once; None for any number."""
        limits = [self._rows_until_renewal(moments.rows)]
        if not all_held:
            limits.append(max(1, self._vocabulary.full_until - moments.rows))
        if self._beside is not None:
            limits.append(self._beside.until_refresh(moments))
        return min((limit for limit in limits if limit is not None), default=None)

    # Rows by windows

    def _learn_in_window(self, names: list[Hashable], values: Floats, said: Said, y: Any) -> None:
        """Add rows to the window, and learn it as columns when it is full."""
        if not len(values):
            return
        window = self._window_so_far()
        if window is self._window and window.has_room_for(names, values, said):
            window.add(values, said, slice(0, len(values)))
        else:
            self._undoably(self._learn_beyond_window, window, names, values, said)
        if window.target is not None:
            window.target.note_codes(y, window.rows)

    def _learn_beyond_window(
        self, window: Window, names: list[Hashable], values: Floats, said: Said
    ) -> None:
        """Add any number of rows to the window, and learn it as columns whenever it is full."""
        if window.target is not None:
            self._check_columns(window.target, said.seen, window.rows + len(values))
        if self._window is None:
            self._stand_on(window.rows)
        self._window = window
        start = 0
        while start < len(values):
            stop = window.take(names, values, said, start)
            if window.is_full:
                self._sweep(window)
                window.empty()
                self._renew_if_due(window.rows)
            start = stop
