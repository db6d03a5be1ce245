"""Observation weights: columns are transformed so that unweighted formulas are exact.

With w of mean 1, s = √w, and H the reflection that maps s / √n to 1 / √n in every row, a column x
becomes x' = H(s ∘ x). Then x' has the weighted mean of x, and ⟨x' - mean, y' - mean⟩ is Σ w (x -
x̄)(y - ȳ): every method that only uses means and inner products is exact under weights without
change.
"""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.weighting import PADDING, rotate_weighted
from streamsel._utils.numeric import two_sum
from streamsel.serialization.schema import ArrayKind, expect

Floats = NDArray[np.float64]

# Range of non-zero weights, so that squares and ratios do not overflow.
_MIN_WEIGHT, _MAX_WEIGHT = 1e-100, 1e100


class ObservationWeights:
    """Observation weights, and the transformation of columns that applies them.

    Parameters
    ----------
    w
        (n,) weights of mean 1, not all equal.

    Attributes
    ----------
    n
        Number of observations.
    effective_rows
        Effective number of observations of equal weight, (Σw)² / Σw² (Kish 1965).
    row_weights
        The weights.
    """

    by_column = False

    def __init__(self, w: Floats) -> None:
        self.row_weights, self.n = w, w.size
        self.effective_rows = float(w.sum() ** 2 / (w @ w))
        self._root = np.sqrt(w)
        difference = self._root - 1.0
        # Hx = x - (x·v) v.
        self._v: Floats = difference * np.sqrt(2.0 / (difference @ difference))
        # A row of positive weight, whose value approximates the mean.
        self._shift_row = int(w.argmax())

    @classmethod
    def of(cls, weights: Any, n: int) -> ObservationWeights | None:
        """Return weights of n observations; None if all are equal.

        Raises
        ------
        ValueError, TypeError
            For another length, values that are not numbers, negative or not finite, and fewer than
            two above 0.
        """
        w = _numbers(weights, n)
        if np.count_nonzero(w) < 2:
            raise ValueError(
                f"Expected weights above zero in at least two rows. Got: {np.count_nonzero(w)}."
            )
        w /= w.max()
        w /= w.mean()
        return None if (w == w[0]).all() or np.square(np.sqrt(w) - 1.0).sum() == 0.0 else cls(w)

    def transform(
        self,
        X: NDArray[Any],
        names: Sequence[Hashable] = (),  # noqa: ARG002
        n_jobs: int = 1,  # noqa: ARG002
    ) -> tuple[Floats, Floats, Floats]:
        """Return columns X (b, n), one per row, transformed and centred.

        Returns
        -------
        (b, n) the columns, of mean 0 up to rounding, (b,) their weighted means, and the rounding
        errors of these.
        """
        # One type and layout, so that the kernel is compiled once.
        X = np.ascontiguousarray(X).view()
        X.flags.writeable = False
        out = np.empty(PADDING + X.size)[PADDING:].reshape(X.shape)
        shift, mean = np.empty(len(X)), np.empty(len(X))
        rotate_weighted(X, self._shift_row, self._root, self._v, out, shift, mean)
        with np.errstate(all="ignore"):
            return out, *two_sum(shift, mean)

    def reflect(self, rows: Floats) -> Floats:
        """Return rows (..., n) reflected: transformed columns become weighted residuals.

        These are the centred columns times the square roots of the weights. It is its own inverse.
        """
        found: Floats = rows - (rows @ self._v)[..., None] * self._v
        return found

    def inverse_transform(self, Z: Floats) -> Floats:
        """Return transformed and centred columns (n, k) on the original scale.

        NaN for observations of weight 0, whose values are not known.
        """
        Z = Z - self._v[:, None] * (self._v @ Z)
        has_weight = self._root > 0.0
        found: Floats = np.full(Z.shape, np.nan)
        found[has_weight] = Z[has_weight] / self._root[has_weight, None]
        return found

    def observations(
        self,
        X: Floats,
        transformed: Floats,  # noqa: ARG002
        mean: Floats,  # noqa: ARG002
        names: Sequence[Hashable],  # noqa: ARG002
    ) -> Floats:
        """Return columns X (b, n), with 0 for observations of weight 0."""
        X[:, self.row_weights == 0.0] = 0.0
        return X

    def to_state(self) -> dict[str, Any]:
        """Return the weights for a file."""
        return {"target_weights": self.row_weights}

    @classmethod
    def from_state(cls, state: dict[str, Any], n: int) -> Self:
        """Return the weights that `to_state` saved."""
        expect(state, target_weights=ArrayKind((n,), minimum=0.0))
        w = np.array(state["target_weights"])
        if np.count_nonzero(w) < 2 or (w == w[0]).all() or not abs(w.mean() - 1.0) < 1e-9:
            raise ValueError("Expected unequal weights of mean 1. Got: others.")
        return cls(w)

    def same_as(self, other: object) -> bool:
        """Whether another transformation has the same weights."""
        return isinstance(other, ObservationWeights) and bool(
            np.array_equal(self.row_weights, other.row_weights)
        )


def weight_of_row(w: Any) -> float:
    """Return the weight of a row as a float; raise ValueError or TypeError if invalid."""
    if not isinstance(w, numbers.Real):
        raise TypeError(f"Expected a number as the weight of a row. Got: {w!r:.60}.")
    weight = float(w)
    if not (weight == 0.0 or _MIN_WEIGHT <= weight <= _MAX_WEIGHT):
        raise _bad_weight(w)
    return weight


def weights_of_rows(w: Any, n: int) -> Floats | None:
    """Return the weights of n rows, (n,), from a number or an array; None if all are 1."""
    if isinstance(w, numbers.Real):
        weight = weight_of_row(w)
        return None if weight == 1.0 else np.full(n, weight)
    found = _numbers(w, n)
    return None if (found == 1.0).all() else found


def _numbers(weights: Any, n: int) -> Floats:
    """Return n valid weights, (n,), not normalised."""
    try:
        w = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"Expected weights that are numbers, one per observation. Got: {weights!r:.60}."
        ) from None
    if w.shape != (n,):
        raise ValueError(
            f"Expected weights of shape ({n},), one per observation. Got: shape {w.shape}."
        )
    bad = np.flatnonzero(~((w == 0.0) | ((w >= _MIN_WEIGHT) & (w <= _MAX_WEIGHT))))
    if bad.size:
        raise _bad_weight(w[bad[0]], int(bad[0]))
    return w


def _bad_weight(w: Any, row: int | None = None) -> ValueError:
    where = "" if row is None else f" in row {row}"
    return ValueError(
        f"Expected weights that are 0, or from 1e-100 to 1e100. Got: {w}{where}.\n"
        "Hint: weight 0 excludes a row."
    )
