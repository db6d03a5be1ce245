"""The row axis: what every learner does with rows, one at a time or a frame of them."""

from __future__ import annotations

import abc
from collections.abc import Collection, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base

from streamsel.columns import Stats
from streamsel.kernels import VariableKernel
from streamsel.moments import Moments
from streamsel.row_target import Observation, RowTarget, no_target
from streamsel.rows import (
    Places,
    RowDoor,
    first_bad,
    in_canonical_order,
    read_frame,
    read_strictly,
    read_values,
    why_bad,
)
from streamsel.target import NoTarget, Target, TargetSpace
from streamsel.vocabulary import Vocabulary

Floats = NDArray[np.float64]


class RowAxis(
    base.MiniBatchSupervisedTransformer, base.MiniBatchTransformer, base.SupervisedTransformer
):
    """Takes rows in by their door and adds them to the moments of the variables they name.

    These three bases together are what River's Pipeline and TransformerUnion treat rightly in every
    place: a plain `SupervisedTransformer` is not applied while a pipeline learns (River 0.26).

    A model that has learnt columns goes on from their moments; the observations themselves are let
    go, so that the way back to columns is closed.
    """

    target: str
    fading_factor: float
    max_features: int | None
    grace_period: int
    n_columns: int
    _n_constant: int
    _target: Target | NoTarget | None
    _space: TargetSpace | None
    _without_target: bool

    def __init__(self) -> None:
        self._moments: Moments | None = None
        self._door = RowDoor()
        self._vocabulary = Vocabulary(self.max_features, self.grace_period)

    def learn_one(self, x: dict[Hashable, Any], y: Any = None) -> None:
        """Learn a row.

        Parameters
        ----------
        x
            Feature -> real number. A feature that is absent counts as 0, in the rows before it
            first came too; NaN or None as not observed: as if it had its mean there.
        y
            A number, a label, or a dict of several targets: name -> number or label. What the first
            row brings the others must bring too. A class or a target that appears later had been 0.

        Raises
        ------
        ValueError
            For an infinite value, a target that is missing, or a model that selects without one.
        TypeError
            For values that are not numbers, or a target of another form than before. In either case
            the model is as it was.

        Notes
        -----
        Costs O(c) for each feature that the row has, c the number of target columns. A feature
        takes 3c + 6 numbers.
        """
        moments = self._moments
        if moments is None:
            moments = self._rows_so_far()
        target = moments.target
        seen = target.one(y)
        values = read_values(x)
        # Moments that are not the model's yet may be let go again, and the door must not know them.
        held = moments is self._moments
        places = self._door.places(x, moments.table.slots) if held else None
        known = places is not None and seen.first.keys() <= target.slots.keys()
        if places is None or not known:
            values = read_strictly(x)
            bad = first_bad(values)
            if bad is not None:
                raise why_bad(list(x)[bad], values[bad])
            values, places = self._admit(moments, seen, list(x), values)
        self._outdate()
        bad = moments.learn_one(values, places, target.vector(seen.first)) - 1
        if bad >= 0:
            raise why_bad(list(x)[bad], values[bad])
        self._observe_row(values, places)
        target.note_codes(y, moments.rows)

    def learn_many(self, X: Any, y: Any = None) -> None:
        """Learn many rows, by matrix products: the same as one after another.

        Parameters
        ----------
        X
            A frame of any library that narwhals knows, or an (n, p) array, whose columns are named
            from 0. A null counts as not observed, a variable that has no column as 0.
        y
            An array, list or Series of n numbers or labels, or a frame or an (n, c) array of
            several targets.

        Raises
        ------
        ValueError, TypeError
            As `learn_one`, and where X and y are not of the same length. The model is as it was.
        """
        if y is None:
            raise no_target(y)
        names, X = read_frame(X)
        moments = self._moments
        if moments is None:
            moments = self._rows_so_far()
        if len(X) == 0 and len(y) == 0:
            return
        seen, encoded = moments.target.many(y)
        if len(encoded.columns) != len(X):
            raise ValueError(
                f"Expected as many targets as rows, {len(X)}. Got: {len(encoded.columns)}."
            )
        start = 0
        while start < len(X):
            # Again after every stretch: who found no room may find it now.
            values, places = self._admit(moments, seen, names, X[start:])
            Y = moments.target.matrix(encoded)
            limit = self._stretch(moments, all_held=len(places) == len(names))
            stop = len(X) if limit is None else min(len(X), start + limit)
            for piece in moments.pieces(stop - start, len(places) + Y.shape[1]):
                rows = values[piece]
                self._outdate()
                moments.learn_many(rows, places, Y[start:stop][piece])
                self._observe_rows(rows, places)
            start = stop
        moments.target.note_codes(y, moments.rows)

    def _admit(
        self,
        moments: Moments,
        seen: Observation,
        names: list[Hashable],
        values: Floats,
    ) -> tuple[Floats, Places]:
        """Take up new targets and variables; return the values that are held, and their places."""
        columns = moments.target.slots.keys() | seen.first.keys()
        labels = seen.form == "class" or any(seen.kinds.values())
        self._check_target(len(columns), is_class=labels)
        if self._moments is None:
            self._begin(moments)
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
            self._took_up(new)
            slots = moments.table.slots
        places = [slots.get(name, -1) for name in names]
        if -1 in places:
            held = [j for j, place in enumerate(places) if place >= 0]
            values, places = values[..., held], [places[j] for j in held]
        return values, np.array(places, dtype=np.intp)

    def _let_go_at_once(self, moments: Moments) -> None:
        """Let go whom `max_features` has no room for, new or not: from columns, or by a merge."""
        room = Vocabulary(self.max_features, 0)
        room.make_room(moments, 0, self._protected, self._all_relevances)
        self._door.forget()
        self._outdate()

    def _stretch(self, moments: Moments, *, all_held: bool) -> int | None:
        """Return how many rows may be learnt at once; None for any number."""
        if all_held:
            return None
        return max(1, self._vocabulary.full_until - moments.rows)

    def _rows_so_far(self) -> Moments:
        """Return moments that go on from the columns learnt, if any; leave the model as it is."""
        if self._without_target:
            raise ValueError(
                "Expected a model with a target. Got: a row for one that selects without.\n"
                "Hint: without a target the variables' observations are needed, column by column."
            )
        if not isinstance(self._target, Target):
            return Moments(self.fading_factor, RowTarget(self.target))
        moments = Moments.following(self._target, self.target, self.fading_factor)
        self._carry_over(moments)
        return moments

    def _row_space(self, moments: Moments) -> TargetSpace:
        """Return the target space of the rows learnt, made once between two learns."""
        if self._space is None:
            self._space = moments.space(self._variable_kernel())
        return self._space

    def _all_relevances(self, stats: Stats) -> Floats:
        assert self._moments is not None  # noqa: S101
        return self._row_space(self._moments).relevance(stats.m2, stats.cxy)

    @abc.abstractmethod
    def _check_target(self, c: int, *, is_class: bool) -> None:
        """Refuse a target that the parameters cannot be used with."""

    @abc.abstractmethod
    def _variable_kernel(self) -> VariableKernel:
        """Return the kernel between variables."""

    @abc.abstractmethod
    def _carry_over(self, moments: Moments) -> None:
        """Give the moments the variables that were learnt as columns."""

    def _carried_constant(self) -> int:
        """Return how many of those that are carried over do not vary."""
        return 0

    def _begin(self, moments: Moments) -> None:
        """Let the columns' observations go: from here on the moments are the state."""
        self._n_constant -= self._carried_constant()
        self._moments = moments
        self._target = self._space = None

    @abc.abstractmethod
    def _protected(self) -> Collection[Hashable]:
        """Return the names that must not be let go."""

    def _outdate(self) -> None:
        """Drop what was computed from the moments: they are about to change, or have."""
        self._space = None

    def _took_up(self, names: list[Hashable]) -> None:
        """Note variables that come first with the next row; others may have moved."""

    def _observe_row(self, values: Floats, places: Places) -> None:
        """Note a row, after its moments."""

    def _observe_rows(self, X: Floats, places: Places) -> None:
        """Note rows, after their moments."""
