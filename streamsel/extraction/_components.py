"""Rotated components and everything that turns with them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.relevance import join, rotate_and_drop, take_up
from streamsel.columns import Stats
from streamsel.shapes import expect_shapes
from streamsel.table import Table
from streamsel.ties import TIE

Floats = NDArray[np.float64]

# A rotated component with less than this part of the pair's smaller variance has none.
VANISHED = 1e-14


class Components:
    """Components, their loadings and their moments, all rotated together in closed form.

    Parameters
    ----------
    size
        Most components held at once.
    n, c
        Rows, and target columns.

    Attributes
    ----------
    count
        Components held; they stand in the first slots of every array.
    Z
        (size, n) scores of the training rows, the paper's z_k.
    Mzz, Czy
        (size, size) sums of products of the components, (size, c) of them with the target.
    relevance
        (size,) of each with the target.
    support
        Variables with a loading: their moments, as in `columns.Stats`, and `B`, their rows of the
        paper's B, (size,) each.
    """

    def __init__(self, size: int, n: int, c: int) -> None:
        self.count = 0
        self.Z: Floats = np.zeros((size, n))
        self.Mzz: Floats = np.zeros((size, size))
        self.Czy: Floats = np.zeros((size, c))
        self.relevance: Floats = np.zeros(size)
        self.support = Table({"mean": (), "low": (), "m2": (), "cxy": (c,), "B": (size,)})

    @property
    def size(self) -> int:
        """Number of slots."""
        return len(self.Z)

    def moments_of_support(self) -> Stats:
        """Return the moments of the variables of the support."""
        return Stats(*(self.support[field] for field in Stats._fields))

    def join(self, x: Floats, mean: float, m2: float, cxy: Floats, relevance: float) -> None:
        """Make a variable of these values and moments the last component, without loadings yet."""
        join(self.Z, self.Mzz, self.Czy, x, mean, m2, cxy, self.count)
        self.relevance[self.count] = relevance
        self.count += 1

    def take_up(
        self,
        name: Hashable,
        x: Floats,
        moments: tuple[float, float, float, Floats],
        relevance: float,
        weights: Floats,
        *,
        jacobi: bool,
        signed: bool,
    ) -> float:
        """Let a variable join, with loading 1 on itself, and drop a component if all slots fill.

        Parameters
        ----------
        name, x, moments, relevance
            The variable: its values (n,), not centred, its moments, and its relevance.
        weights, jacobi, signed
            As in `rotate_and_drop`.

        Returns
        -------
        The least relevance of the components.
        """
        support = self.support
        support.make_room(1)
        mean, low, m2, cxy = moments
        self.count, unloaded, least = take_up(
            *(self.Z, self.Mzz, self.Czy, support.with_room("B"), support.with_room("mean")),
            *(self.relevance, self.count, len(support), x, mean, m2, cxy, relevance, self.size - 1),
            *(weights, jacobi, signed, TIE, VANISHED),
        )
        for field, value in (("low", low), ("m2", m2), ("cxy", cxy)):
            support.with_room(field)[len(support)] = value
        support.claim((name,))
        if unloaded:
            self._forget_unloaded()
        return float(least)

    def rotate_and_drop(self, weights: Floats, *, jacobi: bool, signed: bool) -> None:
        """Rotate the two least relevant components and drop the lesser (section 2.2 of the paper).

        The survivor stays in the lower slot and the last component takes the other, so that no
        third one changes its slot: what stands behind the model in a pipeline sees the same
        variable under the same name.

        Parameters
        ----------
        weights
            Of the target space.
        jacobi
            Whether to decorrelate exactly.
        signed
            Whether relevance has a sign.
        """
        arrays = (self.Z, self.Mzz, self.Czy, self.support["B"], self.relevance)
        unloaded = rotate_and_drop(*arrays, self.count, weights, jacobi, signed, TIE, VANISHED)
        self.count -= 1
        if unloaded:
            self._forget_unloaded()

    def _forget_unloaded(self) -> None:
        self.support.keep(np.flatnonzero(self.support["B"].any(axis=1)))

    def resized(self, size: int) -> Components:
        """Return a copy with another number of slots, no fewer than are held."""
        n, c, m = self.Z.shape[1], self.Czy.shape[1], self.count
        other = Components(size, n, c)
        other.count = m
        other.Z[:m] = self.Z[:m]
        other.Mzz[:m, :m] = self.Mzz[:m, :m]
        other.Czy[:m] = self.Czy[:m]
        other.relevance[:m] = self.relevance[:m]
        B = np.zeros((len(self.support), size))
        B[:, :m] = self.support["B"][:, :m]
        other.support.append(self.support.slots, **self.moments_of_support()._asdict(), B=B)
        return other

    def together_with(self, other: Components) -> Components:
        """Return components of mine and the other's, from other variables, behind mine."""
        both = self.resized(self.count + other.count)
        B = np.zeros((len(other.support), both.size))
        B[:, self.count :] = other.support["B"][:, : other.count]
        both.support.append(other.support.names, **other.moments_of_support()._asdict(), B=B)
        for k in range(other.count):
            m2, relevance = float(other.Mzz[k, k]), float(other.relevance[k])
            both.join(other.Z[k], 0.0, m2, other.Czy[k], relevance)
        return both

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs."""
        m = self.count
        return {
            "Z": self.Z[:m],
            "Mzz": self.Mzz[:m, :m],
            "Czy": self.Czy[:m],
            "relevance": self.relevance[:m],
            "support": self.support.to_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned."""
        self.count = m = len(state["Z"])
        n, c = self.Z.shape[1], self.Czy.shape[1]
        expect_shapes(state, Z=(m, n), Mzz=(m, m), Czy=(m, c), relevance=(m,))
        self.Z[:m] = state["Z"]
        self.Mzz[:m, :m] = state["Mzz"]
        self.Czy[:m] = state["Czy"]
        self.relevance[:m] = state["relevance"]
        self.support = Table.from_state(state["support"], self.support.fields)
