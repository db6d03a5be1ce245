"""Every learner as an estimator of scikit-learn: `from streamsel.sklearn import ProjSe`.

An estimator has the name and the parameters of its learner, and learns by columns what `fit` is
handed. Classes are made out of the catalogue when they are first asked for.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import re
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Self

import numpy as np
from numpy.typing import NDArray

from streamsel import catalogue
from streamsel.stream import ColumnStream, as_stream
from streamsel.target.encode import encode

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.feature_selection import SelectorMixin
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        'Estimators need scikit-learn. Hint: pip install "streamsel[sklearn]".'
    ) from error

__all__ = [
    "MRMR",
    "OSFS",
    "PCA",
    "PLS",
    "SAOLA",
    "SOSPCA",
    "AlphaInvesting",
    "BackwardElimination",
    "Discriminant",
    "ExtractorEstimator",
    "ForwardSelection",
    "KernelPCA",
    "LaplacianEigenmaps",
    "Lasso",
    "OnlineFDR",
    "PrivateFeatures",
    "ProbabilisticPCA",
    "ProjSe",
    "RandomFourier",
    "RandomProjection",
    "RankedPCA",
    "RidgeComponents",
    "RobustPCA",
    "SelectKBest",
    "SelectorEstimator",
    "SparsePCA",
    "SupervisedPCA",
]

# What scikit-learn takes for a method, where it is an attribute, has another name.
_CALLED = {"score": "score_func"}

P = ParamSpec("P")

if TYPE_CHECKING:
    import streamsel

    def _selector(learner: Callable[P, Any]) -> Callable[P, SelectorEstimator]:
        """Tell of the estimator of a learner: it has the same parameters."""

    def _renamed(learner: Callable[..., Any]) -> Callable[..., SelectorEstimator]:
        """Tell of the estimator of a learner: one of its parameters has another name."""

    def _extractor(learner: Callable[P, Any]) -> Callable[P, ExtractorEstimator]:
        """Tell of the estimator of a learner: it has the same parameters."""

    AlphaInvesting = _selector(streamsel.AlphaInvesting)
    BackwardElimination = _selector(streamsel.BackwardElimination)
    ForwardSelection = _selector(streamsel.ForwardSelection)
    Lasso = _selector(streamsel.Lasso)
    MRMR = _renamed(streamsel.MRMR)
    OSFS = _selector(streamsel.OSFS)
    OnlineFDR = _selector(streamsel.OnlineFDR)
    ProjSe = _selector(streamsel.ProjSe)
    SAOLA = _selector(streamsel.SAOLA)
    SelectKBest = _renamed(streamsel.SelectKBest)
    Discriminant = _extractor(streamsel.Discriminant)
    KernelPCA = _extractor(streamsel.KernelPCA)
    LaplacianEigenmaps = _extractor(streamsel.LaplacianEigenmaps)
    PCA = _extractor(streamsel.PCA)
    PLS = _extractor(streamsel.PLS)
    PrivateFeatures = _extractor(streamsel.PrivateFeatures)
    ProbabilisticPCA = _extractor(streamsel.ProbabilisticPCA)
    RandomFourier = _extractor(streamsel.RandomFourier)
    RandomProjection = _extractor(streamsel.RandomProjection)
    RankedPCA = _extractor(streamsel.RankedPCA)
    RidgeComponents = _extractor(streamsel.RidgeComponents)
    RobustPCA = _extractor(streamsel.RobustPCA)
    SOSPCA = _extractor(streamsel.SOSPCA)
    SparsePCA = _extractor(streamsel.SparsePCA)
    SupervisedPCA = _extractor(streamsel.SupervisedPCA)


class _Estimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the estimators have in common: they hand the columns of X to a learner."""

    _learner: ClassVar[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._learner.takes_missing
        tags.target_tags.required = self._learner.supervised and not self._learner.takes_no_target
        tags.target_tags.multi_output = self._learner.supervised
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the columns of X.

        Parameters
        ----------
        X
            (n, p) array, sparse matrix (best CSC), or frame of pandas or polars.
        y
            (n,) numbers or labels, or (n, c) numbers. Where the learner has no target it is
            ignored. With `target="auto"` one column of whole numbers with 2 to 20 distinct values,
            at most n / 2 of them, is classes, unless the estimator takes no classes;
            `target="numeric"` takes it as a quantity. `learner_.report().target` shows how the
            target was taken.

        Raises
        ------
        ValueError
            For parameters, values or a target that the learner does not take.

        Notes
        -----
        Arrays of float64, float32, int8 and uint8 in Fortran order are read in place; of others
        pieces of a few megabytes are copied at a time.
        """
        values = self._validated(X, y)
        names = list(X.columns) if hasattr(X, "columns") else range(values.shape[1])
        learner = self._learner(**self._params())
        Z, values, rest = _parted(values, names, learner.covariates)
        if self._learner.supervised:
            check_consistent_length(X, y)
            learner = self._learner(**self._params() | {"target": _kind(learner, y)})
            learner.learn_target(y, Z)
        stream = as_stream(values, rest)
        learner.learn_columns(stream)
        self.learner_ = learner
        self._take(names, stream)
        return self

    def _params(self) -> dict[str, Any]:
        """Return the parameters as the learner calls them."""
        learners = {other: name for name, other in _CALLED.items()}
        return {learners.get(name, name): v for name, v in self.get_params(deep=False).items()}

    def _validated(self, X: Any, y: Any) -> Any:
        """Return X as an array or a CSC matrix; whether it is finite the learner sees."""
        return validate_data(
            self,
            X,
            None if y is None else "no_validation",
            accept_sparse="csc",
            ensure_all_finite=False,
            ensure_min_samples=2,
        )

    @abc.abstractmethod
    def _take(self, names: Sequence[Hashable], X: ColumnStream) -> None:
        """Take from the learner, which has learnt X, what scikit-learn asks for."""


class SelectorEstimator(SelectorMixin, _Estimator):  # type: ignore[misc]
    """A selector of streamsel as an estimator of scikit-learn.

    Attributes
    ----------
    learner_
        The model of streamsel that has learnt: `learner_.selected` has the names in the order in
        which they were picked, `learner_.report()` tells more, and it goes on with rows in River.
    support_
        (p,) which features are selected.
    scores_
        (p,) the score of each when it was picked, NaN for the others.
    n_features_in_, feature_names_in_
        How many features X had, and their names if they were text.
    """

    def _take(self, names: Sequence[Hashable], X: ColumnStream) -> None:
        k, p = self.learner_._asked, X.n_columns
        if k is not None and p is not None and k > p:
            warnings.warn(
                f"{k=} is greater than the number of features, {p}: as many are selected as are "
                "relevant.",
                UserWarning,
                stacklevel=3,
            )
        scores = self.learner_.scores
        if isinstance(names, range):
            places = [names.index(name) for name in scores]
        else:
            place = {name: j for j, name in enumerate(names) if name in scores}
            places = [place[name] for name in scores]
        self.scores_ = np.full(len(names), np.nan)
        self.scores_[places] = list(scores.values())
        self.support_: NDArray[np.bool_] = np.zeros(len(names), dtype=np.bool_)
        self.support_[places] = True

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_


class ExtractorEstimator(ClassNamePrefixFeaturesOutMixin, _Estimator):  # type: ignore[misc]
    """An extractor of streamsel as an estimator of scikit-learn.

    Attributes
    ----------
    learner_
        The model of streamsel that has learnt: `learner_.report()` tells more, and it goes on with
        rows in River.
    relevance_
        (q,) the relevance of each component.
    n_components_
        How many components there are, q: fewer than were asked for where X varies in no more
        directions.
    n_features_in_, feature_names_in_
        How many features X had, and their names if they were text.
    """

    def _take(self, names: Sequence[Hashable], X: ColumnStream) -> None:
        learner = self.learner_
        if learner._reads_again:
            # Of all columns: they are at hand.
            learner.learn_loadings(X, max_loadings=len(names))
        self._names = names
        self.relevance_ = np.array(list(learner.relevance.values()))
        self.n_components_ = self._n_features_out = len(self.relevance_)

    def transform(self, X: Any) -> Any:
        """Return the components of rows, (n, q).

        Parameters
        ----------
        X
            (n, p) array, sparse matrix or frame, of the features of `fit`.
        """
        check_is_fitted(self)
        values = validate_data(
            self,
            X,
            accept_sparse="csc",
            ensure_all_finite="allow-nan" if self._learner.takes_missing else True,
            reset=False,
        )
        Z = self.learner_.transform_many(as_stream(values, self._names))[:, : self.n_components_]
        return Z.astype(values.dtype if values.dtype == np.float32 else np.float64, copy=False)


def _kind(learner: Any, y: Any) -> str:
    """Return how the target is taken: as the learner takes it, if it can.

    Whole numbers that look like classes are a quantity for one that takes no classes, as for the
    regressors of scikit-learn.
    """
    kind: str = learner.target
    if kind != "auto" or y is None:
        return kind
    encoded = encode(y, kind, by_values=True)
    by_rule = encoded.is_class and encoded.by_rule
    refused = by_rule and learner._refuses_target(len(encoded.names), is_class=True)
    return "numeric" if refused else kind


def _parted(
    X: Any, names: Sequence[Hashable], covariates: Sequence[Hashable] | None
) -> tuple[Any, Any, Sequence[Hashable]]:
    """Return the covariates, (n, d) or None, and the other columns of X, with their names."""
    if not covariates:
        return None, X, names
    absent = [name for name in covariates if name not in names]
    if absent:
        raise ValueError(
            f"Expected the covariates {list(covariates)} among the features of X. Got: no "
            f"{absent[0]!r}.\nHint: features of an array are named from 0."
        )
    given = [names.index(name) for name in covariates]
    rest = np.setdiff1d(np.arange(len(names)), given)
    Z = X[:, given]
    Z = Z.toarray() if hasattr(Z, "toarray") else Z
    return dict(zip(covariates, Z.T, strict=True)), X[:, rest], [names[j] for j in rest.tolist()]


def _made(name: str) -> type[_Estimator]:
    """Return the estimator of a learner, which has its name, its parameters and its summary."""
    learner = catalogue.fetch(name)
    parent = SelectorEstimator if name in catalogue.names("selector") else ExtractorEstimator
    parameters = [
        (
            _CALLED.get(p.name, p.name),
            p.annotation,
            dataclasses.field(default=p.default, kw_only=p.kind is p.KEYWORD_ONLY),
        )
        for p in inspect.signature(learner).parameters.values()
    ]
    made: type[_Estimator] = dataclasses.make_dataclass(
        name,
        parameters,
        bases=(parent,),
        namespace={"__module__": __name__, "__doc__": _doc(learner, parent), "_learner": learner},
        repr=False,
        eq=False,
        match_args=False,
    )
    return made


def _doc(learner: type, parent: type) -> str:
    """Return what a learner says of itself and its parameters, and what is known after a fit."""
    about = re.split(r"\n\n(?:Attributes|Raises)\n--", inspect.getdoc(learner) or "")[0]
    for name, other in _CALLED.items():
        about = re.sub(rf"^{name}$", other, about, flags=re.MULTILINE)
    fitted = (inspect.getdoc(parent) or "").partition("\n\n")[2]
    also = "The learner, which tells of costs, memory and references."
    return f"{about}\n\n{fitted}\n\nSee Also\n--------\nstreamsel.{learner.__name__} : {also}\n"


# Names are made when first asked for (PEP 562), and stay: a pickle finds its class by its name.
def __getattr__(name: str) -> Any:
    if name not in catalogue.names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = _made(name)
    return made


def __dir__() -> list[str]:
    return __all__
