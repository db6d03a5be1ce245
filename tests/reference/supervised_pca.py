"""Supervised PCA: principal components of the relevant columns (Bair et al. 2006)."""

import numpy as np

from tests.reference import linear
from tests.reference import target as space
from tests.reference.ranked_pca import ranked


def answer(
    X,
    y,
    *,
    n_components=10,
    threshold=None,
    max_candidates=500,
    scale=False,
    target_type="auto",
    **_,
):
    """Return the attributes of a model that has learnt the columns of X."""
    U = space.basis(space.numbers(y, target_type))
    of = linear.columns(X, scale=scale)
    relevance = linear.correlations(of.W, U)
    kept = np.arange(len(relevance))
    if threshold is not None:
        kept = kept[relevance >= threshold]
    kept = np.sort(kept[ranked(relevance[kept])[:max_candidates]])
    of = linear.Columns([of.indices[j] for j in kept], of.W[:, kept], of.D[kept])
    V, _ = linear.principal(of.W)
    return linear.shown("supervisedpca", of, V[:, :n_components], U)
