"""A caller's own function between blocks: it may look, save and end, and undoes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streamsel.columns import Block
from streamsel.stream import ColumnStream

OnBlock = Callable[[Any], object]


class _Ended(BaseException):
    """Carries what a caller's function raised past those who would undo what was learnt."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def watched(
    learn: Callable[[ColumnStream], None],
    stream: ColumnStream,
    model: Any,
    on_block: OnBlock | None,
) -> None:
    """Learn a stream, and call a function after each of its blocks was learnt.

    Parameters
    ----------
    learn
        Learns a stream.
    stream
        What is learnt.
    model
        What the function is called with.
    on_block
        The function; None for none.

    Raises
    ------
    Exception
        What the function raised, whatever it is, and what `learn` raises.
    """
    if on_block is None:
        learn(stream)
        return

    def blocks() -> Iterator[Block]:
        for block in stream.blocks():
            yield block
            # Whoever asks for more has learnt it.
            try:
                on_block(model)
            except Exception as error:
                raise _Ended(error) from error

    ended = None
    try:
        learn(
            ColumnStream(
                blocks,
                n_rows=stream.n_rows,
                n_columns=stream.n_columns,
                rereadable=stream.rereadable,
            )
        )
    except _Ended as error:
        ended = error.error
    # Only here, or the traceback would tell of both.
    if ended is not None:
        raise ended
