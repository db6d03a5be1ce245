"""Coordinate descent for the elastic net on a quadratic form of a few variables."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def _update(
    j: int,
    Q: np.ndarray,
    penalty: np.ndarray,
    ridge: np.ndarray,
    entry_threshold: np.ndarray,
    b: np.ndarray,
    slope: np.ndarray,
) -> float:
    """Minimize over one coefficient; return how far it moved, in the norm of the form."""
    before = b[j]
    if before == 0.0 and np.abs(slope[j]) <= entry_threshold[j]:
        return 0.0
    target = slope[j] + Q[j, j] * before
    after = max(np.abs(target) - penalty[j], 0.0) / (Q[j, j] + ridge[j])
    if target < 0.0:
        after = -after
    moved = after - before
    if moved != 0.0:
        b[j] = after
        for i in range(b.size):
            slope[i] -= moved * Q[j, i]
    return np.abs(moved) * np.sqrt(Q[j, j])


@kernel()
def descend(
    Q: np.ndarray,
    penalty: np.ndarray,
    ridge: np.ndarray,
    entry_threshold: np.ndarray,
    quiet: int,
    rounds: int,
    b: np.ndarray,
    slope: np.ndarray,
) -> None:
    """Minimize ½ bᵀQb - aᵀb + Σ penalty |b| + ½ Σ ridge b² by coordinate descent.

    A round visits all coefficients, then a few times those that are not 0. It ends when the set of
    non-zero coefficients has not changed for `quiet` rounds.

    Parameters
    ----------
    Q
        (s, s) the form, with a positive diagonal.
    penalty, ridge
        (s,) L1 and ridge penalties.
    entry_threshold
        (s,) a coefficient that is 0 stays 0 unless its slope exceeds this.
    quiet, rounds
        The number of unchanged rounds before it ends, and the maximal number of rounds.
    b, slope
        (s,) the coefficients, and a - Qb; changed in place.
    """
    n_unchanged = 0
    for _ in range(rounds):
        largest_move, changed = 0.0, False
        for j in range(b.size):
            was_0 = b[j] == 0.0
            largest_move = max(
                largest_move, _update(j, Q, penalty, ridge, entry_threshold, b, slope)
            )
            changed |= was_0 != (b[j] == 0.0)
        for _ in range(4):
            largest_active_move = 0.0
            for j in range(b.size):
                if b[j] != 0.0:
                    largest_active_move = max(
                        largest_active_move,
                        _update(j, Q, penalty, ridge, entry_threshold, b, slope),
                    )
                    changed |= b[j] == 0.0
            if largest_active_move <= 0.1 * largest_move:
                break
        n_unchanged = 0 if changed else n_unchanged + 1
        if n_unchanged >= quiet or largest_move <= 1e-14:
            return
