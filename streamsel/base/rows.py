"""Implement the row axis: learning single rows, frames of rows, and windows of rows."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from streamsel._kernels.row_moments import HAS_MISSING, REFUSE_DUE, REFUSE_MISSING
from streamsel._utils.sparse import is_sparse
from streamsel.base.row_input import (
    bad_value_error,
    first_bad_value,
    read_frame_with_covariates,
    read_strictly,
    read_values,
    refuse_infinite,
)
from streamsel.base.row_state import RowState
from streamsel.base.undo import PendingRows
from streamsel.base.windows import TargetRows, Window
from streamsel.state.base import Floats, Indices
from streamsel.state.moments.moments import NEVER, Moments
from streamsel.state.moments.row_extension import RowExtension, Step, Steps
from streamsel.targets.encoding import Encoded
from streamsel.targets.observation import NO_TARGET, Observation
from streamsel.targets.rows import unequal_length_error
from streamsel.targets.weights import weight_of_row, weights_of_rows

_NO_OBSERVATION = Observation(NO_TARGET, {})


class RowBatch(NamedTuple):
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

    A row is learnt in one step, or in a few steps that cannot fail (`RowExtension`). A
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
        columns, row = target.encode_known(y), self._row_reader.read_repeated(x)
        seen = _NO_OBSERVATION
        if columns is None or row is None:
            x, seen, columns, row = self._read_row(moments, x, y, columns)
        if row is not None and columns is not None:
            self._invalidate()
            if self._row_extension is None:
                status = moments.learn_one(*row, columns, w, REFUSE_DUE)
            else:
                status = self._learn_with_extension(moments, self._row_extension, *row, columns, w)
            if status:
                bad = first_bad_value(row[0])
                if bad is not None:
                    raise bad_value_error(list(x)[bad], row[0][bad])
                self._with_rollback(self._learn_due, moments, *row, columns, w)
        else:
            self._with_rollback(self._learn_new, moments, x, seen, w)
        if target._codes is not None:
            target.check_codes(y, moments.rows)

    def _learn_first(self, x: dict[Hashable, Any], y: Any, w: float) -> None:
        if self._by_window:
            self._learn_in_window(*self._current_or_new_window().read_one(x, y), y)
            return
        moments = self._current_or_new_moments()
        x, seen, _, _ = self._read_row(moments, x, y, None)
        self._with_rollback(self._learn_new, moments, x, seen, w)
        moments.target.check_codes(y, moments.rows)

    def _learn_with_extension(
        self,
        moments: Moments,
        extension: RowExtension,
        values: Floats,
        indices: Indices,
        columns: Floats,
        w: float,
    ) -> int:
        """Learn a row without new names; return the code that `Moments.learn_one` returns."""
        # `shift` may change, so it is added for each row.
        y = columns + moments.target.shift if extension.needs_targets else columns
        of_row = (values, indices, y, moments, w)
        if extension.needs_preparation:
            extension.prepare_one(*of_row)
        turn, rest = self._guard, self._row_completion
        rest.extension, rest.of_row = extension, of_row
        turn.pending_change = rest
        refused_codes = REFUSE_DUE if extension.accepts_missing else REFUSE_MISSING
        status = moments.learn_one(values, indices, columns, w, refused_codes)
        if status == HAS_MISSING and extension.is_ready_for(values[None], indices):
            status = moments.learn_one(values, indices, columns, w, REFUSE_DUE)
        if not status:
            extension.learn_one(*of_row)
        turn.pending_change = None
        return status

    def _learn_new(
        self, moments: Moments, x: dict[Hashable, Any], seen: Observation, w: float
    ) -> None:
        """Learn a row with new variables or targets; every change can be rolled back."""
        values = read_strictly(x)
        bad = first_bad_value(values)
        if bad is not None:
            raise bad_value_error(list(x)[bad], values[bad])
        values, indices = self._admit(moments, seen, list(x), values)
        self._learn_due(moments, values, indices, moments.target.vector(seen.first), w)

    def _learn_due(
        self, moments: Moments, values: Floats, indices: Indices, columns: Floats, w: float
    ) -> None:
        """Learn a row and do the work that is due after it; every change can be rolled back."""
        self._invalidate()
        moments.set_maintenance_due(0.0)
        extension, of_row = (
            self._row_extension,
            (values, indices, columns + moments.target.shift, moments, w),
        )
        if extension is not None:
            extension.prepare_new(values[None], indices, moments)
        due = self._is_due(moments)
        if due:
            self._register_restore(moments.undo_row(indices))
            self._register_restore(None if extension is None else extension.undo_row(indices))
        steps: list[Step] = [(moments.learn_one, (values, indices, columns, w))]
        if extension is not None:
            extension.prepare_one(*of_row)
            steps.append((extension.learn_one, of_row))
        self._finish(moments, steps, undo=due)
        if due:
            self._after_rows(moments)
        self._note_due(moments)

    def _finish(self, moments: Moments, steps: Steps, *, undo: bool) -> None:
        """Learn rows by steps that cannot fail; the first step is that of the moments.

        After an interrupt the steps are completed rather than rolled back, unless work follows that
        can fail (`undo`).
        """
        rest = PendingRows(moments, steps)
        if not undo:
            self._guard.pending_change = rest
        rest.settle()

    def _is_due(self, moments: Moments) -> bool:
        """Whether further work is due after the next row."""
        if moments.rows_until_rescale < 1 or (
            moments.rows + 1 >= self._refresh_at and not self._refreshes_always
        ):
            return True
        return self._row_extension is not None and self._row_extension.needs_maintenance(moments)

    def _note_due(self, moments: Moments) -> None:
        """Let the moments learn rows without checks until work may be due again."""
        until, extension = moments.rows_until_rescale, self._row_extension
        if extension is not None:
            until = min(until, extension.rows_until_maintenance(moments))
        moments.set_maintenance_due(
            min(moments.rows + until, NEVER if self._refreshes_always else self._refresh_at)
        )

    def _after_rows(self, moments: Moments) -> None:
        """Do the work that is due after rows."""
        moments.recentre()
        if self._row_extension is not None:
            self._row_extension.refresh_if_due(moments)
        self._invalidate()
        self._refresh_if_due(moments.rows)

    def _read_row(
        self, moments: Moments, x: dict[Hashable, Any], y: Any, columns: Floats | None
    ) -> tuple[dict[Hashable, Any], Observation, Floats | None, tuple[Floats, Indices] | None]:
        """Return features without covariates, the observed target, target columns and the row.

        Accepts any valid row. The row is returned as values and their indices. The last two results
        are None if the row brings a new variable or target. `columns` are the target columns, if
        they are known already.
        """
        seen = _NO_OBSERVATION
        if columns is not None and moments is self._moments:
            values = read_values(x)
            indices = self._row_reader.indices_of(list(x), moments.table.index_of)
            if indices is not None:
                return x, seen, columns, (values, indices)
        target, covariates = moments.target, moments.target.covariates
        if covariates and isinstance(x, Mapping):
            seen = target.observe_one(y, x)
            x = {name: value for name, value in x.items() if name not in covariates}
        elif self._is_supervised:
            seen = target.observe_one(y)
        values = read_values(x)
        indices = self._indices_if_known(moments, seen, list(x))
        if indices is None:
            return x, seen, None, None
        return x, seen, target.vector(seen.first), (values, indices)

    # Many rows

    def _learn_rows(self, X: Any, y: Any, w: Any) -> None:
        moments = self._moments
        if moments is None:
            if self._by_window:
                if not isinstance(w, numbers.Real) or w != 1.0:
                    self._refuse_weights_of_rows()
                self._learn_in_window(*self._current_or_new_window().read_many(X, y), y)
                return
            moments = self._current_or_new_moments()
        many = self._read_rows(moments, X, y, w)
        if many is None:
            return
        # If the names are known, the sums are checked instead of each value.
        indices = self._indices_if_known(moments, many.seen, many.names)
        if indices is None or not self._learn_known_rows(moments, many, indices):
            refuse_infinite(many.names, many.X)
            self._with_rollback(self._learn_any_rows, moments, many)
        moments.target.check_codes(y, moments.rows)

    def _read_rows(self, moments: Moments, X: Any, y: Any, w: Any) -> RowBatch | None:
        """Return a batch of rows, not yet checked for infinite values; None if it is empty."""
        names, X, covariates = read_frame_with_covariates(
            X, moments.target.covariates, self._row_reader
        )
        if len(X) == 0 and (y is None or (not is_sparse(y) and len(y) == 0)):
            return None
        if self._is_supervised:
            seen, encoded = moments.target.observe_many(y, covariates)
            if len(encoded.columns) != len(X):
                raise unequal_length_error(len(X), len(encoded.columns))
        else:
            seen, encoded = _NO_OBSERVATION, None
        w = weights_of_rows(w, len(X))
        if w is not None and not w.all():
            X, w, counts = X[w > 0.0], w[w > 0.0], w > 0.0
            if encoded is not None:
                encoded = encoded._replace(columns=encoded.columns[counts])
        return RowBatch(names, X, seen, encoded, w) if len(X) else None

    def _learn_known_rows(self, moments: Moments, many: RowBatch, indices: Indices) -> bool:
        """Learn rows without new names; return False, without a change, if more work is due."""
        extension, X, Y = self._row_extension, many.X, many.columns(moments)
        if moments.rows + len(X) >= moments.maintenance_due or len(moments.pieces(len(X))) > 1:
            return False
        if extension is not None:
            at_once = len(X) <= extension.rows_at_once(X.shape[1] + Y.shape[1])
            if not (at_once and extension.is_ready_for(X, indices)):
                return False
        self._invalidate()
        if extension is not None:
            refuse_infinite(many.names, X)
        sums = moments.batch_sums(X, indices, Y, many.w)
        if sums is None:
            refuse_infinite(many.names, X)
            return False
        steps: list[Step] = [(moments.add_sums, (sums,))]
        if extension is not None:
            steps += extension.prepare_many(X, indices, Y, moments, many.w)
        self._finish(moments, steps, undo=False)
        self._guard.pending_change = None
        return True

    def _learn_any_rows(self, moments: Moments, many: RowBatch) -> None:
        """Learn rows with new names or due work; every change can be rolled back."""
        values, indices = self._admit(moments, many.seen, many.names, many.X)
        if self._row_extension is not None:
            self._row_extension.prepare_new(values, indices, moments)
        self._note_due(moments)
        is_whole = len(indices) == len(many.names)
        if not (is_whole and self._learn_known_rows(moments, many, indices)):
            self._learn_in_segments(moments, many, values, indices)

    def _learn_in_segments(
        self, moments: Moments, many: RowBatch, values: Floats, indices: Indices
    ) -> None:
        """Learn admitted rows in segments that end where further work is due."""
        X, w = many.X, many.w
        moments.detach()
        moments.set_maintenance_due(0.0)
        if self._row_extension is not None:
            self._row_extension.detach()
        start = 0
        while start < len(X):
            if start:
                # After each segment, new variables may find room that they did not find before.
                values, indices = self._admit(moments, many.seen, many.names, X[start:])
            extension, Y = self._row_extension, many.columns(moments)
            limit = self._segment_size(moments, all_tracked=len(indices) == len(many.names))
            stop = len(X) if limit is None else min(len(X), start + limit)
            for piece in moments.pieces(stop - start):
                rows, weights = values[piece], None if w is None else w[start:stop][piece]
                self._invalidate()
                moments.learn_many(rows, indices, Y[start:stop][piece], weights)
                moments.recentre()
                if extension is not None:
                    extension.prepare_new(rows, indices, moments)
                    extension.learn_many(rows, indices, Y[start:stop][piece], moments, weights)
                    extension.refresh_if_due(moments)
            self._refresh_if_due(moments.rows)
            start = stop
        self._note_due(moments)

    def _segment_size(self, moments: Moments, *, all_tracked: bool) -> int | None:
        """Return the number of rows that may be learnt at once; None for any number."""
        limits = [self._rows_until_refresh(moments.rows)]
        if not all_tracked:
            limits.append(max(1, self._vocabulary.no_room_until - moments.rows))
        if self._row_extension is not None:
            limits.append(self._row_extension.rows_until_refresh(moments))
        return min((limit for limit in limits if limit is not None), default=None)

    # Rows by windows

    def _learn_in_window(
        self, names: list[Hashable], values: Floats, target_rows: TargetRows, y: Any
    ) -> None:
        """Add rows to the window, and learn it as columns when it is full."""
        if not len(values):
            return
        window = self._current_or_new_window()
        if window is self._window and window.fits_without_change(names, values, target_rows):
            window.add(values, target_rows, slice(0, len(values)))
        else:
            self._with_rollback(self._learn_beyond_window, window, names, values, target_rows)
        if window.target is not None:
            window.target.check_codes(y, window.rows)

    def _learn_beyond_window(
        self, window: Window, names: list[Hashable], values: Floats, target_rows: TargetRows
    ) -> None:
        """Add any number of rows to the window, and learn it as columns whenever it is full."""
        if window.target is not None:
            self._check_columns(window.target, target_rows.seen, window.rows + len(values))
        if self._window is None:
            self._start_rows(window.rows)
        self._window = window
        start = 0
        while start < len(values):
            stop = window.take(names, values, target_rows, start)
            if window.is_full:
                self._learn_window(window)
                window.empty()
                self._refresh_if_due(window.rows)
            start = stop
