"""The Gram matrix of all columns, and beside it a pool of some of them."""

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
    """All columns, as observations see them; and some of them, as rows will.

    The matrix knows how observations are alike over all columns, and no column; the pool knows
    columns, of which new rows can be made. Who is in the pool another state says, which this one
    stands before.

    Attributes
    ----------
    gram
        The matrices, one or several, or the leading axes of one.
    varying
        How many columns vary, beside the covariates too.
    loadings
        Those of all columns, or of the largest: from a second reading, for as long as no further
        column comes.
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
        """Return what centred columns are multiplied by, (b, q); 0 for what does not vary."""

    @property
    def indifferent_below(self) -> float:
        """Below which relevance a column changes nothing: none, for all columns count."""
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
        """Return about how many bytes this state takes once it has seen p columns."""
        # The matrix, and a copy that is decomposed.
        return super().bytes_for(p) + 16 * self.n * self.n

    def left(self, stats: Stats) -> Floats:
        """Return what the covariates leave of the sums of squares of columns."""
        return stats.m2 if self._space is None else self._space.left(stats.m2, stats.cxy)

    def merge(self, other: Self, arrived: int) -> None:
        """Take in all candidates of another pool, as arrived after so many columns."""
        super().merge(other, arrived)
        self.loadings = None
        self.varying += other.varying
        self.gram.merge(other.gram)  # type: ignore[arg-type]

    def take(self, loadings: Loadings) -> None:
        """Take up what a second reading found."""
        self._changes()
        self.loadings = loadings

    def matrix(self, which: int = 0) -> Floats:
        """Return the inner products of the observations, (n, n), without the covariates."""
        assert isinstance(self.gram, Gram)  # noqa: S101
        K = self.gram.matrix(which)
        if self.given is not None:
            K = K - self.given.T @ (self.given @ K)
            K = K - (K @ self.given.T) @ self.given
        return K

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
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
        """Return what a file needs: arrays, and values that JSON can hold."""
        state = super().to_state() | {"gram": self.gram.to_state(), "varying": self.varying}
        return state if self.loadings is None else state | {"loadings": self.loadings._asdict()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        super().set_state(state)
        expect(state, varying=Count())
        self.gram.set_state(state["gram"])
        self.varying = state["varying"]
        self.loadings = Loadings.from_state(state["loadings"]) if "loadings" in state else None
