"""SOSPCA on rows: components known by their moments, and candidates that may join them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.joint import learn_joint
from streamsel._jit.relevance import rotate_and_drop
from streamsel.columns import Stats
from streamsel.extraction._components import VANISHED, Components
from streamsel.moments import Moments
from streamsel.rows import Places
from streamsel.shapes import expect_shapes
from streamsel.table import Table
from streamsel.target import TargetSpace
from streamsel.ties import TIE, most_relevant_first

Floats = NDArray[np.float64]


# A variable of whose direction more than this is in the span of the components, or of whose
# variance they leave less than this, cannot join them.
_MOSTLY = 0.5
# Of a variable, and of a component's variance, less than this is nothing: no relevance shows it.
_DUST = 1e-18


class ComponentsOnRows:
    """Components, candidates, and the moments of both among themselves.

    A variable can join the components when its covariances with them are known. The moments of all
    variables with the target do not tell them; so some variables are *candidates*, whose products
    with the components, and with one another, are summed from the row on that made them so. A
    variable that is new has been 0 before: as a candidate from its first row on, it knows all. For
    any other the covariance over the rows since is taken for that over all.

    Parameters
    ----------
    n_components
        The number q of components.
    grace_period
        How many rows make a candidate fit to join.
    max_features
        Most variables tracked; at most half of those without loadings are candidates.
    fading
        Whether rows fade. Components of what is over must then not keep out what is now by the
        loadings that they have left on it.
    jacobi, signed
        As in `streamsel.extraction._components.Components`.

    Attributes
    ----------
    n
        The weight of all rows, of which the newest has 1.
    rows
        Rows learnt here.
    count
        Components held; they stand first in every array of components.
    watched
        The support and the candidates: `B`, a variable's row of the paper's B, (q + 1,), zero for
        one that is no more than a candidate; `shift`, its mean at the last refresh, or its first
        value, which is taken off its values, and stands for one that was not observed.
    candidates
        Those h of the watched: `age`, the weight of the rows since they became candidates, `start`,
        the row at which they did, and `before`, the weight of the rows before that observed them.
    mean, J
        (q + 1 + h,), (q + 1 + h, q + 1 + h) means and sums of products of the components and the
        candidates.
    """

    def __init__(
        self,
        n_components: int,
        grace_period: int,
        *,
        max_features: int | None,
        fading: bool,
        jacobi: bool,
        signed: bool,
    ) -> None:
        self.q = n_components
        self.max_features = max_features
        self.fading = fading
        self.grace_period = grace_period
        self.jacobi = jacobi
        self.signed = signed
        self.n = 0.0
        self.rows = 0
        self.count = 0
        self.watched = Table({"B": (self.q + 1,), "shift": ()})
        self.candidates = Table({"age": (), "before": (), "start": ()})
        self.mean: Floats = np.zeros(self.q + 1)
        self.J: Floats = np.zeros((self.q + 1, self.q + 1))
        self._newcomers: list[Hashable] = []
        # Slot -> place among the watched, -1 for none; made anew when either has changed.
        self._place: Places | None = None
        self._at: Places = np.empty(0, dtype=np.intp)

    def take_columns(self, held: Components) -> None:
        """Go on from components that were learnt as columns."""
        self.count = held.count
        support = held.support
        self.watched.append(support.names, B=support["B"], shift=support["mean"])
        self.mean[:] = support["low"] @ support["B"]
        self.J[:] = held.Mzz

    @property
    def most(self) -> int:
        """Most candidates; in a bounded vocabulary they leave room for newcomers."""
        most = max(32, 2 * self.q)
        if self.max_features is None:
            return most
        return min(most, (self.max_features - len(self.loaded)) // 2)

    @property
    def loaded(self) -> list[Hashable]:
        """Names of the support."""
        names = self.watched.names
        return [names[i] for i in np.flatnonzero(self.watched["B"].any(axis=1)).tolist()]

    # Learning

    def take_up(self, names: list[Hashable], moments: Moments) -> None:
        """Note variables that come for the first time with the next row; others may have moved."""
        self._place = None
        # Where variables were let go one of them may be among these, and nothing is known of it.
        if moments.forgotten[0] == 0.0:
            room = self.most - len(self.candidates) - len(self._newcomers)
            self._newcomers += names[: max(0, room)]

    def until_refresh(self) -> int:
        """Return how many rows are left before the next refresh."""
        return self.grace_period - self.rows % self.grace_period

    def learn_one(self, values: Floats, slots: Places, moments: Moments) -> None:
        """Learn a row, after the moments have."""
        self._watch_newcomers(values, slots, moments)
        place, watched = self._places(moments), self.watched
        keep = 1.0 - moments.fading_factor
        fields = (watched["shift"], watched["B"])
        n = self.n * keep
        learn_joint(values, slots, place, *fields, self._at, keep, n, self.mean, self.J)
        self._passed(1, keep, 1.0)

    def learn_many(self, X: Floats, slots: Places, moments: Moments) -> None:
        """Learn rows by matrix products, after the moments have."""
        self._watch_newcomers(X[0], slots, moments)
        among = self._places(moments)[slots]
        shift, B = self.watched["shift"], self.watched["B"]
        x, at = X[:, among >= 0], among[among >= 0]
        U = np.broadcast_to(-shift, (len(X), shift.size)).copy()
        U[:, at] = np.where(np.isnan(x), 0.0, x - shift[at])
        V = np.hstack([U @ B, U[:, self._at]])
        left = 1.0 - moments.fading_factor
        w = left ** np.arange(len(X) - 1.0, -1.0, -1.0)
        weight, keep = float(w.sum()), left ** len(X)
        mean = w @ V / weight
        V -= mean
        apart, n = mean - self.mean, self.n * keep
        self.J *= keep
        self.J += (w * V.T) @ V + np.outer(apart, apart) * (n * weight / (n + weight))
        self.mean += apart * (weight / (n + weight))
        self._passed(len(X), keep, weight)

    def _passed(self, rows: int, keep: float, weight: float) -> None:
        self.n = self.n * keep + weight
        age, before = self.candidates["age"], self.candidates["before"]
        age *= keep
        age += weight
        before *= keep
        self.rows += rows

    def _watch_newcomers(self, values: Floats, slots: Places, moments: Moments) -> None:
        """Make newcomers candidates, with what is known of the rows before they came."""
        if not self._newcomers:
            return
        names, self._newcomers = self._newcomers, []
        at = {slot: i for i, slot in enumerate(slots.tolist())}
        first = values[[at[moments.table.slots[name]] for name in names]]
        first[np.isnan(first)] = 0.0
        # They were 0 in every row.
        self._add_candidates(names, first, -first, self.n, np.zeros(len(names)))

    def _add_candidates(
        self, names: list[Hashable], shift: Floats, mean: Floats, age: float, before: Floats
    ) -> None:
        """Make variables candidates; their mean is about the shift."""
        h = len(names)
        new = [i for i, name in enumerate(names) if name not in self.watched.slots]
        fresh = np.zeros((len(new), self.q + 1))
        self.watched.append([names[i] for i in new], B=fresh, shift=shift[new])
        full, start = np.full(h, age), np.full(h, float(self.rows))
        self.candidates.append(names, age=full, before=before, start=start)
        self.mean = np.append(self.mean, mean)
        J = np.zeros((self.mean.size, self.mean.size))
        J[: len(self.J), : len(self.J)] = self.J
        self.J = J
        self._place = None

    def _places(self, moments: Moments) -> Places:
        """Return slot -> place among the watched."""
        slots = moments.table.slots
        if self._place is None or self._place.size < len(slots):
            self._place = np.full(len(slots), -1, dtype=np.intp)
            self._place[self.slots_of(self.watched, moments)] = np.arange(len(self.watched))
            places = [self.watched.slots[name] for name in self.candidates.slots]
            self._at = np.array(places, dtype=np.intp)
        return self._place

    @staticmethod
    def slots_of(table: Table, moments: Moments) -> Places:
        """Return the slots of a table's variables among those of the moments."""
        return np.array([moments.table.slots[name] for name in table.slots], dtype=np.intp)

    # What the components are

    def settled(self, moments: Moments) -> tuple[list[Hashable], Stats, Floats]:
        """Return names, moments and loadings, (s, q + 1), of the support."""
        names = self.loaded
        B = self.watched["B"][[self.watched.slots[name] for name in names]]
        slots = moments.table.slots
        stats = moments.over_all_rows(np.array([slots[name] for name in names], dtype=np.intp))
        return names, stats, B

    def relevances(
        self, support: tuple[list[Hashable], Stats, Floats], space: TargetSpace
    ) -> Floats:
        """Return the (count,) relevances of the components; the support is as `settled` says."""
        _, stats, B = support
        m2 = np.diag(self.J)[: self.count]
        return space.relevance(m2, B[:, : self.count].T @ stats.cxy, signed=self.signed)

    # The refresh

    def refresh(self, moments: Moments, space: TargetSpace) -> None:
        """Let candidates that are fit join, the most relevant first; choose candidates anew."""
        stats = moments.over_all_rows()
        found = space.relevance(stats.m2, stats.cxy, signed=self.signed)
        relevance, seen = self._held_relevances(moments, space), moments.seen()
        slots, names = moments.table.slots, moments.table.names
        since = dict(zip(self.candidates.names, self.candidates["start"].tolist(), strict=True))
        order = most_relevant_first(found)
        for name in [names[j] for j in order.tolist() if names[j] in since]:
            fit = since[name] + self.grace_period <= self.rows and not self._is_within(name)
            if fit and found[slots[name]] > self._bar(relevance):
                self._try(name, stats, seen, slots, relevance, space)
        if self.fading:
            self._drop_dust(stats, slots)
        self._choose(found, order, self._bar(relevance), moments, stats)

    def _held_relevances(self, moments: Moments, space: TargetSpace) -> Floats:
        """Return the relevances of the components, (q + 1,), the first `count` of them held."""
        relevance = np.zeros(self.q + 1)
        relevance[: self.count] = self.relevances(self.settled(moments), space)
        return relevance

    def _within(self, name: Hashable) -> float:
        """Return how much of a variable's direction is in the span of the components, 0 to 1."""
        place = self.watched.slots.get(name)
        return 0.0 if place is None else float(np.square(self.watched["B"][place]).sum())

    def _is_within(self, name: Hashable) -> bool:
        return self._within(name) > (_MOSTLY if self.fading else 0.0)

    def _bar(self, relevance: Floats) -> float:
        """Return what the relevance of a variable must exceed to join."""
        if self.count < self.q:
            return -1.0 - TIE
        return float(relevance[: self.count].min()) + TIE

    def _try(
        self,
        name: Hashable,
        stats: Stats,
        seen: Floats,
        slots: dict[Hashable, int],
        relevance: Floats,
        space: TargetSpace,
    ) -> None:
        """Let a candidate join as the last component if it is relevant enough; drop one if need be.

        A variable that has a loading joins with what is left of its direction outside the span of
        the components, so that BᵀB = I.
        """
        first, k, size = self.q + 1, self.count, self.candidates.slots[name]
        i, j, place = first + size, slots[name], self.watched.slots[name]
        B, age = self.watched["B"], self.candidates["age"]
        row = self.J[i].copy()
        # The rows that have observed it since it became a candidate stand for all that did, and its
        # rows for those of every other candidate.
        row[:k] *= seen[j] / (seen[j] - self.candidates["before"][size])
        row[first:] *= np.maximum(age / age[size], 1.0)
        largest = np.sqrt(stats.m2[j]) * np.sqrt(np.diag(self.J)[:k])
        row[:k] = np.clip(row[:k], -largest, largest)
        mine = B[place, :k].copy()
        left = np.sqrt(1.0 - self._within(name))
        inner = self.J[:k, :k] @ mine
        m2 = stats.m2[j] - mine @ (2.0 * row[:k] - inner)
        if m2 < _MOSTLY * stats.m2[j]:
            # What is left is a difference of guesses.
            return
        m2 /= left**2
        row -= mine @ self.J[:k]
        row /= left
        b = -B[:, :k] @ mine
        b[place] += 1.0
        b /= left
        cxy = stats.cxy[[slots[name] for name in self.watched.names]]
        found = space.relevance(np.array([m2]), (b @ cxy)[None], signed=self.signed)[0]
        if found <= self._bar(relevance):
            return
        row[k] = m2
        self.J[k], self.J[:, k] = row, row
        B[:, k] = b
        relevance[k] = found
        self.count += 1
        if self.count > self.q:
            self._rotate_and_drop(cxy, relevance, space)

    def _drop_dust(self, stats: Stats, slots: dict[Hashable, int]) -> None:
        """Drop loadings that old, faded rows have left, and that tell nothing any more."""
        B = self.watched["B"]
        at = [slots[name] for name in self.watched.names]
        m2 = np.diag(self.J)[: self.count]
        share = np.square(B[:, : self.count])
        of_variance = share * stats.m2[at, None] <= _DUST * m2
        dust = (share.sum(axis=1) <= _DUST) & of_variance.all(axis=1)
        B[dust] = 0.0

    def _rotate_and_drop(self, cxy: Floats, relevance: Floats, space: TargetSpace) -> None:
        first = self.q + 1
        B = self.watched["B"]
        # Products with the candidates turn as scores do.
        tail = self.J[:first, first:].copy()
        M, Czy = self.J[:first, :first].copy(), B.T @ cxy
        options = (space.weights, self.jacobi, self.signed, TIE, VANISHED)
        rotate_and_drop(tail, M, Czy, B, relevance, self.count, *options)
        self.J[:first, :first] = M
        self.J[:first, first:], self.J[first:, :first] = tail, tail.T
        self.count -= 1

    def choose(self, moments: Moments, space: TargetSpace) -> None:
        """Choose candidates anew, outside a refresh."""
        stats = moments.over_all_rows()
        found = space.relevance(stats.m2, stats.cxy, signed=self.signed)
        bar = self._bar(self._held_relevances(moments, space))
        self._choose(found, most_relevant_first(found), bar, moments, stats)

    def _choose(
        self, found: Floats, order: Places, bar: float, moments: Moments, stats: Stats
    ) -> None:
        """Choose the candidates: who is able to join, in order; then who is one already.

        A place that nobody needs stays with who has it, last with who has joined: what it knows is
        not lost.
        """
        slots, names = moments.table.slots, moments.table.names
        able = [names[j] for j in order[found[order] > bar].tolist()]
        able = [name for name in able if not self._is_within(name)]
        rest = self.candidates.slots.keys() - set(able)
        ranked = (names[j] for j in order.tolist())
        others = sorted((name for name in ranked if name in rest), key=self._is_within)
        chosen = [*able, *others][: max(1, self.most)]
        self.keep_candidates([name for name in self.candidates.names if name in set(chosen)])
        # From here on values are taken about these means: a level that has moved would cost digits.
        self.watched["shift"][:] = stats.mean[[slots[name] for name in self.watched.names]]
        self.mean[:] = 0.0
        new = [name for name in chosen if name not in self.candidates.slots]
        if new:
            mean = stats.mean[[slots[name] for name in new]]
            before = moments.seen()[[slots[name] for name in new]]
            self._add_candidates(new, mean, np.zeros(len(new)), 0.0, before)

    def keep_candidates(self, staying: list[Hashable]) -> None:
        """Drop all candidates but these, and do not watch who is neither candidate nor loaded."""
        places = [self.candidates.slots[name] for name in staying]
        held = [*range(self.q + 1), *(self.q + 1 + place for place in places)]
        self.mean, self.J = self.mean[held], self.J[np.ix_(held, held)]
        self.candidates.keep(places)
        needed = {*self.loaded, *staying}
        self.watched.keep([i for i, name in enumerate(self.watched.slots) if name in needed])
        self._place = None

    # Persistence

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs."""
        return {
            "n": self.n,
            "rows": self.rows,
            "count": self.count,
            "watched": self.watched.to_state(),
            "candidates": self.candidates.to_state(),
            "mean": self.mean,
            "J": self.J,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned."""
        self.n, self.rows, self.count = state["n"], state["rows"], state["count"]
        self.watched = Table.from_state(state["watched"], self.watched.fields)
        self.candidates = Table.from_state(state["candidates"], self.candidates.fields)
        size = self.q + 1 + len(self.candidates)
        expect_shapes(state, mean=(size,), J=(size, size))
        self.mean, self.J = np.array(state["mean"]), np.array(state["J"])
