"""The registry of learners: one entry each, used by the package, files, command, tests and docs.

Nothing is imported here: a class is imported when its name is first accessed.
"""

from __future__ import annotations

import inspect
import numbers
from importlib import import_module
from typing import Any, Literal, NamedTuple


class Entry(NamedTuple):
    """A learner.

    Parameters
    ----------
    name, module
        The class, and the module that defines it.
    kind
        "selector" if it keeps original variables, "extractor" if it builds new ones.
    title
        A one-line description of the method.
    """

    name: str
    module: str
    kind: Literal["selector", "extractor"]
    title: str


LEARNERS = (
    Entry(
        "ForwardSelection",
        "streamsel.selection.forward_selection",
        "selector",
        "greedy forward selection (orthogonal least squares, ridge)",
    ),
    Entry(
        "BackwardElimination",
        "streamsel.selection.backward_elimination",
        "selector",
        "backward elimination",
    ),
    Entry("ProjSe", "streamsel.selection.projse", "selector", "selection by projection (ProjSe)"),
    Entry(
        "MRMR",
        "streamsel.selection.mrmr",
        "selector",
        "minimum redundancy, maximum relevance",
    ),
    Entry("Lasso", "streamsel.selection.lasso", "selector", "L1 or elastic-net path"),
    Entry(
        "SelectKBest",
        "streamsel.selection.select_k_best",
        "selector",
        "top k by a univariate score",
    ),
    Entry(
        "AlphaInvesting",
        "streamsel.selection.alpha_investing",
        "selector",
        "alpha-investing",
    ),
    Entry(
        "OnlineFDR",
        "streamsel.selection.online_fdr",
        "selector",
        "online FDR control",
    ),
    Entry(
        "OSFS",
        "streamsel.selection.osfs",
        "selector",
        "online selection by conditional-independence tests (OSFS)",
    ),
    Entry(
        "SAOLA",
        "streamsel.selection.saola",
        "selector",
        "online selection by pairwise redundancy (SAOLA)",
    ),
    Entry(
        "RidgeComponents",
        "streamsel.extraction.ridge_components",
        "extractor",
        "canonical ridge on relevant columns",
    ),
    Entry(
        "KernelPCA",
        "streamsel.extraction.kernel_pca",
        "extractor",
        "kernel PCA",
    ),
    Entry(
        "LaplacianEigenmaps",
        "streamsel.extraction.laplacian_eigenmaps",
        "extractor",
        "spectral embedding of a k-NN graph",
    ),
    Entry("SOSPCA", "streamsel.extraction.sospca", "extractor", "sparse online supervised PCA"),
    Entry("PCA", "streamsel.extraction.pca", "extractor", "principal component analysis"),
    Entry("PLS", "streamsel.extraction.pls", "extractor", "partial least squares"),
    Entry(
        "Discriminant",
        "streamsel.extraction.discriminant",
        "extractor",
        "linear discriminant analysis",
    ),
    Entry(
        "PrivateFeatures",
        "streamsel.extraction.private_features",
        "extractor",
        "components with a sensitive attribute projected out",
    ),
    Entry(
        "RankedPCA",
        "streamsel.extraction.ranked_pca",
        "extractor",
        "principal components ranked by relevance to a target",
    ),
    Entry(
        "SupervisedPCA",
        "streamsel.extraction.supervised_pca",
        "extractor",
        "principal components of the most relevant variables",
    ),
    Entry(
        "SparsePCA",
        "streamsel.extraction.sparse_pca",
        "extractor",
        "sparse PCA: principal components with few non-zero loadings",
    ),
    Entry(
        "RobustPCA",
        "streamsel.extraction.robust_pca",
        "extractor",
        "PCA robust to sparse outliers",
    ),
    Entry(
        "ProbabilisticPCA",
        "streamsel.extraction.probabilistic_pca",
        "extractor",
        "probabilistic PCA, also with missing values",
    ),
    Entry(
        "RandomProjection",
        "streamsel.extraction.random_projection",
        "extractor",
        "random projection that preserves distances; stateless",
    ),
    Entry(
        "RandomFourier",
        "streamsel.extraction.random_fourier",
        "extractor",
        "random Fourier features of an RBF kernel; stateless",
    ),
)


def names(kind: str | None = None) -> list[str]:
    """Return the names of all learners, or of those of one kind."""
    return [entry.name for entry in LEARNERS if kind in (None, entry.kind)]


def fetch(name: str) -> Any:
    """Import and return the class of this name.

    Raises
    ------
    KeyError
        If no learner has this name.
    """
    home = {entry.name: entry.module for entry in LEARNERS}[name]
    return getattr(import_module(home), name)


def lift_max_features(cls: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return parameters, with max_features=None if k or n_components would exceed its default.

    Parameters
    ----------
    cls
        A learner.
    values
        Its parameters that are set, k or n_components among them.
    """
    bound = inspect.signature(cls).parameters.get("max_features")
    size = values.get("k", values.get("n_components"))
    if bound is None or bound.default is None or not isinstance(size, numbers.Integral):
        return values
    return {"max_features": None} | values if int(size) >= bound.default else values
