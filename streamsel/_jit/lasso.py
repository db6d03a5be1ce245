"""Coordinate descent on a quadratic form with absolute values, over a few variables."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def _update(
    j: int,
    Q: np.ndarray,
    bar: np.ndarray,
    ridge: np.ndarray,
    edge: np.ndarray,
    b: np.ndarray,
    left: np.ndarray,
) -> float:
    """Put one coefficient where it is best; return how far it moved, in units of the form."""
    before = b[j]
    if before == 0.0 and np.abs(left[j]) <= edge[j]:
        return 0.0
    whole = left[j] + Q[j, j] * before
    after = max(np.abs(whole) - bar[j], 0.0) / (Q[j, j] + ridge[j])
    if whole < 0.0:
        after = -after
    moved = after - before
    if moved != 0.0:
        b[j] = after
        for i in range(b.size):
            left[i] -= moved * Q[j, i]
    return np.abs(moved) * np.sqrt(Q[j, j])


@kernel()
def descend(
    Q: np.ndarray,
    bar: np.ndarray,
    ridge: np.ndarray,
    edge: np.ndarray,
    quiet: int,
    rounds: int,
    b: np.ndarray,
    left: np.ndarray,
) -> None:
    """Lower ½ bᵀQb - aᵀb + Σ bar|b| + ½ Σ ridge b², one coefficient after another.

    A round goes over all of them, and then a few times over those that are not 0. It ends when for
    so many rounds none has become 0, or ceased to be.

    Parameters
    ----------
    Q
        (s, s) the form, of a positive diagonal.
    bar, ridge
        (s,) what is asked of a coefficient's slope, and of its square.
    edge
        (s,) a coefficient that is 0 stays so where its slope is not above this.
    quiet, rounds
        That many rounds, and how many at most.
    b, left
        (s,) the coefficients, and a - Qb; changed in place.
    """
    since = 0
    for _ in range(rounds):
        far, changed = 0.0, False
        for j in range(b.size):
            was_0 = b[j] == 0.0
            far = max(far, _update(j, Q, bar, ridge, edge, b, left))
            changed |= was_0 != (b[j] == 0.0)
        for _ in range(4):
            near = 0.0
            for j in range(b.size):
                if b[j] != 0.0:
                    near = max(near, _update(j, Q, bar, ridge, edge, b, left))
                    changed |= b[j] == 0.0
            if near <= 0.1 * far:
                break
        since = 0 if changed else since + 1
        if since >= quiet or far <= 1e-14:
            return
