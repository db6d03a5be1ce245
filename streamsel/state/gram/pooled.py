"""Gram matrices, independent of the target or weighted by relevance, with a pool of columns."""

from __future__ import annotations

import copy
from typing import Any, Generic, Self, TypeVar

import numpy as np

from streamsel.data.chunks import Chunk, Stats
from streamsel.serialization.invariants import expect_between
from streamsel.serialization.schema import CountKind, FloatKind, OptionalKind, expect
from streamsel.state.base import Floats, Indices, StoredLoadings
from streamsel.state.gram.block_lanczos import new_directions
from streamsel.state.gram.gram import Gram
from streamsel.state.gram.subspace import Subspace
from streamsel.state.gram.view import (
    GramScale,
    GramView,
    InnerProducts,
    ScaledRows,
    gram_of_variables,
    residual,
)
from streamsel.state.gram.weighting import ColumnWeights, EqualWeights
from streamsel.state.pool.pool import Pool, residuals
from streamsel.state.pool.pooled_state import PooledState

PoolT = TypeVar("PoolT", bound=Pool)


class GramState(PooledState, Generic[PoolT]):
    """Gram matrix over all columns, and a pool of some of the columns.

    The matrix has the inner products of the observations over all columns, but no single column.
    The pool keeps columns, to transform new rows.

    Parameters
    ----------
    gram
        The Gram matrix, for one or several weightings, or the leading axes of one.
    pool
        The pool; its ranking decides which columns it keeps.
    weights
        The weights of the columns in the matrix.

    Attributes
    ----------
    n_varying
        Number of columns that vary, after adjusting for covariates.
    loadings
        Loadings of all columns, or the largest ones, from a second pass; None again when another
        column arrives.
    """

    def __init__(self, gram: Gram | Subspace, pool: PoolT, weights: ColumnWeights) -> None:
        super().__init__(pool)
        self.pool: PoolT = pool
        self.gram, self.weights = gram, weights
        self.n_varying = 0
        self.loadings: StoredLoadings | None = None

    @property
    def lacks_loadings(self) -> bool:
        """Whether a second pass would add loadings."""
        return not self.complete and self.loadings is None

    def bytes_for(self, p: int) -> int:
        """Return the approximate memory of this state in bytes, after p columns."""
        # The matrix, and a copy for the eigendecomposition.
        return super().bytes_for(p) + 16 * self.n * self.n

    def matrix(self, which: int = 0) -> Floats:
        """Return the inner products of the observations, (n, n), covariates projected out."""
        assert isinstance(self.gram, Gram)  # noqa: S101
        K, covariates = self.gram.matrix(which), self.pool.covariate_basis
        if covariates is not None:
            K = K - covariates.T @ (covariates @ K)
            K = K - (K @ covariates.T) @ covariates
        return K

    def carried(self) -> Self:
        """Return the state from which rows continue: this one, or one of fewer variables."""
        pool = self.pool.carried()
        if pool is self.pool:
            return self
        state = copy.copy(self)
        state.pool = pool
        return state

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Learn the columns of a chunk, in order."""
        varying = int(np.count_nonzero(self.weights.squares(stats)))
        if not varying:
            return
        self._copy_before_write()
        self.pool.admit(chunk, stats, first_arrival)
        self.loadings = None
        self.n_varying += varying
        self.gram.add(chunk, stats, np.square(self.weights.factors(stats)))

    def merge(self, other: Self, arrived: int) -> None:
        """Add the columns of another state, which arrived after `arrived` columns."""
        self._copy_before_write()
        self.pool.merge(other.pool, arrived)
        self.loadings = None
        self.n_varying += other.n_varying
        self.gram.merge(other.gram)  # type: ignore[arg-type]

    def set_loadings(self, loadings: StoredLoadings) -> None:
        """Store the loadings that a second pass found."""
        self._copy_before_write()
        self.loadings = loadings

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
        state = self.pool.to_state() | {"gram": self.gram.to_state(), "n_varying": self.n_varying}
        return state if self.loadings is None else state | {"loadings": self.loadings._asdict()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        self.pool.set_state(state)
        expect(state, n_varying=CountKind())
        self.gram.set_state(state["gram"])
        self.n_varying = state["n_varying"]
        self.loadings = (
            StoredLoadings.from_state(state["loadings"]) if "loadings" in state else None
        )


# The target has no part outside the leading axes that is shorter than this.
_ZERO_TOL = 1e-10
_TOTALS = ("total", "largest", "sum_of_squared_squares")


class SharedGram(GramState[Pool]):
    """Gram matrix of columns of equal weight, and a pool of those that the method ranks highest.

    The matrix does not depend on the target, so methods with another target, or none, may share it.

    Parameters
    ----------
    pool
        The pool, with the bases of target and covariates.
    target_rows
        (c, n) the columns of target and covariates; None without a target.
    scaled
        Whether columns are scaled to length 1.
    rank
        Number of leading axes that replace the matrix; None for the matrix.
    n_jobs
        Number of threads.
    exact
        Whether products of K with the target basis are exact even if only leading axes are kept:
        directions that the target needs may have little variance, and would otherwise be truncated.
    n_needed
        Number of leading axes that the method needs; None for all `rank`.
    effective_rows
        The effective number of observations of equal weight; None for all.

    Attributes
    ----------
    total, largest, sum_of_squared_squares
        Sum and maximum of the sums of squares of all columns, after scaling, and sum of their
        squares in units of the maximum squared.
    Y
        (c, n) the target's columns, adjusted for the covariates.
    """

    def __init__(
        self,
        pool: Pool,
        target_rows: Floats | None = None,
        *,
        scaled: bool,
        rank: int | None,
        n_jobs: int,
        exact: bool = False,
        n_needed: int | None = None,
        effective_rows: float | None = None,
    ) -> None:
        self._n_needed = n_needed
        self._effective_rows = float(pool.n) if effective_rows is None else effective_rows
        gram = _new_gram(pool.n, rank, n_jobs)
        super().__init__(gram, pool, EqualWeights(pool.space, scaled=scaled))
        self.scaled, self.n_jobs = scaled, n_jobs
        self.total, self.largest, self.sum_of_squared_squares = 0.0, 0.0, 0.0
        self.Y: Floats = np.zeros((0, self.n))
        if target_rows is not None and pool.space is not None:
            self.Y = pool.space.target_map @ target_rows
        if exact:
            self.gram.track_exactly(pool.basis.T)

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Learn the columns of a chunk, in order."""
        super().admit(chunk, stats, first_arrival)
        squares = self.weights.squares(stats) * np.square(self.weights.factors(stats)[:, 0])
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

    def merge(self, other: Self, arrived: int) -> None:
        """Add the columns of another state, which arrived after `arrived` columns."""
        if (other.rank is None) != (self.rank is None):
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
            A state without covariates, as its pool would have projected these out.
        Y
            (c, n) the target and the covariates of this state, which is empty.
        """
        self.gram = other.gram.freeze()()
        # Exact directions belong to another target.
        self.gram.track_exactly(np.zeros((self.n, 0)))
        self.n_varying = other.n_varying
        self.total = other.total
        self.largest, self.sum_of_squared_squares = other.largest, other.sum_of_squared_squares
        pool, theirs = self.pool, other.pool
        rows = {field: theirs.table[field] for field in theirs.table.fields}
        rows["cxy"] = np.sqrt(rows["m2"])[:, None] * (rows["unit"] @ Y.T)
        if pool.covariate_basis is not None:
            rows["unit"] = residuals(rows["unit"], pool.covariate_basis)
        pool.table.append(theirs.table.index_of, **rows)
        pool.max_discarded_bound = theirs.max_discarded_bound
        pool.admission_threshold = theirs.admission_threshold
        pool.cut_back()

    # Results

    @property
    def effective_rows(self) -> float:
        """The effective number of observations of equal weight."""
        return self._effective_rows

    @property
    def weight(self) -> float:
        """The sum of squares of a column of variance 1, as on rows of these weights."""
        return max(self.n - self.n / self.effective_rows, 0.0)

    @property
    def unit(self) -> float:
        """The factor that turns a squared length into a variance, if columns are scaled."""
        return self.weight if self.scaled else 1.0

    @property
    def rank(self) -> int | None:
        """Number of leading axes that replace the matrix; None for the matrix."""
        return self.gram.rank

    @property
    def subspace(self) -> Subspace:
        """The leading axes that replace the matrix."""
        assert isinstance(self.gram, Subspace)  # noqa: S101
        return self.gram

    def inner(self) -> GramView:
        """Return the inner products of the observations; scaled columns have variance 1."""
        K = self.matrix()
        K *= self.unit
        return GramView(K, self.pool.basis.T, self.Y.T, self._about())

    def _along_axes(self) -> tuple[GramView, Floats]:
        """Return the inner products along the kept axes, and these axes, (n, k).

        Axes of variance 0 follow, which complete the span of the target: loadings need all of it.
        """
        d, E = self.subspace.axes(self.pool.covariate_basis, self._n_needed)
        basis = self.pool.basis.T
        further = new_directions(basis, E, _ZERO_TOL)
        d, E = np.append(d, np.zeros(further.shape[1])), np.hstack([E, further])
        U, Y = E.T @ basis, E.T @ self.Y.T
        view = GramView(d * self.unit, U, Y, self._about(), self.total * self.unit)
        return view, E

    def inner_products(self, indices: Indices, factors: Floats, about: GramScale) -> InnerProducts:
        """Return the inner products, and those of variables of the pool.

        Parameters
        ----------
        indices, factors
            (m,) indices of the variables, and their factors.
        about
            Scale and counts of the pool's variables.
        """
        samples = self._scaled_samples(indices, factors)
        if self.rank is None:
            return InnerProducts(self.inner(), samples)
        if self.complete:
            # All columns are available, so their inner products are exact.
            products = gram_of_variables(self.pool, indices, factors, about)
            coordinates = np.asarray(products.variables)
            return products._replace(axes=samples.combine(coordinates / products.view.K))
        view, E = self._along_axes()
        return InnerProducts(view, samples @ E, E)

    def _scaled_samples(self, indices: Indices, factors: Floats) -> ScaledRows:
        """Return variables of the pool, centred and times their factors, without a copy of all."""
        unit = self.pool.table["unit"]
        rows = unit if indices.size == len(unit) else unit[indices]
        length = np.sqrt(self.weights.squares(self.stats(indices)))
        return ScaledRows(rows, length * factors)

    def weighted_samples(self, indices: Indices, factors: Floats) -> Floats:
        """Return variables of the pool, centred and times their factors, (m, n)."""
        samples = self._scaled_samples(indices, factors)
        weighted: Floats = samples.rows * samples.factors[:, None]
        return weighted

    def project_out(self, V: Floats) -> Floats:
        """Return V, (n, k), with the covariates projected out."""
        return residual(V, self.pool.covariate_basis)

    def _about(self) -> GramScale:
        space = self.space
        n_covariates = 0 if space is None else len(space.covariate_map)
        evenness = (
            (self.total / self.largest) ** 2 / self.sum_of_squared_squares if self.largest else 0.0
        )
        cyy = np.zeros((0, 0)) if space is None else space.target_products
        n = self.effective_rows
        return GramScale(
            float(n - n_covariates), float(self.n), self.weight, self.n_varying, evenness, cyy
        )

    def replace_axes(self, axes: Floats, V: Floats, images: Floats) -> None:
        """Replace the axes of all columns so far by better ones (`Subspace.replace_axes`)."""
        self._copy_before_write()
        self.subspace.replace_axes(axes, V, images)

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_valid()
        upper = self.largest if not self.scaled else np.inf
        expect_between("sums of squares", self.pool.table["m2"], 0.0, 1.01 * upper)
        expect_between("largest square", self.largest, 0.0, 1.01 * self.total)
        expect_between(
            "sum_of_squared_squares", self.sum_of_squared_squares, 0.0, 1.01 * self.n_varying
        )
        trace = self.gram.trace()
        exact = self.rank is None
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
        self.gram = _new_gram(self.n, state["rank"], self.n_jobs)
        super().set_state(state)
        for field in _TOTALS:
            setattr(self, field, float(state[field]))


def _new_gram(n: int, rank: int | None, n_jobs: int) -> Gram | Subspace:
    return Gram(n, 1, n_jobs) if rank is None else Subspace(n, rank, n_jobs)
