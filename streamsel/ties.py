"""What counts as equal, and who goes first then."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Relevances that differ by less are equal: rounding must not decide.
TIE = 1e-12


def most_relevant_first(relevance: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the places of relevances, in descending order; among equals the first goes first."""
    # Constant variables have -inf, which has no differences.
    relevance = np.maximum(relevance, -2.0)
    order = np.argsort(-relevance)
    falls = np.diff(relevance[order], prepend=relevance[order[:1]]) < -TIE
    # Both sorts are of one number a place, which NumPy does at several at a time.
    places = np.sort(np.cumsum(falls) * order.size + order)
    return places % max(1, order.size)
