"""Sums of products of variables with one another, a row at a time."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# Of the weight of all rows no more than this is rounding.
_NEXT_TO_NOTHING = 1e-9
# Rows that have at least so many values, and an eighth of all columns, are gathered.
_MANY = 48


@kernel()
def learn_products(
    values: np.ndarray,
    slots: np.ndarray,
    place: np.ndarray,
    gap: np.ndarray,
    y: np.ndarray,
    targets: np.ndarray,
    w: float,
    n: float,
    size: int,
    shift: np.ndarray,
    sums: np.ndarray,
    S: np.ndarray,
    waiting: np.ndarray,
    first: int,
) -> int:
    """Add a row to the sums of products of its columns, or let it wait for others.

    Only what is not 0 about its shift costs anything.

    Parameters
    ----------
    values, slots
        (m,) values, NaN where not observed, and the slots of their variables.
    place, gap
        Slot -> the variable's column, -1 for none, and the column that counts the rows which did
        not observe it, -1 as long as all did.
    y, targets
        (c,) targets, and their columns.
    w, n
        The weight of the row, and of all rows before it.
    size
        Columns that there are; the arrays have room for more.
    shift, sums, S
        Of each column what is taken off its values, the weighted sum of what is left, and the sums
        of products.
    waiting, first
        (q, >= size) rows that wait to be added by a matrix product, and how many they are.

    Returns
    -------
    -1 where a value was not observed whose variable has no column for that, and nothing was done;
    1 if the row waits, else 0.
    """
    for i in range(values.size):
        if np.isnan(values[i]) and place[slots[i]] >= 0 and gap[slots[i]] < 0:
            return -1
    x = np.empty(size)
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
    at = np.empty(size, dtype=np.intp)
    count = 0
    for t in range(size):
        if x[t] != 0.0:
            at[count] = t
            count += 1
            sums[t] += w * x[t]
    if count >= _MANY and 8 * count >= size:
        for t in range(size):
            waiting[first, t] = x[t]
        return 1
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
    return 0
