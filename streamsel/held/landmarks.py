"""Landmarks: learnt rows that are kept to compare new rows with."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any, NamedTuple, Self

import numpy as np

from streamsel.held.part import Floats, Places
from streamsel.held.possible import expect_between, expect_bounded
from streamsel.shapes import Array, Names, Number, expect, expect_shapes, rows_of


class Likeness(NamedTuple):
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
        The share of the learnt rows that the others are.
    """

    products: Floats
    squares: Floats
    others: Floats
    variance: float
    density: float = 1.0

    def with_others(self, places: Places) -> Self:
        """Return the inner products with a subset of the others."""
        density = places.size / self.others.size
        some = self.products[:, places], self.others[places]
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
        The share of that variance that these variables have.
    density
        The share of the learnt rows that are landmarks.
    squares
        (m,) squared lengths of the landmarks.
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
        """Return landmarks, computing `squares`."""
        values = fields["values"]
        return cls(squares=np.einsum("ij,ij->i", values, values), **fields)

    @classmethod
    def none(cls, q: int) -> Self:
        """Return landmarks that map every row to zeros."""
        no_names, no_rows = np.zeros(0), np.zeros(0, np.intp)
        arrays = {"values": np.zeros((0, 0)), "weights": np.zeros((0, q)), "offset": np.zeros(q)}
        ones = dict.fromkeys(("unit", "share", "density"), 1.0)
        return cls.of(names=[], means=no_names, rows=no_rows, **arrays, **ones)

    def compared(self, X: Floats) -> Likeness:
        """Return the inner products of rows (b, s) with the landmarks; NaN is replaced by the mean.

        They are estimated from the available variables, which are all of them if `share` is 1.
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
        """Return landmarks whose components are z @ turn."""
        return self._replace(weights=self.weights @ turn, offset=self.offset @ turn)

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
        expect(state, names=Names(), **dict.fromkeys(numbers, Number(sys.float_info.min)))
        s, m = len(state["names"]), rows_of(state, "rows")
        expect(state, rows=Array((m,), np.int64, least=0))
        expect_shapes(state, means=(s,), values=(m, s), weights=(m, q), offset=(q,))
        found = cls.of(**{name: state[name] for name in ("names", "rows", *numbers, *arrays)})
        expect_bounded("landmarks", *(getattr(found, name) for name in arrays), found.squares)
        expect_between("shares", np.array([found.share, found.density]), 1e-12, 1.01)
        return found
