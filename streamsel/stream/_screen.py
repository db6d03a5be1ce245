"""The screen: lets good columns by and deals with bad ones, so that they never end a long run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import Decimal
from numbers import Complex, Real
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse

from streamsel import params
from streamsel.columns import Block
from streamsel.stream._base import ColumnStream
from streamsel.stream._convert import as_stream

Missing = Literal["skip", "mean", "error"]
Report = Callable[[Hashable, str, str], None]
"""Called with the name of a bad column, the reason in one word, and the detail in a sentence."""


def screen(
    X: Any,
    *,
    n_rows: int | None = None,
    missing: Missing = "skip",
    min_count: int = 0,
    report: Report | None = None,
) -> Screen:
    """Leave out the columns that no learner can use, so that they never end a long run.

    A column is bad for one of five reasons: `"text"` (its values are not numbers: text, dates,
    objects), `"complex"`, `"missing"` (a value is NaN or infinite), `"constant"` (all its values
    are the same) and, if asked for, `"rare"` (all but a few of them are). Bad columns are counted
    by reason, reported one by one if asked, and left out. A block without any is passed on as it
    is, not copied, whatever its dtype.

    Parameters
    ----------
    X
        The columns: a `ColumnStream`, or anything that `as_stream` takes.
    n_rows
        Observations that every column must have; None takes the stream's own number, or that of
        its first block.
    missing
        What becomes of a column with missing or infinite values: `"skip"` leaves it out, `"mean"`
        puts the mean of its other values in their place (a column with no finite value at all is
        left out), `"error"` stops at it, and at text as well.
    min_count
        In how many rows at least a column must differ from its most frequent value, at most half of
        them; 0 asks for nothing. A pixel lit in one picture, or a word of one document, correlates
        perfectly with a class, or a variable of another view, that is as rare, and says nothing of
        other rows; the noise floor does not catch it. scanpy's `min_cells` and PLINK's minor
        allele count ask for the same.
    report
        Called for every column left out, as it is met, with its name, the reason and the detail.

    Returns
    -------
    Screen
        A stream of the good columns, re-readable if `X` is, that counts the others.

    Raises
    ------
    ValueError
        If `missing` is none of the three, or `min_count` below 0. While reading: a column of the
        wrong length; a `min_count` above half the rows; with `missing="error"`, a missing value.
    TypeError
        While reading: with `missing="error"`, a column that is not numeric.

    Notes
    -----
    A good block costs one sum over its values and a look at a few rows for constants, or at some
    `4 min_count` rows for rare columns. A block with a bad column in it is copied once. Nothing is
    kept but the counts.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel.stream import iter_array, screen
    >>> X = np.array([[1.0, 5.0, np.nan], [2.0, 5.0, 1.0], [4.0, 5.0, 2.0]])
    >>> good = screen(iter_array(X, names=["fine", "flat", "gap"]), report=print)
    >>> [name for name, _ in good]
    gap missing 1 of 3 values is missing or infinite, the first in row 0
    flat constant every value is 5.0
    ['fine']
    >>> good.n_read, dict(good.skipped)
    (3, {'missing': 1, 'constant': 1})
    """
    return Screen(as_stream(X), n_rows, missing, report, min_count)


class Screen(ColumnStream):
    """The stream that `screen` returns.

    Attributes
    ----------
    n_read
        Columns read from the source so far, good and bad; the columns of a second pass do not count
        again. `stream.skip(n_read)` is what is left to read.
    last_read
        Name of the last of them, None before the first.
    skipped
        How many columns were left out, by reason.
    n_filled
        Columns in which means took the place of missing values.
    """

    def __init__(
        self,
        stream: ColumnStream,
        n_rows: int | None,
        missing: Missing,
        report: Report | None,
        min_count: int = 0,
    ) -> None:
        if missing not in get_args(Missing):
            raise ValueError(f"Expected missing to be one of {get_args(Missing)}. Got: {missing!r}")
        params.check("screen", {"min_count": params.Whole(0)}, {"min_count": min_count})
        super().__init__(
            self._screened,
            n_rows=n_rows if stream.n_rows is None else stream.n_rows,
            n_columns=stream.n_columns,
            rereadable=stream.rereadable,
            take=self._fetch,
        )
        self._source = stream
        self._expected_rows = n_rows
        self._missing = missing
        self._min_count = min_count
        self._report = report
        self.n_read = 0
        self.last_read: Hashable = None
        self.skipped: Counter[str] = Counter()
        self.n_filled = 0

    def _screened(self) -> Iterator[Block]:
        expected = self.n_rows if self._expected_rows is None else self._expected_rows
        position = 0
        for block in self._source.blocks():
            if expected is None:
                expected = block.values.shape[0]
            _check_length(block, expected)
            if 2 * self._min_count > expected:
                raise ValueError(
                    f"Expected min_count to be at most half the rows, {expected // 2}. "
                    f"Got: {self._min_count}"
                )
            # A second pass over the source drops the same columns but tells of none of them again.
            fresh = position >= self.n_read
            position += len(block.names)
            good = self._good_part(block, fresh)
            if fresh:
                self.n_read, self.last_read = position, block.names[-1]
            if good is not None:
                yield good

    def _good_part(self, block: Block, fresh: bool) -> Block | None:
        if block.values.dtype.kind == "O":
            block = _as_numbers(block)
        if block.values.dtype.kind not in "biuf":
            if self._missing == "error":
                raise TypeError(
                    f"Expected numbers in column {block.names[0]!r}. Got: {_not_numeric(block)}"
                )
            reason = "complex" if _is_complex(block.values) else "text"
            self._drop(block.names, reason, [_not_numeric(block)] * len(block.names), fresh)
            return None
        good: Block | None = self._without_missing(block, fresh)
        if good is not None:
            good = self._without_constants(good, fresh)
        if good is not None and self._min_count > 1:  # who is not constant differs in one row
            good = self._without_rare(good, fresh)
        return good

    def _without_missing(self, block: Block, fresh: bool) -> Block | None:
        bad = _columns_with_missing(block.values)
        if not bad.size:
            return block
        finite = [np.isfinite(_column(block.values, j)) for j in bad]
        details = [_count_missing(f, block.values.shape[0]) for f in finite]
        if self._missing == "error":
            raise ValueError(
                f"Expected finite numbers in column {block.names[bad[0]]!r}. Got: {details[0]}"
            )
        hopeless = np.ones(bad.size, dtype=bool)
        if self._missing == "mean":
            # In a sparse column the values that are not stored are zeros: never missing.
            n = block.values.shape[0]
            hopeless = np.array([not f.any() and f.size == n for f in finite])
            filled = bad[~hopeless]
            if filled.size:
                block = Block(block.names, _filled(block.values, filled))
                self.n_filled += int(filled.size) * fresh
        lost = bad[hopeless]
        self._drop(
            [block.names[j] for j in lost],
            "missing",
            [detail for detail, h in zip(details, hopeless, strict=True) if h],
            fresh,
        )
        return _without(block, lost)

    def _without_constants(self, block: Block, fresh: bool) -> Block | None:
        constant = _constant_columns(block.values)
        if not constant.size:
            return block
        names = [block.names[j] for j in constant]
        details = [f"every value is {_first_value(block.values, j)}" for j in constant]
        self._drop(names, "constant", details, fresh)
        return _without(block, constant)

    def _without_rare(self, block: Block, fresh: bool) -> Block | None:
        rare = _rare_columns(block.values, self._min_count)
        if not rare.size:
            return block
        details = [_count_differing(block.values[:, [j]]) for j in rare]
        self._drop([block.names[j] for j in rare], "rare", details, fresh)
        return _without(block, rare)

    def _drop(
        self, names: Sequence[Hashable], reason: str, details: Sequence[str], fresh: bool
    ) -> None:
        if not fresh or not names:
            return
        self.skipped[reason] += len(names)
        if self._report is not None:
            for name, detail in zip(names, details, strict=True):
                self._report(name, reason, detail)

    def _fetch(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch columns by name as the stream yields them: means in place of what is missing."""
        columns = self._source.take(names)
        if self._missing != "mean":
            return columns
        for name, values in columns.items():
            matrix = values if values.ndim == 2 else values.reshape(-1, 1)
            bad = _columns_with_missing(matrix)
            if bad.size:
                filled = _filled(matrix, bad)
                columns[name] = filled if values.ndim == 2 else filled[:, 0]
        return columns


def _as_numbers(block: Block) -> Block:
    """Turn objects that are numbers or None into floats; leave others as they are."""
    if all(value is None or isinstance(value, Real | Decimal) for value in block.values.flat):
        return Block(block.names, block.values.astype(np.float64))
    return block


def _is_complex(values: Any) -> bool:
    """Tell whether values are numbers, but not real ones."""
    if values.dtype.kind != "O":
        return bool(values.dtype.kind == "c")
    return all(value is None or isinstance(value, Complex) for value in values.flat)


def _not_numeric(block: Block) -> str:
    """Say what is in a column that is not numeric."""
    values = block.values
    if values.dtype.kind == "O":
        culprits = (i for i, value in enumerate(values.flat) if not _reads_as_number(value))
        row = next(culprits, 0)
        return f"{str(values.flat[row])[:40]!r} in row {row}"
    return f"values of type {values.dtype}"


def _reads_as_number(value: Any) -> bool:
    """Tell whether a value is a number, missing, or text that could be one among other text."""
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return value is None or isinstance(value, Real | Decimal)


def _check_length(block: Block, expected: int) -> None:
    if block.values.shape[0] != expected:
        raise ValueError(
            f"Expected columns of {expected} values, one for every value of the target. "
            f"Got: {block.values.shape[0]} values in column {block.names[0]!r}"
        )


def _column(values: Any, j: int) -> Any:
    """Return the stored values of column j."""
    if sparse.issparse(values):
        return values.data[values.indptr[j] : values.indptr[j + 1]]
    return values[:, j]


def _count_missing(finite: Any, n: int) -> str:
    n_missing = int(finite.size - finite.sum())
    text = f"{n_missing} of {n} values {'is' if n_missing == 1 else 'are'} missing or infinite"
    if finite.size == n:
        text += f", the first in row {int(np.argmin(finite))}"
    return text


def _columns_with_missing(values: Any) -> Any:
    """Find the columns with a NaN or an infinity among their values."""
    data = values.data if sparse.issparse(values) else values
    none = np.empty(0, dtype=np.intp)
    if data.dtype.kind != "f" or not data.size:
        return none
    # One sum meets every NaN and infinity; one that merely overflows only costs the second look.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(data.sum()):
            return none
    if sparse.issparse(values):
        where = np.flatnonzero(~np.isfinite(data))
        return np.unique(np.searchsorted(values.indptr, where, side="right") - 1)
    return np.flatnonzero(~np.isfinite(values).all(axis=0))


def _filled(values: Any, columns: Any) -> Any:
    """Copy the values with the mean of a column's finite values in place of its others."""
    filled = values.copy() if sparse.issparse(values) else values.copy(order="F")
    n = values.shape[0]
    for j in columns:
        column = _column(filled, j)  # a view
        finite = np.isfinite(column)
        n_finite = n - (finite.size - int(finite.sum()))
        scale = np.abs(column[finite], dtype=np.float64).max(initial=0.0) or 1.0
        # Scaled, so that the sum of values as large as the dtype holds does not overflow.
        mean = scale * (np.sum(column[finite] / scale, dtype=np.float64) / n_finite)
        column[~finite] = mean
    return filled


def _constant_columns(values: Any) -> Any:
    """Find the columns whose values are all the same."""
    if sparse.issparse(values):
        return _constant_sparse_columns(values)
    constant = np.flatnonzero(values[0] == values[-1])
    # Most columns part at once: few rows first, then ever more of them over ever fewer columns.
    low, high = 1, 4
    while low < values.shape[0] and constant.size:
        same = (values[low:high, constant] == values[0, constant]).all(axis=0)
        constant = constant[same]
        low, high = high, 4 * high
    return constant


def _constant_sparse_columns(values: Any) -> Any:
    n = values.shape[0]
    stored = np.diff(values.indptr)
    constant = stored == 0
    filled = np.flatnonzero(stored)
    if filled.size:
        # Empty columns hold no data, so that the start of one filled column ends the one before it.
        starts = values.indptr[filled]
        low = np.minimum.reduceat(values.data, starts)
        high = np.maximum.reduceat(values.data, starts)
        constant[filled] = (low == high) & ((stored[filled] == n) | (low == 0))
    return np.flatnonzero(constant)


def _rare_columns(values: Any, min_count: int) -> Any:
    """Find the columns that differ from their most frequent value in fewer rows than this."""
    if not sparse.issparse(values):
        return _rare_dense_columns(values, min_count)
    stored = np.diff(np.concatenate(([0], np.cumsum(values.data != 0)))[values.indptr])
    rare = stored < min_count
    # Hardly a zero: another value may be the most frequent.
    full = np.flatnonzero(values.shape[0] - stored < min_count)
    if full.size:
        rare[full[_rare_dense_columns(values[:, full].toarray(), min_count)]] = True
    return np.flatnonzero(rare)


def _rare_dense_columns(values: Any, min_count: int) -> Any:
    rare = np.arange(values.shape[1])
    n = 0
    # Of 2 min_count rows or more, that many differ from their median: so do they from any value.
    while n < values.shape[0] and rare.size:
        n = min(4 * max(n, min_count), values.shape[0])
        some = values[:n, rare]
        rare = rare[(some != _middle(some)).sum(axis=0) < min_count]
    return rare


def _middle(values: Any) -> Any:
    """Return the lower median of every column: the value that most rows have, if there is one."""
    middle = (values.shape[0] - 1) // 2
    return np.partition(values, middle, axis=0)[middle]


def _count_differing(column: Any) -> str:
    values = column.toarray() if sparse.issparse(column) else column
    common = _middle(values)
    differing = int((values != common).sum())
    return f"{differing} of {len(values)} values differ from {common[0].item()}"


def _first_value(values: Any, j: int) -> Any:
    column = _column(values, j)
    return column[0].item() if column.size else 0


def _without(block: Block, columns: Any) -> Block | None:
    """Leave out the columns at these positions; None if nothing is left."""
    if not columns.size:
        return block
    keep = np.ones(len(block.names), dtype=bool)
    keep[columns] = False
    if not keep.any():
        return None
    names = [name for name, k in zip(block.names, keep, strict=True) if k]
    if sparse.issparse(block.values):
        return Block(names, block.values[:, keep])
    if block.values.flags.f_contiguous:
        # Through the transpose, so that the copy is Fortran-contiguous as well.
        return Block(names, block.values.T[keep].T)
    return Block(names, block.values[:, keep])
