"""mRMR by definition: relevance to the target, and redundancy with earlier picks.

The quotient is rel / mean of max(red, 0.001) over the picks. The difference is rel - mean red, or
with beta, rel - beta times the sum of red. The first pick has the largest rel. A column without
relevance is never picked.

Scores tie if they differ by no more than rounding: their terms have a relative error of 1e-12 and
an absolute error of 1e-14. The first of the columns that tie with the highest is picked. F is
evaluated at r² = 1 - 1e-9 if r² is larger.
"""

import numpy as np

from tests.reference import target as space
from tests.reference.select_k_best import bins, is_class, mutual_info, target_codes

FLOOR = 0.001
PERFECT = 1 - 1e-9
NOTHING = 1e-12


def answer(
    X, y, *, k=20, score="f", redundancy="correlation", scheme="quotient", beta=None, n_bins=10,
    target_type="auto", **ignored,
):  # fmt: skip
    """Return the selected columns, and their scores at selection."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    varies = [j for j in range(X.shape[1]) if np.ptp(X[:, j]) > 0]
    relevant = relevances(X, y, varies, score, n_bins, target_type)
    redundant = redundancies(X, list(relevant), redundancy, n_bins)
    picks, scores = [], []
    while len(picks) < min(k, len(relevant)):
        found = {
            j: score_of(rel, error, [redundant[j, i] for i in picks], scheme, beta)
            for j, (rel, error) in relevant.items()
            if j not in picks
        }
        highest, tolerance = max(found.values())
        picks.append(min(j for j, (score, _) in found.items() if score >= highest - tolerance))
        scores.append(found[picks[-1]][0])
    return {"selected": picks, "scores": dict(zip(picks, scores, strict=True))}


def uncertain(value):
    return 1e-12 * value + 1e-14


def score_of(rel, error, red, scheme, beta):
    """Return the score of a column, and its error bound."""
    if not red:
        return rel, error
    if scheme == "quotient":
        mean = np.mean(np.maximum(red, FLOOR))
        score = rel / mean
        return score, error / mean + score * uncertain(mean) / mean
    weight = 1.0 if beta is None else beta * len(red)
    return rel - weight * np.mean(red), error + weight * uncertain(np.mean(red))


def relevances(X, y, varies, kind, n_bins, of_target):
    """Return rel of every column that is informative about the target, and its error bound."""
    relevant = {}
    if kind == "mutual_info":
        codes = target_codes(y, of_target, n_bins, "frequency")
        for j in varies:
            info = mutual_info(bins(X[:, j], n_bins, "frequency"), codes)
            relevant[j] = info, uncertain(info)
        return {j: found for j, found in relevant.items() if found[0] > NOTHING}
    basis = space.basis(space.indicators(y) if is_class(y, of_target) else y)
    n, rank = basis.shape
    for j in varies:
        r = space.relevance(X[:, j], basis)
        if r**2 <= NOTHING:
            continue
        if kind == "correlation":
            relevant[j] = r, uncertain(r)
        else:
            square = min(r**2, PERFECT)
            F = square / (1 - square) * max(n - 1 - rank, 0) / rank
            relevant[j] = F, 2 * F * uncertain(r) / r / (1 - square)
    return relevant


def redundancies(X, columns, kind, n_bins):
    """Return the redundancy of each pair of columns."""
    if kind == "correlation":
        units = {j: space.unit(space.centred(X[:, j])) for j in columns}
        return {(i, j): abs(units[i] @ units[j]) for i in columns for j in columns}
    cut = {j: bins(X[:, j], n_bins, "frequency") for j in columns}
    return {(i, j): mutual_info(cut[i], cut[j]) for i in columns for j in columns}
