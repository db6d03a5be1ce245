"""Allele counts of packed genotypes, and as numbers with the missing ones filled."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def unpack_bytes(packed: np.ndarray, table: np.ndarray, counts: np.ndarray) -> None:
    """Look up every byte.

    Parameters
    ----------
    packed
        (m, b) bytes.
    table
        (256,) uint32: the four allele counts of each byte.
    counts
        (m, b) uint32, is overwritten.
    """
    for variant in range(packed.shape[0]):
        for i in range(packed.shape[1]):
            counts[variant, i] = table[packed[variant, i]]


@kernel()
def fill_missing_counts(counts: np.ndarray, impute: bool, values: np.ndarray) -> None:
    """Convert allele counts to floats.

    Parameters
    ----------
    counts
        (m, n) int8, one variant per row; below 0 if missing.
    impute
        Whether the mean of the variant replaces missing counts, instead of NaN. A variant without
        any count is NaN.
    values
        (m, n) float32, is overwritten.
    """
    m, n = counts.shape
    for variant in range(m):
        filling = np.nan
        if impute:
            total, n_missing = 0, 0
            for i in range(n):
                count = counts[variant, i]
                total += max(count, 0)
                n_missing += count < 0
            filling = total / (n - n_missing) if n_missing < n else np.nan
        fill = np.float32(filling)
        for i in range(n):
            count = counts[variant, i]
            values[variant, i] = fill if count < 0 else np.float32(count)
