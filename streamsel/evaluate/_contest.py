"""Models of scikit-learn that predict rows they were not fitted to, and their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.evaluate._matrices import Floats
from streamsel.extras import sklearn

_WHAT_FOR = "Nested folds"

# Penalties to choose from, of standardized features.
_PENALTIES = np.logspace(-2, 5, 15)
_FOLDS = 3
MODELS = ("logistic", "ridge", "knn")
SCORES = {True: ("balanced_accuracy", "accuracy", "auc"), False: ("r2",)}
"""Of classes, and of numbers; by the first of them a size is chosen."""
LIMITS = {"r2": (-math.inf, 1.0)}
"""What a score can be, where that is not 0 to 1."""


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
    """Return the model that predicts: a pipeline, given its name, or a model of scikit-learn."""
    if model is not None and not isinstance(model, str):
        if not hasattr(model, "fit") or not hasattr(model, "predict"):
            raise TypeError(
                f"Expected a model of scikit-learn, or one of {', '.join(MODELS)}. Got: {model!r}."
            )
        return model
    name = model or ("logistic" if is_class else "ridge")
    known = MODELS if is_class else MODELS[1:]
    if name not in known:
        kind = "classes" if is_class else "numbers"
        raise ValueError(f"Expected a model of {kind}, {' or '.join(known)}. Got: {name}.")
    preprocessing, pipeline = sklearn("preprocessing", _WHAT_FOR), sklearn("pipeline", _WHAT_FOR)
    # What they are handed are copies of rows: they may change them in place.
    impute = sklearn("impute", _WHAT_FOR).SimpleImputer(keep_empty_features=True, copy=False)
    scale = preprocessing.StandardScaler(copy=False)
    return pipeline.make_pipeline(impute, scale, _estimator(name, is_class=is_class))


def _estimator(name: str, *, is_class: bool) -> Any:
    """Return the estimator of this name, which chooses its penalty by itself."""
    linear, neighbors = sklearn("linear_model", _WHAT_FOR), sklearn("neighbors", _WHAT_FOR)
    if name == "knn":
        return neighbors.KNeighborsClassifier() if is_class else neighbors.KNeighborsRegressor()
    if name == "ridge":
        kind = linear.RidgeClassifierCV if is_class else linear.RidgeCV
        return kind(alphas=_PENALTIES)
    search = sklearn("model_selection", _WHAT_FOR).GridSearchCV
    penalties = {"C": (1.0 / _PENALTIES[::2]).tolist()}
    return search(linear.LogisticRegression(max_iter=1000), penalties, cv=_FOLDS)


def scores_of(
    model: Any,
    train: Floats,
    test: Floats,
    y: Any,
    rows: Sequence[Any],
    *,
    is_class: bool,
    rotate: bool,
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
    rotate
        Whether more features than rows may be replaced by their principal axes.
    """
    dummy, metrics = sklearn("dummy", _WHAT_FOR), sklearn("metrics", _WHAT_FOR)
    if not train.shape[1]:
        train, test = np.zeros((len(train), 1)), np.zeros((len(test), 1))
        model = dummy.DummyClassifier() if is_class else dummy.DummyRegressor()
    elif rotate and train.shape[1] > len(train):
        model = _of_axes(model)
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


def _of_axes(model: Any) -> Any:
    """Return a pipeline of `model_of` that turns its features into all their principal axes.

    Its predictions depend on distances and inner products alone: they are the same, and take a
    fraction of the time where there are more features than rows.
    """
    axes = sklearn("decomposition", _WHAT_FOR).PCA(svd_solver="full")
    pipeline = sklearn("pipeline", _WHAT_FOR).Pipeline
    return pipeline([*model.steps[:-1], ("axes", axes), model.steps[-1]])


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
    values: Sequence[float], share: float, level: float, limits: tuple[float, float]
) -> Interval:
    """Return the mean over folds and its interval, which allows for shared training rows.

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
    limits
        What a value can be: the interval ends there.
    """
    from scipy.stats import t

    J, mean = len(values), float(np.mean(values))
    deviation = float(np.std(values, ddof=1))
    margin = float(t.ppf(0.5 + 0.5 * level, J - 1)) * math.sqrt(1 / J + share) * deviation
    least, most = limits
    return Interval(mean, max(mean - margin, least), min(mean + margin, most))
