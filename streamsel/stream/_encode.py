"""Encoding of the columns of a stream that are not numeric as columns of numbers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel import params
from streamsel._utils.sparse import is_sparse, value_bytes
from streamsel._utils.text import count_text, named_text
from streamsel.data.chunks import Block
from streamsel.stream._blocks import BLOCK_BYTES, MAX_COLUMNS, storable
from streamsel.stream._coerce import as_stream
from streamsel.stream._encoded_column import (
    EncodedColumn,
    RejectedColumn,
    columns_ending,
    encode_column,
    holds_numbers,
)
from streamsel.stream._memory import columns_of_objects, is_frame, iter_frame
from streamsel.stream._stream import ColumnStream, raise_unknown_names, restricted
from streamsel.stream.formats import MAX_CATEGORIES

if TYPE_CHECKING:
    from streamsel.stream._clean import ReportCallback
    from streamsel.stream._parts import StreamPart
    from streamsel.targets.kept_rows import KeptRows

# Columns of a source whose results are gathered into one block, at most; with 1, a block is passed
# on before another column of the source is requested.
_MAX_GATHERED = 1000
# Columns that are not encoded whose names and details the stream keeps.
_MAX_EXAMPLES = 5


def encode(
    X: Any,
    *,
    max_categories: int = MAX_CATEGORIES,
    groups: bool = True,
    report: ReportCallback | None = None,
) -> EncodedStream:
    """Encode text, categories, dates, times and durations as columns of numbers.

    Columns of numbers and booleans are passed on. Any other column, such as `"sold"`, becomes
    columns of numbers, whose names begin with its name:

    - text and categories: a sparse indicator, 0 or 1, of every category, `sold_red`;
    - dates and points in time: seconds since 1970 (`sold_seconds`), `sold_year`, `sold_month` (1 to
      12), `sold_weekday` (Monday is 0), `sold_day_of_year` (from 1), `sold_hour`, and sine and
      cosine of the yearly and of the daily cycle (`sold_year_sin`, `sold_year_cos`, `sold_day_sin`,
      `sold_day_cos`), so that a cycle's end is close to its beginning; without `sold_hour` and the
      daily cycle if all times are midnight;
    - times of the day: seconds since midnight (`sold_seconds`), `sold_hour`, and the daily cycle;
    - durations: their length in seconds, `sold_seconds`.

    Parameters
    ----------
    X
        The columns: a `ColumnStream`, or any input that `as_stream` accepts.
    max_categories
        Maximum number of categories of a column, and at most half the number of rows. Identifiers
        and free text have more.
    groups
        Whether the indicators of a column are a group with the column's name, which a learner
        of groups selects as a whole. Otherwise each is a column of its own.
    report
        Called for every column that is not encoded, as in `clean`, with its name, a reason and the
        detail.

    Returns
    -------
    EncodedStream
        A stream of the columns of numbers, re-readable if `X` is, that counts encoded columns and
        those left out.

    Raises
    ------
    ValueError
        If `max_categories` is below 1; while reading, if a column of `X` that is encoded is in a
        group.

    Notes
    -----
    **Omissions.** A column is left out if it has more categories (reason `"text"`), texts that are
    mostly numbers but not all, or ambiguous ones (`"mixed"`, `"ambiguous"`, as by `clean`), or
    bytes, lists and other objects (`"text"`).

    **Missing values.** A missing label is a category of its own, whose indicator ends in `_None`. A
    missing date, time or duration is NaN: `clean` imputes it.

    **Zones.** Points in time with a zone are converted to UTC, so that hour and weekday are those
    of UTC; remove the zone first if local hours matter.

    **Names.** A category is named by its text, and categories of equal texts have one indicator, as
    by River's `OneHotEncoder`. The indicators of new data follow from the names alone: `take`
    returns zeros for the indicator of a category that the data lack. If the numbers of dates are
    requested from text, as of a CSV file, it is read as ISO 8601; other notations are an error.

    **Cost.** O(n) time per column, about 10 ms for 100,000 rows, and 5 bytes per row for all
    indicators of a column, whatever their number.

    **Groups.** `encode(grouped(X, groups))` keeps groups of columns of numbers, in addition to
    those of the indicators. `grouped(encode(X), groups)` has no other groups than `groups`, in
    which indicators can be members.

    `split` works if that of the source does. `skip` and `without` count and name columns of
    numbers; to skip or exclude columns of the source, call them before `encode`.

    See Also
    --------
    clean : excludes, or imputes, columns that learners cannot use.

    Examples
    --------
    >>> import polars as pl
    >>> from streamsel.stream import encode
    >>> df = pl.DataFrame(
    ...     {
    ...         "id": ["a1", "b7", "c3", "d9"],
    ...         "colour": ["red", "blue", "red", "blue"],
    ...         "price": [3.5, 2.0, 1.0, 2.5],
    ...     }
    ... )
    >>> stream = encode(df, report=print)
    >>> [(name, values.shape) for name, values in stream]
    id text more than 2 categories in 4 rows, such as 'a1'
    [('colour_blue', (4, 1)), ('colour_red', (4, 1)), ('price', (4,))]
    >>> dict(stream.encoded), dict(stream.skipped)
    ({'categories': 1}, {'text': 1})
    """
    return EncodedStream(as_stream(X), max_categories, groups=groups, report=report)


class EncodedStream(ColumnStream):
    """The stream that `encode` returns.

    Attributes
    ----------
    n_read
        Number of columns read from the source, including those left out; columns of a second pass
        are not counted again. `stream.skip(n_read)` of the source yields the unread columns.
    last_read
        Name of the last of them, None before the first.
    encoded
        Number of encoded columns of the source: "categories", "dates", "times", "durations".
    n_made
        Number of columns of numbers that they became.
    skipped
        Number of columns left out, by reason.
    examples
        The first of them: name, reason and detail.
    sources
        Name of a column of numbers -> that of the column that it was made of; empty unless
        requested, as the names need memory.
    """

    def __init__(
        self,
        stream: ColumnStream,
        max_categories: int = MAX_CATEGORIES,
        *,
        groups: bool = True,
        report: ReportCallback | None = None,
        keeps_sources: bool = False,
        whole: ColumnStream | None = None,
        max_gathered: int = _MAX_GATHERED,
    ) -> None:
        rules = {"max_categories": params.IntRule(1)}
        params.check("encode", rules, {"max_categories": max_categories})
        super().__init__(
            self._encoded_blocks,
            n_rows=stream.n_rows,
            reiterable=stream.reiterable,
            take=self._fetch,
            cut=None if stream._cut is None else self._encode_parts,
            row_metadata=stream.row_metadata,
            column_metadata=stream.column_metadata,
            restrict=None if stream._restrict is None else self._of_rows,
        )
        # Columns are fetched by name from all of a source, if only a part of it is encoded.
        self._source, self._whole = stream, stream if whole is None else whole
        self._max_categories, self._groups, self._report = max_categories, groups, report
        self.n_read = 0
        self.last_read: Hashable = None
        self.encoded: Counter[str] = Counter()
        self.n_made = 0
        self.skipped: Counter[str] = Counter()
        self.examples: list[tuple[Hashable, str, str]] = []
        self.sources: dict[Hashable, Hashable] = {}
        self._keeps_sources, self._max_gathered = keeps_sources, max_gathered

    def _encode_parts(self, parts: int | None, start: int) -> list[StreamPart]:
        if start:
            raise ValueError(
                "Expected skip before encode, as the encoded columns are unknown before reading. "
                "Got: encode(stream).skip(n).\nHint: use encode(stream.skip(n))."
            )
        step = partial(_encode_part, self._max_categories, self._groups, self._report)
        return [part.then(step, None) for part in self._source.split(parts)]

    def _of_rows(self, kept: KeptRows) -> ColumnStream:
        """Return the stream of these rows, whose columns are counted in this one."""
        return ColumnStream(
            partial(self._encoded_blocks, kept),
            n_rows=self.n_rows,
            reiterable=self.reiterable,
            take=partial(self._fetch, kept=kept),
        )

    def _encoded_blocks(self, kept: KeptRows | None = None) -> Iterator[Block]:
        gathered, position = _Gathered(), 0
        blocks = restricted(self._source, kept).blocks()
        while True:
            try:
                block = next(blocks, None)
            except Exception:
                # The columns before an error come first.
                yield from self._flush(gathered)
                raise
            if block is None:
                break
            if _is_numeric(block.values):
                yield from self._flush(gathered)
                position += len(block.names)
                self._note(position, block.names[-1], [])
                yield block
                continue
            _refuse_groups(block)
            for j, name in enumerate(block.names):
                values = storable(block.values[:, j])
                found = encode_column(name, values, self._max_categories, groups=self._groups)
                if found is None or not gathered.fits(found):
                    yield from self._flush(gathered)
                position += 1
                if found is not None:
                    gathered.add(name, found, position)
                    if len(gathered.found) >= self._max_gathered:
                        yield from self._flush(gathered)
                    continue
                self._note(position, name, [])
                yield Block([name], values.reshape(-1, 1))
        yield from self._flush(gathered)

    def _flush(self, gathered: _Gathered) -> Iterator[Block]:
        """Count and yield what was gathered, and empty it."""
        if gathered.found:
            self._note(gathered.position, gathered.found[-1][0], gathered.found)
            block = gathered.block()
            gathered.clear()
            if block is not None:
                yield block

    def _note(
        self,
        position: int,
        last: Hashable,
        found: Sequence[tuple[Hashable, EncodedColumn | RejectedColumn]],
    ) -> None:
        """Count columns of the source, up to `position`, unless an earlier pass has."""
        if position <= self.n_read:
            return
        self.n_read, self.last_read = position, last
        for name, one in found:
            if isinstance(one, EncodedColumn):
                self.encoded[one.kind] += 1
                self.n_made += len(one.block.names)
                if self._keeps_sources:
                    self.sources |= dict.fromkeys(one.block.names, name)
                continue
            self.skipped[one.reason] += 1
            if len(self.examples) < _MAX_EXAMPLES:
                self.examples.append((name, one.reason, one.detail))
            if self._report is not None:
                self._report(name, one.reason, one.detail)

    def _fetch(
        self, names: Sequence[Hashable], kept: KeptRows | None = None
    ) -> dict[Hashable, Any]:
        """Fetch columns by name: those of the source, and numbers of its other columns."""
        whole = restricted(self._whole, kept)
        columns = _columns_of(whole, {*names}, encoded_names(names))
        found = {name: columns[name] for name in names if name in columns}
        found |= _numbers_of(columns, [name for name in names if name not in columns])
        if missing := [name for name in names if name not in found]:
            known = whole.names
            raise_unknown_names(missing, columns if known is None else known)
        return {name: found[name] for name in names}


def _columns_of(
    source: ColumnStream, names: Collection[Hashable], starts: Collection[str]
) -> dict[Hashable, Any]:
    """Return the columns of a source of these names, or with texts of names in `starts`."""
    if source.names is not None:
        return source.take([name for name in source.names if name in names or str(name) in starts])
    return {
        name: values if is_sparse(values) else values.copy()
        for name, values in source
        if name in names or str(name) in starts
    }


def numeric_stream(
    X: Any, names: Sequence[Hashable] | None = None, *, groups: bool = False
) -> ColumnStream:
    """Convert any input that learners accept to a stream of columns, as `as_stream` does.

    Columns of a frame, or of a file given by its name, are encoded: see `encode`.

    Parameters
    ----------
    X, names
        As in `as_stream`.
    groups
        As in `encode`.
    """
    stream = as_stream(X, names)
    is_array = isinstance(X, np.ndarray | ColumnStream) or is_sparse(X)
    if is_array or not (isinstance(X, (str, os.PathLike)) or is_frame(X)):
        return stream
    return EncodedStream(stream, groups=groups)


def not_encoded_text(
    stream: EncodedStream, hint: str = "use stream.encode(X, max_categories=...)"
) -> str:
    """Return a warning about the columns that a stream left out.

    Parameters
    ----------
    stream
        The stream, after reading.
    hint
        How the columns can be encoded.
    """
    n = sum(stream.skipped.values())
    listed = named_text(((name, detail) for name, _, detail in stream.examples), n)
    return (
        f"{count_text(n, 'column')} of {stream.n_read:,} cannot be encoded as numbers and "
        f"{'is' if n == 1 else 'are'} not learnt: {listed}.\n"
        f"Hint: drop them, or {hint}."
    )


def columns_not_numeric(X: Any) -> list[Hashable]:
    """Return the names of columns of text, categories, dates or other objects of a frame.

    Empty if X is not an eager frame. A column of objects that are numbers is numeric.
    """
    if isinstance(X, np.ndarray) or is_sparse(X) or not is_frame(X):
        return []
    objects = columns_of_objects(X)
    if objects is None:
        return []
    return [name for name, values in iter_frame(objects) if not holds_numbers(values)]


def encoded_columns(df: Any, names: Sequence[Hashable]) -> dict[Hashable, Any]:
    """Return columns of numbers that `encode` makes of the columns of a frame.

    Parameters
    ----------
    df
        A narwhals frame.
    names
        Names of columns of numbers.

    Returns
    -------
    Name to values (n,). Names that do not begin with the name of a non-numeric column of `df` are
    left out. The indicator of a category that this column lacks is 0 in every row.
    """
    starts = encoded_names(names)
    indices = [j for j, name in enumerate(df.columns) if str(name) in starts] if starts else []
    if not indices:
        return {}
    part = iter_frame(df[:, indices].to_native())
    return _numbers_of(part.take(part.names or ()), names)


def _numbers_of(columns: Mapping[Hashable, Any], names: Iterable[Hashable]) -> dict[Hashable, Any]:
    """Return columns of numbers by their names, of those columns that are not numeric."""
    names_of: dict[str, dict[str, Hashable]] = {}
    for name in names:
        for start, end in _splits(name):
            names_of.setdefault(start, {})[end] = name
    found: dict[Hashable, Any] = {}
    for source, values in columns.items():
        name_of = names_of.get(str(source), {})
        if not name_of or is_sparse(values):
            continue
        for end, numbers in columns_ending(source, values, name_of).items():
            name = name_of[end]
            # Two columns may have numbers of one name, as "a" with "b_c" and "a_b" with "c".
            found[name] = np.maximum(found[name], numbers) if name in found else numbers
    return found


class _Gathered:
    """Encoded columns that become one block, and columns that are left out between them."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all columns."""
        self.found: list[tuple[Hashable, EncodedColumn | RejectedColumn]] = []
        self.position = 0
        self._blocks: list[Block] = []
        self._n_bytes = self._n_columns = 0

    def fits(self, found: EncodedColumn | RejectedColumn) -> bool:
        """Return whether a column can be added."""
        if isinstance(found, RejectedColumn) or not self._blocks:
            return True
        values, last = found.block.values, self._blocks[-1].values
        return (
            is_sparse(values) == is_sparse(last)
            and values.shape[0] == last.shape[0]
            and self._n_bytes + value_bytes(values) <= BLOCK_BYTES
            and self._n_columns + values.shape[1] <= MAX_COLUMNS
        )

    def add(self, name: Hashable, found: EncodedColumn | RejectedColumn, position: int) -> None:
        """Add a column of the source, after `position` columns including it."""
        self.found.append((name, found))
        self.position = position
        if isinstance(found, EncodedColumn):
            self._blocks.append(found.block)
            self._n_bytes += value_bytes(found.block.values)
            self._n_columns += found.block.values.shape[1]

    def block(self) -> Block | None:
        """Return the columns of numbers as a block; None if there are none."""
        if len(self._blocks) < 2:
            return self._blocks[0] if self._blocks else None
        names = [name for block in self._blocks for name in block.names]
        groups = None
        if any(block.groups is not None for block in self._blocks):
            groups = [group for block in self._blocks for group in _groups_of(block)]
        if not is_sparse(self._blocks[0].values):
            rows = np.concatenate([block.values.T for block in self._blocks])
            return Block(names, rows.T, groups)
        from scipy.sparse import hstack

        values = hstack([block.values for block in self._blocks], format="csc")
        values.has_canonical_format = True
        return Block(names, values, groups)


def _refuse_groups(block: Block) -> None:
    """Raise ValueError for groups of columns that are not numbers."""
    group = next((group for group in block.groups or () if group is not None), None)
    if group is None:
        return
    members = [
        name for name, of in zip(block.names, block.groups or (), strict=True) if of == group
    ]
    raise ValueError(
        f"Expected groups of columns of numbers. Got: group {group!r} with text, categories or "
        f"dates among {', '.join(map(repr, members[:5]))}.\n"
        "Hint: group the encoded columns, by their names: grouped(encode(X), groups)."
    )


def _groups_of(block: Block) -> Sequence[Hashable]:
    return [None] * len(block.names) if block.groups is None else block.groups


def _is_numeric(values: Any) -> bool:
    return values.dtype.kind in "biufc"


def _splits(name: Hashable) -> Iterator[tuple[str, str]]:
    """Yield what the name of a column may be made of: that of its source column, and an end."""
    if isinstance(name, str):
        position = name.find("_")
        while position >= 0:
            yield name[:position], name[position + 1 :]
            position = name.find("_", position + 1)


def encoded_names(names: Iterable[Hashable]) -> set[str]:
    """Return the names of columns that may have been encoded as columns of these names."""
    return {start for name in names for start, _ in _splits(name)}


def _encode_part(
    max_categories: int, groups: bool, report: ReportCallback | None, stream: ColumnStream
) -> EncodedStream:
    return EncodedStream(stream, max_categories, groups=groups, report=report)
