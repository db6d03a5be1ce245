"""RankedPCA: principal components ranked by their relevance to a target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from streamsel import params
from streamsel._utils.numeric import argsort_by_relevance
from streamsel.base.river import Supervised
from streamsel.extraction._gram import GramExtractor
from streamsel.params import param
from streamsel.state.base import Floats
from streamsel.state.gram.view import GramView


class RankedPCA(GramExtractor, Supervised):
    r"""Principal components ranked by how much of the target they explain, most or least first.

    All principal components of the columns are computed, and ranked by the share of the target that
    each explains. The $q$ that explain most are the best ones for a linear model of $q$ components;
    the $q$ that explain least can be shared if the target is a sensitive attribute. Both are
    components of `PCA`, in another order.

    Parameters
    ----------
    rank_by
        `"target"` takes the components that explain most of the target, `"private"` those that
        explain least.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        (one that returns after eviction counts again); number of constant variables.

    Raises
    ------
    ValueError
        For a parameter out of its range, and for a target with more observations than
        `max_gram_rows`.

    Notes
    -----
    **Method.** With $K = XX^T = E \, \mathrm{diag}(d) \, E^T$ the inner products of the
    observations, and $U$ an orthonormal basis of the target space, component $k$ explains
    $\|U^T e_k\|^2$ of it: for one numeric target the squared correlation, and up to a constant
    $q_k^2 / \lambda_k$ of the reference. As the components are uncorrelated, the shares of several
    add up. Ties are resolved in favour of the larger variance. Components with at most $10^{-12}$
    times the variance of the first are rounding, and not ranked. Those with at most $10^{-8}$ times
    are accurate to few digits only: use `scale=True` if units differ.

    **Overfitting.** With more columns than rows there are as many components as rows, and together
    they explain any target in full, also noise. The share explained by a component of small
    variance is then due to chance, and components ranked `"private"` are mostly those of small
    variance. The components that explain least may still explain some of the target:
    [PrivateFeatures](supervised_extractors.md#streamsel.PrivateFeatures) have no linear relation to
    it, with the largest possible variance. [PLS](supervised_extractors.md#streamsel.PLS) and
    [RidgeComponents](supervised_extractors.md#streamsel.RidgeComponents) find directions that are
    not principal components.

    **Cost.** $n^2$ per column. Computing components takes $O(n^3)$, because all are needed.

    **Memory.** $4 n^2$ bytes, twice that while columns arrive, and $36 n^2$ while components are
    computed; $16 n m$ for the pool, $m$ being `max_loadings`. On rows $2 m^2$ numbers, $m$ at most
    `max_features`.

    **Many rows.** More rows than `max_gram_rows` are refused, because ranking needs all components,
    not only the leading ones.

    **Rows.** The joint moments of the variables give the same components as their columns.

    **Vocabulary.** When `max_features` leaves no room for a new variable, the variables of smallest
    variance are evicted, not the least relevant.

    **Missing and new features.** A column with a missing value is refused. In a row, an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable, class or target
    was 0 in earlier rows. A transform ignores features that were never learnt.

    References
    ----------
    [^1]: Jung, A. (2022). Machine Learning: The Basics, chapter 9, Feature Learning. Springer.

    Examples
    --------
    The target need not be related to the first component:

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

    With y as sensitive attribute:

    >>> private = RankedPCA(n_components=1, rank_by="private")
    >>> private.learn_target(y)
    >>> private.learn_columns(X)
    >>> private.relevance["rankedpca0"] < 0.01
    True
    """

    rank_by: str = param(params.ChoiceRule(("target", "private")), default="target")

    # Components are found without the target.
    _report_details: ClassVar[dict[str, Any]] = {"noise_floor_applies": True}

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
    def _full_matrix_hint(self) -> str:
        if self.rank_by == "target":
            return "PLS uses the target, and takes any number of rows."
        return "PrivateFeatures takes any number of rows."

    def _dual_weights(self, inner: GramView, q: int) -> Floats:
        d, E = inner.axes()
        explained = np.square(E.T @ inner.U).sum(axis=1)
        first = argsort_by_relevance(explained if self.rank_by == "target" else -explained)[:q]
        duals: Floats = E[:, first] / np.sqrt(d[first])
        return duals
