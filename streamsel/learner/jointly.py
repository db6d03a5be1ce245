"""Define learners that use joint moments (covariances) of the variables on rows."""

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
    """Base class of learners that keep samples of columns, and joint moments of rows.

    Its hooks receive a state of either axis, which provides the same members: on rows, that of the
    variables tracked over one aligned window. Windows of rows are supported as for any other
    learner.
    """

    rows: ClassVar[type[Held | Beside | Window]] = Crossed

    max_features: int | None = param(
        params.Whole(1, optional=True),
        default=1000,
        doc="""
        Maximum number of variables tracked on rows, m; None for all. They take $2 m^2$ numbers, and
        twice as many in each direction if there are missing values. When a new variable needs room,
        the least relevant ones are evicted, except those in use or in their grace period; from then
        on a new variable is selected only once all rows that `n_rows_used` counts are later than
        its first occurrence.
        """,
    )

    def _begin_rows(self) -> None:
        super()._begin_rows()
        # State on columns during the transition to rows.
        self._leaving: ColumnHeld | None = None

    @property
    def _held(self) -> Held | None:
        if self._leaving is not None:
            return self._leaving
        return self._columns if self._beside is None else self._aligned_view()

    @until_learnt
    def _aligned_view(self) -> OnRows:
        moments, crossed = self._moments_and_extension()
        return crossed.in_use(moments)

    def _moments_and_extension(self) -> tuple[Moments, Crossed]:
        assert self._moments is not None  # noqa: S101
        assert isinstance(self._beside, Crossed)  # noqa: S101
        return self._moments, self._beside

    @property
    def n_rows_used(self) -> int:
        """Number of rows from which the covariances of the variables in use are estimated.

        All rows, as long as no variable was evicted; afterwards those of an aligned window in which
        all variables in use were tracked, with at least about half of the total weight.
        """
        if self._beside is None:
            return self.n_rows
        moments, crossed = self._moments_and_extension()
        return crossed.rows_used(moments)

    def _space_of_rows(self) -> tuple[float, TargetSpace]:
        if self._beside is not None:
            held = self._aligned_view()
            if held.space is not None:
                return held.effective_rows, held.space
        return super()._space_of_rows()

    # From columns to rows

    def _new_beside(self) -> Beside:
        return Crossed(self.fading_factor)

    def _carry_over(self, moments: Moments) -> None:
        super()._carry_over(moments)
        if self.n_columns > len(moments.table) and moments.complete:
            # Constant variables were not kept, and their value need not have been 0.
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
        _, crossed = self._moments_and_extension()
        if target is not None:
            pool = columns if isinstance(columns, SamplePool) else None
            _initialize_joint_moments(crossed, pool, moments, target)
        crossed.follow(moments)

    # Merging

    def _merge_along_rows(self, other: Self) -> None:
        moments = self._moments or self._rows_so_far()
        if other._moments is None and moments.rows:
            other = copy.deepcopy(other)
            theirs = other._rows_so_far()
            if theirs.rows:
                other._go_over_to(theirs)
        super()._merge_along_rows(other)


def _initialize_joint_moments(
    crossed: Crossed, columns: SamplePool | None, moments: Moments, target: Target | NoTarget
) -> None:
    """Initialize the joint moments from those columns that are still tracked."""
    names: list[Any] = [] if columns is None else [n for n in columns.names if n in moments.slots]
    c = 0 if isinstance(target, NoTarget) else len(target.cyy)
    size = c + len(names)
    mean, products = np.zeros(size), np.zeros((size, size))
    if isinstance(target, Target):
        mean[:c], products[:c, :c] = target.mean + target.low, target.cyy
    if columns is not None and names:
        indices = np.array([columns.slots[name] for name in names], dtype=np.intp)
        stats = columns.stats(indices)
        mean[c:] = stats.mean + stats.low
        if c:
            products[c:, :c], products[:c, c:] = stats.cxy, stats.cxy.T
        products[c:, c:] = _cross_products(columns, indices)
    crossed.now.begin(names, mean, products, c, target.n)
    crossed.now.squares = moments.squares


def _cross_products(columns: SamplePool, indices: Places) -> Floats:
    """Return the sums of cross products of columns."""
    stats, space = columns.stats(indices), columns.space
    has_covariates = columns.given is not None and space is not None
    residual_m2 = (
        space.left(stats.m2, stats.cxy) if has_covariates and space is not None else stats.m2
    )
    length = np.sqrt(residual_m2)
    samples = columns.samples(indices)
    products: Floats = (samples @ samples.T) * length[:, None] * length
    if has_covariates and space is not None:
        explained = stats.cxy @ space.given.T
        products += explained @ explained.T
    np.fill_diagonal(products, stats.m2)
    return products
