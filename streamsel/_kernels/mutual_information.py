"""Mutual information between binned columns, and the mRMR scores that use it as redundancy."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def mutual_information(
    codes: np.ndarray, others: np.ndarray, n_codes: int, n_others: int, out: np.ndarray
) -> None:
    """Fill the mutual information of each column with each other one, in nats: plug-in estimate.

    Sums are of integers, so that tables with the same counts, in any order, give the same result.

    Parameters
    ----------
    codes
        (b, n) the bin of each sample in each column, in 0 to n_codes - 1; some may be empty.
    others
        (n, q) the bins of the other columns, in 0 to n_others - 1, one row per sample.
    n_codes, n_others
        Number of bins of the columns, and of the other columns.
    out
        (b, q) filled.
    """
    b, n = codes.shape
    q = others.shape[1]
    # k log k for the integers k from 0 to n, in units that keep sums within 64 bits.
    units = 2.0 ** (60 - np.ceil(np.log2(n * np.log(n + 1.0) + 1.0)))
    k_log_k = np.zeros(n + 1, np.int64)
    for k in range(2, n + 1):
        k_log_k[k] = np.int64(np.rint(k * np.log(k) * units))
    other_term = np.zeros(q, np.int64)
    count = np.zeros((q, n_others), np.int64)
    for i in range(n):
        for h in range(q):
            count[h, others[i, h]] += 1
    for h in range(q):
        other_term[h] = k_log_k[n]
        for c in range(n_others):
            other_term[h] -= k_log_k[count[h, c]]
    code_counts = np.empty(n_codes, np.int64)
    table = np.empty((n_codes, q, n_others), np.int32)
    for j in range(b):
        for t in range(n_codes):
            code_counts[t] = 0
            for h in range(q):
                for c in range(n_others):
                    table[t, h, c] = 0
        for i in range(n):
            t = codes[j, i]
            code_counts[t] += 1
            for h in range(q):
                table[t, h, others[i, h]] += 1
        code_term = np.int64(0)
        for t in range(n_codes):
            code_term -= k_log_k[code_counts[t]]
        for h in range(q):
            info = other_term[h] + code_term
            for t in range(n_codes):
                for c in range(n_others):
                    info += k_log_k[table[t, h, c]]
            out[j, h] = max(info, 0) / (n * units)


@kernel()
def mrmr_score(rel: float, total: float, s: int, beta: float) -> float:
    """Return the score of a variable after s picks, with which its redundancies sum to `total`.

    Parameters
    ----------
    rel
        Relevance; -inf for an excluded variable.
    beta
        Negative for the quotient, rel over the mean redundancy; NaN for rel minus that mean; else
        for rel minus beta times the sum.
    """
    if s == 0 or rel == -np.inf:
        return rel
    if beta < 0.0:
        return rel * s / total
    if np.isnan(beta):
        return rel - total / s
    return rel - beta * total


@kernel()
def mrmr_scores(
    rel: np.ndarray, total: np.ndarray, s: int, beta: float, scores: np.ndarray
) -> None:
    """Fill the scores of variables after s picks, (p,), as in `mrmr_score`."""
    for j in range(rel.size):
        scores[j] = mrmr_score(rel[j], total[j], s, beta)


@kernel()
def fold_mrmr_scores(
    rel: np.ndarray, red: np.ndarray, min_redundancy: float, beta: float, scores: np.ndarray
) -> None:
    """Fill the scores of variables at each step.

    Parameters
    ----------
    rel
        (p,) relevances; -inf for excluded variables.
    red
        (p, >= S - 1) redundancies with each of the picks, in order; their signs are ignored.
    min_redundancy
        The smallest redundancy used.
    beta
        As in `mrmr_score`.
    scores
        (p, S) filled.
    """
    p, S = scores.shape
    for j in range(p):
        total = 0.0
        for s in range(S):
            if s > 0:
                total += max(abs(red[j, s - 1]), min_redundancy)
            scores[j, s] = mrmr_score(rel[j], total, s, beta)
