"""Leading eigenpairs of a matrix that is known by its products, by block Lanczos iteration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import qr

from streamsel.state.base import Floats

# Vectors of a block: a sparse matrix multiplies 8 at once in the time of 2 or 3 single ones.
# Narrow blocks need fewer vectors in all.
_WIDTH, _NARROW_WIDTH, _FEW_PAIRS = 8, 4, 20
# Number of basis vectors before a restart: a constant, plus some per eigenpair.
_BASIS_SIZE, _BASIS_PER_PAIR = 70, 3
# Blocks between tests of convergence, and the largest number of blocks.
_TEST_INTERVAL, _MAX_BLOCKS = 6, 1000
# Residual of an eigenpair, as a fraction of the largest eigenvalue.
_RESIDUAL_RTOL = 1e-8
_EPS = np.finfo(float).eps


def new_directions(V: Floats, basis: Floats, min_length: float) -> Floats:
    """Return an orthonormal basis of the part of V outside a basis, if longer than `min_length`."""
    # Two rounds of orthogonalisation suffice.
    for _ in range(2):
        if not V.size:
            break
        V = V - basis @ (basis.T @ V)
        Q, R, _ = qr(V, mode="economic", pivoting=True)
        V = Q[:, np.abs(np.diag(R)) > min_length]
        min_length = 0.5
    return V


def leading_eigenpairs_of(
    product: Callable[[Floats], Floats], n: int, k: int
) -> tuple[Floats, Floats]:
    """Return at most k leading eigenvalues, descending, and eigenvectors (n, k).

    Thick restarts keep the best Ritz vectors. The residual of an eigenpair is at most 1e-8 of the
    largest eigenvalue, so that the error of an eigenvalue is far smaller.

    Parameters
    ----------
    product
        Returns K V, (n, b), of a positive semidefinite matrix K for V (n, b).
    n
        The order of K.

    References
    ----------
    [^1]: Golub, G. H. and Underwood, R. (1977). The block Lanczos method for computing eigenvalues.
        Mathematical Software III, 361-377.
    [^2]: Wu, K. and Simon, H. (2000). Thick-restart Lanczos method for large symmetric eigenvalue
        problems. SIAM Journal on Matrix Analysis and Applications 22(2), 602-616.
    """
    width = _WIDTH if k > _FEW_PAIRS else _NARROW_WIDTH
    room = min(n, _BASIS_PER_PAIR * k + _BASIS_SIZE)
    basis, images = (np.empty((n, room), order="F") for _ in range(2))
    # Reproducible, and in general position to all eigenspaces.
    start = np.random.default_rng(0).normal(size=(n, min(n, width)))
    block, size = new_directions(start, basis[:, :0], 0.0), 0
    for count in range(1, _MAX_BLOCKS + 1):
        new = slice(size, size + block.shape[1])
        basis[:, new], images[:, new] = block, product(block)
        size = new.stop
        min_length = n * _EPS * float(np.abs(images[:, new]).max(initial=0.0))
        block = new_directions(images[:, new], basis[:, :size], min_length)[:, : room - size]
        is_full = size + width > room and room < n
        if not (is_full or not block.size or count % _TEST_INTERVAL == 0):
            continue
        d, Y = _ritz_pairs(basis[:, :size], images[:, :size])
        first = Y[:, :k]
        residuals = images[:, :size] @ first - (basis[:, :size] @ first) * d[:k]
        is_open = np.linalg.norm(residuals, axis=0) > _RESIDUAL_RTOL * max(d[0], 0.0)
        if not block.size or (size >= k and not is_open.any()):
            break
        if is_full:
            size = min(size, k + width)
            for array in (basis, images):
                array[:, :size] = array[:, : len(Y)] @ Y[:, :size]
            unconverged = residuals[:, is_open][:, :width]
            block = new_directions(unconverged, basis[:, :size], min_length)
    d, Y = _ritz_pairs(basis[:, :size], images[:, :size])
    return d[:k], basis[:, :size] @ Y[:, :k]


def _ritz_pairs(basis: Floats, images: Floats) -> tuple[Floats, Floats]:
    """Return the eigenvalues in the space of an orthonormal basis, descending, and vectors."""
    H = basis.T @ images
    d, Y = np.linalg.eigh(0.5 * (H + H.T))
    return d[::-1], Y[:, ::-1]
