"""Define the estimator of Lasso, which selects and predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if

from streamsel.base.frame_columns import select_features
from streamsel.sklearn import _inputs
from streamsel.sklearn._predictor import (
    Floats,
    Predictor,
    covariate_coefficients,
    labels_of,
    with_target_tags,
)
from streamsel.sklearn._selectors import SelectorEstimator
from streamsel.stream import ColumnStream


def _is_logistic(estimator: Any) -> bool:
    return bool(estimator.family == "logistic")


class LassoEstimator(Predictor, SelectorEstimator):
    """Lasso as a scikit-learn estimator: a selector that also predicts.

    It is a regressor, or a classifier of two classes with `family="logistic"`. scikit-learn
    requires the type before `fit`, so `family="auto"` means "gaussian" here.

    Attributes
    ----------
    learner_
        The fitted streamsel model: `learner_.path` has all solutions, `learner_.report()` shows
        more. `to_river()` returns a copy that can learn rows.
    coef_, intercept_
        (p,) coefficients of the last solution, unpenalized for covariates among the features, and a
        scalar; (1, p) and (1,) for classes, as in `LogisticRegression`.
    alpha_
        The alpha of that solution; NaN if all features are constant.
    classes_
        The two labels, in ascending order; only with `family="logistic"`.
    support_
        (p,) mask of the selected features.
    scores_
        (p,) alpha at which each selected feature entered the path, NaN for the others.
    n_features_in_, feature_names_in_
        Number of features of X, and their names if they were text.
    """

    # Coefficients are those of numbers.
    _takes_mixed_frames = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return with_target_tags(tags, is_classifier=_is_logistic(self), is_binary=True)

    def _learner_params(self) -> dict[str, Any]:
        params = super()._learner_params()
        alpha = params.pop("alpha")
        if alpha is not None and params["alphas"] is not None:
            raise ValueError(
                f"Expected alpha or alphas, not both. Got: alpha={alpha!r} and alphas="
                f"{params['alphas']!r}."
            )
        if params["family"] == "auto":
            params["family"] = "gaussian"
        return params if alpha is None else params | {"alphas": alpha}

    def _validate_target(self, y: Any) -> Any:
        self._labels = None
        if not _is_logistic(self):
            return column_or_1d(y, warn=True)
        y = labels_of(y)
        self._labels = np.unique(y)
        if self._labels.size != 2:
            raise ValueError(
                "Only binary classification is supported: expected two classes. Got: "
                f"{self._labels.size}."
            )
        return y

    def _target_type_of(self, learner: Any, y: Any) -> str:
        return "class" if _is_logistic(self) else super()._target_type_of(learner, y)

    coef_: Floats
    intercept_: Any

    def _set_fitted_attributes(self, stream: ColumnStream, y: Any) -> None:
        super()._set_fitted_attributes(stream, y)
        learner = self.learner_
        coefficients = learner.coefficients
        w = np.array([*coefficients.values()])
        coef, intercept = np.zeros(len(self._names)), learner.intercept
        coef[_inputs.indices_of(self._names, coefficients)] = w
        solutions = learner.path
        self.alpha_ = float([*solutions][-1]) if solutions else float("nan")
        if not solutions:
            mean = float(learner._target.mean[-1 if _is_logistic(self) else 0])
            intercept = float(logit(mean)) if _is_logistic(self) else mean
        if self.covariates is not None:
            fitted = select_features(stream, [*coefficients]) @ w
            names, means, theirs = covariate_coefficients(learner._target, fitted[:, None])
            coef[_inputs.indices_of(self._names, names)] = theirs[:, 0]
            intercept -= float(means @ theirs[:, 0])
        self._set_coefficients(coef, intercept)

    def _set_coefficients(self, coef: Floats, intercept: float) -> None:
        self._nonzero = np.flatnonzero(coef)
        if self._labels is None:
            self.coef_, self.intercept_ = coef, intercept
            return
        # The learner's coefficients refer to the second label in its own order.
        sign = 1.0 if self.learner_._target.names[1] == self._labels[1] else -1.0
        self.coef_, self.intercept_ = sign * coef[None], np.array([sign * intercept])

    def _predicted(self, X: Any) -> Floats:
        """Return the linear predictor of rows, (n,)."""
        stream, _ = self._new_stream(X)
        self._expect_covariates_in_X()
        names = [self._names[index] for index in self._nonzero.tolist()]
        predictor: Floats = select_features(stream, names) @ np.ravel(self.coef_)[self._nonzero]
        predictor += self.intercept_
        return predictor

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted target of rows: numbers, or labels with `family="logistic"`.

        Parameters
        ----------
        X
            (n, p) array, sparse matrix, frame or AnnData, with the features of `fit`.
        """
        predictor = self._predicted(X)
        if self._labels is None:
            return predictor
        labels: NDArray[Any] = self._labels[(predictor > 0.0).astype(np.intp)]
        return labels

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of the second label for rows, (n,)."""
        return self._predicted(X)

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both labels for rows, (n, 2)."""
        probabilities: Floats = expit(np.outer(self._predicted(X), [-1.0, 1.0]))
        return probabilities
