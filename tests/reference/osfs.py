"""OSFS and Fast-OSFS by definition: all small subsets of the other variables, by least squares."""

from itertools import combinations

import numpy as np

from tests.reference import target as targets
from tests.reference.independence import correlation, is_independent, p_value, space


def answer(
    X, y, *, alpha=0.01, max_conditioning_set=3, fast=True, max_candidates=None, target_type="auto",
    **ignored,
):  # fmt: skip
    """Return the selected columns, in order, their relevances and p-values."""
    X, U = np.asarray(X, dtype=np.float64), space(y, target_type)
    units, kept = {}, []

    def separated(j, others, also=()):
        """Return whether j is independent given all of `also` and at most the allowed others."""
        others = [k for k in others if k not in (j, *also)]
        return any(
            is_independent(units[j], U, [units[k] for k in (*also, *subset)], alpha)
            for size in range(1 - len(also), max_conditioning_set + 1 - len(also))
            for subset in combinations(others, size)
        )

    for j, x in enumerate(X.T):
        if len(kept) == max_candidates:
            break
        if np.ptp(x) == 0:
            continue
        units[j] = targets.unit(targets.centred(x))
        if is_independent(units[j], U, [], alpha) in (True, None):
            continue
        if not fast:
            kept.append(j)
            for k in list(kept):  # the new column last
                if separated(k, kept):
                    kept.remove(k)
        elif not separated(j, kept):
            kept.append(j)
            for k in kept[:-1]:
                if separated(k, kept, (j,)):
                    kept.remove(k)
    found = {j: correlation(units[j], U) for j in kept}
    return {
        "selected": kept,
        "scores": found,
        "relevance": found,
        "p_values": {j: p_value(rho, *U.shape) for j, rho in found.items()},
        "rounds": dict.fromkeys(kept, 0),
    }
