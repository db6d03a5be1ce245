"""Which of the variables held say nearly the same as some of them."""

from __future__ import annotations

import numpy as np

from streamsel.held.common import Common
from streamsel.held.part import Floats, Held, Places
from streamsel.held.pool import SamplePool

# From which correlation on one variable could as well stand for another.
_ALIKE = 0.8
# So many variables are compared with one another.
_MOST = 1000
# So many numbers are looked at at once.
_AT_ONCE = 1 << 20


def alike(held: Held, chosen: Places) -> list[tuple[Places, Floats]] | None:
    """Return, for each variable chosen, which others are like it, the most alike first.

    Returns
    -------
    Their places, and their correlations, of which no size is below .8. None where it is not held
    how variables vary with one another, or nothing is held but what was chosen of more.
    """
    if not isinstance(held, SamplePool | Common):
        return None
    others = np.setdiff1d(np.arange(len(held.names)), chosen)
    if not others.size and not held.complete:
        return None
    found, step = [], max(1, _AT_ONCE // max(1, len(held.names)))
    for start in range(0, chosen.size, step):
        correlations = np.clip(held.products(chosen[start : start + step])[others], -1.0, 1.0)
        for r in correlations.T:
            near = np.flatnonzero(np.abs(r) >= _ALIKE)
            near = near[np.argsort(-np.abs(r[near]), kind="stable")]
            found.append((others[near], r[near]))
    return found


def count_near_duplicates(held: Held, picked: Places) -> int | None:
    """Return how many variables correlate highly with an earlier one of these.

    None where correlations are not known, and of too many variables.
    """
    if not isinstance(held, SamplePool | Common) or picked.size > _MOST:
        return None
    R = np.abs(held.products(picked)[picked])
    return int((np.tril(R, -1).max(axis=1, initial=0.0) >= _ALIKE).sum())
