"""Define the estimators of extractors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from streamsel.extraction.random_projection import RandomProjection
from streamsel.sklearn import _inputs
from streamsel.sklearn._base import StreamEstimator
from streamsel.sklearn._predictor import Floats
from streamsel.stream import ColumnStream


class ExtractorEstimator(ClassNamePrefixFeaturesOutMixin, StreamEstimator):  # type: ignore[misc]
    """A streamsel extractor as a scikit-learn estimator.

    Attributes
    ----------
    learner_
        The fitted streamsel model: `learner_.report()` shows more. `to_river()` returns a copy that
        can learn rows.
    relevance_
        (q,) relevance of each component.
    n_components_
        Number of components, q: fewer than requested if X varies in fewer directions.
    n_features_in_, feature_names_in_
        Number of features of X, and their names if they were text.
    """

    def _set_fitted_attributes(self, stream: ColumnStream, y: Any) -> None:
        del y
        learner = self.learner_
        if learner._wants_second_pass:
            # X is in memory, so the loadings of all columns are computed.
            learner.learn_loadings(stream, max_loadings=len(self._names))
        self.relevance_ = np.array(list(learner.relevance.values()))
        self.n_components_ = self._n_features_out = len(self.relevance_)

    def transform(self, X: Any) -> Any:
        """Return the components of rows, (n, q).

        Parameters
        ----------
        X
            (n, p) array, sparse matrix, frame or AnnData, with the features of `fit`.
        """
        stream, dtype = self._new_stream(X)
        Z = self.learner_.transform_many(stream)[:, : self.n_components_]
        return Z.astype(np.float32 if dtype == np.float32 else np.float64, copy=False)


class LinearExtractorEstimator(ExtractorEstimator):
    """A linear streamsel extractor as a scikit-learn estimator.

    Attributes
    ----------
    learner_
        The fitted streamsel model: `learner_.report()` shows more. `to_river()` returns a copy that
        can learn rows.
    components_
        (q, p) weight of every feature in each component, for centred features in their own units.
        An array of this size is created on each access.
    relevance_
        (q,) relevance of each component.
    n_components_
        Number of components, q: fewer than requested if X varies in fewer directions.
    n_features_in_, feature_names_in_
        Number of features of X, and their names if they were text.
    """

    @property
    def components_(self) -> Floats:
        """Weight of every feature in each component."""
        check_is_fitted(self)
        if isinstance(self.learner_, RandomProjection):
            return np.ascontiguousarray(self.learner_.to_matrix(list(self._names)).T)
        linear_map = self.learner_._component_map()
        weights = np.zeros((len(self._names), self.n_components_))
        weights_of = dict(
            zip(linear_map.names, linear_map.weights[:, : self.n_components_], strict=True)
        )
        if weights_of:
            weights[_inputs.indices_of(self._names, weights_of)] = np.array([*weights_of.values()])
        return np.ascontiguousarray(weights.T)
