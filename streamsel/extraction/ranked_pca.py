"""RankedPCA: of all principal components those that tell most of a property, or least."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsel import params
from streamsel.extraction._gram_family import GramExtractor
from streamsel.held.inner import Inner
from streamsel.held.part import Floats
from streamsel.learner.river import Supervised
from streamsel.params import param
from streamsel.ties import most_relevant_first


class RankedPCA(GramExtractor, Supervised):
    r"""Principal components that tell most of the target, or least of what is to stay private.

    The principal components of the columns are all found, and ranked by how much of the target each
    explains. The $q$ that explain most are what a linear model of $q$ components predicts it best
    from; the $q$ that explain least are what can be handed on when the target is a sensitive
    property. Either is the same components as [PCA](pca.md) finds, in another order.

    Parameters
    ----------
    rank_by
        `"target"` takes the components that explain most of the target, `"private"` those that
        explain least.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Rows seen, as observations of the columns or one by one; variables seen, one that comes back
        after it was let go counted again; those among them that do not vary.

    Raises
    ------
    ValueError
        For a parameter out of its range, and for a target of more observations than a Gram matrix
        is kept of.

    Notes
    -----
    **Method.** With $K = XX^T = E \, \mathrm{diag}(d) \, E^T$ the inner products of the
    observations, and $U$ an orthonormal basis of the target space, component $k$ explains
    $\|U^T e_k\|^2$ of it: for one numeric target the squared correlation, and up to a constant
    $q_k^2 / \lambda_k$ of the reference. As the components are uncorrelated, what several explain
    is the sum. Of equals the one that varies more goes first. Components that vary $10^{-12}$ times
    as much as the first or less are rounding, and not ranked.
    Those of $10^{-8}$ and less are known to few digits: `scale=True` where units are unlike.

    **What is worth believing.** With more columns than rows there are as many components as rows,
    and together they explain any target in full, noise too. What a component that hardly varies
    explains is then chance, and one ranked `"private"` is mostly one that hardly varies. Those that
    tell least may still tell some: [PrivateFeatures](private_features.md) leave nothing linear at
    all, of as much variance as there can be. [PLS](pls.md) and
    [RidgeComponents](ridge_components.md) find directions that are no principal components.

    **Cost.** $n^2$ for each column. Components, when they are asked for, $O(n^3)$, for all of them
    are needed.

    **Memory.** $4 n^2$ bytes, twice that while columns come, and $36 n^2$ when components are asked
    for; $16 n m$ for the pool, $m$ being `max_loadings`. On rows $2 m^2$ numbers, $m$ at most
    `max_features`.

    **Many rows.** More rows than `max_rows_gram` are refused: all components are ranked, and the
    leading ones alone, which would be held then, are not all.

    **Rows.** The joint moments of the variables give the same components as their columns.

    **Vocabulary.** Where `max_features` leaves no room for a new variable those go that vary least,
    and not those least relevant.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None was not observed and counts as if it had its mean; a new
    variable, class or target was 0 before. A transform ignores features that were never learnt.

    References
    ----------
    [^1]: Jung, A. (2022). Machine Learning: The Basics, chapter 9, Feature Learning. Springer.

    Examples
    --------
    What varies most need not be what matters:

    >>> import numpy as np
    >>> from streamsel import RankedPCA

    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(400, 3)) * [9.0, 3.0, 1.0]
    >>> X = hidden @ rng.normal(size=(3, 50)) + 0.1 * rng.normal(size=(400, 50))
    >>> y = hidden[:, 1]

    >>> model = RankedPCA(n_components=1)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> model.relevance["rankedpca0"] > 0.9
    True

    The other way round, with y a sensitive property:

    >>> private = RankedPCA(n_components=1, rank_by="private")
    >>> private.learn_target(y)
    >>> private.learn_columns(X)
    >>> private.relevance["rankedpca0"] < 0.01
    True
    """

    rank_by: str = param(params.Choice(("target", "private")), default="target")

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2}
        yield {
            "n_components": 2,
            "rank_by": "private",
            "fading_factor": 0.05,
            "max_features": 8,
            "grace_period": 20,
            "scale": True,
        }

    @property
    def _needs_matrix(self) -> str:
        if self.rank_by == "target":
            return "PLS finds what tells most of a target from any number of rows."
        return "PrivateFeatures takes any number of rows."

    def _duals(self, inner: Inner, q: int) -> Floats:
        d, E = inner.axes()
        told = np.square(E.T @ inner.U).sum(axis=1)
        first = most_relevant_first(told if self.rank_by == "target" else -told)[:q]
        duals: Floats = E[:, first] / np.sqrt(d[first])
        return duals
