"""Leading axes, and what a target asks for, until further readings change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel.held.gram_columns import GramColumns
from streamsel.held.part import Floats
from streamsel.held.ritz import Product, Ritz, new_directions
from streamsel.held.same import unlike_before
from streamsel.held.subspace import Subspace
from streamsel.stream import ColumnStream

# What is new of a direction is rounding below this.
_SPENT = 1e-10
# So often columns are read at most.
_READINGS = 12


class Settling:
    """What columns are read again for, where the leading axes stand for their Gram matrix K.

    Two things are asked for in each reading: what makes the axes those of K, and K times what the
    reading before made of the target, K² U after K U and so on. These are what partial least
    squares is made of, so that q components are exact after q - 1 readings.

    Parameters
    ----------
    held
        What the first reading found.
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
        """Return what of the last power is to be multiplied once more: nothing after the last."""
        if self._n_powers >= self.q:
            return images[:, :0]
        least = _SPENT * np.linalg.norm(self._images, axis=0).max(initial=0.0)
        return new_directions(images, self._V, least)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to ask for, or it was asked often enough."""
        return self.n_readings >= _READINGS or (self._ritz.settled and not self._next.size)

    @property
    def asked(self) -> Floats:
        """What the next reading is to multiply, (n, b)."""
        axes = self._ritz.asked[:, :0] if self._ritz.settled else self._ritz.asked
        return np.hstack([axes, self._next])

    def take(self, product: Floats) -> None:
        """Take up K times what was asked, (n, b)."""
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
        """Hand over what was found."""
        self.held.settle(self._ritz.axes, self._V, self._images)


class SettlingFound:
    """What columns make of vectors.

    Attributes
    ----------
    n_read
        How many columns were read.
    product
        (n, b) K times the vectors, K of these columns.
    total
        The sum of their squares.
    """

    def __init__(self, product: Floats, n_read: int, total: float) -> None:
        self.product, self.n_read, self.total = product, n_read, total

    def merge(self, other: SettlingFound) -> None:
        """Take in what was found in the columns that come right after."""
        self.product = self.product + other.product
        self.n_read += other.n_read
        self.total += other.total

    def expect_all(self, n_columns: int, total: float) -> None:
        """Refuse what was not found in so many columns of such squares."""
        if self.n_read != n_columns:
            raise unlike_before(f"{self.n_read} columns, after {n_columns}")
        if not np.isclose(self.total, total, rtol=1e-6, atol=0.0):
            raise unlike_before("columns of other values")


class SettlingReading:
    """Reads columns again for what they make of some vectors.

    Parameters
    ----------
    model
        One of the same parameters and target that has learnt nothing.
    asked
        (n, b) the vectors.
    """

    def __init__(self, model: Any, asked: Floats) -> None:
        self._model, self._asked = model, asked

    def read(self, stream: ColumnStream, arrival: int = 0) -> SettlingFound:
        """Return what the columns of a part make of the vectors, whatever comes before them."""
        del arrival
        held: GramColumns = self._model._new_columns(len(self._asked))
        product, n_read, total = Product(self._asked, self._model.n_jobs), 0, 0.0
        for chunk, stats in self._model._scanned(stream):
            squares = np.square(held.weights(stats))
            product.add(chunk, stats, squares)
            n_read += stats.m2.size
            total += float(squares[:, 0] @ held.left(stats))
        return SettlingFound(product.found(), n_read, total)
