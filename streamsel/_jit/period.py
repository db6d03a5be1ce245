"""Sums of products of variables with one another, a row at a time."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# Places in what `_jit.rows.learn_row` counts, as named there: a kernel that was cached would not
# follow a change in another file.
STEP, KEEP = 4, 5
# Of the weight of all rows no more than this is rounding.
_NEXT_TO_NOTHING = 1e-9
# Rows that have at least so many values, and an eighth of all columns, are gathered.
_MANY = 48
# What `counts` has, in order: the weight of all rows, that of the newest, the sum of the squared
# weights, how many rows there are, how many of them wait, what becomes of the next, and from there
# on the weights of those that wait.
WEIGHT, UNIT, SQUARES, ROWS, WAITING, NEXT, WEIGHTS = range(7)
# What becomes of a row.
AS_IT_IS, WAITS, IS_ADDED = range(3)


@kernel()
def lacks_gap(values: np.ndarray, slots: np.ndarray, place: np.ndarray, gap: np.ndarray) -> bool:
    """Whether a value was not observed whose variable has no column that counts this.

    The parameters are those of `learn_products`.
    """
    for i in range(values.size):
        if np.isnan(values[i]) and place[slots[i]] >= 0 and gap[slots[i]] < 0:
            return True
    return False


@kernel()
def add_waiting(
    of_all: np.ndarray, step: float, products: np.ndarray, counts: np.ndarray, S: np.ndarray
) -> None:
    """Add the products of the rows that wait, none of which waits any more.

    The parameters are those of `learn_products`, whose first step this is, and `products`,
    (size, size).
    """
    if of_all[STEP] != step:
        return
    for i in range(len(products)):
        for t in range(len(products)):
            S[i, t] += products[i, t]
    counts[WAITING] = 0.0
    of_all[STEP] = step + 1.0


@kernel()
def learn_block(
    of_all: np.ndarray,
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
    of_all, step, counts, all_shifts, all_sums, S
        As in `learn_products`; there is nothing to be done first.
    columns, shift, sums, products
        (m,), (m,), (m,), (m, m) the columns that are not 0, what is taken off them from here on,
        and their weighted sums, and sums of products.
    size, unit, weight, squares
        How many rows there are, the weight of the newest, and of all of them, and the sum of the
        squared weights.
    """
    if of_all[STEP] != step:
        return
    for a in range(columns.size):
        i = columns[a]
        all_shifts[i] = shift[a]
        all_sums[i] += sums[a]
        for b in range(columns.size):
            S[i, columns[b]] += products[a, b]
    _count(float(size), unit, weight, squares, counts)
    of_all[STEP] = step + 2.0


@kernel()
def _count(rows: float, unit: float, weight: float, squares: float, counts: np.ndarray) -> None:
    counts[WEIGHT] += weight
    counts[UNIT] = unit
    counts[SQUARES] += squares
    counts[ROWS] += rows


@kernel()
def learn_products(
    of_all: np.ndarray,
    step: float,
    values: np.ndarray,
    slots: np.ndarray,
    place: np.ndarray,
    gap: np.ndarray,
    y: np.ndarray,
    targets: np.ndarray,
    weight: float,
    counts: np.ndarray,
    size: int,
    shift: np.ndarray,
    sums: np.ndarray,
    S: np.ndarray,
    waiting: np.ndarray,
) -> None:
    """Add a row to the sums of products of its columns, or let it wait for others.

    Only what is not 0 about its shift costs anything.

    Parameters
    ----------
    of_all, step
        What `_jit.rows.learn_row` counts, and what the number of `STEP` has to be, or one more, if
        there was something to be done first (`add_waiting`): else it is not the turn of this loop,
        and nothing is done. It leaves two more.
    values, slots
        (m,) values, NaN where not observed, and the slots of their variables.
    place, gap
        Slot -> the variable's column, -1 for none, and the column that counts the rows which did
        not observe it, -1 as long as all did: it has one if this row does not (`lacks_gap`).
    y, targets
        (c,) targets, and their columns.
    weight
        How much the row counts, compared with 1 for any other.
    counts
        (6 + q,) as the constants of this module say. If the row is taken `AS_IT_IS` it waits if it
        has many values.
    size
        Columns that there are; the arrays have room for more.
    shift, sums, S
        Of each column what is taken off its values, the weighted sum of what is left, and the sums
        of products.
    waiting
        (q, >= size) rows that wait to be added by a matrix product, fewer than q. What is behind
        them is of no use.
    """
    if of_all[STEP] != step and of_all[STEP] != step + 1.0:
        return
    at = np.empty(size, dtype=np.intp)
    unit = counts[UNIT] / of_all[KEEP] if counts[ROWS] > 0.0 else 1.0
    w = unit * weight
    n = counts[WEIGHT]
    first = int(counts[WAITING])
    x = waiting[first]
    for t in range(size):
        x[t] = -shift[t]
    for i in range(values.size):
        v, t, g = values[i], place[slots[i]], gap[slots[i]]
        if t < 0:
            continue
        if np.isnan(v):
            x[t] = 0.0
            x[g] = 1.0
            continue
        if sums[t] == 0.0:
            seen = n - sums[g] if g >= 0 else n
            if seen <= _NEXT_TO_NOTHING * n:
                # Its first value is near the values to come.
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
            at[count] = t
            count += 1
            sums[t] += w * x[t]
    _count(1.0, unit, w, w * w, counts)
    of_all[STEP] = step + 2.0
    waits = count >= _MANY and 8 * count >= size
    if counts[NEXT] == WAITS or (counts[NEXT] == AS_IT_IS and waits):
        counts[WEIGHTS + first] = w
        counts[WAITING] = first + 1.0
        return
    if 2 * count >= size:
        for a in range(count):
            i = at[a]
            e = w * x[i]
            for t in range(size):
                S[i, t] += e * x[t]
    else:
        for a in range(count):
            i = at[a]
            e = w * x[i]
            for b in range(count):
                S[i, at[b]] += e * x[at[b]]
