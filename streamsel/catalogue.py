"""Every learner, a line each: what the package, files, the command, tests and docs go by.

Nothing is imported here: a name is fetched when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal, NamedTuple


class Entry(NamedTuple):
    """A learner.

    Parameters
    ----------
    name, module
        The class, and where it is.
    kind
        Whether it keeps original variables or builds new ones.
    title
        What it does, in a line.
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
    Entry("ProjSe", "streamsel.selection.projse", "selector", "selection by projection"),
    Entry("MRMR", "streamsel.selection.mrmr", "selector", "relevant, and unlike one another"),
    Entry("Lasso", "streamsel.selection.lasso", "selector", "linear models of few weights"),
    Entry("SelectKBest", "streamsel.selection.select_k_best", "selector", "the best, one by one"),
    Entry(
        "AlphaInvesting",
        "streamsel.selection.alpha_investing",
        "selector",
        "tested on arrival, beside those selected",
    ),
    Entry(
        "OnlineFDR",
        "streamsel.selection.online_fdr",
        "selector",
        "tested on arrival, with few false discoveries",
    ),
    Entry("OSFS", "streamsel.selection.osfs", "selector", "dependent, whatever else is given"),
    Entry("SAOLA", "streamsel.selection.saola", "selector", "relevant, and unlike the others"),
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
        "principal components of what a kernel sees",
    ),
    Entry(
        "LaplacianEigenmaps",
        "streamsel.extraction.laplacian_eigenmaps",
        "extractor",
        "placed beside their neighbours in a graph",
    ),
    Entry("SOSPCA", "streamsel.extraction.sospca", "extractor", "sparse online supervised PCA"),
    Entry("PCA", "streamsel.extraction.pca", "extractor", "the directions of most variance"),
    Entry("PLS", "streamsel.extraction.pls", "extractor", "what varies most along with the target"),
    Entry(
        "Discriminant",
        "streamsel.extraction.discriminant",
        "extractor",
        "where classes lie farthest apart",
    ),
    Entry(
        "PrivateFeatures",
        "streamsel.extraction.private_features",
        "extractor",
        "all but what tells a sensitive property",
    ),
    Entry(
        "RankedPCA",
        "streamsel.extraction.ranked_pca",
        "extractor",
        "principal components that tell most, or least",
    ),
    Entry(
        "SupervisedPCA",
        "streamsel.extraction.supervised_pca",
        "extractor",
        "principal components of the relevant",
    ),
    Entry(
        "SparsePCA",
        "streamsel.extraction.sparse_pca",
        "extractor",
        "principal components of few variables each",
    ),
    Entry(
        "RobustPCA",
        "streamsel.extraction.robust_pca",
        "extractor",
        "principal components beside gross errors",
    ),
    Entry(
        "ProbabilisticPCA",
        "streamsel.extraction.probabilistic_pca",
        "extractor",
        "principal components of columns with missing values",
    ),
    Entry(
        "RandomProjection",
        "streamsel.extraction.random_projection",
        "extractor",
        "random sums that keep distances; nothing held",
    ),
    Entry(
        "RandomFourier",
        "streamsel.extraction.random_fourier",
        "extractor",
        "features whose products are an RBF kernel; nothing held",
    ),
)


def names(kind: str | None = None) -> list[str]:
    """Return the names of all learners, or of those of a kind."""
    return [entry.name for entry in LEARNERS if kind in (None, entry.kind)]


def fetch(name: str) -> Any:
    """Return the class of this name.

    Raises
    ------
    KeyError
        Where there is no learner of this name.
    """
    home = {entry.name: entry.module for entry in LEARNERS}[name]
    return getattr(import_module(home), name)
