"""Scores of a column on its observed rows, by a least-squares fit."""

import numpy as np
from scipy import stats


def on_observed_rows(x, Y):
    """Return R, F, p, the number of observed rows, and the rank of the targets (n, c) in them."""
    seen = ~np.isnan(x)
    x, Y = x[seen] - x[seen].mean(), Y[seen] - Y[seen].mean(axis=0)
    n, rank = seen.sum(), np.linalg.matrix_rank(Y) if seen.any() else 0
    if not rank or n - 1 <= rank or not x.any():
        return 0.0, 0.0, 1.0, n, rank
    left = x - Y @ np.linalg.lstsq(Y, x, rcond=None)[0]
    r2 = max(0.0, 1.0 - (left @ left) / (x @ x))
    F = r2 / (1.0 - r2) * (n - 1 - rank) / rank
    return np.sqrt(r2), F, stats.f.sf(F, rank, n - 1 - rank), n, rank
