"""Views of variables over an aligned window of rows."""

from __future__ import annotations

import abc
import functools
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from streamsel._kernels.scan import ROUNDING_RTOL, UNDERFLOW
from streamsel.data.chunks import Stats
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.gram.view import GramScale, InnerProducts, gram_along_some_axes
from streamsel.state.moments.aligned import AlignedMoments
from streamsel.state.moments.aligned_columns import as_slice
from streamsel.state.moments.moments import Moments
from streamsel.targets.space import TargetSpace

# Products with at least 1 / `_WIDE_SHARE` of the variables are taken from the products of all,
# which are computed once.
_WIDE_SHARE = 2


class RowView(VariableState):
    """View of variables that rows have named, valid until the next row is learnt."""

    @property
    @abc.abstractmethod
    def effective_rows(self) -> float:
        """The effective number of rows of equal weight (Kish 1965)."""

    @abc.abstractmethod
    def inner_products(
        self,
        indices: Indices,
        scale: Floats,
        about: GramScale,
        n_needed: int | None = None,
    ) -> InnerProducts:
        """Return the inner products of variables, as `gram_along_some_axes` does."""

    @abc.abstractmethod
    def gram_of(self, indices: Indices, W: Floats) -> Floats:
        """Return the Gram matrix, (k, k), of combinations of variables with weights W, (m, k)."""


class AlignedView(RowView):
    """View of the variables of an aligned window, with their moments and cross-moments.

    It shows the window at its construction, and stores nothing itself.

    Parameters
    ----------
    window
        The aligned window.
    moments
        Moments over all rows, with the target's kinds, and whether a variable was discarded.
    """

    def __init__(self, window: AlignedMoments, moments: Moments) -> None:
        self.window = window
        self._moments = moments
        # Columns of targets and variables, columns of their missing indicators, weights, and means.
        self._own, self._gap, self._seen, self._mean = window.observed()
        self._all = as_slice(self._own)
        self._c = len(window.targets)

    @property
    def index_of(self) -> Mapping[Hashable, int]:
        """Name -> index, in order of arrival."""
        return {name: index for index, name in enumerate(self.names)}

    @functools.cached_property
    def names(self) -> list[Hashable]:
        """Names in order of arrival; not to be modified."""
        return list(self.window.index_of)

    @property
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""
        return self._moments.complete

    @property
    def n(self) -> float:
        """The total weight of the window's rows; the newest row has weight 1."""
        return self.window.n / self.window.unit

    @property
    def effective_rows(self) -> float:
        """The effective number of rows of equal weight (Kish 1965)."""
        squares = self.window.squares
        return self.window.n * self.window.n / squares if squares else 0.0

    @functools.cached_property
    def space(self) -> TargetSpace | None:
        """The target space over the window; None without a target."""
        all_rows = self._moments
        if all_rows.space is None:
            return None
        c = self._c
        cyy = 0.5 * (self._cross[:c] + self._cross[:c].T)
        cyy[np.arange(c), np.arange(c)] = self._squares[:c]
        is_covariate = all_rows.target.is_covariate() if all_rows.target.covariates else None
        return TargetSpace(cyy, self.n, all_rows.kernel, is_covariate)

    @property
    def target_means(self) -> Floats:
        """Means of the target's columns, including covariates, (c,)."""
        return self._levels[: self._c]

    def stats(self, indices: Indices | None = None) -> Stats:
        """Return the moments of variables over the window; of all variables if `indices` is None.

        The newest row has weight 1.
        """
        rows = slice(self._c, None) if indices is None else np.asarray(indices) + self._c
        mean, m2 = self._levels[rows], self._squares[rows]
        return Stats(mean, np.zeros(m2.size), m2, self._cross[rows])

    @property
    def has_products(self) -> bool:
        """Whether `products` are available: they are the purpose of an aligned window."""
        return True

    def products(self, indices: Indices | int) -> Floats:
        """Return the (p, s) correlations of all variables with some, or (p,) with one.

        Adjusted for the covariates; 0 for constant variables.
        """
        if isinstance(indices, (int, np.integer)):
            if len(self.names) <= _WIDE_SHARE:  # all products are known
                return self.products(np.array([indices]))[:, 0]
            return self._products_of_one(int(indices))
        some = np.asarray(indices, dtype=np.intp)
        if _WIDE_SHARE * some.size >= len(self.names):
            found = self._all_about_means[self._c :, as_slice(some + self._c)] / self.window.unit
        else:
            found = self._about_means(some + self._c)[self._c :] / self.window.unit
        stats, space, length = self.stats(), self.space, self._lengths
        if space is not None and len(space.covariate_map):
            theirs = stats.cxy @ space.covariate_map.T
            found -= theirs @ theirs[some].T
        found /= length[:, None]
        found /= length[some]
        return found

    def _products_of_one(self, j: int) -> Floats:
        """Return the (p,) correlations with variable j: vectors take half the time of matrices."""
        found = self._about_mean(j + self._c)[self._c :] / self.window.unit
        stats, space, length = self.stats(), self.space, self._lengths
        if space is not None and len(space.covariate_map):
            theirs = stats.cxy @ space.covariate_map.T
            found -= theirs @ theirs[j]
        found /= length
        found /= length[j]
        return found

    def observed_weights(self) -> Floats:
        """Return the total weight of the rows that observed each variable."""
        seen: Floats = self._seen[self._c :] / self.window.unit
        return seen

    def inner_products(
        self,
        indices: Indices,
        scale: Floats,
        about: GramScale,
        n_needed: int | None = None,
    ) -> InnerProducts:
        """Return the inner products of variables, as `gram_along_some_axes` does."""
        return gram_along_some_axes(self, indices, scale, about, n_needed)

    def gram_of(self, indices: Indices, W: Floats) -> Floats:
        """Return the Gram matrix, (k, k), of combinations of variables with weights W, (m, k)."""
        stats, space = self.stats(), self.space
        of_all = np.zeros((stats.m2.size, W.shape[1]))
        of_all[indices] = W
        of_all *= (np.sqrt(stats.m2) / self._lengths)[:, None]
        cross = self._all_about_means[self._c :, self._c :]
        gram: Floats = of_all.T @ (cross @ of_all) / self.window.unit
        if space is not None and len(space.covariate_map):
            theirs = of_all.T @ (stats.cxy @ space.covariate_map.T)
            gram -= theirs @ theirs.T
        return gram

    @functools.cached_property
    def _lengths(self) -> Floats:
        """The norms of the variables, adjusted for covariates; inf for constant ones."""
        stats, space = self.stats(), self.space
        adjusted = stats.m2 if space is None else space.adjusted_squares(stats.m2, stats.cxy)
        length: Floats = np.sqrt(np.where(adjusted > 0.0, adjusted, np.inf))
        return length

    @functools.cached_property
    def _levels(self) -> Floats:
        levels: Floats = self.window.shift[self._own] + self._mean
        return levels

    @functools.cached_property
    def _squares(self) -> Floats:
        """Sums of squares of targets and variables about their means; 0 for constant ones."""
        unit = self.window.unit
        square = self.window.squares_of(self._own) - self._seen * self._mean * self._mean
        square /= unit
        is_constant = square <= self._seen / unit * np.square(ROUNDING_RTOL * self._levels)
        square[is_constant | (square < UNDERFLOW)] = 0.0
        # A variable that is constant over all rows is constant over the window.
        index_of = self._moments.index_of
        indices = np.array([index_of[name] for name in self.names], dtype=np.intp)
        square[self._c :][self._moments.stats(indices).m2 == 0.0] = 0.0
        return square

    @functools.cached_property
    def _cross(self) -> Floats:
        """(c + p, c) cross-products of targets and variables with the targets."""
        c, square = self._c, self._squares
        cross = self._about_means(np.arange(c)) / self.window.unit
        cross[square == 0.0] = 0.0
        cross[:, square[:c] == 0.0] = 0.0
        return cross

    def to_state(self) -> dict[str, Any]:
        """Return the window's state for a model file."""
        return self.window.to_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the window's state from `to_state`."""
        self.window.set_state(state)

    @functools.cached_property
    def _all_about_means(self) -> Floats:
        """The centred cross-products of all columns with all."""
        return self._about_means(np.arange(self._own.size))

    def _about_mean(self, one: int) -> Floats:
        """Return centred cross-products of all columns with one, in the window's unit."""
        mean, window = self._mean, self.window
        if window.missing_columns:
            return self._about_means(np.array([one]))[:, 0]
        found = window.column(int(self._own[one]))[self._all]
        found -= window.n * mean * mean[one]
        return found

    def _about_means(self, some: Indices) -> Floats:
        """Return centred cross-products of all columns with some, in the window's unit."""
        own, gap, mean, window = self._own, self._gap, self._mean, self.window
        found = window.columns(as_slice(own[some]))
        if not window.missing_columns:
            found = found[self._all]
        else:
            with_gaps = np.flatnonzero(gap[some] >= 0)
            found[:, with_gaps] += window.columns(gap[some][with_gaps]) * mean[some][with_gaps]
            have_gaps = np.flatnonzero(gap >= 0)
            corrections = mean[have_gaps, None] * found[gap[have_gaps]]
            found = found[own]
            found[have_gaps] += corrections
        found -= (window.n * mean)[:, None] * mean[some]
        return found
