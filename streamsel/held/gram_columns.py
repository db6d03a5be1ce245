"""A Gram matrix that does not depend on the target, and a pool of the best columns."""

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

_TOTALS = ("total", "largest", "unevenness")


class GramColumns(GramAndPool):
    """Gram matrix over all columns, and a pool of the columns that the method ranks highest.

    The matrix does not depend on the target, so methods with another target, or none, may share it.

    Parameters
    ----------
    scaled
        Whether columns are scaled to length 1.
    rank
        Number of leading axes that replace the matrix; None for the matrix.

    Attributes
    ----------
    total, largest, unevenness
        Of the sums of squares of all columns, after scaling: the sum, the largest, and the sum of
        their squares in units of the largest squared.
    Y
        (c, n) the target's columns, adjusted for the covariates.
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
        """Set the bases from target and covariates, (c, n), before columns arrive."""
        super().follow(Y)
        assert self._space is not None  # noqa: S101
        self.Y = self._space.own @ Y

    def aim(self) -> None:
        """Keep products of K with the target basis exact, if only leading axes are kept.

        Directions that the target needs may have little variance, and would otherwise be truncated.
        """
        if isinstance(self.gram, Subspace):
            self.gram.aim(self.basis.T)

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int, *_: Any, **__: Any) -> None:
        """Learn the columns of a chunk, in order."""
        super().admit(chunk, stats, first_arrival)
        squares = self.left(stats) * np.square(self.weights(stats)[:, 0])
        if squares.any():
            total, largest = float(squares.sum()), float(squares.max())
            squares /= largest
            self._count(total, largest, float(squares @ squares))

    def _count(self, total: float, largest: float, unevenness: float) -> None:
        """Add sums of squares to the totals, rescaled so that nothing overflows."""
        self.total += total
        unit = max(largest, self.largest)
        self.unevenness *= (self.largest / unit) ** 2
        self.unevenness += unevenness * (largest / unit) ** 2
        self.largest = unit

    def weights(self, stats: Stats) -> Floats:
        """Return the factors of centred columns, (b, 1); 0 for a column that does not vary."""
        residual_squares = self.left(stats)
        varies = residual_squares > 0.0
        if not self.scaled:
            return varies[:, None].astype(np.float64)
        weights: Floats = 1.0 / np.sqrt(np.where(varies, residual_squares, np.inf))[:, None]
        return weights

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        if type(other.gram) is not type(self.gram):
            raise ValueError(
                "Expected two models that keep a Gram matrix, or two that keep its leading axes. "
                "Got: one of each."
            )
        super().merge(other, arrived)
        if other.varying:
            self._count(other.total, other.largest, other.unevenness)

    def share(self, other: GramColumns, Y: Floats) -> None:
        """Copy another state over the same rows; memory is shared until either changes.

        Parameters
        ----------
        other
            A state without covariates, which a pool projects out as it fills.
        Y
            (c, n) the target and the covariates of this state.
        """
        self._changes()
        self.gram = other.gram.as_of_now()()  # type: ignore[assignment]
        if isinstance(self.gram, Subspace):
            # Its exact directions belong to another target.
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

    # Results

    @property
    def unit(self) -> float:
        """The factor that turns a squared length into a variance, if columns are scaled."""
        return self.n - 1.0 if self.scaled else 1.0

    @property
    def rank(self) -> int | None:
        """Number of leading axes that replace the matrix; None for the matrix."""
        return self.gram.rank if isinstance(self.gram, Subspace) else None

    def inner(self) -> Inner:
        """Return the inner products of the observations; scaled columns have variance 1."""
        if isinstance(self.gram, Subspace):
            return self.along_axes()[0]
        K = self.matrix()
        K *= self.unit
        return Inner(K, self.basis.T, self.Y.T, self._about())

    def along_axes(self) -> tuple[Inner, Floats]:
        """Return the inner products along the kept axes, and these axes, (n, k)."""
        assert isinstance(self.gram, Subspace)  # noqa: S101
        d, E = self.gram.axes(self.given)
        inner = Inner(
            d * self.unit, E.T @ self.basis.T, E.T @ self.Y.T, self._about(), self.total * self.unit
        )
        return inner, E

    def left_of(self, V: Floats) -> Floats:
        """Return V, (n, k), with the covariates projected out."""
        return V if self.given is None else V - self.given.T @ (self.given @ V)

    def _about(self) -> About:
        space = self._space
        n_covariates = 0 if space is None else len(space.given)
        evenness = (self.total / self.largest) ** 2 / self.unevenness if self.largest else 0.0
        cyy = np.zeros((0, 0)) if space is None else space.own_products
        n = self.n if space is None else space.effective_rows
        return About(
            float(n - n_covariates), float(self.n), self.n - 1.0, self.varying, evenness, cyy
        )

    def settle(self, axes: Floats, V: Floats, images: Floats) -> None:
        """Replace the axes of all columns so far by better ones, as `Subspace.settle` does."""
        assert isinstance(self.gram, Subspace)  # noqa: S101
        self._changes()
        self.gram.settle(axes, V, images)

    def expect_possible(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_possible()
        upper = self.largest if not self.scaled else np.inf
        expect_between("sums of squares", self.table["m2"], 0.0, 1.01 * upper)
        expect_between("largest square", self.largest, 0.0, 1.01 * self.total)
        expect_between("unevenness", self.unevenness, 0.0, 1.01 * self.varying)
        trace = self.gram.trace()
        exact = isinstance(self.gram, Gram)
        if not ((trace >= 0.9 * self.total or not exact) and trace <= 1.1 * self.total):
            raise ValueError(
                f"Expected a trace equal to the sum of squares of all columns. Got: {trace!r}, not "
                f"{self.total!r}."
            )

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        counted = {field: getattr(self, field) for field in _TOTALS}
        return super().to_state() | counted | {"rank": self.rank}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        # State copied from another model may have another rank than this model would use.
        expect(state, rank=Maybe(Count(1)), **dict.fromkeys(_TOTALS, Number()))
        self.gram = self._new_gram(state["rank"])
        super().set_state(state)
        for field in _TOTALS:
            setattr(self, field, float(state[field]))
