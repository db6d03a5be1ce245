"""State of SOSPCA on rows: moments of the components, and candidates for new components."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Any, NamedTuple, Self

import numpy as np

from streamsel._kernels.relevance import rotate_and_drop
from streamsel._utils.numeric import TIE_RTOL, argsort_by_relevance
from streamsel.base.linear_map import Alignment, align_components
from streamsel.data.chunks import Stats
from streamsel.extraction._sospca import VARIANCE_TOL, SOSPCAState
from streamsel.serialization.invariants import expect_between
from streamsel.serialization.schema import BoolKind, CountKind, expect, expect_shapes
from streamsel.state.base import Floats, Indices
from streamsel.state.moments.components import (
    ComponentMoments,
    merge_component_moments,
    track_components,
)
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import MergeAxis
from streamsel.targets.space import TargetSpace

# A candidate is added only if at least this fraction of its direction, and of its variance, is
# outside the span of the components.
_MIN_OUTSIDE_SPAN = 0.5
# A variable's covariances are unknown if at most this fraction of its observed weight is recent.
_MIN_OBSERVED = 1e-9
# A loading is negligible if its square, and its contribution relative to the variance of the
# component, are at most this.
_NEGLIGIBLE = 1e-18


class RefreshStatistics(NamedTuple):
    """Statistics of all variables and components at a refresh."""

    moments: Moments
    space: TargetSpace
    # Of all variables: moments, total weight of the rows that observed them, relevances, and
    # indices by decreasing relevance.
    stats: Stats
    seen: Floats
    relevance: Floats
    order: Indices
    # Of the components, (q + 1,); the first `count` exist.
    component_relevance: Floats


class SOSPCARowState(ComponentMoments):
    """Components, candidates, and the joint moments of both.

    A variable can be added to the components only if its covariances with them are known, which the
    moments of all variables with the target do not include. So some variables are *candidates*:
    their products with the components, and with one another, are summed from the row at which they
    became candidates.

    Parameters
    ----------
    n_components
        The number q of components.
    grace_period
        Number of rows after which a candidate may be added.
    max_features
        Maximum number of variables tracked; at most half of those without loadings are candidates.
    first
        While there are no components, number of rows after which to try to start; at least 2.
    fading
        Whether old rows are down-weighted. Residual loadings of old components must then not
        prevent a variable from being added again.
    jacobi, signed
        As in `streamsel.extraction._sospca.SOSPCAState`.

    Attributes
    ----------
    count
        Number of components, which have the first indices in every array.
    arrival
        (q + 1,) their order of arrival.
    provisional
        Whether the components are the first ones, of few rows, which the first refresh replaces.
    """

    changing = (*ComponentMoments.changing, "count", "arrival")

    def __init__(
        self,
        n_components: int,
        grace_period: int,
        *,
        max_features: int | None,
        first: int,
        fading: bool,
        jacobi: bool,
        signed: bool,
    ) -> None:
        super().__init__(2 * n_components + 1, grace_period, max(32, 2 * n_components))
        self.q = n_components
        # A relevance needs at least two rows.
        self.first = max(2, first)
        # The components in use follow the q components and the room for one more.
        self._in_use = slice(self.q + 1, self.n_sums)
        self.max_features = max_features
        self.fading = fading
        self.jacobi = jacobi
        self.signed = signed
        self.count = 0
        self.arrival: Floats = np.zeros(self.q + 1)
        self.provisional = False

    def continue_from(self, columns_state: SOSPCAState | None, n: int) -> None:
        """Continue from the components of n rows that were learnt as columns, if any."""
        self.n = float(n)
        if columns_state is None:
            return
        self.count = columns_state.count
        self.arrival[:] = columns_state.arrival
        support = columns_state.table
        B = np.zeros((len(support), self.n_sums))
        B[:, : self.q + 1] = support["B"]
        self.tracked.append(support.names, B=B, shift=support["mean"])
        self.mean[:] = support["mean_error"] @ B
        self.J[: self.q + 1, : self.q + 1] = columns_state.Mzz
        self.put_in_use(np.eye(self.q))

    @property
    def max_candidates(self) -> int:
        """Maximum number of candidates; a bounded vocabulary reserves room for new variables."""
        if self.max_features is None:
            return self._max_candidates
        return min(self._max_candidates, (self.max_features - len(self.loaded)) // 2)

    def detach(self) -> None:
        """Copy the arrays of the components, because rows and refreshes modify them."""
        super().detach()
        self.arrival = self.arrival.copy()

    # Components in use

    def alignment(self, reference_scale: Floats, first_weight: float = 1.0) -> Alignment:
        """Return the alignment of the components with those in use, as `align_components` does."""
        new, in_use, covariance = slice(self.q), self._in_use, self.J / max(self.n, 1.0)
        return align_components(
            covariance[new, in_use],
            covariance[new, new],
            np.diag(covariance)[in_use],
            reference_scale,
            first_weight,
        )

    def put_in_use(self, matrix: Floats) -> None:
        """Put the current components, times a matrix (q, q), into use."""
        B, self.tracked = self.tracked["B"], self.tracked.with_empty_fields(("B",))
        self.tracked["B"][:] = B
        self.tracked["B"][:, self._in_use] = B[:, : self.q] @ matrix
        transform = np.eye(len(self.J))
        transform[:, self._in_use] = 0.0
        transform[: self.q, self._in_use] = matrix
        self.mean = self.mean @ transform
        self.J = transform.T @ self.J @ transform
        # Estimates may be inconsistent, and give a negative square of a sum.
        squares = np.einsum("ii->i", self.J)[self._in_use]
        np.maximum(squares, 0.0, out=squares)

    # Components

    def support(self, moments: Moments) -> tuple[list[Hashable], Stats, Floats]:
        """Return names, moments and loadings, (s, 2q + 1), of the support."""
        loaded = np.flatnonzero(self.tracked["B"][:, : self.q + 1].any(axis=1))
        names, B = [self.tracked.names[i] for i in loaded.tolist()], self.tracked["B"][loaded]
        index_of = moments.table.index_of
        stats = moments.stats(np.array([index_of[name] for name in names], dtype=np.intp))
        return names, stats, B

    def relevances(
        self, support: tuple[list[Hashable], Stats, Floats], space: TargetSpace
    ) -> Floats:
        """Return the (count,) relevances of the components, given the result of `support`."""
        _, stats, B = support
        m2 = np.diag(self.J)[: self.count]
        return space.relevance(m2, B[:, : self.count].T @ stats.cxy, signed=self.signed)

    # Refresh

    def rows_until_refresh(self, moments: Moments) -> int:
        """Return the number of rows before the next refresh, or the next attempt to start."""
        n_rows = super().rows_until_refresh(moments)
        return n_rows if self.count else min(n_rows, self.first - self.rows % self.first)

    def refresh_if_due(self, moments: Moments) -> None:
        """Refresh after every `grace_period` rows; without components, try to start."""
        if self.rows % self.grace_period == 0:
            self.refresh(moments)
        elif not self.count and self.rows % self.first == 0:
            self._start(moments)

    def _start(self, moments: Moments) -> None:
        """Build the first components from the relevant candidates whose covariances are exact.

        These are the candidates that no row contained before they became candidates. All candidates
        remain, and the first refresh replaces these components by others, based on more rows.
        """
        now = self._all_variables(moments)
        n_before = self.candidates["weight_before"].tolist()
        exact = {name for name, n in zip(self.candidates.names, n_before, strict=True) if n == 0.0}
        for j in now.order.tolist():
            name = moments.names[j]
            threshold = self._threshold(now.component_relevance)
            if name in exact and now.relevance[j] > max(TIE_RTOL, threshold):
                self._add_candidate(name, now)
        self.choose_candidates(self.candidates.names, moments, now.stats)
        self.provisional = self.count > 0

    def _drop_components(self) -> None:
        """Drop the current components; those in use remain."""
        current = slice(self.q + 1)
        self.tracked["B"][:, current] = 0.0
        self.mean[current] = self.J[current] = self.J[:, current] = self.arrival[:] = 0.0
        self.count, self.provisional = 0, False

    def refresh(self, moments: Moments) -> None:
        """Add mature candidates to the components, the most relevant first; select candidates."""
        mature = self.candidates["start"] + self.grace_period <= self.rows
        if self.provisional and mature.any():
            self._drop_components()
        now = self._all_variables(moments)
        index_of, names = moments.index_of, moments.names
        start_of = dict(zip(self.candidates.names, self.candidates["start"].tolist(), strict=True))
        for name in [names[j] for j in now.order.tolist() if names[j] in start_of]:
            is_ready = start_of[name] + self.grace_period <= self.rows and not self._is_in_span(
                name
            )
            relevance = now.relevance[index_of[name]]
            if is_ready and relevance > self._threshold(now.component_relevance):
                self._add_candidate(name, now)
        if self.fading:
            self._drop_negligible(now)
        self._select_candidates(now)

    def _all_variables(self, moments: Moments) -> RefreshStatistics:
        assert moments.space is not None  # noqa: S101
        stats = moments.stats()
        relevance = moments.space.relevance(stats.m2, stats.cxy, signed=self.signed)
        component_relevance = np.zeros(self.q + 1)
        component_relevance[: self.count] = self.relevances(self.support(moments), moments.space)
        order = argsort_by_relevance(relevance)
        return RefreshStatistics(
            moments,
            moments.space,
            stats,
            moments.observed_weights(),
            relevance,
            order,
            component_relevance,
        )

    def _share_in_span(self, name: Hashable) -> float:
        """Return the share of a variable's direction in the span of the components, 0 to 1."""
        index = self.tracked.index_of.get(name)
        return 0.0 if index is None else float(np.square(self.tracked["B"][index, : self.q]).sum())

    def _is_in_span(self, name: Hashable) -> bool:
        return self._share_in_span(name) > (_MIN_OUTSIDE_SPAN if self.fading else 0.0)

    def _threshold(self, relevance: Floats) -> float:
        """Return the relevance that a variable must exceed to be added."""
        if self.count < self.q:
            return -1.0 - TIE_RTOL
        return float(relevance[: self.count].min()) + TIE_RTOL

    def _add_candidate(self, name: Hashable, now: RefreshStatistics) -> None:
        """Add a candidate as the last component if it is relevant enough; drop one of q + 1.

        A variable that has loadings is added with its direction outside the span of the components,
        so that BᵀB = I.
        """
        first, k, candidate = self.n_sums, self.count, self.candidates.index_of[name]
        index_of, stats = now.moments.index_of, now.stats
        relevance = now.component_relevance
        i, j, row_of_B = first + candidate, index_of[name], self.tracked.index_of[name]
        B, age = self.tracked["B"], self.candidates["age"]
        observed_weight = now.seen[j] - self.candidates["weight_before"][candidate]
        if observed_weight <= _MIN_OBSERVED * now.seen[j]:
            # No row observed it since it became a candidate, so its covariances are unknown.
            return
        row = self.J[i].copy()
        # Extrapolate from the rows that observed it since then to all that did, and to the rows of
        # every older candidate.
        row[:first] *= now.seen[j] / observed_weight
        row[first:] *= np.maximum(age / age[candidate], 1.0)
        # Estimates may be inconsistent, and give a negative square of a sum: bound them.
        largest = np.sqrt(stats.m2[j]) * np.sqrt(np.maximum(np.diag(self.J)[:first], 0.0))
        row[:first] = np.clip(row[:first], -largest, largest)
        loadings = B[row_of_B, :k].copy()
        outside = np.sqrt(1.0 - self._share_in_span(name))
        inner = self.J[:k, :k] @ loadings
        m2 = stats.m2[j] - loadings @ (2.0 * row[:k] - inner)
        if m2 < _MIN_OUTSIDE_SPAN * stats.m2[j]:
            # The residual is a difference of estimates, too inaccurate.
            return
        m2 /= outside**2
        row -= loadings @ self.J[:k]
        row /= outside
        direction = -B[:, :k] @ loadings
        direction[row_of_B] += 1.0
        direction /= outside
        cxy = stats.cxy[[index_of[name] for name in self.tracked.names]]
        new_relevance = now.space.relevance(
            np.array([m2]), (direction @ cxy)[None], signed=self.signed
        )[0]
        if new_relevance <= self._threshold(relevance):
            return
        row[k] = m2
        self.J[k], self.J[:, k] = row, row
        B[:, k] = direction
        relevance[k] = new_relevance
        self.arrival[k] = self.arrival[:k].max(initial=-1.0) + 1.0
        self.count += 1
        if self.count > self.q:
            self._rotate_and_drop(cxy, relevance, now.space)

    def _drop_negligible(self, now: RefreshStatistics) -> None:
        """Drop loadings that faded rows have left, and that have become negligible."""
        B = self.tracked["B"]
        indices = [now.moments.index_of[name] for name in self.tracked.names]
        m2 = np.diag(self.J)[: self.count]
        share = np.square(B[:, : self.count])
        of_variance = share * now.stats.m2[indices, None] <= _NEGLIGIBLE * m2
        negligible = (share.sum(axis=1) <= _NEGLIGIBLE) & of_variance.all(axis=1)
        B[negligible, : self.q] = 0.0

    def _rotate_and_drop(self, cxy: Floats, relevance: Floats, space: TargetSpace) -> None:
        first = self.n_sums
        B = self.tracked["B"]
        # Products with the candidates are rotated like scores.
        tail = self.J[:first, first:].copy()
        M, Czy = self.J[:first, :first].copy(), B.T @ cxy
        state = (tail, M, Czy, B, relevance, self.arrival, self.count)
        options = (self.jacobi, self.signed, TIE_RTOL, VARIANCE_TOL, False)
        rotate_and_drop(*state, space.weights, space.covariate_map, *options)
        self.J[:first, :first] = M
        self.J[:first, first:], self.J[first:, :first] = tail, tail.T
        self.count -= 1

    def _select_candidates(self, now: RefreshStatistics) -> None:
        """Select the candidates: variables that may be added, in order; then current candidates.

        Current candidates are kept while there is room, so that their covariances are not lost;
        those that were already added come last.
        """
        names, order = now.moments.names, now.order
        threshold = self._threshold(now.component_relevance)
        eligible = [names[j] for j in order[now.relevance[order] > threshold].tolist()]
        eligible = [name for name in eligible if not self._is_in_span(name)]
        rest = self.candidates.index_of.keys() - set(eligible)
        ranked = (names[j] for j in order.tolist())
        others = sorted((name for name in ranked if name in rest), key=self._is_in_span)
        self.choose_candidates(
            [*eligible, *others][: max(1, self.max_candidates)], now.moments, now.stats
        )

    def before_merge(self, theirs: Self, along: MergeAxis) -> None:
        """Prepare a merge: put the current components into use; watch those of the other model."""
        # The moments of the components in use cover only the rows of this model: as functions of
        # the current components, which are merged, they cover those of both.
        self.put_in_use(self.alignment(np.zeros(self.q)).matrix)
        if along == "rows" and self.provisional and theirs.count and not theirs.provisional:
            self._drop_components()
        # After a merge no candidate has exact covariances, which a restart needs.
        self.provisional = False
        if along == "rows" and not self.count:
            track_components(self, theirs)

    def after_merge(
        self,
        theirs: Self,
        along: MergeAxis,
        moments: Moments,
        others: Moments,  # noqa: ARG002
    ) -> None:
        """Continue after the moments of the variables were merged.

        Variables of the other model's components may be added as candidates.
        """
        self.keep_candidates([])
        if along == "rows":
            matrix = self.alignment(np.zeros(self.q)).matrix
            theirs = copy.deepcopy(theirs)
            for one in (self, theirs):
                one.put_in_use(np.zeros((self.q, self.q)))
            if not self.count:
                self.count = theirs.count
                self.arrival[:] = theirs.arrival
            merge_component_moments(self, theirs, moments)
            self.put_in_use(matrix)
        self._select_candidates(self._all_variables(moments))

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as in a corrupt file."""
        super().expect_valid()
        expect_between("arrivals", self.arrival[: self.count], 0.0, 2.0**53)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state as arrays and JSON-compatible values."""
        return super().to_state() | {
            "count": self.count,
            "arrival": self.arrival[: self.count],
            "provisional": self.provisional,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that `to_state` returned."""
        super().set_state(state)
        expect(state, count=CountKind(), provisional=BoolKind())
        self.count, self.provisional = state["count"], state["provisional"]
        if self.count > self.q or self.tracked["B"][:, self.count : self.q + 1].any():
            raise ValueError(f"Expected loadings on {self.count} components. Got: on others.")
        expect_shapes(state, arrival=(self.count,))
        self.arrival[: self.count] = state["arrival"]
