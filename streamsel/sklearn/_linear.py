"""What classifiers and regressors among the estimators have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from streamsel.target.covariates import Given

Floats = NDArray[np.float64]


class Predictor:
    """An estimator that predicts the target: labels if it has learnt classes, or numbers."""

    # The labels; None where the target is numbers.
    _labels: NDArray[Any] | None
    _covariates_apart: bool

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in ascending order."""
        labels: NDArray[Any] | None = getattr(self, "_labels", None)
        if labels is None:
            raise AttributeError(
                f"Expected classes as the target of {type(self).__name__}. Got: numbers, or no fit."
            )
        return labels

    def _expect_covariates_in_X(self) -> None:
        """Refuse to predict given covariates that new rows do not have."""
        if self._covariates_apart:
            raise ValueError(
                "Expected a model without covariates, or with covariates among the features of X. "
                "Got: one that had them apart, in fit.\nHint: make them columns of X, and name "
                "them by the parameter covariates."
            )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on classes, and the coefficient of determination, R², on numbers.

        Parameters
        ----------
        X, y
            Rows, and their true target.
        sample_weight
            (n,) how much each row counts.
        """
        predicted = self.predict(X)  # type: ignore[attr-defined]
        measure = r2_score if self._labels is None else accuracy_score
        return float(measure(y, predicted, sample_weight=sample_weight))


def labels_of(y: Any) -> NDArray[Any]:
    """Return the labels of a classifier's target, (n,); ValueError for quantities."""
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def with_target_tags(tags: Any, *, is_classifier: bool, is_binary: bool) -> Any:
    """Set the tags of a regressor or a classifier."""
    if is_classifier:
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_class=not is_binary)
        tags.regressor_tags = None
    else:
        tags.estimator_type = "regressor"
        tags.regressor_tags = RegressorTags()
    return tags


def covariate_coefficients(target: Any, fitted: Floats) -> tuple[list[Any], Floats, Floats]:
    """Return what the covariates explain of the target beyond fitted values, by least squares.

    Parameters
    ----------
    target
        The target of a learner, with its covariates.
    fitted
        (n, c) what the variables explain of its c columns.

    Returns
    -------
    Names of the d covariates, their means (d,), and their coefficients (d, c).
    """
    given = target.is_given
    Z, Y = target.Y[: target.c][given], target.Y[: target.c][~given]
    if target.weights is None:
        seen = (fitted - fitted.mean(axis=0)).T
    else:
        # Where products of columns are weighted ones.
        seen = target.weights.turned(fitted.T)[0]
    lengths = np.linalg.norm(Z, axis=1)
    lengths[lengths == 0.0] = 1.0
    found = np.linalg.lstsq((Z / lengths[:, None]).T, (Y - seen).T, rcond=None)[0]
    coefficients: Floats = found / lengths[:, None]
    names = [name.name for name in target.names if isinstance(name, Given)]
    return names, target.mean[given], coefficients
