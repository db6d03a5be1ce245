"""Provide every learner as a scikit-learn estimator: `from streamsel.sklearn import ProjSe`.

An estimator has the name of its learner, and those of its parameters that apply to columns. `fit`
passes the columns of X to the learner. Classes are generated from the registry on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from streamsel import registry
from streamsel._utils.lazy import lazy_names
from streamsel.sklearn._extractors import ExtractorEstimator, LinearExtractorEstimator
from streamsel.sklearn._factory import make_estimator
from streamsel.sklearn._lasso import LassoEstimator
from streamsel.sklearn._reconstruction import PCAEstimator, PLSEstimator
from streamsel.sklearn._selectors import SelectorEstimator, UnivariateEstimator

try:
    import sklearn.base  # noqa: F401 (whether it is installed)
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
    "LassoEstimator",
    "LinearExtractorEstimator",
    "OnlineFDR",
    "PCAEstimator",
    "PLSEstimator",
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
    "UnivariateEstimator",
]

if TYPE_CHECKING:
    AlphaInvesting: Callable[..., SelectorEstimator]
    BackwardElimination: Callable[..., SelectorEstimator]
    ForwardSelection: Callable[..., SelectorEstimator]
    Lasso: Callable[..., LassoEstimator]
    MRMR: Callable[..., SelectorEstimator]
    OSFS: Callable[..., SelectorEstimator]
    OnlineFDR: Callable[..., SelectorEstimator]
    ProjSe: Callable[..., SelectorEstimator]
    SAOLA: Callable[..., SelectorEstimator]
    SelectKBest: Callable[..., UnivariateEstimator]
    Discriminant: Callable[..., LinearExtractorEstimator]
    KernelPCA: Callable[..., ExtractorEstimator]
    LaplacianEigenmaps: Callable[..., ExtractorEstimator]
    PCA: Callable[..., PCAEstimator]
    PLS: Callable[..., PLSEstimator]
    PrivateFeatures: Callable[..., LinearExtractorEstimator]
    ProbabilisticPCA: Callable[..., LinearExtractorEstimator]
    RandomFourier: Callable[..., ExtractorEstimator]
    RandomProjection: Callable[..., LinearExtractorEstimator]
    RankedPCA: Callable[..., LinearExtractorEstimator]
    RidgeComponents: Callable[..., LinearExtractorEstimator]
    RobustPCA: Callable[..., LinearExtractorEstimator]
    SOSPCA: Callable[..., LinearExtractorEstimator]
    SparsePCA: Callable[..., LinearExtractorEstimator]
    SupervisedPCA: Callable[..., LinearExtractorEstimator]

__getattr__, __dir__ = lazy_names(__name__, registry.names(), make_estimator)
