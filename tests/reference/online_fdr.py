"""Online control of the false discovery rate by definition: each level sums over all discoveries.

The three rules and their constants are those of their authors. A constant column is not tested.
"""

import math

import numpy as np
from scipy import stats

from tests.reference import target


def answer(
    X, y, *, fdr=0.05, rule="lord++", max_candidates=None, target_type="auto", **ignored,
):  # fmt: skip
    """Return the selected columns, in order, with their p-values."""
    columns, relevances, p_values = tests_of(X, y, target_type)
    decisions = decide(p_values, fdr, rule, most=max_candidates)
    taken = [i for i, (found, _) in enumerate(decisions) if found]
    return {
        "selected": [columns[i] for i in taken],
        "scores": {columns[i]: relevances[i] for i in taken},
        "relevance": {columns[i]: relevances[i] for i in taken},
        "p_values": {columns[i]: p_values[i] for i in taken},
        "rounds": {columns[i]: 0 for i in taken},
    }


def tests_of(X, y, kind):
    """Return the columns that vary, their relevances and their p-values."""
    numbers = target.numbers(y, kind)
    U, tested = target.basis(numbers), target.basis(target.tested(numbers))
    n, r = U.shape
    found = []
    for j, x in enumerate(np.asarray(X, dtype=np.float64).T):
        if np.ptp(x) == 0:
            continue
        relevance, free = min(float(target.relevance(x, U)), 1.0), n - 1 - r
        p = 1.0
        if free > 0:
            square = min(float(target.relevance(x, tested)), 1.0) ** 2
            p = float(stats.f.sf(square / (1 - square) * free / r, r, free)) if square < 1 else 0.0
        found.append((j, relevance, p))
    return list(zip(*found, strict=True)) if found else ([], [], [])


def decide(p_values, fdr, rule, *, most=None):
    """Return for each test, in order, whether it is a discovery, and its level."""
    levels = {"lord++": lord, "saffron": saffron, "addis": addis}[rule]
    decisions, discoveries = [], []
    for t, p in enumerate(p_values):
        if len(discoveries) == most:
            break
        level = levels(p_values[:t], discoveries, fdr, fdr / 2)
        decisions.append((p <= level, level))
        if p <= level:
            discoveries.append(t)
    return decisions


def lord(past, discoveries, fdr, w):
    """Return the level of LORD++: the reward of each discovery is spent over all later tests."""
    now = len(past)
    level = w * lord_gamma(now + 1)
    for j, at in enumerate(discoveries):
        level += (fdr - w if j == 0 else fdr) * lord_gamma(now - at)
    return level


def saffron(past, discoveries, fdr, w, lam=0.5):
    """Return the level of SAFFRON: candidates, of p-values up to lam, do not count."""
    level = w * power_gamma(1 + sum(p > lam for p in past))
    for j, at in enumerate(discoveries):
        candidates = sum(p <= lam for p in past[at + 1 :])
        level += (fdr - w if j == 0 else fdr) * power_gamma(len(past) - at - candidates)
    return min(lam, (1 - lam) * level)


def addis(past, discoveries, fdr, w, lam=0.25, tau=0.5):
    """Return the level of ADDIS: discarded tests, of p-values above tau, do not count either."""

    def count(begin):
        kept = sum(p <= tau for p in past[begin:])
        return 1 + kept - sum(p <= lam for p in past[begin:])

    level = w * power_gamma(count(0))
    for j, at in enumerate(discoveries):
        level += (fdr - w if j == 0 else fdr) * power_gamma(count(at + 1))
    return min(lam, (tau - lam) * level)


def lord_gamma(i):
    """Return the share of the wealth that LORD++ spends at test i."""
    return 0.07720838 * math.log(max(i, 2)) / (i * math.exp(math.sqrt(math.log(i))))


def power_gamma(i):
    """Return the share of the wealth that SAFFRON and ADDIS spend at test i."""
    return 0.4374901658 / i**1.6
