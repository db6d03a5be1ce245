"""Linear features of maximal variance without covariance with the sensitive attribute.

c_k is the vector of covariances of the columns with column k of the sensitive attribute. Features
are X̃w, with w of length 1 and orthogonal to all c_k and to earlier features: the eigenvectors of
PCP, where C is the covariance of the columns and P projects onto the complement of the c_k.
"""

import numpy as np

from tests.reference import linear
from tests.reference import target as space


def answer(X, y, *, n_components=10, scale=False, target_type="auto", **_):
    """Return the results of a model that has learnt the columns of X."""
    U = space.basis(space.numbers(y, target_type))
    of = linear.columns(X, scale=scale)
    # Covariances with a basis of the sensitive space have the same span as those with its columns.
    covariances = of.W.T @ U
    Q, s, _ = np.linalg.svd(covariances, full_matrices=False)
    Q = Q[:, s > 1e-10 * s.max(initial=0.0)]
    V, d = linear.principal(of.W - (of.W @ Q) @ Q.T)
    V = V[:, d > linear.SPENT * linear.principal(of.W)[1][0]]
    return linear.shown("privatefeatures", of, V[:, :n_components], U)
