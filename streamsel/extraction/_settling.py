"""Leading axes, and what a target asks for, until further readings change nothing."""

from __future__ import annotations

import numpy as np

from streamsel.held.gram_columns import GramColumns
from streamsel.held.part import Floats
from streamsel.held.ritz import Ritz, new_directions
from streamsel.held.subspace import Subspace

# What is new of a direction is rounding below this.
_SPENT = 1e-10


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
        self.held, self.q = held, q
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
        """Whether there is nothing left to ask for."""
        return self._ritz.settled and not self._next.size

    @property
    def asked(self) -> Floats:
        """What the next reading is to multiply, (n, b)."""
        axes = self._ritz.asked[:, :0] if self._ritz.settled else self._ritz.asked
        return np.hstack([axes, self._next])

    def take(self, product: Floats) -> None:
        """Take up K times what was asked, (n, b)."""
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
