"""The row axis: what every learner does with rows, one at a time or a frame of them."""

from __future__ import annotations

import abc
import numbers
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from streamsel.columns import Stats
from streamsel.held.beside import Beside
from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Places
from streamsel.held.vocabulary import Vocabulary
from streamsel.learner.axis import Axis
from streamsel.learner.window import Said, Window
from streamsel.names import first_bad_name, why_bad_name
from streamsel.rows import (
    RowDoor,
    first_bad,
    in_canonical_order,
    read_beside,
    read_strictly,
    read_values,
    refuse_infinite,
    why_bad,
)
from streamsel.target.observed import NO_TARGET, Observation
from streamsel.target.rows import RowTarget, unequal
from streamsel.target.target import Target
from streamsel.target.weights import weight_of_row, weights_of_rows

_UNASKED = Observation(NO_TARGET, {})


class RowAxis(Axis):
    """Takes rows in by their door and adds them to the moments of the variables they name.

    A model that has learnt columns goes on from their moments; the observations themselves are let
    go, so that the way back to columns is closed.
    """

    def _begin_rows(self) -> None:
        # What rows fill; None before the first.
        self._moments: Moments | None = None
        self._beside: Beside | None = None
        self._window: Window | None = None
        self._door = RowDoor()
        self._vocabulary = Vocabulary(self.max_features, self.grace_period)

    @property
    def _on_rows(self) -> bool:
        """Whether rows were learnt."""
        return self._moments is not None or self._window is not None

    # One row

    def _learn_row(self, x: dict[Hashable, Any], y: Any, w: float) -> None:
        if w != 1.0:
            self._refuse_weights_of_rows()
            w = weight_of_row(w)
            if not w:
                return
        moments = self._moments
        if moments is None:
            if self._by_window:
                self._learn_in_window(*self._window_so_far().read_one(x, y), y)
                return
            moments = self._rows_so_far()
        target = moments.target
        # Nearly all rows are like the one before.
        columns, row = target.again(y), self._door.again(x)
        if columns is None or row is None or moments is not self._moments:
            x, columns, row = self._read_row(moments, x, y, columns)
        values, places = row
        self._outdate()
        beside = self._beside
        # The origin may move.
        y_whole = columns if beside is None else columns + target.origin
        bad = moments.learn_one(values, places, columns, w) - 1
        if bad >= 0:
            raise why_bad(list(x)[bad], values[bad])
        if beside is not None:
            beside.learn_one(values, places, y_whole, moments, w)
            beside.refresh_if_due(moments)
        self._renew_if_due(moments.rows)
        target.note_codes(y, moments.rows)

    def _read_row(
        self, moments: Moments, x: dict[Hashable, Any], y: Any, columns: Floats | None
    ) -> tuple[dict[Hashable, Any], Floats, tuple[Floats, Places]]:
        """Return features without covariates, target columns, values held and their places.

        Any row that can be learnt; what it brings for the first time is taken up. The target
        columns are given if they are known already.
        """
        if columns is not None and moments is self._moments:
            values = read_values(x)
            places = self._door.places(list(x), moments.table.slots)
            if places is not None:
                return x, columns, (values, places)
        target, covariates = moments.target, moments.target.covariates
        if covariates and isinstance(x, Mapping):
            seen = target.one(y, x)
            x = {name: value for name, value in x.items() if name not in covariates}
        else:
            seen = target.one(y) if self.supervised else _UNASKED
        values = read_values(x)
        places = self._known(moments, seen, list(x))
        if places is None:
            values = read_strictly(x)
            bad = first_bad(values)
            if bad is not None:
                raise why_bad(list(x)[bad], values[bad])
            values, places = self._admit(moments, seen, list(x), values)
        return x, target.vector(seen.first), (values, places)

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
        names, X, covariates = read_beside(X, moments.target.covariates, self._door)
        if len(X) == 0 and (y is None or (not hasattr(y, "tocsc") and len(y) == 0)):
            return
        if self.supervised:
            seen, encoded = moments.target.many(y, covariates)
            if len(encoded.columns) != len(X):
                raise unequal(len(X), len(encoded.columns))
        else:
            seen, encoded = _UNASKED, None
        w = weights_of_rows(w, len(X))
        if w is not None and not w.all():
            X, w, counts = X[w > 0.0], w[w > 0.0], w > 0.0
            if encoded is not None:
                encoded = encoded._replace(columns=encoded.columns[counts])
        # Where nothing changes before all rows are summed, the sums tell.
        limit = self._stretch(moments, all_held=True)
        in_one_go = len(moments.pieces(len(X))) == 1 and (limit is None or len(X) <= limit)
        whole = in_one_go and self._beside is None
        if not whole or self._known(moments, seen, names) is None:
            refuse_infinite(names, X)
        start = 0
        while start < len(X):
            # Again after every stretch: who found no room may find it now.
            values, places = self._admit(moments, seen, names, X[start:])
            Y = np.empty((len(X), 0)) if encoded is None else moments.target.matrix(encoded)
            limit = self._stretch(moments, all_held=len(places) == len(names))
            stop = len(X) if limit is None else min(len(X), start + limit)
            for piece in moments.pieces(stop - start):
                rows = values[piece]
                self._outdate()
                of_rows = None if w is None else w[start:stop][piece]
                if not moments.learn_many(rows, places, Y[start:stop][piece], of_rows):
                    refuse_infinite(names, X)
                if self._beside is not None:
                    self._beside.learn_many(rows, places, Y[start:stop][piece], moments, of_rows)
                    self._beside.refresh_if_due(moments)
            self._renew_if_due(moments.rows)
            start = stop
        moments.target.note_codes(y, moments.rows)

    def _stretch(self, moments: Moments, *, all_held: bool) -> int | None:
        """Return how many rows may be learnt at once; None for any number."""
        limits = [self._rows_until_renewal(moments.rows)]
        if not all_held:
            limits.append(max(1, self._vocabulary.full_until - moments.rows))
        if self._beside is not None:
            limits.append(self._beside.until_refresh(moments))
        return min((limit for limit in limits if limit is not None), default=None)

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

    # Rows by windows

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
            window.rows = self._target.n
            if isinstance(self._target, Target):
                window.target = RowTarget.following(self._target, self._kind_of_rows)
        return window

    def _learn_in_window(self, names: list[Hashable], values: Floats, said: Said, y: Any) -> None:
        """Let rows into the window, as many as it has room for; sweep it when it is full."""
        if not len(values):
            return
        window = self._window_so_far()
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
        if window.target is not None:
            window.target.note_codes(y, window.rows)

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
