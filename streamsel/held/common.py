"""What is held of variables over a period that is common to all of them."""

from __future__ import annotations

import abc
import functools
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from streamsel._jit.scan import ROUNDINGS, UNDERFLOW
from streamsel.columns import Stats
from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Held, Places
from streamsel.held.period import Period
from streamsel.target.space import TargetSpace


class OnRows(Held):
    """What is held of variables that rows have named, for as long as none is learnt."""

    @property
    @abc.abstractmethod
    def effective_rows(self) -> float:
        """How many rows of equal weight tell as much (Kish 1965)."""

    @abc.abstractmethod
    def among(self, places: Places, W: Floats) -> Floats:
        """Return sums of products, (k, k), of what weights (m, k) make of these variables."""


class Common(OnRows):
    """The variables of a period, and their moments over its rows, those with one another too.

    It says what the period knew when it was made, and keeps nothing itself.

    Parameters
    ----------
    period
        The period.
    moments
        Of all rows: what kinds the targets are of, and whether a variable was ever let go.
    """

    def __init__(self, period: Period, moments: Moments) -> None:
        self.period = period
        self._of_all = moments
        # Columns of targets and variables, those of their gaps, weights, and means.
        self._own, self._gap, self._seen, self._mean = period.observed()
        self._c = len(period.targets)

    @property
    def slots(self) -> Mapping[Hashable, int]:
        """Name -> place, in order of arrival."""
        return {name: place for place, name in enumerate(self.names)}

    @functools.cached_property
    def names(self) -> list[Hashable]:
        """Names in order of arrival; not to be changed."""
        return list(self.period.slots)

    @property
    def complete(self) -> bool:
        """Whether no variable was ever let go."""
        return self._of_all.complete

    @property
    def n(self) -> float:
        """The weight of the period's rows, where the newest has weight 1."""
        return self.period.n / self.period.unit

    @property
    def effective_rows(self) -> float:
        """How many rows of equal weight tell as much (Kish 1965)."""
        squares = self.period.squares
        return self.period.n * self.period.n / squares if squares else 0.0

    @functools.cached_property
    def space(self) -> TargetSpace | None:
        """The target space over the period; None without a target."""
        all_rows = self._of_all
        if all_rows.space is None:
            return None
        c = self._c
        cyy = 0.5 * (self._cross[:c] + self._cross[:c].T)
        cyy[np.arange(c), np.arange(c)] = self._squares[:c]
        is_given = all_rows.target.is_given() if all_rows.target.covariates else None
        return TargetSpace(cyy, self.n, all_rows.kernel, is_given)

    @property
    def target_means(self) -> Floats:
        """Means of the target's columns, covariates among them, (c,)."""
        return self._levels[: self._c]

    def stats(self, places: Places | None = None) -> Stats:
        """Return the moments of variables over the period, of all if places is None.

        The newest row has weight 1.
        """
        rows = slice(self._c, None) if places is None else np.asarray(places) + self._c
        mean, m2 = self._levels[rows], self._squares[rows]
        return Stats(mean, np.zeros(m2.size), m2, self._cross[rows])

    def products(self, places: Places | int) -> Floats:
        """Return the (p, s) correlations of all variables with some, or (p,) with one.

        Given the covariates; 0 for what does not vary.
        """
        if isinstance(places, (int, np.integer)):
            one: Floats = self.products(np.array([places]))[:, 0]
            return one
        some = np.asarray(places, dtype=np.intp)
        found = self._about_means(some + self._c)[self._c :] / self.period.unit
        stats, space, length = self.stats(), self.space, self._lengths
        if space is not None and len(space.given):
            theirs = stats.cxy @ space.given.T
            found -= theirs @ theirs[some].T
        found /= length[:, None]
        found /= length[some]
        return found

    def seen(self) -> Floats:
        """Return the weights of the rows that observed each variable."""
        seen: Floats = self._seen[self._c :] / self.period.unit
        return seen

    def among(self, places: Places, W: Floats) -> Floats:
        """Return sums of products, (k, k), of what weights (m, k) make of these variables."""
        W = W * np.sqrt(self.stats(places).m2)[:, None]
        found: Floats = W.T @ self.products(places)[places] @ W
        return found

    @functools.cached_property
    def _lengths(self) -> Floats:
        """The roots of what covariates leave of the squares; inf of what does not vary."""
        stats, space = self.stats(), self.space
        left = stats.m2 if space is None else space.left(stats.m2, stats.cxy)
        length: Floats = np.sqrt(np.where(left > 0.0, left, np.inf))
        return length

    @functools.cached_property
    def _levels(self) -> Floats:
        levels: Floats = self.period.shift[self._own] + self._mean
        return levels

    @functools.cached_property
    def _squares(self) -> Floats:
        """Sums of squares about the means, of targets and variables; 0 of what does not vary."""
        unit = self.period.unit
        square = self.period.squares_of(self._own) - self._seen * self._mean * self._mean
        square /= unit
        still = square <= self._seen / unit * np.square(ROUNDINGS * self._levels)
        square[still | (square < UNDERFLOW)] = 0.0
        # Where a variable does not vary in any row it does not in these.
        slots = self._of_all.slots
        places = np.array([slots[name] for name in self.names], dtype=np.intp)
        square[self._c :][self._of_all.stats(places).m2 == 0.0] = 0.0
        return square

    @functools.cached_property
    def _cross(self) -> Floats:
        """(c + p, c) products of targets and variables with the targets."""
        c, square = self._c, self._squares
        cross = self._about_means(np.arange(c)) / self.period.unit
        cross[square == 0.0] = 0.0
        cross[:, square[:c] == 0.0] = 0.0
        return cross

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: what the period keeps."""
        return self.period.to_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned."""
        self.period.set_state(state)

    def _about_means(self, some: Places) -> Floats:
        """Return products of all, about their means, with some of them, in the period's unit."""
        own, gap, mean, period = self._own, self._gap, self._mean, self.period
        found = period.columns(own[some])
        if not period.gaps:
            found = found[own]
        else:
            lacking = np.flatnonzero(gap[some] >= 0)
            found[:, lacking] += period.columns(gap[some][lacking]) * mean[some][lacking]
            of_gaps = np.flatnonzero(gap >= 0)
            further = mean[of_gaps, None] * found[gap[of_gaps]]
            found = found[own]
            found[of_gaps] += further
        found -= (period.n * mean)[:, None] * mean[some]
        return found
