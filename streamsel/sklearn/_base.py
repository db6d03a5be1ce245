"""Define the base class of the estimators, which pass the columns of X to a learner."""

from __future__ import annotations

import abc
import copy
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from streamsel import params, registry
from streamsel.sklearn import _inputs, _mixed
from streamsel.stream import ColumnStream, grouped
from streamsel.stream.inputs import EncodedStream
from streamsel.targets.encoding import encode_target
from streamsel.targets.target import hint_for_missing

# Parameters that have no effect on columns: `to_river` accepts them.
ROW_PARAMETERS = frozenset(
    (
        "fading_factor",
        "grace_period",
        "max_features",
        "missing",
        "refresh_factor",
        "hysteresis",
        "warm_up",
        "window_size",
    )
)
# Parameter names that clash with scikit-learn's methods: name in the learner -> in the estimator.
RENAMED_PARAMETERS = {"score": "score_func"}
_WITHOUT_MISSING = "with rows = pandas.notna(y), fit(X[rows], y[rows]) uses those with a target"
_IMPUTE = (
    "sklearn.impute.SimpleImputer in a pipeline imputes them; SelectKBest(pairwise=True) and "
    "ProbabilisticPCA take missing values"
)
_LEARNER_NAMES = {other: name for name, other in RENAMED_PARAMETERS.items()}


class StreamEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A learner as an estimator; its parameters are defined by the subclass."""

    _learner: ClassVar[Any]
    # Whether frames may have columns of text, categories and dates.
    _takes_mixed_frames: ClassVar[bool] = False
    # Whether the frame of `fit` had any.
    _is_mixed: bool
    # Names of the columns of `fit`; and whether separate covariates were passed.
    _names: Sequence[Hashable]
    _has_separate_covariates: bool

    @property
    def _allows_missing(self) -> bool:
        """Whether columns may have missing values."""
        return bool(self._learner._takes_missing or getattr(self, "pairwise", False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allows_missing
        tags.target_tags.required = (
            self._learner._is_supervised and not self._learner._takes_no_target
        )
        tags.target_tags.multi_output = self._learner._is_supervised
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, covariates: Any = None
    ) -> Self:
        """Fit the learner to the columns of X.

        Parameters
        ----------
        X
            (n, p) array, sparse matrix (preferably CSC), pandas or polars frame, pyarrow table, or
            AnnData. In a frame or table, selectors other than `Lasso` also take text, categories
            and dates: they are encoded as by `streamsel.stream.encode`, and selected as columns of
            the frame.
        y
            (n,) numbers or labels, or (n, c) numbers; with an AnnData also the name of a column of
            its obs. Ignored by unsupervised learners. With `target_type="auto"` a single column of
            whole numbers with 2 to 20 distinct values, at most n / 2 of them, is treated as
            classes, unless the estimator does not support classes; `target_type="numeric"` treats
            it as a quantity. `learner_.report().target` shows how the target was interpreted.
        sample_weight
            (n,) weights of the rows, 0 or above: means and products are weighted. Learners for
            which weighting a row differs from repeating it do not have this argument.
        covariates
            Variables to adjust for, such as age or batch: (n,) or (n, d) numbers, labels, or a
            frame or dict of either. They are projected out of the target and the columns.
            Covariates that are columns of X are named by the parameter `covariates` instead.

        Raises
        ------
        ValueError
            For parameters, values, a target or weights that the learner does not support.

        Notes
        -----
        Arrays of float64, float32, int8 and uint8 in Fortran order are read without a copy; others
        are copied in pieces of a few megabytes.
        """
        return self._fit(X, y, sample_weight, covariates)

    def _fit(self, X: Any, y: Any, weights: Any = None, covariates: Any = None) -> Self:
        weights = None if weights is None else np.asarray(weights)
        frame = _mixed.fitted_frame(self, X)
        stream = _inputs.fitted_stream(self, X, y) if frame is None else frame
        names, values = _inputs.matrix_names(stream), self._learner_params()
        groups = values.pop("groups", None)
        own = self._covariates_of_X(values.pop("covariates", None), covariates)
        self._has_separate_covariates = covariates is not None
        if own:
            covariates, stream = _inputs.split_covariates(stream, own)
        if groups is not None and frame is not None:
            raise ValueError(
                "Expected a frame of numbers with groups of features. Got: text, categories or "
                "dates, which are groups themselves.\nHint: encode them before."
            )
        if groups is not None:
            stream = grouped(stream, _inputs.groups_of_features(groups, names))
        learner = self._new_learner(values)
        if covariates is not None and not learner._by_window:
            # Rows refer to covariates by name; windows of rows do not support them.
            values["covariates"] = own or _inputs.names_of_covariates(covariates)
        if learner._is_supervised:
            y = None if y is None else self._validate_target(_inputs.fit_target(stream, X, y))
            check_consistent_length(X, y, weights)
            with hint_for_missing(_WITHOUT_MISSING):
                kind = {"target_type": self._target_type_of(learner, y)}
                learner = self._new_learner(values | kind)
                learner.learn_target(y, covariates, weights)
        elif weights is not None:
            check_consistent_length(X, weights)
            learner.learn_target(None, weights=weights)
        if frame is not None:
            stream = _mixed.encoded_frame(stream, groups=learner._takes_groups)
        with hint_for_missing(_IMPUTE, "impute them"):
            learner.learn_columns(stream)
        self.learner_, self._names, self._is_mixed = learner, names, frame is not None
        if isinstance(stream, EncodedStream):
            _mixed.warn_not_encoded(stream)
        self._set_fitted_attributes(stream, y)
        return self

    def to_river(self, **row_parameters: Any) -> Any:
        """Return a copy of the fitted learner that can continue to learn from rows, in River.

        Parameters
        ----------
        row_parameters
            Parameters of the learner for rows, which the estimator does not have. Depending on the
            learner: `fading_factor`, `max_features`, `grace_period`, `refresh_factor`, `warm_up`,
            `hysteresis`, `window_size`, `missing`.

        Raises
        ------
        ValueError
            For an invalid value.
        TypeError
            For any other parameter.
        """
        check_is_fitted(self)
        allowed = ROW_PARAMETERS & params.rules_of(self._learner).keys()
        if unknown := row_parameters.keys() - allowed:
            raise TypeError(
                f"Expected row parameters ({', '.join(sorted(allowed)) or 'there are none'})"
                f". Got: {', '.join(sorted(unknown))}.\nHint: set other parameters before fit."
            )
        state = copy.deepcopy(self.learner_.__getstate__())
        learner = self._learner.__new__(self._learner)
        learner.__setstate__(state | {"params": state["params"] | row_parameters})
        return learner

    def _learner_params(self) -> dict[str, Any]:
        """Return the parameters by their names in the learner."""
        mine = self.get_params(deep=False)
        return {_LEARNER_NAMES.get(name, name): value for name, value in mine.items()}

    def _new_learner(self, values: dict[str, Any]) -> Any:
        """Return the learner, without `max_features` if its default is below k or q."""
        return self._learner(**registry.lift_max_features(self._learner, values))

    def _covariates_of_X(self, own: Any, others: Any) -> tuple[Hashable, ...]:
        """Return the names of the columns of X that are covariates."""
        if own is None:
            return ()
        if not self._learner._is_supervised:
            self._learner(covariates=own)  # raises an error
        params.check(
            self._learner.__name__, {"covariates": params.NamesRule()}, {"covariates": own}
        )
        if others is not None:
            raise ValueError(
                f"Expected covariates in fit, or as the parameter. Got: both, {own!r} as the "
                "parameter.\nHint: the parameter names columns of X; pass others to fit."
            )
        names: tuple[Hashable, ...] = params.stored_value(params.NamesRule(), own)
        return names

    def _validate_target(self, y: Any) -> Any:
        """Return the target after validation."""
        return y

    def _target_type_of(self, learner: Any, y: Any) -> str:
        """Return the target type, falling back to "numeric" if the learner supports no classes.

        Whole numbers that look like classes are then treated as a quantity, as by scikit-learn's
        regressors.
        """
        kind: str = learner.target_type
        if kind != "auto" or y is None:
            return kind
        encoded = encode_target(y, kind, by_values=True)
        by_rule = encoded.is_class and encoded.by_rule
        refused = by_rule and learner._refuses_target(len(encoded.names), is_class=True)
        return "numeric" if refused else kind

    @abc.abstractmethod
    def _set_fitted_attributes(self, stream: ColumnStream, y: Any) -> None:
        """Set the fitted attributes from the learner, which has learnt a stream and y."""

    def _new_stream(self, X: Any) -> tuple[ColumnStream, Any]:
        """Return the columns of new rows, and the dtype of their values."""
        check_is_fitted(self)
        return _inputs.new_stream(self, X, self._names, allow_nan=self._allows_missing)
