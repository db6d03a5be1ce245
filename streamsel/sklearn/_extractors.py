"""Extractors as estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from streamsel.extraction.random_projection import RandomProjection
from streamsel.sklearn import _inputs
from streamsel.sklearn._base import Estimator
from streamsel.sklearn._linear import Floats
from streamsel.stream import ColumnStream


class ExtractorEstimator(ClassNamePrefixFeaturesOutMixin, Estimator):  # type: ignore[misc]
    """An extractor of streamsel as an estimator of scikit-learn.

    Attributes
    ----------
    learner_
        The fitted model of streamsel: `learner_.report()` shows more. `to_river()` returns a copy
        that learns rows.
    relevance_
        (q,) the relevance of each component.
    n_components_
        How many components there are, q: fewer than were asked for where X varies in no more
        directions.
    n_features_in_, feature_names_in_
        How many features X had, and their names if they were text.
    """

    def _take(self, stream: ColumnStream, y: Any) -> None:
        del y
        learner = self.learner_
        if learner._reads_again:
            # Of all columns: they are at hand.
            learner.learn_loadings(stream, max_loadings=len(self._names))
        self.relevance_ = np.array(list(learner.relevance.values()))
        self.n_components_ = self._n_features_out = len(self.relevance_)

    def transform(self, X: Any) -> Any:
        """Return the components of rows, (n, q).

        Parameters
        ----------
        X
            (n, p) array, sparse matrix, frame or AnnData, of the features of `fit`.
        """
        stream, dtype = self._new_stream(X)
        Z = self.learner_.transform_many(stream)[:, : self.n_components_]
        return Z.astype(np.float32 if dtype == np.float32 else np.float64, copy=False)


class LinearExtractorEstimator(ExtractorEstimator):
    """A linear extractor of streamsel as an estimator of scikit-learn.

    Attributes
    ----------
    learner_
        The fitted model of streamsel: `learner_.report()` shows more. `to_river()` returns a copy
        that learns rows.
    components_
        (q, p) the weight of every feature in each component: of centred features, as they come. An
        array of this size is made whenever it is read.
    relevance_
        (q,) the relevance of each component.
    n_components_
        How many components there are, q: fewer than were asked for where X varies in no more
        directions.
    n_features_in_, feature_names_in_
        How many features X had, and their names if they were text.
    """

    @property
    def components_(self) -> Floats:
        """The weight of every feature in each component."""
        check_is_fitted(self)
        if isinstance(self.learner_, RandomProjection):
            return np.ascontiguousarray(self.learner_.to_matrix(list(self._names)).T)
        found = self.learner_._linear_map(self._names)
        weights = np.zeros((len(self._names), self.n_components_))
        known = dict(zip(found.names, found.weights[:, : self.n_components_], strict=True))
        if known:
            weights[_inputs.places_of(self._names, known)] = np.array([*known.values()])
        return np.ascontiguousarray(weights.T)
