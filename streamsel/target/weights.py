"""Weights of observations: columns are scaled and turned so that equal weights see them weighted.

With w of mean 1, s = √w, and H the reflection that takes s / √n to 1 / √n in every row, a column x
becomes x' = H(s ∘ x). Then x' has the mean of x weighted, and ⟨x' - mean, y' - mean⟩ is
Σ w (x - x̄)(y - ȳ): whatever asks for means and inner products alone is exact under weights, and
knows nothing of them.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.turn import UNUSED, turn
from streamsel.shapes import Array, expect
from streamsel.summation import two_sum

Floats = NDArray[np.float64]

# A weight is 0 or lies within these, for squares and ratios of them.
_LEAST, _LARGEST = 1e-100, 1e100


class Weights:
    """How much each observation counts, relative to the others, and the turn that says so.

    Parameters
    ----------
    w
        (n,) weights of mean 1, not all equal.

    Attributes
    ----------
    n
        Number of observations.
    effective_rows
        How many of equal weight tell as much, (Σw)² / Σw² (Kish 1965).
    """

    def __init__(self, w: Floats) -> None:
        self.w, self.n = w, w.size
        self.effective_rows = float(w.sum() ** 2 / (w @ w))
        self._root = np.sqrt(w)
        apart = self._root - 1.0
        # Hx = x - (x·v) v.
        self._v: Floats = apart * np.sqrt(2.0 / (apart @ apart))
        # A row that counts, near which the mean is.
        self._near = int(w.argmax())

    @classmethod
    def of(cls, weights: Any, n: int) -> Weights | None:
        """Return weights of n observations; None where all weigh the same.

        Raises
        ------
        ValueError, TypeError
            For another length, values that are no numbers, negative or not finite, and fewer than
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

    def turned(self, X: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
        """Return columns X (b, n), one a row, turned, and what was taken from each.

        Returns
        -------
        (b, n) the columns, of mean 0 but for rounding, and (b,) their weighted means, and what
        rounding took from these.
        """
        # One type for the loop, and one layout.
        X = np.ascontiguousarray(X).view()
        X.flags.writeable = False
        out = np.empty(UNUSED + X.size)[UNUSED:].reshape(X.shape)
        near, mean = np.empty(len(X)), np.empty(len(X))
        turn(X, self._near, self._root, self._v, out, near, mean)
        with np.errstate(all="ignore"):
            return out, *two_sum(near, mean)

    def reflected(self, rows: Floats) -> Floats:
        """Return rows (..., n) reflected: those of turned columns are then the weighted residuals.

        That is of the centred columns times the roots of the weights; and the reverse.
        """
        found: Floats = rows - (rows @ self._v)[..., None] * self._v
        return found

    def back(self, Z: Floats) -> Floats:
        """Return turned and centred columns (n, k) as the observations have them.

        NaN where the weight is 0: of these observations nothing is known.
        """
        Z = Z - self._v[:, None] * (self._v @ Z)
        counts = self._root > 0.0
        found: Floats = np.full(Z.shape, np.nan)
        found[counts] = Z[counts] / self._root[counts, None]
        return found


def weight_of_row(w: Any) -> float:
    """Return the weight of a row, as a float; ValueError or TypeError where it is none."""
    if not isinstance(w, numbers.Real):
        raise TypeError(f"Expected a number as the weight of a row. Got: {w!r:.60}.")
    weight = float(w)
    if not (weight == 0.0 or _LEAST <= weight <= _LARGEST):
        raise _bad_weight(w)
    return weight


def weights_of_rows(w: Any, n: int) -> Floats | None:
    """Return the weights of n rows, (n,), of one number or one a row; None where all are 1."""
    if isinstance(w, numbers.Real):
        weight = weight_of_row(w)
        return None if weight == 1.0 else np.full(n, weight)
    found = _numbers(w, n)
    return None if (found == 1.0).all() else found


def _numbers(weights: Any, n: int) -> Floats:
    """Return n weights as they are, (n,)."""
    try:
        w = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"Expected weights that are numbers, one an observation. Got: {weights!r:.60}."
        ) from None
    if w.shape != (n,):
        raise ValueError(
            f"Expected weights of shape ({n},), one an observation. Got: shape {w.shape}."
        )
    bad = np.flatnonzero(~((w == 0.0) | ((w >= _LEAST) & (w <= _LARGEST))))
    if bad.size:
        raise _bad_weight(w[bad[0]], int(bad[0]))
    return w


def _bad_weight(w: Any, row: int | None = None) -> ValueError:
    where = "" if row is None else f" in row {row}"
    return ValueError(
        f"Expected weights that are 0, or above, from 1e-100 to 1e100. Got: {w}{where}.\n"
        "Hint: a row that is not to count has weight 0."
    )


def weights_to_state(weights: Weights | None) -> dict[str, Any]:
    """Return what a file needs; nothing where all weigh the same."""
    return {} if weights is None else {"target_weights": weights.w}


def weights_from_state(state: dict[str, Any], n: int) -> Weights | None:
    """Return the weights that `weights_to_state` described."""
    if "target_weights" not in state:
        return None
    expect(state, target_weights=Array((n,), least=0.0))
    w = np.array(state["target_weights"])
    if np.count_nonzero(w) < 2 or (w == w[0]).all() or not abs(w.mean() - 1.0) < 1e-9:
        raise ValueError("Expected weights of mean 1 that differ. Got: others.")
    return Weights(w)


def same_weights(mine: Weights | None, theirs: Weights | None) -> bool:
    """Whether two targets' observations weigh the same."""
    if mine is None or theirs is None:
        return mine is theirs
    return bool(np.array_equal(mine.w, theirs.w))
