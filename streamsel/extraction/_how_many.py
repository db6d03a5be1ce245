"""Rules for the number of principal components, from the eigenvalues."""

from __future__ import annotations

import numpy as np

from streamsel.held.inner import Inner
from streamsel.held.part import Floats

# Number of draws of noise, and the quantile of these that an eigenvalue must exceed.
_DRAWS, _LEVEL = 20, 0.95


def by_share(inner: Inner, share: float) -> int:
    """Return the least number of components that have this share of the variance."""
    cumulated = np.cumsum(inner.values()) / inner.trace
    return int(np.searchsorted(cumulated, share * (1.0 - 1e-12))) + 1


def by_elbow(inner: Inner) -> int:
    """Return the number of eigenvalues before the bend of the scree plot.

    The bend is where the curve is farthest below the straight line between its ends.
    """
    d = inner.values()
    if d.size < 3:
        return int(d.size)
    chord = np.linspace(d[0], d[-1], d.size)
    return max(1, int((chord - d).argmax()))


def by_profile(inner: Inner) -> int:
    """Return the number of eigenvalues before the split of largest profile likelihood.

    The two groups are normal with a common variance (Zhu and Ghodsi 2006).
    """
    d = inner.values()
    if d.size < 3:
        return int(d.size)
    d = d / d[0]
    sums, squares = np.cumsum(d), np.cumsum(np.square(d))
    first = np.arange(1, d.size)
    second = d.size - first
    within = squares[-1] - np.square(sums[:-1]) / first - np.square(sums[-1] - sums[:-1]) / second
    return int(within.argmin()) + 1


def by_parallel(inner: Inner) -> int:
    """Return the number of eigenvalues larger than those of noise (Horn 1965).

    Each is compared with the eigenvalue of its rank for uncorrelated columns, whose number and
    total variance are those of columns that vary as evenly.
    """
    d = inner.values()
    rng = np.random.default_rng(0)
    noise = np.array([_of_noise(inner, rng) for _ in range(_DRAWS)])
    size = min(d.size, noise.shape[1])
    below = np.flatnonzero(d[:size] <= np.quantile(noise[:, :size], _LEVEL, axis=0))
    return int(below[0]) if below.size else size


def _of_noise(inner: Inner, rng: np.random.Generator) -> Floats:
    """Return the eigenvalues of a Wishart matrix, descending, by its Bartlett decomposition."""
    rows, columns = max(1, round(inner.n) - 1), max(1, round(inner.even))
    size, degrees = min(rows, columns), max(rows, columns)
    A = np.tril(rng.normal(size=(size, size)), -1)
    A[np.diag_indices(size)] = np.sqrt(rng.chisquare(degrees - np.arange(size)))
    d = np.square(np.linalg.svd(A, compute_uv=False))
    found: Floats = d * (inner.trace / (rows * columns))
    return found


CHOICES = {"elbow": by_elbow, "profile": by_profile, "parallel": by_parallel}
