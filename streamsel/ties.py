"""Sort order under ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Relevances that differ by less are tied, so that rounding errors do not decide.
TIE = 1e-12


def most_relevant_first(relevance: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices that sort relevances in descending order; ties keep their order."""
    # Constant variables have -inf, whose differences are NaN.
    relevance = np.maximum(relevance, -2.0)
    order = np.argsort(-relevance)
    falls = np.diff(relevance[order], prepend=relevance[order[:1]]) < -TIE
    # Both sorts are of single numbers, for which NumPy uses SIMD.
    ranked = np.sort(np.cumsum(falls) * order.size + order)
    return ranked % max(1, order.size)
