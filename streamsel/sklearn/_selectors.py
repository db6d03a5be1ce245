"""Selectors as estimators."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from streamsel.rows import gather
from streamsel.sklearn import _inputs
from streamsel.sklearn._base import Estimator
from streamsel.stream import ColumnStream


class SelectorEstimator(SelectorMixin, Estimator):  # type: ignore[misc]
    """A selector of streamsel as an estimator of scikit-learn.

    Attributes
    ----------
    learner_
        The fitted model of streamsel: `learner_.selected` has the names in order of selection,
        `learner_.report()` shows more. `to_river()` returns a copy that learns rows.
    support_
        (p,) which features are selected.
    scores_
        (p,) the score of each when it was selected, NaN for the others.
    n_features_in_, feature_names_in_
        How many features X had, and their names if they were text.
    """

    def _take(self, stream: ColumnStream, y: Any) -> None:
        del y
        names = self._names
        k, p = self.get_params(deep=False).get("k"), stream.n_columns
        if isinstance(k, numbers.Integral) and p is not None and int(k) > p:
            warnings.warn(
                f"{k=} is greater than the number of features, {p}: as many are selected as are "
                "relevant.",
                UserWarning,
                stacklevel=4,
            )
        scores = self.learner_.scores
        places = _inputs.places_of(names, scores)
        self._take_scores(places, scores)
        self.support_: NDArray[np.bool_] = np.zeros(len(names), dtype=np.bool_)
        self.support_[places] = True

    def _take_scores(self, places: list[int], scores: dict[Any, float]) -> None:
        self.scores_ = np.full(len(self._names), np.nan)
        self.scores_[places] = list(scores.values())

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_

    def transform(self, X: Any) -> Any:
        """Keep the selected features, in the order of X.

        Parameters
        ----------
        X
            (n, p) array, sparse matrix, frame or AnnData, of the features of `fit`.
        """
        if not _inputs.is_anndata(X):
            return super().transform(X)
        stream, _ = self._new_stream(X)
        places = np.flatnonzero(self.support_)
        if not getattr(X, "isbacked", False):
            return X.X[:, places]
        return gather(stream, [self._names[place] for place in places.tolist()])


class UnivariateEstimator(SelectorEstimator):
    """A selector of streamsel that scores each feature by itself, as an estimator of scikit-learn.

    Attributes
    ----------
    learner_
        The fitted model of streamsel: `learner_.selected` has the names in order of selection,
        `learner_.report()` shows more. `to_river()` returns a copy that learns rows.
    support_
        (p,) which features are selected.
    scores_
        (p,) the score of every feature, NaN of one that is constant. There are none with
        `max_candidates`, as a bounded pool discards columns.
    pvalues_
        (p,) their p-values, where the score has them: the last two of `score_func` have none.
    n_features_in_, feature_names_in_
        How many features X had, and their names if they were text.
    """

    def _take_scores(self, places: list[int], scores: dict[Any, float]) -> None:
        """Leave scores to the learner, which has those of all features."""

    @property
    def scores_(self) -> NDArray[np.float64]:  # type: ignore[override]
        """The score of every feature."""
        return self._of_all("scores_")

    @property
    def pvalues_(self) -> NDArray[np.float64]:
        """The p-value of every feature."""
        return self._of_all("pvalues_")

    def _of_all(self, what: str) -> NDArray[np.float64]:
        check_is_fitted(self)
        learner = self.learner_
        if learner._held is None or not learner._held.complete:
            raise AttributeError(
                f"Expected a model that keeps all columns for {what!r}. Got: a pool of "
                f"max_candidates={learner.max_candidates}, which has discarded some.\n"
                "Hint: max_candidates=None."
            )
        known, scores, p_values = learner._of_all_variables()
        if what == "pvalues_" and p_values is None:
            raise AttributeError(
                f"Expected a score that has p-values for {what!r}. Got: score_func="
                f"{learner.score!r}.\nHint: 'f', 't', 'correlation' and 'mutual_info' have them."
            )
        found = np.full(len(self._names), np.nan)
        values = scores if what == "scores_" else p_values
        found[_inputs.places_of(self._names, known)] = values
        return found
