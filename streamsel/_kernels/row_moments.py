"""Moments updated by single rows that name few variables, and moments over all rows.

A row that does not name a variable observed it as 0. Such rows are added, all at once, when the
variable is named next, or its moments are needed: their number, and the target in them, are the
differences between the totals then and now. So the cost of a row depends only on the variables that
it names.
"""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# A larger value would overflow when squared and summed.
MAX_ABS_VALUE = 1e152
# Indices in `counts`: the number of rows, their weight, the weight of the newest, the sum of the
# squared weights, how many further states have learnt the newest (`learn_row`; -1 if no row was
# learnt since the state was created or loaded), the factor by which each row reduces the weight of
# earlier ones, and the row from which on rows are refused.
ROWS, TOTAL, UNIT, SQUARES, STEP, KEEP, DUE = range(7)
# Rows that `learn_row` refuses, apart from those with infinite or too large values: none, those
# from `DUE` on, and also those with missing values.
REFUSE_NONE, REFUSE_DUE, REFUSE_MISSING = range(3)
# Return values of `learn_row` for rows refused for these reasons.
IS_DUE, HAS_MISSING = -1, -2


@kernel()
def _moments_with_zeros(j: int, own: np.ndarray, n: float) -> tuple[float, float, float, float]:
    """Return mean and sum of squares of variable j with the unnamed rows since its last.

    Also return the positive weight fraction of these rows, and the factor of the difference between
    the target's means in the products (Chan 1979).
    """
    gap = n - own[j, 4]
    fraction = gap / (own[j, 1] + gap)
    d = -own[j, 0] - own[j, 2]
    f = d * own[j, 1] * fraction
    return own[j, 2] + d * fraction, own[j, 3] + d * f, fraction, f


@kernel()
def _target_difference(
    j: int,
    k: int,
    own: np.ndarray,
    about: np.ndarray,
    last: np.ndarray,
    n: float,
    means: np.ndarray,
) -> float:
    """Return the difference of target k's mean between the unnamed rows and those added."""
    return (n * means[k] - own[j, 4] * last[j, k]) / (n - own[j, 4]) - about[j, k]


@kernel()
def _add_zeros(
    j: int,
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
    last: np.ndarray,
    n: float,
    means: np.ndarray,
) -> None:
    """Add to variable j the unnamed rows since its last, whose weight is above 0."""
    mean, m2, fraction, f = _moments_with_zeros(j, own, n)
    for k in range(means.size):
        e = _target_difference(j, k, own, about, last, n, means)
        about[j, k] += e * fraction
        cross[j, k] += f * e
        last[j, k] = means[k]
    own[j, 1] += n - own[j, 4]
    own[j, 2], own[j, 3], own[j, 4] = mean, m2, n


@kernel()
def learn_row(
    values: np.ndarray,
    indices: np.ndarray,
    y: np.ndarray,
    weight: float,
    refuse_mode: int,
    counts: np.ndarray,
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
    last: np.ndarray,
    target_moments: np.ndarray,
) -> int:
    """Add one row (Welford 1962; West 1979 for the weights), completely or not at all.

    As it is one call, no exception can occur between two changes, as it can between two lines of
    Python.

    Parameters
    ----------
    values, indices
        (m,) values, NaN if missing, and the state indices of their variables.
    y
        (c,) target columns, about their origin.
    weight
        Weight of the row, compared with 1 for any other.
    refuse_mode
        `REFUSE_NONE`, `REFUSE_DUE` or `REFUSE_MISSING`.
    counts
        (7,) as described by the constants of this module. `STEP` becomes 0: other states that learn
        the row increase it, so that each learns the row once.
    own
        (p, 6) for each variable: shift, weight of the rows that observed it, their mean about the
        shift, their sum of squares about the mean, and the weight of all rows up to the last added
        one; the sixth is unused.
    cross, about
        (p, c) for each variable, over the rows that observed it: sums of products with the target,
        and the target's means.
    last
        (p, c) for each variable: the target's means over all rows up to the last added one.
    target_moments
        (1 + c, c) the target's means, and its sums of products about them.

    Returns
    -------
    0; or 1 + the index of a value that is infinite or too large, `IS_DUE` or `HAS_MISSING`, and
    then nothing was changed.
    """
    if refuse_mode != REFUSE_NONE and counts[ROWS] + 1.0 >= counts[DUE]:
        return IS_DUE
    has_missing = False
    for i in range(values.size):
        if not abs(values[i]) <= MAX_ABS_VALUE:
            if not np.isnan(values[i]):
                return i + 1
            has_missing = True
    if has_missing and refuse_mode == REFUSE_MISSING:
        return HAS_MISSING
    n = counts[TOTAL]
    unit = counts[UNIT] / counts[KEEP] if counts[ROWS] > 0.0 else 1.0
    w = unit * weight
    c = y.size
    means = target_moments[0]
    fraction = w / (n + w)
    after = np.empty(c)
    for k in range(c):
        after[k] = means[k] + (y[k] - means[k]) * fraction
    for i in range(values.size):
        v = values[i]
        j = indices[i]
        if own[j, 4] < n:
            _add_zeros(j, own, cross, about, last, n, means)
        own[j, 4] = n + w
        for k in range(c):
            last[j, k] = after[k]
        if np.isnan(v):
            continue
        if own[j, 3] == 0.0 and own[j, 0] + own[j, 2] == 0.0:
            # The variable was 0 so far; later values are likely to be near the first non-zero one.
            own[j, 0] = v
            own[j, 2] = -v
        before = own[j, 1]
        fraction = w / (before + w)
        d = (v - own[j, 0]) - own[j, 2]
        f = d * before * fraction
        own[j, 1] = before + w
        own[j, 2] += d * fraction
        own[j, 3] += d * f
        for k in range(c):
            e = y[k] - about[j, k]
            about[j, k] += e * fraction
            cross[j, k] += f * e
    for k in range(c):
        f = (y[k] - means[k]) * n * (w / (n + w))
        for t in range(c):
            target_moments[1 + k, t] += f * (y[t] - means[t])
    for k in range(c):
        means[k] = after[k]
    _update_counts(1.0, unit, w, w * w, counts)
    return 0


@kernel()
def _update_counts(
    rows: float, unit: float, weight: float, squares: float, counts: np.ndarray
) -> None:
    counts[ROWS] += rows
    counts[TOTAL] += weight
    counts[UNIT] = unit
    counts[SQUARES] += squares
    counts[STEP] = 0.0


@kernel()
def learn_row_moments(
    size: int,
    unit: float,
    weight: float,
    squares: float,
    indices: np.ndarray,
    observed: np.ndarray,
    shift: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    products: np.ndarray,
    means: np.ndarray,
    level: np.ndarray,
    cyy: np.ndarray,
    counts: np.ndarray,
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
    last: np.ndarray,
    target_moments: np.ndarray,
) -> None:
    """Add rows whose moments are known, completely or not at all, as `learn_row` does one.

    Parameters
    ----------
    size, unit, weight, squares
        The number of rows, the weight of the newest, and of all of them, and the sum of the squared
        weights.
    indices, observed, shift, mean, m2, products, means
        The variables that they name, and their moments over these rows, as in `merge_moments`.
    level, cyy
        (c,), (c, c) the target's means, and its sums of products about them, over these rows.
    counts, own, cross, about, last, target_moments
        As in `learn_row`.
    """
    n = counts[TOTAL]
    total = n + weight
    c = level.size
    product_weight = n * weight / total
    difference = level - target_moments[0]
    add_unnamed_rows(indices, own, cross, about, last, n, target_moments[0])
    merge_moments(indices, observed, shift, mean, m2, products, means, own, cross, about)
    for k in range(c):
        for t in range(c):
            target_moments[1 + k, t] += cyy[k, t] + difference[k] * difference[t] * product_weight
    for k in range(c):
        target_moments[0, k] += difference[k] * (weight / total)
    for j in indices:
        own[j, 4] = total
        for k in range(c):
            last[j, k] = target_moments[0, k]
    _update_counts(float(size), unit, weight, squares, counts)


@kernel()
def any_too_large(values: np.ndarray) -> bool:
    """Return whether one of these values, (n,), is infinite or too large; NaN is neither."""
    found = False
    # No early exit, which would prevent vectorization.
    for i in range(values.size):
        found |= abs(values[i]) > MAX_ABS_VALUE
    return found


@kernel()
def merge_moments(
    indices: np.ndarray,
    observed: np.ndarray,
    shift: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    products: np.ndarray,
    means: np.ndarray,
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
) -> None:
    """Add moments over other rows to the variables at these indices (Chan 1979).

    Parameters
    ----------
    indices
        (m,) state indices of the variables.
    observed, shift, mean, m2, products, means
        (m,), (m,), (m,), (m,), (m, c), (m, c) for each over the other rows, as in `own`, `cross`
        and `about`.
    own, cross, about
        As in `learn_row`.
    """
    for i in range(indices.size):
        j = indices[i]
        if own[j, 3] == 0.0 and own[j, 0] + own[j, 2] == 0.0:
            # The variable was 0 so far; later values are likely to be near the other shift.
            own[j, 0] = shift[i]
            own[j, 2] = -shift[i] if own[j, 1] > 0.0 else 0.0
        before = own[j, 1]
        total = before + observed[i]
        fraction = observed[i] / total if total > 0.0 else 0.0
        d = ((shift[i] - own[j, 0]) + mean[i]) - own[j, 2]
        f = d * before * fraction
        own[j, 1] = total
        own[j, 2] += d * fraction
        own[j, 3] += m2[i] + d * f
        for k in range(means.shape[1]):
            e = means[i, k] - about[j, k]
            cross[j, k] += products[i, k] + f * e
            about[j, k] += e * fraction


@kernel()
def add_unnamed_rows(
    indices: np.ndarray,
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
    last: np.ndarray,
    n: float,
    means: np.ndarray,
) -> None:
    """Add to the variables at these indices the rows since their last that did not name them."""
    for j in indices:
        if own[j, 4] < n:
            _add_zeros(j, own, cross, about, last, n, means)


@kernel()
def moments_over_all_rows(
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
    last: np.ndarray,
    means: np.ndarray,
    n: float,
    unit: float,
    rounding: float,
    underflow: float,
    mean: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
) -> None:
    """Fill the moments over all rows, including those that did not name a variable since its last.

    Parameters
    ----------
    own, cross, about, last
        As in `learn_row`; unchanged.
    means
        (c,) the target's means.
    n, unit
        The weight of all rows, and that of the newest, which is scaled to 1.
    rounding, underflow
        Variation within this fraction of the mean, or below this, counts as none.
    mean, m2, cxy
        (p,), (p,), (p, c) filled.
    """
    for j in range(mean.size):
        low, square, observed, f = own[j, 2], own[j, 3], own[j, 1], 0.0
        gap = n - own[j, 4]
        if gap > 0.0:
            low, square, _, f = _moments_with_zeros(j, own, n)
            observed += gap
        for k in range(means.size):
            product = cross[j, k]
            if gap > 0.0:
                product += f * _target_difference(j, k, own, about, last, n, means)
            cxy[j, k] = product / unit
        mean[j] = own[j, 0] + low
        v = square / unit
        rounding_error = rounding * mean[j]
        m2[j] = (
            0.0 if v <= observed / unit * rounding_error * rounding_error or v < underflow else v
        )
