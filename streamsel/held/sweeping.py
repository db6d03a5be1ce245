"""Moments of a batch of rows, in one pass over them."""

from __future__ import annotations

import numpy as np

from streamsel._jit.rows import LARGEST, any_beyond
from streamsel._jit.sweep import sweep, sweep_columns, sweep_observed
from streamsel.held.part import Floats


def moments_of(X: Floats, w: Floats, Y: Floats, level: Floats) -> tuple[Floats, ...] | None:
    """Return the arguments of `Moments.combine` for rows X (b, m), weighted targets about `level`.

    None if a value is infinite or too large.
    """
    m, c = X.shape[1], level.size
    # The kernels need at least one target.
    Y = np.ascontiguousarray(Y.T) if c else np.zeros((1, len(X)))
    shift, mean, m2, products = X[-1].copy(), np.empty(m), np.empty(m), np.empty((len(Y), m))
    # Values far from the shift show in the sums.
    if not np.abs(shift).max(initial=0.0) <= 0.5 * LARGEST:
        is_complete = False
    elif X.flags.c_contiguous or X.strides[0] != X.itemsize:
        is_complete = sweep(_as_read(X), w, Y, shift, mean, m2, products)
    else:
        # Data frames mostly store the values of a variable together.
        is_complete = sweep_columns(_as_read(X.T), w, Y, shift, mean, m2, products)
    if is_complete:
        seen, about = np.full(m, w.sum()), np.empty((m, c))
        about[:] = level
    else:
        rows = _as_read(X)
        if any_beyond(rows.reshape(-1)):
            return None
        seen, means = np.empty(m), np.empty((len(Y), m))
        sweep_observed(rows, w, Y, seen, shift, mean, m2, products, means)
        about = means[:c].T + level
    return seen, shift, mean, m2, np.ascontiguousarray(products[:c].T), about


def _as_read(X: Floats) -> Floats:
    """Return an array as the kernels read it: C-contiguous and read-only."""
    X = np.ascontiguousarray(X).view()
    X.flags.writeable = False
    return X
