"""Mutual information of binned columns with a binned target, and its significance.

Given the sizes of the bins on either side, every assignment of observations to the target's bins
is equally likely under independence, and a cell's count is hypergeometric. That gives the exact
mean of the information for any counts, and its whole distribution for tables of two by two. Every
column is computed by the same instructions at any position in a block.
"""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Counts less probable than this fraction of the mode are left out of means.
_NEGLIGIBLE = 1e-20
# The statistic is divided by 1 plus this factor times the relative excess of the mean of 2n * I
# over that of χ². A factor of 1 corrects the mean; more corrects the tail. In 46 simulated tables
# with 5 to 13 observations per cell the true probability was then 0.5 to 1.2 times a p-value of
# 5e-5 (1.4 times in one).
_TAIL_CORRECTION = 1.5
# Information of two tables within this relative distance is equal.
_TIE = 1e-12


@kernel()
def _mean_of_cell(a: int, b: int, n: int, k_log_k: np.ndarray) -> float:
    """Return the mean of k log k, for the count k of a cell with row sum a and column sum b."""
    min_count, max_count = max(0, a + b - n), min(a, b)
    mode = min(max(((a + 1) * (b + 1)) // (n + 2), min_count), max_count)
    weights, total = 1.0, k_log_k[mode]
    weight = 1.0
    k = mode
    while k < max_count and weight > _NEGLIGIBLE:
        weight *= (a - k) * (b - k) / ((k + 1) * (n - a - b + k + 1))
        k += 1
        weights += weight
        total += weight * k_log_k[k]
    weight = 1.0
    k = mode
    while k > min_count and weight > _NEGLIGIBLE:
        weight *= k * (n - a - b + k) / ((a - k + 1) * (b - k + 1))
        k -= 1
        weights += weight
        total += weight * k_log_k[k]
    return float(total / weights)


@kernel()
def _mean_of_table(
    rows: np.ndarray, columns: np.ndarray, n: int, column_term: float, k_log_k: np.ndarray
) -> float:
    """Return the mean information, times n, of tables with these row and column sums.

    Parameters
    ----------
    rows, columns
        Sums; some may be 0.
    n
        Sum of the rows, and of the columns.
    column_term
        The sum of k log k over the column sums, minus n log n.
    k_log_k
        k log k for k in 0 to n.
    """
    mean = -column_term
    row_term = 0.0
    for t in range(rows.size):
        a = rows[t]
        if a == 0:
            continue
        if t == 0 or a != rows[t - 1]:
            row_term = 0.0
            for c in range(columns.size):
                if columns[c] > 0:
                    row_term += _mean_of_cell(a, columns[c], n, k_log_k)
        mean += row_term - k_log_k[a]
    return max(mean, 0.0)


@kernel()
def _p_value_of_two_by_two(a: int, b: int, n: int, count: int, k_log_k: np.ndarray) -> float:
    """Return the probability of at least the information of the two-by-two table with `count`.

    Parameters
    ----------
    a, b
        Sums of the first row and of the first column.
    n
        Sum of all cells.
    count
        The count of the first cell.
    k_log_k
        k log k for k in 0 to n.
    """
    min_count, max_count = max(0, a + b - n), min(a, b)
    rest = n - a - b
    observed = k_log_k[count] + k_log_k[a - count] + k_log_k[b - count] + k_log_k[rest + count]
    observed -= _TIE * k_log_k[n]
    mode = min(max(((a + 1) * (b + 1)) // (n + 2), min_count), max_count)
    weights = tail = 0.0
    for step in (1, -1):
        weight = 1.0
        k = mode
        # The mode is counted on the way up only.
        while weight > 0.0:
            if step == 1 or k < mode:
                weights += weight
                if k_log_k[k] + k_log_k[a - k] + k_log_k[b - k] + k_log_k[rest + k] >= observed:
                    tail += weight
            if k == (max_count if step == 1 else min_count):
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
    """Fill the bias-corrected mutual information of each binned column with codes, in nats.

    Parameters
    ----------
    bins
        (b, n) the bin of each sample in each column, in 0 to n_bins - 1; some may be empty.
    codes
        (n,) class, or bin of the target, of each sample, in 0 to n_codes - 1; some may be empty.
    n_bins, n_codes
        Number of bins, and of codes.
    out
        (b,) filled: the plug-in estimate I minus its mean under independence, given the sizes of
        bins and codes.
    statistic, dof
        (b,) filled. dof is (B - 1) (C - 1), for the B bins and C codes with samples. Under
        independence the statistic is approximately χ² with dof degrees of freedom: it is 2n * I,
        scaled down if the mean of that exceeds dof. If dof is 1 it is instead the exact p-value.
    """
    b, n = bins.shape
    # k log k for the integers k from 0 to n.
    k_log_k = np.zeros(n + 1)
    for k in range(2, n + 1):
        k_log_k[k] = k * np.log(k)
    code_counts = np.zeros(n_codes, np.int64)
    for i in range(n):
        code_counts[codes[i]] += 1
    n_codes_used = 0
    code_term = -k_log_k[n]
    for c in range(n_codes):
        n_codes_used += code_counts[c] > 0
        code_term += k_log_k[code_counts[c]]
    table = np.empty(n_bins * n_codes, np.int64)
    bin_counts, previous_counts = np.zeros(n_bins, np.int64), np.zeros(n_bins, np.int64)
    mean = 0.0
    for j in range(b):
        table[:] = 0
        for i in range(n):
            table[bins[j, i] * n_codes + codes[i]] += 1
        n_bins_used = 0
        info = -code_term
        has_same_counts = j > 0
        for t in range(n_bins):
            previous_counts[t] = bin_counts[t]
            bin_counts[t] = 0
            for c in range(n_codes):
                both = table[t * n_codes + c]
                bin_counts[t] += both
                info += k_log_k[both]
            has_same_counts = has_same_counts and bin_counts[t] == previous_counts[t]
            n_bins_used += bin_counts[t] > 0
            info -= k_log_k[bin_counts[t]]
        # Columns of distinct values all have the same bin sizes, and so the same mean.
        if not has_same_counts:
            mean = _mean_of_table(bin_counts, code_counts, n, code_term, k_log_k)
        plug_in = max(float(info), 0.0)
        dof[j] = (n_bins_used - 1) * (n_codes_used - 1)
        out[j] = (plug_in - mean) / n
        if dof[j] == 1:
            t = c = 0
            while bin_counts[t] == 0:
                t += 1
            while code_counts[c] == 0:
                c += 1
            statistic[j] = _p_value_of_two_by_two(
                bin_counts[t], code_counts[c], n, table[t * n_codes + c], k_log_k
            )
        else:
            expected = max((n_bins_used - 1) * (n_codes_used - 1), 1)
            excess = max(2.0 * mean - expected, 0.0) / expected
            statistic[j] = 2.0 * plug_in / (1.0 + _TAIL_CORRECTION * excess)
