"""Define common parts of the classifiers and regressors among the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from streamsel.targets.encoding import Covariates

Floats = NDArray[np.float64]


class Predictor:
    """An estimator that predicts the target: labels if it was fitted to classes, or numbers."""

    # Labels; None if the target is numeric.
    _labels: NDArray[Any] | None
    _has_separate_covariates: bool

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels, in ascending order."""
        labels: NDArray[Any] | None = getattr(self, "_labels", None)
        if labels is None:
            raise AttributeError(
                f"Expected {type(self).__name__} to be fitted to classes. Got: numbers, or no fit."
            )
        return labels

    def _expect_covariates_in_X(self) -> None:
        """Raise ValueError if predictions require covariates that new rows do not have."""
        if self._has_separate_covariates:
            raise ValueError(
                "Expected a model without covariates, or with covariates among the features of X. "
                "Got: covariates passed separately to fit.\nHint: make them columns of X, and name "
                "them in the parameter covariates."
            )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy for classes, or the coefficient of determination R² for numbers.

        Parameters
        ----------
        X, y
            Rows, and their true target.
        sample_weight
            (n,) weights of the rows.
        """
        predicted = self.predict(X)  # type: ignore[attr-defined]
        measure = r2_score if self._labels is None else accuracy_score
        return float(measure(y, predicted, sample_weight=sample_weight))


def labels_of(y: Any) -> NDArray[Any]:
    """Return the labels of a classifier's target, (n,); raise ValueError for quantities."""
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
    """Return least-squares coefficients of the covariates on the residuals of fitted values.

    Parameters
    ----------
    target
        The target of a learner, with its covariates.
    fitted
        (n, c) fitted values of its c columns from the variables.

    Returns
    -------
    Names of the d covariates, their means (d,), and their coefficients (d, c).
    """
    is_covariate = target.is_covariate
    Z, Y = target.Y[: target.c][is_covariate], target.Y[: target.c][~is_covariate]
    if target.row_transform is None:
        centred = (fitted - fitted.mean(axis=0)).T
    else:
        # Transform as the columns of the target.
        centred = target.row_transform.transform(fitted.T)[0]
    lengths = np.linalg.norm(Z, axis=1)
    lengths[lengths == 0.0] = 1.0
    solution = np.linalg.lstsq((Z / lengths[:, None]).T, (Y - centred).T, rcond=None)[0]
    coefficients: Floats = solution / lengths[:, None]
    names = [name.name for name in target.names if isinstance(name, Covariates)]
    return names, target.mean[is_covariate], coefficients
