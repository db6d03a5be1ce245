"""Landmarks (learnt rows that new rows are compared with), and nearest-neighbour graphs."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array, issparse

from streamsel._utils.sparse import expect_consistent_sparse
from streamsel.serialization.invariants import expect_between, expect_bounded
from streamsel.serialization.json_values import as_array
from streamsel.serialization.schema import (
    ArrayKind,
    CountKind,
    FloatKind,
    NamesKind,
    expect,
    expect_shapes,
    length_in,
)
from streamsel.state.base import Floats, Indices, State


class Similarity(NamedTuple):
    """Inner products between rows, from which kernels are computed, and the total variance.

    Parameters
    ----------
    products
        (b, m) inner products of b rows with m others.
    squares, others
        (b,) and (m,) squared lengths of both.
    variance
        The total variance.
    density
        The fraction of the learnt rows that is among the others.
    """

    products: Floats
    squares: Floats
    others: Floats
    variance: float
    density: float = 1.0

    def with_others(self, indices: Indices) -> Self:
        """Return the inner products with a subset of the others."""
        density = indices.size / self.others.size
        some = self.products[:, indices], self.others[indices]
        return self._replace(products=some[0], others=some[1], density=density)

    def distances(self) -> Floats:
        """Return squared distances, (b, m)."""
        squared = self.squares[:, None] + self.others - 2.0 * self.products
        return np.maximum(squared, 0.0, out=squared)


class Landmarks(NamedTuple):
    """Landmarks and the map from similarities to components: z = k(x, values) @ weights + offset.

    Parameters
    ----------
    names, means
        s variables, and the values to subtract, (s,).
    rows, values
        Indices of the learnt rows that are landmarks, (m,), and their values, (m, s), centred and
        divided by `unit`.
    weights, offset
        (m, q) and (q,).
    unit
        The square root of the total variance of all columns.
    share
        The fraction of that variance that is due to these variables.
    density
        The fraction of the learnt rows that are landmarks.
    squares
        (m,) squared lengths of the landmarks.
    """

    names: list[Hashable]
    means: Floats
    rows: Indices
    values: Floats
    weights: Floats
    offset: Floats
    unit: float
    share: float
    density: float
    squares: Floats

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """Return landmarks, computing `squares`."""
        values = fields["values"]
        return cls(squares=np.einsum("ij,ij->i", values, values), **fields)

    @classmethod
    def empty(cls, q: int) -> Self:
        """Return landmarks that map every row to zeros."""
        no_names, no_rows = np.zeros(0), np.zeros(0, np.intp)
        arrays = {"values": np.zeros((0, 0)), "weights": np.zeros((0, q)), "offset": np.zeros(q)}
        ones = dict.fromkeys(("unit", "share", "density"), 1.0)
        return cls.of(names=[], means=no_names, rows=no_rows, **arrays, **ones)

    def products_with(self, X: Floats) -> Similarity:
        """Return the inner products of rows (b, s) with the landmarks; NaN is replaced by the mean.

        They are estimated from the available variables, which are all of them if `share` is 1.
        """
        centred = X - self.means
        centred[np.isnan(centred)] = 0.0
        centred /= self.unit
        return Similarity(
            centred @ self.values.T / self.share,
            np.einsum("ij,ij->i", centred, centred) / self.share,
            self.squares / self.share,
            self.unit * self.unit,
            self.density,
        )

    def rotated(self, rotation: Floats) -> Self:
        """Return landmarks whose components are z @ rotation."""
        return self._replace(weights=self.weights @ rotation, offset=self.offset @ rotation)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        state = self._asdict()
        del state["squares"]
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any], q: int) -> Self:
        """Return the landmarks in a file, for q components, if its parts are consistent."""
        numbers, arrays = ("unit", "share", "density"), ("means", "values", "weights", "offset")
        expect(state, names=NamesKind(), **dict.fromkeys(numbers, FloatKind(sys.float_info.min)))
        s, m = len(state["names"]), length_in(state, "rows")
        expect(state, rows=ArrayKind((m,), np.int64, minimum=0))
        expect_shapes(state, means=(s,), values=(m, s), weights=(m, q), offset=(q,))
        found = cls.of(**{name: state[name] for name in ("names", "rows", *numbers, *arrays)})
        expect_bounded("landmarks", *(getattr(found, name) for name in arrays), found.squares)
        expect_between("shares", np.array([found.share, found.density]), 1e-12, 1.01)
        return found


# Largest relative difference between the two weights of an edge.
_SYMMETRY_RTOL = 1e-12


class NeighborGraph(State):
    """An undirected weighted graph of the observations.

    Parameters
    ----------
    A
        (n, n) weights of the edges: symmetric, non-negative, 0 without an edge.
    """

    changing = ()

    def __init__(self, A: csr_array) -> None:
        self.A = A

    @classmethod
    def from_adjacency(cls, adjacency: Any) -> NeighborGraph:
        """Return the graph of an adjacency matrix, dense or sparse; the diagonal is ignored.

        Raises
        ------
        ValueError, TypeError
            For a matrix that is not numeric, square, symmetric and finite, has negative weights, or
            has fewer than two observations.
        """
        matrix = adjacency if issparse(adjacency) else as_array(adjacency, "weights of edges")
        if issparse(matrix):
            expect_consistent_sparse(matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
            raise _unfit(f"shape {matrix.shape}")
        if matrix.dtype.kind not in "biuf":
            raise TypeError(f"Expected numeric edge weights. Got: dtype {matrix.dtype}.")
        A = csr_array(matrix, dtype=np.float64)
        A.sum_duplicates()
        if not np.isfinite(A.data).all():
            raise _unfit("weights that are not finite")
        if (A.data < 0.0).any():
            raise _unfit(f"a weight of {A.data.min()}")
        largest = A.data.max(initial=0.0)
        if np.abs((A - A.T).data).max(initial=0.0) > _SYMMETRY_RTOL * largest:
            raise _unfit("an asymmetric matrix")
        A = 0.5 * (A + A.T)
        A.setdiag(0.0)
        A.eliminate_zeros()
        A.sort_indices()
        return cls(A)

    @property
    def n(self) -> int:
        """Number of observations."""
        return int(self.A.shape[0])

    def same_as(self, other: NeighborGraph) -> bool:
        """Whether another graph is equal to this one."""
        return self.n == other.n and not (self.A != other.A).nnz

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state as arrays: the edges of the upper triangle."""
        edges = self.A.tocoo()
        above = edges.row < edges.col
        parts = {"row": edges.row, "column": edges.col, "weight": edges.data}
        return {"n": self.n} | {name: part[above] for name, part in parts.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`."""
        expect(state, n=CountKind(2))
        n, size = state["n"], length_in(state, "weight")
        expect(state, weight=ArrayKind((size,), minimum=0.0))
        for name in ("row", "column"):
            if state[name].dtype not in (np.int32, np.int64):
                raise ValueError(
                    f"Expected integer indices of a graph's edges. Got: {state[name].dtype}."
                )
            expect(state, **{name: ArrayKind((size,), state[name].dtype.type, minimum=0, below=n)})
        rows, columns, weights = (state[name] for name in ("row", "column", "weight"))
        ends = np.concatenate([rows, columns]), np.concatenate([columns, rows])
        both = np.concatenate([weights, weights])
        self.A = NeighborGraph.from_adjacency(csr_array((both, ends), shape=(n, n))).A


def _unfit(got: str) -> ValueError:
    return ValueError(
        "Expected a symmetric (n, n) matrix of non-negative weights, n at least 2. Got: "
        f"{got}.\nHint: (A + A.T) / 2 is symmetric; scipy.sparse matrices are accepted."
    )
