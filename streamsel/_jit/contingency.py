"""Mutual information of columns in bins with a target in bins, and how surely it is no chance.

Given the sizes of the bins on either side, every assignment of observations to the target's bins
is equally likely under independence, and a cell's count is hypergeometric. That gives the mean of
the information exactly, whatever the counts, and of a table of two by two its whole distribution.
Every column gets the same instructions wherever it is in a block.
"""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# Counts whose probability is below this share of the most likely one's are left out of a mean.
_NEGLIGIBLE = 1e-20
# The statistic is divided by 1 plus so many times what the mean of 2n * I has beyond that of χ², a
# half more than corrects the mean, for the tail. In 46 simulated tables of 5 to 13 observations a
# cell the true chance was then 0.5 to 1.2 times a p-value of 5e-5 (1.4 times in one).
_SPREAD = 1.5
# Information of two tables that differs by no more than this share is the same.
_TIE = 1e-12


@kernel()
def _mean_of_cell(a: int, b: int, n: int, k_log_k: np.ndarray) -> float:
    """Mean of k log k, k the count of a cell whose row has a observations and whose column b."""
    least, most = max(0, a + b - n), min(a, b)
    mode = min(max(((a + 1) * (b + 1)) // (n + 2), least), most)
    weights, total = 1.0, k_log_k[mode]
    weight = 1.0
    k = mode
    while k < most and weight > _NEGLIGIBLE:
        weight *= (a - k) * (b - k) / ((k + 1) * (n - a - b + k + 1))
        k += 1
        weights += weight
        total += weight * k_log_k[k]
    weight = 1.0
    k = mode
    while k > least and weight > _NEGLIGIBLE:
        weight *= k * (n - a - b + k) / ((a - k + 1) * (b - k + 1))
        k -= 1
        weights += weight
        total += weight * k_log_k[k]
    return float(total / weights)


@kernel()
def _mean_of_table(
    rows: np.ndarray, columns: np.ndarray, n: int, apart: float, k_log_k: np.ndarray
) -> float:
    """Mean information, times n, of tables with these sums of rows and columns.

    Parameters
    ----------
    rows, columns
        Sums, some of which may be 0.
    apart
        What k log k of the sums of the columns comes to, less n log n.
    """
    mean = -apart
    of_row = 0.0
    for t in range(rows.size):
        a = rows[t]
        if a == 0:
            continue
        if t == 0 or a != rows[t - 1]:
            of_row = 0.0
            for c in range(columns.size):
                if columns[c] > 0:
                    of_row += _mean_of_cell(a, columns[c], n, k_log_k)
        mean += of_row - k_log_k[a]
    return max(mean, 0.0)


@kernel()
def _chance_of_two_by_two(a: int, b: int, n: int, count: int, k_log_k: np.ndarray) -> float:
    """Chance of a table of two by two to have as much information as that with `count`.

    Parameters
    ----------
    a, b
        Sums of the first row and of the first column.
    count
        What is in the first cell.
    """
    least, most = max(0, a + b - n), min(a, b)
    rest = n - a - b
    seen = k_log_k[count] + k_log_k[a - count] + k_log_k[b - count] + k_log_k[rest + count]
    seen -= _TIE * k_log_k[n]
    mode = min(max(((a + 1) * (b + 1)) // (n + 2), least), most)
    weights = tail = 0.0
    for step in (1, -1):
        weight = 1.0
        k = mode
        # The most likely table is counted on the way up.
        while weight > 0.0:
            if step == 1 or k < mode:
                weights += weight
                if k_log_k[k] + k_log_k[a - k] + k_log_k[b - k] + k_log_k[rest + k] >= seen:
                    tail += weight
            if k == (most if step == 1 else least):
                break
            if step == 1:
                weight *= (a - k) * (b - k) / ((k + 1) * (rest + k + 1))
            else:
                weight *= k * (rest + k) / ((a - k + 1) * (b - k + 1))
            k += step
    return float(tail / weights)


@kernel()
def mutual_info(
    bins: np.ndarray,
    codes: np.ndarray,
    n_bins: int,
    n_codes: int,
    out: np.ndarray,
    statistic: np.ndarray,
    dof: np.ndarray,
) -> None:
    """Mutual information of each column, in bins, and codes, in nats, less its mean under none.

    Parameters
    ----------
    bins
        (b, n) the bin of each sample in each column, in 0 to n_bins - 1; some may be empty.
    codes
        (n,) class, or bin of the target, of each sample, in 0 to n_codes - 1; some may be empty.
    out
        (b,) filled: the plug-in estimate I less its mean under independence, given the sizes of
        bins and codes.
    statistic, dof
        (b,) filled. dof is (B - 1) (C - 1), of the B bins and C codes that have samples. Under
        independence the statistic ~ χ² with so many degrees of freedom, nearly: it is 2n * I,
        scaled down where the mean of that is more than dof. Where dof is 1 it is instead the chance
        itself of as much information, exactly.
    """
    b, n = bins.shape
    # Of integers k from 0 to n: k log k.
    k_log_k = np.zeros(n + 1)
    for k in range(2, n + 1):
        k_log_k[k] = k * np.log(k)
    of_code = np.zeros(n_codes, np.int64)
    for i in range(n):
        of_code[codes[i]] += 1
    codes_seen = 0
    apart = -k_log_k[n]
    for c in range(n_codes):
        codes_seen += of_code[c] > 0
        apart += k_log_k[of_code[c]]
    table = np.empty(n_bins * n_codes, np.int64)
    of_bin, before = np.zeros(n_bins, np.int64), np.zeros(n_bins, np.int64)
    mean = 0.0
    for j in range(b):
        table[:] = 0
        for i in range(n):
            table[bins[j, i] * n_codes + codes[i]] += 1
        bins_seen = 0
        info = -apart
        same = j > 0
        for t in range(n_bins):
            before[t] = of_bin[t]
            of_bin[t] = 0
            for c in range(n_codes):
                both = table[t * n_codes + c]
                of_bin[t] += both
                info += k_log_k[both]
            same = same and of_bin[t] == before[t]
            bins_seen += of_bin[t] > 0
            info -= k_log_k[of_bin[t]]
        # Columns of distinct values all have the same sizes of bins.
        if not same:
            mean = _mean_of_table(of_bin, of_code, n, apart, k_log_k)
        plug_in = max(float(info), 0.0)
        dof[j] = (bins_seen - 1) * (codes_seen - 1)
        out[j] = (plug_in - mean) / n
        if dof[j] == 1:
            t = c = 0
            while of_bin[t] == 0:
                t += 1
            while of_code[c] == 0:
                c += 1
            statistic[j] = _chance_of_two_by_two(
                of_bin[t], of_code[c], n, table[t * n_codes + c], k_log_k
            )
        else:
            freedom = max((bins_seen - 1) * (codes_seen - 1), 1)
            beyond = max(2.0 * mean - freedom, 0.0) / freedom
            statistic[j] = 2.0 * plug_in / (1.0 + _SPREAD * beyond)
