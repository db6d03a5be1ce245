"""Moments of components and candidate variables on rows, their cross-products and merge."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, ClassVar

import numpy as np

from streamsel._kernels.joint_moments import learn_joint
from streamsel._utils.rollback import Restore
from streamsel.data.chunks import Stats
from streamsel.serialization.invariants import (
    expect_between,
    expect_bounded,
    expect_squares,
    expect_sums,
)
from streamsel.serialization.schema import CountKind, FloatKind, expect, expect_shapes
from streamsel.state.base import Floats, Indices, VariableTable, counter
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension, Steps, replace_attributes


class ComponentMoments(RowExtension):
    """Means and cross-products of components (weighted sums of variables) and candidate variables.

    A new variable was 0 in all earlier rows; its moments are complete if it is a candidate from its
    first row on. For any other candidate the covariance covers the rows since it became one, and
    `age` is their weight. Code that combines the two must account for this; a candidate that was
    not observed in these rows has no covariance.

    Parameters
    ----------
    n_sums
        Maximum number of components.
    grace_period
        Number of rows between two refreshes.
    max_candidates
        Maximum number of candidates.

    Attributes
    ----------
    n
        The total weight of all rows; the newest row has weight 1.
    rows
        Rows learnt here.
    tracked
        Variables of the components, and candidates: `B`, a variable's loadings on the components,
        (n_sums,), zero for one that is only a candidate; `shift`, its mean at the last refresh, or
        its first value, which is subtracted from its values and replaces missing ones.
    candidates
        The h candidates among these: `age`, the weight of the rows since they became candidates,
        `start`, the row at which they did, and `weight_before`, the weight of the earlier rows that
        observed them.
    mean, J
        (n_sums + h,), (n_sums + h, n_sums + h) means and sums of products of the components and the
        candidates.
    """

    changing: ClassVar[tuple[str, ...]] = (
        *("counts", "tracked", "candidates", "mean", "J"),
        *("_new_names", "_tracked_index", "_candidate_indices"),
    )

    n: float = counter(0)
    rows: int = counter(1, int)

    def __init__(self, n_sums: int, grace_period: int, max_candidates: int) -> None:
        self.n_sums = n_sums
        self.grace_period = grace_period
        self._max_candidates = max_candidates
        self.counts: Floats = np.zeros(2)
        self.tracked = VariableTable({"B": (n_sums,), "shift": ()})
        self.candidates = VariableTable({"age": (), "weight_before": (), "start": ()})
        self.mean: Floats = np.zeros(n_sums)
        self.J: Floats = np.zeros((n_sums, n_sums))
        self._new_names: list[Hashable] = []
        # Index in `moments.table` -> index in `tracked`, -1 for none; rebuilt after either changes.
        self._tracked_index: Indices | None = None
        self._candidate_indices: Indices = np.empty(0, dtype=np.intp)

    @property
    def max_candidates(self) -> int:
        """Maximum number of candidates."""
        return self._max_candidates

    @property
    def loaded(self) -> list[Hashable]:
        """Names of the variables of the components."""
        names = self.tracked.names
        return [names[i] for i in np.flatnonzero(self.tracked["B"].any(axis=1)).tolist()]

    def protected(self) -> Collection[Hashable]:
        """Return the names that must not be discarded."""
        return self.tracked.index_of

    # Learning

    def add_variables(self, names: list[Hashable], moments: Moments) -> None:
        """Register variables that first occur in the next row; other indices may have changed."""
        self._tracked_index = None
        # After a discard, a new variable may be a discarded one, whose earlier values are unknown.
        if moments.before_arrival[0] == 0.0:
            room = self.max_candidates - len(self.candidates) - len(self._new_names)
            self._new_names = [*self._new_names, *names[: max(0, room)]]

    def rows_until_refresh(self, moments: Moments) -> int:  # noqa: ARG002
        """Return how many rows are left before the next refresh."""
        return self.grace_period - self.rows % self.grace_period

    def learn_one(
        self,
        values: Floats,
        indices: Indices,
        y: Floats,  # noqa: ARG002
        moments: Moments,
        w: float,
    ) -> None:
        """Learn a row after the moments have, unless it was learnt already."""
        tracked_index, tracked, candidates = (
            self._index_tracked(moments),
            self.tracked,
            self.candidates,
        )
        # Arrays with their spare capacity: creating views takes longer than the loop.
        learn_joint(
            moments.counts,
            values,
            indices,
            tracked_index,
            len(tracked),
            tracked.with_capacity("shift"),
            tracked.with_capacity("B"),
            self._candidate_indices,
            w,
            self.counts,
            self.mean,
            self.J,
            candidates.with_capacity("age"),
            candidates.with_capacity("weight_before"),
        )

    def detach(self) -> None:
        """Copy the arrays that compiled loops and a refresh write into."""
        self.tracked.detach()
        self.candidates.detach()
        self.counts, self.mean, self.J = self.counts.copy(), self.mean.copy(), self.J.copy()

    def undo_row(self, indices: Indices) -> Restore | None:  # noqa: ARG002
        """Return None: the arrays are copied, and `snapshot` suffices."""
        # Rows to be undone are mostly those with a refresh, which changes everything.
        self.detach()
        return None

    def prepare_many(
        self,
        X: Floats,
        indices: Indices,
        Y: Floats,  # noqa: ARG002
        moments: Moments,
        w: Floats | None,
    ) -> Steps:
        """Return the steps that learn rows, by matrix products."""
        among = self._index_tracked(moments)[indices]
        shift, B = self.tracked["shift"], self.tracked["B"]
        x, tracked_indices = X[:, among >= 0], among[among >= 0]
        U = np.broadcast_to(-shift, (len(X), shift.size)).copy()
        U[:, tracked_indices] = np.where(np.isnan(x), 0.0, x - shift[tracked_indices])
        V = np.hstack([U @ B, U[:, self._candidate_indices]])
        decay = 1.0 - moments.fading_factor
        faded = decay ** np.arange(len(X) - 1.0, -1.0, -1.0)
        w = faded if w is None else faded * w
        weight, keep = float(w.sum()), decay ** len(X)
        mean = w @ V / weight
        V -= mean
        difference, n = mean - self.mean, self.n * keep
        J = self.J * keep
        J += (w * V.T) @ V + np.outer(difference, difference) * (n * weight / (n + weight))
        candidates = self.candidates.with_empty_fields(("age", "weight_before"))
        candidates["age"][:] = self.candidates["age"] * keep + weight
        candidates["weight_before"][:] = self.candidates["weight_before"] * keep
        attributes = {
            "counts": np.array([n + weight, self.rows + len(X)]),
            "mean": self.mean + difference * (weight / (n + weight)),
            "J": J,
            "candidates": candidates,
        }
        return replace_attributes(self, moments, attributes)

    def prepare_new(self, X: Floats, index_of: Indices, moments: Moments) -> None:
        """Make new variables candidates; they were 0 in all earlier rows."""
        if not self._new_names:
            return
        names, self._new_names = self._new_names, []
        position = {index: i for i, index in enumerate(index_of.tolist())}
        first = X[0, [position[moments.table.index_of[name]] for name in names]]
        first[np.isnan(first)] = 0.0
        self._add_candidates(names, first, -first, self.n, np.zeros(len(names)))

    def _add_candidates(
        self, names: list[Hashable], shift: Floats, mean: Floats, age: float, before: Floats
    ) -> None:
        """Add candidates, whose means are relative to the shift."""
        h = len(names)
        new = [i for i, name in enumerate(names) if name not in self.tracked.index_of]
        fresh = np.zeros((len(new), self.n_sums))
        self.tracked.append([names[i] for i in new], B=fresh, shift=shift[new])
        full, start = np.full(h, age), np.full(h, float(self.rows))
        self.candidates.append(names, age=full, weight_before=before, start=start)
        self.mean = np.append(self.mean, mean)
        J = np.zeros((self.mean.size, self.mean.size))
        J[: len(self.J), : len(self.J)] = self.J
        self.J = J
        self._tracked_index = None

    def _index_tracked(self, moments: Moments) -> Indices:
        """Return the map from index in `moments.table` to index in `tracked`."""
        index_of = moments.table.index_of
        if self._tracked_index is None or self._tracked_index.size < len(index_of):
            index = np.full(len(index_of), -1, dtype=np.intp)
            index[indices_in_moments(self.tracked, moments)] = np.arange(len(self.tracked))
            candidate_indices = [self.tracked.index_of[name] for name in self.candidates.index_of]
            self._candidate_indices = np.array(candidate_indices, dtype=np.intp)
            # Set last, so that an exception leaves no inconsistent state.
            self._tracked_index = index
        return self._tracked_index

    # Choice of candidates

    def choose_candidates(self, chosen: list[Hashable], moments: Moments, stats: Stats) -> None:
        """Set the candidates; those that are candidates already keep their moments.

        The stats are those of all variables at present.
        """
        self.keep_candidates([name for name in self.candidates.names if name in set(chosen)])
        index_of = moments.index_of
        # Values are centred at these means from now on: a mean that has drifted would cost digits.
        self.tracked["shift"][:] = stats.mean[[index_of[name] for name in self.tracked.names]]
        self.mean[:] = 0.0
        new = [name for name in chosen if name not in self.candidates.index_of]
        if new:
            mean = stats.mean[[index_of[name] for name in new]]
            before = moments.observed_weights()[[index_of[name] for name in new]]
            self._add_candidates(new, mean, np.zeros(len(new)), 0.0, before)

    def keep_candidates(self, kept: list[Hashable]) -> None:
        """Drop all other candidates, and variables that are neither candidates nor loaded."""
        indices = [self.candidates.index_of[name] for name in kept]
        kept_sums = [*range(self.n_sums), *(self.n_sums + index for index in indices)]
        self.mean, self.J = self.mean[kept_sums], self.J[np.ix_(kept_sums, kept_sums)]
        self.candidates.keep(indices)
        needed = {*self.loaded, *kept}
        self.tracked.keep([i for i, name in enumerate(self.tracked.index_of) if name in needed])
        self._tracked_index = None

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        expect_bounded("loadings", self.tracked["B"], self.tracked["shift"], self.mean)
        # Products with a candidate cover the rows since it became one, squares cover all rows: the
        # Cauchy-Schwarz inequality need not hold.
        expect_sums("products of components and candidates", self.J)
        expect_squares(self.J.diagonal())
        for field in ("age", "weight_before", "start"):
            expect_between("rows of candidates", self.candidates[field], 0.0, 1e300)

    # Files

    def check_matches(self, moments: Moments) -> None:
        """Raise ValueError if a state from a file does not belong to these moments."""
        tracked, candidates = self.tracked.index_of.keys(), self.candidates.index_of.keys()
        if not (tracked <= moments.index_of.keys() and candidates <= tracked):
            raise ValueError("Expected moments of tracked variables. Got: moments of others.")

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {
            "n": self.n,
            "rows": self.rows,
            "watched": self.tracked.to_state(),
            "candidates": self.candidates.to_state(),
            "mean": self.mean,
            "J": self.J,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, n=FloatKind(0.0), rows=CountKind())
        self.n, self.rows = state["n"], state["rows"]
        self.tracked = VariableTable.from_state(state["watched"], self.tracked.fields)
        self.candidates = VariableTable.from_state(state["candidates"], self.candidates.fields)
        size = self.n_sums + len(self.candidates)
        expect_shapes(state, mean=(size,), J=(size, size))
        self.mean, self.J = np.array(state["mean"]), np.array(state["J"])


def indices_in_moments(table: VariableTable, moments: Moments) -> Indices:
    """Return the indices of a table's variables in `moments.table`."""
    return np.array([moments.table.index_of[name] for name in table.index_of], dtype=np.intp)


# Relative difference below which weights are equal.
_WEIGHT_RTOL = 1e-12
# Difference below which loadings are equal.
_LOADING_ATOL = 1e-12


def track_components(mine: ComponentMoments, theirs: ComponentMoments) -> None:
    """Track the variables of the other model's components, with zero loadings."""
    names = [name for name in theirs.loaded if name not in mine.tracked.index_of]
    zeros = np.zeros(len(names))
    mine.tracked.append(names, B=np.zeros((len(names), mine.n_sums)), shift=zeros)


def merge_component_moments(
    mine: ComponentMoments, theirs: ComponentMoments, moments: Moments
) -> None:
    """Merge component moments, after the variables' moments were merged with those of other rows.

    If the other model has the same components, their moments are combined exactly; otherwise the
    covariance over this model's rows is scaled to all rows. A model without components copies those
    of the other. There must be no candidates.
    """
    if not mine.loaded:
        _adopt(mine, theirs)
    elif _same_sums(mine, theirs):
        _add_rows(mine, theirs)
    _scale_to_all_rows(mine, moments)


def _adopt(mine: ComponentMoments, theirs: ComponentMoments) -> None:
    """Copy the components and their moments from another model."""
    first, mine.n = mine.n_sums, theirs.n
    loaded = [theirs.tracked.index_of[name] for name in theirs.loaded]
    B, shift = theirs.tracked["B"][loaded], theirs.tracked["shift"][loaded]
    mine.tracked.append(theirs.loaded, B=B, shift=shift)
    mine.mean[:], mine.J[:] = theirs.mean[:first], theirs.J[:first, :first]


def _same_sums(mine: ComponentMoments, theirs: ComponentMoments) -> bool:
    if set(mine.loaded) != set(theirs.loaded):
        return False
    other_indices = [theirs.tracked.index_of[name] for name in mine.tracked.names]
    B = theirs.tracked["B"][other_indices]
    return bool(np.allclose(mine.tracked["B"], B, rtol=0.0, atol=_LOADING_ATOL))


def _add_rows(mine: ComponentMoments, theirs: ComponentMoments) -> None:
    """Add the moments of the same components over other rows."""
    first, total = mine.n_sums, mine.n + theirs.n
    other_indices = [theirs.tracked.index_of[name] for name in mine.tracked.names]
    shift_change = theirs.tracked["shift"][other_indices] - mine.tracked["shift"]
    difference = theirs.mean[:first] + shift_change @ mine.tracked["B"] - mine.mean
    mine.J += theirs.J[:first, :first] + np.outer(difference, difference) * (
        mine.n * theirs.n / total
    )
    mine.mean += difference * (theirs.n / total)
    mine.n = total


def _scale_to_all_rows(mine: ComponentMoments, moments: Moments) -> None:
    """Scale the components' moments to all rows, whose means are known."""
    weight = moments.n
    rest = weight - mine.n
    if rest > _WEIGHT_RTOL * weight and mine.loaded:
        stats = moments.stats(indices_in_moments(mine.tracked, moments))
        difference = (stats.mean - mine.tracked["shift"]) @ mine.tracked["B"] - mine.mean
        mine.J *= weight / mine.n
        mine.J += np.outer(difference, difference) * (mine.n * weight / rest)
        mine.mean += difference
    mine.n = weight
