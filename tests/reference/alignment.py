"""Alignment of components with those in use: orthogonal Procrustes of both at unit variance."""

import numpy as np
from scipy.linalg import orthogonal_procrustes


def alignment(Z, in_use):
    """Return the (q, q) matrix M such that Z @ M replaces the (n, q) centred components in use.

    Each has the standard deviation of the component that it replaces.
    """
    sizes, sizes_in_use = (np.linalg.norm(part, axis=0) for part in (Z, in_use))
    rotation, _ = orthogonal_procrustes(Z / sizes, in_use / sizes_in_use)
    M = rotation / sizes[:, None]
    return M / np.linalg.norm(Z @ M, axis=0) * sizes_in_use


class FadedAlignment:
    """Alignments with fading: the scale of rotated components tends to a reference scale.

    The reference follows the components in use by the weight of the first row.
    """

    def __init__(self, fading_factor):
        self.kept, self.reference = 1.0 - fading_factor, None

    def of(self, Z, in_use, n_rows):
        """Return the matrix as `alignment` does; both parts are standardized by their weights."""
        first, scale = self.kept**n_rows, np.linalg.norm(in_use, axis=0)
        reference = scale if self.reference is None else self.reference
        self.reference = np.exp(first * np.log(scale) + (1.0 - first) * np.log(reference))
        M = alignment(Z, in_use)
        rho = ((Z @ M) * in_use).sum(axis=0) / scale**2
        return M * (self.reference / scale) ** (1.0 - rho**8)
