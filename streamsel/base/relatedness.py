"""Relatedness of observations: matrices from one pass over columns, and their checks."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel.data.columns import bad_column_error, iter_chunks
from streamsel.state.gram.gram import MAX_GRAM_ROWS
from streamsel.stream import as_stream
from streamsel.targets.encoding import is_missing
from streamsel.targets.kept_rows import KeptRows, same_kept_rows
from streamsel.targets.reml import Spectrum
from streamsel.targets.target import NoTarget
from streamsel.targets.whitening import Groups, Whitening, as_group, group_of

if TYPE_CHECKING:
    from streamsel.state.gram.gram import Gram
    from streamsel.stream import ColumnStream

Floats = NDArray[np.float64]

AUTO = "auto"
# Rounding errors of matrices, in parts of the largest value or eigenvalue: text files have about
# ten digits.
_ASYMMETRY, _NEGATIVE = 1e-6, 1e-6


class Relatedness:
    r"""Relatedness of observations, for which selection and components are adjusted.

    In $y = Zb + u + e$ the random effect $u$ has the covariance $\sigma_u^2 K$. With
    `learn_target(y, relatedness=...)` the variance ratio $\lambda = \sigma_u^2 / \sigma_e^2$ is
    estimated by restricted maximum likelihood (REML), covariates and intercept included, and every
    column and the target are whitened by $V^{-1/2}$, $V = \lambda K + I$. Relevances are then those
    of generalised least squares: `SelectKBest` becomes the mixed-model association test,
    `ForwardSelection(exact=True)` a multi-locus mixed model, `Lasso` a Lasso given relatedness.

    Parameters
    ----------
    K
        (n, n) symmetric, positive semi-definite matrix: the covariance of the random effect, up to
        a factor. Or a dict: group -> the matrix without the columns of that group; the group None,
        if there is one, is for the columns of all other groups.
    groups
        The group of every column, such as its chromosome: a dict: name -> group, or a function of
        the name. A missing group (None, NaN, NA) is unknown, as is that of a name not in the dict.
        Required with a dict of matrices; use `from_columns` to compute them. Copies and files store
        a dict, not a function: a copied or loaded model with a function cannot learn further
        columns, and its statistics lack effects and standard errors.
    ratio
        The variance ratio $\lambda$, at least 0; None estimates it. The estimate is 0 if $K$ is a
        multiple of the identity: the likelihood then does not depend on $\lambda$.

    Raises
    ------
    ValueError
        For a matrix that is not square, symmetric, finite or positive semi-definite up to rounding,
        and for more than 15,000 rows.
    TypeError
        For values that are not numbers.

    Notes
    -----
    The p-value is that of the F test of generalised least squares given $\lambda$, which is
    estimated once, without the tested column (EMMAX; Kang et al. 2010). It ignores the uncertainty
    of $\lambda$. If a column explains much of the variance, re-estimating $\lambda$ with it gives a
    smaller p-value.

    **Groups.** If a column is part of $K$, it also competes with itself for the variance, which
    costs power. Leaving out its group, for instance its chromosome, avoids this: every group has
    its own $V$ and $\lambda$. Only learners that test each column by itself support groups.

    **Rounding.** Whitening a column is a product of BLAS. With one thread of BLAS
    (`OPENBLAS_NUM_THREADS=1`), results are the same to the bit however columns are divided into
    blocks; with several threads, the last digits may differ.

    **Prediction.** Selection given relatedness does not predict better: columns that mark families
    predict, too, and are then discounted. `RidgeComponents(1, relevance_power=0.0)`, without
    relatedness, predicts from all columns: its first component is the best linear unbiased
    prediction (GBLUP) with the ridge by REML, of columns scaled to equal variance. On a held-out
    half of 1,410 related mice, the mean $R^2$ of three splits was 0.45 for all 12,226 columns. It
    was 0.42 for 50 variables that `ForwardSelection` selected without relatedness, 0.36 with it.

    **Cost.** An eigendecomposition, $O(n^3)$, per matrix, once per target; $2n^2$ operations per
    column. `from_columns` costs $n^2$ operations per column.

    **Memory.** $8n^2$ bytes per matrix here, and as many in a model and in its file.

    References
    ----------
    [^1]: Kang, H. M. et al. (2010). Variance component model to account for sample structure in
    genome-wide association studies. Nature Genetics 42, 348-354.

    [^2]: Zhou, X. and Stephens, M. (2012). Genome-wide efficient mixed-model analysis for
    association studies. Nature Genetics 44, 821-824.

    Examples
    --------
    Two families of 50 differ in all columns and in the target, whatever column 3 contributes:

    >>> import numpy as np
    >>> from streamsel import Relatedness, SelectKBest

    >>> rng = np.random.default_rng(0)
    >>> family = np.repeat([0.0, 1.0], 50)[:, None]
    >>> X = rng.normal(size=(100, 300)) + family * rng.normal(size=300)
    >>> y = 0.5 * X[:, 3] + 3.0 * family[:, 0] + rng.normal(size=100)

    >>> model = SelectKBest(fdr=0.05)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> len(model.selected) > 100
    True

    >>> model = SelectKBest(fdr=0.05)
    >>> model.learn_target(y, relatedness=Relatedness.from_columns(X))
    >>> model.learn_columns(X)
    >>> model.selected
    [3]
    >>> model.variance_components[None].heritability > 0.5
    True
    """

    def __init__(self, K: Any, groups: Groups | None = None, ratio: float | None = None) -> None:
        groups = _checked_groups(groups)
        if isinstance(K, Mapping):
            if groups is None or not K:
                raise ValueError(
                    "Expected groups of columns with a dict of matrices, one or more. Got: "
                    f"groups={groups!r}, {len(K)} matrices.\n"
                    "Hint: groups={column: group}, or a function of the column's name."
                )
            # The matrix of all other groups comes first: it transforms the target.
            order = sorted(K, key=lambda group: as_group(group) is not None)
            self._matrices = {as_group(group): _checked(K[group]) for group in order}
            sizes = {len(matrix) for matrix in self._matrices.values()}
            if len(sizes) > 1:
                raise ValueError(
                    f"Expected matrices of one shape. Got: {', '.join(map(str, sorted(sizes)))} "
                    "rows."
                )
        else:
            if groups is not None:
                raise ValueError(
                    "Expected a dict of matrices with groups: group -> matrix without its columns. "
                    "Got: a single matrix.\n"
                    "Hint: Relatedness.from_columns(X, groups) computes them in one pass."
                )
            self._matrices = {None: _checked(K)}
        rule = params.FloatRule(0.0, optional=True)
        params.check("Relatedness", {"ratio": rule}, {"ratio": ratio})
        self.groups = groups
        self.ratio = None if ratio is None else float(ratio)
        # The rows that the model of a Gram matrix used; None if it is not known.
        self._kept: KeptRows | None = None

    @classmethod
    def from_columns(cls, source: Any, groups: Groups | None = None) -> Self:
        r"""Compute relatedness from columns, in one pass: $K = \sum \tilde x \tilde x^T / p$.

        Parameters
        ----------
        source
            Columns, as `learn_columns` accepts them. They are centred and not scaled; a constant
            column is ignored.
        groups
            The group of every column, as in the constructor. The result has one matrix per group,
            of all columns outside it, and one of all columns. None for a single matrix.

        Raises
        ------
        ValueError, TypeError
            As `learn_columns`, for a missing value for instance; if no column varies; if no column
            has a group, or one group has all; and for more than 15,000 rows.

        Notes
        -----
        Costs $n^2$ operations per column. Memory is $4n^2$ bytes, per group if there are any,
        and $8n^2$ per matrix of the result. The matrix does not depend on how columns are divided
        into blocks.
        """
        return cls.from_stream(as_stream(source, None), groups)

    @classmethod
    def from_stream(
        cls,
        stream: ColumnStream,
        groups: Groups | None = None,
        kept: KeptRows | None = None,
        n_jobs: int = 1,
    ) -> Self:
        """Compute relatedness of the rows in `kept`, None for all, from columns."""
        groups = _checked_groups(groups)
        sums = _GramsByGroup(groups, n_jobs)
        for block in stream.blocks():
            sums.add(block, kept)
        total, p = sums.total()
        if groups is None:
            return cls(total / p)
        if sums.grams.keys() <= {None}:
            got = "a function that returns none"
            if isinstance(groups, Mapping):
                known = (name for name, group in groups.items() if group is not None)
                some = [*islice(known, 5)]
                got = f"groups of {some!r:.60}, and columns such as {sums.example!r:.60}"
            raise ValueError(
                f"Expected a group of one of the columns, to leave it out. Got: {got}.\n"
                "Hint: groups={column: group}; its keys are the names of the columns."
            )
        for group, size in sums.sizes.items():
            if p == size and group is not None:
                raise ValueError(
                    "Expected two groups or more, to leave out one of them. Got: all columns in "
                    f"group {params.parameter_repr(group)}."
                )
        return cls({None: total / p} | sums.means_of_others(), groups)

    @property
    def n_rows(self) -> int:
        """Number of observations."""
        return len(next(iter(self._matrices.values())))

    @property
    def matrix(self) -> Floats:
        """(n, n) the matrix; with groups, that of the group None, or else of the first."""
        return next(iter(self._matrices.values()))

    def __repr__(self) -> str:
        matrices = "" if self.groups is None else f", {len(self._matrices)} matrices"
        return f"{type(self).__name__}({self.n_rows} rows{matrices}, ratio={self.ratio})"

    def restricted(self, kept: KeptRows | None) -> Relatedness:
        """Return the relatedness of some rows; ValueError if it is that of other rows."""
        if kept is None:
            return self
        if self.n_rows == kept.index.size:
            if self._kept is not None and not same_kept_rows(self._kept, kept):
                raise ValueError(
                    "Expected relatedness of the rows that have a target. Got: that of a model "
                    "which has excluded other rows.\n"
                    "Hint: Relatedness.from_columns(X) computes that of all rows."
                )
            return self
        if kept.n != self.n_rows:
            raise wrong_rows_error(self.n_rows, kept.n)
        rows = np.ix_(kept.index, kept.index)
        matrices = {group: K[rows] for group, K in self._matrices.items()}
        K = matrices[None] if self.groups is None else matrices
        return Relatedness(K, self.groups, self.ratio)

    def whiten(self, target: Floats, covariates: Floats) -> Whitening:
        """Return the whitening of observations with these targets (n, c), covariates (n, d)."""
        if len(target) != self.n_rows:
            raise wrong_rows_error(self.n_rows, len(target))
        return Whitening.of(self._spectra(), target, covariates, self.groups, self.ratio)

    def _spectra(self) -> Iterator[tuple[Hashable, Spectrum]]:
        if self.groups is None:
            yield None, self._spectrum
            return
        for group, K in self._matrices.items():
            yield group, Spectrum.of(K, _NEGATIVE)

    @functools.cached_property
    def _spectrum(self) -> Spectrum:
        """Eigendecomposition of a single matrix, which several targets may share."""
        return Spectrum.of(self.matrix, _NEGATIVE)


class _GramsByGroup:
    """Gram matrices of centred columns, one per group."""

    def __init__(self, groups: Groups | None, n_jobs: int) -> None:
        self._groups, self._n_jobs = groups, n_jobs
        self.grams: dict[Hashable, Gram] = {}
        self.sizes: dict[Hashable, int] = {}
        self.example: Hashable = None

    def add(self, block: Any, kept: KeptRows | None) -> None:
        """Add the columns of a block."""
        from streamsel.state.gram.gram import Gram

        n = block.values.shape[0] if kept is None else kept.index.size
        if n > MAX_GRAM_ROWS:
            raise too_many_rows_error(n)
        target = NoTarget(n)
        for chunk in iter_chunks(block, n, None, kept):
            self.example = chunk.names[0]
            stats = chunk.scan(target, 1)
            bad = np.flatnonzero(~np.isfinite(stats.m2))
            if bad.size:
                raise bad_column_error(chunk.names[bad[0]], chunk.column(int(bad[0])), kept)
            varies = stats.m2 > 0.0
            for group, members in self._members(chunk.names):
                weights = (varies & members).astype(np.float64)
                if group not in self.grams:
                    self.grams[group] = Gram(n, n_jobs=self._n_jobs)
                gram = self.grams[group]
                gram.add(chunk, stats, weights[:, None])
                self.sizes[group] = self.sizes.get(group, 0) + int(weights.sum())

    def _members(self, names: Any) -> Iterator[tuple[Hashable, NDArray[np.bool_]]]:
        """Yield the groups of columns, and which columns belong to each."""
        groups = self._groups
        if groups is None:
            yield None, np.ones(len(names), dtype=np.bool_)
            return
        members: dict[Hashable, NDArray[np.bool_]] = {}
        for j, name in enumerate(names):
            group = group_of(groups, name)
            if group not in members:
                members[group] = np.zeros(len(names), dtype=np.bool_)
            members[group][j] = True
        yield from members.items()

    def total(self) -> tuple[Floats, int]:
        """Return the sum of all groups, and the number of columns; ValueError if none varies."""
        p = sum(self.sizes.values())
        if not p:
            raise ValueError("Expected a column that varies, to compute relatedness. Got: none.")
        first, *others = self.grams.values()
        total = first.matrix()
        for gram in others:
            total += gram.matrix()
        return total, p

    def means_of_others(self) -> dict[Hashable, Floats]:
        """Return the mean over the columns outside each known group, by group.

        Sums of the groups before and after each, as a difference would lose columns of a much
        smaller scale than those left out.
        """
        groups, found = list(self.grams), dict[Hashable, Floats]()
        if groups == [None]:
            return found
        for order in (groups, groups[::-1]):
            total = np.zeros((self.grams[order[0]].n,) * 2)
            for group in order:
                if group is not None:
                    found[group] = total.copy() if group not in found else found[group] + total
                total += self.grams[group].matrix()
        p = sum(self.sizes.values())
        return {group: matrix / (p - self.sizes[group]) for group, matrix in found.items()}


def as_relatedness(value: Any) -> Relatedness:
    """Convert the argument of `learn_target`: a matrix, an object, or a learner."""
    if isinstance(value, Relatedness):
        return value
    # Most runs have no relatedness: Gram matrices import much of scipy.
    from streamsel.state.gram.pooled import SharedGram

    state = getattr(value, "_columns", None)
    if isinstance(state, SharedGram):
        if state.rank is not None:
            raise ValueError(
                f"Expected a model that keeps a Gram matrix. Got: a model of {state.n} rows that "
                "keeps only the leading axes.\nHint: use a larger max_gram_rows there."
            )
        has_covariates = state.pool.covariate_basis is not None
        if has_covariates or value._target.row_transform is not None:
            got = "covariates" if has_covariates else "weights or relatedness"
            raise ValueError(
                f"Expected a Gram matrix of the columns themselves. Got: a model with {got}.\n"
                "Hint: PCA().learn_columns(X) without a target."
            )
        # Scaled columns have length 1; columns of variance 1 have mean square 1.
        unit = state.n if state.scaled else 1
        found = Relatedness(state.matrix() / max(1, state.n_varying) * unit)
        found._kept = value._target.kept
        return found
    if isinstance(value, str) or hasattr(value, "learn_columns"):
        raise TypeError(
            'Expected relatedness=None, "auto", an (n, n) matrix, a Relatedness, or a model that '
            f"has a Gram matrix of columns, such as PCA. Got: {params.parameter_repr(value)}.\n"
            "Hint: Relatedness.from_columns(X) computes the matrix."
        )
    return Relatedness(value)


def _checked_groups(groups: Any) -> Groups | None:
    """Return groups of columns with names and groups as files store them."""
    if groups is None or callable(groups):
        found: Groups | None = groups
        return found
    if isinstance(groups, Mapping):
        # A missing name, from a table for instance, names no column.
        return {
            _plain(name): as_group(group)
            for name, group in groups.items()
            if name is None or not is_missing(_plain(name))
        }
    raise TypeError(
        "Expected groups of columns as a dict: name -> group, or a function of the name. Got: "
        f"{type(groups).__name__}.\nHint: groups=dict(zip(names, chromosomes))."
    )


def _plain(value: Any) -> Hashable:
    """Return a NumPy number as a number of Python."""
    found: Hashable = value.item() if isinstance(value, np.generic) else value
    return found


def _checked(K: Any) -> Floats:
    """Return a symmetric, finite matrix as float64; else raise ValueError or TypeError."""
    if hasattr(K, "toarray"):
        K = K.toarray()
    try:
        given = np.asarray(K)
        found = None if np.iscomplexobj(given) else np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        found = None
    if found is None:
        raise TypeError(
            f"Expected an (n, n) matrix of real numbers as relatedness. Got: {K!r:.60}."
        )
    if found.ndim != 2 or found.shape[0] != found.shape[1] or found.shape[0] < 2:
        raise ValueError(
            f"Expected relatedness as a square matrix, (n, n), n >= 2. Got: shape {found.shape}."
        )
    if len(found) > MAX_GRAM_ROWS:
        raise too_many_rows_error(len(found))
    if not np.isfinite(found).all():
        row, column = np.argwhere(~np.isfinite(found))[0]
        raise ValueError(
            f"Expected finite relatedness. Got: {found[row, column]} in row {row}, column {column}."
        )
    largest = float(np.abs(found).max())
    gap = np.abs(found - found.T)
    if gap.max() > _ASYMMETRY * largest:
        row, column = np.unravel_index(gap.argmax(), gap.shape)
        raise ValueError(
            f"Expected a symmetric relatedness matrix. Got: {found[row, column]} in row {row}, "
            f"column {column}, and {found[column, row]} in row {column}, column {row}."
        )
    found += found.T
    found *= 0.5
    found.flags.writeable = False
    return found


def too_many_rows_error(n: int) -> ValueError:
    """Return the error for more observations than a relatedness matrix may have."""
    return ValueError(
        f"Expected relatedness of at most {MAX_GRAM_ROWS} rows. Got: {n}.\n"
        "Hint: pass the leading principal components as covariates: covariates=pca.embedding."
    )


def wrong_rows_error(got: int, n: int) -> ValueError:
    """Return the error for relatedness of another number of rows than the target's."""
    return ValueError(
        f"Expected relatedness of {n} rows, as the target has. Got: {got}.\n"
        "Hint: rows of the matrix are those of the target, in the same order."
    )
