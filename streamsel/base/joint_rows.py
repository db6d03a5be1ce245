"""Define learners that use joint moments (covariances) of the variables on rows."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np

from streamsel import params
from streamsel.base.axis import cached_until_update
from streamsel.base.learner import Learner
from streamsel.base.windows import Window
from streamsel.params import param
from streamsel.state.base import ColumnState, Floats, Indices, VariableState
from streamsel.state.moments.aligned_view import RowView
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension
from streamsel.state.pool.pool import SamplePool
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import NoTarget, Target


class CrossMomentsOnRows(Learner):
    """Base class of learners that keep samples of columns, and joint moments of rows.

    Its hooks receive a state of either axis, which provides the same members: on rows, that of the
    variables tracked over one aligned window. Windows of rows are supported as for any other
    learner.
    """

    _row_state_type: ClassVar[type[VariableState | RowExtension | Window]] = CrossMoments

    max_features: int | None = param(
        params.IntRule(1, optional=True),
        default=1000,
        doc="""
        Maximum number of variables tracked on rows, m; None for all. They take $2 m^2$ numbers, and
        twice as many in each direction if there are missing values. When a new variable needs room,
        the least relevant ones are evicted, except those in use or in their grace period; from then
        on a new variable is selected only once all rows that `n_aligned_rows` counts are later than
        its first occurrence.
        """,
    )

    def _begin_rows(self) -> None:
        super()._begin_rows()
        # State on columns during the transition to rows.
        self._leaving: ColumnState | None = None

    @property
    def _state(self) -> VariableState | None:
        if self._leaving is not None:
            return self._leaving
        return self._columns if self._row_extension is None else self._aligned_view()

    @cached_until_update
    def _aligned_view(self) -> RowView:
        moments, crossed = self._moments_and_extension()
        return crossed.in_use(moments)

    def _moments_and_extension(self) -> tuple[Moments, CrossMoments]:
        assert self._moments is not None  # noqa: S101
        assert isinstance(self._row_extension, CrossMoments)  # noqa: S101
        return self._moments, self._row_extension

    @property
    def n_aligned_rows(self) -> int:
        """Number of rows from which the covariances of the variables in use are estimated.

        All rows, as long as no variable was evicted; afterwards those of an aligned window in which
        all variables in use were tracked, with at least about half of the total weight.
        """
        if self._row_extension is None:
            return self.n_rows
        moments, crossed = self._moments_and_extension()
        return crossed.n_aligned_rows(moments)

    def _space_of_rows(self) -> tuple[float, TargetSpace]:
        if self._row_extension is not None:
            held = self._aligned_view()
            if held.space is not None:
                return held.effective_rows, held.space
        return super()._space_of_rows()

    # From columns to rows

    def _new_row_extension(self) -> RowExtension:
        return CrossMoments(self.fading_factor)

    def _add_columns_to_moments(self, moments: Moments) -> None:
        super()._add_columns_to_moments(moments)
        if self.n_columns > len(moments.table) and moments.complete:
            # Constant variables were not kept, and their value need not have been 0.
            moments.note_discard()

    def _switch_to_rows(self, moments: Moments) -> None:
        columns, target = self._columns, self._target
        self._leaving = columns
        try:
            super()._switch_to_rows(moments)
            self._evict_to_capacity(moments)
        finally:
            self._leaving = None
            self._invalidate()
        _, crossed = self._moments_and_extension()
        if target is not None:
            # The samples are those of the pool of a state that has one.
            pool = getattr(columns, "pool", columns)
            pool = pool if isinstance(pool, SamplePool) else None
            _initialize_joint_moments(crossed, pool, moments, target)
        crossed.synchronise(moments)

    # Merging

    def _merge_along_rows(self, other: Self) -> None:
        moments = self._moments or self._current_or_new_moments()
        if other._moments is None and moments.rows:
            other = copy.deepcopy(other)
            theirs = other._current_or_new_moments()
            if theirs.rows:
                other._switch_to_rows(theirs)
        super()._merge_along_rows(other)


def _initialize_joint_moments(
    crossed: CrossMoments, columns: SamplePool | None, moments: Moments, target: Target | NoTarget
) -> None:
    """Initialize the joint moments from those columns that are still tracked."""
    names: list[Any] = (
        [] if columns is None else [n for n in columns.names if n in moments.index_of]
    )
    c = 0 if isinstance(target, NoTarget) else len(target.cyy)
    size = c + len(names)
    mean, products = np.zeros(size), np.zeros((size, size))
    if isinstance(target, Target):
        mean[:c], products[:c, :c] = target.mean + target.low, target.cyy
    if columns is not None and names:
        indices = np.array([columns.index_of[name] for name in names], dtype=np.intp)
        stats = columns.stats(indices)
        mean[c:] = stats.mean + stats.mean_error
        if c:
            products[c:, :c], products[:c, c:] = stats.cxy, stats.cxy.T
        products[c:, c:] = _cross_products(columns, indices)
    crossed.current.begin(names, mean, products, c, target.n)
    crossed.current.squares = moments.squares


def _cross_products(columns: SamplePool, indices: Indices) -> Floats:
    """Return the sums of cross products of columns."""
    stats, space = columns.stats(indices), columns.space
    has_covariates = columns.covariate_basis is not None and space is not None
    residual_m2 = (
        space.adjusted_squares(stats.m2, stats.cxy)
        if has_covariates and space is not None
        else stats.m2
    )
    length = np.sqrt(residual_m2)
    samples = columns.samples(indices)
    products: Floats = (samples @ samples.T) * length[:, None] * length
    if has_covariates and space is not None:
        explained = stats.cxy @ space.covariate_map.T
        products += explained @ explained.T
    np.fill_diagonal(products, stats.m2)
    return products
