"""Resume reading a file after the columns that an interrupted run has read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsel.stream._base import ColumnStream
from streamsel.stream._blocks import part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from streamsel.columns import Block
    from streamsel.stream._fingerprint import Fingerprint


def rest_of(
    stream: ColumnStream,
    left_out: Sequence[Hashable],
    n_read: int,
    seen: Fingerprint,
    check: Callable[[], None],
) -> ColumnStream:
    """Return the unread columns of a stream, and fingerprint the columns as they are read.

    Parameters
    ----------
    stream
        All columns of the file.
    left_out
        Names of columns that no run reads, such as the target.
    n_read
        Columns that have been read, not counting those left out.
    seen
        Fingerprint, updated with the columns.
    check
        Called when the earlier columns, and no others, are in the fingerprint: immediately if the
        stream has column names, otherwise during iteration, as lines are read one after the other.

    Returns
    -------
    A stream whose `take` still fetches every column of the file.
    """
    kept = stream.without(left_out) if left_out else stream
    rest, start = kept, 0
    if kept.names is not None and n_read:
        seen.look_at(kept, n_read)
        check()
        rest = stream.skip(_file_position(stream.names or (), frozenset(left_out), n_read))
        rest, start = rest.without(left_out) if left_out else rest, n_read
    return ColumnStream(
        lambda: _unread(rest.blocks(), start, n_read, seen, check),
        n_rows=stream.n_rows,
        n_columns=None if kept.n_columns is None else max(0, kept.n_columns - n_read),
        rereadable=stream.rereadable,
        take=stream.take,
        cut=(kept.skip(n_read) if n_read else kept)._cut,
    )


def _file_position(names: Sequence[Hashable], left_out: frozenset[Hashable], n_read: int) -> int:
    """Return the position in the file after n_read columns that are not excluded."""
    position = n_read
    for i, name in enumerate(names):
        if i > position:
            break
        position += name in left_out
    return position


def _unread(
    blocks: Iterator[Block],
    position: int,
    n_read: int,
    seen: Fingerprint,
    check: Callable[[], None],
) -> Iterator[Block]:
    """Yield the columns after the first n_read; the blocks start at `position`, at or before it."""
    unchecked = position < n_read
    for block in blocks:
        width = len(block.names)
        n_known = min(width, max(0, n_read - position))
        if n_known:
            seen.add(part_of(block, 0, n_known), position)
        if unchecked and position + n_known == n_read:
            check()
            unchecked = False
        if n_known < width:
            seen.add(block, position)
            yield part_of(block, n_known, width) if n_known else block
        position += width
    if unchecked:
        check()
