"""How well a sensitive attribute can be predicted from features that should hide it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.held.inner import About, Inner
from streamsel.held.part import Floats, Places

# Numbers of nearest neighbours of the attackers.
_NEIGHBOURS = (1, 5)
# A target column with less than this part of the largest singular value is rounding.
_ZERO_TOL = 1e-10


class Leakage(NamedTuple):
    """Accuracy of attackers that predict a sensitive attribute, on rows not used for the features.

    Parameters
    ----------
    measure
        `"accuracy"`, the share of rows whose class is predicted; or `"r2"`, the share of variance
        explained for numbers, which is negative for an attacker worse than the mean.
    chance
        The measure without the features: of predicting the most frequent class; or the mean, 0.
    trained
        Attacker, `"linear"`, `"1-NN"` or `"5-NN"` -> its measure, when trained on the rows that the
        features were fitted on. There, the features have no linear information.
    fresh
        The same, when trained on other rows.
    """

    measure: str
    chance: float
    trained: dict[str, float]
    fresh: dict[str, float]


class Property:
    """A sensitive attribute, as target of the attackers.

    Parameters
    ----------
    columns
        (n, c) numbers, or indicators of classes.
    is_class
        Whether the columns are indicators.
    """

    def __init__(self, columns: Floats, *, is_class: bool) -> None:
        self.is_class = is_class
        spread = columns.std(axis=0)
        varying = columns[:, spread > 0.0]
        # All numbers have the same weight.
        self.columns: Floats = columns if is_class else varying / spread[spread > 0.0]

    def folds(self, count: int, seed: int) -> NDArray[np.intp]:
        """Return the fold of each row, (n,), stratified by class."""
        order = np.random.default_rng(seed).permutation(len(self.columns))
        if self.is_class:
            order = order[np.argsort(self.columns[order].argmax(axis=1), kind="stable")]
        folds = np.empty(len(order), dtype=np.intp)
        folds[order] = np.arange(len(order)) % count
        return folds

    def lost(self, told: Floats, rows: Places) -> float:
        """Return the number of misclassified rows, or the sum of squared errors."""
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
    """Return how well attackers predict an attribute from at most q features, by cross-validation.

    Parameters
    ----------
    inner
        Inner products of all rows.
    duals
        Returns the duals of features, from inner products and their maximum number.
    """
    fold_of = told.folds(folds, seed)
    by_chance = 0.0
    losses_of: dict[tuple[str, str], float] = {}
    for fold in range(folds):
        test, fresh = fold_of == fold, fold_of == (fold + 1) % folds
        fitted, other, tested = (np.flatnonzero(rows) for rows in (~test & ~fresh, fresh, test))
        alpha = duals(_of_rows(inner, fitted, told), q)
        features = {
            rows: _seen_from(inner, some, fitted) @ alpha
            for rows, some in (("trained", fitted), ("fresh", other), ("tested", tested))
        }
        mean = told.columns[fitted].mean(axis=0)
        by_chance += told.lost(np.tile(mean, (tested.size, 1)), tested)
        for learnt, rows in (("trained", fitted), ("fresh", other)):
            guesses = _attacks(features[learnt], told.columns[rows], features["tested"])
            for attacker, guess in guesses:
                key = learnt, attacker
                losses_of[key] = losses_of.get(key, 0.0) + told.lost(guess, tested)
    n = len(told.columns)
    measure, chance = ("accuracy", 1.0 - by_chance / n) if told.is_class else ("r2", 0.0)
    whole = float(n) if told.is_class else by_chance
    scores: dict[str, dict[str, float]] = {"trained": {}, "fresh": {}}
    for (learnt, attacker), losses in losses_of.items():
        scores[learnt][attacker] = 1.0 - losses / whole
    return Leakage(measure, chance, **scores)


def _of_rows(inner: Inner, rows: Places, attribute: Property) -> Inner:
    """Return the inner products of some rows, about their own means, with their attribute."""
    K = _seen_from(inner, rows, rows)
    Y = attribute.columns[rows] - attribute.columns[rows].mean(axis=0)
    U, lengths, _ = np.linalg.svd(Y, full_matrices=False)
    U = U[:, lengths > _ZERO_TOL * lengths.max(initial=0.0)]
    n = float(rows.size)
    return Inner(K, U, Y, About(n, n, n - 1.0, inner.p, inner.even, Y.T @ Y))


def _seen_from(inner: Inner, rows: Places, fitted: Places) -> Floats:
    """Return the inner products of rows with those used for fitting, about the means of these."""
    cross, own = inner.K[np.ix_(rows, fitted)], inner.K[np.ix_(fitted, fitted)]
    about: Floats = cross - cross.mean(axis=1, keepdims=True) - own.mean(axis=0) + own.mean()
    return about


def _attacks(learnt: Floats, Y: Floats, new: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield the predictions for new features, by attackers trained on features and attribute."""
    spread = learnt.std(axis=0)
    scaled = np.where(spread > 0.0, spread, 1.0)
    train, test = (np.column_stack([np.ones(len(X)), X / scaled]) for X in (learnt, new))
    yield "linear", test @ np.linalg.lstsq(train, Y, rcond=None)[0]
    distances = (
        np.square(new).sum(axis=1)[:, None] - 2.0 * new @ learnt.T + np.square(learnt).sum(axis=1)
    )
    nearest = distances.argsort(axis=1, kind="stable")
    for count in _NEIGHBOURS:
        yield f"{count}-NN", Y[nearest[:, :count]].mean(axis=1)
