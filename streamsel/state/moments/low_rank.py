"""Cross-moments that become a low-rank approximation when there are too many variables."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np

from streamsel._utils.rollback import Restore
from streamsel.data.chunks import Stats
from streamsel.state.base import Floats, Indices
from streamsel.state.gram.view import GramScale, GramView, InnerProducts
from streamsel.state.moments.aligned import AlignedMoments
from streamsel.state.moments.aligned_view import AlignedView, RowView
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import (
    NO_LIMIT,
    MergeAxis,
    Steps,
    replace_attributes,
    run_steps,
)
from streamsel.state.moments.row_subspace import RowSubspace, VariableMoments
from streamsel.targets.space import TargetSpace


class LowRankView(RowView):
    """View of variables with their moments, and cross-products along leading axes.

    It shows the state at its construction, and stores nothing itself.

    Parameters
    ----------
    axes
        Matrix A, (p, k): A Aᵀ approximates the sums of products of the variables.
    moments
        Moments over all rows.
    """

    def __init__(self, axes: Floats, moments: Moments) -> None:
        self.axes, self._moments = axes, moments
        self.table = moments.table

    @property
    def index_of(self) -> Mapping[Hashable, int]:
        """Name -> index, in order of arrival."""
        return self._moments.index_of

    @property
    def names(self) -> list[Hashable]:
        """Names in order of arrival; not to be modified."""
        return self._moments.names

    @property
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""
        return self._moments.complete

    @property
    def n(self) -> float:
        """The total weight of all rows; the newest row has weight 1."""
        return self._moments.n

    @property
    def effective_rows(self) -> float:
        """The effective number of rows of equal weight (Kish 1965)."""
        return self._moments.effective_rows

    @property
    def space(self) -> TargetSpace | None:
        """The target space; None without a target."""
        return self._moments.space

    def stats(self, indices: Indices | None = None) -> Stats:
        """Return the moments of variables over all rows; of all variables if `indices` is None."""
        return self._moments.stats(indices)

    def inner_products(
        self,
        indices: Indices,
        scale: Floats,
        about: GramScale,
        n_needed: int | None = None,  # noqa: ARG002
    ) -> InnerProducts:
        """Return the inner products of variables along the axes; without those of a target."""
        V, lengths, _ = np.linalg.svd(self.axes[indices] * scale[:, None], full_matrices=False)
        none = np.zeros((lengths.size, 0))
        trace = float((self.stats(indices).m2 * np.square(scale)).sum())
        view = GramView(np.square(lengths), none, none, about, trace)
        return InnerProducts(view, V * lengths)

    def gram_of(self, indices: Indices, W: Floats) -> Floats:
        """Return the Gram matrix, (k, k), of combinations of variables with weights W, (m, k)."""
        projected = self.axes[indices].T @ W
        gram: Floats = projected.T @ projected
        return gram

    def to_state(self) -> dict[str, Any]:
        """Return an empty state, because the view stores nothing."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Accept the empty state from `to_state`."""


class LowRankCrossMoments(CrossMoments):
    """Cross-moments, replaced by their leading axes once there are too many variables.

    No variable is evicted: axes take a few numbers per variable. The cross-moments learnt so far
    are projected onto the leading axes, and the residual is dropped.

    Parameters
    ----------
    fading_factor
        In [0, 1): the fraction of its weight that a row loses with each later row.
    max_full_variables
        Maximum number of variables with full cross-moments; None for no limit.
    rank
        Number of axes kept above that limit.

    Attributes
    ----------
    axes
        The low-rank approximation; None until it is used.
    """

    changing = (*CrossMoments.changing, "axes", "_steps")

    def __init__(self, fading_factor: float, max_full_variables: int | None, rank: int) -> None:
        super().__init__(fading_factor)
        self.max_full_variables, self.rank = max_full_variables, rank
        # Steps of the next row for the axes.
        self._steps: Steps = ()
        self.axes: RowSubspace | None = None

    def n_aligned_rows(self, moments: Moments) -> int:
        """Return the number of rows behind the cross-moments in use."""
        return super().n_aligned_rows(moments) if self.axes is None else moments.rows

    def view(self, moments: Moments) -> RowView:
        """Return a view of the variables in use, valid until the next row."""
        if self.axes is None:
            return super().view(moments)
        return LowRankView(self.axes.with_buffer(len(moments.table)).axes, moments)

    # Arrival of variables

    def synchronise(self, moments: Moments) -> None:
        """Register new variables; switch to axes above the limit."""
        if self.axes is not None:
            return
        if self.max_full_variables is not None and len(moments.table) > self.max_full_variables:
            self._switch_to_axes(moments)
        else:
            super().synchronise(moments)

    def _switch_to_axes(self, moments: Moments) -> None:
        """Replace the cross-moments by their leading axes."""
        self._open &= moments.complete
        view, p = AlignedView(self.current, moments), len(moments.table)
        axes, mean = np.zeros((p, 0)), np.zeros(p)
        seen = np.full(p, view.n if self._open else 0.0)
        if view.names:
            indices = np.array([moments.index_of[name] for name in view.names], dtype=np.intp)
            leading = _leading_axes(view, self.rank)
            axes = np.zeros((p, leading.shape[1]))
            axes[indices], mean[indices], seen[indices] = (
                leading,
                view.stats().mean,
                view.observed_weights(),
            )
        self.axes = RowSubspace(self.rank, self.keep)
        self.axes.new_were_zero = self._open
        self.axes.begin(VariableMoments(axes, mean, seen), view.n)
        # The full cross-moments are no longer kept.
        self.current, self.next, self._synced_index_of = AlignedMoments(self.keep), None, None

    # Learning

    @property
    def accepts_missing(self) -> bool:
        """Whether all rows with missing values can be learnt without `prepare_new`."""
        return self.axes is not None

    def is_ready_for(self, X: Floats, indices: Indices) -> bool:
        """Return whether rows, (b, m), can be learnt without `prepare_new`."""
        return self.axes is not None or super().is_ready_for(X, indices)

    def prepare_new(self, X: Floats, indices: Indices, moments: Moments) -> None:
        """Register variables and missing values that first occur in rows, (b, m)."""
        self.synchronise(moments)
        if self.axes is None:
            super().prepare_new(X, indices, moments)

    def prepare_one(
        self, values: Floats, indices: Indices, y: Floats, moments: Moments, w: float
    ) -> None:
        """Run the part of learning a row that can fail."""
        if self.axes is None:
            super().prepare_one(values, indices, y, moments, w)
        else:
            self._steps = self.prepare_many(values[None], indices, y, moments, np.array([w]))

    def learn_one(
        self, values: Floats, indices: Indices, y: Floats, moments: Moments, w: float
    ) -> None:
        """Learn a row after the moments have, unless it was learnt already."""
        if self.axes is None:
            super().learn_one(values, indices, y, moments, w)
        else:
            run_steps(self._steps)

    def prepare_many(
        self, X: Floats, indices: Indices, Y: Floats, moments: Moments, w: Floats | None
    ) -> Steps:
        """Return the steps that learn rows."""
        if self.axes is None:
            return super().prepare_many(X, indices, Y, moments, w)
        return replace_attributes(
            self.axes, moments, self.axes.after_learning(X, indices, len(moments.table), w)
        )

    def rows_at_once(self, width: int) -> int:
        """Return how many rows of so many variables and targets can be learnt at once."""
        return super().rows_at_once(width) if self.axes is None else NO_LIMIT

    def undo_row(self, indices: Indices) -> Restore | None:
        """Return a function that undoes a row of these variables."""
        return super().undo_row(indices) if self.axes is None else None

    # Merging

    def after_merge(
        self, theirs: Self, along: MergeAxis, moments: Moments, others: Moments
    ) -> None:
        """Update the state after the moments of both models were merged."""
        p = len(moments.table)
        if (
            self.axes is None
            and theirs.axes is None
            and (self.max_full_variables is None or p <= self.max_full_variables)
        ):
            super().after_merge(theirs, along, moments, others)
            return
        theirs = copy.deepcopy(theirs)
        if self.axes is None:
            self._switch_to_axes(moments)
        if theirs.axes is None:
            theirs._switch_to_axes(others)
        assert self.axes is not None  # noqa: S101
        assert theirs.axes is not None  # noqa: S101
        indices = np.array([moments.index_of[name] for name in others.names], dtype=np.intp)
        self.axes.merge(theirs.axes, indices, p)

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_valid()
        if self.axes is not None:
            self.axes.expect_valid()

    # Files

    def check_matches(self, moments: Moments) -> None:
        """Raise ValueError if a state from a file does not belong to these moments."""
        super().check_matches(moments)
        if self.axes is not None and self.axes.n_variables > len(moments.table):
            raise ValueError("Expected axes of the tracked variables. Got: axes of more variables.")

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        state = super().to_state()
        return state if self.axes is None else state | {"axes": self.axes.to_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        super().set_state(state)
        if "axes" in state:
            self.axes = RowSubspace(self.rank, self.keep)
            self.axes.set_state(state["axes"])


def _leading_axes(view: AlignedView, rank: int) -> Floats:
    """Return the leading axes of variables, (p, k), without those of zero variance."""
    from scipy.linalg import eigh

    p = len(view.names)
    length = np.sqrt(view.stats().m2)
    C = view.products(np.arange(p)) * length * length[:, None]
    d, V = eigh(C, subset_by_index=[max(0, p - rank), p - 1])
    nonzero = d > p * np.finfo(float).eps * d[-1]
    axes: Floats = V[:, nonzero] * np.sqrt(np.maximum(d[nonzero], 0.0))
    return axes
