"""Reference for the refresh schedule: the variables in use after every row, by definition."""

import math

import numpy as np


class VariablesInUse:
    """Track the variables in use, given the ranking of all variables after every row.

    Parameters
    ----------
    k
        Number of variables in use; None for all that the ranking contains.
    refresh_factor, hysteresis, warm_up, fading_factor
        As the learners' parameters.
    """

    def __init__(self, k, refresh_factor, hysteresis, warm_up, fading_factor=0.0):
        self.k, self.refresh_factor, self.hysteresis = k, refresh_factor, hysteresis
        self.fading_factor = fading_factor
        self.rows, self.due = 0, warm_up
        self.names = None

    def learn_one(self, ranking, n_variables):
        """Learn one row, after which `ranking(size)` returns the best variables."""
        self.rows += 1
        if self.rows < self.due:
            return
        w = (1.0 - self.fading_factor) ** np.arange(self.rows)
        weight = w.sum() ** 2 / (w**2).sum()
        self.due = self.rows + max(1, math.ceil((self.refresh_factor - 1.0) * weight))
        if self.k is None:
            good = ranking(n_variables)
            k = len(good)
        else:
            k, size = self.k, self.k
            if self.hysteresis > 1.0 and self.names:
                size = min(math.ceil(self.hysteresis * k), k + max(0, n_variables - k) // 8)
            good = ranking(size)
        if self.refresh_factor == self.hysteresis == 1.0:
            # Variables in use have no advantage: the order is that of selection.
            self.names = good
            return
        kept = [name if name in good else None for name in self.names or []]
        kept += [None] * (k - len(kept))
        new = [name for name in good if name not in kept]
        for i, name in enumerate(kept):
            if name is None and new:
                kept[i] = new.pop(0)
        self.names = [name for name in kept if name is not None]
