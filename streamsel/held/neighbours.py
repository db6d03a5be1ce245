"""A neighbour graph of the observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from streamsel.held.part import Part
from streamsel.plain import array_of
from streamsel.shapes import Array, Count, expect, rows_of
from streamsel.sparse import expect_whole

# Largest relative difference between the two weights of an edge.
_SYMMETRY_RTOL = 1e-12


class Graph(Part):
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
    def of(cls, adjacency: Any) -> Graph:
        """Return the graph of an adjacency matrix, dense or sparse; the diagonal is ignored.

        Raises
        ------
        ValueError, TypeError
            For a matrix that is not numeric, square, symmetric and finite, has negative weights, or
            has fewer than two observations.
        """
        matrix = adjacency if issparse(adjacency) else array_of(adjacency, "weights of edges")
        if issparse(matrix):
            expect_whole(matrix)
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

    def same_as(self, other: Graph) -> bool:
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
        expect(state, n=Count(2))
        n, size = state["n"], rows_of(state, "weight")
        expect(state, weight=Array((size,), least=0.0))
        for name in ("row", "column"):
            if state[name].dtype not in (np.int32, np.int64):
                raise ValueError(
                    f"Expected integer indices of a graph's edges. Got: {state[name].dtype}."
                )
            expect(state, **{name: Array((size,), state[name].dtype.type, least=0, below=n)})
        rows, columns, weights = (state[name] for name in ("row", "column", "weight"))
        ends = np.concatenate([rows, columns]), np.concatenate([columns, rows])
        both = np.concatenate([weights, weights])
        self.A = Graph.of(csr_array((both, ends), shape=(n, n))).A


def _unfit(got: str) -> ValueError:
    return ValueError(
        "Expected a symmetric (n, n) matrix of non-negative weights, n at least 2. Got: "
        f"{got}.\nHint: (A + A.T) / 2 is symmetric; scipy.sparse matrices are accepted."
    )
