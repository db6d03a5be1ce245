"""The Gram matrix by definition: the sum over columns of w x̃ x̃ᵀ, x̃ the column less its mean."""

import numpy as np


def gram(X, weights):
    """Return K, (n, n), of columns X (n, p), dense, and weights (p,)."""
    n, p = X.shape
    K = np.zeros((n, n))
    for j in range(p):
        x = np.asarray(X[:, j], dtype=np.longdouble)
        x -= x[0]  # exact or nearly: an offset does not reduce the precision of the mean
        x = np.sqrt(np.longdouble(weights[j])) * (x - x.mean())
        K += np.outer(x, x).astype(np.float64)
    return K
