"""Moments of many rows at once, in one sweep over them."""

from __future__ import annotations

import numpy as np

from streamsel._jit.rows import LARGEST, any_beyond
from streamsel._jit.sweep import sweep, sweep_columns, sweep_observed
from streamsel.held.part import Floats


def moments_of(X: Floats, w: Floats, Y: Floats, level: Floats) -> tuple[Floats, ...] | None:
    """Return what `Moments.combine` takes of rows X (b, m), with weighted targets about `level`.

    None where a value is infinite or too large.
    """
    m, c = X.shape[1], level.size
    # The loops take one target at least.
    Y = np.ascontiguousarray(Y.T) if c else np.zeros((1, len(X)))
    shift, mean, m2, products = X[-1].copy(), np.empty(m), np.empty(m), np.empty((len(Y), m))
    # What is far from it shows in the sums.
    if not np.abs(shift).max(initial=0.0) <= 0.5 * LARGEST:
        whole = False
    elif X.flags.c_contiguous or X.strides[0] != X.itemsize:
        whole = sweep(_as_read(X), w, Y, shift, mean, m2, products)
    else:
        # Frames mostly hold a variable's values together.
        whole = sweep_columns(_as_read(X.T), w, Y, shift, mean, m2, products)
    if whole:
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
    """Return an array as the loops read all of them: in C order, and not to be written to."""
    X = np.ascontiguousarray(X).view()
    X.flags.writeable = False
    return X
