"""Probabilistic PCA: principal components of columns with missing values."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from streamsel.base.river import Unsupervised
from streamsel.data.chunks import Block
from streamsel.extraction._codes import GaussianCoder
from streamsel.extraction._factorization import FactorizationExtractor
from streamsel.state.factorization.model import Coder
from streamsel.stream import ColumnStream


class ProbabilisticPCA(FactorizationExtractor, Unsupervised):
    r"""Probabilistic PCA: principal components of columns with missing values, and imputation.

    A column is modelled as a draw from a normal distribution with few directions of variance, plus
    noise. The observed values determine its posterior coordinates along these directions, and so
    the expectation of the missing values. The model is fitted online.

    Parameters
    ----------
    n_components
        The number $q$ of components, the directions of variance beyond the noise.

    Attributes
    ----------
    noise_variance
        The residual variance of a value, $\sigma^2$; NaN before any column varied.
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        (one that returns after eviction counts again); number of constant variables.

    Raises
    ------
    ValueError
        For a parameter out of its range, and, on arrival, for a column with an infinite value or
        without any observed value.

    Notes
    -----
    **Method.** The fit maximises the likelihood of $x_j \sim N(0, D D^T + \sigma^2 I)$, for columns
    $x_j$ centred by the mean of their observed values, by expectation-maximisation (Tipping and
    Bishop 1999), online. The code of a column is its posterior mean of the components, given its
    observed values; missing values enter with their expectation and variance. Without missing
    values the maximum is at the principal axes, and $\sigma^2$ is the mean of the remaining
    eigenvalues. Components are uncorrelated, of variance about 1, and sorted by decreasing size.

    **Missing values.** An observation with a few outlying values would get a component of its own,
    with unconstrained predictions for columns where this observation is missing. So, if columns
    have missing values, $D$ has a prior (Ilin and Raiko 2010, section 3):
    $D = B (A + \tau I)^{-1}$, with the sums below and $\tau = 100 g \sigma^2 / s$, where $s$ is the
    mean square of a value and $g$ the share of columns with missing values. A priori the mean
    square of a component is a hundredth of $s$. The prior of a batch is introduced gradually, over
    its iterations. On rows there is no prior.

    **Online fit.** Columns are buffered until there are `batch_size` of them. Then their codes $w$
    are computed from the components, and the components are refined from the sums $A = \sum w w^T$
    and $B = \sum x w^T$ over all columns so far (Mairal et al. 2010). This takes three iterations,
    and thirty for the first batch, which starts from random components (`seed`). The $t$-th of $p$
    columns has weight $\sqrt{t/p}$. The components approximate the optimum over all columns: on six
    real sets, ten components explain 97.6 to 100 % of the variance that ten principal components
    explain. They depend on the order of the columns, which should be random. They are bit-identical
    for any division into blocks. Models of different columns cannot be merged; models of different
    rows can, approximately.

    **Loadings.** Without a second pass, loadings are available for the `max_loadings` columns of
    largest variance, coded by the current components. `learn_loadings` makes a second pass and
    keeps the loadings of all columns, or the largest.

    **Scale.** `embedding` has mean square 1. A transform of the same rows correlates with it by
    0.97 or more and has the scale of `embedding` if the signal exceeds the noise, and 0.7 to 1.5
    times that on noise. Train downstream models on transforms of the learnt rows.

    **Cost.** Three products of $n q$ per column and iteration; three of $n q^2$ for a column with
    missing values. Learning a row costs $O(m q^2)$, $m$ being the number of variables tracked.

    **Memory.** $O(n (b + m + q))$ for $b$ buffered columns and a pool of $m$, at most twice
    `max_loadings`, for any number of columns. On rows $O(m q)$.

    **Rows.** The roles are exchanged: a row is coded by the loadings, and the loadings are refined
    from the sums over rows. They are refined first after 8 rows, then whenever the number of rows
    has doubled, and at least every `batch_size` rows. A model that has learnt columns starts from
    the loadings of its pool. Older rows may be down-weighted. `max_features` bounds the variables
    tracked: those of smallest variance are evicted.

    **Missing and new features.** NaN or None in a column was not observed; the mean of the column
    is that of its observed values. `impute` fills missing values of columns with their expectation,
    clipped to the range of the column's observed values. Values should be missing at random, given
    the observed ones. In a row, an absent variable is 0, and NaN or None was not observed: a row is
    learnt from its observed values alone, and transformed with means in place of the missing ones.
    A new variable was 0 in earlier rows. A transform ignores features that were never learnt.

    **Stable transforms.** On rows, a transform uses the components of the last refresh. These are
    rotated to differ least from those in use before (orthogonal Procrustes, under the fitted
    covariance of the rows so far). `loadings` are those of the current components.

    References
    ----------
    [^1]: Tipping, M. E. and Bishop, C. M. (1999). Probabilistic principal component analysis.
    Journal of the Royal Statistical Society B 61(3), 611-622.

    [^2]: Mairal, J., Bach, F., Ponce, J. and Sapiro, G. (2010). Online learning for matrix
    factorization and sparse coding. Journal of Machine Learning Research 11, 19-60.

    [^3]: Ilin, A. and Raiko, T. (2010). Practical approaches to principal component analysis in the
    presence of missing values. Journal of Machine Learning Research 11, 1957-2000.

    Examples
    --------
    Two latent variables, and one missing value in five:

    >>> import numpy as np
    >>> from streamsel import ProbabilisticPCA

    >>> rng = np.random.default_rng(0)
    >>> whole = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 400)) + rng.normal(size=(200, 400))
    >>> X = np.where(rng.random(whole.shape) < 0.2, np.nan, whole)

    >>> model = ProbabilisticPCA(n_components=2)
    >>> model.learn_columns(X)
    >>> round(model.noise_variance, 1)
    1.0

    The error of the imputed values is the standard deviation of the noise:

    >>> off = (model.impute(X) - whole)[np.isnan(X)]
    >>> round(float(off.std()), 1)
    1.0

    It also learns from rows, by name, in River, with missing values:

    >>> model.learn_one({0: 1.0, 1: None, 2: -1.0})
    >>> list(model.transform_one({0: 1.0, 2: 0.5}))
    ['probabilisticpca0', 'probabilisticpca1']
    """

    _takes_missing = True

    @property
    def _coder(self) -> Coder:
        return GaussianCoder(takes_missing=True)

    def impute(self, X: Any, names: Sequence[Hashable] | None = None) -> Any:
        """Return columns with missing values replaced by their expectation given the observed ones.

        Parameters
        ----------
        X, names
            As in `learn_columns`: columns of the observations learnt, the same columns or others.

        Returns
        -------
        An array for an array; for any other source a `ColumnStream`, which reads X lazily.

        Raises
        ------
        ValueError, TypeError
            As `learn_columns`; also before columns, and after rows.

        Notes
        -----
        Costs O(m q² + q³) for a column with m observed values, which are unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel import ProbabilisticPCA
        >>> rng = np.random.default_rng(0)
        >>> X = np.outer(rng.normal(size=30), rng.normal(size=200))
        >>> X += 0.01 * rng.normal(size=X.shape)
        >>> truth, X[4, 7] = X[4, 7], np.nan
        >>> model = ProbabilisticPCA(1)
        >>> model.learn_columns(X)
        >>> filled = model.impute(X)
        >>> bool(abs(filled[4, 7] - truth) < 0.05)
        True
        """
        self._refuse_after_rows()
        self._learnt_columns()
        stream = self._numeric_stream(X, names)
        filled = ColumnStream(
            lambda: self._fill(stream),
            n_rows=stream.n_rows,
            n_columns=stream.n_columns,
            reiterable=stream.reiterable,
        )
        if not isinstance(X, np.ndarray):
            return filled
        found = [block.values for block in filled.blocks()]
        return np.hstack(found) if found else np.array(X, dtype=np.float64)

    def _fill(self, stream: ColumnStream) -> Iterator[Block]:
        state, found = self._learnt_columns()
        for chunk, stats in self._scanned(stream):
            indices = np.arange(len(chunk.names))
            length = np.sqrt(stats.m2)[:, None]
            columns = state.unit_rows_of(chunk, stats, indices) * length
            expected = found.encode(self._coder, columns) @ found.scores.T + stats.mean[:, None]
            X = chunk.columns(indices)
            # With heavy tails, an expectation under the normal model can lie far out of range.
            expected = expected.clip(np.nanmin(X, axis=1)[:, None], np.nanmax(X, axis=1)[:, None])
            yield Block(chunk.names, np.where(np.isnan(X), expected, X).T)
