"""Components aligned with those in use: orthogonal Procrustes between both, of unit variance."""

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
