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
from streamsel.held.possible import expect_between
from streamsel.held.subspace import Subspace
from streamsel.shapes import Count, Maybe, Number, expect
from streamsel.target.space import TargetSpace

_COUNTED = ("total", "largest", "unevenness")


class GramColumns(GramAndPool):
    """All columns, as observations see them, and a pool of those that a method says are worth most.

    The matrix has nothing to do with the target: methods with another one, or none, may share it.

    Parameters
    ----------
    scaled
        Whether columns count as if they were of length 1.
    rank
        How many of the leading axes are kept in the place of the matrix; None for the matrix.

    Attributes
    ----------
    total, largest, unevenness
        The sums of squares of all columns, as they count: their sum, the largest, and their
        squares, added up in units of that.
    Y
        (c, n) the target's columns, without the covariates.
    """

    def __init__(
        self,
        space: TargetSpace | None,
        n: int,
        limit: int,
        *,
        scaled: bool,
        rank: int | None,
        n_jobs: int,
    ) -> None:
        super().__init__(space, n, limit)
        self.scaled, self.n_jobs = scaled, n_jobs
        self.total, self.largest, self.unevenness = 0.0, 0.0, 0.0
        self.Y: Floats = np.zeros((0, n))
        self._begin_gram(self._new_gram(rank))

    def _new_gram(self, rank: int | None) -> Gram | Subspace:
        if rank is None:
            return Gram(self.n, 1, self.n_jobs)
        return Subspace(self.n, rank, self.n_jobs)

    def follow(self, Y: Floats) -> None:
        """Take up the observations of target and covariates, (c, n), before columns come."""
        super().follow(Y)
        assert self._space is not None  # noqa: S101
        self.Y = self._space.own @ Y

    def aim(self) -> None:
        """Let what columns make of the target be exact, where no more than leading axes are held.

        The direction that is held for it was chosen by the target, and is not one among few.
        """
        if isinstance(self.gram, Subspace):
            self.gram.aim(self.basis.T)

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int, *_: Any, **__: Any) -> None:
        """Learn the columns of a chunk, in order."""
        super().admit(chunk, stats, first_arrival)
        counts = self.left(stats) * np.square(self.weights(stats)[:, 0])
        if counts.any():
            total, largest = float(counts.sum()), float(counts.max())
            counts /= largest
            self._count(total, largest, float(counts @ counts))

    def _count(self, total: float, largest: float, unevenness: float) -> None:
        """Add squares to those counted, in units that neither is too large for."""
        self.total += total
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
        if type(other.gram) is not type(self.gram):
            raise ValueError(
                "Expected two models that keep a Gram matrix, or two that keep its leading axes. "
                "Got: one of each."
            )
        super().merge(other, arrived)
        if other.varying:
            self._count(other.total, other.largest, other.unevenness)

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
        self.gram = other.gram.as_of_now()()  # type: ignore[assignment]
        if isinstance(self.gram, Subspace):
            # What it knows towards another target is nothing here.
            self.gram.aim(np.zeros((self.n, 0)))
        self.varying = other.varying
        self.total = other.total
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

    @property
    def rank(self) -> int | None:
        """How many of the leading axes are kept in the place of the matrix; None for the matrix."""
        return self.gram.rank if isinstance(self.gram, Subspace) else None

    def inner(self) -> Inner:
        """Return the inner products of the observations, of columns that vary by 1 if scaled."""
        if isinstance(self.gram, Subspace):
            return self.along_axes()[0]
        K = self.matrix()
        K *= self.unit
        return Inner(K, self.basis.T, self.Y.T, self._about())

    def along_axes(self) -> tuple[Inner, Floats]:
        """Return the inner products along the axes that are kept, and these, (n, k)."""
        assert isinstance(self.gram, Subspace)  # noqa: S101
        d, E = self.gram.axes(self.given)
        inner = Inner(
            d * self.unit, E.T @ self.basis.T, E.T @ self.Y.T, self._about(), self.total * self.unit
        )
        return inner, E

    def left_of(self, V: Floats) -> Floats:
        """Return what the covariates leave of V, (n, k)."""
        return V if self.given is None else V - self.given.T @ (self.given @ V)

    def _about(self) -> About:
        space = self._space
        given = 0 if space is None else len(space.given)
        even = (self.total / self.largest) ** 2 / self.unevenness if self.largest else 0.0
        cyy = np.zeros((0, 0)) if space is None else space.own_products
        n = self.n if space is None else space.effective_rows
        return About(float(n - given), float(self.n), self.n - 1.0, self.varying, even, cyy)

    def settle(self, axes: Floats, V: Floats, images: Floats) -> None:
        """Take up what is known better of all columns so far, as `Subspace` has it."""
        assert isinstance(self.gram, Subspace)  # noqa: S101
        self._changes()
        self.gram.settle(axes, V, images)

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        super().expect_possible()
        most = self.largest if not self.scaled else np.inf
        expect_between("sums of squares", self.table["m2"], 0.0, 1.01 * most)
        expect_between("largest square", self.largest, 0.0, 1.01 * self.total)
        expect_between("unevenness", self.unevenness, 0.0, 1.01 * self.varying)
        trace = self.gram.trace()
        exact = isinstance(self.gram, Gram)
        if not ((trace >= 0.9 * self.total or not exact) and trace <= 1.1 * self.total):
            raise ValueError(
                "Expected squares of the observations as many as counted. Got: others."
            )

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        counted = {field: getattr(self, field) for field in _COUNTED}
        return super().to_state() | counted | {"rank": self.rank}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        # What was taken over from another model may be more, or less, than this one would keep.
        expect(state, rank=Maybe(Count(1)), **dict.fromkeys(_COUNTED, Number()))
        self.gram = self._new_gram(state["rank"])
        super().set_state(state)
        for field in _COUNTED:
            setattr(self, field, float(state[field]))
