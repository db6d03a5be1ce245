"""One row into the moments of the variables that it names, and what the moments of all rows are.

 Of every variable the moments are kept over the rows that *name* it. The rows that do not are
observed zeros: what they add follows from how many there are and from the target's total, so that
a row costs nothing for the variables that it does not name.
"""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# A larger value would overflow when squared and summed.
_LARGEST = 1e150
# The weight of absent rows is a difference of two sums: less than this part of them is rounding.
_ROUNDING = 1e-14


@kernel()
def learn_row(
    values: np.ndarray,
    slots: np.ndarray,
    y: np.ndarray,
    w: float,
    n: float,
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
    missed: np.ndarray,
    of_target: np.ndarray,
) -> int:
    """Add one row (Welford 1962, West 1979 for the weights).

    Parameters
    ----------
    values, slots
        (m,) values, NaN where not observed, and where in the state their variables stand.
    y
        (c,) target columns, about their origin.
    w, n
        The weight of the row, and of all rows before it.
    own
        (p, 5) of each variable: shift, weight of the rows that name it, mean about the shift, sum
        of squares about the mean; the fifth is not touched.
    cross, about
        (p, c) of each variable, over the rows that name it: sums of products with the target, and
        the target's means.
    missed
        (p, 1 + c) of each variable, over the rows in which it was not observed: their weight, and
        the target's sums.
    of_target
        (1 + c, c) the target's means, and its sums of products about them.

    Returns
    -------
    0, or 1 + the place of a value that is infinite or too large; then nothing was changed.
    """
    for i in range(values.size):
        if abs(values[i]) > _LARGEST:
            return i + 1
    c = y.size
    for i in range(values.size):
        v = values[i]
        j = slots[i]
        if np.isnan(v):
            missed[j, 0] += w
            for k in range(c):
                missed[j, 1 + k] += w * y[k]
            continue
        before = own[j, 1]
        if before == 0.0:
            own[j, 0] = v
        total = before + w
        part = w / total
        d = (v - own[j, 0]) - own[j, 2]
        f = d * before * part
        own[j, 1] = total
        own[j, 2] += d * part
        own[j, 3] += d * f
        for k in range(c):
            e = y[k] - about[j, k]
            about[j, k] += e * part
            cross[j, k] += f * e
    part = w / (n + w)
    means = of_target[0]
    for k in range(c):
        f = (y[k] - means[k]) * n * part
        for t in range(c):
            of_target[1 + k, t] += f * (y[t] - means[t])
    for k in range(c):
        means[k] += (y[k] - means[k]) * part
    return 0


@kernel()
def over_all_rows(
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
    missed: np.ndarray,
    total: np.ndarray,
    n: float,
    unit: float,
    mean: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
) -> None:
    """Fill in the moments over the rows that name a variable and those that do not (Chan 1979).

    Parameters
    ----------
    own, cross, about, missed
        As in `learn_row`.
    total
        (c,) weighted sums of the target.
    n, unit
        The weight of all rows, and that of the newest, which is to count as 1.
    mean, m2, cxy
        (p,), (p,), (p, c) filled.
    """
    c = cxy.shape[1]
    for j in range(mean.size):
        named = own[j, 1]
        absent = n - named - missed[j, 0]
        if absent < _ROUNDING * n:
            absent = 0.0
        seen = named + absent
        level = own[j, 0] + own[j, 2]
        if named == 0.0:
            mean[j] = 0.0
            m2[j] = 0.0
            cxy[j] = 0.0
            continue
        part = named / seen
        mean[j] = level * part
        m2[j] = (own[j, 3] + level * level * part * absent) / unit
        for k in range(c):
            over = cross[j, k]
            if absent > 0.0:
                zeros = total[k] - missed[j, 1 + k] - named * about[j, k]
                over -= level * part * (zeros - absent * about[j, k])
            cxy[j, k] = over / unit
