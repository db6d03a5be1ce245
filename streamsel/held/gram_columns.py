"""The Gram matrix of all columns, whatever the target, and a pool of those worth most."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.gram import Gram
from streamsel.held.gram_and_pool import GramAndPool
from streamsel.held.inner import About, Inner
from streamsel.held.part import Floats
from streamsel.held.pool import residuals
from streamsel.target.space import TargetSpace


class GramColumns(GramAndPool):
    """All columns, as observations see them, and a pool of those that a method says are worth most.

    The matrix has nothing to do with the target: methods with another one, or none, may share it.

    Parameters
    ----------
    scaled
        Whether columns count as if they were of length 1.

    Attributes
    ----------
    largest, unevenness
        The largest sum of squares of a column, as it counts, and the squares of all, added up in
        units of it.
    Y
        (c, n) the target's columns, without the covariates.
    """

    def __init__(
        self, space: TargetSpace | None, n: int, limit: int, *, scaled: bool, n_jobs: int
    ) -> None:
        super().__init__(space, n, limit)
        self.scaled = scaled
        self.largest, self.unevenness = 0.0, 0.0
        self.Y: Floats = np.zeros((0, n))
        self._begin_gram(Gram(n, 1, n_jobs))

    def follow(self, Y: Floats) -> None:
        """Take up the observations of target and covariates, (c, n), before columns come."""
        super().follow(Y)
        assert self._space is not None  # noqa: S101
        self.Y = self._space.own @ Y

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int, *_: Any, **__: Any) -> None:
        """Learn the columns of a chunk, in order."""
        super().admit(chunk, stats, first_arrival)
        counts = self.left(stats) * np.square(self.weights(stats)[:, 0])
        if counts.any():
            largest = float(counts.max())
            counts /= largest
            self._count(largest, float(counts @ counts))

    def _count(self, largest: float, unevenness: float) -> None:
        """Add squares to those counted, in units that neither is too large for."""
        unit = max(largest, self.largest)
        self.unevenness *= (self.largest / unit) ** 2
        self.unevenness += unevenness * (largest / unit) ** 2
        self.largest = unit

    def weights(self, stats: Stats) -> Floats:
        """Return what centred columns are multiplied by, (b, 1); 0 for what does not vary."""
        left = self.left(stats)
        varies = left > 0.0
        if not self.scaled:
            return varies[:, None].astype(np.float64)
        weights: Floats = 1.0 / np.sqrt(np.where(varies, left, np.inf))[:, None]
        return weights

    def merge(self, other: Self, arrived: int) -> None:
        """Take in all candidates of another pool, as arrived after so many columns."""
        super().merge(other, arrived)
        if other.varying:
            self._count(other.largest, other.unevenness)

    def share(self, other: GramColumns, Y: Floats) -> None:
        """Take up what another one holds, of the same rows: until either changes it is held once.

        Parameters
        ----------
        other
            One without covariates, which are taken out of a pool as it fills.
        Y
            (c, n) the target and the covariates of this one.
        """
        self._changes()
        self.gram = other.gram.as_of_now()()
        self.varying = other.varying
        self.largest, self.unevenness = other.largest, other.unevenness
        rows = {field: other.table[field] for field in other.table.fields}
        rows["cxy"] = np.sqrt(rows["m2"])[:, None] * (rows["unit"] @ Y.T)
        if self.given is not None:
            rows["unit"] = residuals(rows["unit"], self.given)
        self.table.append(other.table.slots, **rows)
        self.discarded, self.floor = other.discarded, other.floor
        self.cut_back()

    # What it comes to

    @property
    def unit(self) -> float:
        """The variance that a column of length 1 counts with, where all count alike."""
        return self.n - 1.0 if self.scaled else 1.0

    def inner(self) -> Inner:
        """Return the inner products of the observations, of columns that vary by 1 if scaled."""
        K = self.matrix()
        K *= self.unit
        space = self._space
        given = 0 if space is None else len(space.given)
        largest = self.largest * self.unit
        even = (float(np.trace(K)) / largest) ** 2 / self.unevenness if largest else 0.0
        cyy = np.zeros((0, 0)) if space is None else space.own_products
        about = About(float(self.n - given), float(self.n), self.n - 1.0, self.varying, even, cyy)
        return Inner(K, self.basis.T, self.Y.T, about)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        return super().to_state() | {"largest": self.largest, "unevenness": self.unevenness}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        super().set_state(state)
        self.largest, self.unevenness = float(state["largest"]), float(state["unevenness"])
