"""Define the estimators of PCA and PLS, with inverse transform and predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_is_fitted

from streamsel.base.frame_columns import select_features
from streamsel.sklearn import _inputs
from streamsel.sklearn._extractors import LinearExtractorEstimator
from streamsel.sklearn._predictor import (
    Floats,
    Predictor,
    covariate_coefficients,
    labels_of,
    with_target_tags,
)
from streamsel.stream import ColumnStream


def _moments(learner: Any, stream: ColumnStream) -> tuple[Floats, Floats]:
    """Return the means and the sums of squares of all columns, (p,) each.

    They include constant columns, which a component extractor need not keep.
    """
    found = [(stats.mean, stats.m2) for _, stats in learner._scanned(stream)]
    if not found:
        return np.zeros(0), np.zeros(0)
    mean, m2 = (np.concatenate(part) for part in zip(*found, strict=True))
    return mean, m2


class PCAEstimator(LinearExtractorEstimator):
    """PCA as a scikit-learn estimator, with an inverse transform.

    Attributes
    ----------
    learner_
        The fitted streamsel model: `learner_.report()` shows more. `to_river()` returns a copy that
        can learn rows.
    components_
        (q, p) weight of every feature in each component, for centred features in their own units.
        An array of this size is created on each access.
    explained_variance_, explained_variance_ratio_
        (q,) variance of each component, and its share of the variance of all features.
    mean_
        (p,) mean of every feature.
    relevance_
        (q,) 1 for each component, as there is no target.
    n_components_
        Number of components, q: fewer than requested if X varies in fewer directions.
    n_features_in_, feature_names_in_
        Number of features of X, and their names if they were text.
    """

    def _set_fitted_attributes(self, stream: ColumnStream, y: Any) -> None:
        super()._set_fitted_attributes(stream, y)
        learner, q = self.learner_, self.n_components_
        self.explained_variance_ = learner.explained_variance[:q]
        self.explained_variance_ratio_ = learner.explained_variance_ratio[:q]
        self.mean_, m2 = _moments(learner, stream)
        # Components are functions of standardised features; the inverse returns original units.
        solution = learner._solution()
        standardised = learner.scale and solution is not None
        self._variance = m2 / solution.weight if standardised else np.ones(len(m2))

    def inverse_transform(self, X: Any) -> Floats:
        """Return the features reconstructed from components, (n, p): the best rank-q approximation.

        Parameters
        ----------
        X
            (n, q) components, as `transform` returns them.
        """
        check_is_fitted(self)
        Z = check_array(X, dtype=[np.float64, np.float32])
        if Z.shape[1] != self.n_components_:
            raise ValueError(
                f"Expected {self.n_components_} components. Got: {Z.shape[1]} columns.\n"
                "Hint: pass the result of transform."
            )
        features: Floats = Z @ (self.components_ * self._variance) + self.mean_
        return features.astype(Z.dtype, copy=False)


class PLSEstimator(Predictor, LinearExtractorEstimator):
    """PLS as a scikit-learn estimator: components, and the regression of the target on them.

    It predicts numbers or labels, depending on the target of `fit`: for classes, the label with the
    largest predicted indicator. scikit-learn treats it as a regressor with `target_type="numeric"`
    and as a classifier with `target_type="class"`; with `"auto"` it depends on the target of `fit`
    alone.

    Attributes
    ----------
    learner_
        The fitted streamsel model: `learner_.report()` shows more. `to_river()` returns a copy that
        can learn rows.
    components_
        (q, p) weight of every feature in each component, for centred features in their own units;
        equal to `x_rotations_.T` of `PLSRegression`, up to sign and scale. An array of this size is
        created on each access.
    coef_, intercept_
        (c, p) and (c,), c the number of target columns, or of classes, as in `PLSRegression`: for
        centred features, so that predictions are `(X - mean_) @ coef_.T + intercept_`. Created on
        each access, as `components_`.
    mean_
        (p,) mean of every feature.
    classes_
        Labels, in ascending order; only if the target was classes.
    relevance_
        (q,) relevance of each component.
    n_components_
        Number of components, q: fewer than requested if X varies in fewer directions.
    n_features_in_, feature_names_in_
        Number of features of X, and their names if they were text.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.target_type == "auto":
            return tags
        is_classifier = self.target_type == "class"
        tags.target_tags.multi_output = not is_classifier
        return with_target_tags(tags, is_classifier=is_classifier, is_binary=False)

    # Indices of covariates among the features, and their coefficients; None without covariates.
    _covariates: tuple[list[int], Floats] | None

    def _set_fitted_attributes(self, stream: ColumnStream, y: Any) -> None:
        super()._set_fitted_attributes(stream, y)
        learner, solution = self.learner_, self.learner_._solution()
        target = learner._target
        asked = ~target.is_covariate
        Y = target.Y[: target.c][asked]
        T = np.zeros((Y.shape[1], 0)) if solution is None else solution.scores
        # Scores are uncorrelated, so the target is regressed on each of them separately.
        self._slopes: Floats = T.T @ Y.T / np.square(T).sum(axis=0)[:, None]
        self.intercept_ = target.mean[asked]
        y = np.asarray(y)
        self._is_flat = y.ndim == 1
        self._labels = None
        if target.is_class:
            self._labels = np.unique(y)
            # Reorder from the learner's label order to ascending order.
            names = [name for name, own in zip(target.names, asked, strict=True) if own]
            order = [names.index(label) for label in self._labels.tolist()]
            self._slopes, self.intercept_ = self._slopes[:, order], self.intercept_[order]
        self._set_means(stream)

    def _validate_target(self, y: Any) -> Any:
        if self.target_type != "class":
            return y
        y = labels_of(y)
        if np.unique(y).size < 2:
            raise ValueError("Expected at least two classes. Got: one class.")
        return y

    def _set_means(self, stream: ColumnStream) -> None:
        """Set the means of all features, and the coefficients of covariates among them."""
        learner, mean = self.learner_, _moments(self.learner_, stream)[0]
        self._covariates = None
        self.mean_ = mean
        if self.covariates is None:
            return
        fitted = learner.transform_many(stream)[:, : self.n_components_] @ self._slopes
        names, means, slopes = covariate_coefficients(learner._target, fitted)
        self.mean_ = np.zeros(len(self._names))
        self.mean_[_inputs.indices_of(self._names, dict.fromkeys(_inputs.matrix_names(stream)))] = (
            mean
        )
        indices = _inputs.indices_of(self._names, dict.fromkeys(names))
        self.mean_[indices] = means
        self._covariates = indices, slopes

    @property
    def coef_(self) -> Floats:
        """Coefficients of centred features, (c, p)."""
        coef = self._slopes.T @ self.components_
        if self._covariates is not None:
            indices, slopes = self._covariates
            coef[:, indices] = slopes.T
        return coef

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted target of rows: numbers, (n,) or (n, c) as in `fit`, or labels.

        Parameters
        ----------
        X
            (n, p) array, sparse matrix, frame or AnnData, with the features of `fit`.
        """
        stream, _ = self._new_stream(X)
        self._expect_covariates_in_X()
        Z = self.learner_.transform_many(stream)[:, : self.n_components_]
        predicted: Floats = Z @ self._slopes + self.intercept_
        if self._covariates is not None:
            indices, slopes = self._covariates
            covariates = select_features(stream, [self._names[index] for index in indices])
            predicted += (covariates - self.mean_[indices]) @ slopes
        if self._labels is not None:
            labels: NDArray[Any] = self._labels[predicted.argmax(axis=1)]
            return labels
        return predicted.ravel() if self._is_flat else predicted
