"""Define the estimators of selectors."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from streamsel.base.frame_columns import select_features
from streamsel.sklearn import _inputs, _mixed
from streamsel.sklearn._base import StreamEstimator
from streamsel.stream import ColumnStream
from streamsel.stream.inputs import EncodedStream


class SelectorEstimator(SelectorMixin, StreamEstimator):  # type: ignore[misc]
    """A streamsel selector as a scikit-learn estimator.

    A column of text, categories or dates in a frame is encoded as columns of numbers; the feature
    is selected if one of these is, or their group.

    Attributes
    ----------
    learner_
        The fitted streamsel model: `learner_.selected` has the names in order of selection,
        `learner_.report()` shows more. `to_river()` returns a copy that can learn rows.
    support_
        (p,) mask of the selected features.
    scores_
        (p,) score of each selected feature at its selection, NaN for the others. An encoded feature
        has the score of the group of its columns of numbers, or their highest.
    n_features_in_, feature_names_in_
        Number of features of X, and their names if they were text.
    """

    _takes_mixed_frames = True
    # Column of numbers -> column of the frame of `fit` that it was made of.
    _sources: Mapping[Any, Any]

    def _set_fitted_attributes(self, stream: ColumnStream, y: Any) -> None:
        del y
        names = self._names
        k = self.get_params(deep=False).get("k")
        p = len(names) if self._is_mixed else stream.n_columns
        if isinstance(k, numbers.Integral) and p is not None and int(k) > p:
            warnings.warn(
                f"{k=} is greater than the number of features, {p}: all relevant ones are "
                "selected.",
                UserWarning,
                stacklevel=4,
            )
        self._sources = stream.sources if isinstance(stream, EncodedStream) else {}
        scores = self._scores_of_features()
        indices = _inputs.indices_of(names, scores)
        self._set_scores(indices, scores)
        self.support_: NDArray[np.bool_] = np.zeros(len(names), dtype=np.bool_)
        self.support_[indices] = True

    def _scores_of_features(self) -> dict[Any, float]:
        """Return the scores of the selected features."""
        scores: dict[Any, float] = self.learner_.scores
        if self._is_mixed:
            return self._by_feature(scores, max)
        # Every member of a group has the score of the group.
        members = self.learner_.members
        return {feature: score for name, score in scores.items() for feature in members[name]}

    def _by_feature(
        self, values: Mapping[Any, float], best: Callable[[float, float], float]
    ) -> dict[Any, float]:
        """Return the best value of the columns of numbers of every feature, in order."""
        found: dict[Any, float] = {}
        for name, value in values.items():
            # A group has the name of its feature.
            feature = self._sources.get(name, name)
            found[feature] = best(found[feature], value) if feature in found else value
        return found

    def _set_scores(self, indices: list[int], scores: dict[Any, float]) -> None:
        self.scores_ = np.full(len(self._names), np.nan)
        self.scores_[indices] = list(scores.values())

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_

    def transform(self, X: Any) -> Any:
        """Keep the selected features, in the order of X.

        Parameters
        ----------
        X
            (n, p) array, sparse matrix, frame or AnnData, with the features of `fit`.

        Returns
        -------
        The selected features: by default an array; a frame of the library of X, with columns as
        they are, if the frame of `fit` had text, categories or dates.
        """
        check_is_fitted(self)
        if self._is_mixed:
            names = [self._names[index] for index in np.flatnonzero(self.support_).tolist()]
            return _mixed.selected_of_frame(self, X, names)
        if not _inputs.is_anndata(X):
            return super().transform(X)
        stream, _ = self._new_stream(X)
        indices = np.flatnonzero(self.support_)
        if not getattr(X, "isbacked", False):
            return X.X[:, indices]
        return select_features(stream, [self._names[index] for index in indices.tolist()])


class UnivariateEstimator(SelectorEstimator):
    """A streamsel selector by univariate scores as a scikit-learn estimator.

    Attributes
    ----------
    learner_
        The fitted streamsel model: `learner_.selected` has the names in order of selection,
        `learner_.report()` shows more. `to_river()` returns a copy that can learn rows.
    support_
        (p,) mask of the selected features.
    scores_
        (p,) score of every feature, NaN for a constant one. Not available with `max_candidates`, as
        a bounded pool discards columns.
    pvalues_
        (p,) p-values of the features; the scores `"misclassification"` and `"margin"` have none. An
        encoded feature has the p-value of the group of its columns of numbers, or their smallest.
    n_features_in_, feature_names_in_
        Number of features of X, and their names if they were text.
    """

    def _set_scores(self, indices: list[int], scores: dict[Any, float]) -> None:
        """Do nothing: `scores_` reads the scores of all features from the learner."""

    @property
    def scores_(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Score of every feature."""
        return self._values_of_all_features("scores_")

    @property
    def pvalues_(self) -> NDArray[np.float64]:
        """P-value of every feature."""
        return self._values_of_all_features("pvalues_")

    def _values_of_all_features(self, what: str) -> NDArray[np.float64]:
        check_is_fitted(self)
        learner = self.learner_
        if learner._state is None or not learner._state.complete:
            raise AttributeError(
                f"Expected a model that keeps all columns for {what!r}. Got: a pool with "
                f"max_candidates={learner.max_candidates} that has discarded columns.\n"
                "Hint: max_candidates=None."
            )
        names, scores, p_values = learner._all_scores()
        if what == "pvalues_" and p_values is None:
            raise AttributeError(
                f"Expected a score that has p-values for {what!r}. Got: score_func="
                f"{learner.score!r}.\nHint: 'misclassification' and 'margin' have none."
            )
        result = np.full(len(self._names), np.nan)
        values = scores if what == "scores_" else p_values
        if self._is_mixed:
            best = max if what == "scores_" else min
            found = self._by_feature(dict(zip(names, values, strict=True)), best)
            result[_inputs.indices_of(self._names, found)] = [*found.values()]
            return result
        members = learner._members_of(names)
        sizes = [len(of_one) for of_one in members.values()]
        features = [*chain.from_iterable(members.values())]
        result[_inputs.indices_of(self._names, features)] = np.repeat(values, sizes)
        return result
