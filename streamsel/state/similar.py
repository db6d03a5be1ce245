"""Tracked variables that correlate highly with selected ones."""

from __future__ import annotations

import numpy as np

from streamsel.state.base import Floats, Indices, VariableState

# Least absolute correlation of similar variables.
_MIN_CORRELATION = 0.8
# Maximum number of variables that are compared with one another.
_MAX_COMPARED = 1000
# Correlations computed at once.
_BLOCK_SIZE = 1 << 20


def similar_to(state: VariableState, chosen: Indices) -> list[tuple[Indices, Floats]] | None:
    """Return, for each selected variable, the variables similar to it, most similar first.

    Returns
    -------
    A pair per selected variable: the indices of similar variables, and their correlations, of
    absolute value .8 or more. None if correlations are not available, or if only the selected
    variables remain of more.
    """
    if not state.has_products:
        return None
    others = np.setdiff1d(np.arange(len(state.names)), chosen)
    if not others.size and not state.complete:
        return None
    found, step = [], max(1, _BLOCK_SIZE // max(1, len(state.names)))
    for start in range(0, chosen.size, step):
        correlations = np.clip(state.products(chosen[start : start + step])[others], -1.0, 1.0)
        for r in correlations.T:
            near = np.flatnonzero(np.abs(r) >= _MIN_CORRELATION)
            near = near[np.argsort(-np.abs(r[near]), kind="stable")]
            found.append((others[near], r[near]))
    return found


def count_near_duplicates(state: VariableState, picked: Indices) -> int | None:
    """Return how many variables correlate highly with an earlier one of these.

    None if correlations are not available, or for more than 1000 variables.
    """
    if not state.has_products or picked.size > _MAX_COMPARED:
        return None
    R = np.abs(state.products(picked)[picked])
    return int((np.tril(R, -1).max(axis=1, initial=0.0) >= _MIN_CORRELATION).sum())
