"""How well a sensitive property can still be told from features that are to hide it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.held.inner import About, Inner
from streamsel.held.part import Floats, Places

# The nearest neighbours that are asked.
_NEIGHBOURS = (1, 5)
# A target column with less than this part of the largest is rounding.
_SPENT = 1e-10


class Leakage(NamedTuple):
    """What attackers tell of a sensitive property, on rows that features were not made of.

    Parameters
    ----------
    measure
        `"accuracy"`, the share of rows whose class is told; or `"r2"`, the share of the variance of
        numbers that is told, which is negative where an attacker does worse than the mean.
    chance
        What is told without the features: by the most frequent class; by the mean, 0.
    trained
        Attacker, `"linear"`, `"1-NN"` or `"5-NN"` -> how well it tells, if it learnt from the rows
        that the features were made of. A linear one has nothing to learn there.
    fresh
        The same, if it learnt from other rows.
    """

    measure: str
    chance: float
    trained: dict[str, float]
    fresh: dict[str, float]


class Property:
    """A sensitive property, as attackers see it.

    Parameters
    ----------
    columns
        (n, c) numbers, or indicators of classes.
    is_class
        Which of the two.
    """

    def __init__(self, columns: Floats, *, is_class: bool) -> None:
        self.is_class = is_class
        spread = columns.std(axis=0)
        varying = columns[:, spread > 0.0]
        # Every number counts alike.
        self.columns: Floats = columns if is_class else varying / spread[spread > 0.0]

    def folds(self, count: int, seed: int) -> NDArray[np.intp]:
        """Return the fold of each row, (n,): classes in equal shares."""
        order = np.random.default_rng(seed).permutation(len(self.columns))
        if self.is_class:
            order = order[np.argsort(self.columns[order].argmax(axis=1), kind="stable")]
        folds = np.empty(len(order), dtype=np.intp)
        folds[order] = np.arange(len(order)) % count
        return folds

    def lost(self, told: Floats, rows: Places) -> float:
        """Return how many rows are told wrongly, or the sum of the squared errors."""
        truth = self.columns[rows]
        if self.is_class:
            return float(np.count_nonzero(told.argmax(axis=1) != truth.argmax(axis=1)))
        return float(np.square(told - truth).sum())


def audit(
    inner: Inner,
    told: Property,
    duals: Callable[[Inner, int], Floats],
    q: int,
    folds: int,
    seed: int,
) -> Leakage:
    """Return what attackers tell of a property from at most q features, made anew in each fold.

    Parameters
    ----------
    inner
        Of all rows.
    duals
        What makes features: of inner products, and of how many at most.
    """
    fold_of = told.folds(folds, seed)
    by_chance = 0.0
    lost: dict[tuple[str, str], float] = {}
    for fold in range(folds):
        test, fresh = fold_of == fold, fold_of == (fold + 1) % folds
        made, other, tested = (np.flatnonzero(rows) for rows in (~test & ~fresh, fresh, test))
        alpha = duals(_of_rows(inner, made, told), q)
        features = {
            rows: _seen_from(inner, some, made) @ alpha
            for rows, some in (("trained", made), ("fresh", other), ("tested", tested))
        }
        mean = told.columns[made].mean(axis=0)
        by_chance += told.lost(np.tile(mean, (tested.size, 1)), tested)
        for learnt, rows in (("trained", made), ("fresh", other)):
            guesses = _attacks(features[learnt], told.columns[rows], features["tested"])
            for attacker, guess in guesses:
                key = learnt, attacker
                lost[key] = lost.get(key, 0.0) + told.lost(guess, tested)
    n = len(told.columns)
    measure, chance = ("accuracy", 1.0 - by_chance / n) if told.is_class else ("r2", 0.0)
    whole = float(n) if told.is_class else by_chance
    scores: dict[str, dict[str, float]] = {"trained": {}, "fresh": {}}
    for (learnt, attacker), losses in lost.items():
        scores[learnt][attacker] = 1.0 - losses / whole
    return Leakage(measure, chance, **scores)


def _of_rows(inner: Inner, rows: Places, told: Property) -> Inner:
    """Return the inner products of some rows, about their own means, with their property."""
    K = _seen_from(inner, rows, rows)
    Y = told.columns[rows] - told.columns[rows].mean(axis=0)
    U, lengths, _ = np.linalg.svd(Y, full_matrices=False)
    U = U[:, lengths > _SPENT * lengths.max(initial=0.0)]
    n = float(rows.size)
    return Inner(K, U, Y, About(n, n, n - 1.0, inner.p, inner.even, Y.T @ Y))


def _seen_from(inner: Inner, rows: Places, made: Places) -> Floats:
    """Return the inner products of rows with those that features are made of, about their means."""
    cross, own = inner.K[np.ix_(rows, made)], inner.K[np.ix_(made, made)]
    about: Floats = cross - cross.mean(axis=1, keepdims=True) - own.mean(axis=0) + own.mean()
    return about


def _attacks(Z: Floats, Y: Floats, new: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield what attackers that learnt features Z and a property Y tell of new features."""
    spread = Z.std(axis=0)
    scaled = np.where(spread > 0.0, spread, 1.0)
    known, asked = (np.column_stack([np.ones(len(X)), X / scaled]) for X in (Z, new))
    yield "linear", asked @ np.linalg.lstsq(known, Y, rcond=None)[0]
    distances = np.square(new).sum(axis=1)[:, None] - 2.0 * new @ Z.T + np.square(Z).sum(axis=1)
    nearest = distances.argsort(axis=1, kind="stable")
    for count in _NEIGHBOURS:
        yield f"{count}-NN", Y[nearest[:, :count]].mean(axis=1)
