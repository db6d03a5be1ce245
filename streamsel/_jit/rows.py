"""One row into the moments of the variables that it names, and what they are over all rows.

 A row that does not name a variable observed it as 0. Such rows are added, all at once, when the
variable is named next, or asked for: how many they were, and what the target was in them, is the
difference between its totals now and then. So a row costs nothing for what it does not name.
"""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# A larger value would overflow when squared and summed.
_LARGEST = 1e150


@kernel()
def _add_zeros(
    own: np.ndarray,
    cross: np.ndarray,
    about: np.ndarray,
    last: np.ndarray,
    n: float,
    means: np.ndarray,
) -> None:
    """Add to one variable the rows since its last that did not name it (Chan 1979)."""
    gap = n - own[4]
    if gap <= 0.0:
        return
    seen = own[1]
    part = gap / (seen + gap)
    d = -own[0] - own[2]
    f = d * seen * part
    own[1] = seen + gap
    own[2] += d * part
    own[3] += d * f
    for k in range(means.size):
        e = (n * means[k] - own[4] * last[k]) / gap - about[k]
        about[k] += e * part
        cross[k] += f * e
        last[k] = means[k]
    own[4] = n


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
    last: np.ndarray,
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
    0, or 1 + the place of a value that is infinite or too large; then nothing was changed.
    """
    for i in range(values.size):
        if abs(values[i]) > _LARGEST:
            return i + 1
    c = y.size
    means = of_target[0]
    part = w / (n + w)
    after = np.empty(c)
    for k in range(c):
        after[k] = means[k] + (y[k] - means[k]) * part
    for i in range(values.size):
        v = values[i]
        j = slots[i]
        _add_zeros(own[j], cross[j], about[j], last[j], n, means)
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
    means[:] = after
    return 0


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
        _add_zeros(own[j], cross[j], about[j], last[j], n, means)


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
    mine, ys, then = np.empty(6), np.empty(means.size), np.empty(means.size)
    for j in range(mean.size):
        mine[:] = own[j]
        if mine[4] < n:
            cxy[j] = cross[j]
            ys[:] = about[j]
            then[:] = last[j]
            _add_zeros(mine, cxy[j], ys, then, n, means)
            cxy[j] /= unit
        else:
            for k in range(means.size):
                cxy[j, k] = cross[j, k] / unit
        mean[j] = mine[0] + mine[2]
        v = mine[3] / unit
        still = rounding * mean[j]
        m2[j] = 0.0 if v <= mine[1] / unit * still * still or v < underflow else v
