"""PCA and PLS as estimators: the way back to the features, and predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_is_fitted

from streamsel.rows import gather
from streamsel.sklearn import _inputs
from streamsel.sklearn._extractors import LinearExtractorEstimator
from streamsel.sklearn._linear import (
    Floats,
    Predictor,
    covariate_coefficients,
    labels_of,
    with_target_tags,
)
from streamsel.stream import ColumnStream


def _moments(learner: Any, stream: ColumnStream) -> tuple[Floats, Floats]:
    """Return the means and the sums of squares of all columns, (p,) each.

    Of constant ones too, of which a learner of components need not keep anything.
    """
    found = [(stats.mean, stats.m2) for _, stats in learner._scanned(stream)]
    if not found:
        return np.zeros(0), np.zeros(0)
    mean, m2 = (np.concatenate(part) for part in zip(*found, strict=True))
    return mean, m2


class PCAEstimator(LinearExtractorEstimator):
    """PCA as an estimator of scikit-learn, with the way back to the features.

    Attributes
    ----------
    learner_
        The fitted model of streamsel: `learner_.report()` shows more. `to_river()` returns a copy
        that learns rows.
    components_
        (q, p) the weight of every feature in each component: of centred features, as they come. An
        array of this size is made whenever it is read.
    explained_variance_, explained_variance_ratio_
        (q,) the variance of each component, and its share in that of all features.
    mean_
        (p,) the mean of every feature.
    relevance_
        (q,) 1 for each, as there is no target.
    n_components_
        How many components there are, q: fewer than were asked for where X varies in no more
        directions.
    n_features_in_, feature_names_in_
        How many features X had, and their names if they were text.
    """

    def _take(self, stream: ColumnStream, y: Any) -> None:
        super()._take(stream, y)
        learner, q = self.learner_, self.n_components_
        self.explained_variance_ = learner.explained_variance_[:q]
        self.explained_variance_ratio_ = learner.explained_variance_ratio_[:q]
        self.mean_, m2 = _moments(learner, stream)
        # Components are of standardised features, and the way back returns to their own units.
        solution = learner._solution()
        standardised = learner.scale and solution is not None
        self._variance = m2 / solution.weight if standardised else np.ones(len(m2))

    def inverse_transform(self, X: Any) -> Floats:
        """Return the features that components stand for, (n, p): the best approximation of rank q.

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
                "Hint: X is what transform returned."
            )
        found: Floats = Z @ (self.components_ * self._variance) + self.mean_
        return found.astype(Z.dtype, copy=False)


class PLSEstimator(Predictor, LinearExtractorEstimator):
    """PLS as an estimator of scikit-learn: components, and the regression of the target on them.

    It predicts what it has learnt, numbers or labels: of classes the one whose predicted indicator
    is the largest. scikit-learn takes it for a regressor with `target="numeric"`, for a classifier
    with `target="class"`; with `"auto"` only the target of `fit` decides.

    Attributes
    ----------
    learner_
        The fitted model of streamsel: `learner_.report()` shows more. `to_river()` returns a copy
        that learns rows.
    components_
        (q, p) the weight of every feature in each component: of centred features, as they come;
        `x_rotations_.T` of `PLSRegression`, up to sign and scale. An array of this size is made
        whenever it is read.
    coef_, intercept_
        (c, p) and (c,), c the number of target columns, or of classes, as `PLSRegression` has them:
        of centred features, so that predictions are `(X - mean_) @ coef_.T + intercept_`. Made
        whenever it is read, as `components_`.
    mean_
        (p,) the mean of every feature.
    classes_
        The labels, in ascending order; only where the target was classes.
    relevance_
        (q,) the relevance of each component.
    n_components_
        How many components there are, q: fewer than were asked for where X varies in no more
        directions.
    n_features_in_, feature_names_in_
        How many features X had, and their names if they were text.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.target == "auto":
            return tags
        is_classifier = self.target == "class"
        tags.target_tags.multi_output = not is_classifier
        return with_target_tags(tags, is_classifier=is_classifier, is_binary=False)

    # Where covariates are among the features, and their coefficients; None without any.
    _covariates: tuple[list[int], Floats] | None

    def _take(self, stream: ColumnStream, y: Any) -> None:
        super()._take(stream, y)
        learner, solution = self.learner_, self.learner_._solution()
        target = learner._target
        asked = ~target.is_given
        Y = target.Y[: target.c][asked]
        T = np.zeros((Y.shape[1], 0)) if solution is None else solution.scores
        # Scores are uncorrelated: each is regressed on by itself.
        self._slopes: Floats = T.T @ Y.T / np.square(T).sum(axis=0)[:, None]
        self.intercept_ = target.mean[asked]
        y = np.asarray(y)
        self._is_flat = y.ndim == 1
        self._labels = None
        if target.is_class:
            self._labels = np.unique(y)
            # The learner has labels in an order of its own.
            names = [name for name, own in zip(target.names, asked, strict=True) if own]
            order = [names.index(label) for label in self._labels.tolist()]
            self._slopes, self.intercept_ = self._slopes[:, order], self.intercept_[order]
        self._take_means(stream)

    def _checked_target(self, y: Any) -> Any:
        if self.target != "class":
            return y
        y = labels_of(y)
        if np.unique(y).size < 2:
            raise ValueError("Expected at least two classes. Got: one class.")
        return y

    def _take_means(self, stream: ColumnStream) -> None:
        """Take the means of all features, and the coefficients of covariates among them."""
        learner, mean = self.learner_, _moments(self.learner_, stream)[0]
        self._covariates = None
        self.mean_ = mean
        if self.covariates is None:
            return
        fitted = learner.transform_many(stream)[:, : self.n_components_] @ self._slopes
        names, means, slopes = covariate_coefficients(learner._target, fitted)
        self.mean_ = np.zeros(len(self._names))
        self.mean_[_inputs.places_of(self._names, dict.fromkeys(_inputs.names_of(stream)))] = mean
        places = _inputs.places_of(self._names, dict.fromkeys(names))
        self.mean_[places] = means
        self._covariates = places, slopes

    @property
    def coef_(self) -> Floats:
        """The coefficients of centred features, (c, p)."""
        coef = self._slopes.T @ self.components_
        if self._covariates is not None:
            places, slopes = self._covariates
            coef[:, places] = slopes.T
        return coef

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted target of rows: numbers, (n,) or (n, c) as in `fit`, or labels.

        Parameters
        ----------
        X
            (n, p) array, sparse matrix, frame or AnnData, of the features of `fit`.
        """
        stream, _ = self._new_stream(X)
        self._expect_covariates_in_X()
        Z = self.learner_.transform_many(stream)[:, : self.n_components_]
        found: Floats = Z @ self._slopes + self.intercept_
        if self._covariates is not None:
            places, slopes = self._covariates
            given = gather(stream, [self._names[place] for place in places])
            found += (given - self.mean_[places]) @ slopes
        if self._labels is not None:
            labels: NDArray[Any] = self._labels[found.argmax(axis=1)]
            return labels
        return found.ravel() if self._is_flat else found
