"""Wrapper selection: greedy forward selection by a model's cross-validation score."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel.extras import sklearn
from streamsel.held.part import Floats
from streamsel.held.pool import Picks
from streamsel.target.target import Target

_WHAT_FOR = "Estimators"


def by_cross_validation(unit: Floats, target: Target, k: int, estimator: Any, cv: Any) -> Picks:
    """Return the picks of greedy forward selection by a model's cross-validation score.

    Parameters
    ----------
    unit
        (p, n) the variables, centred and of length 1; scaled to variance 1 for the model.
    target
        Classes, or columns of numbers.
    k
        Number of picks.
    estimator, cv
        A scikit-learn model, which is cloned, and the folds as `cross_val_score` takes them.

    Raises
    ------
    ValueError
        If the model cannot be fitted to any of the variables.
    """
    clone = sklearn("base", _WHAT_FOR).clone
    cross_val_score = sklearn("model_selection", _WHAT_FOR).cross_val_score
    X = unit.T * np.sqrt(unit.shape[1])
    columns = target.columns()
    if target.is_class:
        y = columns.argmax(axis=1)
    else:
        y = columns[:, 0] if columns.shape[1] == 1 else columns
    if isinstance(cv, tuple):
        cv = [tuple(map(np.array, pair)) for pair in cv]
    picks = Picks([], [], [])
    remaining = list(range(len(unit)))
    while remaining and len(picks.places) < k:
        scores = [
            float(np.mean(cross_val_score(clone(estimator), X[:, [*picks.places, j]], y, cv=cv)))
            for j in remaining
        ]
        if np.isnan(scores).all():
            raise ValueError(
                f"Expected an estimator that can be fitted to {len(picks.places) + 1} of the "
                f"variables and scored. Got: {estimator!r}, which always fails.\n"
                "Hint: sklearn.model_selection.cross_val_score(error_score='raise') shows why."
            )
        best = int(np.nanargmax(scores))
        picks.places.append(remaining.pop(best))
        picks.scores.append(scores[best])
        picks.rounds.append(0)
    return picks
