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
        Those h of the watched: `age`, the weight of the rows since they became candidates, and
        `start`, the row at which they did.
    mean, J
        (q + 1 + h,), (q + 1 + h, q + 1 + h) means and sums of products of the components and the
        candidates.
    """

    def __init__(self, n_components: int, grace_period: int, *, jacobi: bool, signed: bool) -> None:
        self.q = n_components
        self.most = max(32, 2 * n_components)
        self.grace_period = grace_period
        self.jacobi = jacobi
        self.signed = signed
        self.n = 0.0
        self.rows = 0
        self.count = 0
        self.watched = Table({"B": (self.q + 1,), "shift": ()})
        self.candidates = Table({"age": (), "start": ()})
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
    def loaded(self) -> list[Hashable]:
        """Names of the support."""
        names = self.watched.names
        return [names[i] for i in np.flatnonzero(self.watched["B"].any(axis=1)).tolist()]

    # Learning

    def take_up(self, names: list[Hashable]) -> None:
        """Note variables that come for the first time with the next row; others may have moved."""
        self._newcomers += names[: self.most - len(self.candidates) - len(self._newcomers)]
        self._place = None

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
        age = self.candidates["age"]
        age *= keep
        age += weight
        self.rows += rows

    def _watch_newcomers(self, values: Floats, slots: Places, moments: Moments) -> None:
        """Make newcomers candidates, with what is known of the rows before they came."""
        if not self._newcomers:
            return
        names, self._newcomers = self._newcomers, []
        at = {slot: i for i, slot in enumerate(slots.tolist())}
        first = values[[at[moments.table.slots[name]] for name in names]]
        first[np.isnan(first)] = 0.0
        if moments.forgotten[0] > 0.0:
            # One that was let go may be among them: nothing is known.
            self._add_candidates(names, first, np.zeros(len(names)), 0.0)
        else:
            # They were 0 in every row.
            self._add_candidates(names, first, -first, self.n)

    def _add_candidates(
        self, names: list[Hashable], shift: Floats, mean: Floats, age: float
    ) -> None:
        """Make variables candidates that were not watched; their mean is about the shift."""
        h = len(names)
        self.watched.append(names, B=np.zeros((h, self.q + 1)), shift=shift)
        self.candidates.append(names, age=np.full(h, age), start=np.full(h, float(self.rows)))
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
            self._place[self._slots_of(self.watched, moments)] = np.arange(len(self.watched))
            places = [self.watched.slots[name] for name in self.candidates.slots]
            self._at = np.array(places, dtype=np.intp)
        return self._place

    @staticmethod
    def _slots_of(table: Table, moments: Moments) -> Places:
        return np.array([moments.table.slots[name] for name in table.slots], dtype=np.intp)

    # What the components are

    def settled(
        self, moments: Moments, space: TargetSpace
    ) -> tuple[list[Hashable], Floats, Floats, Floats]:
        """Return s names, means (s,), loadings (s, q) of the support; (count,) relevances."""
        names = self.loaded
        B = self.watched["B"][[self.watched.slots[name] for name in names]]
        slots = moments.table.slots
        stats = moments.over_all_rows(np.array([slots[name] for name in names], dtype=np.intp))
        m2 = np.diag(self.J)[: self.count]
        relevance = space.relevance(m2, B[:, : self.count].T @ stats.cxy, signed=self.signed)
        return names, stats.mean, B[:, : self.q], relevance

    # The refresh

    def refresh(self, moments: Moments, space: TargetSpace) -> None:
        """Let candidates that are fit join, the most relevant first; choose candidates anew."""
        stats = moments.over_all_rows()
        found = space.relevance(stats.m2, stats.cxy, signed=self.signed)
        relevance = self._relevances(moments, space)
        slots, names = moments.table.slots, moments.table.names
        since = dict(zip(self.candidates.names, self.candidates["start"].tolist(), strict=True))
        order = most_relevant_first(found)
        for name in [names[j] for j in order.tolist() if names[j] in since]:
            if since[name] + self.grace_period > self.rows or self._is_loaded(name):
                continue
            if found[slots[name]] > self._bar(relevance):
                self._join(name, stats, slots, float(found[slots[name]]), relevance, space)
        self._choose(found, order, self._bar(relevance), moments, stats)

    def _relevances(self, moments: Moments, space: TargetSpace) -> Floats:
        """Return the relevances of the components, (q + 1,), the first `count` of them held."""
        relevance = np.zeros(self.q + 1)
        relevance[: self.count] = self.settled(moments, space)[-1]
        return relevance

    def _is_loaded(self, name: Hashable) -> bool:
        place = self.watched.slots.get(name)
        return place is not None and bool(self.watched["B"][place].any())

    def _bar(self, relevance: Floats) -> float:
        """Return what the relevance of a variable must exceed to join."""
        if self.count < self.q:
            return -1.0 - TIE
        return float(relevance[: self.count].min()) + TIE

    def _join(
        self,
        name: Hashable,
        stats: Stats,
        slots: dict[Hashable, int],
        found: float,
        relevance: Floats,
        space: TargetSpace,
    ) -> None:
        """Let a candidate join as the last component, and drop one if they are too many."""
        first, k, size = self.q + 1, self.count, self.candidates.slots[name]
        i, j = first + size, slots[name]
        age = self.candidates["age"]
        row = self.J[i].copy()
        # What was summed since it became a candidate stands for all rows, and so for every other
        # candidate's rows.
        row[:k] *= self.n / age[size]
        row[first:] *= np.maximum(age / age[size], 1.0)
        largest = np.sqrt(stats.m2[j] * np.diag(self.J)[:k])
        row[:k] = np.clip(row[:k], -largest, largest)
        row[k] = stats.m2[j]
        self.J[k], self.J[:, k] = row, row
        self.mean[k] = self.mean[i]
        self.watched["B"][self.watched.slots[name], k] = 1.0
        relevance[k] = found
        self.count += 1
        if self.count > self.q:
            self._rotate_and_drop(stats, slots, relevance, space)

    def _rotate_and_drop(
        self, stats: Stats, slots: dict[Hashable, int], relevance: Floats, space: TargetSpace
    ) -> None:
        first = self.q + 1
        B = self.watched["B"]
        cxy = stats.cxy[[slots[name] for name in self.watched.slots]]
        # Means, and products with the candidates, turn as scores do.
        tail = np.hstack([self.mean[:first, None], self.J[:first, first:]])
        M, Czy = self.J[:first, :first].copy(), B.T @ cxy
        options = (space.weights, self.jacobi, self.signed, TIE, VANISHED)
        rotate_and_drop(tail, M, Czy, B, relevance, self.count, *options)
        self.mean[:first] = tail[:, 0]
        self.J[:first, :first] = M
        self.J[:first, first:], self.J[first:, :first] = tail[:, 1:], tail[:, 1:].T
        self.count -= 1

    def _choose(
        self, found: Floats, order: Places, bar: float, moments: Moments, stats: Stats
    ) -> None:
        """Choose the candidates: who is able to join, in order; then who is one already.

        A place that nobody needs stays with who has it, last with who has joined: what it knows is
        not lost.
        """
        slots, names = moments.table.slots, moments.table.names
        able = [names[j] for j in order[found[order] > bar].tolist()]
        able = [name for name in able if not self._is_loaded(name)]
        rest = self.candidates.slots.keys() - set(able)
        ranked = (names[j] for j in order.tolist())
        others = sorted((name for name in ranked if name in rest), key=self._is_loaded)
        chosen = [*able, *others][: self.most]
        self._keep_candidates([name for name in self.candidates.names if name in set(chosen)])
        new = [name for name in chosen if name not in self.candidates.slots]
        if new:
            mean = stats.mean[[slots[name] for name in new]]
            self._add_candidates(new, mean, np.zeros(len(new)), 0.0)
        # A level that has moved would cost digits.
        shift = self.watched["shift"]
        moved = stats.mean[[slots[name] for name in self.watched.names]] - shift
        shift += moved
        self.mean[: self.q + 1] -= moved @ self.watched["B"]
        at = [self.watched.slots[name] for name in self.candidates.names]
        self.mean[self.q + 1 :] -= moved[at]
        self._place = None

    def _keep_candidates(self, staying: list[Hashable]) -> None:
        """Drop all candidates but these, and do not watch who is neither candidate nor loaded."""
        places = [self.candidates.slots[name] for name in staying]
        held = [*range(self.q + 1), *(self.q + 1 + place for place in places)]
        self.mean, self.J = self.mean[held], self.J[np.ix_(held, held)]
        self.candidates.keep(places)
        needed = {*self.loaded, *staying}
        self.watched.keep([i for i, name in enumerate(self.watched.slots) if name in needed])
        self._place = None

    # Merging

    def follow_merge(
        self, theirs: ComponentsOnRows, along: str, moments: Moments, space: TargetSpace
    ) -> None:
        """Go on after the moments of the variables were merged.

        Where the other has learnt rows with the same components their moments are joined exactly;
        otherwise mine stand for all rows. What the other found may join as candidates.
        """
        first = self.q + 1
        weight = moments.weight
        if along == "rows" and self.count:
            if self._same_components(theirs):
                names = list(self.watched.slots)
                held = [i for i, row in enumerate(self.watched["B"]) if row.any()]
                there = [theirs.watched.slots[names[i]] for i in held]
                moved = theirs.watched["shift"][there] - self.watched["shift"][held]
                mean = theirs.mean[:first] + moved @ self.watched["B"][held]
                apart = mean - self.mean[:first]
                total = self.n + theirs.n
                self.J[:first, :first] += theirs.J[:first, :first]
                self.J[:first, :first] += np.outer(apart, apart) * (self.n * theirs.n / total)
                self.mean[:first] += apart * (theirs.n / total)
            else:
                self.J[:first, :first] *= weight / self.n
        self.n = weight
        self._keep_candidates([])
        stats = moments.over_all_rows()
        found = space.relevance(stats.m2, stats.cxy, signed=self.signed)
        bar = self._bar(self._relevances(moments, space))
        self._choose(found, most_relevant_first(found), bar, moments, stats)

    def _same_components(self, theirs: ComponentsOnRows) -> bool:
        mine, yours = self.watched, theirs.watched
        loaded = self.loaded
        if self.count != theirs.count or set(loaded) != set(theirs.loaded):
            return False
        here = mine["B"][[mine.slots[name] for name in loaded]]
        there = yours["B"][[yours.slots[name] for name in loaded]]
        return bool(np.allclose(here, there, rtol=0.0, atol=1e-12))

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
