"""Extractors of this package and of others, for the scripts `extractors_*.py`.

Each returns components of training rows A (n, p), whose columns have mean 0 and deviation 1, and of
test rows B; U (n, r) is an orthonormal basis of the target.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.model_selection import KFold
from sospca_errors import fitted_pls

from streamsel import SOSPCA, ForwardSelection, RidgeComponents

Pair = tuple[np.ndarray, np.ndarray]  # components of training and of test rows

RIDGE, TWICE, ONCE = "RidgeComponents", "K, two passes", "K, one pass"
POOL_200, POOL_500 = "pool of 200", "pool of 500"
SUPERVISED, TREELETS, SELECTED = "SupervisedPCA", "treelets", "q selected"
WEAK, STRONG = "K, γ = 1", "K, γ = 8"
SUMS = {"K, γ = 1 and 4": (1.0, 4.0), "K, γ = ½ and 8": (0.5, 8.0)}
# Variants of RidgeComponents: parameters that differ from the defaults.
WAYS = {
    RIDGE: {},
    WEAK: {"relevance_power": 1.0},
    STRONG: {"relevance_power": 8.0},
    **{name: {"relevance_power": powers} for name, powers in SUMS.items()},
    POOL_200: {"max_support": 200},
    POOL_500: {"max_support": 500},
}
OWN = "own scale"
GROUPS = ("rivals", "ridge", "selected", OWN)
COUNTS = (5, 10, 25, 50, 100, 250, 1_000)  # thresholds of SupervisedPCA, and all columns
TREE_OF = 500  # most relevant variables for treelets
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)  # levels of the tree, as a share of all joins
FOLDS = 5


def basis(Y: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span of the centred columns of Y."""
    u, s, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    return u[:, s > 1e-9 * s[0]]


def kind_of(y: np.ndarray) -> str:
    """Return the target type of a target."""
    return "class" if y.ndim == 1 and y.dtype.kind == "i" else "numeric"


def indicators(y: np.ndarray) -> np.ndarray:
    """Return the target as numbers (n, c); classes as indicators."""
    if kind_of(y) == "class":
        return (y[:, None] == np.unique(y)).astype(float)
    return y.reshape(len(y), -1).astype(float)


def ours(model: Any, A: np.ndarray, y: np.ndarray, B: np.ndarray, *, passes: int = 1) -> Pair:
    """Return the components of a learner of streamsel."""
    model.learn_target(y)
    model.learn_columns(A)
    if passes == 2:
        model.learn_loadings(A)
    return model.transform_many(A), model.transform_many(B)


def ridge(A: np.ndarray, y: np.ndarray, B: np.ndarray, q: int, **parameters: Any) -> Pair:
    """Return ridge components of the Gram matrix, with the loadings of all columns."""
    everything = {"max_loadings": max(A.shape[1], q + 1)}
    return ours(RidgeComponents(q, target_type=kind_of(y), **everything | parameters), A, y, B)


def sospca(A: np.ndarray, y: np.ndarray, B: np.ndarray, q: int) -> Pair:
    return ours(SOSPCA(q, target_type=kind_of(y)), A, y, B)


def axes(A: np.ndarray, B: np.ndarray) -> Pair:
    """Return both in the principal axes of A, in order of variance: a rotation of A.

    Methods that do not depend on a rotation, such as PLS, have the same results in these axes.
    """
    if A.shape[1] <= len(A):
        d, V = eigh(A.T @ A)
        V = V[:, ::-1][:, d[::-1] > 1e-10 * d[-1]]
        return A @ V, B @ V
    d, E = eigh(A @ A.T)
    d, E = d[::-1], E[:, ::-1]
    kept = d > 1e-10 * d[0]
    lengths = np.sqrt(d[kept])
    return E[:, kept] * lengths, (B @ A.T) @ E[:, kept] / lengths


def pls(A: np.ndarray, y: np.ndarray, B: np.ndarray, q: int) -> Pair:
    model, found = fitted_pls(A, indicators(y), min(q, A.shape[1], len(A) - 1))
    return model.transform(A)[:, :found], model.transform(B)[:, :found]


def best_relevance(A: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Return the columns in order of relevance, the most relevant first."""
    squares = np.square(A - A.mean(axis=0)).sum(axis=0)
    along = np.square(U.T @ A).sum(axis=0)
    return np.argsort(-along / np.where(squares > 0.0, squares, np.inf), kind="stable")


def pcas(A: np.ndarray, U: np.ndarray, B: np.ndarray, q: int) -> Iterator[Pair]:
    """Yield the first q principal components of increasing numbers of relevant columns."""
    ranked, p = best_relevance(A, U), A.shape[1]
    K, across = np.zeros((len(A), len(A))), np.zeros((len(B), len(A)))
    for start, stop in pairwise((0, *(c for c in COUNTS if c < p), p)):
        columns = A[:, ranked[start:stop]]
        K += columns @ columns.T
        across += B[:, ranked[start:stop]] @ columns.T
        most = min(q, stop, len(A) - 1)
        d, E = eigh(K, subset_by_index=[len(A) - most, len(A) - 1])
        d, E = d[::-1], E[:, ::-1]
        kept = d > 1e-9 * d[0]
        lengths = np.sqrt(d[kept])
        yield E[:, kept] * lengths, across @ E[:, kept] / lengths


def tree(C: np.ndarray, levels: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield the treelet bases, vectors in columns, of a covariance C at some levels, ascending.

    At each level the two most correlated variables are rotated until they are uncorrelated; the one
    with more variance continues as their sum, and the other is final, as their difference.
    """
    C, Bt = C.copy(), np.eye(len(C))
    deviation = np.sqrt(C.diagonal())
    correlation = np.abs(C) / np.outer(deviation, deviation)
    np.fill_diagonal(correlation, -1.0)
    is_active = np.ones(len(C), dtype=bool)
    for level in range(max(levels) + 1):
        if level in levels:
            yield Bt.T.copy()
        if level == max(levels):
            return
        i, j = np.unravel_index(correlation.argmax(), correlation.shape)
        angle = 0.5 * np.arctan2(2.0 * C[i, j], C[i, i] - C[j, j])
        rotation = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        pair = [i, j]  # the first is their sum from here on
        C[pair] = rotation @ C[pair]
        C[:, pair] = C[:, pair] @ rotation.T
        Bt[pair] = rotation @ Bt[pair]
        is_active[j] = False
        correlation[j], correlation[:, j] = -1.0, -1.0
        rest = np.flatnonzero(is_active & (np.arange(len(C)) != i))
        correlations = np.abs(C[i, rest]) / np.sqrt(C[i, i] * C[rest, rest].clip(1e-300))
        correlation[i, rest] = correlations
        correlation[rest, i] = correlations


def treelets(A: np.ndarray, U: np.ndarray, B: np.ndarray, q: int) -> Iterator[Pair]:
    """Yield the q most relevant treelets of the most relevant variables, level by level."""
    columns = best_relevance(A, U)[:TREE_OF]
    A, B = A[:, columns], B[:, columns]
    levels = sorted({round(share * (A.shape[1] - 1)) for share in LEVELS})
    for vectors in tree(A.T @ A + 1e-9 * len(A) * np.eye(A.shape[1]), levels):
        Z = A @ vectors
        best = best_relevance(Z, U)[:q]
        yield Z[:, best], B @ vectors[:, best]


def residual(Z: np.ndarray, train: np.ndarray, Zt: np.ndarray, test: np.ndarray) -> float:
    """Return the residual sum of squares on test rows of least squares on components."""
    return float(np.square(test - Zt @ np.linalg.lstsq(Z, train)[0]).sum())


def validated(
    path: Any, A: np.ndarray, U: np.ndarray, B: np.ndarray, qs: Sequence[int], seed: int
) -> Iterator[tuple[int, Pair]]:
    """Yield (q, the step of a path whose q components best explain the target of held-out rows).

    Five folds, least squares, one step for each q.
    """
    folds = []
    for train, test in KFold(FOLDS, shuffle=True, random_state=seed).split(A):
        mean, middle = A[train].mean(axis=0), U[train].mean(axis=0)
        of_train, of_test = U[train] - middle, U[test] - middle
        steps = path(A[train] - mean, basis(of_train), A[test] - mean, max(qs))
        folds.append(
            [[residual(Z[:, :q], of_train, Zt[:, :q], of_test) for q in qs] for Z, Zt in steps]
        )
    losses = np.sum(folds, axis=0)
    made = list(path(A, U, B, max(qs)))
    for q, best in zip(qs, losses.argmin(axis=0).tolist(), strict=True):
        Z, Zt = made[best]
        yield q, (Z[:, :q], Zt[:, :q])


def rivals(
    A: np.ndarray, y: np.ndarray, B: np.ndarray, qs: Sequence[int], seed: int
) -> Iterator[tuple[str, int, Pair]]:
    """Yield (method, q, components) of the methods of other packages, and of SOSPCA."""
    U = basis(indicators(y))
    for q in qs:
        yield "SOSPCA", q, sospca(A, y, B, q)
    for name, path in {SUPERVISED: pcas, TREELETS: treelets}.items():
        for q, pair in validated(path, A, U, B, qs, seed):
            yield name, q, pair
    rotated = axes(A, B)
    for name, (Z, Zt) in {"PLS": pls(rotated[0], y, rotated[1], max(qs)), "PCA": rotated}.items():
        for q in qs:
            yield name, q, (Z[:, :q], Zt[:, :q])


def representations(
    A: np.ndarray, y: np.ndarray, B: np.ndarray, group: str, qs: Sequence[int], seed: int
) -> Iterator[tuple[str, int, Pair]]:
    """Yield (method, q, components of training and test rows)."""
    if group == "rivals":
        yield from rivals(A, y, B, qs, seed)
        return
    most = max(qs)
    if group == "selected":
        model = ForwardSelection(min(most, A.shape[1]), target_type=kind_of(y))
        model.learn_target(y)
        model.learn_columns(A)
        selected = list(model.selected)
        for q in qs:
            yield SELECTED, q, (A[:, selected[:q]], B[:, selected[:q]])
        return
    if group == OWN:
        rotated = axes(A, B)
        own = {name: ridge(A, y, B, most, **WAYS[name]) for name in (RIDGE, POOL_500)}
        own |= {"PLS": pls(rotated[0], y, rotated[1], most), "PCA": rotated}
        for name, (Z, Zt) in own.items():
            for q in qs:
                yield f"{name}, {OWN}", q, (Z[:, :q], Zt[:, :q])
        return
    pairs = {name: ridge(A, y, B, most, **parameters) for name, parameters in WAYS.items()}
    for name, passes in {TWICE: 2, ONCE: 1}.items():
        model = RidgeComponents(most, target_type=kind_of(y))
        pairs[name] = ours(model, A, y, B, passes=passes)
    for name, (Z, Zt) in pairs.items():
        for q in qs:
            yield name, q, (Z[:, :q], Zt[:, :q])
