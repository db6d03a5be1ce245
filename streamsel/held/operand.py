"""Buffered columns as a factor of matrix products: dense, or sparse as stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from streamsel.held.part import Floats
from streamsel.held.waiting import Stored
from streamsel.threads import effective_jobs, in_threads

# Rows of a tall matrix that are multiplied at once, whatever the number of threads.
_PIECE = 4096


class Operand(Protocol):
    """A matrix of centred columns X̃, (n, b), as a factor of products."""

    def onto(self, V: Floats) -> Floats:
        """Return X̃ᵀV, (b, k), for V (n, k)."""

    def along(self, W: Floats) -> Floats:
        """Return X̃W, (n, k), for W (b, k)."""

    def own(self) -> Floats:
        """Return X̃ᵀX̃, (b, b)."""


class Dense:
    """Columns that are already centred, one per row.

    Parameters
    ----------
    X
        (b, n), its rows contiguous.
    n_jobs
        Number of threads; the bits do not depend on it.
    """

    def __init__(self, X: Floats, n_jobs: int) -> None:
        self.X, self.n_jobs = X, n_jobs

    def onto(self, V: Floats) -> Floats:
        """Return X̃ᵀV, (b, k), for V (n, k)."""
        return sum_over_rows(lambda part: self.X[:, part] @ V[part], len(V), self.n_jobs)

    def along(self, W: Floats) -> Floats:
        """Return X̃W, (n, k), for W (b, k)."""
        out = np.empty((self.X.shape[1], W.shape[1]))

        def fill(part: slice) -> None:
            np.matmul(self.X[:, part].T, W, out=out[part])

        over_rows(fill, len(out), self.n_jobs)
        return out

    def own(self) -> Floats:
        """Return X̃ᵀX̃, (b, b)."""
        X = self.X
        return sum_over_rows(lambda part: X[:, part] @ X[:, part].T, X.shape[1], self.n_jobs)


class Sparse:
    """Columns x as stored, which are never centred: x̃ = x - m1, m the mean of x.

    Parameters
    ----------
    stored
        The columns, of one weighting.
    n
        Number of observations.
    """

    def __init__(self, stored: Stored, n: int) -> None:
        from scipy.sparse import csr_array

        b = stored.means.size
        self.n, self.means = n, stored.means
        # Columns of a CSC matrix are the rows of its transpose as CSR.
        self.XT = csr_array((stored.values, stored.rows, stored.ends), shape=(b, n))

    def onto(self, V: Floats) -> Floats:
        """Return X̃ᵀV, (b, k), for V (n, k)."""
        products: Floats = self.XT @ V
        products -= np.outer(self.means, V.sum(axis=0))
        return products

    def along(self, W: Floats) -> Floats:
        """Return X̃W, (n, k), for W (b, k)."""
        products: Floats = self.XT.T @ W
        products -= self.means @ W
        return products

    def own(self) -> Floats:
        """Return X̃ᵀX̃, (b, b)."""
        products: Floats = (self.XT @ self.XT.T).toarray()
        products -= self.n * np.outer(self.means, self.means)
        return products


def over_rows(work: Callable[[slice], None], n: int, n_jobs: int) -> None:
    """Call `work` on fixed slices of n rows, in several threads."""
    pieces = [slice(start, min(n, start + _PIECE)) for start in range(0, n, _PIECE)]
    # Each thread takes the next slice when it is done.
    remaining, n_jobs = iter(pieces), min(effective_jobs(n_jobs), len(pieces))

    def work_off(_: slice) -> None:
        for part in remaining:
            work(part)

    in_threads(work_off, n_jobs, n_jobs)


def sum_over_rows(product: Callable[[slice], Floats], n: int, n_jobs: int) -> Floats:
    """Return the sum of `product` over fixed slices of n rows, added in order."""
    products: dict[int, Floats] = {}

    def store(part: slice) -> None:
        products[part.start] = product(part)

    over_rows(store, n, n_jobs)
    total = products[0]
    for start in range(_PIECE, n, _PIECE):
        total += products[start]
    return total
