"""Manage the state on rows: its start from columns, new variables and targets, and evictions."""

from __future__ import annotations

import abc
from collections.abc import Hashable

import numpy as np

from streamsel.base.row_input import RowReader, in_canonical_order
from streamsel.base.undo import PendingRow, Transactional
from streamsel.base.windows import Window
from streamsel.data.columns import Stats
from streamsel.data.names import bad_name_error, first_invalid_name
from streamsel.state.base import Floats, Indices
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension
from streamsel.state.moments.vocabulary import Vocabulary
from streamsel.targets.observation import Observation
from streamsel.targets.rows import RowTarget
from streamsel.targets.target import Target


class RowState(Transactional):
    """Base class that admits new variables and targets of rows.

    A model that has learnt columns continues from their moments; the observations are dropped, so
    that it cannot learn columns afterwards.
    """

    def _begin_rows(self) -> None:
        # State on rows; None before the first row.
        self._moments: Moments | None = None
        self._row_extension: RowExtension | None = None
        self._window: Window | None = None
        self._row_completion = PendingRow()
        self._row_reader = RowReader()
        self._vocabulary = Vocabulary(self.max_features, self.grace_period)

    @property
    def _on_rows(self) -> bool:
        """Whether rows were learnt."""
        return self._moments is not None or self._window is not None

    # New variables and evictions

    def _admit(
        self, moments: Moments, seen: Observation, names: list[Hashable], values: Floats
    ) -> tuple[Floats, Indices]:
        """Admit new targets and variables; return the tracked values and their indices."""
        indices = self._indices_if_known(moments, seen, names)
        if indices is not None:
            return values, indices
        bad = first_invalid_name(names, {})
        if bad is not None:
            raise bad_name_error(names[bad])
        n_rows = 1 if values.ndim == 1 else len(values)
        self._check_columns(moments.target, seen, moments.rows + n_rows)
        if self._moments is None:
            self._switch_to_rows(moments)
            self._evict_to_capacity(moments)
        if moments.target.form is None or not seen.first.keys() <= moments.target.index_of.keys():
            moments.admit_targets(seen)
            self._invalidate()
        index_of = moments.table.index_of
        new = in_canonical_order(name for name in names if name not in index_of)
        if new:
            room = self._vocabulary.make_room(
                moments, len(new), self._protected, self._relevances_of_stats
            )
            self._row_reader.clear_cache()
            self._invalidate()
            if room < len(new):
                # Rotate the canonical order, so that not always the same names are admitted.
                shift = moments.rows % len(new)
                new = in_canonical_order((new[shift:] + new[:shift])[:room])
            moments.admit(new)
            self.n_columns += room
            if self._row_extension is not None:
                self._row_extension.add_variables(new, moments)
            index_of = moments.table.index_of
        found = [index_of.get(name, -1) for name in names]
        if -1 in found:
            tracked = [j for j, index in enumerate(found) if index >= 0]
            values, found = values[..., tracked], [found[j] for j in tracked]
        return values, np.array(found, dtype=np.intp)

    def _indices_if_known(
        self, moments: Moments, seen: Observation, names: list[Hashable]
    ) -> Indices | None:
        """Return the indices of these variables; None if a variable or target is new."""
        # The cache must not refer to moments that may still be dropped.
        if moments is not self._moments or not seen.first.keys() <= moments.target.index_of.keys():
            return None
        return self._row_reader.indices_of(names, moments.table.index_of)

    def _check_columns(self, target: RowTarget, seen: Observation, rows: int) -> None:
        """Raise ValueError for a target that does not fit the parameters, after so many rows."""
        target.check_classes(seen, rows)
        columns = target.index_of.keys() | seen.first.keys()
        c = len(columns) if not target.covariates else target.count_targets(columns)
        # A label among several targets takes several columns, even if only one class was seen.
        is_several = seen.form == "several" and any(seen.kinds.values())
        self._check_target(max(c, 2) if is_several else c, is_class=seen.form == "class")

    def _clear_row_cache(self) -> None:
        """Clear the cached names of the previous row: their indices may have changed."""
        self._row_reader.clear_cache()

    def _evict_to_capacity(self, moments: Moments) -> None:
        """Evict variables down to `max_features`, regardless of the grace period.

        Needed after columns and after merges.
        """
        room = Vocabulary(self.max_features, 0)
        room.make_room(moments, 0, self._protected, self._relevances_of_stats)
        self._row_reader.clear_cache()
        self._invalidate()

    def _relevances_of_stats(self, stats: Stats) -> Floats:
        assert self._moments is not None  # noqa: S101
        space = self._moments.space
        if space is None:
            return stats.m2
        return space.relevance(stats.m2, stats.cxy, signed=self._is_signed)

    def _recheck_due(self) -> None:
        """Check before the next row whether further work is due."""
        if self._moments is not None:
            self._moments.set_maintenance_due(0.0)

    # From columns to rows

    def _current_or_new_moments(self) -> Moments:
        """Return moments that continue from any columns learnt, without changing the model."""
        if self._is_supervised and self._without_target:
            raise _selects_without_target()
        self._refuse_survival()
        target, names = self._target, (self.covariates or ())
        row_target = RowTarget(self.target_type, names)
        moments = Moments(self.fading_factor, row_target, self._variable_kernel())
        if target is None:
            return moments
        if isinstance(target, Target) and set(target.covariate_kinds) != set(names):
            raise ValueError(
                f"Expected the covariates of the columns, {list(target.covariate_kinds)}, in the "
                f"parameter covariates, to read them from rows. Got: {list(names)}.\n"
                "Hint: name them in the constructor, and pass them to learn_target under these "
                "names."
            )
        moments.continue_from(target)
        self._add_columns_to_moments(moments)
        return moments

    def _refuse_weights_of_rows(self) -> None:
        if self._by_window:
            raise ValueError(
                f"Expected rows of weight 1: {type(self).__name__} with these parameters learns "
                "rows by windows, which have no weights. Got: another weight.\n"
                "Hint: omit w, or use a learner that is based on moments."
            )

    def _refuse_survival(self) -> None:
        if self._is_supervised and self.target_type == "survival":
            raise ValueError(
                "Expected columns, as target_type='survival' requires. Got: a row.\n"
                "Hint: martingale residuals depend on all observations at risk, including later "
                "rows."
            )

    @abc.abstractmethod
    def _add_columns_to_moments(self, moments: Moments) -> None:
        """Add the variables that were learnt as columns to the moments."""

    @abc.abstractmethod
    def _switch_to_rows(self, moments: Moments) -> None:
        """Switch to rows: drop the columns' observations and use these moments as the state."""

    def _current_or_new_window(self) -> Window:
        """Return the current window, or a new one, without changing the model."""
        if self._window is not None:
            return self._window
        if self._is_supervised and self._without_target:
            raise _selects_without_target()
        self._refuse_survival()
        if isinstance(self._target, Target) and self._target.covariate_kinds:
            raise ValueError(
                "Expected columns, as the model has learnt columns with covariates, which windows "
                "of rows do not support. Got: a row.\n"
                "Hint: learn the rows with model.clone(), without covariates."
            )
        target = RowTarget(self._row_target_type) if self._is_supervised else None
        window = Window(self._window_size, target, self.max_features)
        if self._target is not None:
            window.before = self._target.n
            if isinstance(self._target, Target):
                window.target = RowTarget.from_target(self._target, self._row_target_type)
        return window

    @property
    @abc.abstractmethod
    def _window_size(self) -> int: ...

    @abc.abstractmethod
    def _learn_window(self, window: Window) -> None:
        """Learn a full window as columns."""


def _selects_without_target() -> ValueError:
    return ValueError(
        "Expected a model with a target. Got: a row for a model that selects without a target.\n"
        "Hint: selection without a target needs the observations of whole columns."
    )
