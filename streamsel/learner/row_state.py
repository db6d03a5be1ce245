"""What rows fill, and how that begins: variables and targets that come, and those of columns."""

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
    """Takes up what rows bring for the first time.

    A model that has learnt columns goes on from their moments; the observations themselves are
    dropped, so that the way back to columns is closed.
    """

    def _begin_rows(self) -> None:
        # What rows fill; None before the first.
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

    # Variables that come and go

    def _admit(
        self, moments: Moments, seen: Observation, names: list[Hashable], values: Floats
    ) -> tuple[Floats, Places]:
        """Take up new targets and variables; return the values that are held, and their places."""
        known = self._known(moments, seen, names)
        if known is not None:
            return values, known
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
                # Not always the first of the alphabet.
                turn = moments.rows % len(new)
                new = in_canonical_order((new[turn:] + new[:turn])[:room])
            moments.admit(new)
            self.n_columns += room
            if self._beside is not None:
                self._beside.take_up(new, moments)
            slots = moments.table.slots
        found = [slots.get(name, -1) for name in names]
        if -1 in found:
            held = [j for j, place in enumerate(found) if place >= 0]
            values, found = values[..., held], [found[j] for j in held]
        return values, np.array(found, dtype=np.intp)

    def _known(self, moments: Moments, seen: Observation, names: list[Hashable]) -> Places | None:
        """Return the places of these variables, or None if one, or a target, is not held yet."""
        # Moments that are not the model's yet may be let go again, and the door must not know them.
        if moments is not self._moments or not seen.first.keys() <= moments.target.slots.keys():
            return None
        return self._door.places(names, moments.table.slots)

    def _check_columns(self, target: RowTarget, seen: Observation, rows: int) -> None:
        """Refuse a target that the parameters cannot be used with, of so many rows."""
        target.check_classes(seen, rows)
        columns = target.slots.keys() | seen.first.keys()
        c = len(columns) if not target.covariates else target.asked(columns)
        # Labels among several targets are a column each, though one at most has come yet.
        several = seen.form == "several" and any(seen.kinds.values())
        self._check_target(max(c, 2) if several else c, is_class=seen.form == "class")

    def _forget_names(self) -> None:
        """Forget the names of the row before: their places may be others."""
        self._door.forget()

    def _let_go_at_once(self, moments: Moments) -> None:
        """Let go whom `max_features` has no room for, new or not: from columns, or by a merge."""
        room = Vocabulary(self.max_features, 0)
        room.make_room(moments, 0, self._protected, self._all_relevances)
        self._door.forget()
        self._outdate()

    def _all_relevances(self, stats: Stats) -> Floats:
        """Return the relevances of variables with these moments."""
        assert self._moments is not None  # noqa: S101
        space = self._moments.space
        if space is None:
            return stats.m2
        return space.relevance(stats.m2, stats.cxy, signed=self._is_signed)

    def _forget_due(self) -> None:
        """Look again before the next row whether there is more to do than to learn it."""
        if self._moments is not None:
            self._moments.learns_until(0.0)

    # From columns to rows

    def _rows_so_far(self) -> Moments:
        """Return moments that go on from the columns learnt, if any; leave the model as it is."""
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
                f"parameter covariates, for rows to bring them. Got: {list(names)}.\n"
                "Hint: name them in the constructor, and pass them to learn_target under these "
                "names."
            )
        moments.follow(target)
        self._carry_over(moments)
        return moments

    def _refuse_weights_of_rows(self) -> None:
        if self._by_window:
            raise ValueError(
                f"Expected rows of weight 1: {type(self).__name__} as it is set learns rows by "
                "windows, and looks at them one by one. Got: another weight.\n"
                "Hint: leave w out, or take a learner that decides by moments."
            )

    def _refuse_survival(self) -> None:
        if self.supervised and self.target == "survival":
            raise ValueError(
                "Expected columns, as target='survival' says. Got: a row.\n"
                "Hint: what an observation has to explain depends on who is at risk beside it, "
                "in rows that are yet to come."
            )

    @abc.abstractmethod
    def _carry_over(self, moments: Moments) -> None:
        """Give the moments the variables that were learnt as columns."""

    @abc.abstractmethod
    def _go_over_to(self, moments: Moments) -> None:
        """Let the columns' observations go: from here on the moments are the state."""

    def _window_so_far(self) -> Window:
        """Return the window, a new one if there is none; leave the model as it is."""
        if self._window is not None:
            return self._window
        if self.supervised and self._without_target:
            raise _selects_without_target()
        self._refuse_survival()
        if isinstance(self._target, Target) and self._target.given_kinds:
            raise ValueError(
                "Expected columns, for the model has learnt columns given covariates, of which "
                "windows of rows know nothing. Got: a row.\n"
                "Hint: a model for the rows is model.clone(); it is asked without covariates."
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
        "Expected a model with a target. Got: a row for one that selects without.\n"
        "Hint: without a target the variables' observations are needed, column by column."
    )
