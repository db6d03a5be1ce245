"""Predictive models of scikit-learn, and their scores on held-out rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._utils.optional import import_sklearn
from streamsel.evaluate._principal_axes import Pair, principal_coordinates
from streamsel.evaluate.similarity import Floats

_WHAT_FOR = "Nested folds"

# Grid of penalties, for standardized features.
_PENALTIES = np.logspace(-2, 5, 15)
_FOLDS = 3
MODELS = ("logistic", "ridge", "knn")
SCORE_NAMES = {True: ("balanced_accuracy", "accuracy", "auc"), False: ("r2",)}
"""Scores for classes, and for numbers; the first one selects the size."""
SCORE_RANGES = {"r2": (-math.inf, 1.0)}
"""Range of a score that is not between 0 and 1."""


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


def make_predictor(model: Any, *, is_class: bool) -> Any:
    """Return the predictive model: a named pipeline, or a model of scikit-learn as given."""
    if model is not None and not isinstance(model, str):
        if not hasattr(model, "fit") or not hasattr(model, "predict"):
            raise TypeError(
                "Expected model: a scikit-learn model or "
                f"one of {', '.join(MODELS)}. Got: {model!r}."
            )
        return model
    name = model or ("logistic" if is_class else "ridge")
    known = MODELS if is_class else MODELS[1:]
    if name not in known:
        kind = "classes" if is_class else "numbers"
        raise ValueError(
            f"Expected model: {' or '.join(known)} for a target of {kind}. Got: {name}."
        )
    scaler = import_sklearn("preprocessing", _WHAT_FOR).StandardScaler
    make_pipeline = import_sklearn("pipeline", _WHAT_FOR).make_pipeline
    # The inputs are copies of rows, which may be changed in place.
    impute = import_sklearn("impute", _WHAT_FOR).SimpleImputer(keep_empty_features=True, copy=False)
    return make_pipeline(impute, scaler(copy=False), _estimator(name, is_class=is_class))


def _estimator(name: str, *, is_class: bool) -> Any:
    """Return the estimator of this name, which selects its penalty by cross-validation."""
    linear = import_sklearn("linear_model", _WHAT_FOR)
    if name == "knn":
        neighbors = import_sklearn("neighbors", _WHAT_FOR)
        return neighbors.KNeighborsClassifier() if is_class else neighbors.KNeighborsRegressor()
    if name == "ridge":
        kind = linear.RidgeClassifierCV if is_class else linear.RidgeCV
        return kind(alphas=_PENALTIES)
    search = import_sklearn("model_selection", _WHAT_FOR).GridSearchCV
    penalties = {"C": (1.0 / _PENALTIES[::2]).tolist()}
    return search(linear.LogisticRegression(max_iter=1000), penalties, cv=_FOLDS)


def score_predictor(
    model: Any,
    train: Floats,
    test: Floats,
    y: Any,
    rows: Sequence[Any],
    *,
    is_class: bool,
    rotate: bool,
) -> dict[str, float]:
    """Fit a model to the training rows, and return its scores on the test rows.

    Parameters
    ----------
    model
        A model of scikit-learn; it is not changed. Without features, the most frequent class or the
        mean is predicted.
    train, test
        Features of both, which may be modified.
    y
        (n,) codes of classes, or numbers.
    rows
        The training rows and the test rows.
    is_class
        Whether y holds classes.
    rotate
        Whether more features than rows may be replaced by their principal axes.
    """
    baselines, metrics = import_sklearn("dummy", _WHAT_FOR), import_sklearn("metrics", _WHAT_FOR)
    if not train.shape[1]:
        train, test = np.zeros((len(train), 1)), np.zeros((len(test), 1))
        model = baselines.DummyClassifier() if is_class else baselines.DummyRegressor()
    elif rotate and train.shape[1] > len(train):
        train, test = principal_coordinates([(train, test)], _preparation(model))
        model = model.steps[-1][1]
    y_train, expected = y[rows[0]], y[rows[1]]
    fitted = import_sklearn("base", _WHAT_FOR).clone(model).fit(train, y_train)
    predicted = fitted.predict(test.copy())
    if not is_class:
        return {"r2": float(metrics.r2_score(expected, predicted))}
    return {
        "balanced_accuracy": float(metrics.balanced_accuracy_score(expected, predicted)),
        "accuracy": float(np.mean(predicted == expected)),
        "auc": _auc(metrics, expected, _class_scores(fitted, test), fitted.classes_),
    }


def score_on_principal_axes(
    model: Any, blocks: Iterable[Pair], y: Any, rows: Sequence[Any], *, is_class: bool
) -> dict[str, float]:
    """Return scores as `score_predictor` does, for more features than rows, some at a time.

    Parameters
    ----------
    model
        A pipeline of `make_predictor`.
    blocks
        Features of the training rows and of the test rows.
    y, rows, is_class
        As in `score_predictor`.
    """
    train, test = principal_coordinates(blocks, _preparation(model))
    estimator = model.steps[-1][1]
    return score_predictor(estimator, train, test, y, rows, is_class=is_class, rotate=False)


def _preparation(model: Any) -> Any:
    """Return the steps of a pipeline of `make_predictor` before its estimator."""
    return import_sklearn("pipeline", _WHAT_FOR).Pipeline(model.steps[:-1])


def _class_scores(fitted: Any, test: Floats) -> Floats:
    """Return the model's score for each class, (n, classes)."""
    if hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict_proba(test))
    decision = np.asarray(fitted.decision_function(test))
    return np.column_stack([-decision, decision]) if decision.ndim == 1 else decision


def _auc(metrics: Any, truth: NDArray[Any], class_scores: Floats, classes: NDArray[Any]) -> float:
    """Return the mean over classes of the one-versus-rest area under the ROC curve."""
    is_present = [0 < np.sum(truth == label) < len(truth) for label in classes]
    areas = [
        metrics.roc_auc_score(truth == label, class_scores[:, j])
        for j, label in enumerate(classes)
        if is_present[j]
    ]
    return float(np.mean(areas)) if areas else math.nan


def fold_interval(
    values: Sequence[float], share: float, level: float, limits: tuple[float, float]
) -> Interval:
    """Return the mean over folds and its interval, corrected for shared training rows.

    The interval of Nadeau and Bengio (2003): Student's t, with (1/J + n_test/n_train) times the
    variance between folds as the variance of the mean of J folds.

    Parameters
    ----------
    values
        One per fold.
    share
        n_test / n_train.
    level
        Confidence level.
    limits
        Range of the values: the interval is clipped to it.
    """
    from scipy.stats import t

    J, mean = len(values), float(np.mean(values))
    deviation = float(np.std(values, ddof=1))
    margin = float(t.ppf(0.5 + 0.5 * level, J - 1)) * math.sqrt(1 / J + share) * deviation
    lower, upper = limits
    return Interval(mean, max(mean - margin, lower), min(mean + margin, upper))
