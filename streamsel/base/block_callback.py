"""Call a function of the user after each block of a stream, and pass its errors on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streamsel.base.stop_condition import StopCondition
from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream

OnBlock = Callable[[Any], object]


class _CallbackError(BaseException):
    """Carries an exception of the user's function past the handlers that roll back."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def block_callback(
    learn: Callable[[ColumnStream], None],
    stream: ColumnStream,
    model: Any,
    on_block: OnBlock | None,
    stop: StopCondition | None = None,
) -> None:
    """Learn a stream, and call a function after each block.

    Parameters
    ----------
    learn
        Learns a stream.
    stream
        The stream.
    model
        Argument of the function.
    on_block
        The function; None for none.
    stop
        A condition that ends the stream; it is checked after the function was called.

    Raises
    ------
    Exception
        Any exception of the function or the condition, and those of `learn`.
    """
    if on_block is None and stop is None:
        learn(stream)
        return

    def blocks() -> Iterator[Block]:
        made = stream.blocks(generated=True)
        for block in made if stop is None else stop.cut(made):
            yield block
            # The consumer requests the next block only after learning this one.
            try:
                if on_block is not None:
                    on_block(model)
                if stop is not None:
                    stop.update()
            except Exception as error:
                raise _CallbackError(error) from error

    ended = None
    try:
        learn(
            ColumnStream(
                blocks,
                n_rows=stream.n_rows,
                n_columns=stream.n_columns,
                reiterable=stream.reiterable,
            )
        )
    except _CallbackError as error:
        ended = error.error
    # Raised here, so that the traceback does not include `_CallbackError`.
    if ended is not None:
        raise ended
