"""PCA of any number of columns in one pass, and of rows; rules for the number of components."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamsel import params
from streamsel.base.report import Report
from streamsel.base.river import Unsupervised
from streamsel.data.chunks import Block, Chunk
from streamsel.data.columns import bad_column_error, iter_chunks
from streamsel.extraction._gram import GramExtractor
from streamsel.params import param
from streamsel.state.base import Floats
from streamsel.state.gram.view import GramView
from streamsel.state.moments.low_rank import LowRankCrossMoments
from streamsel.stream import ColumnStream
from streamsel.targets.row_transform import RowTransform

# Number of draws of noise, and the quantile of these that an eigenvalue must exceed.
_DRAWS, _LEVEL = 20, 0.95


def n_for_share(inner: GramView, share: float) -> int:
    """Return the smallest number of components that explain this share of the variance."""
    cumulated = np.cumsum(inner.values()) / inner.trace
    return int(np.searchsorted(cumulated, share * (1.0 - 1e-12))) + 1


def n_by_elbow(inner: GramView) -> int:
    """Return the number of eigenvalues before the bend of the scree plot.

    The bend is where the curve is farthest below the straight line between its ends.
    """
    d = inner.values()
    if d.size < 3:
        return int(d.size)
    chord = np.linspace(d[0], d[-1], d.size)
    return max(1, int((chord - d).argmax()))


def n_by_profile_likelihood(inner: GramView) -> int:
    """Return the number of eigenvalues before the split of largest profile likelihood.

    The two groups are normal with a common variance (Zhu and Ghodsi 2006).
    """
    d = inner.values()
    if d.size < 3:
        return int(d.size)
    d = d / d[0]
    sums, squares = np.cumsum(d), np.cumsum(np.square(d))
    first = np.arange(1, d.size)
    second = d.size - first
    within = squares[-1] - np.square(sums[:-1]) / first - np.square(sums[-1] - sums[:-1]) / second
    return int(within.argmin()) + 1


def n_by_parallel_analysis(inner: GramView) -> int:
    """Return the number of eigenvalues larger than those of noise (Horn 1965).

    Each is compared with the eigenvalue of the same rank for uncorrelated columns of equal
    variance, as many as the effective number of columns, with the same total variance.
    """
    d = inner.values()
    rng = np.random.default_rng(0)
    noise = np.array([_of_noise(inner, rng) for _ in range(_DRAWS)])
    size = min(d.size, noise.shape[1])
    below = np.flatnonzero(d[:size] <= np.quantile(noise[:, :size], _LEVEL, axis=0))
    return int(below[0]) if below.size else size


def _of_noise(inner: GramView, rng: np.random.Generator) -> Floats:
    """Return the eigenvalues of a Wishart matrix, descending, by its Bartlett decomposition."""
    rows, columns = max(1, round(inner.n) - 1), max(1, round(inner.n_effective_columns))
    size, degrees = min(rows, columns), max(rows, columns)
    A = np.tril(rng.normal(size=(size, size)), -1)
    A[np.diag_indices(size)] = np.sqrt(rng.chisquare(degrees - np.arange(size)))
    d = np.square(np.linalg.svd(A, compute_uv=False))
    found: Floats = d * (inner.trace / (rows * columns))
    return found


N_COMPONENTS_RULES = {
    "elbow": n_by_elbow,
    "profile": n_by_profile_likelihood,
    "parallel": n_by_parallel_analysis,
}


# With more variables than this on rows, only the leading axes of their covariance are tracked.
_MAX_JOINT_VARIABLES = 1000
# Bytes of columns that are reconstructed at a time.
_BATCH_BYTES = 4 << 20


class PCA(GramExtractor, Unsupervised):
    r"""Principal component analysis: orthogonal linear combinations of largest variance.

    On columns, components are exact after one pass: they follow from the $n \times n$ matrix of
    inner products of the observations, for any number of columns. On rows, they are those of the
    covariance matrix of the variables, which is updated with every row.

    Parameters
    ----------
    n_components
        The number of components, or the rule that determines it: a number in (0, 1) keeps the
        fewest components that reach this share of the variance; `"parallel"` keeps those with more
        variance than components of noise (parallel analysis), `"profile"` those before the split of
        largest profile likelihood, `"elbow"` those before the bend of the scree plot.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        (one that returns after eviction counts again); number of constant variables.

    Raises
    ------
    ValueError
        For a parameter out of its range; and for columns with more observations than
        `max_gram_rows`, if `n_components` is a rule.

    Notes
    -----
    **Method.** Among all linear maps to $q$ numbers and back, PCA has the smallest reconstruction
    error: it minimises $\sum_i \|x_i - \hat{x}_i\|^2$, and the minimum is $\sum_{k>q} \lambda_k$.
    With the centred columns $X = E \sqrt{d} V^T$ the Gram matrix is $K = XX^T = E d E^T$: the
    scores are $E \sqrt{d}$, the loadings $V = X^T E / \sqrt{d}$ have length 1, and the variances
    are $\lambda = d / (n - 1)$. With weights $w$ of sum $n$, the divisor is $n - \sum w^2 / n$. The
    largest loading of a component among the columns of the pool is positive.

    **Loadings.** `embedding` is exact after one pass. Loadings, and thus transforms of new rows,
    need the columns. While the pool holds all columns, loadings are exact too. Otherwise the
    components are regressed on the columns of the pool (ridge regression) until `learn_loadings`
    makes a second pass: loadings are then exact for up to `max_loadings` columns; with more, the
    columns of largest loadings are kept and the residual is regressed on them. `learn_loadings` can
    write the loadings of all columns to a file.

    **Many rows.** With more rows than `max_gram_rows`, the $2q + 10$ leading axes of the columns so
    far are kept, by incremental SVD[^4]. The residual is dropped as columns arrive, so variances
    are too small. The sum over ten components is too small by .002 of its value on Isolet and
    mnist, .01 on Basehock, and .17 on noise. If the source is re-iterable, `learn_loadings` makes
    components exact in a block Krylov space[^5]: after 5 or 6 passes on these sets and 12 on
    madelon; on noise, whose components are arbitrary, 12 do not suffice. Components are exact at
    once if the pool holds all columns, or if the columns are sparse with up to 16.8 million stored
    values in all: these are kept as stored (200 MB), and block Lanczos iteration finds the axes.

    **No target.** The directions of most variance need not be related to the target. `PLS`,
    `Discriminant` and `RidgeComponents` use the target.

    **Number of components.** The share of variance, the elbow[^1] and the profile likelihood[^2]
    depend on the eigenvalues alone; parallel analysis[^3] compares each with the 0.95 quantile of
    20 draws of noise. All four rules decompose the whole matrix, $O(n^3)$. On rows they are
    evaluated at every refresh: components in use remain, and additional ones are appended. Before
    the first component exists, a transform returns one that is 0.

    **Cost.** $n^2$ per column, as one matrix product for hundreds of columns, half of it saved by
    symmetry; $s^2$ for a sparse column of $s$ values. Computing components takes $O(n^3)$, or
    $O(n^2 q)$ per Lanczos step for few components of many rows. Learning a row costs $O(m^2)$ for
    its $m$ features, transforming a row $O(m q)$.

    **Memory.** $4 n^2$ bytes, up to 1,024 rows $8 n^2$, twice that while columns arrive and three
    times while components are computed; $16 n m$ for the pool, $m$ being `max_loadings`. On rows
    $2 m^2$ numbers, $m$ at most `max_features`.

    **Rows.** Joint moments of the variables of the pool, and of all variables that arrive with
    rows, are tracked: components are those of all rows so far. See `max_features` for variables
    that arrive late. With `max_features=None` no variable is evicted: up to 1,000 variables have
    joint moments; beyond, the $2q + 10$ leading axes are tracked by incremental SVD[^6], unless
    `scale` or a rule for `n_components` requires joint moments. The axes take $10 q$ numbers per
    variable, and $O(q)$ operations per row and variable.

    **Missing and new features.** A column with a missing value is refused. In a row, an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable was 0 in earlier
    rows. A transform ignores features that were never learnt.

    **Stable transforms.** On rows, a transform uses the components of the last refresh. These are
    rotated to differ least from those in use before (orthogonal Procrustes, under the covariance of
    the rows so far). `loadings` are those of the current components.

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
    2,000 columns, whose variance is mostly that of three latent variables:

    >>> import numpy as np
    >>> from streamsel import PCA

    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(100, 3))
    >>> X = hidden @ rng.normal(size=(3, 2_000)) + rng.normal(size=(100, 2_000))

    >>> model = PCA(n_components="parallel")
    >>> model.learn_columns(X)
    >>> model.n_components_found
    3
    >>> model.explained_variance_ratio.round(2)
    array([0.29, 0.25, 0.22])

    The scores are exact. The loadings of all columns take a second pass:

    >>> model.embedding.shape
    (100, 3)
    >>> model.learn_loadings(X)

    It also learns from rows, by name, in River:

    >>> model.learn_one(dict(enumerate(X[0])))
    >>> list(model.transform_one(dict(enumerate(X[1]))))[:2]
    ['pca0', 'pca1']
    """

    _row_state_type = LowRankCrossMoments
    _needs_leading_axes_only = True

    n_components: int | float | str = param(  # type: ignore[assignment]
        params.ChoiceOrNumber(
            params.ChoiceRule(tuple(N_COMPONENTS_RULES)),
            (
                params.IntRule(1, below=params.MAX_COUNT),
                params.FloatRule(0.0, open=True, below=1.0),
            ),
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
    def _fixed_n_components(self) -> int | None:
        asked = self.n_components
        return int(asked) if isinstance(asked, numbers.Integral) else None

    @property
    def _n_outputs(self) -> int:
        if self._fixed_n_components is not None:
            return self._fixed_n_components
        return (
            int(self._map_in_use().weights.shape[1])
            if self._phase.on_rows
            else max(1, self.n_components_found)
        )

    @property
    def _full_matrix_hint(self) -> str:
        if self._fixed_n_components is None:
            return "n_components as a number of components needs the leading axes only."
        return ""

    # Rows

    def _new_row_extension(self) -> LowRankCrossMoments:
        # Joint moments are affordable for a bounded number of variables; `scale`, which changes
        # with every row, and rules that need all eigenvalues require them.
        is_few = self.max_features is not None or self.scale or bool(self._full_matrix_hint)
        return LowRankCrossMoments(
            self.fading_factor, None if is_few else _MAX_JOINT_VARIABLES, self._n_axes
        )

    # Components

    def _dual_weights(self, inner: GramView, q: int) -> Floats:
        asked = self.n_components
        if isinstance(asked, str):
            q = N_COMPONENTS_RULES[asked](inner)
        elif self._fixed_n_components is None:
            q = min(q, n_for_share(inner, asked))
        d, E = inner.axes(q)
        return E / np.sqrt(d)

    @property
    def _stop_reason(self) -> str:
        if self._fixed_n_components is None:
            return f"n_components={self.n_components!r} keeps none"
        return super()._stop_reason

    # Results

    @property
    def n_components_found(self) -> int:
        """Number of components that exist; further ones requested are 0."""
        found = self._solution()
        return 0 if found is None else found.scores.shape[1]

    @property
    def explained_variance(self) -> Floats:
        """Variance of each component, (n_components_found,), with ddof=1."""
        found = self._solution()
        if found is None:
            return np.zeros(0)
        variance: Floats = np.square(found.scores).sum(axis=0) / found.weight
        return variance

    @property
    def explained_variance_ratio(self) -> Floats:
        """Share of each component in the variance of all variables, (n_components_found,)."""
        found = self._solution()
        if found is None:
            return np.zeros(0)
        ratio: Floats = np.square(found.scores).sum(axis=0) / found.trace
        return ratio

    @property
    def reconstruction_error(self) -> float:
        """Variance outside the components, Σ λ_k over k > q; NaN before there is a component."""
        found = self._solution()
        if found is None:
            return float("nan")
        return max(0.0, found.trace / found.weight - float(self.explained_variance.sum()))

    def reconstruct(self, X: Any, names: Sequence[Any] | None = None) -> ColumnStream:
        """Return the projection of columns on the components, their best approximation of rank q.

        Parameters
        ----------
        X, names
            As in `learn_columns`: columns of the rows learnt, the same columns or others.

        Returns
        -------
        A stream of the means of the columns plus their projections on the components; both are
        weighted if the rows learnt have weights, and NaN in a row of weight 0.

        Raises
        ------
        ValueError
            Before columns were learnt, and after rows, whose observations are not stored. When the
            stream is read: for columns of another length, and for a column with a missing or
            infinite value.
        TypeError
            When the stream is read: for a column that does not contain real numbers.

        Notes
        -----
        Costs O(n q) per column and one block of memory; columns are read lazily, as the stream is
        iterated over.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel import PCA
        >>> X = np.outer([1.0, 2.0, 4.0], [1.0, -1.0, 3.0])
        >>> model = PCA(1)
        >>> model.learn_columns(X)
        >>> for name, values in model.reconstruct(X):
        ...     print(name, values.round(6))
        0 [1. 2. 4.]
        1 [-1. -2. -4.]
        2 [ 3.  6. 12.]
        """
        Z = self.embedding
        if self._columns is None:
            raise ValueError(
                "Expected a model that has learnt columns. Got: none yet.\n"
                "Hint: learn_columns(X) first."
            )
        row_transform = None if self._target is None else self._target.row_transform
        Z = self._embedding()
        length = np.linalg.norm(Z, axis=0)
        basis = Z[:, length > 0.0] / length[length > 0.0]
        source = self._numeric_stream(X, names)

        def blocks() -> Iterator[Block]:
            for block in source.blocks():
                for chunk in iter_chunks(block, len(Z)):
                    yield from _reconstructed(chunk, basis, row_transform)

        return ColumnStream(
            blocks,
            n_rows=len(Z),
            n_columns=source.n_columns,
            reiterable=source.reiterable,
            names=source.names,
        )

    def report(self) -> Report:
        """Return the results as a `Report`: the source of the command's output and the HTML report.

        Returns
        -------
        One row per component: its share of the variance, and its loadings, the largest first.
        """
        report = super().report()
        ratio = self.explained_variance_ratio
        shares = dict(zip(self._names_of(ratio.size), ratio.tolist(), strict=True))
        found = [row | {"share": shares[row["name"]]} for row in report.results]
        share = {"share_of_variance": float(sum(shares.values()))} if found else {}
        return replace(report, results=found, details=report.details | share)


def _reconstructed(
    chunk: Chunk, basis: Floats, row_transform: RowTransform | None
) -> Iterator[Block]:
    """Yield columns projected on an orthonormal basis (n, q), about their means, in batches.

    With weights or relatedness, the basis is that of transformed columns.
    """
    step = max(1, _BATCH_BYTES // (8 * chunk.n))
    for start in range(0, len(chunk.names), step):
        indices = np.arange(start, min(start + step, len(chunk.names)))
        X = chunk.columns(indices)
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if bad.size:
            raise bad_column_error(chunk.names[start + bad[0]], X[bad[0]])
        if row_transform is None:
            mean = X.mean(axis=1, keepdims=True)
            projected = ((X @ basis) @ basis.T + mean).T
        else:
            X, mean, low = row_transform.transform(X)
            projected = row_transform.inverse_transform(basis @ (X @ basis).T) + (mean + low)
        yield Block(chunk.names[start : start + step], projected)
