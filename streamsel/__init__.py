"""Select features and build components from a stream of columns; go on learning from rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamsel import registry
from streamsel._utils.lazy import lazy_names
from streamsel._version import __version__ as __version__

if TYPE_CHECKING:
    from streamsel import evaluate, plot, stream
    from streamsel.base.relatedness import Relatedness
    from streamsel.extraction.discriminant import Discriminant
    from streamsel.extraction.kernel_pca import KernelPCA
    from streamsel.extraction.laplacian_eigenmaps import LaplacianEigenmaps
    from streamsel.extraction.pca import PCA
    from streamsel.extraction.pls import PLS
    from streamsel.extraction.private_features import PrivateFeatures
    from streamsel.extraction.probabilistic_pca import ProbabilisticPCA
    from streamsel.extraction.random_fourier import RandomFourier
    from streamsel.extraction.random_projection import RandomProjection
    from streamsel.extraction.ranked_pca import RankedPCA
    from streamsel.extraction.ridge_components import RidgeComponents
    from streamsel.extraction.robust_pca import RobustPCA
    from streamsel.extraction.sospca import SOSPCA
    from streamsel.extraction.sparse_pca import SparsePCA
    from streamsel.extraction.supervised_pca import SupervisedPCA
    from streamsel.history import History
    from streamsel.reporting import report
    from streamsel.selection.alpha_investing import AlphaInvesting
    from streamsel.selection.backward_elimination import BackwardElimination
    from streamsel.selection.forward_selection import ForwardSelection
    from streamsel.selection.lasso import Lasso
    from streamsel.selection.mrmr import MRMR
    from streamsel.selection.online_fdr import OnlineFDR
    from streamsel.selection.osfs import OSFS
    from streamsel.selection.projse import ProjSe
    from streamsel.selection.saola import SAOLA
    from streamsel.selection.select_k_best import SelectKBest
    from streamsel.serialization.archive import load, save
    from streamsel.shortcuts import extract, select


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
    "ForwardSelection",
    "History",
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
    "Relatedness",
    "RidgeComponents",
    "RobustPCA",
    "SelectKBest",
    "SparsePCA",
    "SupervisedPCA",
    "evaluate",
    "extract",
    "load",
    "plot",
    "report",
    "save",
    "select",
    "stream",
]


SUBPACKAGES = {
    "distributed",
    "evaluate",
    "plot",
    "sklearn",
    "stream",
}
# Public names that are not learners, and the modules that define them.
OTHERS = {
    "History": "history",
    "Relatedness": "base.relatedness",
    "extract": "shortcuts",
    "load": "serialization.archive",
    "report": "reporting",
    "save": "serialization.archive",
    "select": "shortcuts",
}


def _load(name: str) -> Any:
    if name in SUBPACKAGES:
        return import_module(f"streamsel.{name}")
    if name in OTHERS:
        return getattr(import_module(f"streamsel.{OTHERS[name]}"), name)
    return registry.fetch(name)


__getattr__, __dir__ = lazy_names(__name__, {*__all__, *SUBPACKAGES}, _load)
