"""Cross-products of variables and targets over aligned rows, updated by rows or blocks of rows."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Indices in the counts of `row_moments.learn_row`, repeated here because a cached kernel would not
# be recompiled after a change in another file.
STEP, KEEP = 4, 5
# A fraction of the total weight up to this is a rounding error.
_ZERO_RTOL = 1e-9
# Rows with at least this many values, and an eighth of all columns, are buffered.
_MIN_BUFFERED_VALUES = 48
# Indices in `counts`: the weight of all rows, that of the newest, the sum of squared weights, the
# number of rows, the number of buffered rows, how the next row is processed; from
# `BUFFERED_WEIGHTS` on, the weights of the buffered rows.
WEIGHT, UNIT, SQUARES, ROWS, N_BUFFERED, NEXT_MODE, BUFFERED_WEIGHTS = range(7)
# How a row is processed: by its number of values, buffered, or added at once.
BY_SIZE, TO_BUFFER, TO_ADD = range(3)


@kernel()
def needs_missing_column(
    values: np.ndarray, indices: np.ndarray, column_of: np.ndarray, gap: np.ndarray
) -> bool:
    """Return whether a value is missing whose variable has no column that counts missing values.

    The parameters are those of `learn_products`.
    """
    for i in range(values.size):
        if np.isnan(values[i]) and column_of[indices[i]] >= 0 and gap[indices[i]] < 0:
            return True
    return False


@kernel()
def add_buffered(
    row_counts: np.ndarray, step: float, products: np.ndarray, counts: np.ndarray, S: np.ndarray
) -> None:
    """Add the products of the buffered rows, and empty the buffer.

    The parameters are those of `learn_products`, for which this is the first step, and `products`,
    (size, size).
    """
    if row_counts[STEP] != step:
        return
    for i in range(len(products)):
        for t in range(len(products)):
            S[i, t] += products[i, t]
    counts[N_BUFFERED] = 0.0
    row_counts[STEP] = step + 1.0


@kernel()
def learn_row_block(
    row_counts: np.ndarray,
    step: float,
    columns: np.ndarray,
    shift: np.ndarray,
    sums: np.ndarray,
    products: np.ndarray,
    size: int,
    unit: float,
    weight: float,
    squares: float,
    counts: np.ndarray,
    all_shifts: np.ndarray,
    all_sums: np.ndarray,
    S: np.ndarray,
) -> None:
    """Add rows whose sums and products over these columns are known.

    Parameters
    ----------
    row_counts, step
        As in `learn_products`.
    columns, shift, sums, products
        (m,), (m,), (m,), (m, m) the columns that are not 0, their new shifts, and the weighted sums
        and cross-products of their values.
    size, unit, weight, squares
        The number of rows, the weight of the newest, and of all of them, and the sum of the squared
        weights.
    counts, all_shifts, all_sums, S
        As `counts`, `shift`, `sums` and `S` in `learn_products`; the buffer must be empty.
    """
    if row_counts[STEP] != step:
        return
    for a in range(columns.size):
        i = columns[a]
        all_shifts[i] = shift[a]
        all_sums[i] += sums[a]
        for b in range(columns.size):
            S[i, columns[b]] += products[a, b]
    _count(float(size), unit, weight, squares, counts)
    row_counts[STEP] = step + 2.0


@kernel()
def _count(rows: float, unit: float, weight: float, squares: float, counts: np.ndarray) -> None:
    counts[WEIGHT] += weight
    counts[UNIT] = unit
    counts[SQUARES] += squares
    counts[ROWS] += rows


@kernel()
def learn_products(
    row_counts: np.ndarray,
    step: float,
    values: np.ndarray,
    indices: np.ndarray,
    column_of: np.ndarray,
    gap: np.ndarray,
    y: np.ndarray,
    targets: np.ndarray,
    weight: float,
    counts: np.ndarray,
    size: int,
    shift: np.ndarray,
    sums: np.ndarray,
    S: np.ndarray,
    buffered: np.ndarray,
) -> None:
    """Add a row to the cross-products of its columns, or to the buffer.

    The cost depends only on the values that differ from their shift.

    Parameters
    ----------
    row_counts, step
        The counts of `row_moments.learn_row`, and the required value of its `STEP`, or one more if
        `add_buffered` came first: otherwise nothing is done. It leaves `STEP` at step + 2.
    values, indices
        (m,) values, NaN if missing, and the state indices of their variables.
    column_of, gap
        (index in the state) -> the variable's column, -1 for none, and the column that counts the
        weight of rows where it is missing, -1 if there is none: needed for a value missing in this
        row (`needs_missing_column`).
    y, targets
        (c,) targets, and their columns.
    weight
        Weight of the row, compared with 1 for any other.
    counts
        (6 + q,) as described by the constants of this module. With `BY_SIZE` the row is buffered
        if it has many values.
    size
        Number of columns; the arrays may be longer.
    shift, sums, S
        For each column, the shift subtracted from its values, and the weighted sum and
        cross-products of the differences.
    buffered
        (q, >= size) the buffer of rows to be added by a matrix product; fewer than q are in use.
    """
    if row_counts[STEP] != step and row_counts[STEP] != step + 1.0:
        return
    nonzero = np.empty(size, dtype=np.intp)
    unit = counts[UNIT] / row_counts[KEEP] if counts[ROWS] > 0.0 else 1.0
    w = unit * weight
    n = counts[WEIGHT]
    first = int(counts[N_BUFFERED])
    x = buffered[first]
    for t in range(size):
        x[t] = -shift[t]
    for i in range(values.size):
        v, t, g = values[i], column_of[indices[i]], gap[indices[i]]
        if t < 0:
            continue
        if np.isnan(v):
            x[t] = 0.0
            x[g] = 1.0
            continue
        if sums[t] == 0.0:
            observed = n - sums[g] if g >= 0 else n
            if observed <= _ZERO_RTOL * n:
                # Later values are likely to be near the first.
                shift[t] = v
        x[t] = v - shift[t]
    for k in range(targets.size):
        t = targets[k]
        v = y[k]
        if n == 0.0:
            shift[t] = v
        x[t] = v - shift[t]
    count = 0
    for t in range(size):
        if x[t] != 0.0:
            nonzero[count] = t
            count += 1
            sums[t] += w * x[t]
    _count(1.0, unit, w, w * w, counts)
    row_counts[STEP] = step + 2.0
    # The first row sets the shifts, so that it differs from none of them.
    n_values = values.size if n == 0.0 else count
    is_buffered = n_values >= _MIN_BUFFERED_VALUES and 8 * n_values >= size
    if counts[NEXT_MODE] == TO_BUFFER or (counts[NEXT_MODE] == BY_SIZE and is_buffered):
        counts[BUFFERED_WEIGHTS + first] = w
        counts[N_BUFFERED] = first + 1.0
        return
    if 2 * count >= size:
        for a in range(count):
            i = nonzero[a]
            e = w * x[i]
            for t in range(size):
                S[i, t] += e * x[t]
    else:
        for a in range(count):
            i = nonzero[a]
            e = w * x[i]
            for b in range(count):
                S[i, nonzero[b]] += e * x[nonzero[b]]
