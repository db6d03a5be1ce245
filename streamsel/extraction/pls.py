"""PLS: components that vary most along with the target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from streamsel import params
from streamsel.extraction._gram_family import GramExtractor
from streamsel.held.inner import Inner
from streamsel.held.part import Floats
from streamsel.learner.river import Supervised
from streamsel.params import param

# What is left of the columns is rounding: this part of all they vary.
_SPENT = 1e-12
# What is left of the target, of length 1 a column, squared.
_TOLD = 1e-20


class PLS(GramExtractor, Supervised):
    r"""Partial least squares: components that vary most along with the target.

    Each component is the sum of the columns of which the covariance with the target is largest,
    among those uncorrelated with the components before it. It is what chemometrics takes where
    columns outnumber rows and many tell the same: between principal components, which do not heed
    the target, and least squares, which heed nothing else.

    Parameters
    ----------
    scale
        Whether columns, and the columns of the target, are brought to unit variance first, so that
        their units do not matter.

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
    **Method.** With $X$ the centred columns and $Y$ those of the target (an indicator for each of
    the classes), $X_1 = X$, component $k$ is $t_k = X_k w_k$, where $w_k$ of length 1 and $v_k$ of
    length 1 have the largest $w_k^T X_k^T Y v_k$, and $X_{k+1} = X_k - t_k t_k^T X_k / t_k^T t_k$.
    The scores are `x_scores_` of scikit-learn's PLSRegression, up to sign; with several targets it
    iterates to its `tol`, and these are what it would come to. All of it follows from $K = XX^T$:
    with $P_k$ what takes off the components so far, $v_k$ is the leading eigenvector of $Y^T P_k K
    P_k Y$, and $t_k$ is $P_k K P_k Y v_k$, made as long as it is to be.

    There are no more components than the columns have rank, and none after the target has been
    told to the last digit; the others are void. What a Gram matrix cannot tell from rounding is
    a direction in which the columns vary $10^{-6}$ times as much as in the largest.

    **Many rows.** Of more rows than `max_rows_gram` the leading axes stand for the Gram matrix, as
    in [PCA](pca.md), and beside them $KU$ is summed exactly, $U$ a basis of the target. The first
    component is then exact after one reading, and $q$ of them are after $q - 1$ more, which
    `learn_loadings` makes: each gives the next power of $K$. After one reading five components of
    Isolet and mnist were those of the whole matrix to three digits, on Basehock four of five.

    **Cost.** $n^2$ for each column. Components, when they are asked for, $O(n^2 c q)$ with a target
    of $c$ columns.

    **Memory.** $4 n^2$ bytes, twice that while columns come, and $8 n^2$ when components are asked
    for; $16 n m$ for the pool, $m$ being `max_loadings`. On rows $2 m^2$ numbers, $m$ at most
    `max_features`.

    **Rows.** The joint moments of the variables give the same components as their columns.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None was not observed and counts as if it had its mean; a new
    variable, class or target was 0 before. A transform ignores features that were never learnt.

    References
    ----------
    [^1]: Wold, S., Ruhe, A., Wold, H. and Dunn, W. J. (1984). The collinearity problem in linear
    regression. The partial least squares (PLS) approach to generalized inverses. SIAM Journal on
    Scientific and Statistical Computing 5(3), 735-743.

    [^2]: Rännar, S., Lindgren, F., Geladi, P. and Wold, S. (1994). A PLS kernel algorithm for data
    sets with many variables and fewer objects. Journal of Chemometrics 8(2), 111-125.

    Examples
    --------
    A spectrum of 500 wavelengths, in which two substances overlap, and of which one is asked for:

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

    Least squares on two components tell it of spectra that were not learnt:

    >>> beside_one = lambda Z: np.column_stack([np.ones(len(Z)), Z])
    >>> fit = np.linalg.lstsq(beside_one(model.embedding), y[:80], rcond=None)[0]
    >>> told = beside_one(model.transform_many(X[80:])) @ fit
    >>> bool(np.corrcoef(told, y[80:])[0, 1] > 0.99)
    True

    It goes on with rows, by name, in River:

    >>> model.learn_one(dict(enumerate(X[80])), y[80])
    >>> list(model.transform_one(dict(enumerate(X[81]))))
    ['pls0', 'pls1']
    """

    _by_relevance: ClassVar[bool] = True
    _aims: ClassVar[bool] = True

    scale: bool = param(params.Flag(), default=True)

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

    def _duals(self, inner: Inner, q: int) -> Floats:
        Y = _of_length_one(inner, standardised=self.scale)
        return partial_least_squares(inner, Y, q)

    @property
    def _why_no_more(self) -> str:
        return "they leave nothing of the target that the columns could tell"


def _of_length_one(inner: Inner, *, standardised: bool) -> Floats:
    """Return the target's columns that vary, of length 1 each; or as long as they are, in all."""
    squares = inner.cyy.diagonal()
    varies = np.flatnonzero(squares > 0.0)
    lengths = np.sqrt(squares[varies] if standardised else squares.max(initial=0.0))
    Y: Floats = inner.Y[:, varies] / lengths
    return Y


def partial_least_squares(inner: Inner, Y: Floats, q: int) -> Floats:
    """Return the duals of at most q components for a target Y (s, c), (s, number of them).

    With T the scores so far, of length 1, TTᵀ takes them off; T = K · duals throughout, so that
    whatever is done to the one is done to the other. K is of trace 1 here, lest squares overflow.
    """
    scores, duals = np.zeros((len(Y), 0)), np.zeros((len(Y), 0))
    lengths: list[float] = []
    for _ in range(q if Y.size else 0):
        left = Y - scores @ (scores.T @ Y)
        seen = inner.times(left / inner.trace)
        squares, turns = np.linalg.eigh(left.T @ seen)
        # XᵀY v, of which the weights are made.
        square, dual = float(squares[-1]), left @ turns[:, -1]
        told = float(dual @ dual)
        if told <= _TOLD or square <= _SPENT * told:
            break
        score = seen @ turns[:, -1]
        # Twice, for the digits of what is nearly theirs.
        for _ in range(2):
            along = scores.T @ score
            score, dual = score - scores @ along, dual - duals @ along
        length = float(np.linalg.norm(score))
        scores = np.column_stack([scores, score / length])
        duals = np.column_stack([duals, dual / length])
        lengths.append(length / np.sqrt(square))
    found: Floats = duals * np.array(lengths) / np.sqrt(inner.trace)
    return found
