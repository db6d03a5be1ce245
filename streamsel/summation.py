"""Sums with their rounding errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return a + b, rounded, and its rounding error (Knuth)."""
    whole = a + b
    from_b = whole - a
    return whole, (a - (whole - from_b)) + (b - from_b)
