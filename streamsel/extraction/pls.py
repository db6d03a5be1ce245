"""PLS: partial least squares components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from streamsel import params
from streamsel.base.river import Supervised
from streamsel.extraction._gram import GramExtractor
from streamsel.params import param
from streamsel.state.base import Floats
from streamsel.state.gram.view import GramView

# The residual of the columns is rounding below this share of their variance.
_ZERO_TOL = 1e-12
# The target is fully explained if the squared length of its residual is below this.
_EXPLAINED_TOL = 1e-20


class PLS(GramExtractor, Supervised):
    r"""Partial least squares: components of largest covariance with the target.

    Each component is the linear combination of the columns with the largest covariance with the
    target, among those uncorrelated with the previous components. PLS is common in chemometrics,
    where columns outnumber rows and are collinear. It lies between principal components, which
    ignore the target, and least squares, which ignores the variance of the columns.

    Parameters
    ----------
    scale
        Whether columns, and the columns of the target, are standardised first, so that their units
        do not matter.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        (one that returns after eviction counts again); number of constant variables.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **Method.** Let $X_1 = X$ be the centred columns, and $Y$ those of the target (an indicator for
    each class). Component $k$ is $t_k = X_k w_k$, where $w_k$ and $v_k$, both of length 1, maximise
    $w_k^T X_k^T Y v_k$. Then $X_{k+1} = X_k - t_k t_k^T X_k / t_k^T t_k$. The scores are
    `x_scores_` of scikit-learn's PLSRegression, up to sign. With several targets PLSRegression
    iterates up to its `tol`; the scores here are the limit. Everything follows from $K = XX^T$:
    with $P_k$ the projection orthogonal to the previous components, $v_k$ is the leading
    eigenvector of $Y^T P_k K P_k Y$, and $t_k$ is $P_k K P_k Y v_k$, rescaled.

    The number of components is limited by the rank of the columns, and by the target: once it is
    explained to the last digit, the remaining components are 0. With a Gram matrix, a direction
    whose standard deviation is $10^{-6}$ times the largest cannot be distinguished from rounding.

    **Many rows.** With more rows than `max_gram_rows`, the leading axes replace the Gram matrix, as
    in `PCA`, and $KU$ is summed exactly, $U$ a basis of the target. The first component is
    then exact after one pass, and $q$ components after $q - 1$ additional passes, made by
    `learn_loadings`: each pass gives the next power of $K$. After one pass, the first five
    components of Isolet and mnist agreed with those of the whole matrix to three digits; on
    Basehock, four of five.

    **Cost.** $n^2$ per column. Computing components takes $O(n^2 c q)$ for a target of $c$ columns.

    **Memory.** $4 n^2$ bytes, twice that while columns arrive, and $8 n^2$ while components are
    computed; $16 n m$ for the pool, $m$ being `max_loadings`. On rows $2 m^2$ numbers, $m$ at most
    `max_features`.

    **Rows.** The joint moments of the variables give the same components as their columns.

    **Missing and new features.** A column with a missing value is refused. In a row, an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable, class or target
    was 0 in earlier rows. A transform ignores features that were never learnt.

    References
    ----------
    [^1]: Wold, S., Ruhe, A., Wold, H. and Dunn, W. J. (1984). The collinearity problem in linear
    regression. The partial least squares (PLS) approach to generalized inverses. SIAM Journal on
    Scientific and Statistical Computing 5(3), 735-743.

    [^2]: Rännar, S., Lindgren, F., Geladi, P. and Wold, S. (1994). A PLS kernel algorithm for data
    sets with many variables and fewer objects. Journal of Chemometrics 8(2), 111-125.

    Examples
    --------
    Spectra of 500 wavelengths with two overlapping substances; one is the target:

    >>> import numpy as np
    >>> from streamsel import PLS

    >>> rng = np.random.default_rng(0)
    >>> grid = np.linspace(0.0, 1.0, 500)
    >>> bands = np.exp(-0.5 * ((grid - np.array([[0.4], [0.5]])) / 0.1) ** 2)
    >>> amounts = rng.uniform(size=(120, 2))
    >>> X = amounts @ bands + 0.05 * rng.normal(size=(120, 500))
    >>> y = amounts[:, 0]

    >>> model = PLS(n_components=2)
    >>> model.learn_target(y[:80])
    >>> model.learn_columns(X[:80])
    >>> model.embedding.shape
    (80, 2)

    Least squares on two components predicts the target for new spectra:

    >>> with_intercept = lambda Z: np.column_stack([np.ones(len(Z)), Z])
    >>> coefficients = np.linalg.lstsq(with_intercept(model.embedding), y[:80], rcond=None)[0]
    >>> predicted = with_intercept(model.transform_many(X[80:])) @ coefficients
    >>> bool(np.corrcoef(predicted, y[80:])[0, 1] > 0.99)
    True

    It also learns from rows, by name, in River:

    >>> model.learn_one(dict(enumerate(X[80])), y[80])
    >>> list(model.transform_one(dict(enumerate(X[81]))))
    ['pls0', 'pls1']
    """

    _weights_replicate_rows: ClassVar[bool] = False
    _ranks_by_relevance: ClassVar[bool] = True
    _needs_target_products: ClassVar[bool] = True

    scale: bool = param(params.FlagRule(), default=True)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2}
        yield {
            "n_components": 2,
            "scale": False,
            "fading_factor": 0.05,
            "max_features": 8,
            "grace_period": 20,
            "max_loadings": 20,
        }

    def _dual_weights(self, inner: GramView, q: int) -> Floats:
        Y = _scaled_target(inner, standardised=self.scale)
        return partial_least_squares(inner, Y, q)

    @property
    def _stop_reason(self) -> str:
        return "the columns are uncorrelated with what the components leave of the target"


def _scaled_target(inner: GramView, *, standardised: bool) -> Floats:
    """Return the varying columns of the target, scaled to length 1 each, or by the largest."""
    squares = inner.cyy.diagonal()
    varies = np.flatnonzero(squares > 0.0)
    lengths = np.sqrt(squares[varies] if standardised else squares.max(initial=0.0))
    Y: Floats = inner.Y[:, varies] / lengths
    return Y


def partial_least_squares(inner: GramView, Y: Floats, q: int) -> Floats:
    """Return the duals of at most q components for a target Y (s, c), (s, number of them).

    With T the scores so far, of length 1, TTᵀ is the projection on them. T = K · duals holds
    throughout: scores and duals are updated by the same operations. K is scaled to trace 1, to
    avoid overflow of squares.
    """
    scores, duals = np.zeros((len(Y), 0)), np.zeros((len(Y), 0))
    lengths: list[float] = []
    for _ in range(q if Y.size else 0):
        residual = Y - scores @ (scores.T @ Y)
        image = inner.matmul(residual / inner.trace)
        squares, eigenvectors = np.linalg.eigh(residual.T @ image)
        # The weights are XᵀY v.
        square, dual = float(squares[-1]), residual @ eigenvectors[:, -1]
        unexplained = float(dual @ dual)
        if unexplained <= _EXPLAINED_TOL or square <= _ZERO_TOL * unexplained:
            break
        score = image @ eigenvectors[:, -1]
        # Twice, for full precision if the score is nearly in their span.
        for _ in range(2):
            along = scores.T @ score
            score, dual = score - scores @ along, dual - duals @ along
        length = float(np.linalg.norm(score))
        scores = np.column_stack([scores, score / length])
        duals = np.column_stack([duals, dual / length])
        lengths.append(length / np.sqrt(square))
    found: Floats = duals * np.array(lengths) / np.sqrt(inner.trace)
    return found
