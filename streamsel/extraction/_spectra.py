"""Leading eigenvectors of a matrix of similarities, and the lowest ones of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu

from streamsel.held.part import Floats
from streamsel.ties import TIE

# An axis with less than this part of the largest eigenvalue is rounding.
_SPENT = 1e-12
# Eigenvalues that differ by less than this part of the largest are equal.
_EQUAL = 1e-9
# So many more are found than are asked for: of equal ones as many as can be.
_BEYOND = 6
# A matrix of more rows, of which a smaller part is asked for, is not decomposed whole.
_LARGE, _FEW = 1500, 0.05
# A graph is solved with this part of its largest degree added to the diagonal.
_SHIFT = 1e-9


def largest(K: Floats, q: int, floor: float) -> tuple[Floats, Floats]:
    """Return the leading eigenvalues (k,), descending, and eigenvectors (n, k), k at most q.

    Parameters
    ----------
    K
        (n, n) symmetric, with no eigenvalue below 0 but for rounding; it is used up.
    q
        How many; those that are rounding are left out.
    floor
        What may be rounding, whatever the others are.
    """
    asked = min(len(K), q + _BEYOND)

    def whole() -> tuple[Floats, Floats]:
        some = [len(K) - asked, len(K) - 1]
        found: tuple[Floats, Floats] = eigh(
            K, subset_by_index=some, check_finite=False, overwrite_a=True
        )
        return found

    d, E = _found(K, asked, whole)
    d, E = d[::-1], E[:, ::-1]
    substantial = d > max(floor, _SPENT * d[0])
    d, E = d[substantial], E[:, substantial]
    return d[:q], _settled(d, E, d[:1].sum())[:, :q]


def lowest(A: csr_array, q: int) -> tuple[Floats, Floats]:
    """Return the lowest eigenvalues (k,) and eigenvectors (n, k) of L = D - A but the constant.

    Parameters
    ----------
    A
        (n, n) weights of the edges, symmetric, none of an observation with itself.
    q
        How many; there are no more than n - 1.
    """
    n = A.shape[0]
    q = min(q, n - 1)
    parts, part_of = connected_components(A, directed=False)
    apart = _apart(part_of, parts, q)
    rest = min(q - apart.shape[1], n - parts)
    if rest <= 0:
        return np.zeros(apart.shape[1]), apart
    degrees = np.asarray(A.sum(axis=1))
    asked = min(n - parts, rest + _BEYOND)
    sizes = np.bincount(part_of)

    def whole() -> tuple[Floats, Floats]:
        # What is constant on the parts is moved above everything else.
        together = part_of[:, None] == part_of
        L = np.diag(degrees) - A.toarray() + together * (3.0 * degrees.max() / sizes[part_of])
        found: tuple[Floats, Floats] = eigh(
            L, subset_by_index=[0, asked - 1], check_finite=False, overwrite_a=True
        )
        return found

    def without_means(v: Floats) -> Floats:
        v = v.ravel()
        levels: Floats = (np.bincount(part_of, weights=v) / sizes)[part_of]
        return v - levels

    if n <= _LARGE or asked > _FEW * n:
        d, E = whole()
    else:
        d, E = _lanczos(diags_array(degrees) - A, degrees.max(), asked, without_means, whole)
    E = _settled(d, E, 2.0 * degrees.max())
    return np.append(np.zeros(apart.shape[1]), d[:rest]), np.hstack([apart, E[:, :rest]])


def _found(
    K: Floats, asked: int, whole: Callable[[], tuple[Floats, Floats]]
) -> tuple[Floats, Floats]:
    """Return leading eigenvalues, ascending, and eigenvectors."""
    if len(K) <= _LARGE or asked > _FEW * len(K):
        return whole()
    try:
        d, E = eigsh(K, k=asked, which="LA", v0=_start(len(K)))
    except ArpackError:
        return whole()
    order = np.argsort(d, kind="stable")
    return d[order], E[:, order]


def _lanczos(
    L: Any,
    scale: float,
    asked: int,
    without_means: Callable[[Floats], Floats],
    whole: Callable[[], tuple[Floats, Floats]],
) -> tuple[Floats, Floats]:
    """Return the lowest eigenpairs of a Laplacian beside its null space, by its inverse."""
    n = L.shape[0]
    inverse = splu((L + _SHIFT * scale * eye_array(n)).tocsc(), permc_spec="MMD_AT_PLUS_A")

    def solved(v: Floats) -> Floats:
        return without_means(inverse.solve(without_means(v)))

    operator = LinearOperator((n, n), matvec=solved, dtype=np.float64)
    try:
        _, E = eigsh(operator, k=asked, which="LA", v0=without_means(_start(n)))
    except ArpackError:
        return whole()
    # Of the inverse the vectors are taken, and not the values.
    E = np.linalg.qr(E)[0]
    d, turn = np.linalg.eigh(E.T @ (L @ E))
    return d, E @ turn


def _start(n: int) -> Floats:
    """Return a start that is the same every time, and in no eigenspace."""
    return np.random.default_rng(0).normal(size=n)


def _apart(part_of: NDArray[Any], parts: int, q: int) -> Floats:
    """Return what is constant on the parts of a graph and tells them apart, (n, k), k <= q.

    Pivoted Cholesky of the projector on it: the first vector tells the smallest part from the rest.
    """
    k, n = min(q, parts - 1), part_of.size
    sizes = np.bincount(part_of)
    left = 1.0 / sizes - 1.0 / n
    levels = np.zeros((parts, k))
    for j in range(k):
        pivot = int((left >= left.max() * (1.0 - _EQUAL)).argmax())
        level = -1.0 / n - levels[:, :j] @ levels[pivot, :j]
        level[pivot] += 1.0 / sizes[pivot]
        levels[:, j] = level / np.sqrt(level[pivot])
        left = left - np.square(levels[:, j])
        left[pivot] = -1.0
    apart: Floats = levels[part_of]
    return apart


def _settled(d: Floats, E: Floats, scale: float) -> Floats:
    """Return eigenvectors that rounding has no say in: of equal eigenvalues, and of signs.

    Of equal eigenvalues any basis of their space would do. The first vector is the one that is
    largest in an observation, the first such; the others are 0 there, and so on. The largest entry
    of a vector is positive, of equal ones the first.
    """
    E = E.copy()
    starts = np.flatnonzero(np.append(True, np.abs(np.diff(d)) > _EQUAL * scale))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(d)], strict=True):
        if stop - start > 1:
            E[:, start:stop] = _pivoted(E[:, start:stop])
    size = np.abs(E)
    first = (size >= size.max(axis=0, initial=0.0) * (1.0 - _EQUAL)).argmax(axis=0)
    up = np.where(E[first, np.arange(E.shape[1])] < 0.0, -1.0, 1.0)
    settled: Floats = E * up
    return settled


def _pivoted(B: Floats) -> Floats:
    """Return the basis of the space of B (n, g) of which each vector is largest in its pivot."""
    out = np.empty_like(B)
    for j in range(B.shape[1]):
        squares = np.square(B).sum(axis=1)
        pivot = int((squares >= squares.max() * (1.0 - _EQUAL)).argmax())
        towards = B[pivot] / np.sqrt(squares[pivot])
        out[:, j] = B @ towards
        B = B - np.outer(out[:, j], towards)
    return out


def nearest(squares: Floats, k: int) -> NDArray[np.bool_]:
    """Return who is no farther than the k-th nearest, by squared distances (b, m).

    Infinite ones are nobody's. Distances are equal that differ by less than 1e-12 of the largest
    one of the row: by what rounding makes of equal ones.
    """
    near: NDArray[np.bool_] = np.isfinite(squares)
    if squares.shape[1] > k:
        bar = np.partition(squares, k - 1, axis=1)[:, k - 1]
        bar += TIE * squares.max(axis=1, where=near, initial=0.0)
        near &= squares <= bar[:, None]
    return near
