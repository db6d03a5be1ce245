"""Where to go on in a file that an interrupted run has read in part."""

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
    """Return what comes after the first columns of a stream, and take note of what comes.

    Parameters
    ----------
    stream
        All columns of the file.
    left_out
        Names of columns that no run reads, such as the target.
    n_read
        Columns that have been read, not counting those left out.
    seen
        Takes note of the columns.
    check
        Called when the columns before have been noted, and none after them: now if the stream knows
        its names, and else while it is read, for lines are read one after the other anyway.

    Returns
    -------
    A stream whose `take` still fetches every column of the file.
    """
    kept = stream.without(left_out) if left_out else stream
    rest, start = kept, 0
    if kept.names is not None and n_read:
        seen.look_at(kept, n_read)
        check()
        rest = stream.skip(_in_file(stream.names or (), frozenset(left_out), n_read))
        rest, start = rest.without(left_out) if left_out else rest, n_read
    return ColumnStream(
        lambda: _unread(rest.blocks(), start, n_read, seen, check),
        n_rows=stream.n_rows,
        n_columns=None if kept.n_columns is None else max(0, kept.n_columns - n_read),
        rereadable=stream.rereadable,
        take=stream.take,
        cut=(kept.skip(n_read) if n_read else kept)._cut,
    )


def _in_file(names: Sequence[Hashable], left_out: frozenset[Hashable], n_read: int) -> int:
    """Return the position in the file after n_read columns that are not left out."""
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
    """Yield what comes after n_read columns; the blocks begin at a position before or there."""
    unchecked = position < n_read
    for block in blocks:
        width = len(block.names)
        known = min(width, max(0, n_read - position))
        if known:
            seen.add(part_of(block, 0, known), position)
        if unchecked and position + known == n_read:
            check()
            unchecked = False
        if known < width:
            seen.add(block, position)
            yield part_of(block, known, width) if known else block
        position += width
    if unchecked:
        check()
