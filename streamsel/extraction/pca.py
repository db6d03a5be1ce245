"""PCA: the directions of most variance, of any number of columns, in one reading."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamsel import params
from streamsel.columns import Block, Chunk, chunks, why_bad
from streamsel.extraction._gram_family import GramExtractor
from streamsel.extraction._how_many import CHOICES, by_share
from streamsel.extraction._of_inner import Solution
from streamsel.held.beyond import AlongAxes, Beyond
from streamsel.held.inner import Inner
from streamsel.held.part import Floats, Places
from streamsel.learner.report import Report
from streamsel.learner.river import Unsupervised
from streamsel.params import param
from streamsel.stream import ColumnStream, as_stream
from streamsel.target.weights import Weights

# Of more variables that rows name only the leading axes are kept.
_MOST = 1000
# Bytes of columns that are reconstructed at once.
_PIECE = 4 << 20


class PCA(GramExtractor, Unsupervised):
    r"""Principal components: the sums of variables, of squared weights 1, that vary most.

    Of columns they are found in one reading, exactly, from the inner products of the observations:
    $n \times n$ numbers, however many columns there are. Of rows they are those of the covariance
    matrix of the variables, which is kept up to date.

    Parameters
    ----------
    n_components
        The number of components, or how the data determine it: a share of the variance, in (0, 1),
        for the fewest components that have it; `"parallel"` for those that vary more than
        components of noise (parallel analysis), `"profile"` for those that the profile likelihood
        separates from the rest, `"elbow"` for those before the bend of the scree plot.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Rows seen, as observations of the columns or one by one; variables seen, one that comes back
        after it was let go counted again; those among them that do not vary.

    Raises
    ------
    ValueError
        For a parameter out of its range; and for columns of more observations than a Gram matrix is
        kept of, where `n_components` is not a number of components.

    Notes
    -----
    **Method.** Of all linear maps to $q$ numbers, and back, it is the one that loses least: it
    minimises $\sum_i \|x_i - \hat{x}_i\|^2$, which comes to $\sum_{k>q} \lambda_k$. With the
    centred columns $X = E \sqrt{d} V^T$ the matrix of inner products is $K = XX^T = E d E^T$: the
    scores are $E \sqrt{d}$, the loadings $V = X^T E / \sqrt{d}$, of length 1, and the variances
    $\lambda = d / (n - 1)$. The largest loading of a component is positive.

    **Loadings.** `embedding` is exact after one reading. For loadings, and so for new rows, columns
    are needed. As long as the pool holds all of them they are exact too; then the components are
    regressed on the pool's, by ridge regression, until `learn_loadings` has read the columns once
    more: exact if there are no more than `max_loadings`; otherwise of the largest, on which what
    they miss is regressed. To a file it writes those of all columns.

    **Many rows.** Of more rows than `max_rows_gram` the $2q + 10$ leading axes of the columns that
    went by are kept, by incremental singular values[^4]. What is beyond them is let go as columns
    come, so variances are too small: those of ten components by .002 of their sum on Isolet and
    mnist, .01 on Basehock, .17 on noise. The `learn_loadings` of a source that can be read again
    makes them exact, in a block Krylov space[^5]: after 5 or 6 readings on these, 12 on madelon,
    and not after 12 on noise, whose components are nothing. Where the pool holds all columns they
    are exact at once.

    **What it does not look at.** The target: the directions of most variance need not tell anything
    about it. `PLS`, `Discriminant` and `RidgeComponents` ask for those that do.

    **How many.** A share of the variance, the elbow[^1] and the profile likelihood[^2] depend on
    the eigenvalues alone; parallel analysis[^3] compares each with the 0.95 quantile of 20 draws of
    noise. All four decompose the whole matrix, $O(n^3)$. On rows they are evaluated at every
    refresh: components in use remain, and further ones follow them. Where there is none yet, a
    transform returns one that is 0.

    **Cost.** $n^2$ for each column, one product of matrices for hundreds of them, half of it saved
    by symmetry; a sparse column of $s$ values $s^2$. Components, when they are asked for, $O(n^3)$,
    or, few of many rows, $O(n^2 q)$ a step of Lanczos. A row learnt costs $O(m^2)$ for its $m$
    features, a row transformed $O(m q)$.

    **Memory.** $4 n^2$ bytes, twice that while columns come, and three times when components are
    asked for; $16 n m$ for the pool, $m$ being `max_loadings`. On rows $2 m^2$ numbers, $m$ at most
    `max_features`.

    **Rows.** The variables of the pool, and all that come with rows, are tracked by their joint
    moments: components are those of all rows so far. See `max_features` for those that come late.
    With `max_features=None` nobody is let go: of up to 1,000 variables joint moments are kept, and
    of more the $2q + 10$ leading axes, by incremental singular values[^6], unless `scale`
    or an `n_components` that is no number needs more: $10 q$ numbers a variable, and $O(q)$
    operations a row and variable.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None was not observed and counts as if it had its mean; a new
    variable was 0 before. A transform ignores features that were never learnt.

    **What stands.** On rows a transform gives the components as they stood at the last renewal,
    turned, among themselves, so that they moved the least from those that stood before: the
    rotation of orthogonal Procrustes, under the rows so far. `loadings` are those of now.

    References
    ----------
    [^1]: Jolliffe, I. T. (2002). Principal component analysis. Second edition. Springer.

    [^2]: Zhu, M. and Ghodsi, A. (2006). Automatic dimensionality selection from the scree plot via
    the use of profile likelihood. Computational Statistics and Data Analysis 51(2), 918-930.

    [^3]: Horn, J. L. (1965). A rationale and test for the number of factors in factor analysis.
    Psychometrika 30(2), 179-185.

    [^4]: Brand, M. (2002). Incremental singular value decomposition of uncertain data with missing
    values. ECCV 2002, 707-720.

    [^5]: Musco, C. and Musco, C. (2015). Randomized block Krylov methods for stronger and faster
    approximate singular value decomposition. NeurIPS 28.

    [^6]: Ross, D. A., Lim, J., Lin, R.-S. and Yang, M.-H. (2008). Incremental learning for robust
    visual tracking. International Journal of Computer Vision 77, 125-141.

    Examples
    --------
    2,000 columns, of which three hidden variables are most:

    >>> import numpy as np
    >>> from streamsel import PCA

    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(100, 3))
    >>> X = hidden @ rng.normal(size=(3, 2_000)) + rng.normal(size=(100, 2_000))

    >>> model = PCA(n_components="parallel")
    >>> model.learn_columns(X)
    >>> model.n_components_
    3
    >>> model.explained_variance_ratio_.round(2)
    array([0.29, 0.25, 0.22])

    The scores are exact. The loadings of all columns take a second reading:

    >>> model.embedding.shape
    (100, 3)
    >>> model.learn_loadings(X)

    It goes on with rows, by name, in River:

    >>> model.learn_one(dict(enumerate(X[0])))
    >>> list(model.transform_one(dict(enumerate(X[1]))))[:2]
    ['pca0', 'pca1']
    """

    rows = Beyond

    n_components: int | float | str = param(  # type: ignore[assignment]
        params.NamedOr(
            params.Choice(tuple(CHOICES)),
            (params.Whole(1, below=params.MANY), params.Real(0.0, open=True, below=1.0)),
        ),
        default=10,
        kw_only=False,
    )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "warm_up": 10}
        yield {
            "n_components": 0.8,
            "scale": True,
            "fading_factor": 0.05,
            "max_features": 8,
            "grace_period": 20,
        }

    @property
    def _n_asked(self) -> int | None:
        asked = self.n_components
        return int(asked) if isinstance(asked, numbers.Integral) else None

    @property
    def _width(self) -> int:
        if self._n_asked is not None:
            return self._n_asked
        return int(self._used().weights.shape[1]) if self._on_rows else max(1, self.n_components_)

    @property
    def _needs_matrix(self) -> str:
        if self._n_asked is None:
            return "n_components as a number of components needs the leading axes only."
        return ""

    # Rows

    def _new_beside(self) -> Beyond:
        # A number of variables that is bounded is few enough; standardised ones are others at every
        # row; and all eigenvalues are those of joint moments.
        is_few = self.max_features is not None or self.scale or bool(self._needs_matrix)
        return Beyond(self.fading_factor, None if is_few else _MOST, self._rank)

    def _solved(self, held: Any, places: Places) -> Solution:
        if not isinstance(held, AlongAxes):
            return super()._solved(held, places)
        V, lengths, _ = np.linalg.svd(held.axes[places], full_matrices=False)
        none = np.zeros((lengths.size, 0))
        about = self._about(held, self._weight_of(held))
        trace = float(held.stats(places).m2.sum())
        inner = Inner(np.square(lengths), none, none, about, trace)
        return self._components_of(inner, V * lengths, places, np.ones(places.size))

    # What it finds

    def _duals(self, inner: Inner, q: int) -> Floats:
        asked = self.n_components
        if isinstance(asked, str):
            q = CHOICES[asked](inner)
        elif self._n_asked is None:
            q = min(q, by_share(inner, asked))
        d, E = inner.axes(q)
        return E / np.sqrt(d)

    @property
    def _why_no_more(self) -> str:
        if self._n_asked is None:
            return f"n_components={self.n_components!r} keeps none"
        return super()._why_no_more

    # What was learnt

    @property
    def n_components_(self) -> int:
        """How many components there are; further ones that were asked for are 0."""
        found = self._solution()
        return 0 if found is None else found.scores.shape[1]

    @property
    def explained_variance_(self) -> Floats:
        """The variance of each component, (n_components_,): of n - 1 degrees, as NumPy's ddof=1."""
        found = self._solution()
        if found is None:
            return np.zeros(0)
        variance: Floats = np.square(found.scores).sum(axis=0) / found.weight
        return variance

    @property
    def explained_variance_ratio_(self) -> Floats:
        """The share of each component in the variance of all variables, (n_components_,)."""
        found = self._solution()
        if found is None:
            return np.zeros(0)
        ratio: Floats = np.square(found.scores).sum(axis=0) / found.trace
        return ratio

    @property
    def reconstruction_error_(self) -> float:
        """The variance that the components leave, Σ λ_k over k > q; NaN before there is any."""
        found = self._solution()
        if found is None:
            return float("nan")
        return max(0.0, found.trace / found.weight - float(self.explained_variance_.sum()))

    def reconstruct(self, X: Any, names: Sequence[Any] | None = None) -> ColumnStream:
        """Return columns as the components show them: the nearest that they can make.

        Parameters
        ----------
        X, names
            As `learn_columns` has them: columns of the rows learnt, any of them or others.

        Returns
        -------
        A stream of the columns' means plus their projections on the components; both weighted where
        the rows learnt have weights, and NaN in a row of weight 0.

        Raises
        ------
        ValueError
            Before columns; once rows were learnt, whose observations are not kept. When the stream
            is read: for columns of another length, and for one that has a missing or infinite
            value.
        TypeError
            When the stream is read: for a column that does not hold real numbers.
        """
        Z = self.embedding
        if self._columns is None:
            raise ValueError(
                "Expected columns that were learnt. Got: none yet.\nHint: learn_columns(X) first."
            )
        weights = None if self._target is None else self._target.weights
        Z = self._embedding()
        length = np.linalg.norm(Z, axis=0)
        basis = Z[:, length > 0.0] / length[length > 0.0]
        source = as_stream(X, names)

        def blocks() -> Iterator[Block]:
            for block in source.blocks():
                for chunk in chunks(block, len(Z)):
                    yield from _shown(chunk, basis, weights)

        return ColumnStream(
            blocks,
            n_rows=len(Z),
            n_columns=source.n_columns,
            rereadable=source.rereadable,
            names=source.names,
        )

    def report(self) -> Report:
        """Return what was found, for those who look at it: a command, a page, a notebook.

        Returns
        -------
        A row a component: its share of the variance, and its loadings, the largest first.
        """
        report = super().report()
        ratio = self.explained_variance_ratio_
        shares = dict(zip(self._names_of(ratio.size), ratio.tolist(), strict=True))
        found = [row | {"share": shares[row["name"]]} for row in report.found]
        share = {"share_of_variance": float(sum(shares.values()))} if found else {}
        return replace(report, found=found, facts=report.facts | share)


def _shown(chunk: Chunk, basis: Floats, weights: Weights | None) -> Iterator[Block]:
    """Yield columns as an orthonormal basis (n, q) shows them, about their means; few at a time.

    Where there are weights the basis is of turned columns.
    """
    step = max(1, _PIECE // (8 * chunk.n))
    for start in range(0, len(chunk.names), step):
        places = np.arange(start, min(start + step, len(chunk.names)))
        X = chunk.columns(places)
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if bad.size:
            raise why_bad(chunk.names[start + bad[0]], X[bad[0]])
        if weights is None:
            mean = X.mean(axis=1, keepdims=True)
            shown = ((X @ basis) @ basis.T + mean).T
        else:
            X, mean, low = weights.turned(X)
            shown = weights.back(basis @ (X @ basis).T) + (mean + low)
        yield Block(chunk.names[start : start + step], shown)
