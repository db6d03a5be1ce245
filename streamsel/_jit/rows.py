"""One row into the moments of the variables that it names, and what they are over all rows.

 A row that does not name a variable observed it as 0. Such rows are added, all at once, when the
variable is named next, or asked for: how many they were, and what the target was in them, is the
difference between its totals now and then. So a row costs nothing for what it does not name.
"""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# A larger value would overflow when squared and summed.
LARGEST = 1e152
# What `counts` has, in order: how many rows there are, their weight, the weight of the newest, the
# sum of the squared weights, how many further states have learnt the newest (`learn_row`), -1 where
# no row was learnt since the numbers were made or read, what part of its weight a row keeps with
# every later one, and the row from which on rows are refused.
ROWS, TOTAL, UNIT, SQUARES, STEP, KEEP, DUE = range(7)
# What `learn_row` refuses, apart from values that are infinite or too large: nothing, rows that are
# due, and those with values that were not observed, too.
NOTHING, WHAT_IS_DUE, WHAT_HAS_GAPS = range(3)
# What it returns then.
IS_DUE, HAS_GAPS = -1, -2


@kernel()
def _with_zeros(j: int, own: np.ndarray, n: float) -> tuple[float, float, float, float]:
    """Return mean and sum of squares of variable j with the rows since its last (Chan 1979).

    And their part of the weight, which is above 0; and what times the difference of the target's
    means they add to the products.
    """
    gap = n - own[j, 4]
    part = gap / (own[j, 1] + gap)
    d = -own[j, 0] - own[j, 2]
    f = d * own[j, 1] * part
    return own[j, 2] + d * part, own[j, 3] + d * f, part, f


@kernel()
def _apart(
    j: int,
    k: int,
    own: np.ndarray,
    about: np.ndarray,
    last: np.ndarray,
    n: float,
    means: np.ndarray,
) -> float:
    """Return how far apart the means of target k are in those rows and in those added."""
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
    """Add to variable j the rows since its last, whose weight is above 0."""
    mean, m2, part, f = _with_zeros(j, own, n)
    for k in range(means.size):
        e = _apart(j, k, own, about, last, n, means)
        about[j, k] += e * part
        cross[j, k] += f * e
        last[j, k] = means[k]
    own[j, 1] += n - own[j, 4]
    own[j, 2], own[j, 3], own[j, 4] = mean, m2, n


@kernel()
def learn_row(
    values: np.ndarray,
    slots: np.ndarray,
    y: np.ndarray,
    weight: float,
    refused: int,
    counts: np.ndarray,
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
    last: np.ndarray,
    of_target: np.ndarray,
) -> int:
    """Add one row (Welford 1962, West 1979 for the weights): all of it in this call, or nothing.

    An exception cannot come between two changes, as it can between two lines of Python.

    Parameters
    ----------
    values, slots
        (m,) values, NaN where not observed, and where in the state their variables stand.
    y
        (c,) target columns, about their origin.
    weight
        How much the row counts, compared with 1 for any other.
    refused
        `NOTHING`, `WHAT_IS_DUE` or `WHAT_HAS_GAPS`.
    counts
        (7,) as the constants of this module say. The number of `STEP` becomes 0: other states that
        learn the row as well count on from there, so that each learns it once.
    own
        (p, 6) of each variable: shift, weight of the rows that observed it, their mean about the
        shift, their sum of squares about the mean, and the weight of all rows up to the last that
        was added; the sixth is not touched.
    cross, about
        (p, c) of each variable, over the rows that observed it: sums of products with the target,
        and the target's means.
    last
        (p, c) of each variable: the target's means over all rows up to the last that was added.
    of_target
        (1 + c, c) the target's means, and its sums of products about them.

    Returns
    -------
    0; or 1 + the index of a value that is infinite or too large, `IS_DUE` or `HAS_GAPS`, and then
    nothing was changed.
    """
    if refused != NOTHING and counts[ROWS] + 1.0 >= counts[DUE]:
        return IS_DUE
    lacking = False
    for i in range(values.size):
        if not abs(values[i]) <= LARGEST:
            if not np.isnan(values[i]):
                return i + 1
            lacking = True
    if lacking and refused == WHAT_HAS_GAPS:
        return HAS_GAPS
    n = counts[TOTAL]
    unit = counts[UNIT] / counts[KEEP] if counts[ROWS] > 0.0 else 1.0
    w = unit * weight
    c = y.size
    means = of_target[0]
    part = w / (n + w)
    after = np.empty(c)
    for k in range(c):
        after[k] = means[k] + (y[k] - means[k]) * part
    for i in range(values.size):
        v = values[i]
        j = slots[i]
        if own[j, 4] < n:
            _add_zeros(j, own, cross, about, last, n, means)
        own[j, 4] = n + w
        for k in range(c):
            last[j, k] = after[k]
        if np.isnan(v):
            continue
        if own[j, 3] == 0.0 and own[j, 0] + own[j, 2] == 0.0:
            # It was 0 so far: its first other value is near the values to come.
            own[j, 0] = v
            own[j, 2] = -v
        before = own[j, 1]
        part = w / (before + w)
        d = (v - own[j, 0]) - own[j, 2]
        f = d * before * part
        own[j, 1] = before + w
        own[j, 2] += d * part
        own[j, 3] += d * f
        for k in range(c):
            e = y[k] - about[j, k]
            about[j, k] += e * part
            cross[j, k] += f * e
    for k in range(c):
        f = (y[k] - means[k]) * n * (w / (n + w))
        for t in range(c):
            of_target[1 + k, t] += f * (y[t] - means[t])
    for k in range(c):
        means[k] = after[k]
    _count(1.0, unit, w, w * w, counts)
    return 0


@kernel()
def _count(rows: float, unit: float, weight: float, squares: float, counts: np.ndarray) -> None:
    counts[ROWS] += rows
    counts[TOTAL] += weight
    counts[UNIT] = unit
    counts[SQUARES] += squares
    counts[STEP] = 0.0


@kernel()
def learn_rows(
    size: int,
    unit: float,
    weight: float,
    squares: float,
    slots: np.ndarray,
    seen: np.ndarray,
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
    of_target: np.ndarray,
) -> None:
    """Add rows of which the moments are known, all in this call, as `learn_row` does one.

    Parameters
    ----------
    size, unit, weight, squares
        How many rows there are, the weight of the newest, and of all of them, and the sum of the
        squared weights.
    slots, seen, shift, mean, m2, products, means
        The variables that they name, and their moments over these rows, as in `combine`.
    level, cyy
        (c,), (c, c) the target's means, and its sums of products about them, over these rows.
    counts, own, cross, about, last, of_target
        As in `learn_row`.
    """
    n = counts[TOTAL]
    total = n + weight
    c = level.size
    part = n * weight / total
    apart = level - of_target[0]
    add_zeros(slots, own, cross, about, last, n, of_target[0])
    combine(slots, seen, shift, mean, m2, products, means, own, cross, about)
    for k in range(c):
        for t in range(c):
            of_target[1 + k, t] += cyy[k, t] + apart[k] * apart[t] * part
    for k in range(c):
        of_target[0, k] += apart[k] * (weight / total)
    for j in slots:
        own[j, 4] = total
        for k in range(c):
            last[j, k] = of_target[0, k]
    _count(float(size), unit, weight, squares, counts)


@kernel()
def any_beyond(values: np.ndarray) -> bool:
    """Whether one of these values, (n,), is infinite or too large; NaN is neither."""
    found = False
    # No way out at the first: it would keep the loop from being vectorised.
    for i in range(values.size):
        found |= abs(values[i]) > LARGEST
    return found


@kernel()
def combine(
    slots: np.ndarray,
    seen: np.ndarray,
    shift: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    products: np.ndarray,
    means: np.ndarray,
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
) -> None:
    """Add to the variables in these slots their moments over other rows (Chan 1979).

    Parameters
    ----------
    slots
        (m,) where in the state the variables stand.
    seen, shift, mean, m2, products, means
        (m,), (m,), (m,), (m,), (m, c), (m, c) of each over the other rows, as in `own`, `cross` and
        `about`.
    own, cross, about
        As in `learn_row`.
    """
    for i in range(slots.size):
        j = slots[i]
        if own[j, 3] == 0.0 and own[j, 0] + own[j, 2] == 0.0:
            # It was 0 so far: the values to come are near the other shift.
            own[j, 0] = shift[i]
            own[j, 2] = -shift[i] if own[j, 1] > 0.0 else 0.0
        before = own[j, 1]
        total = before + seen[i]
        part = seen[i] / total if total > 0.0 else 0.0
        d = ((shift[i] - own[j, 0]) + mean[i]) - own[j, 2]
        f = d * before * part
        own[j, 1] = total
        own[j, 2] += d * part
        own[j, 3] += m2[i] + d * f
        for k in range(means.shape[1]):
            e = means[i, k] - about[j, k]
            cross[j, k] += products[i, k] + f * e
            about[j, k] += e * part


@kernel()
def add_zeros(
    slots: np.ndarray,
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
    last: np.ndarray,
    n: float,
    means: np.ndarray,
) -> None:
    """Add to the variables in these slots the rows since their last that did not name them."""
    for j in slots:
        if own[j, 4] < n:
            _add_zeros(j, own, cross, about, last, n, means)


@kernel()
def over_all_rows(
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
    """Fill in the moments over all rows, those included that did not name a variable since.

    Parameters
    ----------
    own, cross, about, last
        As in `learn_row`; left as they are.
    means
        (c,) of the target.
    n, unit
        The weight of all rows, and that of the newest, which is to count as 1.
    rounding, underflow
        Variation within this part of the mean, or below this, is none.
    mean, m2, cxy
        (p,), (p,), (p, c) filled.
    """
    for j in range(mean.size):
        low, square, seen, f = own[j, 2], own[j, 3], own[j, 1], 0.0
        gap = n - own[j, 4]
        if gap > 0.0:
            low, square, _, f = _with_zeros(j, own, n)
            seen += gap
        for k in range(means.size):
            product = cross[j, k]
            if gap > 0.0:
                product += f * _apart(j, k, own, about, last, n, means)
            cxy[j, k] = product / unit
        mean[j] = own[j, 0] + low
        v = square / unit
        still = rounding * mean[j]
        m2[j] = 0.0 if v <= seen / unit * still * still or v < underflow else v
