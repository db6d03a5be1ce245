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
    absolute value .8 or more. None if correlations are not available, or if all other
    variables were discarded.
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


def correlations_among(state: VariableState, picked: Indices) -> Floats | None:
    """Return the correlations of some variables with each other.

    None if correlations are not available, or for more than 1000 variables.
    """
    if not state.has_products or picked.size > _MAX_COMPARED:
        return None
    return np.clip(state.products(picked)[picked], -1.0, 1.0)


def count_near_duplicates(R: Floats) -> int:
    """Return how many variables correlate highly with an earlier one, given all correlations."""
    lower = np.tril(np.abs(R), -1)
    return int((lower.max(axis=1, initial=0.0) >= _MIN_CORRELATION).sum())


def most_correlated(R: Floats) -> list[tuple[int, float]]:
    """Return the other variable that each correlates with most, by absolute value, and their r.

    Parameters
    ----------
    R
        (k, k) correlations; NaN for a variable that does not vary.

    Returns
    -------
    k pairs; none for fewer than two variables.
    """
    if len(R) < 2:
        return []
    others = np.where(np.eye(len(R), dtype=np.bool_) | np.isnan(R), 0.0, R)
    largest = np.abs(others).argmax(axis=1)
    r = others[np.arange(len(R)), largest]
    # For a variable that correlates with no other, return the first other.
    largest = np.where((r == 0.0) & (largest == np.arange(len(R))), 1, largest)
    return list(zip(largest.tolist(), r.tolist(), strict=True))


def correlation_matrix(X: Floats) -> Floats:
    """Return the correlations of the columns of X; NaN for columns that are constant or empty."""
    if np.isinf(X).any():
        raise ValueError("Expected finite values, or missing ones. Got: an infinite one.")
    missing = np.isnan(X)
    n = np.maximum(1, (~missing).sum(axis=0))
    C = np.where(missing, 0.0, X - np.where(missing, 0.0, X).sum(axis=0) / n)
    length = np.linalg.norm(C, axis=0)
    # A constant column has a residual of rounding errors.
    size = np.abs(np.where(missing, 0.0, X)).max(axis=0, initial=0.0)
    length[length <= 1e-12 * size * np.sqrt(len(X))] = np.nan
    C /= length
    found: Floats = np.clip(C.T @ C, -1.0, 1.0)
    # A product over no rows is 0.
    found[np.isnan(length)] = found[:, np.isnan(length)] = np.nan
    return found
