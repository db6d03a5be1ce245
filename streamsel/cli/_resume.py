"""Where to go on in a file that an interrupted run has read in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsel.cli._errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from streamsel.columns import Block
    from streamsel.stream import ColumnStream


def rest_of(
    stream: ColumnStream, left_out: Sequence[Hashable], n_read: int, last_read: str, path: str
) -> ColumnStream:
    """Return what comes after the first columns of a stream.

    Parameters
    ----------
    stream
        All columns of the file.
    left_out
        Names of columns that no run reads, such as the target.
    n_read
        Columns that have been read, not counting those left out.
    last_read
        Name of the last of them.
    path
        The file's, for messages.

    Returns
    -------
    A stream whose `take` still fetches every column of the file.

    Raises
    ------
    CommandError
        Now or while reading: if another column stands where the last one read should be.
    """
    from streamsel.stream import ColumnStream

    kept = stream.without(left_out) if left_out else stream
    if not n_read:
        return kept
    if kept.names is None:
        # Lines: the names come with the columns, so the last one read comes once more.
        again = kept.skip(n_read - 1)
        rest = ColumnStream(lambda: _after(again.blocks(), n_read, last_read, path))
    else:
        found = kept.names[n_read - 1] if len(kept.names) >= n_read else None
        _check(found, n_read, last_read, path)
        rest = stream.skip(_in_file(stream.names or (), frozenset(left_out), n_read))
        rest = rest.without(left_out) if left_out else rest
    return ColumnStream(
        rest.blocks,
        n_rows=stream.n_rows,
        n_columns=None if kept.n_columns is None else kept.n_columns - n_read,
        rereadable=stream.rereadable,
        take=stream.take,
    )


def _in_file(names: Sequence[Hashable], left_out: frozenset[Hashable], n_read: int) -> int:
    """Return the position in the file after n_read columns that are not left out."""
    position = n_read
    for i, name in enumerate(names):
        if i > position:
            break
        position += name in left_out
    return position


def _after(blocks: Iterator[Block], n_read: int, last_read: str, path: str) -> Iterator[Block]:
    """Yield the blocks without their first column, if that is the one that was read last."""
    first = next(blocks, None)
    _check(None if first is None else first.names[0], n_read, last_read, path)
    if first is not None and len(first.names) > 1:
        yield first._replace(names=first.names[1:], values=first.values[:, 1:])
    yield from blocks


def _check(found: Hashable, n_read: int, last_read: str, path: str) -> None:
    if str(found) != last_read:
        raise CommandError(
            f"{path}: not the file that the model was learnt from. Expected column {n_read:,} "
            f"to be {last_read!r}. Got: {'nothing' if found is None else repr(str(found))}"
        )
