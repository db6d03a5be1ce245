"""SAOLA by definition: all pairs of columns."""

import numpy as np

from tests.reference import target as targets
from tests.reference.independence import correlation, is_independent, p_value, space

TIE = 1e-12


def answer(
    X, y, *, alpha=0.01, delta=None, max_candidates=None, target_type="auto", **ignored,
):  # fmt: skip
    """Return the selected columns in order, their relevances and p-values."""
    X, U = np.asarray(X, dtype=np.float64), space(y, target_type)
    units, found, kept = {}, {}, []

    def makes_redundant(k, j):
        """Return whether k is more relevant, and correlates with j at least as the target does."""
        more = found[k] - found[j] > TIE or (abs(found[k] - found[j]) <= TIE and k < j)
        return more and abs(units[k] @ units[j]) >= found[j] - TIE

    for j, x in enumerate(X.T):
        if len(kept) == max_candidates:
            break
        if np.ptp(x) == 0:
            continue
        units[j] = targets.unit(targets.centred(x))
        found[j] = correlation(units[j], U)
        if delta is None:
            relevant = is_independent(units[j], U, [], alpha) is False
        else:
            relevant = found[j] > delta
        if relevant and not any(makes_redundant(k, j) for k in kept):
            kept = [k for k in kept if not makes_redundant(j, k)] + [j]
    return {
        "selected": kept,
        "scores": {j: found[j] for j in kept},
        "relevance": {j: found[j] for j in kept},
        "p_values": {j: p_value(found[j], *U.shape) for j in kept},
        "rounds": dict.fromkeys(kept, 0),
    }
