"""The target: what is to be explained, as columns of numbers, and the space that they span."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from streamsel._jit.relevance import coordinates, relevances
from streamsel._jit.scan import variation
from streamsel.encode import encode, kinds_from_state, kinds_to_state
from streamsel.kernels import VariableKernel
from streamsel.shapes import expect_shapes
from streamsel.summation import two_sum

Floats = NDArray[np.float64]

KINDS = ("auto", "class", "numeric")

# A target variable whose square, once the others are taken out, is below this part of it adds
# nothing.
_RANK_TOLERANCE = 1e-10
# Rows of a tile of a transposing copy.
_TILE = 1024


class Target:
    """The observations of what is to be explained, centred, and their moments.

    Parameters
    ----------
    y
        (n,) or (n, c) numbers, (n,) labels, or a Series or DataFrame of either, of any library that
        narwhals knows. Labels (strings, booleans, categories) become one indicator column a class.
    kind
        "class" makes classes of numbers too, "numeric" refuses labels, "auto" goes by the type.

    Attributes
    ----------
    names
        One a column: the class of an indicator, the column's name or its number.
    n, c
        Observations, and columns.
    is_class, kinds
        Whether it is one set of labels, and which columns of a frame were.
    mean, low, cyy
        (c,) means, what rounding took from them, and (c, c) centred sums of products.
    codes
        How many distinct integers it has, if those may be class codes; 0 otherwise.
    Y
        (c', n) the centred columns, one a row: c' = 1, or c and zero rows up to a multiple of four,
        as the loops over them like it.
    """

    def __init__(self, y: Any, kind: str = "auto") -> None:
        encoded = encode(y, kind)
        columns, self.codes = encoded.columns, encoded.codes
        n, c = columns.shape
        if n < 2:
            raise ValueError(
                f"Expected a target of at least 2 observations. Got: {n}.\n"
                "Hint: a relation between a column and a target needs several rows."
            )
        if not np.isfinite(columns).all():
            row, column = np.argwhere(~np.isfinite(columns))[0]
            raise ValueError(
                f"Expected a finite target. Got: {columns[row, column]} in row {row}, column "
                f"{encoded.names[column]!r}.\n"
                "Hint: drop the rows whose target is missing, in the columns too."
            )
        # The first row is near enough to the mean to keep an offset of 1e9 from eating the digits.
        shift = columns[0]
        centred = columns - shift
        offset = centred.mean(axis=0)
        centred -= offset
        self.mean, self.low = two_sum(shift, offset)
        squares = np.einsum("ij,ij->j", centred, centred)
        if not np.isfinite(squares).all():
            raise ValueError(
                "Expected a target whose squares fit into float64. Got: values beyond 1e150.\n"
                "Hint: divide the target by its scale; relevance does not depend on it."
            )
        for k in range(c):
            squares[k] = variation(squares[k], self.mean[k], n)
        if not squares.any():
            raise ValueError(
                "Expected a target that varies. Got: one value in all "
                f"{n} rows.\nHint: check that the right column was taken as the target."
            )
        centred[:, squares == 0.0] = 0.0
        self.names, self.is_class = encoded.names, encoded.is_class
        self.kinds = dict(encoded.kinds)
        self._hold(centred.T)

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Target:
        """Return the target that `to_state` described."""
        c = len(state["target_names"])
        shapes = {"target_Y": (c, state["n_rows"]), "target_mean": (c,), "target_low": (c,)}
        expect_shapes(state, **shapes)
        target = cls.__new__(cls)
        target.codes = 0
        target.names, target.is_class = state["target_names"], state["target_is_class"]
        target.kinds = kinds_from_state(state["target_kinds"])
        target.mean, target.low = state["target_mean"], state["target_low"]
        target._hold(state["target_Y"])
        return target

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs, but for n."""
        return {
            "target_names": list(self.names),
            "target_is_class": self.is_class,
            "target_kinds": kinds_to_state(self.kinds),
            "target_mean": self.mean,
            "target_low": self.low,
            "target_Y": self.Y[: self.c],
        }

    def _hold(self, centred: Floats) -> None:
        self.c, self.n = c, n = centred.shape
        self.cyy: Floats = centred @ centred.T
        rows = 1 if c == 1 else -(-c // 4) * 4
        self.Y: Floats = np.zeros((rows, n))
        # In tiles: centred mostly lies the other way round, and would be read across the cache.
        for start in range(0, n, _TILE):
            self.Y[:c, start : start + _TILE] = centred[:, start : start + _TILE]
        self._transposed: Floats | None = None

    @property
    def YT(self) -> Floats:
        """Y transposed, (n, c') in rows: made when the first sparse column asks for it."""
        if self._transposed is None:
            self._transposed = np.ascontiguousarray(self.Y.T)
        return self._transposed

    def same_as(self, other: Target | NoTarget) -> bool:
        """Whether the other target has the same observations."""
        return (
            self.names == other.names
            and self.Y.shape == other.Y.shape
            and bool(np.array_equal(self.Y, other.Y))
        )


class NoTarget:
    """Stands for the target where variables explain each other: n rows, no columns."""

    names: tuple[Hashable, ...] = ()
    is_class = False
    c = 0

    def __init__(self, n: int) -> None:
        self.n = n
        self.mean: Floats = np.zeros(0)
        self.cyy: Floats = np.zeros((0, 0))
        self.Y: Floats = np.zeros((0, n))
        self.YT: Floats = np.zeros((n, 0))

    def same_as(self, other: Target | NoTarget) -> bool:
        """Whether the other stands for no target too, of as many rows."""
        return isinstance(other, NoTarget) and self.n == other.n


class TargetSpace:
    """The span of the target variables, in the feature space of a kernel, and coordinates in it.

    With K the normalised kernel matrix of the target variables and K = L Lᵀ its pivoted Cholesky
    factorisation, the coordinates of a variable x are g = L⁻¹ K(Y_piv, x), and its relevance is
    ‖g‖. With the linear kernel that is ‖Uᵀx̃‖ / ‖x̃‖, U an orthonormal basis of the centred target
    columns.

    Parameters
    ----------
    cyy
        (c, c) centred sums of products of the target columns.
    n
        Number of observations.
    kernel
        The kernel between variables; its gamma is fitted to the target here.

    Attributes
    ----------
    rank
        Dimension r of the space.
    kernel
        The fitted kernel.
    weights
        (r, c) the matrix L⁻¹, zero for target columns that are no pivots; for the linear kernel it
        takes the scale of the target columns along.
    """

    def __init__(self, cyy: Floats, n: float, kernel: VariableKernel) -> None:
        squares = np.diag(cyy).copy()
        self.n = n
        self.c = squares.size
        self.kernel = kernel.fitted(cyy, squares, n)
        self._cyy, self._squares = cyy, squares
        if self.c == 1:
            # Nothing to factorise, and on rows this is done after each of them.
            square = float(squares[0])
            self.rank = int(square > 0.0)
            self.weights: Floats = np.ones((self.rank, 1))
            if self.rank and self.kernel.name == "linear":
                self.weights[0, 0] = 1.0 / math.sqrt(square)
            return
        gram = self.kernel.normalised(cyy, squares, squares, n)
        L, pivots, rank, _ = lapack.dpstrf(gram, tol=_RANK_TOLERANCE, lower=1)
        self.rank = rank = int(rank)
        weights = np.zeros((rank, self.c))
        if rank:
            # Not solve_triangular: BLAS may wake its threads for a matrix of any size.
            inverse, _ = lapack.dtrtri(L[:rank, :rank], lower=1)
            weights[:, pivots[:rank] - 1] = np.tril(inverse)
        if self.kernel.name == "linear":
            # Normalised here, once, and not in every column.
            weights[:, squares > 0.0] /= np.sqrt(squares[squares > 0.0])
        self.weights = weights

    @property
    def _linear(self) -> TargetSpace:
        if self.kernel.name == "linear":
            return self
        return TargetSpace(self._cyy, self.n, VariableKernel())

    @property
    def linear_rank(self) -> int:
        """Dimension of the span of the centred target columns."""
        return self._linear.rank

    def coordinates(self, m2: Floats, cxy: Floats) -> Floats:
        """Return the (p, r) coordinates of variables with moments m2 (p,) and cxy (p, c).

        A constant variable (m2 = 0) has coordinates zero.
        """
        G = np.empty((m2.size, self.rank))
        if self.kernel.name == "linear":
            coordinates(cxy, np.sqrt(m2), self.weights, G)
        else:
            K = self.kernel.normalised(cxy, m2, self._squares, self.n)
            coordinates(K, (m2 > 0.0).astype(np.float64), self.weights, G)
        return G

    def relevance(self, m2: Floats, cxy: Floats, *, signed: bool = False) -> Floats:
        """Return the (p,) relevances of variables with moments m2 (p,) and cxy (p, c).

        A constant variable (m2 = 0) gets -inf. Signed is for one target column and the linear
        kernel: the correlation itself.
        """
        out = np.empty(m2.size)
        if self.kernel.name == "linear":
            relevances(cxy, m2, self.weights, signed, out)
        else:
            K = self.kernel.normalised(cxy, m2, self._squares, self.n)
            relevances(K, (m2 > 0.0).astype(np.float64), self.weights, signed, out)
        return out

    def largest_relevance(self, correlation: float) -> float:
        """Return the largest relevance of variables whose linear relevance is this.

        Unless the kernel is linear: over 4,096 directions in the linear target space, drawn from a
        fixed seed, and both ends of its first. NaN for a kernel that sees the scale of a variable.
        """
        linear = self._linear
        if linear is self:
            return correlation
        if not self.kernel.scale:
            return float("nan")
        directions = np.random.default_rng(0).normal(size=(4096, linear.rank))
        directions[:2] = 0.0
        directions[0, 0], directions[1, 0] = 1.0, -1.0
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        # Moments of the variables x̃ = √n U g: cxy = √n Cyy Wᵀ g, for U = Y Wᵀ.
        cxy = correlation * np.sqrt(self.n) * directions @ linear.weights @ self._cyy
        return float(self.relevance(np.full(len(cxy), float(self.n)), cxy).max())
