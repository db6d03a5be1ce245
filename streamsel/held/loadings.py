"""Loadings of all columns, or of the largest, by reading the columns again."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from streamsel.held.part import Floats, Places
from streamsel.shapes import expect_shapes


class Loadings(NamedTuple):
    """What components are made of: z = (x - means) @ weights.

    Parameters
    ----------
    names, means
        s variables in order of arrival, and what is taken off each (s,).
    weights
        (s, q).
    """

    names: list[Hashable]
    means: Floats
    weights: Floats

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return what a file says, if it fits together."""
        s, q = len(state["names"]), np.shape(state["weights"])[-1]
        expect_shapes(state, means=(s,), weights=(s, q))
        return cls(state["names"], np.asarray(state["means"]), np.asarray(state["weights"]))


class Reading:
    """A second reading: keeps the variables of the largest loadings.

    With Z the scores of the components over the columns' observations, those of a column of length
    1 that counts with D are D · D xᵀα. Where not all can be kept the largest are, and then made
    anew: Z regressed on these.

    Parameters
    ----------
    alpha
        (n, q) what turns weighted columns into loadings.
    scores
        (n, q) the components, Z.
    limit
        How many variables are kept.

    Attributes
    ----------
    total
        Σ D² of the columns that were read.
    """

    def __init__(self, alpha: Floats, scores: Floats, limit: int) -> None:
        self.alpha, self.scores, self.limit = alpha, scores, limit
        self.total = 0.0
        self.let_go = False
        self._least = -1.0
        self._names: list[Hashable] = []
        self._weighted: Floats = np.empty((0, len(alpha)))
        # Means, what standardised columns are multiplied by, and their loadings.
        self._means: Floats = np.empty(0)
        self._scale: Floats = np.empty(0)
        self._loadings: Floats = np.empty((0, alpha.shape[1]))

    def add(
        self, names: Sequence[Hashable], means: Floats, scale: Floats, weighted: Floats
    ) -> None:
        """Read columns.

        Parameters
        ----------
        names, means
            Of b columns.
        scale
            (b,) what a centred column was multiplied by.
        weighted
            (b, n) the columns so multiplied: D x.
        """
        self.total += float(np.square(weighted).sum())
        loadings = weighted @ self.alpha
        large = np.flatnonzero(_sizes(loadings) > self._least)
        self.let_go |= large.size < len(names)
        self._names += [names[place] for place in large.tolist()]
        self._means = np.append(self._means, means[large])
        self._scale = np.append(self._scale, scale[large])
        self._weighted = np.concatenate([self._weighted, weighted[large]])
        self._loadings = np.concatenate([self._loadings, loadings[large]])
        if len(self._names) >= 2 * self.limit:
            self._cut_back()

    def _cut_back(self) -> None:
        sizes = _sizes(self._loadings)
        largest = np.sort(np.argsort(-sizes, kind="stable")[: self.limit])
        self.let_go |= largest.size < len(self._names)
        self._least = float(sizes[largest].min())
        self._names = [self._names[place] for place in largest.tolist()]
        self._means, self._scale = self._means[largest], self._scale[largest]
        self._weighted, self._loadings = self._weighted[largest], self._loadings[largest]

    def found(self) -> Loadings:
        """Return the loadings of what was read."""
        if self.let_go or len(self._names) > self.limit:
            self._cut_back()
        found = regressed(self._weighted, self.scores) if self.let_go else self._loadings
        return Loadings(self._names, self._means, found * self._scale[:, None])


def _sizes(loadings: Floats) -> Floats:
    """Return the squared length of each row."""
    sizes: Floats = np.square(loadings).sum(axis=1)
    return sizes


def regressed(weighted: Floats, scores: Floats) -> Floats:
    """Return what makes scores (n, q) of columns (s, n): least squares, and the least of them."""
    found: Floats = np.linalg.lstsq(weighted.T, scores, rcond=None)[0]
    return found


def in_pieces(places: Places, n: int) -> Iterable[Places]:
    """Yield places of columns of n observations, a few megabytes of them at a time."""
    step = max(1, (4 << 20) // (8 * n))
    return (places[start : start + step] for start in range(0, places.size, step))
