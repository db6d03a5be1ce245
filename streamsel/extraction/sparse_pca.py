"""Sparse PCA: components of few variables each."""

from __future__ import annotations

from streamsel import params
from streamsel.extraction._codes import SparseCode
from streamsel.extraction._factorisation import Factorisation
from streamsel.held.fit import Code
from streamsel.learner.river import Unsupervised
from streamsel.params import param


class SparsePCA(Factorisation, Unsupervised):
    r"""Principal components of few variables each, found online.

    Every column is taken for a sum of few components, by the lasso: a variable whose correlation
    with a component is not worth it has no loading there. So a component can be read, and a row
    needs few variables.

    Parameters
    ----------
    alpha
        The price of a loading, in root mean squares of a value of all columns: of columns of one
        scale, the correlation with a component that is worth a loading. 0 asks for none to be 0.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Rows seen, as observations of the columns or one by one; variables seen, one that comes back
        after it was let go counted again; those among them that do not vary.

    Raises
    ------
    ValueError
        For a parameter out of its range, and, when it comes, for a column with a missing value.

    Notes
    -----
    **Method.** It minimises $\sum_j \left( \frac{1}{2n} \|x_j - D w_j\|^2 + \alpha s |w_j|_1
    \right)$ over components $D$, each of mean square at most 1, and loadings $w_j$ of centred
    columns $x_j$; $s^2$ is the mean square of a value. That is scikit-learn's SparsePCA (Jenatton,
    Obozinski and Bach 2010), its penalty in other units. A component of a row is the sum of its
    variables, weighted by the loadings, over the sum of their squares: others count for nothing,
    as with Zou, Hastie and Tibshirani (2006). Regressed on all loadings together, as scikit-learn
    does, the components would span the same space, and each need all variables.

    **One reading.** Columns wait until there are `batch_size` of them. Then they are coded by the
    components, and these are refined by the sums $A = \sum w w^T$ and $B = \sum x w^T$ over all
    columns so far (Mairal et al. 2010), three times over; the first batch thirty times, from random
    components that `seed` says. What was coded when there were $t$ columns counts with $\sqrt{t/p}$
    when there are $p$. So the components are near the best of all columns, and not the best: on six
    real sets ten of them have 96 to 99.7 % of the variance of ten principal components, at the
    default, with 19 to 52 % of the loadings. They depend on the order of the columns, which should
    be random; how columns are cut into blocks, or one by one, changes no bit. Two models of other
    columns cannot be merged; of other rows they can, approximately.

    **Loadings.** Without a second reading they are known of the `max_loadings` columns that vary
    most, coded by the components as they are now. `learn_loadings` reads the columns again, and
    keeps those of all, or the largest.

    **Cost.** Three products of $n q$ for each column and as many times it is gone over, and the
    lasso, $O(q^2)$ a step. A row learnt costs $O(m q^2)$, $m$ being the number of variables
    tracked.

    **Memory.** $O(n (b + m + q))$ for $b$ columns that wait, and a pool of $m$, at most twice
    `max_loadings`, however many columns there are. On rows $O(m q)$.

    **Rows.** The roles swap: a row is coded on the loadings, and these are refined by the sums over
    rows, with each variable's share of them; at first after 8 rows, then whenever they have
    doubled, and at least every `batch_size`. A model that has learnt columns goes on from the
    loadings of its pool. Rows may fade. `max_features` bounds the variables tracked: who varies
    least goes.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None was not observed: it counts as what the others make of
    it. A new variable was 0 before. A transform ignores features that were never learnt.

    **What stands.** On rows a transform gives the components as they stood at the last renewal,
    turned, among themselves, so that they moved the least from those that stood before: the
    rotation of orthogonal Procrustes, under what the factorisation tells of the rows so far.
    `loadings` are those of now.

    References
    ----------
    [^1]: Mairal, J., Bach, F., Ponce, J. and Sapiro, G. (2010). Online learning for matrix
    factorization and sparse coding. Journal of Machine Learning Research 11, 19-60.

    [^2]: Jenatton, R., Obozinski, G. and Bach, F. (2010). Structured sparse principal component
    analysis. AISTATS.

    [^3]: Zou, H., Hastie, T. and Tibshirani, R. (2006). Sparse principal component analysis.
    Journal of Computational and Graphical Statistics 15(2), 265-286.

    Examples
    --------
    Three hidden variables, each of which shows in ten columns of its own:

    >>> import numpy as np
    >>> from streamsel import SparsePCA

    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(200, 3)) * [3.0, 2.0, 1.5]
    >>> X = np.repeat(hidden, 10, axis=1) + 0.5 * rng.normal(size=(200, 30))

    >>> model = SparsePCA(n_components=3, alpha=0.2)
    >>> model.learn_columns(X)
    >>> [sum(component in row for row in model.loadings.values()) for component in model.components]
    [10, 10, 10]

    On rows it goes on by name, in River:

    >>> model.learn_one(dict(enumerate(X[0])))
    >>> list(model.transform_one(dict(enumerate(X[1]))))
    ['sparsepca0', 'sparsepca1', 'sparsepca2']
    """

    alpha: float = param(params.Real(0.0), default=0.1)

    @property
    def _code(self) -> Code:
        return SparseCode(self.alpha)
