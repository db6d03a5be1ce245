"""How this package compiles: the one place that knows numba's options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

# NaN and infinity keep their meaning (no "nnan", no "ninf"): a sum over a column is how a missing
# value is noticed. Reordering additions is what lets a dot product use vector registers.
_REORDERED_SUMS = {"reassoc", "contract"}


def kernel(*, reordered_sums: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator of a compiled loop: lazy, cached on disk, without Python's lock.

    Parameters
    ----------
    reordered_sums
        Whether sums may be reordered and fused. Only for dot products, with a precision test beside
        each.
    """
    decorate: Callable[[Callable[..., Any]], Callable[..., Any]] = numba.njit(
        cache=True,
        nogil=True,
        error_model="numpy",
        fastmath=_REORDERED_SUMS if reordered_sums else False,
    )
    return decorate
