"""SOSPCA on rows: components known by their moments, and candidates that may join them."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Any, NamedTuple, Self

import numpy as np

from streamsel._jit.relevance import rotate_and_drop
from streamsel.columns import Stats
from streamsel.extraction._components import VANISHED, Components
from streamsel.held.beside import Along
from streamsel.held.joint import JointMoments
from streamsel.held.joint_merging import merge_rows, watch_sums
from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Places
from streamsel.held.possible import expect_between
from streamsel.learner.extractor import least_motion
from streamsel.shapes import Count, Flag, expect, expect_shapes
from streamsel.target.space import TargetSpace
from streamsel.ties import TIE, most_relevant_first

# A variable of whose direction more than this is in the span of the components, or of whose
# variance they leave less than this, cannot join them.
_MOSTLY = 0.5
# Of the weight of the rows that observed a variable no more than this is rounding.
_NEXT_TO_NOTHING = 1e-9
# Of a variable, and of a component's variance, less than this is nothing: no relevance shows it.
_DUST = 1e-18


class Refresh(NamedTuple):
    """What all variables are at a refresh."""

    moments: Moments
    space: TargetSpace
    # Of every variable: moments, the weight of the rows that observed it, relevance, and all of
    # them in order of relevance.
    stats: Stats
    seen: Floats
    found: Floats
    order: Places
    # Of every component, (q + 1,), the first `count` of them held.
    relevance: Floats


class ComponentsOnRows(JointMoments):
    """Components, candidates, and the moments of both among themselves.

    A variable can join the components when its covariances with them are known. The moments of all
    variables with the target do not tell them; so some variables are *candidates*, whose products
    with the components, and with one another, are summed from the row on that made them so.

    Parameters
    ----------
    n_components
        The number q of components.
    grace_period
        How many rows make a candidate fit to join.
    max_features
        Most variables tracked; at most half of those without loadings are candidates.
    first
        While there are no components, a refresh is due after as many rows too; at least 2.
    fading
        Whether rows fade. Components of what is over must then not keep out what is now by the
        loadings that they have left on it.
    jacobi, signed
        As in `streamsel.extraction._components.Components`.

    Attributes
    ----------
    count
        Components held; they stand first in every array of components.
    arrival
        (q + 1,) the order in which they came.
    provisional
        Whether they are the first ones, of few rows, which the first refresh replaces.
    """

    changing = (*JointMoments.changing, "count", "arrival")

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
        # One row shows no relevance.
        self.first = max(2, first)
        # Those that stand come after the q components and the room for one more.
        self._stands = slice(self.q + 1, self.n_sums)
        self.max_features = max_features
        self.fading = fading
        self.jacobi = jacobi
        self.signed = signed
        self.count = 0
        self.arrival: Floats = np.zeros(self.q + 1)
        self.provisional = False

    def follow(self, held: Components | None, n: int) -> None:
        """Go on from components that were learnt as columns, if any, of n rows."""
        self.n = float(n)
        if held is None:
            return
        self.count = held.count
        self.arrival[:] = held.arrival
        support = held.table
        B = np.zeros((len(support), self.n_sums))
        B[:, : self.q + 1] = support["B"]
        self.watched.append(support.names, B=B, shift=support["mean"])
        self.mean[:] = support["low"] @ B
        self.J[: self.q + 1, : self.q + 1] = held.Mzz
        self.stand(np.eye(self.q))

    @property
    def most(self) -> int:
        """Most candidates; in a bounded vocabulary they leave room for newcomers."""
        if self.max_features is None:
            return self._most
        return min(self._most, (self.max_features - len(self.loaded)) // 2)

    def detach(self) -> None:
        """Replace what loops and a refresh write into by copies."""
        super().detach()
        self.arrival = self.arrival.copy()

    # What stands

    def turn(self) -> Floats:
        """Return what turns the components onto those that stand, (q, q)."""
        squares = np.diag(self.J)
        covariance = self.J[: self.q, self._stands]
        return least_motion(covariance, squares[: self.q], squares[self._stands])

    def stand(self, turn: Floats) -> None:
        """Let the components stand as they are now, turned."""
        B, self.watched = self.watched["B"], self.watched.with_new(("B",))
        self.watched["B"][:] = B
        self.watched["B"][:, self._stands] = B[:, : self.q] @ turn
        into = np.eye(len(self.J))
        into[:, self._stands] = 0.0
        into[: self.q, self._stands] = turn
        self.mean = self.mean @ into
        self.J = into.T @ self.J @ into
        # Guesses need not fit one another: the square of a sum may be below 0.
        squares = np.einsum("ii->i", self.J)[self._stands]
        np.maximum(squares, 0.0, out=squares)

    # What the components are

    def settled(self, moments: Moments) -> tuple[list[Hashable], Stats, Floats]:
        """Return names, moments and loadings, (s, 2q + 1), of the support."""
        held = np.flatnonzero(self.watched["B"][:, : self.q + 1].any(axis=1))
        names, B = [self.watched.names[i] for i in held.tolist()], self.watched["B"][held]
        slots = moments.table.slots
        stats = moments.stats(np.array([slots[name] for name in names], dtype=np.intp))
        return names, stats, B

    def relevances(
        self, support: tuple[list[Hashable], Stats, Floats], space: TargetSpace
    ) -> Floats:
        """Return the (count,) relevances of the components; the support is as `settled` says."""
        _, stats, B = support
        m2 = np.diag(self.J)[: self.count]
        return space.relevance(m2, B[:, : self.count].T @ stats.cxy, signed=self.signed)

    # The refresh

    def until_refresh(self, moments: Moments) -> int:
        """Return how many rows are left before the next refresh, or the next attempt to start."""
        left = super().until_refresh(moments)
        return left if self.count else min(left, self.first - self.rows % self.first)

    def refresh_if_due(self, moments: Moments) -> None:
        """Let candidates join, and choose candidates again, after every `grace_period` rows."""
        if self.rows % self.grace_period == 0:
            self.refresh(moments)
        elif not self.count and self.rows % self.first == 0:
            self._start(moments)

    def _start(self, moments: Moments) -> None:
        """Make the first components of the relevant candidates whose covariances are exact.

        Those are the candidates that no row contained before they were candidates. All candidates
        remain, and the first refresh makes components of them again, of more rows.
        """
        now = self._all_variables(moments)
        before = self.candidates["before"].tolist()
        exact = {name for name, n in zip(self.candidates.names, before, strict=True) if n == 0.0}
        for j in now.order.tolist():
            name = moments.names[j]
            if name in exact and now.found[j] > max(TIE, self._bar(now.relevance)):
                self._try(name, now)
        self.choose_candidates(self.candidates.names, moments, now.stats)
        self.provisional = self.count > 0

    def _drop_components(self) -> None:
        """Begin again without components; those that transforms use remain."""
        mine = slice(self.q + 1)
        self.watched["B"][:, mine] = 0.0
        self.mean[mine] = self.J[mine] = self.J[:, mine] = self.arrival[:] = 0.0
        self.count, self.provisional = 0, False

    def refresh(self, moments: Moments) -> None:
        """Let candidates that are fit join, the most relevant first; choose candidates anew."""
        grown = self.candidates["start"] + self.grace_period <= self.rows
        if self.provisional and grown.any():
            self._drop_components()
        now = self._all_variables(moments)
        slots, names = moments.slots, moments.names
        since = dict(zip(self.candidates.names, self.candidates["start"].tolist(), strict=True))
        for name in [names[j] for j in now.order.tolist() if names[j] in since]:
            fit = since[name] + self.grace_period <= self.rows and not self._is_within(name)
            if fit and now.found[slots[name]] > self._bar(now.relevance):
                self._try(name, now)
        if self.fading:
            self._drop_dust(now)
        self._choose(now)

    def _all_variables(self, moments: Moments) -> Refresh:
        assert moments.space is not None  # noqa: S101
        stats = moments.stats()
        found = moments.space.relevance(stats.m2, stats.cxy, signed=self.signed)
        relevance = np.zeros(self.q + 1)
        relevance[: self.count] = self.relevances(self.settled(moments), moments.space)
        order = most_relevant_first(found)
        return Refresh(moments, moments.space, stats, moments.seen(), found, order, relevance)

    def _within(self, name: Hashable) -> float:
        """Return how much of a variable's direction is in the span of the components, 0 to 1."""
        place = self.watched.slots.get(name)
        return 0.0 if place is None else float(np.square(self.watched["B"][place, : self.q]).sum())

    def _is_within(self, name: Hashable) -> bool:
        return self._within(name) > (_MOSTLY if self.fading else 0.0)

    def _bar(self, relevance: Floats) -> float:
        """Return what the relevance of a variable must exceed to join."""
        if self.count < self.q:
            return -1.0 - TIE
        return float(relevance[: self.count].min()) + TIE

    def _try(self, name: Hashable, now: Refresh) -> None:
        """Let a candidate join as the last component if it is relevant enough; drop one if need be.

        A variable that has a loading joins with what is left of its direction outside the span of
        the components, so that BᵀB = I.
        """
        first, k, size = self.n_sums, self.count, self.candidates.slots[name]
        slots, stats, relevance = now.moments.slots, now.stats, now.relevance
        i, j, place = first + size, slots[name], self.watched.slots[name]
        B, age = self.watched["B"], self.candidates["age"]
        known = now.seen[j] - self.candidates["before"][size]
        if known <= _NEXT_TO_NOTHING * now.seen[j]:
            # No row has observed it since it became a candidate: its covariances are not known.
            return
        row = self.J[i].copy()
        # The rows that have observed it since it became a candidate stand for all that did, and its
        # rows for those of every other candidate.
        row[:first] *= now.seen[j] / known
        row[first:] *= np.maximum(age / age[size], 1.0)
        # Guesses need not fit one another: of a sum of components the square may be below 0.
        largest = np.sqrt(stats.m2[j]) * np.sqrt(np.maximum(np.diag(self.J)[:first], 0.0))
        row[:first] = np.clip(row[:first], -largest, largest)
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
        found = now.space.relevance(np.array([m2]), (b @ cxy)[None], signed=self.signed)[0]
        if found <= self._bar(relevance):
            return
        row[k] = m2
        self.J[k], self.J[:, k] = row, row
        B[:, k] = b
        relevance[k] = found
        self.arrival[k] = self.arrival[:k].max(initial=-1.0) + 1.0
        self.count += 1
        if self.count > self.q:
            self._rotate_and_drop(cxy, relevance, now.space)

    def _drop_dust(self, now: Refresh) -> None:
        """Drop loadings that old, faded rows have left, and that tell nothing any more."""
        B = self.watched["B"]
        at = [now.moments.slots[name] for name in self.watched.names]
        m2 = np.diag(self.J)[: self.count]
        share = np.square(B[:, : self.count])
        of_variance = share * now.stats.m2[at, None] <= _DUST * m2
        dust = (share.sum(axis=1) <= _DUST) & of_variance.all(axis=1)
        B[dust, : self.q] = 0.0

    def _rotate_and_drop(self, cxy: Floats, relevance: Floats, space: TargetSpace) -> None:
        first = self.n_sums
        B = self.watched["B"]
        # Products with the candidates turn as scores do.
        tail = self.J[:first, first:].copy()
        M, Czy = self.J[:first, :first].copy(), B.T @ cxy
        state = (tail, M, Czy, B, relevance, self.arrival, self.count)
        options = (self.jacobi, self.signed, TIE, VANISHED)
        rotate_and_drop(*state, space.weights, space.given, *options)
        self.J[:first, :first] = M
        self.J[:first, first:], self.J[first:, :first] = tail, tail.T
        self.count -= 1

    def _choose(self, now: Refresh) -> None:
        """Choose the candidates: who is able to join, in order; then who is one already.

        A place that nobody needs stays with who has it, last with who has joined: what it knows is
        not lost.
        """
        names, order = now.moments.names, now.order
        able = [names[j] for j in order[now.found[order] > self._bar(now.relevance)].tolist()]
        able = [name for name in able if not self._is_within(name)]
        rest = self.candidates.slots.keys() - set(able)
        ranked = (names[j] for j in order.tolist())
        others = sorted((name for name in ranked if name in rest), key=self._is_within)
        self.choose_candidates([*able, *others][: max(1, self.most)], now.moments, now.stats)

    def merging(self, theirs: Self, along: Along) -> None:
        """Watch whom I shall go on with, so that they are not let go where room must be made."""
        # What is known of those that stand is of my rows alone: they become functions of those of
        # now, which are merged.
        self.stand(self.turn())
        if along == "rows" and self.provisional and theirs.count and not theirs.provisional:
            self._drop_components()
        # After a merge no candidate is exact, to replace them.
        self.provisional = False
        if along == "rows" and not self.count:
            watch_sums(self, theirs)

    def merged(self, theirs: Self, along: Along, moments: Moments, others: Moments) -> None:  # noqa: ARG002
        """Go on after the moments of the variables were merged.

        What the other found may join as candidates.
        """
        self.keep_candidates([])
        if along == "rows":
            turn, theirs = self.turn(), copy.deepcopy(theirs)
            for one in (self, theirs):
                one.stand(np.zeros((self.q, self.q)))
            if not self.count:
                self.count = theirs.count
                self.arrival[:] = theirs.arrival
            merge_rows(self, theirs, moments)
            self.stand(turn)
        self._choose(self._all_variables(moments))

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        super().expect_possible()
        expect_between("arrivals", self.arrival[: self.count], 0.0, 2.0**53)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        return super().to_state() | {
            "count": self.count,
            "arrival": self.arrival[: self.count],
            "provisional": self.provisional,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        super().set_state(state)
        expect(state, count=Count(), provisional=Flag())
        self.count, self.provisional = state["count"], state["provisional"]
        if self.count > self.q or self.watched["B"][:, self.count : self.q + 1].any():
            raise ValueError(f"Expected loadings on {self.count} components. Got: on others.")
        expect_shapes(state, arrival=(self.count,))
        self.arrival[: self.count] = state["arrival"]
