"""Rows for methods that ask how variables vary with one another."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np

from streamsel import params
from streamsel.held.beside import Beside
from streamsel.held.common import OnRows
from streamsel.held.crossed import Crossed
from streamsel.held.moments import Moments
from streamsel.held.part import ColumnHeld, Floats, Held, Places
from streamsel.held.pool import SamplePool
from streamsel.learner.base import Learner
from streamsel.learner.cached import until_learnt
from streamsel.learner.window import Window
from streamsel.params import param
from streamsel.target.space import TargetSpace
from streamsel.target.target import NoTarget, Target


class Jointly(Learner):
    """A learner that keeps observations of columns, and joint moments of rows.

    Its hooks are handed what is held of the variables of one period of rows; what they ask for they
    find on either axis. Rows that it learns by windows it learns as any other does.
    """

    rows: ClassVar[type[Held | Beside | Window]] = Crossed

    max_features: int | None = param(
        params.Whole(1, optional=True),
        default=1000,
        doc="""
        Most variables tracked on rows, m; None for all. They take $2 m^2$ numbers, twice as many in
        each direction where values are not observed. When a new one needs room the least relevant
        go, but none that is in use or in its grace period; from then on a newcomer is selected only
        when `n_rows_used` is about rows since it came.
        """,
    )

    def _begin_rows(self) -> None:
        super()._begin_rows()
        # Columns that rows are about to go on from.
        self._leaving: ColumnHeld | None = None

    @property
    def _held(self) -> Held | None:
        if self._leaving is not None:
            return self._leaving
        return self._columns if self._beside is None else self._in_common()

    @until_learnt
    def _in_common(self) -> OnRows:
        moments, crossed = self._on_joint_moments()
        return crossed.in_use(moments)

    def _on_joint_moments(self) -> tuple[Moments, Crossed]:
        assert self._moments is not None  # noqa: S101
        assert isinstance(self._beside, Crossed)  # noqa: S101
        return self._moments, self._beside

    @property
    def n_rows_used(self) -> int:
        """Rows that show how the variables in use vary with one another.

        All rows, as long as no variable was let go; then those of a period in which all variables
        in use were tracked, of at least about half of the weight of all.
        """
        if self._beside is None:
            return self.n_rows
        moments, crossed = self._on_joint_moments()
        return crossed.rows_used(moments)

    def _space_of_rows(self) -> tuple[float, TargetSpace]:
        if self._beside is not None:
            held = self._in_common()
            if held.space is not None:
                return held.effective_rows, held.space
        return super()._space_of_rows()

    # From columns to rows

    def _new_beside(self) -> Beside:
        return Crossed(self.fading_factor)

    def _carry_over(self, moments: Moments) -> None:
        super()._carry_over(moments)
        if self.n_columns > len(moments.table) and moments.complete:
            # What does not vary was not kept, and it need not have been 0.
            moments.forget()

    def _go_over_to(self, moments: Moments) -> None:
        columns, target = self._columns, self._target
        self._leaving = columns
        try:
            super()._go_over_to(moments)
            self._let_go_at_once(moments)
        finally:
            self._leaving = None
            self._outdate()
        _, crossed = self._on_joint_moments()
        if target is not None:
            held = columns if isinstance(columns, SamplePool) else None
            _begin(crossed, held, moments, target)
        crossed.follow(moments)

    # Merging

    def _merge_along_rows(self, other: Self) -> None:
        mine = self._moments or self._rows_so_far()
        if other._moments is None and mine.rows:
            other = copy.deepcopy(other)
            theirs = other._rows_so_far()
            if theirs.rows:
                other._go_over_to(theirs)
        super()._merge_along_rows(other)


def _begin(
    crossed: Crossed, columns: SamplePool | None, moments: Moments, target: Target | NoTarget
) -> None:
    """Let joint moments go on from the columns that are still among the moments."""
    names: list[Any] = [] if columns is None else [n for n in columns.names if n in moments.slots]
    c = 0 if isinstance(target, NoTarget) else len(target.cyy)
    size = c + len(names)
    mean, products = np.zeros(size), np.zeros((size, size))
    if isinstance(target, Target):
        mean[:c], products[:c, :c] = target.mean + target.low, target.cyy
    if columns is not None and names:
        places = np.array([columns.slots[name] for name in names], dtype=np.intp)
        stats = columns.stats(places)
        mean[c:] = stats.mean + stats.low
        if c:
            products[c:, :c], products[:c, c:] = stats.cxy, stats.cxy.T
        products[c:, c:] = _products(columns, places)
    crossed.now.begin(names, mean, products, c, target.n)
    crossed.now.squares = moments.squares


def _products(columns: SamplePool, places: Places) -> Floats:
    """Return the sums of products of columns with one another."""
    stats, space = columns.stats(places), columns.space
    given = columns.given is not None and space is not None
    left = space.left(stats.m2, stats.cxy) if given and space is not None else stats.m2
    length = np.sqrt(left)
    unit = columns.samples(places)
    products: Floats = (unit @ unit.T) * length[:, None] * length
    if given and space is not None:
        theirs = stats.cxy @ space.given.T
        products += theirs @ theirs.T
    np.fill_diagonal(products, stats.m2)
    return products
