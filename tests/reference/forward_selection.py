"""Forward selection by definition: the full ridge matrix, and every column scored, at each pick.

With x of unit length and U an orthonormal basis of the centred target, R = lambda (lambda I + the
sum of x x' over the picks)^-1. The next pick is the column with the largest |U'R x|^2 / (lambda +
x'R x). With lambda = 0, R projects onto the orthogonal complement of the picks, and columns whose
residual is below 1e-10 are excluded. Scores tie if they differ by at most 1e-12 of the highest, or
by the effect of rounding on its root: 1e-14 over the root of lambda, at most 1e-9. The first column
wins a tie.
"""

import numpy as np

from tests.reference import target

TIE = 1e-12
ROUNDING, ROUGH = 1e-14, 1e-9
NOTHING = 1e-12
SPENT = 1e-10


def answer(X, y, *, k=20, ridge=1.0, target_type="auto", swaps=0, **ignored):
    """Return the selected columns, and their scores at selection.

    After k picks, up to `swaps` times, each pick is replaced by the column of largest score given
    the other picks, if that score is higher. If the picks have changed, they are then ordered by
    forward selection among themselves.
    """
    units, basis = prepared(X, y, target_type)
    picks, scores = greedy(units, basis, k, ridge)
    swapped = exchanged(units, basis, picks, ridge, swaps) if len(picks) == k else picks
    if sorted(swapped) != sorted(picks):
        picks, scores = greedy({j: units[j] for j in sorted(swapped)}, basis, k, ridge)
    return {"selected": picks, "scores": dict(zip(picks, scores, strict=True))}


def exchanged(units, basis, picks, ridge, sweeps):
    """Return the picks after this many sweeps of exchanges, or after a sweep without changes."""
    picks = list(picks)
    for _ in range(sweeps):
        before = list(picks)
        for i in range(len(picks)):
            others = picks[:i] + picks[i + 1 :]
            score = {
                j: score_of(x, units, others, basis, ridge)
                for j, x in units.items()
                if j not in others
            }
            highest = max(score.values())
            equal = tolerance(highest, ridge)
            if score[picks[i]] < highest - equal:
                picks[i] = min(j for j, s in score.items() if s >= highest - equal)
        if picks == before:
            break
    return picks


def objective(X, y, selected, *, ridge=1.0, target_type="auto", **ignored):
    """Return the decrease of the penalized squared error of the target due to the columns."""
    units, basis = prepared(X, y, target_type)
    Z = np.array([units[j] for j in selected])
    K = ridge * np.eye(len(Z)) + Z @ Z.T
    return float(np.sum((basis.T @ Z.T) * np.linalg.solve(K, Z @ basis).T))


def tolerance(highest, ridge):
    rough = min(ROUGH, ROUNDING / np.sqrt(ridge)) if ridge > 0 else ROUGH
    return max(TIE * highest, rough * np.sqrt(max(highest, 0.0)))


def greedy(units, basis, k, ridge):
    """Return the picks of forward selection, and their scores."""
    picks, scores = [], []
    while len(picks) < k:
        score = {j: score_of(x, units, picks, basis, ridge) for j, x in units.items()}
        free = {j: s for j, s in score.items() if j not in picks and s > NOTHING}
        if not free:
            break
        highest = max(free.values())
        equal = tolerance(highest, ridge)
        picks.append(min(j for j, s in free.items() if s >= highest - equal))
        scores.append(free[picks[-1]])
    return picks, scores


def prepared(X, y, kind):
    """Return the columns that vary, of length 1 and centred, and a basis of the target."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    is_class = kind == "class" or (kind == "auto" and y.dtype.kind not in "iuf")
    basis = target.basis(target.indicators(y) if is_class else y)
    varies = [j for j, x in enumerate(X.T) if np.ptp(x) > 0]
    return {j: target.unit(target.centred(X[:, j])) for j in varies}, basis


def score_of(x, units, picks, basis, ridge):
    chosen = np.array([units[j] for j in picks]).reshape(len(picks), len(x))
    if ridge > 0:
        left = ridge * np.linalg.solve(ridge * np.eye(len(x)) + chosen.T @ chosen, x)
        size = ridge + x @ left
    else:
        left = x - chosen.T @ np.linalg.lstsq(chosen.T, x, rcond=1e-10)[0] if picks else x
        size = left @ left
        if size < SPENT:
            return -np.inf
    return float(np.sum((basis.T @ left) ** 2) / size)


def is_as_good(X, y, selected, *, ridge=1.0, target_type="auto", **ignored):
    """Return whether each pick, given those before it, has the best score up to 1e-9."""
    units, basis = prepared(X, y, target_type)
    for s, pick in enumerate(selected):
        free = [j for j in units if j not in selected[:s]]
        score = {j: score_of(units[j], units, selected[:s], basis, ridge) for j in free}
        if score[pick] < max(score.values()) * (1 - 1e-9):
            return False
    return True
