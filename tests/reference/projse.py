"""ProjSe by definition: explicit projectors, dense kernel matrices, and the paper's algorithm.

A pick is (column, score, round). Its score is ‖P_s φ(x)‖² / ‖φ(x)‖². Columns whose scores differ by
less than `TIE` tie, and the first of them is picked. A column is excluded for the rest of a round
when less than `SPENT` of its own relevance² is left, and is never a candidate if its relevance² is
below `SPENT`. When no candidate is left, `restart` starts a new round with P₀.
"""

import numpy as np
import scipy.linalg
import scipy.spatial.distance

from tests.reference import target

TIE = 1e-12
SPENT = 1e-12


def greedy(start, k, on_rank_exhausted):
    """Pick k columns, one at a time and round after round.

    `start` returns two functions for a round: one returns the current scores of all columns, the
    other deflates by a column.
    """
    picks = []
    for turn in range(k):
        scores, deflate = start()
        first = scores()
        taken = {j for j, _, _ in picks}
        left = [j for j in np.flatnonzero(first > SPENT).tolist() if j not in taken]
        before = len(picks)
        while len(picks) < k:
            now = scores()
            left = [j for j in left if now[j] > SPENT * first[j]]
            if not left:
                break
            best = max(now[j] for j in left)
            pick = next(j for j in left if now[j] >= best - TIE)
            picks.append((pick, now[pick], turn))
            left.remove(pick)
            deflate(pick)
        if len(picks) in (before, k) or on_rank_exhausted == "stop":
            break
    return picks


def linear(X, y, k, on_rank_exhausted="restart"):
    """Pick by P₀ = UUᵀ, argmax ‖P_s x‖²/‖x‖² and P_{s+1} = P_s − (P_s x)(P_s x)ᵀ/‖P_s x‖²."""
    n, p = X.shape
    U = target.basis(y)
    unit = np.zeros((n, p))
    for j in range(p):
        x = target.centred(X[:, j])
        if x.any():
            unit[:, j] = target.unit(x)

    def start():
        P = U @ U.T

        def scores():
            return ((P @ unit) ** 2).sum(axis=0)

        def deflate(j):
            nonlocal P
            v = P @ unit[:, j]
            P = P - np.outer(v, v) / (v @ v)

        return scores, deflate

    return greedy(start, k, on_rank_exhausted)


def lapack(X, y):
    """Return picks and scores R² of one round, by LAPACK's column-pivoted QR of G."""
    U = target.basis(y)
    G = np.column_stack([U.T @ target.unit(target.centred(x)) for x in X.T])
    R, pivots = scipy.linalg.qr(G, mode="r", pivoting=True)
    return pivots[: len(G)], np.diag(R) ** 2


def prepared(X, scale):
    """Return the variables, centred over samples and (scale) of unit variance: ‖x‖² = n."""
    X = np.column_stack([target.centred(x) for x in np.asarray(X, dtype=float).T])
    if scale:
        X = np.column_stack([np.sqrt(len(x)) * target.unit(x) if x.any() else x for x in X.T])
    return X


def default_gamma(kernel, Y, n):
    """Return 1/n for poly; for rbf 1/(2σ²), with σ the mean distance of targets, or √(2n)."""
    if kernel != "rbf":
        return 1.0 / n
    c = 0 if Y is None else Y.shape[1]
    if c < 2:
        return 1.0 / (2.0 * 2.0 * n)
    distances = [np.linalg.norm(Y[:, i] - Y[:, j]) for i in range(c) for j in range(i)]
    return 1.0 / (2.0 * np.mean(distances) ** 2)


def gram(A, B, kernel, gamma, degree=3, coef0=0.0):
    """Return κ between the columns of A and those of B, entry by entry."""
    if kernel == "linear":
        return A.T @ B
    if kernel == "poly":
        return (gamma * (A.T @ B) + coef0) ** degree
    return np.array([[np.exp(-gamma * ((a - b) ** 2).sum()) for b in B.T] for a in A.T])


def kernel_pieces(X, Y, kernel, degree, gamma, coef0, scale):
    """Return K_y (or None), K_yx (or K_x), the diagonal κ(x, x) and the varying columns."""
    A = prepared(X, scale)
    live = A.any(axis=0)
    n = len(A)
    # Constant targets are excluded.
    T = None if Y is None else prepared(target.columns(Y), scale)
    gamma = default_gamma(kernel, T, n) if gamma is None else gamma
    options = {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}
    diagonal = np.array([gram(a[:, None], a[:, None], **options)[0, 0] for a in A.T])
    if T is None:
        return None, gram(A, A, **options), diagonal, live
    return gram(T, T, **options), gram(T, A, **options), diagonal, live


def kernel(
    X, Y, k, kernel="poly", *, degree=3, gamma=None, coef0=0.0, scale=True,
    on_rank_exhausted="restart", tolerance=1e-10,
):  # fmt: skip
    """Pick by φ(x) projected on span φ(Y) by the eigenvectors of K_y, then deflated there."""
    K_y, K_yx, diagonal, live = kernel_pieces(X, Y, kernel, degree, gamma, coef0, scale)
    values, vectors = np.linalg.eigh(K_y)
    keep = values > tolerance * values[-1]
    G = (vectors[:, keep] / np.sqrt(values[keep])).T @ K_yx
    G = np.where(live, G / np.sqrt(np.where(live, diagonal, 1.0)), 0.0)
    return greedy(_coordinates(G), k, on_rank_exhausted)


def pooled(X, Y, k, m):
    """Make one pass with a pool, reduced to m by the greedy at every 2m candidates.

    A column is admitted if its relevance² exceeds the lowest score kept at the last reduction.
    """
    U = target.basis(Y)
    unit = [target.unit(target.centred(x)) if np.ptp(x) > 0 else np.zeros(len(x)) for x in X.T]
    G = U.T @ np.column_stack(unit)
    pool = []
    weakest = 0.0
    for j in np.flatnonzero((G**2).sum(axis=0) > SPENT).tolist():
        if (G[:, j] ** 2).sum() <= weakest:
            continue
        pool.append(j)
        if len(pool) == 2 * m:
            kept = greedy(_coordinates(G[:, pool]), m, "restart")
            weakest = min(score for _, score, _ in kept)
            pool = sorted(pool[i] for i, _, _ in kept)
    picks = greedy(_coordinates(G[:, pool]), k, "restart")
    return [(pool[i], score, turn) for i, score, turn in picks]


def kernel_scores(X, Y, kernel="poly", *, degree=3, gamma=None, coef0=0.0, scale=True):
    """Return every column's relevance²: k_yxᵀ K_y⁺ k_yx / κ(x, x), with a pseudo-inverse."""
    K_y, K_yx, diagonal, live = kernel_pieces(X, Y, kernel, degree, gamma, coef0, scale)
    inverse = np.linalg.pinv(K_y, rcond=1e-10, hermitian=True)
    raw = np.einsum("ip,ij,jp->p", K_yx, inverse, K_yx)
    return np.where(live, raw / np.where(live, diagonal, 1.0), 0.0)


def _coordinates(G):
    """Return the `start` of `greedy` for coordinates, with explicit r×r projectors."""

    def start():
        P = np.eye(len(G))

        def scores():
            return ((P @ G) ** 2).sum(axis=0)

        def deflate(j):
            nonlocal P
            v = P @ G[:, j]
            P = P - np.outer(v, v) / (v @ v)

        return scores, deflate

    return start


def unsupervised(
    X,
    k,
    kernel="linear",
    *,
    degree=3,
    gamma=None,
    coef0=0.0,
    scale=True,
    on_rank_exhausted="restart",
):
    """Pick by pivoted Cholesky of the variables' whole kernel matrix, of unit diagonal (P₀ = I)."""
    _, K, diagonal, live = kernel_pieces(X, None, kernel, degree, gamma, coef0, scale)
    size = np.sqrt(np.where(live, diagonal, 1.0))
    K = np.where(live, 1.0, 0.0) * (K / size) / size[:, None]

    def start():
        S = K.copy()

        def scores():
            return np.diag(S).copy()

        def deflate(j):
            nonlocal S
            S = S - np.outer(S[:, j], S[j]) / S[j, j]

        return scores, deflate

    return greedy(start, k, on_rank_exhausted)


def paper_algorithm(X, Y, k, kernel="linear", *, degree=3, gamma=None, coef0=0.0):
    """Run the paper's Algorithm 2 (Figure 3): eigenvectors of K_y, one matrix sweep per pick.

    The result is the picked indices, in order. X and Y must be centred and scaled. The cost is
    that of K_y (m×m) and its eigenvectors, O(m³), and O(m·p) per pick.
    """
    gamma = default_gamma(kernel, Y, len(X)) if gamma is None else gamma
    if kernel == "rbf":  # the same formula, fast enough to be timed
        K_yx = np.exp(-gamma * scipy.spatial.distance.cdist(Y.T, X.T, "sqeuclidean"))
        K_y = np.exp(-gamma * scipy.spatial.distance.cdist(Y.T, Y.T, "sqeuclidean"))
        diagonal = np.ones(X.shape[1])
    else:
        options = {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}
        K_yx, K_y = gram(Y, X, **options), gram(Y, Y, **options)
        own = (X**2).sum(axis=0)
        diagonal = own if kernel == "linear" else (gamma * own + coef0) ** degree
    values, vectors = np.linalg.eigh(K_y)
    keep = values > 1e-10 * values[-1]
    # Step 3: every φ(x) in the eigenbasis, each divided by its norm.
    U = (vectors[:, keep] / np.sqrt(values[keep])).T @ K_yx
    U /= np.sqrt(diagonal)
    picks = []
    for _ in range(k):
        norms = np.einsum("ij,ij->j", U, U)
        norms[picks] = -1.0
        picks.append(int(np.argmax(norms)))
        direction = U[:, picks[-1]].copy()
        size = direction @ direction
        if size <= SPENT:
            picks.pop()
            break
        U -= np.outer(direction / size, direction @ U)
    return picks


def answer(X, y, *, k=20, on_rank_exhausted="restart", **params):
    """Return the results of a model that has learnt the columns of X; y may be None."""
    options = {
        name: params[name]
        for name in ("kernel", "degree", "gamma", "coef0", "scale")
        if name in params
    }
    Y = None
    if y is not None:
        Y = target.numbers(y, params.get("target_type", "auto")).reshape(len(X), -1)
    if Y is None:
        picks, relevance2 = (
            unsupervised(X, k, on_rank_exhausted=on_rank_exhausted, **options),
            np.ones(X.shape[1]),
        )
    elif options.get("kernel", "linear") == "linear":
        U = target.basis(Y)
        picks = linear(X, Y, k, on_rank_exhausted)
        relevance2 = [target.relevance(x, U) ** 2 if np.ptp(x) else 0.0 for x in X.T]
    else:
        picks = kernel(X, Y, k, on_rank_exhausted=on_rank_exhausted, **options)
        relevance2 = kernel_scores(X, Y, **options)
    return {
        "selected": [j for j, _, _ in picks],
        "scores": {j: score for j, score, _ in picks},
        "rounds": {j: turn for j, _, turn in picks},
        "relevance": {j: float(np.sqrt(relevance2[j])) for j, _, _ in picks},
    }
