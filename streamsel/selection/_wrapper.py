"""Forward selection by what a model makes of it: cross-validated, variable by variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel.extras import sklearn
from streamsel.held.part import Floats
from streamsel.held.pool import Picks
from streamsel.target.target import Target

_WHAT_FOR = "Estimators"


def by_cross_validation(unit: Floats, target: Target, k: int, estimator: Any, cv: Any) -> Picks:
    """Return the picks that a model errs least with, each beside those before it.

    Parameters
    ----------
    unit
        (p, n) the variables, centred and of length 1; the model sees them of variance 1.
    target
        What it is to predict: classes, or columns of numbers.
    k
        How many picks.
    estimator, cv
        A scikit-learn model, which is cloned, and the folds as `cross_val_score` takes them.

    Raises
    ------
    ValueError
        Where the model can be fitted to none of the variables.
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
    rest = list(range(len(unit)))
    while rest and len(picks.places) < k:
        worth = [
            float(np.mean(cross_val_score(clone(estimator), X[:, [*picks.places, j]], y, cv=cv)))
            for j in rest
        ]
        if np.isnan(worth).all():
            raise ValueError(
                f"Expected an estimator that can be fitted to {len(picks.places) + 1} of the "
                f"variables and scored. Got: {estimator!r}, which always fails.\n"
                "Hint: try it with sklearn.model_selection.cross_val_score(error_score='raise')."
            )
        best = int(np.nanargmax(worth))
        picks.places.append(rest.pop(best))
        picks.scores.append(worth[best])
        picks.rounds.append(0)
    return picks
