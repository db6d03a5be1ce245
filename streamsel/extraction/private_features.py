"""PrivateFeatures: components with a sensitive attribute projected out."""

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

# Eigenvalues below this part of the variance of all columns are rounding.
_ZERO_TOL = 1e-12
# The sensitive attribute is unrelated to the columns if their covariance is below this part.
_UNRELATED_TOL = 1e-15


class PrivateFeatures(GramExtractor, Supervised):
    r"""Components of most variance, with a sensitive attribute projected out.

    The target *is* the sensitive attribute: one or several numbers, or classes. The features are
    linear combinations of the columns that are uncorrelated with it, of largest variance: principal
    components orthogonal to the attribute. A transform takes only the columns of new rows; their
    sensitive attribute need not be known.

    Parameters
    ----------
    n_components
        The number $q$ of features; there are fewer if the columns have fewer directions left.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows seen, as observations of the columns or one by one; of variables seen, where
        one that returns after eviction counts again; and of constant variables.

    Raises
    ------
    ValueError
        For a parameter out of its range, and for a target with more observations than a Gram matrix
        is kept for.

    Notes
    -----
    **Method.** With $X$ the centred columns and $U$ an orthonormal basis of the sensitive
    attribute, the features are $Xw$ with $U^T X w = 0$, of largest variance for $w$ of length 1,
    each $w$ orthogonal to the previous ones. With $K = XX^T$ and $R = KU (U^T K U)^{-1/2}$ they are
    $\sqrt{\lambda} e$ for the leading eigenvalues $\lambda$ and eigenvectors $e$ of $K - RR^T$.
    This removes at most as many directions as the attribute has dimensions.

    **Guarantee and its limits.** On the rows learnt no linear model predicts the attribute from the
    features better than its mean: their correlation with it is 0 to 1e-10, for any number of
    features. This is not differential privacy. Two kinds of models may still predict it: nonlinear
    ones; and, if columns outnumber rows, linear ones trained on rows that the features were not
    fitted on, because the projected direction is only estimated from the rows. `leakage` measures
    the rest; if it is too large, use fewer features or more rows.

    **Measured.** Eleven real sets of 50 to 1,000 rows, half of the classes as attribute (chance
    57.8 %), 20 features of standardised columns: they keep 87 % of the variance of as many
    principal components. Average accuracy by `leakage` from principal components / these /
    [RankedPCA](ranked_pca.md) with `rank_by="private"`: a linear model trained on the same rows
    77.8 / 57.8 / 58.5 %, on others 73.2 / 63.7 / 59.4; five nearest neighbours 81.2 / 76.2 / 64.4,
    and 75.1 / 70.8 / 60.1. So nonlinear information is hardly removed. RankedPCA, which takes the
    components least related to the attribute, mostly of small variance, hides more by keeping less.
    LDA predicts the class within its half as well from these as from principal components, in 83.7
    and 84.5 % of rows (four sets of many classes).

    **Cost.** $n^2$ per column. Computing components takes $O(n^2 q)$, and $O(n^3)$ below 1,500 rows
    or for many components.

    **Memory.** $4 n^2$ bytes, twice that while columns arrive, and $29 n^2$ while components are
    computed; $16 n m$ for the pool, $m$ being `max_loadings`. On rows $2 m^2$ numbers, $m$ at most
    `max_features`.

    **Loadings.** While the pool holds all columns, loadings are exact. Otherwise the features are
    regressed on some of the columns, those of the pool or, after `learn_loadings`, the largest; the
    attribute is projected out of the result again, so the guarantee holds for every transform.

    **Many rows.** With more rows than `max_rows_gram`, the leading principal axes represent the
    columns, unless the pool holds all of them: features are combinations of these axes. The
    covariances of the columns with the sensitive attribute are still summed exactly, and the
    guarantee holds. `leakage` needs the Gram matrix.

    **Rows.** The joint moments of the variables give the same features as their columns. A row is
    learnt with its sensitive attribute. The guarantee holds for `loadings` over all rows so far;
    for transforms, which use `standing`, over the rows up to the last refresh, and with `renewal=1`
    there is a refresh at every row.

    **Vocabulary.** When `max_features` leaves no room for a new variable, the variables of smallest
    variance are evicted, not the least relevant.

    **Missing and new features.** A column with a missing value is refused. In a row, an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable, class or target
    was 0 in earlier rows. A transform ignores features that were never learnt.

    References
    ----------
    [^1]: Jung, A. (2022). Machine Learning: The Basics, chapter 9, Feature Learning. Springer.

    [^2]: Ravfogel, S., Elazar, Y., Gonen, H., Twiton, M. and Goldberg, Y. (2020). Null it out:
    guarding protected attributes by iterative nullspace projection. ACL, 7237-7256.

    Examples
    --------
    Half of the columns contain the sensitive attribute, and all a useful signal:

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

    The features keep the signal, and on other rows they do not predict the attribute:

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
        return "apart from the sensitive attribute the columns vary in no more directions"

    def _hidden(self, held: GramColumns) -> Floats:
        return held.basis.T

    def _components_of(
        self, inner: Inner, weighted: Floats, places: Places, scale: Floats, probes: int = 0
    ) -> Solution:
        found = super()._components_of(inner, weighted, places, scale, probes)
        # Inner products have rounding errors relative to the largest variance. A feature of far
        # smaller variance would show them, so the attribute is projected out of the scores as well.
        scores = without(found.scores, inner.U)
        loadings = without(found.loadings, weighted @ inner.U)
        along, length = (np.linalg.norm(part, axis=0) for part in (inner.U.T @ scores, scores))
        return found._replace(
            scores=scores, loadings=loadings, relevance=along / np.where(length > 0.0, length, 1.0)
        )

    def leakage(self, folds: int = 5, seed: int = 0) -> Leakage:
        """Return how well the sensitive attribute can be predicted from the features.

        Features are fitted again in every fold, without its test rows. Three attackers, a linear
        model and the nearest and the five nearest neighbours, then learn to predict the attribute:
        once from the rows that the features were fitted on, once from others.

        Parameters
        ----------
        folds
            Number of parts of the rows, at least 3: each serves for testing once, the next one for
            training attackers on other rows, and the rest for fitting the features.
        seed
            Seed of the split.

        Raises
        ------
        ValueError
            For fewer than 3 folds or more than half as many as rows, before columns were learnt,
            after rows, which are not stored, and for more rows than `max_rows_gram`.

        Notes
        -----
        Everything is computed from the Gram matrix, without another pass over the columns. Costs
        `folds` times the computation of the components. With `scale=True` the columns' variances
        are those of all rows.
        """
        rule = params.Whole(3)
        params.check("leakage", {"folds": rule}, {"folds": folds})
        held, target = self._columns, self._target
        self._refuse_after_rows()
        if not isinstance(held, GramColumns) or not isinstance(target, Target) or not held.varying:
            raise ValueError(
                "Expected a model that has learnt columns that vary. Got: none.\n"
                "Hint: learn_columns(X) first."
            )
        inner = held.inner()
        if inner.K.ndim == 1:
            raise ValueError(
                f"Expected a Gram matrix, of at most {self.max_rows_gram} rows. Got: the leading "
                f"axes of {target.n} rows.\n"
                "Hint: a larger max_rows_gram, or a part of the rows."
            )
        if target.weights is not None:
            raise ValueError(
                "Expected observations of equal weight, to train on some and test on others. "
                "Got: weights.\nHint: fit an attacker to transform_many(X) of other rows."
            )
        if 2 * folds > target.n:
            raise ValueError(
                f"Expected at most {target.n // 2} folds of {target.n} rows. Got: folds={folds}."
            )
        attribute = Property(target.columns(), is_class=target.is_class)
        return audit(inner, attribute, uncorrelated, self.n_components, folds, seed)


def uncorrelated(inner: Inner, q: int) -> Floats:
    """Return the duals of at most q features that are uncorrelated with the target.

    With B = U(UᵀKU)^-½ and R = KB, RRᵀ is the part of K that covaries with the target. The features
    are the leading eigenvectors e of K - RRᵀ; their duals are e / √λ, orthogonalised to B.
    """
    seen = inner.times(inner.U)
    squares, turns = np.linalg.eigh(inner.U.T @ seen)
    some = squares > _UNRELATED_TOL * inner.trace
    roots = np.sqrt(squares[some])
    B, R = inner.U @ turns[:, some] / roots, seen @ turns[:, some] / roots
    K = np.diag(inner.K) if inner.K.ndim == 1 else inner.K
    about = About(inner.n, inner.rows, inner.weight, inner.p, inner.even, inner.cyy)
    d, E = Inner(K - R @ R.T, inner.U, inner.Y, about).axes(q)
    count = np.count_nonzero(d > _ZERO_TOL * inner.trace)
    duals: Floats = E[:, :count] / np.sqrt(d[:count])
    # Twice, for full precision.
    for _ in range(2):
        duals = duals - B @ (R.T @ duals)
    return duals
