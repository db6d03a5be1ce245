"""PrivateFeatures: as much of the columns as there is without a sensitive property."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from streamsel import params
from streamsel.extraction._canonical_ridge import without
from streamsel.extraction._gram_family import GramExtractor
from streamsel.extraction._leakage import Leakage, Property, audit
from streamsel.extraction._of_inner import Solution
from streamsel.held.gram_columns import GramColumns
from streamsel.held.inner import About, Inner
from streamsel.held.part import Floats, Places
from streamsel.learner.river import Supervised
from streamsel.target.target import Target

# Of the variance of all columns no more than this is rounding.
_SPENT = 1e-12
# The property has nothing to do with the columns: even less than that.
_NOTHING = 1e-15


class PrivateFeatures(GramExtractor, Supervised):
    r"""Features of most variance in which nothing linear is left of a sensitive property.

    The target *is* the sensitive property: numbers, several of them, or classes. Features are sums
    of the columns that are uncorrelated with it, and of these the ones that vary most: principal
    components, but for what tells the property. They take the columns of new rows and no more; the
    property of new rows need not be known.

    Parameters
    ----------
    n_components
        The number $q$ of features; there are fewer where the columns have less to show.

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
    **Method.** With $X$ the centred columns and $U$ an orthonormal basis of the sensitive property,
    the features are $Xw$ with $U^T X w = 0$, of the largest variance for $w$ of length 1, and
    orthogonal to the $w$ before. With $K = XX^T$ and $R = KU (U^T K U)^{-1/2}$ they are
    $\sqrt{\lambda} e$ for the leading eigenvalues $\lambda$ and eigenvectors $e$ of $K - RR^T$.
    What this costs is at most as many directions as the property has dimensions.

    **What it promises.** On the rows learnt no linear model tells the property from the features
    better than its mean does: their correlation with it is 0 to 1e-10, whatever their number. It is
    no more than that, and no differential privacy. Others may tell: a model that is not linear; and
    where columns outnumber rows, a linear one that learns from rows on which the features were not
    made, for the direction that was taken out is known only as well as so many rows tell it. What
    is left, `leakage` measures; and if it is too much, take fewer features, or more rows.

    **Measured.** On eleven real sets of 50 to 1,000 rows, half of the classes the property (chance
    57.8 %), 20 features of standardised columns keep 87 % of the variance of as many principal
    components. What `leakage` tells on average, of principal components / of these / of
    [RankedPCA](ranked_pca.md) with `rank_by="private"`: a linear model that learnt from the same
    rows 77.8 / 57.8 / 58.5 %, from others 73.2 / 63.7 / 59.4; the five nearest neighbours 81.2 /
    76.2 / 64.4, and 75.1 / 70.8 / 60.1. So what is not linear is hardly hidden. RankedPCA, which
    takes components that tell little, mostly those that hardly vary, hides more by keeping less.
    Which class of its half a row is of, LDA tells from these as it does from principal components,
    in 83.7 and 84.5 % of rows (four sets of many classes).

    **Cost.** $n^2$ for each column. Components, when they are asked for, $O(n^2 q)$, and $O(n^3)$
    below 1,500 rows or for many.

    **Memory.** $4 n^2$ bytes, twice that while columns come, and $29 n^2$ when components are asked
    for; $16 n m$ for the pool, $m$ being `max_loadings`. On rows $2 m^2$ numbers, $m$ at most
    `max_features`.

    **Loadings.** As long as the pool holds all columns they are exact. Otherwise the features are
    regressed on some of the columns, those of the pool or, after `learn_loadings`, the largest; and
    what these then tell of the property is taken out again: the promise is kept by what a
    transform gives, whatever columns it is made of.

    **Many rows.** Of more rows than `max_rows_gram` the leading principal axes of the columns stand
    for them, unless the pool holds all columns: features are of these axes. What the columns have
    to do with the sensitive property is summed exactly all the same, and the promise is kept.
    `leakage` needs the Gram matrix.

    **Rows.** The joint moments of the variables give the same features as their columns. A row that
    is learnt brings its sensitive property. `loadings` keep the promise over all rows so far; what
    a transform applies, `standing`, over those up to the last renewal, and with `renewal=1` there
    is one at every row.

    **Vocabulary.** Where `max_features` leaves no room for a new variable those go that vary least,
    and not those least relevant.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None was not observed and counts as if it had its mean; a new
    variable, class or target was 0 before. A transform ignores features that were never learnt.

    References
    ----------
    [^1]: Jung, A. (2022). Machine Learning: The Basics, chapter 9, Feature Learning. Springer.

    [^2]: Ravfogel, S., Elazar, Y., Gonen, H., Twiton, M. and Goldberg, Y. (2020). Null it out:
    guarding protected attributes by iterative nullspace projection. ACL, 7237-7256.

    Examples
    --------
    Half of the columns tell the sensitive property, and what is of use too:

    >>> import numpy as np
    >>> from streamsel import PrivateFeatures

    >>> rng = np.random.default_rng(0)
    >>> secret = np.array(["a", "b"])[rng.integers(2, size=400)]
    >>> useful = rng.normal(size=400)
    >>> X = 0.5 * rng.normal(size=(400, 30)) + useful[:, None]
    >>> X[:, :15] += 2.0 * (secret == "a")[:, None]

    >>> model = PrivateFeatures(n_components=3)
    >>> model.learn_target(secret)
    >>> model.learn_columns(X)
    >>> max(model.relevance.values()) < 1e-10
    True

    What is of use is still there, and on rows that were not learnt the secret is not:

    >>> bool(abs(np.corrcoef(model.embedding[:, 0], useful)[0, 1]) > 0.95)
    True
    >>> found = model.leakage()
    >>> found.measure, found.fresh["linear"] < found.chance + 0.1
    ('accuracy', True)
    """

    _aims: ClassVar[bool] = True

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2}
        yield {
            "n_components": 2,
            "scale": True,
            "fading_factor": 0.05,
            "max_features": 8,
            "grace_period": 20,
        }

    def _duals(self, inner: Inner, q: int) -> Floats:
        return uncorrelated(inner, q)

    @property
    def _why_no_more(self) -> str:
        return "but for the sensitive property the columns vary in no more directions"

    def _hidden(self, held: GramColumns) -> Floats:
        return held.basis.T

    def _components_of(
        self, inner: Inner, weighted: Floats, places: Places, scale: Floats, probes: int = 0
    ) -> Solution:
        found = super()._components_of(inner, weighted, places, scale, probes)
        # Inner products are rounded by the largest variance; where that of a feature is far smaller
        # it shows, unless it is taken out of the columns themselves.
        scores = without(found.scores, inner.U)
        loadings = without(found.loadings, weighted @ inner.U)
        along, length = (np.linalg.norm(part, axis=0) for part in (inner.U.T @ scores, scores))
        return found._replace(
            scores=scores, loadings=loadings, relevance=along / np.where(length > 0.0, length, 1.0)
        )

    def leakage(self, folds: int = 5, seed: int = 0) -> Leakage:
        """Return how well the sensitive property can still be told from the features.

        Features are made anew in every fold, without the rows they are tested on. Three attackers,
        a linear model and the nearest neighbour and the five nearest, then learn to tell the
        property; once from the rows that the features were made of, once from others.

        Parameters
        ----------
        folds
            Into how many parts the rows are cut, 3 at least: each is tested on once, the next is
            for those that learn from other rows, and the others are what features are made of.
        seed
            Of the cut.

        Raises
        ------
        ValueError
            For fewer than 3 folds or more than half as many as rows, before columns were learnt,
            once rows were, for those are not kept, and for more rows than `max_rows_gram`.

        Notes
        -----
        All is asked of the Gram matrix: no column is read again. `folds` times the cost of the
        components. With `scale=True` the columns' variances are those of all rows.
        """
        rule = params.Whole(3)
        params.check("leakage", {"folds": rule}, {"folds": folds})
        held, target = self._columns, self._target
        self._refuse_after_rows()
        if not isinstance(held, GramColumns) or not isinstance(target, Target) or not held.varying:
            raise ValueError(
                "Expected columns whose features can be tested. Got: none that varies.\n"
                "Hint: learn_columns(X) first."
            )
        inner = held.inner()
        if inner.K.ndim == 1:
            raise ValueError(
                f"Expected a Gram matrix, of at most {self.max_rows_gram} rows. Got: {target.n} "
                "rows, of which the leading axes are kept.\n"
                "Hint: a larger max_rows_gram, or a part of the rows."
            )
        if target.weights is not None:
            raise ValueError(
                "Expected observations of equal weight, to learn from some and test on others. "
                "Got: weights.\nHint: fit what is to be feared to transform_many(X) of other rows."
            )
        if 2 * folds > target.n:
            raise ValueError(
                f"Expected at most {target.n // 2} folds of {target.n} rows. Got: {folds}."
            )
        told = Property(target.columns(), is_class=target.is_class)
        return audit(inner, told, uncorrelated, self.n_components, folds, seed)


def uncorrelated(inner: Inner, q: int) -> Floats:
    """Return the duals of at most q features that are uncorrelated with the target.

    With B = U(UᵀKU)^-½ and R = KB, all that columns tell of the target is RRᵀ. The features are
    what varies most of K - RRᵀ, and their duals e / √λ without what they share with B.
    """
    seen = inner.times(inner.U)
    squares, turns = np.linalg.eigh(inner.U.T @ seen)
    some = squares > _NOTHING * inner.trace
    roots = np.sqrt(squares[some])
    B, R = inner.U @ turns[:, some] / roots, seen @ turns[:, some] / roots
    K = np.diag(inner.K) if inner.K.ndim == 1 else inner.K
    about = About(inner.n, inner.rows, inner.weight, inner.p, inner.even, inner.cyy)
    d, E = Inner(K - R @ R.T, inner.U, inner.Y, about).axes(q)
    count = np.count_nonzero(d > _SPENT * inner.trace)
    duals: Floats = E[:, :count] / np.sqrt(d[:count])
    # Twice, for the digits.
    for _ in range(2):
        duals = duals - B @ (R.T @ duals)
    return duals
