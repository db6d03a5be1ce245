"""Moments of products of columns from sums over rows."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# If less than this fraction of the sum of squares is left after cancellation, moments are not
# accurate.
_CANCELLATION_RTOL = 1e-3


@kernel()
def moments_of_products(
    sums: np.ndarray,
    squares: np.ndarray,
    targets: np.ndarray,
    first: np.ndarray,
    offsets: np.ndarray,
    start: int,
    n: int,
    in_range: np.ndarray,
    factor_in_range: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
    is_accurate: np.ndarray,
) -> None:
    """Fill the moments of products of t prefixes with the factors from `start` to d.

    Parameters
    ----------
    sums, squares, targets
        (t, d - start), (t, d - start) and (c, t, d - start) the sums of the products, of their
        squares, and of their products with the target.
    first
        (t,) the first factor of each prefix.
    offsets
        (t,) the index of the product with the first factor.
    start
        The first factor of all.
    n
        Number of rows.
    in_range, factor_in_range
        (t,) and (d,) whether the squares of a product can neither overflow nor underflow.
    mean, m2, cxy, is_accurate
        (b,), (b,), (b, c), (b,) filled.
    """
    t, c = first.size, targets.shape[0]
    for p in range(t):
        for j in range(first[p], start + sums.shape[1]):
            i = offsets[p] + j - first[p]
            total, square = sums[p, j - start], squares[p, j - start]
            mean[i] = total / n
            m2[i] = square - total * mean[i]
            is_accurate[i] = (
                in_range[p] and factor_in_range[j] and m2[i] >= _CANCELLATION_RTOL * square
            )
        for k in range(c):
            for j in range(first[p], start + sums.shape[1]):
                cxy[offsets[p] + j - first[p], k] = targets[k, p, j - start]


# If less than this fraction of the product of the factors' sums of squares is left after
# cancellation, they are nearly collinear, and moments of adjusted products are not accurate.
_COLLINEAR_RTOL = 1e-2


@kernel()
def moments_of_adjusted_products(
    sums: np.ndarray,
    squares: np.ndarray,
    with_prefix: np.ndarray,
    with_factor: np.ndarray,
    targets: np.ndarray,
    prefix: np.ndarray,
    start: int,
    n: int,
    factor_m2: np.ndarray,
    factor_cxy: np.ndarray,
    factor_in_range: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
    is_accurate: np.ndarray,
) -> None:
    """Fill the moments of products of two centred factors, adjusted for these by least squares.

    Parameters
    ----------
    sums, squares, with_prefix, with_factor, targets
        (t, d - start), and (c, t, d - start), the sums of the products u v, of their squares, of
        u² v and u v², and of their products with the target.
    prefix
        (t,) the indices of the factors u; v are all factors after u.
    start
        The first factor v of all.
    n
        Number of rows.
    factor_m2, factor_cxy, factor_in_range
        (d,) and (d, c) moments of the factors; (d,) whether their products neither overflow nor
        underflow.
    m2, cxy, is_accurate
        (b,), (b, c), (b,) filled.
    """
    c, i = targets.shape[0], 0
    for p in range(prefix.size):
        u = prefix[p]
        for v in range(u + 1, start + sums.shape[1]):
            j = v - start
            uu, vv, uv = factor_m2[u], factor_m2[v], sums[p, j]
            determinant = uu * vv - uv * uv
            a, b = with_prefix[p, j], with_factor[p, j]
            # Coefficients of u and v in the regression of u v on both.
            on_u = (vv * a - uv * b) / determinant
            on_v = (uu * b - uv * a) / determinant
            m2[i] = squares[p, j] - uv * (uv / n) - (on_u * a + on_v * b)
            is_accurate[i] = (
                factor_in_range[u]
                and factor_in_range[v]
                and determinant >= _COLLINEAR_RTOL * uu * vv
                and m2[i] >= _CANCELLATION_RTOL * squares[p, j]
                and m2[i] > 0.0
            )
            for k in range(c):
                cxy[i, k] = targets[k, p, j] - on_u * factor_cxy[u, k] - on_v * factor_cxy[v, k]
            i += 1


@kernel()
def centre(
    X: np.ndarray,
    indices: np.ndarray,
    start: int,
    mean: np.ndarray,
    low: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill out (k, m) with the values of columns from row `start` on, less their means.

    Parameters
    ----------
    X
        (d, n) columns as rows, of any type.
    indices
        (k,) the columns.
    start
        The first row.
    mean, low
        (d,) means, and their rounding errors.
    out
        (k, m) filled.
    """
    for k in range(indices.size):
        j = indices[k]
        about, rest, z = mean[j], low[j], out[k]
        x = X[j, start : start + z.size]
        for i in range(z.size):
            z[i] = np.float64(x[i]) - about - rest


@kernel(reordered_sums=True)
def _dot(x: np.ndarray, y: np.ndarray) -> float:
    """Return an inner product; no array is written, so its rounding depends on the values alone."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@kernel(reordered_sums=True)
def _sum(x: np.ndarray) -> float:
    """Return a sum, as `_dot` does."""
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@kernel()
def _subtract(x: np.ndarray, scale: float, y: np.ndarray) -> None:
    """Subtract scale * y from x."""
    for i in range(x.size):
        x[i] -= scale * y[i]


# A sum of squares below this fraction of the one before a projection is a rounding error.
_ZERO_RTOL = 1e-20


@kernel()
def adjusted_products(u: np.ndarray, V: np.ndarray, out: np.ndarray) -> None:
    """Fill out with products of centred columns u and v, adjusted for 1, u and v.

    Every column is computed by the same instructions, whatever the others are.

    Parameters
    ----------
    u
        (n,) a centred column; normalised.
    V
        (k, n) centred columns, one per row; orthogonalised against u, and normalised.
    out
        (k, n) filled; 0 where u and v explain the product.
    """
    n = u.size
    for j in range(len(V)):
        x, v = out[j], V[j]
        for i in range(n):
            x[i] = u[i] * v[i]
    square = _dot(u, u)
    for i in range(n):
        u[i] *= 1.0 / np.sqrt(square) if square > 0.0 else 0.0
    for j in range(len(V)):
        x, v = out[j], V[j]
        mean = _sum(x) / n
        for i in range(n):
            x[i] -= mean
        before, square = _dot(x, x), _dot(v, v)
        # Projected twice: once is inaccurate if nearly all is removed.
        for _ in range(2):
            _subtract(v, _dot(v, u), u)
        left = _dot(v, v)
        scale = 1.0 / np.sqrt(left) if left > _ZERO_RTOL * square else 0.0
        for i in range(n):
            v[i] *= scale
        for _ in range(2):
            _subtract(x, _dot(x, u), u)
            _subtract(x, _dot(x, v), v)
        mean = _sum(x) / n
        for i in range(n):
            x[i] -= mean
        if _dot(x, x) <= _ZERO_RTOL * before:
            x[:] = 0.0
