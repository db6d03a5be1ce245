"""Knockoffs: generated columns that correlate with neighbouring columns as the originals do."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel._kernels.knockoffs import fill_knockoffs, fill_unit_residuals
from streamsel.data.chunks import Block
from streamsel.data.columns import iter_chunks
from streamsel.data.names import KNOCKOFF, knockoff_source
from streamsel.stream._coerce import as_stream
from streamsel.stream._distant_dependence import DistantDependence
from streamsel.stream._probes import row_order
from streamsel.stream._stream import ColumnStream, restricted
from streamsel.targets.encoding import encode_covariates
from streamsel.targets.kept_rows import KeptRows

Floats = NDArray[np.float64]

PairCallback = Callable[[list[Hashable], Floats, Floats], None]
PassCallback = Callable[["WithKnockoffs"], None]

# Knockoffs generated at once, and the bytes that they and their columns may take.
_MIN_BATCH, _MAX_BATCH, _BATCH_BYTES = 8, 64, 2 << 20
_MAX_WINDOW = 200
# Columns before, with their knockoffs, that a column is regressed on: multiple of the window.
_BEHIND = 4
# Rows for each number that is estimated: with fewer, a knockoff is nearly a copy of its column.
_ROWS_PER_REGRESSOR = 2
# A smaller share of the square of a column is rounding error.
_MIN_SHARE = 1e-10


def with_knockoffs(
    X: Any, window: int = 5, *, covariates: Any = None, seed: int = 0
) -> WithKnockoffs:
    r"""Add to each column a knockoff, a column with the same correlations with its neighbours.

    Knockoffs are generated without the target: a model that distinguishes a column from its
    knockoff does so by the target. This bounds the false discovery rate of
    [`knockoff_filter`](evaluate.md#streamsel.evaluate.knockoff_filter).

    Parameters
    ----------
    X
        The columns, in an order in which each depends on its neighbours only, such as genotypes
        along a chromosome, or spectra: a `ColumnStream`, or any input that `as_stream` accepts. Its
        rows are independent, given the covariates.
    window
        Number w of columns, from 1 to 200, beyond which a column depends on no other, given those
        between.
    covariates
        Variables of the rows on which columns may depend too, such as principal components that
        represent ancestry: numbers of shape (n,) or (n, m), labels, or a frame.
    seed
        Seed of the random numbers, from 0 to 2**128 - 1.

    Returns
    -------
    WithKnockoffs
        A stream of the columns of `X` as float64, each with its knockoff, which is named
        `("knockoff", name)`; which of the two comes first is random. It is re-readable if `X` is,
        and the same in every pass and for any partition into blocks.

    Raises
    ------
    ValueError
        If `window` or `seed` is out of range. While reading: if there are too few rows, $n \le 2
        (5 w + m + 1)$; for a missing or infinite value, for groups of columns, and for a column
        with the name of a knockoff.
    TypeError
        For columns that are not numbers.

    Notes
    -----
    Knockoffs are generated one after another[^1]. Column $x_j$ is regressed on the w columns after
    it, on the sums $x_i + \tilde x_i$ of the 4w columns before it and their knockoffs, a constant
    and the covariates: $x_j = \hat x_j + e_j$. Its knockoff is $\tilde x_j = \hat x_j + \tilde
    e_j$. Here $\tilde e_j$ is the residual in a random order of the rows, made orthogonal to all
    regressors and to $e_j$, and scaled to the norm of $e_j$. Hence $\tilde x_j$ has the mean and
    the norm of $x_j$, and the same products with all regressors.

    If columns are jointly normal, and a column given the w on either side of it is independent of
    all others, exchanging a column for its knockoff changes no distribution, up to errors of
    estimation. Exchangeability makes the coefficients of $x_i$ and $\tilde x_i$ equal; therefore
    sums suffice. They decay with the distance, but do not end at w: $\tilde x_{j - w}$ was
    generated given $x_j$ and columns before, which couples these. In twelve examples for each w
    from 1 to 3, an exchange changed correlations by at most:

    | columns before | largest change |
    |---|---|
    | 4w | 0.02, mostly below 0.006 |
    | 2w | 0.05 |
    | w | 0.12 |

    He et al.[^2] generate knockoffs of genotypes in the same way, and choose the neighbours by
    correlation.

    A column that its neighbours explain is its own knockoff, from which no model distinguishes it.
    Apply [`prune`](stream.md#streamsel.stream.prune) first to exclude columns that nearly repeat
    others.

    Time is $O(n w)$ and $O(w^3)$ per column; memory is $O(n (w + b))$, where b columns are
    generated at a time: 2 MiB of them, from 8 to 64. With w = 5:

    | rows | memory |
    |---|---|
    | 2,000 | 27 MB |
    | 20,000 | 57 MB |
    | 200,000 | 520 MB |

    References
    ----------
    [^1]: Candès, E., Fan, Y., Janson, L. and Lv, J. (2018). Panning for gold: 'model-X' knockoffs
    for high dimensional controlled variable selection. Journal of the Royal Statistical Society B
    80, 551–577. Algorithm 1.

    [^2]: He, Z. et al. (2021). Identification of putative causal loci in whole-genome sequencing
    data via knockoff statistics. Nature Communications 12, 3152.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel.stream import with_knockoffs
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=(200, 8)), axis=1)
    >>> pairs = dict(with_knockoffs(walk, window=1))
    >>> len(pairs)
    16
    >>> copy = pairs["knockoff", 4]
    >>> np.corrcoef([copy, walk[:, 3], walk[:, 4], walk[:, 5]])[0].round(2).tolist()
    [1.0, 0.88, 0.92, 0.91]
    >>> np.corrcoef([walk[:, 4], walk[:, 3], walk[:, 5]])[0].round(2).tolist()
    [1.0, 0.88, 0.91]
    """
    return WithKnockoffs(as_stream(X), window, covariates, seed)


class WithKnockoffs(ColumnStream):
    """The stream that `with_knockoffs` returns.

    Attributes
    ----------
    window
        As passed.
    n_pairs
        Number of columns that have a knockoff that differs from them, in the last complete pass:
        those that vary, and that their neighbours do not explain.
    distant_share
        Share of a sample of at most 32 columns that correlate with a distant column, given their
        neighbours; NaN before a complete pass, and for fewer than about 40 columns. If it is not
        small, knockoffs are not valid.
    row_correlation
        Mean correlation of the residuals of adjacent rows, over all columns; NaN before a complete
        pass.
    """

    def __init__(
        self,
        stream: ColumnStream,
        window: int = 5,
        covariates: Any = None,
        seed: int = 0,
        on_pairs: PairCallback | None = None,
        on_pass: PassCallback | None = None,
        kept: KeptRows | None = None,
    ) -> None:
        params.check(
            "with_knockoffs",
            {
                "window": params.IntRule(1, below=_MAX_WINDOW + 1),
                "seed": params.IntRule(0, below=2**128),
            },
            {"window": window, "seed": seed},
        )
        super().__init__(
            self._pairs,
            n_rows=stream.n_rows if kept is None else kept.index.size,
            n_columns=None if stream.n_columns is None else 2 * stream.n_columns,
            reiterable=stream.reiterable,
            row_metadata=stream.row_metadata,
            column_metadata=stream.column_metadata,
        )
        self._source, self._seed, self._kept = stream, int(seed), kept
        # Called with pairs of the first pass, and at its end.
        self._on_pairs, self._on_pass = on_pairs, on_pass
        self._covariates = None if covariates is None else encode_covariates(covariates, None)
        self.window = int(window)
        self.n_pairs = 0
        self.distant_share = self.row_correlation = float("nan")

    def _pairs(self) -> Iterator[Block]:
        generator: _Generator | None = None
        for block in restricted(self._source, self._kept).blocks():
            if generator is None:
                n = block.values.shape[0] if self._kept is None else self._kept.index.size
                basis = self._basis(n)
                generator = _Generator(basis, self.window, self._seed, self._on_pairs)
            if block.groups is not None:
                raise ValueError(
                    "Expected columns without groups, since a knockoff imitates one column. Got: "
                    "groups.\nHint: SelectKBest has p-values of groups."
                )
            for chunk in iter_chunks(block, generator.n, kept=self._kept):
                every = np.arange(len(chunk.names))
                for start in range(0, every.size, generator.batch):
                    which = every[start : start + generator.batch]
                    names = [chunk.names[j] for j in which.tolist()]
                    yield from generator.add(names, chunk.columns(which))
        if generator is None:
            return
        yield from generator.finish()
        self.n_pairs = generator.n_pairs
        self.distant_share = generator.distant.share()
        self.row_correlation = generator.row_correlation()
        if self._on_pass is not None:
            self._on_pass(self)
        self._on_pairs = self._on_pass = None

    def _basis(self, n: int) -> Floats:
        """Return an orthonormal basis (q, n) of the constant vector and the covariates."""
        self._expect_rows(n, 0)
        rows = np.ones((1, n))
        if self._covariates is not None:
            columns = self._covariates.columns
            if len(columns) != n:
                raise ValueError(
                    f"Expected covariates of {n} rows, as columns have. Got: {len(columns)}."
                )
            largest = np.abs(columns).max(axis=0, initial=0.0)
            columns = columns / np.where(largest > 0.0, largest, 1.0)
            rows = np.vstack([rows, (columns - columns.mean(axis=0)).T])
        lengths = np.linalg.norm(rows, axis=1)
        rows = rows[lengths > 0.0] / lengths[lengths > 0.0][:, None]
        _, values, basis = np.linalg.svd(rows, full_matrices=False)
        basis = basis[values > np.sqrt(_MIN_SHARE) * values[0]]
        self._expect_rows(n, len(basis) - 1)
        return np.ascontiguousarray(basis)

    def _expect_rows(self, n: int, n_covariates: int) -> None:
        neighbours = (1 + _BEHIND) * self.window
        if self._source.n_columns is not None:
            neighbours = min(neighbours, self._source.n_columns)
        estimated = neighbours + 1 + n_covariates
        if n <= _ROWS_PER_REGRESSOR * estimated:
            raise ValueError(
                f"Expected more than {_ROWS_PER_REGRESSOR * estimated} rows for knockoffs with "
                f"window={self.window} and {n_covariates} covariates. Got: {n}.\n"
                "Hint: choose a smaller window."
            )


class _Generator:
    """Knockoffs of columns that arrive in order.

    Parameters
    ----------
    basis
        (q, n) orthonormal rows: the constant vector, and covariates.
    window, seed
        As in `with_knockoffs`.
    on_pairs
        Called with names, and with the columns and their knockoffs, (b, n), without the parts that
        `basis` explains.

    Attributes
    ----------
    n
        Number of rows.
    batch
        Number of columns whose knockoffs are generated at once, and that `add` takes at most.
    n_pairs
        Number of columns so far that have a knockoff that differs from them.
    distant
        Dependence between distant columns.
    """

    def __init__(
        self, basis: Floats, window: int, seed: int, on_pairs: PairCallback | None
    ) -> None:
        self.n = n = basis.shape[1]
        self._basis, self._window, self._seed, self._on_pairs = basis, window, seed, on_pairs
        # The partition into batches, on which rounding errors depend, depends on n and w only.
        self.batch = int(np.clip(_BATCH_BYTES // (16 * n), _MIN_BATCH, _MAX_BATCH))
        ahead = window + 2 * self.batch
        size = _BEHIND * window + ahead
        # Columns before those without a knockoff, these, and columns ahead, of length 1; and their
        # sums with the knockoffs.
        self._X, self._S = np.zeros((size, n)), np.zeros((size, n))
        # Of columns without a knockoff: their names, values and lengths.
        self._names: list[Hashable] = []
        self._values, self._lengths = np.zeros((ahead, n)), np.zeros(ahead)
        self._n_before = self._n_done = 0
        self.n_pairs, self._sum_of_row_correlations = 0, 0.0
        self.distant = DistantDependence(n, 2 * window)

    def add(self, names: list[Hashable], values: Floats) -> Iterator[Block]:
        """Add columns (b, n), b <= batch; yield the knockoffs whose neighbours are known."""
        reserved = next(filter(knockoff_source, names), None)
        if reserved is not None:
            raise ValueError(
                "Expected columns that are no knockoffs, whose names are reserved. Got: "
                f"{params.parameter_repr(reserved)}.\nHint: rename it."
            )
        first, last = len(self._names), len(self._names) + len(names)
        units = self._X[self._n_before + first : self._n_before + last]
        j = fill_unit_residuals(values, self._basis, _MIN_SHARE, units, self._lengths[first:last])
        if j >= 0:
            row = int(np.argmin(np.isfinite(values[j])))
            raise ValueError(
                f"Expected finite values for knockoffs. Got: {values[j, row]} in column "
                f"{params.parameter_repr(names[j]):.60}, row {row}.\n"
                "Hint: stream.clean(X, missing='mean') replaces missing values."
            )
        self._values[first:last] = values
        self._names += names
        while len(self._names) >= self.batch + self._window:
            yield self._generate(self.batch)

    def finish(self) -> Iterator[Block]:
        """Yield the remaining knockoffs."""
        while self._names:
            yield self._generate(min(self.batch, len(self._names)))

    def _generate(self, b: int) -> Block:
        """Return the next b columns with their knockoffs."""
        # As many columns ahead as are needed, not as there are: products depend on the number.
        before = self._n_before
        m = before + min(len(self._names), self.batch + self._window)
        X, S, n = self._X[:m], self._S[:m], self._X.shape[1]
        SX, SS = np.zeros((m, m)), np.zeros((m, m))
        SX[:before] = S[:before] @ X.T
        SS[:before, :before] = S[:before] @ S[:before].T
        order = np.array([row_order(self._seed, self._n_done + i, n) for i in range(b)])
        residual, permuted = np.empty((b, n)), np.empty((b, n))
        fill_knockoffs(
            X,
            S,
            X @ X.T,
            SX,
            SS,
            self._basis,
            order,
            before,
            self._window,
            _BEHIND * self._window,
            residual,
            permuted,
        )
        here = slice(before, before + b)
        squares = np.einsum("ij,ij->i", residual, residual)
        lagged = np.einsum("ij,ij->i", residual[:, 1:], residual[:, :-1])
        self.n_pairs += int(np.count_nonzero(squares))
        self._sum_of_row_correlations += float((lagged / np.where(squares > 0, squares, 1.0)).sum())
        self.distant.add(X[here], residual, permuted)
        names = self._names[:b]
        if self._on_pairs is not None:
            self._on_pairs(names, X[here], S[here] - X[here])
        block = self._paired(names, permuted - residual, order)
        self._shift(b)
        return block

    def row_correlation(self) -> float:
        """Return the mean correlation of the residuals of adjacent rows."""
        return self._sum_of_row_correlations / self.n_pairs if self.n_pairs else float("nan")

    def _paired(self, names: list[Hashable], change: Floats, order: NDArray[np.intp]) -> Block:
        """Return columns with their knockoffs, in an order that a row order decides."""
        b, n = change.shape
        pairs = np.empty((2 * b, n))
        is_second = order[:, 0] % 2
        first = 2 * np.arange(b)
        pairs[first + is_second] = self._values[:b]
        pairs[first + 1 - is_second] = self._values[:b] + self._lengths[:b, None] * change
        both: list[Hashable] = []
        for name, swapped in zip(names, is_second.tolist(), strict=True):
            both += [(KNOCKOFF, name), name] if swapped else [name, (KNOCKOFF, name)]
        return Block(both, pairs.T)

    def _shift(self, b: int) -> None:
        """Forget columns that no later knockoff depends on."""
        end, waiting = self._n_before + b, len(self._names) - b
        kept = min(end, _BEHIND * self._window)
        for array in (self._X, self._S):
            array[: kept + waiting] = array[end - kept : end + waiting].copy()
        self._values[:waiting] = self._values[b : b + waiting].copy()
        self._lengths[:waiting] = self._lengths[b : b + waiting].copy()
        del self._names[:b]
        self._n_before = kept
        self._n_done += b
