"""Who predicts best on rows that it has not seen: models of scikit-learn, and their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.evaluate._matrices import Floats
from streamsel.extras import sklearn

_WHAT_FOR = "Nested folds"

_Known = tuple[str, str, dict[str, Any]]

# Name -> module and class, for classes and for numbers.
MODELS: dict[str, tuple[_Known, _Known | None]] = {
    "logistic": (("linear_model", "LogisticRegression", {"max_iter": 1000}), None),
    "ridge": (("linear_model", "RidgeClassifier", {}), ("linear_model", "Ridge", {})),
    "knn": (("neighbors", "KNeighborsClassifier", {}), ("neighbors", "KNeighborsRegressor", {})),
}
SCORES = {True: ("balanced_accuracy", "accuracy", "auc"), False: ("r2",)}
"""Of classes, and of numbers; by the first of them a size is chosen."""
BOUNDS = {True: (0.0, 1.0), False: (-math.inf, 1.0)}
"""Between what the scores of either lie."""


class Interval(NamedTuple):
    """A mean over folds, and its confidence interval.

    Attributes
    ----------
    value
        The mean.
    low, high
        The interval around it.
    """

    value: float
    low: float
    high: float


def model_of(model: Any, *, is_class: bool) -> Any:
    """Return what predicts: a pipeline of a name, or a model of scikit-learn as it is."""
    if model is not None and not isinstance(model, str):
        if not hasattr(model, "fit") or not hasattr(model, "predict"):
            raise TypeError(
                f"Expected a model of scikit-learn, or one of {', '.join(MODELS)}. Got: {model!r}."
            )
        return model
    name = model or ("logistic" if is_class else "ridge")
    known = {name: both[0 if is_class else 1] for name, both in MODELS.items()}
    found = known.get(name)
    if found is None:
        names = [name for name, each in known.items() if each is not None]
        kind = "classes" if is_class else "numbers"
        raise ValueError(f"Expected a model of {kind}, {' or '.join(names)}. Got: {name}.")
    module, cls, settings = found
    preprocessing, pipeline = sklearn("preprocessing", _WHAT_FOR), sklearn("pipeline", _WHAT_FOR)
    # What they are handed are copies of rows: they may change them in place.
    impute = sklearn("impute", _WHAT_FOR).SimpleImputer(keep_empty_features=True, copy=False)
    estimator = getattr(sklearn(module, _WHAT_FOR), cls)(**settings)
    return pipeline.make_pipeline(impute, preprocessing.StandardScaler(copy=False), estimator)


def scores_of(
    model: Any, train: Floats, test: Floats, y: Any, rows: Sequence[Any], *, is_class: bool
) -> dict[str, float]:
    """Fit a model to training rows, and return how it does on the test rows.

    Parameters
    ----------
    model
        A model of scikit-learn; it is left as it is. Without features whatever is most frequent,
        or the mean, is predicted.
    train, test
        Features of both, which may be changed.
    y
        (n,) codes of classes, or numbers.
    rows
        The training rows and the test rows.
    is_class
        Which of them.
    """
    dummy, metrics = sklearn("dummy", _WHAT_FOR), sklearn("metrics", _WHAT_FOR)
    if not train.shape[1]:
        train, test = np.zeros((len(train), 1)), np.zeros((len(test), 1))
        model = dummy.DummyClassifier() if is_class else dummy.DummyRegressor()
    known, truth = y[rows[0]], y[rows[1]]
    fitted = sklearn("base", _WHAT_FOR).clone(model).fit(train, known)
    told = fitted.predict(test.copy())
    if not is_class:
        return {"r2": float(metrics.r2_score(truth, told))}
    return {
        "balanced_accuracy": float(metrics.balanced_accuracy_score(truth, told)),
        "accuracy": float(np.mean(told == truth)),
        "auc": _auc(metrics, truth, _certainties(fitted, test), fitted.classes_),
    }


def _certainties(fitted: Any, test: Floats) -> Floats:
    """Return how certain the model is of each class, (n, classes)."""
    if hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict_proba(test))
    certain = np.asarray(fitted.decision_function(test))
    return np.column_stack([-certain, certain]) if certain.ndim == 1 else certain


def _auc(metrics: Any, truth: NDArray[Any], certain: Floats, classes: NDArray[Any]) -> float:
    """Return the mean over classes of the area under the curve of each against the others."""
    is_there = [0 < np.sum(truth == label) < len(truth) for label in classes]
    areas = [
        metrics.roc_auc_score(truth == label, certain[:, j])
        for j, label in enumerate(classes)
        if is_there[j]
    ]
    return float(np.mean(areas)) if areas else math.nan


def interval_of(
    values: Sequence[float],
    share: float,
    level: float,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """Return the mean over folds and its interval, which heeds that folds share training rows.

    That of Nadeau and Bengio (2003): Student's t, the variance of the mean of J folds taken as
    (1/J + n_test/n_train) times the variance between folds.

    Parameters
    ----------
    values
        One a fold.
    share
        n_test / n_train.
    level
        The chance with which the interval is to hold.
    bounds
        Between what the mean must lie: the interval is cut off there.
    """
    from scipy.stats import t

    J, mean = len(values), float(np.mean(values))
    deviation = float(np.std(values, ddof=1))
    margin = float(t.ppf(0.5 + 0.5 * level, J - 1)) * math.sqrt(1 / J + share) * deviation
    low, high = np.clip((mean - margin, mean + margin), *bounds)
    return Interval(mean, float(low), float(high))
