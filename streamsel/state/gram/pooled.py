"""Gram matrices, independent of the target or weighted by relevance, with a pool of columns."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from streamsel.data.columns import Chunk, Stats
from streamsel.serialization.invariants import expect_between
from streamsel.serialization.schema import CountKind, FloatKind, OptionalKind, expect
from streamsel.state.base import Floats, StoredLoadings
from streamsel.state.gram.gram import Gram
from streamsel.state.gram.subspace import Subspace
from streamsel.state.gram.view import GramScale, GramView
from streamsel.state.pool.pool import MOST_RELEVANT, Pool, Ranking, residuals
from streamsel.state.pool.representatives import Representatives
from streamsel.targets.space import TargetSpace


class GramWithPool(Pool):
    """Gram matrix over all columns, and a pool of some of the columns.

    The matrix has the inner products of the observations over all columns, but no single column.
    The pool keeps columns, from which new rows can be computed. Another base class, which comes
    after this one, decides which columns the pool keeps.

    Attributes
    ----------
    gram
        The Gram matrix, for one or several weightings, or the leading axes of one.
    n_varying
        Number of columns that vary, after adjusting for covariates.
    loadings
        Loadings of all columns, or the largest ones, from a second pass; None again when another
        column arrives.
    """

    gram: Gram | Subspace
    n_varying: int
    loadings: StoredLoadings | None

    def _begin_gram(self, gram: Gram | Subspace) -> None:
        self.gram = gram
        self.n_varying = 0
        self.loadings = None

    @abc.abstractmethod
    def weights(self, stats: Stats) -> Floats:
        """Return the factors of centred columns, (b, q); 0 for a column that does not vary."""

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column changes nothing: -inf, because all columns count."""
        return -np.inf

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int, *_: Any, **__: Any) -> None:
        """Learn the columns of a chunk, in order."""
        varying = int(np.count_nonzero(self.adjusted_squares(stats)))
        if not varying:
            return
        self._copy_before_write()
        super().admit(chunk, stats, first_arrival)
        self.loadings = None
        self.n_varying += varying
        self.gram.add(chunk, stats, np.square(self.weights(stats)))

    def bytes_for(self, p: int) -> int:
        """Return the approximate memory of this state in bytes, after p columns."""
        # The matrix, and a copy for the eigendecomposition.
        return super().bytes_for(p) + 16 * self.n * self.n

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        super().merge(other, arrived)
        self.loadings = None
        self.n_varying += other.n_varying
        self.gram.merge(other.gram)  # type: ignore[arg-type]

    def set_loadings(self, loadings: StoredLoadings) -> None:
        """Store the loadings that a second pass found."""
        self._copy_before_write()
        self.loadings = loadings

    def matrix(self, which: int = 0) -> Floats:
        """Return the inner products of the observations, (n, n), covariates projected out."""
        assert isinstance(self.gram, Gram)  # noqa: S101
        K = self.gram.matrix(which)
        if self.covariate_basis is not None:
            K = K - self.covariate_basis.T @ (self.covariate_basis @ K)
            K = K - (K @ self.covariate_basis.T) @ self.covariate_basis
        return K

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_valid()
        self.gram.expect_valid()
        if self.loadings is not None:
            self.loadings.expect_valid()

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        return super()._copied() | {"gram": self.gram.freeze()}

    def _restored(self, saved: dict[str, Any]) -> dict[str, Any]:
        return super()._restored(saved) | {"gram": saved["gram"]()}

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        state = super().to_state() | {"gram": self.gram.to_state(), "n_varying": self.n_varying}
        return state if self.loadings is None else state | {"loadings": self.loadings._asdict()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        super().set_state(state)
        expect(state, n_varying=CountKind())
        self.gram.set_state(state["gram"])
        self.n_varying = state["n_varying"]
        self.loadings = (
            StoredLoadings.from_state(state["loadings"]) if "loadings" in state else None
        )


_TOTALS = ("total", "largest", "sum_of_squared_squares")


class SharedGram(GramWithPool):
    """Gram matrix over all columns, and a pool of the columns that the method ranks highest.

    The matrix does not depend on the target, so methods with another target, or none, may share it.

    Parameters
    ----------
    space, n, limit, ranking, target_rows
        As in `Pool`.
    scaled
        Whether columns are scaled to length 1.
    rank
        Number of leading axes that replace the matrix; None for the matrix.
    n_jobs
        Number of threads.

    Attributes
    ----------
    total, largest, sum_of_squared_squares
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
        ranking: Ranking = MOST_RELEVANT,
        *,
        scaled: bool,
        rank: int | None,
        n_jobs: int,
        target_rows: Floats | None = None,
    ) -> None:
        super().__init__(space, n, limit, ranking, samples=True, target_rows=target_rows)
        self.scaled, self.n_jobs = scaled, n_jobs
        self.total, self.largest, self.sum_of_squared_squares = 0.0, 0.0, 0.0
        self.Y: Floats = np.zeros((0, n))
        if space is not None and target_rows is not None:
            self.Y = space.target_map @ target_rows
        self._begin_gram(self._new_gram(rank))

    def _new_gram(self, rank: int | None) -> Gram | Subspace:
        if rank is None:
            return Gram(self.n, 1, self.n_jobs)
        return Subspace(self.n, rank, self.n_jobs)

    def track_exactly(self) -> None:
        """Keep products of K with the target basis exact, if only leading axes are kept.

        Directions that the target needs may have little variance, and would otherwise be truncated.
        """
        if isinstance(self.gram, Subspace):
            self.gram.track_exactly(self.basis.T)

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int, *_: Any, **__: Any) -> None:
        """Learn the columns of a chunk, in order."""
        super().admit(chunk, stats, first_arrival)
        squares = self.adjusted_squares(stats) * np.square(self.weights(stats)[:, 0])
        if squares.any():
            total, largest = float(squares.sum()), float(squares.max())
            squares /= largest
            self._count(total, largest, float(squares @ squares))

    def _count(self, total: float, largest: float, unevenness: float) -> None:
        """Add sums of squares to the totals, rescaled so that nothing overflows."""
        self.total += total
        unit = max(largest, self.largest)
        self.sum_of_squared_squares *= (self.largest / unit) ** 2
        self.sum_of_squared_squares += unevenness * (largest / unit) ** 2
        self.largest = unit

    def weights(self, stats: Stats) -> Floats:
        """Return the factors of centred columns, (b, 1); 0 for a column that does not vary."""
        residual_squares = self.adjusted_squares(stats)
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
        if other.n_varying:
            self._count(other.total, other.largest, other.sum_of_squared_squares)

    def share(self, other: SharedGram, Y: Floats) -> None:
        """Copy another state over the same rows; memory is shared until either changes.

        Parameters
        ----------
        other
            A state without covariates, which a pool projects out as it fills.
        Y
            (c, n) the target and the covariates of this state.
        """
        self._copy_before_write()
        self.gram = other.gram.freeze()()  # type: ignore[assignment]
        if isinstance(self.gram, Subspace):
            # Its exact directions belong to another target.
            self.gram.track_exactly(np.zeros((self.n, 0)))
        self.n_varying = other.n_varying
        self.total = other.total
        self.largest, self.sum_of_squared_squares = other.largest, other.sum_of_squared_squares
        rows = {field: other.table[field] for field in other.table.fields}
        rows["cxy"] = np.sqrt(rows["m2"])[:, None] * (rows["unit"] @ Y.T)
        if self.covariate_basis is not None:
            rows["unit"] = residuals(rows["unit"], self.covariate_basis)
        self.table.append(other.table.index_of, **rows)
        self.max_discarded_bound, self.admission_threshold = (
            other.max_discarded_bound,
            other.admission_threshold,
        )
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

    def inner(self) -> GramView:
        """Return the inner products of the observations; scaled columns have variance 1."""
        if isinstance(self.gram, Subspace):
            return self.inner_along_axes()[0]
        K = self.matrix()
        K *= self.unit
        return GramView(K, self.basis.T, self.Y.T, self._about())

    def inner_along_axes(self) -> tuple[GramView, Floats]:
        """Return the inner products along the kept axes, and these axes, (n, k)."""
        assert isinstance(self.gram, Subspace)  # noqa: S101
        d, E = self.gram.axes(self.covariate_basis)
        inner = GramView(
            d * self.unit, E.T @ self.basis.T, E.T @ self.Y.T, self._about(), self.total * self.unit
        )
        return inner, E

    def project_out(self, V: Floats) -> Floats:
        """Return V, (n, k), with the covariates projected out."""
        return (
            V
            if self.covariate_basis is None
            else V - self.covariate_basis.T @ (self.covariate_basis @ V)
        )

    def _about(self) -> GramScale:
        space = self._space
        n_covariates = 0 if space is None else len(space.covariate_map)
        evenness = (
            (self.total / self.largest) ** 2 / self.sum_of_squared_squares if self.largest else 0.0
        )
        cyy = np.zeros((0, 0)) if space is None else space.target_products
        n = self.n if space is None else space.effective_rows
        return GramScale(
            float(n - n_covariates), float(self.n), self.n - 1.0, self.n_varying, evenness, cyy
        )

    def replace_axes(self, axes: Floats, V: Floats, images: Floats) -> None:
        """Replace the axes of all columns so far by better ones (`Subspace.replace_axes`)."""
        assert isinstance(self.gram, Subspace)  # noqa: S101
        self._copy_before_write()
        self.gram.replace_axes(axes, V, images)

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_valid()
        upper = self.largest if not self.scaled else np.inf
        expect_between("sums of squares", self.table["m2"], 0.0, 1.01 * upper)
        expect_between("largest square", self.largest, 0.0, 1.01 * self.total)
        expect_between(
            "sum_of_squared_squares", self.sum_of_squared_squares, 0.0, 1.01 * self.n_varying
        )
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
        expect(state, rank=OptionalKind(CountKind(1)), **dict.fromkeys(_TOTALS, FloatKind()))
        self.gram = self._new_gram(state["rank"])
        super().set_state(state)
        for field in _TOTALS:
            setattr(self, field, float(state[field]))


def to_powers(relevance: Floats, powers: Sequence[float]) -> Floats:
    """Return relevances (m,) raised to each power, (m, powers); 0 for constant columns."""
    raised: Floats = np.maximum(relevance, 0.0)[:, None] ** np.array(powers)
    return raised


class RelevanceWeightedGram(GramWithPool, Representatives):
    """Gram matrix over all columns, weighted by relevance, and a pool of representatives.

    Parameters
    ----------
    space, n, limit, least, target_rows
        As in `Representatives`.
    powers
        One matrix per power: a column of relevance ρ has weight ρ to this power.
    n_jobs
        Number of threads.
    """

    def __init__(
        self,
        space: TargetSpace | None,
        n: int,
        limit: int,
        least: float,
        powers: tuple[float, ...],
        n_jobs: int,
        target_rows: Floats | None = None,
    ) -> None:
        super().__init__(space, n, limit, least, target_rows)
        self.powers = powers
        self._begin_gram(Gram(n, len(powers), n_jobs))

    def weights(self, stats: Stats) -> Floats:
        """Return the factors of centred columns, (b, powers); 0 for a column that does not vary."""
        assert self._space is not None  # noqa: S101
        residual_squares = self.adjusted_squares(stats)
        relevance = self._space.relevance(stats.m2, stats.cxy)
        length = np.sqrt(np.where(residual_squares > 0.0, residual_squares, np.inf))
        weights: Floats = to_powers(relevance, self.powers) / length[:, None]
        return weights
