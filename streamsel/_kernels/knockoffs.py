"""Knockoffs of consecutive columns, each generated given its neighbours."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# A smaller share of the square of a column is rounding error.
_MIN_SHARE = 1e-8


@kernel(reordered_sums=True)
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel()
def _subtract(scale: float, a: np.ndarray, b: np.ndarray) -> None:
    """Subtract a multiple of a from b, in place."""
    for i in range(a.size):
        b[i] -= scale * a[i]


@kernel()
def fill_unit_residuals(
    values: np.ndarray,
    basis: np.ndarray,
    min_share: float,
    units: np.ndarray,
    lengths: np.ndarray,
) -> int:
    """Fill in the residuals of columns on `basis`, scaled to length 1, and their lengths.

    Parameters
    ----------
    values
        (b, n) columns as rows.
    basis
        (q, n) orthonormal rows, whose span includes the constant vector.
    min_share
        A residual with less than this share of the column's square counts as 0.
    units, lengths
        (b, n) and (b,) filled in.

    Returns
    -------
    The index of the first column with a value that is not finite; -1 if there is none.
    """
    for j in range(values.shape[0]):
        unit = units[j]
        largest = mean = 0.0
        # Differences from the first value have no common offset, which would cost digits.
        first = values[j, 0]
        for i in range(unit.size):
            if not np.isfinite(values[j, i]):
                return j
            unit[i] = 0.5 * values[j, i] - 0.5 * first
            largest = max(largest, abs(unit[i]))
        scale = largest if largest > 0.0 else 1.0
        for i in range(unit.size):
            unit[i] /= scale
            mean += unit[i] / unit.size
        for i in range(unit.size):
            unit[i] -= mean
        square = _dot(unit, unit)
        # Projected twice: once is inaccurate if the basis explains nearly all.
        for _ in range(2):
            for s in range(basis.shape[0]):
                _subtract(_dot(basis[s], unit), basis[s], unit)
        rest = _dot(unit, unit)
        has_rest = rest > min_share * square
        length = np.sqrt(rest) if has_rest else 1.0
        for i in range(unit.size):
            unit[i] = unit[i] / length if has_rest else 0.0
        lengths[j] = 2.0 * length * scale
    return -1


@kernel()
def _factor(A: np.ndarray, d: int) -> None:
    """Factor the d rows of a Gram matrix in place: A = L Lᵀ.

    A row that earlier ones explain gets a diagonal of 0, and takes no part in solutions.
    """
    for i in range(d):
        min_residual = _MIN_SHARE * A[i, i]
        for k in range(i + 1):
            total = A[i, k]
            for s in range(k):
                total -= A[i, s] * A[k, s]
            if k < i:
                A[i, k] = total / A[k, k] if A[k, k] > 0.0 else 0.0
            else:
                A[i, i] = np.sqrt(total) if total > min_residual else 0.0


@kernel()
def _solve(L: np.ndarray, d: int, b: np.ndarray) -> None:
    """Solve L Lᵀ x = b in place, with 0 for rows without a diagonal."""
    for i in range(d):
        total = b[i]
        for s in range(i):
            total -= L[i, s] * b[s]
        b[i] = total / L[i, i] if L[i, i] > 0.0 else 0.0
    for i in range(d - 1, -1, -1):
        total = b[i]
        for s in range(i + 1, d):
            total -= L[s, i] * b[s]
        b[i] = total / L[i, i] if L[i, i] > 0.0 else 0.0


@kernel()
def _project_out(S: np.ndarray, X: np.ndarray, L: np.ndarray, v: np.ndarray) -> None:
    """Project rows of S and of X, whose Gram matrix has the factor L, out of v."""
    before, d = S.shape[0], S.shape[0] + X.shape[0]
    b = np.empty(d)
    for r in range(d):
        b[r] = _dot(S[r] if r < before else X[r - before], v)
    _solve(L, d, b)
    for r in range(d):
        if b[r] != 0.0:
            _subtract(b[r], S[r] if r < before else X[r - before], v)


@kernel()
def _gram(
    first: int, j: int, last: int, SS: np.ndarray, SX: np.ndarray, XX: np.ndarray, A: np.ndarray
) -> None:
    """Fill in the lower triangle of the products of sums first..j-1, and columns j+1..last-1."""
    before = j - first
    for r in range(before + last - j - 1):
        for s in range(r + 1):
            if r < before:
                A[r, s] = SS[first + r, first + s]
            elif s < before:
                A[r, s] = SX[first + s, j + 1 + r - before]
            else:
                A[r, s] = XX[j + 1 + r - before, j + 1 + s - before]


@kernel()
def fill_knockoffs(
    X: np.ndarray,
    S: np.ndarray,
    XX: np.ndarray,
    SX: np.ndarray,
    SS: np.ndarray,
    basis: np.ndarray,
    order: np.ndarray,
    first: int,
    ahead: int,
    behind: int,
    residual: np.ndarray,
    permuted: np.ndarray,
) -> None:
    """Generate the knockoffs of consecutive columns.

    Parameters
    ----------
    X
        (m, n) columns as rows, orthogonal to `basis`, of length 1 or 0.
    S
        (m, n) sums of columns and their knockoffs: of the first `first` columns, and filled in for
        the next ones.
    XX
        (m, m) products of the columns.
    SX, SS
        (m, m) products of sums with columns, and between sums: complete for the first `first`
        sums, and filled in as far as they are needed for others.
    basis
        (q, n) orthonormal rows: the constant vector, and covariates.
    order
        (b, n) for each knockoff to fill in, the order of the rows of its random part.
    first
        Index of the first of b columns to fill in.
    ahead, behind
        Numbers of columns after a column, and of sums before it, that it is regressed on.
    residual, permuted
        (b, n) filled in: the residual of each column given its neighbours, and the random part
        that replaces it, of the same length; both 0 for a column that its neighbours explain.
    """
    m = X.shape[0]
    A = np.empty((ahead + behind, ahead + behind))
    for row in range(order.shape[0]):
        j = first + row
        start, end = max(0, j - behind), min(m, j + ahead + 1)
        _gram(start, j, end, SS, SX, XX, A)
        _factor(A, j - start + end - j - 1)
        sums, columns = S[start:j], X[j + 1 : end]
        e, t = residual[row], permuted[row]
        for i in range(e.size):
            e[i] = X[j, i]
        # Projected twice: once is inaccurate if neighbours are nearly collinear.
        for _ in range(2):
            _project_out(sums, columns, A, e)
        square = _dot(e, e)
        length = 0.0
        if square > _MIN_SHARE:
            for i in range(e.size):
                t[i] = e[order[row, i]]
            for _ in range(2):
                for s in range(basis.shape[0]):
                    _subtract(_dot(basis[s], t), basis[s], t)
                _project_out(sums, columns, A, t)
                _subtract(_dot(e, t) / square, e, t)
            length = _dot(t, t)
        if length > _MIN_SHARE * square:
            scale = np.sqrt(square / length)
            for i in range(e.size):
                t[i] *= scale
        else:
            for i in range(e.size):
                e[i] = t[i] = 0.0
        for i in range(e.size):
            S[j, i] = 2.0 * X[j, i] - e[i] + t[i]
        for i in range(j + 1, min(m, j + behind + ahead + 1)):
            SX[j, i] = _dot(S[j], X[i])
        for i in range(max(0, j + 1 - behind), j + 1):
            SS[j, i] = _dot(S[j], S[i])
