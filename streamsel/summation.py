"""Sums that keep what rounding takes away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return a + b, rounded, and what rounding took away (Knuth)."""
    whole = a + b
    mine = whole - a
    return whole, (a - (whole - mine)) + (b - mine)
