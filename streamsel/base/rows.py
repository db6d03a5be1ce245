"""Define the phase of a learner on rows, which it adds to the moments of its variables.

A row is learnt in one step, or in a few steps that cannot fail (`RowExtension`). A snapshot is
taken first only if the row brings something new, or is followed by further work.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from streamsel._kernels.row_moments import HAS_MISSING, REFUSE_DUE, REFUSE_MISSING
from streamsel.base.phase import LearnerHooks, Phase
from streamsel.base.row_input import (
    RowReader,
    in_canonical_order,
    read_frame_with_covariates,
    refuse_infinite,
)
from streamsel.base.row_values import bad_value_error, first_bad_value, read_strictly, read_values
from streamsel.base.undo import PendingRow, PendingRows, register_restore, with_rollback
from streamsel.data.names import bad_name_error, first_invalid_name
from streamsel.serialization.schema import CountKind, expect
from streamsel.state.base import ColumnState, Floats, Indices, VariableState
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension, Step, Steps
from streamsel.state.moments.vocabulary import Vocabulary
from streamsel.targets.encoding import Encoded
from streamsel.targets.observation import NO_TARGET, Observation
from streamsel.targets.rows import unequal_length_error
from streamsel.targets.space import TargetSpace
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


class RowPhase(Phase):
    """A learner on rows.

    A model that has learnt columns continues from their moments; the observations are dropped, so
    that it cannot learn columns afterwards.

    Parameters
    ----------
    before
        The phase before it.
    constant
        Number of constant columns that are not tracked.
    moments, extension
        Moments that continue from those of the columns, and their extension.
    vocabulary
        The maximum number of variables.
    columns
        The state of the columns from which the rows continue, until the first row.
    """

    on_rows = True
    changing = (
        "n_columns",
        "n_passes",
        "constant",
        "without_target",
        "moments",
        "extension",
        "vocabulary",
    )

    def __init__(
        self,
        before: Phase,
        constant: int,
        moments: Moments,
        extension: RowExtension | None,
        vocabulary: Vocabulary,
        columns: ColumnState | None = None,
    ) -> None:
        self._continued_columns = columns
        self.n_columns, self.n_passes = before.n_columns, before.n_passes
        self.constant = constant
        self.without_target, self.source = before.without_target, before.source
        self.moments: Moments = moments
        self.extension: RowExtension | None = extension
        self.vocabulary = vocabulary
        self.reader = RowReader()
        self._pending_row = PendingRow()

    # Results

    @property
    def state(self) -> VariableState:
        """The moments, or the view that their extension provides instead."""
        view = None if self.extension is None else self.extension.view(self.moments)
        return self.moments if view is None else view

    @property
    def n_rows(self) -> int:
        """Number of rows seen."""
        return int(self.moments.rows)

    @property
    def n_constant(self) -> int:
        """Number of constant variables among those seen."""
        return self.constant + int((self.moments.stats().m2 == 0.0).sum())

    @property
    def target_description(self) -> str | None:
        """How the target was interpreted, without class sizes."""
        return self.moments.target.description

    def rows_and_space(self, state: VariableState | None) -> tuple[float, TargetSpace | None]:
        """Return the effective number of rows, and the target space over them."""
        if state is None or state.space is None:
            return self.moments.effective_rows, self.moments.space
        return state.effective_rows, state.space

    @property
    def weight(self) -> float:
        """Effective number of rows of equal weight (Kish 1965)."""
        return self.moments.effective_rows

    @property
    def needs_columns(self) -> bool:
        """Whether the extension continues from the columns' observations."""
        return self.extension is not None and self.extension.starts_from_columns

    # One row

    def learn_row(self, model: LearnerHooks, x: dict[Hashable, Any], y: Any, w: float) -> None:
        """Learn a row."""
        if w == 1.0:
            w = 1.0  # always a float, to avoid compiling loops for another type
        else:
            w = weight_of_row(w)
            if not w:
                return
        moments = self.moments
        target = moments.target
        # Fast path: nearly all rows have the same names as the previous one.
        columns, row = target.encode_known(y), self.reader.read_repeated(x)
        seen = _NO_OBSERVATION
        if columns is None or row is None:
            x, seen, columns, row = self._read_row(model, x, y, columns)
        if row is not None and columns is not None:
            model._invalidate()
            if self.extension is None:
                status = moments.learn_one(*row, columns, w, REFUSE_DUE)
            else:
                status = self._learn_with_extension(model, self.extension, *row, columns, w)
            if status:
                bad = first_bad_value(row[0])
                if bad is not None:
                    raise bad_value_error(list(x)[bad], row[0][bad])
                with_rollback(model, self._learn_due, model, *row, columns, w)
                model._refresh.wait(moments.rows)
        else:
            with_rollback(model, self._learn_new, model, x, seen, w)
            model._refresh.wait(moments.rows)
        if target._codes is not None:
            target.check_codes(y, moments.rows)

    def _learn_with_extension(
        self,
        model: LearnerHooks,
        extension: RowExtension,
        values: Floats,
        indices: Indices,
        columns: Floats,
        w: float,
    ) -> int:
        """Learn a row without new names; return the code that `Moments.learn_one` returns."""
        moments = self.moments
        # `shift` may change, so it is added for each row.
        y = columns + moments.target.shift if extension.needs_targets else columns
        of_row = (values, indices, y, moments, w)
        # A row after which work is due is refused below, and prepared by `_learn_due`.
        if extension.needs_preparation and moments.rows + 1 < moments.maintenance_due:
            extension.prepare_one(*of_row)
        guard, rest = model._guard, self._pending_row
        rest.extension, rest.of_row = extension, of_row
        guard.pending_change = rest
        refused_codes = REFUSE_DUE if extension.accepts_missing else REFUSE_MISSING
        status = moments.learn_one(values, indices, columns, w, refused_codes)
        if status == HAS_MISSING and extension.is_ready_for(values[None], indices):
            status = moments.learn_one(values, indices, columns, w, REFUSE_DUE)
        if not status:
            extension.learn_one(*of_row)
        guard.pending_change = None
        return status

    def _learn_new(
        self, model: LearnerHooks, x: dict[Hashable, Any], seen: Observation, w: float
    ) -> None:
        """Learn a row with new variables or targets; every change can be rolled back."""
        values = read_strictly(x)
        bad = first_bad_value(values)
        if bad is not None:
            raise bad_value_error(list(x)[bad], values[bad])
        values, indices = self._admit(model, seen, list(x), values)
        self._learn_due(model, values, indices, self.moments.target.vector(seen.first), w)

    def _learn_due(
        self, model: LearnerHooks, values: Floats, indices: Indices, columns: Floats, w: float
    ) -> None:
        """Learn a row and do the work that is due after it; every change can be rolled back."""
        moments, extension = self.moments, self.extension
        model._invalidate()
        moments.set_maintenance_due(0.0)
        of_row = values, indices, columns + moments.target.shift, moments, w
        if extension is not None:
            extension.prepare_new(values[None], indices, moments)
        due = self._is_due(model)
        if due:
            register_restore(model, moments.undo_row(indices))
            register_restore(model, None if extension is None else extension.undo_row(indices))
        steps: list[Step] = [(moments.learn_one, (values, indices, columns, w))]
        if extension is not None:
            extension.prepare_one(*of_row)
            steps.append((extension.learn_one, of_row))
        self._finish(model, steps, undo=due)
        if due:
            moments.recentre()
            if extension is not None:
                extension.refresh_if_due(moments)
            model._invalidate()
            model._refresh_if_due(moments.rows)
        self._note_due(model)

    def _finish(self, model: LearnerHooks, steps: Steps, *, undo: bool) -> None:
        """Learn rows by steps that cannot fail; the first step is that of the moments.

        After an interrupt the steps are completed rather than rolled back, unless work follows that
        can fail (`undo`).
        """
        rest = PendingRows(self.moments, steps)
        if not undo:
            model._guard.pending_change = rest
        rest.settle()

    def _is_due(self, model: LearnerHooks) -> bool:
        """Whether further work is due after the next row."""
        moments = self.moments
        if moments.rows_until_rescale < 1 or model._refresh.is_due(moments.rows + 1):
            return True
        return self.extension is not None and self.extension.needs_maintenance(moments)

    def _note_due(self, model: LearnerHooks) -> None:
        """Let the moments learn rows without checks until work may be due again."""
        moments, extension = self.moments, self.extension
        until = moments.rows_until_rescale
        if extension is not None:
            until = min(until, extension.rows_until_maintenance(moments))
        moments.set_maintenance_due(min(moments.rows + until, model._refresh.check_at))

    def _read_row(
        self, model: LearnerHooks, x: dict[Hashable, Any], y: Any, columns: Floats | None
    ) -> tuple[dict[Hashable, Any], Observation, Floats | None, tuple[Floats, Indices] | None]:
        """Return features without covariates, the observed target, target columns and the row.

        Accepts any valid row. The row is returned as values and their indices. The last two results
        are None if the row brings a new variable or target. `columns` are the target columns, if
        they are known already.
        """
        moments, seen = self.moments, _NO_OBSERVATION
        if columns is not None:
            values = read_values(x)
            indices = self.reader.indices_of(list(x), moments.table.index_of)
            if indices is not None:
                return x, seen, columns, (values, indices)
        target, covariates = moments.target, moments.target.covariates
        if covariates and isinstance(x, Mapping):
            seen = target.observe_one(y, x)
            x = {name: value for name, value in x.items() if name not in covariates}
        elif model._is_supervised:
            seen = target.observe_one(y)
        values = read_values(x)
        indices = self._indices_if_known(model, seen, list(x))
        if indices is None:
            return x, seen, None, None
        return x, seen, target.vector(seen.first), (values, indices)

    def learn_first(self, model: LearnerHooks, x: dict[Hashable, Any], y: Any, w: float) -> None:
        """Learn the first row, and become the phase of the learner."""
        x, seen, _, _ = self._read_row(model, x, y, None)
        with_rollback(model, self._learn_new, model, x, seen, w)
        self.moments.target.check_codes(y, self.moments.rows)

    # Many rows

    def learn_rows(self, model: LearnerHooks, X: Any, y: Any, w: Any) -> None:
        """Learn many rows; the first rows make this the phase of the learner."""
        batch = self._read_rows(model, X, y, w)
        if batch is None:
            return
        # If the names are known, the sums are checked instead of each value.
        indices = self._indices_if_known(model, batch.seen, batch.names)
        if indices is None or not self._learn_known_rows(model, batch, indices):
            refuse_infinite(batch.names, batch.X)
            with_rollback(model, self._learn_any_rows, model, batch)
        self.moments.target.check_codes(y, self.moments.rows)

    def _read_rows(self, model: LearnerHooks, X: Any, y: Any, w: Any) -> RowBatch | None:
        """Return a batch of rows, not yet checked for infinite values; None if it is empty."""
        target = self.moments.target
        names, X, covariates = read_frame_with_covariates(X, target.covariates, self.reader)
        if len(X) == 0 and (y is None or _is_empty(y)):
            return None
        if model._is_supervised:
            seen, encoded = target.observe_many(y, covariates)
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

    def _learn_known_rows(self, model: LearnerHooks, batch: RowBatch, indices: Indices) -> bool:
        """Learn rows without new names; return False, without a change, if more work is due."""
        moments, extension = self.moments, self.extension
        X, Y = batch.X, batch.columns(moments)
        if moments.rows + len(X) >= moments.maintenance_due or len(moments.pieces(len(X))) > 1:
            return False
        if extension is not None:
            at_once = len(X) <= extension.rows_at_once(X.shape[1] + Y.shape[1])
            if not (at_once and extension.is_ready_for(X, indices)):
                return False
        model._invalidate()
        if extension is not None:
            refuse_infinite(batch.names, X)
        sums = moments.batch_sums(X, indices, Y, batch.w)
        if sums is None:
            refuse_infinite(batch.names, X)
            return False
        steps: list[Step] = [(moments.add_sums, (sums,))]
        if extension is not None:
            steps += extension.prepare_many(X, indices, Y, moments, batch.w)
        self._finish(model, steps, undo=False)
        model._guard.pending_change = None
        return True

    def _learn_any_rows(self, model: LearnerHooks, batch: RowBatch) -> None:
        """Learn rows with new names or due work; every change can be rolled back."""
        values, indices = self._admit(model, batch.seen, batch.names, batch.X)
        if self.extension is not None:
            self.extension.prepare_new(values, indices, self.moments)
        self._note_due(model)
        is_whole = len(indices) == len(batch.names)
        if not (is_whole and self._learn_known_rows(model, batch, indices)):
            self._learn_in_segments(model, batch, values, indices)

    def _learn_in_segments(
        self, model: LearnerHooks, batch: RowBatch, values: Floats, indices: Indices
    ) -> None:
        """Learn admitted rows in segments that end where further work is due."""
        moments, X, w = self.moments, batch.X, batch.w
        moments.detach()
        moments.set_maintenance_due(0.0)
        if self.extension is not None:
            self.extension.detach()
        start = 0
        while start < len(X):
            if start:
                # After each segment, there may be room for variables not admitted before.
                values, indices = self._admit(model, batch.seen, batch.names, X[start:])
            extension, Y = self.extension, batch.columns(moments)
            limit = self._segment_size(model, all_tracked=len(indices) == len(batch.names))
            stop = len(X) if limit is None else min(len(X), start + limit)
            for piece in moments.pieces(stop - start):
                rows, weights = values[piece], None if w is None else w[start:stop][piece]
                model._invalidate()
                moments.learn_many(rows, indices, Y[start:stop][piece], weights)
                moments.recentre()
                if extension is not None:
                    extension.prepare_new(rows, indices, moments)
                    extension.learn_many(rows, indices, Y[start:stop][piece], moments, weights)
                    extension.refresh_if_due(moments)
            model._refresh_if_due(moments.rows)
            start = stop
        self._note_due(model)

    def _segment_size(self, model: LearnerHooks, *, all_tracked: bool) -> int | None:
        """Return the number of rows that may be learnt at once; None for any number."""
        moments = self.moments
        limits = [model._refresh.rows_until_due(moments.rows)]
        if not all_tracked:
            limits.append(max(1, self.vocabulary.no_room_until - moments.rows))
        if self.extension is not None:
            limits.append(self.extension.rows_until_refresh(moments))
        return min((limit for limit in limits if limit is not None), default=None)

    # New variables and evictions

    def _admit(
        self, model: LearnerHooks, seen: Observation, names: list[Hashable], values: Floats
    ) -> tuple[Floats, Indices]:
        """Admit new targets and variables; return the tracked values and their indices."""
        indices = self._indices_if_known(model, seen, names)
        if indices is not None:
            return values, indices
        bad = first_invalid_name(names, {})
        if bad is not None:
            raise bad_name_error(names[bad])
        moments, n_rows = self.moments, 1 if values.ndim == 1 else len(values)
        model._check_columns(moments.target, seen, moments.rows + n_rows)
        if model._phase is not self:
            self.start(model)
            self.evict_to_capacity(model)
        if moments.target.form is None or not seen.first.keys() <= moments.target.index_of.keys():
            moments.admit_targets(seen)
            model._invalidate()
        index_of = moments.table.index_of
        new = in_canonical_order(name for name in names if name not in index_of)
        if new:
            room = self._make_room(model, self.vocabulary, len(new))
            if room < len(new):
                # Rotate the canonical order, so that not always the same names are admitted.
                shift = moments.rows % len(new)
                new = in_canonical_order((new[shift:] + new[:shift])[:room])
            moments.admit(new)
            self.n_columns += room
            if self.extension is not None:
                self.extension.add_variables(new, moments)
            index_of = moments.table.index_of
        found = [index_of.get(name, -1) for name in names]
        if -1 in found:
            tracked = [j for j, index in enumerate(found) if index >= 0]
            values, found = values[..., tracked], [found[j] for j in tracked]
        return values, np.array(found, dtype=np.intp)

    def _indices_if_known(
        self, model: LearnerHooks, seen: Observation, names: list[Hashable]
    ) -> Indices | None:
        """Return the indices of these variables; None if a variable or target is new."""
        # Before its first row the phase may still be dropped.
        known = self.moments.target.index_of.keys()
        if model._phase is not self or not seen.first.keys() <= known:
            return None
        return self.reader.indices_of(names, self.moments.table.index_of)

    def start(self, model: LearnerHooks) -> None:
        """Become the phase of the learner; the observations of its columns are dropped."""
        before, moments, extension = model._phase, self.moments, self.extension
        model._refresh.start(moments.rows, model._current())
        if extension is not None and extension.starts_from_columns:
            self.evict_to_capacity(model)
            extension.start(self._continued_columns, before.target, moments)
        self._continued_columns = None
        model._phase = self
        model._invalidate()

    def evict_to_capacity(self, model: LearnerHooks) -> None:
        """Evict variables down to `max_features`, regardless of the grace period.

        Needed after columns and after merges.
        """
        self._make_room(model, Vocabulary(self.vocabulary.max_features, 0), 0)

    def _make_room(self, model: LearnerHooks, vocabulary: Vocabulary, n_new: int) -> int:
        """Return how many of the new variables can be tracked, after evicting others."""
        moments = self.moments
        room = vocabulary.make_room(
            moments,
            n_new,
            partial(model._protected, moments, self.extension),
            partial(model._relevances_of_stats, moments),
        )
        self.reader.clear_cache()
        model._invalidate()
        return room

    def clear_row_cache(self) -> None:
        """Clear the cached names of the previous row: their indices may have changed."""
        self.reader.clear_cache()

    def recheck_due(self) -> None:
        """Check before the next row whether further work is due."""
        self.moments.set_maintenance_due(0.0)

    def prepare_merge(self) -> None:
        """Prepare for changes in place."""
        self.recheck_due()
        self.moments.detach()
        if self.extension is not None:
            self.extension.detach()

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the learnt state for a model file, as arrays and JSON-compatible values."""
        state: dict[str, Any] = {
            "n_columns": self.n_columns,
            "n_constant": self.constant,
            "n_passes": self.n_passes,
            "without_target": self.without_target,
            "n_rows": None,
            "moments": self.moments.to_state(),
        }
        if self.extension is not None:
            state["extension"] = self.extension.to_state()
        if source := self.source.to_state():
            state["source"] = source
        return state | {"no_room_until": self.vocabulary.no_room_until}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the result of `to_state`, in a new phase that is not used yet."""
        self.moments.set_state(state["moments"])
        if self.extension is not None:
            self.extension.set_state(state["extension"])
            self.extension.check_matches(self.moments)
        expect(state, no_room_until=CountKind())
        self.vocabulary.no_room_until = state["no_room_until"]


def _is_empty(y: Any) -> bool:
    try:
        return len(y) == 0
    except TypeError:  # a sparse target, or none at all, which the target refuses
        return False
