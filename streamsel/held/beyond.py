"""Joint moments of variables, and only their leading axes once these are too many."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np

from streamsel.columns import Stats
from streamsel.held.beside import ENDLESS, Along, Steps, put, take
from streamsel.held.common import Common, OnRows
from streamsel.held.crossed import Crossed
from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Places
from streamsel.held.period import Period
from streamsel.held.row_subspace import Level, RowSubspace
from streamsel.rollback import Restore
from streamsel.target.space import TargetSpace


class AlongAxes(OnRows):
    """Variables of which the leading axes are known, and the moments.

    It says what was known when it was made, and keeps nothing itself.

    Parameters
    ----------
    axes
        A (p, k): AAᵀ stands for their sums of products.
    moments
        Of all rows.
    """

    def __init__(self, axes: Floats, moments: Moments) -> None:
        self.axes, self._of_all = axes, moments
        self.table = moments.table

    @property
    def slots(self) -> Mapping[Hashable, int]:
        """Name -> place, in order of arrival."""
        return self._of_all.slots

    @property
    def names(self) -> list[Hashable]:
        """Names in order of arrival; not to be changed."""
        return self._of_all.names

    @property
    def complete(self) -> bool:
        """Whether no variable was ever let go."""
        return self._of_all.complete

    @property
    def n(self) -> float:
        """The weight of all rows, where the newest has weight 1."""
        return self._of_all.n

    @property
    def effective_rows(self) -> float:
        """How many rows of equal weight tell as much (Kish 1965)."""
        return self._of_all.effective_rows

    @property
    def space(self) -> TargetSpace | None:
        """The target space; None without a target."""
        return self._of_all.space

    def stats(self, places: Places | None = None) -> Stats:
        """Return the moments of variables over all rows, of all if places is None."""
        return self._of_all.stats(places)

    def among(self, places: Places, W: Floats) -> Floats:
        """Return sums of products, (k, k), of what weights (m, k) make of these variables."""
        along = self.axes[places].T @ W
        found: Floats = along.T @ along
        return found

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: nothing but what others keep."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned."""


class Beyond(Crossed):
    """Joint moments, and as soon as variables are more than these are kept of the leading axes.

    Nobody is let go: axes take a few numbers a variable. What has been learnt of how variables vary
    with one another goes over into the axes, but for what is beyond these.

    Parameters
    ----------
    fading_factor
        In [0, 1): what part of its weight a row loses with every later one.
    most
        The most variables of which joint moments are kept; None for any number.
    rank
        How many axes are kept beyond.

    Attributes
    ----------
    axes
        What is kept beyond; None until then.
    """

    changing = (*Crossed.changing, "axes", "_steps")

    def __init__(self, fading_factor: float, most: int | None, rank: int) -> None:
        super().__init__(fading_factor)
        self.most, self.rank = most, rank
        # What is to be done of a row for the axes.
        self._steps: Steps = ()
        self.axes: RowSubspace | None = None

    def rows_used(self, moments: Moments) -> int:
        """Return how many rows tell how the variables in use vary with one another."""
        return super().rows_used(moments) if self.axes is None else moments.rows

    def in_use(self, moments: Moments) -> OnRows:
        """Return what is held of the variables in use, until the next row."""
        if self.axes is None:
            return super().in_use(moments)
        return AlongAxes(self.axes.as_of(len(moments.table)).axes, moments)

    # Variables that come

    def follow(self, moments: Moments) -> None:
        """Take up who came; go over to axes where that is too many."""
        if self.axes is not None:
            return
        if self.most is not None and len(moments.table) > self.most:
            self._go_over(moments)
        else:
            super().follow(moments)

    def _go_over(self, moments: Moments) -> None:
        """Keep axes from here on, which begin with what joint moments say."""
        self._open &= moments.complete
        held, p = Common(self.now, moments), len(moments.table)
        axes, mean = np.zeros((p, 0)), np.zeros(p)
        seen = np.full(p, held.n if self._open else 0.0)
        if held.names:
            places = np.array([moments.slots[name] for name in held.names], dtype=np.intp)
            leading = _leading(held, self.rank)
            axes = np.zeros((p, leading.shape[1]))
            axes[places], mean[places], seen[places] = leading, held.stats().mean, held.seen()
        self.axes = RowSubspace(self.rank, self.keep)
        self.axes.is_open = self._open
        self.axes.begin(Level(axes, mean, seen), held.n)
        # Joint moments are kept no longer.
        self.now, self.then, self._followed = Period(self.keep), None, None

    # Learning

    @property
    def takes_gaps(self) -> bool:
        """Whether it is ready for all rows with values that were not observed."""
        return self.axes is not None

    def is_ready_for(self, X: Floats, slots: Places) -> bool:
        """Whether rows, (b, m), can be learnt without `make_ready`."""
        return self.axes is not None or super().is_ready_for(X, slots)

    def make_ready(self, X: Floats, slots: Places, moments: Moments) -> None:
        """Take up what rows, (b, m), bring for the first time."""
        self.follow(moments)
        if self.axes is None:
            super().make_ready(X, slots, moments)

    def prepare_one(
        self, values: Floats, slots: Places, y: Floats, moments: Moments, w: float
    ) -> None:
        """Do what can fail of learning a row."""
        if self.axes is None:
            super().prepare_one(values, slots, y, moments, w)
        else:
            self._steps = self.prepare_many(values[None], slots, y, moments, np.array([w]))

    def learn_one(
        self, values: Floats, slots: Places, y: Floats, moments: Moments, w: float
    ) -> None:
        """Learn a row after the moments have, unless that was done."""
        if self.axes is None:
            super().learn_one(values, slots, y, moments, w)
        else:
            take(self._steps)

    def prepare_many(
        self, X: Floats, slots: Places, Y: Floats, moments: Moments, w: Floats | None
    ) -> Steps:
        """Return the steps of learning rows."""
        if self.axes is None:
            return super().prepare_many(X, slots, Y, moments, w)
        return put(self.axes, moments, self.axes.learnt(X, slots, len(moments.table), w))

    def rows_at_once(self, width: int) -> int:
        """Return how many rows, of so many variables and targets, can be learnt at once."""
        return super().rows_at_once(width) if self.axes is None else ENDLESS

    def saved(self, slots: Places) -> Restore | None:
        """Return what undoes a row of these variables."""
        return super().saved(slots) if self.axes is None else None

    # Merging

    def merged(self, theirs: Self, along: Along, moments: Moments, others: Moments) -> None:
        """Go on with the rows of both."""
        p = len(moments.table)
        if self.axes is None and theirs.axes is None and (self.most is None or p <= self.most):
            super().merged(theirs, along, moments, others)
            return
        theirs = copy.deepcopy(theirs)
        if self.axes is None:
            self._go_over(moments)
        if theirs.axes is None:
            theirs._go_over(others)
        assert self.axes is not None  # noqa: S101
        assert theirs.axes is not None  # noqa: S101
        places = np.array([moments.slots[name] for name in others.names], dtype=np.intp)
        self.axes.merge(theirs.axes, places, p)

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        super().expect_possible()
        if self.axes is not None:
            self.axes.expect_possible()

    # Files

    def check(self, moments: Moments) -> None:
        """Refuse what a file says, if it is not about these moments."""
        super().check(moments)
        if self.axes is not None and self.axes.known > len(moments.table):
            raise ValueError("Expected axes of the variables held. Got: of others.")

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        state = super().to_state()
        return state if self.axes is None else state | {"axes": self.axes.to_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        super().set_state(state)
        if "axes" in state:
            self.axes = RowSubspace(self.rank, self.keep)
            self.axes.set_state(state["axes"])


def _leading(held: Common, rank: int) -> Floats:
    """Return the leading axes of variables, (p, k), as long as these vary along them."""
    from scipy.linalg import eigh

    p = len(held.names)
    length = np.sqrt(held.stats().m2)
    C = held.products(np.arange(p)) * length * length[:, None]
    d, V = eigh(C, subset_by_index=[max(0, p - rank), p - 1])
    real = d > p * np.finfo(float).eps * d[-1]
    axes: Floats = V[:, real] * np.sqrt(np.maximum(d[real], 0.0))
    return axes
