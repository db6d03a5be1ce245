"""The Gram matrix of all columns, and a pool of some of them."""

from __future__ import annotations

import abc
from typing import Any, Self

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.gram import Gram
from streamsel.held.loadings import Loadings
from streamsel.held.part import Floats
from streamsel.held.pool import SamplePool
from streamsel.held.subspace import Subspace
from streamsel.shapes import Count, expect


class GramAndPool(SamplePool):
    """Gram matrix over all columns, and a pool of some of the columns.

    The matrix has the inner products of the observations over all columns, but no single column.
    The pool keeps columns, from which new rows can be computed. Another base class, which comes
    after this one, decides which columns the pool keeps.

    Attributes
    ----------
    gram
        The Gram matrix, for one or several weightings, or the leading axes of one.
    varying
        Number of columns that vary, after adjusting for covariates.
    loadings
        Loadings of all columns, or the largest ones, from a second pass; None again when another
        column arrives.
    """

    gram: Gram | Subspace
    varying: int
    loadings: Loadings | None

    def _begin_gram(self, gram: Gram | Subspace) -> None:
        self.gram = gram
        self.varying = 0
        self.loadings = None

    @abc.abstractmethod
    def weights(self, stats: Stats) -> Floats:
        """Return the factors of centred columns, (b, q); 0 for a column that does not vary."""

    @property
    def indifferent_below(self) -> float:
        """The relevance below which a column changes nothing: -inf, because all columns count."""
        return -np.inf

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int, *_: Any, **__: Any) -> None:
        """Learn the columns of a chunk, in order."""
        varying = int(np.count_nonzero(self.left(stats)))
        if not varying:
            return
        self._changes()
        super().admit(chunk, stats, first_arrival)
        self.loadings = None
        self.varying += varying
        self.gram.add(chunk, stats, np.square(self.weights(stats)))

    def bytes_for(self, p: int) -> int:
        """Return the approximate memory of this state in bytes, after p columns."""
        # The matrix, and a copy for the eigendecomposition.
        return super().bytes_for(p) + 16 * self.n * self.n

    def left(self, stats: Stats) -> Floats:
        """Return the sums of squares of columns after adjusting for the covariates."""
        return stats.m2 if self._space is None else self._space.left(stats.m2, stats.cxy)

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        super().merge(other, arrived)
        self.loadings = None
        self.varying += other.varying
        self.gram.merge(other.gram)  # type: ignore[arg-type]

    def take(self, loadings: Loadings) -> None:
        """Store the loadings that a second pass found."""
        self._changes()
        self.loadings = loadings

    def matrix(self, which: int = 0) -> Floats:
        """Return the inner products of the observations, (n, n), covariates projected out."""
        assert isinstance(self.gram, Gram)  # noqa: S101
        K = self.gram.matrix(which)
        if self.given is not None:
            K = K - self.given.T @ (self.given @ K)
            K = K - (K @ self.given.T) @ self.given
        return K

    def expect_possible(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_possible()
        self.gram.expect_possible()
        if self.loadings is not None:
            self.loadings.expect_possible()

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        return super()._copied() | {"gram": self.gram.as_of_now()}

    def _restored(self, saved: dict[str, Any]) -> dict[str, Any]:
        return super()._restored(saved) | {"gram": saved["gram"]()}

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        state = super().to_state() | {"gram": self.gram.to_state(), "varying": self.varying}
        return state if self.loadings is None else state | {"loadings": self.loadings._asdict()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        super().set_state(state)
        expect(state, varying=Count())
        self.gram.set_state(state["gram"])
        self.varying = state["varying"]
        self.loadings = Loadings.from_state(state["loadings"]) if "loadings" in state else None
