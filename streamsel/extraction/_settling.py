"""Refinement of the leading axes, and of Krylov vectors of the target, in additional passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel.held.gram_columns import GramColumns
from streamsel.held.part import Floats
from streamsel.held.ritz import Product, Ritz, new_directions
from streamsel.held.same import unlike_before
from streamsel.held.subspace import Subspace
from streamsel.stream import ColumnStream

# A new direction shorter than this part of the images is rounding.
_ZERO_TOL = 1e-10
# Maximum number of passes.
_MAX_PASSES = 12


class Settling:
    """Subspace refinement: vectors to multiply by the Gram matrix K in additional passes.

    Each pass computes two products: K times the block that improves the leading axes, and K times
    the image of the target from the previous pass, K² U after K U and so on. Partial least squares
    depends on these powers alone, so q components are exact after q - 1 passes.

    Parameters
    ----------
    held
        The state after the first pass.
    q
        The number of components.
    """

    def __init__(self, held: GramColumns, q: int) -> None:
        assert isinstance(held.gram, Subspace)  # noqa: S101
        self.held, self.q, self.n_readings = held, q, 0
        d, E = held.gram.axes(held.given)
        axes = (E * np.sqrt(d))[:, : held.gram.rank]
        self._ritz = Ritz(axes, held.gram.rank, q)
        self._V, images = held.gram.towards()
        self._images = held.left_of(images)
        self._n_powers = 1
        self._next = self._power(self._images)

    def _power(self, images: Floats) -> Floats:
        """Return the new directions of the last power, to be multiplied; none after q powers."""
        if self._n_powers >= self.q:
            return images[:, :0]
        tolerance = _ZERO_TOL * np.linalg.norm(self._images, axis=0).max(initial=0.0)
        return new_directions(images, self._V, tolerance)

    @property
    def done(self) -> bool:
        """Whether nothing is left to compute, or the maximum number of passes is reached."""
        return self.n_readings >= _MAX_PASSES or (self._ritz.settled and not self._next.size)

    @property
    def asked(self) -> Floats:
        """The vectors that the next pass multiplies by K, (n, b)."""
        axes = self._ritz.asked[:, :0] if self._ritz.settled else self._ritz.asked
        return np.hstack([axes, self._next])

    def take(self, product: Floats) -> None:
        """Accept K times the requested vectors, (n, b)."""
        self.n_readings += 1
        product = self.held.left_of(product)
        b = product.shape[1] - self._next.shape[1]
        if b:
            self._ritz.take(product[:, :b])
        images = product[:, b:]
        self._V = np.hstack([self._V, self._next])
        self._images = np.hstack([self._images, images])
        self._n_powers += 1
        self._next = self._power(images)

    def settle(self) -> None:
        """Write the axes and images into the state."""
        self.held.settle(self._ritz.axes, self._V, self._images)


class SettlingFound:
    """Products of K with vectors, for the columns of one part.

    Attributes
    ----------
    n_read
        Number of columns read.
    product
        (n, b) K times the vectors, K of these columns.
    total
        Sum of their squares.
    """

    def __init__(self, product: Floats, n_read: int, total: float) -> None:
        self.product, self.n_read, self.total = product, n_read, total

    def merge(self, other: SettlingFound) -> None:
        """Add the result for the columns that come directly after."""
        self.product = self.product + other.product
        self.n_read += other.n_read
        self.total += other.total

    def expect_all(self, n_columns: int, total: float) -> None:
        """Raise ValueError unless these are `n_columns` columns with this sum of squares."""
        if self.n_read != n_columns:
            raise unlike_before(f"{self.n_read} columns, after {n_columns}")
        if not np.isclose(self.total, total, rtol=1e-6, atol=0.0):
            raise unlike_before("columns of other values")


class SettlingReading:
    """A pass over columns that multiplies vectors by their Gram matrix.

    Parameters
    ----------
    model
        An empty model with the same parameters and target.
    asked
        (n, b) the vectors.
    """

    def __init__(self, model: Any, asked: Floats) -> None:
        self._model, self._asked = model, asked

    def read(self, stream: ColumnStream, arrival: int = 0) -> SettlingFound:
        """Return the product for the columns of a part; `arrival` is unused."""
        del arrival
        held: GramColumns = self._model._new_columns(len(self._asked))
        product, n_read, total = Product(self._asked, self._model.n_jobs), 0, 0.0
        for chunk, stats in self._model._scanned(stream):
            squares = np.square(held.weights(stats))
            product.add(chunk, stats, squares)
            n_read += stats.m2.size
            total += float(squares[:, 0] @ held.left(stats))
        return SettlingFound(product.found(), n_read, total)
