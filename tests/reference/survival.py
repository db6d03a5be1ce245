"""Martingale residuals and Cox's score test at zero effect, by definition: row by row."""

import numpy as np


def residuals(time, event, weights=None):
    """Return event - H(time), with H the Nelson-Aalen cumulative hazard (Breslow's ties)."""
    time, event = np.asarray(time, dtype=float), np.asarray(event, dtype=float)
    w = np.ones(len(time)) if weights is None else np.asarray(weights, dtype=float)
    found = np.empty(len(time))
    for i in range(len(time)):
        hazard = 0.0
        for t in sorted(set(time[event == 1.0])):
            died = w[(time == t) & (event == 1.0)].sum()
            if t <= time[i] and died > 0.0:
                hazard += died / w[time >= t].sum()
        found[i] = event[i] - hazard
    return found


def score_test(x, time, event):
    """Return Cox's score of one variable at zero effect, and its variance (Breslow's ties)."""
    x, time, event = (np.asarray(part, dtype=float) for part in (x, time, event))
    score = variance = 0.0
    for i in np.flatnonzero(event):
        at_risk = x[time >= time[i]]
        score += x[i] - at_risk.mean()
        variance += at_risk.var()
    return score, variance
