"""Cleaning of columns: exclusion or imputation of those that learners cannot use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from numbers import Complex, Real
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from streamsel import params
from streamsel._utils.sparse import is_sparse
from streamsel.data.chunks import Block
from streamsel.stream._bad_columns import (
    all_non_finite,
    columns_with_missing,
    constant_among_observed,
    constant_columns,
    describe_constant,
    describe_missing,
    describe_rare,
    impute_means,
    observed_values,
    rare_among_observed,
    rare_columns,
    stored_values,
)
from streamsel.stream._coerce import as_stream
from streamsel.stream._encode import EncodedStream
from streamsel.stream._numerals import CellMessage, diagnose_non_numeric
from streamsel.stream._stream import ColumnStream, restricted
from streamsel.targets.encoding import is_missing

if TYPE_CHECKING:
    from streamsel.stream._parts import StreamPart
    from streamsel.targets.kept_rows import KeptRows

Missing = Literal["skip", "mean", "keep", "error"]
ReportCallback = Callable[[Hashable, str, str], None]
"""Called with the name of a bad column, the reason in one word, and the detail in a sentence."""


def clean(
    X: Any,
    *,
    n_rows: int | None = None,
    missing: Missing = "skip",
    min_count: int = 0,
    report: ReportCallback | None = None,
) -> CleanStream:
    """Exclude the columns that learners cannot use, so that they do not abort a long run.

    A column is excluded for one of seven reasons: `"text"` (its values are not numbers: text,
    dates, objects), `"mixed"` (most of its texts are numbers, but some are not: `<0.01`),
    `"ambiguous"` (all are numbers, but in an ambiguous format: `1,304`), `"complex"`, `"missing"`
    (a value is NaN or infinite), `"constant"` (all its values are equal) and, with `min_count`,
    `"rare"` (almost all are equal). Excluded columns are counted by reason and optionally
    reported. A block without bad columns is passed on uncopied, in its dtype.

    Parameters
    ----------
    X
        The columns: a `ColumnStream`, or any input that `as_stream` accepts.
    n_rows
        Number of observations that every column must have; by default that of the stream, or of
        its first block.
    missing
        Treatment of columns with missing or infinite values: `"skip"` excludes them; `"mean"`
        imputes the mean of their finite values (a column without a finite value is excluded);
        `"keep"` passes them on, for a learner that supports missing values (a column with an
        infinite value, or without observed values, is excluded; observed values must vary);
        `"error"` raises an error, also for text.
    min_count
        Minimum number of rows in which a column must differ from its most frequent value, at most
        half of them; 0 disables the check. A pixel lit in one image, or a word of one document,
        correlates perfectly with an equally rare class or target column, but does not generalise to
        other rows; the noise floor does not detect it. scanpy's `min_cells` and
        PLINK's minor allele count are similar.
    report
        Called for every excluded column, when it is read, with its name, the reason and the detail.

    Returns
    -------
    CleanStream
        A stream of the remaining columns, re-readable if `X` is, that counts the excluded ones.

    Raises
    ------
    ValueError
        If `missing` is not one of the four, or `min_count` below 0. While reading: a column of the
        wrong length; a `min_count` above half the rows; with `missing="error"`, a missing value.
    TypeError
        While reading: with `missing="error"`, a column that is not numeric.

    Notes
    -----
    A block without bad columns costs one sum over its values and a check of a few rows for constant
    columns, or of about `4 min_count` rows for rare ones. A block with a bad column is copied once.
    Only the counts are stored.

    A learner that excludes rows without a target cleans and imputes the other rows only.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel.stream import iter_array, clean
    >>> X = np.array([[1.0, 5.0, np.nan], [2.0, 5.0, 1.0], [4.0, 5.0, 2.0]])
    >>> good = clean(iter_array(X, names=["fine", "flat", "gap"]), report=print)
    >>> [name for name, _ in good]
    gap missing 1 of 3 values is missing or infinite, the first in row 0
    flat constant every value is 5.0
    ['fine']
    >>> good.n_read, dict(good.skipped)
    (3, {'missing': 1, 'constant': 1})
    """
    return CleanStream(as_stream(X), n_rows, missing, report, min_count)


class CleanStream(ColumnStream):
    """The stream that `clean` returns.

    Attributes
    ----------
    n_read
        Number of columns read from the source, including excluded ones; columns of a second pass
        are not counted again. `stream.skip(n_read)` yields the unread columns. If the source is the
        result of `encode`, its source is counted: columns before they were encoded.
    last_read
        Name of the last of them, None before the first.
    skipped
        Number of excluded columns, by reason, including those that are not encoded.
    encoded, n_made
        Numbers of encoded columns, and of columns of numbers made of them, as in `EncodedStream`.
    n_filled, n_filled_values
        Number of columns with imputed values, and number of these values.
    """

    def __init__(
        self,
        stream: ColumnStream,
        n_rows: int | None,
        missing: Missing,
        report: ReportCallback | None,
        min_count: int = 0,
        kept: KeptRows | None = None,
    ) -> None:
        if not isinstance(missing, str) or missing not in get_args(Missing):
            got = params.parameter_repr(missing)
            raise ValueError(f"Expected missing to be one of {get_args(Missing)}. Got: {got}.")
        if not isinstance(stream, ColumnStream):
            raise TypeError(f"Expected a ColumnStream. Got: {type(stream).__name__}.")
        if report is not None and not callable(report):
            raise TypeError(f"Expected report to be a function. Got: {type(report).__name__}.")
        rules = {"n_rows": params.IntRule(0, optional=True), "min_count": params.IntRule(0)}
        params.check("clean", rules, {"n_rows": n_rows, "min_count": min_count})
        n = n_rows if stream.n_rows is None else stream.n_rows
        super().__init__(
            self._cleaned,
            n_rows=n if kept is None else kept.index.size,
            n_columns=stream.n_columns,
            reiterable=stream.reiterable,
            take=self._fetch,
            cut=None if stream._cut is None else self._cleaned_parts,
            row_metadata=stream.row_metadata,
            column_metadata=stream.column_metadata,
            restrict=self._of_rows,
        )
        self._source = stream
        # Only these rows of the columns are cleaned, and yielded.
        self._kept = kept
        self._expected_rows = n_rows if kept is None else kept.n
        self._missing = missing
        self._min_count = min_count
        self._report = report
        self.n_read = self._n_cleaned = 0
        self.last_read: Hashable = None
        # Columns that are not encoded are excluded columns, too.
        source = stream if isinstance(stream, EncodedStream) else None
        self.skipped: Counter[str] = Counter() if source is None else source.skipped
        self.encoded: Counter[str] = Counter() if source is None else source.encoded
        self.n_filled = self.n_filled_values = 0

    @property
    def n_made(self) -> int:
        """Number of columns of numbers that encoded columns became."""
        return self._source.n_made if isinstance(self._source, EncodedStream) else 0

    def _cleaned_parts(self, parts: int | None, start: int) -> list[StreamPart]:
        if start:
            raise ValueError(
                "Expected skip before clean, as the excluded columns are unknown before reading. "
                "Got: clean(stream).skip(n).\nHint: use clean(stream.skip(n))."
            )
        step = partial(
            _cleaned_part,
            self._expected_rows,
            self._missing,
            self._report,
            self._min_count,
            self._kept,
        )
        return [part.then(step, part.n_columns) for part in self._source.split(parts)]

    def _of_rows(self, kept: KeptRows) -> ColumnStream:
        """Return the stream of these rows, whose columns are counted in this one."""
        return ColumnStream(
            partial(self._cleaned, kept),
            n_columns=self.n_columns,
            reiterable=self.reiterable,
            take=partial(self._fetch, kept=kept),
        )

    def _cleaned(self, kept: KeptRows | None = None) -> Iterator[Block]:
        kept = kept if self._kept is None else self._kept
        source = restricted(self._source, kept)
        expected = self.n_rows if self._expected_rows is None else self._expected_rows
        position = 0
        for complete in source.blocks():
            if source is self._source or not _has_rows(complete, kept):
                expected = complete.values.shape[0] if expected is None else expected
                _check_length(complete, expected)
            block = _select_rows(complete, kept)
            n_rows = block.values.shape[0]
            if 2 * self._min_count > n_rows:
                raise ValueError(
                    f"Expected min_count to be at most half the rows, {n_rows // 2}. "
                    f"Got: {self._min_count}"
                )
            # A second pass drops the same columns, but does not count or report them again.
            first_pass = position >= self._n_cleaned
            position += len(block.names)
            good = self._good_part(block, first_pass, kept)
            if first_pass:
                self._n_cleaned = position
                self._count_read(position, block.names[-1])
            if good is not None:
                yield good
        # The last columns of the source may not be encoded.
        self._count_read(self._n_cleaned, self.last_read)

    def _count_read(self, n_cleaned: int, last: Hashable) -> None:
        """Count the columns of the source, before they were encoded."""
        source = self._source
        if isinstance(source, EncodedStream):
            self.n_read, self.last_read = source.n_read, source.last_read
        else:
            self.n_read, self.last_read = n_cleaned, last

    def _good_part(self, block: Block, first_pass: bool, kept: KeptRows | None) -> Block | None:
        if block.values.dtype.kind == "O":
            block = _as_numbers(block)
        if block.values.dtype.kind not in "biuf":
            if self._missing == "error":
                _, detail = _diagnose(block, kept)
                raise TypeError(f"Expected numbers in column {block.names[0]!r}. Got: {detail}")
            reason, detail = _diagnose(block, kept)
            self._drop(block.names, reason, [detail] * len(block.names), first_pass)
            return None
        good: Block | None = self._without_missing(block, first_pass, kept)
        keep_missing = self._missing == "keep"
        if good is not None:
            constant = constant_columns(good.values)
            if keep_missing:
                constant = np.union1d(constant, constant_among_observed(good.values))
            good = self._exclude(good, constant, "constant", describe_constant, first_pass)
        if good is not None and self._min_count > 1:  # any non-constant column differs in one row
            rare = rare_columns(good.values, self._min_count)
            if keep_missing:
                rare = np.union1d(rare, rare_among_observed(good.values, self._min_count))
            good = self._exclude(good, rare, "rare", describe_rare, first_pass)
        return good

    def _without_missing(
        self, block: Block, first_pass: bool, kept: KeptRows | None
    ) -> Block | None:
        bad = columns_with_missing(block.values)
        if not bad.size:
            return block
        values = block.values

        def detail(j: int) -> str:
            text = describe_missing(np.isfinite(stored_values(values, j)), values.shape[0])
            return text if kept is None else kept.renumbered(text)

        if self._missing == "error":
            raise ValueError(
                f"Expected finite numbers in column {block.names[bad[0]]!r}. Got: {detail(bad[0])}"
            )
        unusable = np.ones(bad.size, dtype=bool)
        if self._missing == "keep":
            unusable = np.array([_cannot_be_kept(values, j) for j in bad])
        elif self._missing == "mean":
            unusable = all_non_finite(values, bad)
            filled = bad[~unusable]
            if filled.size:
                copy, n_values = impute_means(values, filled)
                block = block._replace(values=copy)
                self.n_filled += int(filled.size) * first_pass
                self.n_filled_values += n_values * first_pass
        dropped = bad[unusable]
        self._drop(
            [block.names[j] for j in dropped],
            "missing",
            [detail(j) for j in dropped],
            first_pass,
        )
        return _without(block, dropped)

    def _exclude(
        self,
        block: Block,
        bad: Any,
        reason: str,
        describe: Callable[[Any, int], str],
        first_pass: bool,
    ) -> Block | None:
        """Drop the columns at these indices; the details are `describe(values, index)`."""
        details = [describe(block.values, j) for j in bad]
        self._drop([block.names[j] for j in bad], reason, details, first_pass)
        return _without(block, bad)

    def _drop(
        self, names: Sequence[Hashable], reason: str, details: Sequence[str], first_pass: bool
    ) -> None:
        if not first_pass or not names:
            return
        self.skipped[reason] += len(names)
        if self._report is not None:
            for name, detail in zip(names, details, strict=True):
                self._report(name, reason, detail)

    def _fetch(
        self, names: Sequence[Hashable], kept: KeptRows | None = None
    ) -> dict[Hashable, Any]:
        """Fetch columns by name as the stream yields them, with missing values imputed."""
        kept = kept if self._kept is None else self._kept
        columns = restricted(self._source, kept).take(names)
        if kept is not None:
            columns = {name: kept.select(values) for name, values in columns.items()}
        if self._missing != "mean":
            return columns
        for name, values in columns.items():
            matrix = values if values.ndim == 2 else values.reshape(-1, 1)
            bad = columns_with_missing(matrix)
            if bad.size:
                filled, _ = impute_means(matrix, bad)
                columns[name] = filled if values.ndim == 2 else filled[:, 0]
        return columns


def _cleaned_part(
    n_rows: int | None,
    missing: Missing,
    report: ReportCallback | None,
    min_count: int,
    kept: KeptRows | None,
    stream: ColumnStream,
) -> CleanStream:
    return CleanStream(stream, n_rows, missing, report, min_count, kept)


def _as_numbers(block: Block) -> Block:
    """Convert objects that are all numbers or None to floats; return other blocks unchanged."""
    if all(value is None or isinstance(value, Real | Decimal) for value in block.values.flat):
        return block._replace(values=block.values.astype(np.float64))
    return block


def _cannot_be_kept(values: Any, j: int) -> bool:
    """Return whether a column has an infinite value, or no observed value."""
    observed = observed_values(values, j)
    return not observed.size or bool(np.isinf(observed).any())


def _has_rows(block: Block, kept: KeptRows | None) -> bool:
    """Return whether a block has the rows in use only."""
    return kept is not None and bool(block.values.shape[0] == kept.index.size)


def _select_rows(block: Block, kept: KeptRows | None) -> Block:
    """Return the rows in use, unless the others were dropped before."""
    return block if kept is None else block._replace(values=kept.select(block.values))


def _diagnose(block: Block, kept: KeptRows | None) -> tuple[str, str]:
    """Return why a column is not numeric, with the number of the row among all."""
    reason, detail = _non_numeric_reason(block)
    if kept is None:
        return reason, detail
    text = kept.renumbered(detail)
    return reason, CellMessage(text, detail.cell) if isinstance(detail, CellMessage) else text


def _is_complex(values: Any) -> bool:
    if values.dtype.kind != "O":
        return bool(values.dtype.kind == "c")
    return all(value is None or isinstance(value, Complex) for value in values.flat)


def _non_numeric_reason(block: Block) -> tuple[str, str]:
    """Return the reason why a column is not numeric, and the detail."""
    values = block.values
    if values.dtype.kind != "O":
        reason = "complex" if _is_complex(values) else "text"
        return reason, f"values of type {values.dtype}"
    why = diagnose_non_numeric([None if is_missing(value) else value for value in values.flat])
    cell = str(values.flat[why.position])[:40]
    text = f"{cell!r} in row {why.position}" + (f", {why.detail}" if why.detail else "")
    return "complex" if _is_complex(values) else why.reason, CellMessage(text, cell)


def _check_length(block: Block, expected: int) -> None:
    if block.values.shape[0] != expected:
        raise ValueError(
            f"Expected columns of {expected} values, one for each value of the target. "
            f"Got: {block.values.shape[0]} values in column {params.parameter_repr(block.names[0])}"
        )


def _without(block: Block, columns: Any) -> Block | None:
    """Drop the columns at these indices; return None if none remains."""
    if not columns.size:
        return block
    keep = np.ones(len(block.names), dtype=bool)
    keep[columns] = False
    if not keep.any():
        return None
    names = [name for name, k in zip(block.names, keep, strict=True) if k]
    groups = block.groups
    if groups is not None:
        groups = [group for group, k in zip(groups, keep, strict=True) if k]
    if not is_sparse(block.values) and block.values.flags.f_contiguous:
        # Through the transpose, so that the copy is Fortran-contiguous as well.
        return Block(names, block.values.T[keep].T, groups)
    return Block(names, block.values[:, keep], groups)
