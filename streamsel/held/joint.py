"""Moments of components and candidate variables on rows, with their cross-products."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, ClassVar

import numpy as np

from streamsel._jit.joint import learn_joint
from streamsel.columns import Stats
from streamsel.held.beside import Beside, Steps, put
from streamsel.held.counts import count
from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Places
from streamsel.held.possible import expect_between, expect_bounded, expect_squares, expect_sums
from streamsel.held.table import Table
from streamsel.rollback import Restore
from streamsel.shapes import Count, Number, expect, expect_shapes


class JointMoments(Beside):
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
    most
        Maximum number of candidates.

    Attributes
    ----------
    n
        The total weight of all rows; the newest row has weight 1.
    rows
        Rows learnt here.
    watched
        Variables of the components, and candidates: `B`, a variable's loadings on the components,
        (n_sums,), zero for one that is only a candidate; `shift`, its mean at the last refresh, or
        its first value, which is subtracted from its values and replaces missing ones.
    candidates
        The h candidates among these: `age`, the weight of the rows since they became candidates,
        `start`, the row at which they did, and `before`, the weight of the earlier rows that
        observed them.
    mean, J
        (n_sums + h,), (n_sums + h, n_sums + h) means and sums of products of the components and the
        candidates.
    """

    changing: ClassVar[tuple[str, ...]] = (
        *("counts", "watched", "candidates", "mean", "J"),
        *("_new_names", "_watched_index", "_candidate_indices"),
    )

    n: float = count(0)
    rows: int = count(1, int)

    def __init__(self, n_sums: int, grace_period: int, most: int) -> None:
        self.n_sums = n_sums
        self.grace_period = grace_period
        self._most = most
        self.counts: Floats = np.zeros(2)
        self.watched = Table({"B": (n_sums,), "shift": ()})
        self.candidates = Table({"age": (), "before": (), "start": ()})
        self.mean: Floats = np.zeros(n_sums)
        self.J: Floats = np.zeros((n_sums, n_sums))
        self._new_names: list[Hashable] = []
        # Index in `moments.table` -> index in `watched`, -1 for none; rebuilt after either changes.
        self._watched_index: Places | None = None
        self._candidate_indices: Places = np.empty(0, dtype=np.intp)

    @property
    def most(self) -> int:
        """Maximum number of candidates."""
        return self._most

    @property
    def loaded(self) -> list[Hashable]:
        """Names of the variables of the components."""
        names = self.watched.names
        return [names[i] for i in np.flatnonzero(self.watched["B"].any(axis=1)).tolist()]

    def protected(self) -> Collection[Hashable]:
        """Return the names that must not be discarded."""
        return self.watched.slots

    # Learning

    def take_up(self, names: list[Hashable], moments: Moments) -> None:
        """Register variables that first occur in the next row; other indices may have changed."""
        self._watched_index = None
        # After a discard, a new variable may be a discarded one, whose earlier values are unknown.
        if moments.forgotten[0] == 0.0:
            room = self.most - len(self.candidates) - len(self._new_names)
            self._new_names = [*self._new_names, *names[: max(0, room)]]

    def until_refresh(self, moments: Moments) -> int:  # noqa: ARG002
        """Return how many rows are left before the next refresh."""
        return self.grace_period - self.rows % self.grace_period

    def learn_one(
        self,
        values: Floats,
        slots: Places,
        y: Floats,  # noqa: ARG002
        moments: Moments,
        w: float,
    ) -> None:
        """Learn a row after the moments have, unless it was learnt already."""
        watched_index, watched, candidates = (
            self._index_watched(moments),
            self.watched,
            self.candidates,
        )
        # Arrays with their spare capacity: creating views takes longer than the loop.
        learn_joint(
            moments.counts,
            values,
            slots,
            watched_index,
            len(watched),
            watched.with_room("shift"),
            watched.with_room("B"),
            self._candidate_indices,
            w,
            self.counts,
            self.mean,
            self.J,
            candidates.with_room("age"),
            candidates.with_room("before"),
        )

    def detach(self) -> None:
        """Copy the arrays that compiled loops and a refresh write into."""
        self.watched.detach()
        self.candidates.detach()
        self.counts, self.mean, self.J = self.counts.copy(), self.mean.copy(), self.J.copy()

    def saved(self, slots: Places) -> Restore | None:  # noqa: ARG002
        """Return None: the arrays are copied, and `snapshot` suffices."""
        # Rows to be undone are mostly those with a refresh, which changes everything.
        self.detach()
        return None

    def prepare_many(
        self,
        X: Floats,
        slots: Places,
        Y: Floats,  # noqa: ARG002
        moments: Moments,
        w: Floats | None,
    ) -> Steps:
        """Return the steps that learn rows, by matrix products."""
        among = self._index_watched(moments)[slots]
        shift, B = self.watched["shift"], self.watched["B"]
        x, watched_indices = X[:, among >= 0], among[among >= 0]
        U = np.broadcast_to(-shift, (len(X), shift.size)).copy()
        U[:, watched_indices] = np.where(np.isnan(x), 0.0, x - shift[watched_indices])
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
        candidates = self.candidates.with_new(("age", "before"))
        candidates["age"][:] = self.candidates["age"] * keep + weight
        candidates["before"][:] = self.candidates["before"] * keep
        attributes = {
            "counts": np.array([n + weight, self.rows + len(X)]),
            "mean": self.mean + difference * (weight / (n + weight)),
            "J": J,
            "candidates": candidates,
        }
        return put(self, moments, attributes)

    def make_ready(self, X: Floats, slots: Places, moments: Moments) -> None:
        """Make new variables candidates; they were 0 in all earlier rows."""
        if not self._new_names:
            return
        names, self._new_names = self._new_names, []
        position = {slot: i for i, slot in enumerate(slots.tolist())}
        first = X[0, [position[moments.table.slots[name]] for name in names]]
        first[np.isnan(first)] = 0.0
        self._add_candidates(names, first, -first, self.n, np.zeros(len(names)))

    def _add_candidates(
        self, names: list[Hashable], shift: Floats, mean: Floats, age: float, before: Floats
    ) -> None:
        """Add candidates, whose means are relative to the shift."""
        h = len(names)
        new = [i for i, name in enumerate(names) if name not in self.watched.slots]
        fresh = np.zeros((len(new), self.n_sums))
        self.watched.append([names[i] for i in new], B=fresh, shift=shift[new])
        full, start = np.full(h, age), np.full(h, float(self.rows))
        self.candidates.append(names, age=full, before=before, start=start)
        self.mean = np.append(self.mean, mean)
        J = np.zeros((self.mean.size, self.mean.size))
        J[: len(self.J), : len(self.J)] = self.J
        self.J = J
        self._watched_index = None

    def _index_watched(self, moments: Moments) -> Places:
        """Return the map from index in `moments.table` to index in `watched`."""
        slots = moments.table.slots
        if self._watched_index is None or self._watched_index.size < len(slots):
            index = np.full(len(slots), -1, dtype=np.intp)
            index[slots_of(self.watched, moments)] = np.arange(len(self.watched))
            candidate_indices = [self.watched.slots[name] for name in self.candidates.slots]
            self._candidate_indices = np.array(candidate_indices, dtype=np.intp)
            # Set last, so that an exception leaves no inconsistent state.
            self._watched_index = index
        return self._watched_index

    # Choice of candidates

    def choose_candidates(self, chosen: list[Hashable], moments: Moments, stats: Stats) -> None:
        """Set the candidates; those that are candidates already keep their moments.

        The stats are those of all variables at present.
        """
        self.keep_candidates([name for name in self.candidates.names if name in set(chosen)])
        slots = moments.slots
        # Values are centred at these means from now on: a mean that has drifted would cost digits.
        self.watched["shift"][:] = stats.mean[[slots[name] for name in self.watched.names]]
        self.mean[:] = 0.0
        new = [name for name in chosen if name not in self.candidates.slots]
        if new:
            mean = stats.mean[[slots[name] for name in new]]
            before = moments.seen()[[slots[name] for name in new]]
            self._add_candidates(new, mean, np.zeros(len(new)), 0.0, before)

    def keep_candidates(self, staying: list[Hashable]) -> None:
        """Drop all other candidates, and variables that are neither candidates nor loaded."""
        indices = [self.candidates.slots[name] for name in staying]
        kept = [*range(self.n_sums), *(self.n_sums + index for index in indices)]
        self.mean, self.J = self.mean[kept], self.J[np.ix_(kept, kept)]
        self.candidates.keep(indices)
        needed = {*self.loaded, *staying}
        self.watched.keep([i for i, name in enumerate(self.watched.slots) if name in needed])
        self._watched_index = None

    def expect_possible(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        expect_bounded("loadings", self.watched["B"], self.watched["shift"], self.mean)
        # Products with a candidate cover the rows since it became one, squares all rows: the
        # Cauchy-Schwarz inequality need not hold.
        expect_sums("products of components and candidates", self.J)
        expect_squares(self.J.diagonal())
        for field in ("age", "before", "start"):
            expect_between("rows of candidates", self.candidates[field], 0.0, 1e300)

    # Files

    def check(self, moments: Moments) -> None:
        """Raise ValueError if a state from a file does not belong to these moments."""
        watched, candidates = self.watched.slots.keys(), self.candidates.slots.keys()
        if not (watched <= moments.slots.keys() and candidates <= watched):
            raise ValueError("Expected moments of tracked variables. Got: moments of others.")

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {
            "n": self.n,
            "rows": self.rows,
            "watched": self.watched.to_state(),
            "candidates": self.candidates.to_state(),
            "mean": self.mean,
            "J": self.J,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, n=Number(0.0), rows=Count())
        self.n, self.rows = state["n"], state["rows"]
        self.watched = Table.from_state(state["watched"], self.watched.fields)
        self.candidates = Table.from_state(state["candidates"], self.candidates.fields)
        size = self.n_sums + len(self.candidates)
        expect_shapes(state, mean=(size,), J=(size, size))
        self.mean, self.J = np.array(state["mean"]), np.array(state["J"])


def slots_of(table: Table, moments: Moments) -> Places:
    """Return the indices of a table's variables in `moments.table`."""
    return np.array([moments.table.slots[name] for name in table.slots], dtype=np.intp)
