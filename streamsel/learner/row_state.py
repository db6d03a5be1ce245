"""Manage the state on rows: its start from columns, new variables and targets, and evictions."""

from __future__ import annotations

import abc
from collections.abc import Hashable

import numpy as np

from streamsel.columns import Stats
from streamsel.held.beside import Beside
from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Places
from streamsel.held.vocabulary import Vocabulary
from streamsel.learner.undo import Rest, Undoable
from streamsel.learner.window import Window
from streamsel.names import first_bad_name, why_bad_name
from streamsel.rows import RowDoor, in_canonical_order
from streamsel.target.observed import Observation
from streamsel.target.rows import RowTarget
from streamsel.target.target import Target


class RowState(Undoable):
    """Base class that admits new variables and targets of rows.

    A model that has learnt columns continues from their moments; the observations are dropped, so
    that it cannot learn columns afterwards.
    """

    def _begin_rows(self) -> None:
        # State on rows; None before the first row.
        self._moments: Moments | None = None
        self._beside: Beside | None = None
        self._window: Window | None = None
        self._rest = Rest()
        self._door = RowDoor()
        self._vocabulary = Vocabulary(self.max_features, self.grace_period)

    @property
    def _on_rows(self) -> bool:
        """Whether rows were learnt."""
        return self._moments is not None or self._window is not None

    # New variables and evictions

    def _admit(
        self, moments: Moments, seen: Observation, names: list[Hashable], values: Floats
    ) -> tuple[Floats, Places]:
        """Admit new targets and variables; return the tracked values and their indices."""
        indices = self._known(moments, seen, names)
        if indices is not None:
            return values, indices
        bad = first_bad_name(names, {})
        if bad is not None:
            raise why_bad_name(names[bad])
        n_rows = 1 if values.ndim == 1 else len(values)
        self._check_columns(moments.target, seen, moments.rows + n_rows)
        if self._moments is None:
            self._go_over_to(moments)
            self._let_go_at_once(moments)
        if moments.target.form is None or not seen.first.keys() <= moments.target.slots.keys():
            moments.admit_targets(seen)
            self._outdate()
        slots = moments.table.slots
        new = in_canonical_order(name for name in names if name not in slots)
        if new:
            room = self._vocabulary.make_room(
                moments, len(new), self._protected, self._all_relevances
            )
            self._door.forget()
            self._outdate()
            if room < len(new):
                # Rotate the canonical order, so that not always the same names are admitted.
                shift = moments.rows % len(new)
                new = in_canonical_order((new[shift:] + new[:shift])[:room])
            moments.admit(new)
            self.n_columns += room
            if self._beside is not None:
                self._beside.take_up(new, moments)
            slots = moments.table.slots
        found = [slots.get(name, -1) for name in names]
        if -1 in found:
            tracked = [j for j, place in enumerate(found) if place >= 0]
            values, found = values[..., tracked], [found[j] for j in tracked]
        return values, np.array(found, dtype=np.intp)

    def _known(self, moments: Moments, seen: Observation, names: list[Hashable]) -> Places | None:
        """Return the indices of these variables; None if a variable or target is new."""
        # The cache must not refer to moments that may still be dropped.
        if moments is not self._moments or not seen.first.keys() <= moments.target.slots.keys():
            return None
        return self._door.places(names, moments.table.slots)

    def _check_columns(self, target: RowTarget, seen: Observation, rows: int) -> None:
        """Raise ValueError for a target that does not fit the parameters, after so many rows."""
        target.check_classes(seen, rows)
        columns = target.slots.keys() | seen.first.keys()
        c = len(columns) if not target.covariates else target.asked(columns)
        # A label among several targets takes several columns, even if only one class was seen.
        is_several = seen.form == "several" and any(seen.kinds.values())
        self._check_target(max(c, 2) if is_several else c, is_class=seen.form == "class")

    def _forget_names(self) -> None:
        """Clear the cached names of the previous row: their indices may have changed."""
        self._door.forget()

    def _let_go_at_once(self, moments: Moments) -> None:
        """Evict variables down to `max_features`, regardless of the grace period.

        Needed after columns and after merges.
        """
        room = Vocabulary(self.max_features, 0)
        room.make_room(moments, 0, self._protected, self._all_relevances)
        self._door.forget()
        self._outdate()

    def _all_relevances(self, stats: Stats) -> Floats:
        assert self._moments is not None  # noqa: S101
        space = self._moments.space
        if space is None:
            return stats.m2
        return space.relevance(stats.m2, stats.cxy, signed=self._is_signed)

    def _forget_due(self) -> None:
        """Check before the next row whether further work is due."""
        if self._moments is not None:
            self._moments.learns_until(0.0)

    # From columns to rows

    def _rows_so_far(self) -> Moments:
        """Return moments that continue from any columns learnt, without changing the model."""
        if self.supervised and self._without_target:
            raise _selects_without_target()
        self._refuse_survival()
        target, names = self._target, (self.covariates or ())
        row_target = RowTarget(self.target, names)
        moments = Moments(self.fading_factor, row_target, self._variable_kernel())
        if target is None:
            return moments
        if isinstance(target, Target) and set(target.given_kinds) != set(names):
            raise ValueError(
                f"Expected the covariates of the columns, {list(target.given_kinds)}, in the "
                f"parameter covariates, to read them from rows. Got: {list(names)}.\n"
                "Hint: name them in the constructor, and pass them to learn_target under these "
                "names."
            )
        moments.follow(target)
        self._carry_over(moments)
        return moments

    def _refuse_weights_of_rows(self) -> None:
        if self._by_window:
            raise ValueError(
                f"Expected rows of weight 1: {type(self).__name__} with these parameters learns "
                "rows by windows, which have no weights. Got: another weight.\n"
                "Hint: omit w, or use a learner that is based on moments."
            )

    def _refuse_survival(self) -> None:
        if self.supervised and self.target == "survival":
            raise ValueError(
                "Expected columns, as target='survival' requires. Got: a row.\n"
                "Hint: martingale residuals depend on all observations at risk, including later "
                "rows."
            )

    @abc.abstractmethod
    def _carry_over(self, moments: Moments) -> None:
        """Add the variables that were learnt as columns to the moments."""

    @abc.abstractmethod
    def _go_over_to(self, moments: Moments) -> None:
        """Switch to rows: drop the columns' observations and use these moments as the state."""

    def _window_so_far(self) -> Window:
        """Return the current window, or a new one, without changing the model."""
        if self._window is not None:
            return self._window
        if self.supervised and self._without_target:
            raise _selects_without_target()
        self._refuse_survival()
        if isinstance(self._target, Target) and self._target.given_kinds:
            raise ValueError(
                "Expected columns, as the model has learnt columns with covariates, which windows "
                "of rows do not support. Got: a row.\n"
                "Hint: learn the rows with model.clone(), without covariates."
            )
        target = RowTarget(self._kind_of_rows) if self.supervised else None
        window = Window(self._window_size, target, self.max_features)
        if self._target is not None:
            window.before = self._target.n
            if isinstance(self._target, Target):
                window.target = RowTarget.following(self._target, self._kind_of_rows)
        return window

    @property
    @abc.abstractmethod
    def _window_size(self) -> int: ...

    @abc.abstractmethod
    def _sweep(self, window: Window) -> None:
        """Learn a full window as columns."""


def _selects_without_target() -> ValueError:
    return ValueError(
        "Expected a model with a target. Got: a row for a model that selects without a target.\n"
        "Hint: selection without a target needs the observations of whole columns."
    )
