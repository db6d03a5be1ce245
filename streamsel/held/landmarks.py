"""Landmarks: rows that were learnt and are kept, for new ones to be compared with."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any, NamedTuple, Self

import numpy as np

from streamsel.held.part import Floats, Places
from streamsel.held.possible import expect_between, expect_bounded
from streamsel.shapes import Array, Names, Number, expect, expect_shapes, rows_of


class Likeness(NamedTuple):
    """What tells how alike rows are to others, in units of the total variance.

    Parameters
    ----------
    products
        (b, m) inner products of b rows with m others.
    squares, others
        (b,) and (m,) their own.
    variance
        The total variance.
    density
        What part of the rows learnt the others are.
    """

    products: Floats
    squares: Floats
    others: Floats
    variance: float
    density: float = 1.0

    def with_others(self, places: Places) -> Self:
        """Return how alike the same rows are to some of the others."""
        density = places.size / self.others.size
        some = self.products[:, places], self.others[places]
        return self._replace(products=some[0], others=some[1], density=density)

    def distances(self) -> Floats:
        """Return squared distances, (b, m)."""
        found = self.squares[:, None] + self.others - 2.0 * self.products
        return np.maximum(found, 0.0, out=found)


class Landmarks(NamedTuple):
    """What a row is compared with, and what comes of it: z = alike(x, values) @ weights + offset.

    Parameters
    ----------
    names, means
        s variables, and what is taken off each (s,).
    rows, values
        Which of the rows learnt are landmarks (m,), and their values (m, s), centred and divided by
        `unit`.
    weights, offset
        (m, q) and (q,).
    unit
        The root of the total variance of all columns.
    share
        What part of it these variables have.
    density
        What part of the rows learnt are landmarks.
    squares
        (m,) inner products of the landmarks with themselves.
    """

    names: list[Hashable]
    means: Floats
    rows: Places
    values: Floats
    weights: Floats
    offset: Floats
    unit: float
    share: float
    density: float
    squares: Floats

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """Return landmarks, of all but their squares."""
        values = fields["values"]
        return cls(squares=np.einsum("ij,ij->i", values, values), **fields)

    @classmethod
    def none(cls, q: int) -> Self:
        """Return what makes nothing of any row."""
        none, no_rows = np.zeros(0), np.zeros(0, np.intp)
        void = {"values": np.zeros((0, 0)), "weights": np.zeros((0, q)), "offset": np.zeros(q)}
        ones = dict.fromkeys(("unit", "share", "density"), 1.0)
        return cls.of(names=[], means=none, rows=no_rows, **void, **ones)

    def compared(self, X: Floats) -> Likeness:
        """Return how alike rows, (b, s), are to the landmarks; NaN is as the mean.

        Inner products are estimated from the variables that are at hand: all of them, if `share` is
        1.
        """
        centred = X - self.means
        centred[np.isnan(centred)] = 0.0
        centred /= self.unit
        return Likeness(
            centred @ self.values.T / self.share,
            np.einsum("ij,ij->i", centred, centred) / self.share,
            self.squares / self.share,
            self.unit * self.unit,
            self.density,
        )

    def turned(self, turn: Floats) -> Self:
        """Return what gives z @ turn."""
        return self._replace(weights=self.weights @ turn, offset=self.offset @ turn)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        state = self._asdict()
        del state["squares"]
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any], q: int) -> Self:
        """Return what a file says, if it fits together, for q components."""
        parts, arrays = ("unit", "share", "density"), ("means", "values", "weights", "offset")
        expect(state, names=Names(), **dict.fromkeys(parts, Number(sys.float_info.min)))
        s, m = len(state["names"]), rows_of(state, "rows")
        expect(state, rows=Array((m,), np.int64, least=0))
        expect_shapes(state, means=(s,), values=(m, s), weights=(m, q), offset=(q,))
        found = cls.of(**{name: state[name] for name in ("names", "rows", *parts, *arrays)})
        expect_bounded("landmarks", *(getattr(found, name) for name in arrays), found.squares)
        expect_between("shares", np.array([found.share, found.density]), 1e-12, 1.01)
        return found
