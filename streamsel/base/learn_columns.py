"""Learn a source of columns: as a whole, or, if it can be read only once, up to an error."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from streamsel.base.block_callback import OnBlock, block_callback
from streamsel.base.stop_condition import StopCondition
from streamsel.base.undo import learn_atomically, learn_in_session
from streamsel.stream import ColumnStream
from streamsel.stream.inputs import EncodedStream, not_encoded_text
from streamsel.targets.whitening import Whitening

if TYPE_CHECKING:
    from streamsel.base.learner import Learner


def learn_columns(
    model: Learner, X: Any, names: Sequence[Hashable] | None, on_block: OnBlock | None, until: Any
) -> None:
    """Learn many variables, as `Learner.learn_columns` describes."""
    stream = model._stream_of(X, names)
    model._refuse_after_rows()
    model._check_source(stream)
    stop = None if until is None else StopCondition(until, model)
    earlier = _counts(stream)

    def learn(blocks: ColumnStream) -> None:
        is_undone = False
        try:
            _learn_or_undo(model, blocks)
        except BaseException as error:
            # An exception of the caller's function, or an interrupt, does not undo learning.
            is_undone = isinstance(error, Exception) and stream.reiterable
            raise
        finally:
            if not is_undone:
                learn_atomically(model, _note_source, model, stream, earlier, stop)

    block_callback(learn, model._in_used_rows(stream), model, on_block, stop)
    # A run that is resumed may find no further columns.
    if not (model.n_columns or stream.reiterable or getattr(stream, "n_read", 0)):
        raise no_columns_error()
    if stream is not X and isinstance(stream, EncodedStream) and stream.skipped:
        warnings.warn(not_encoded_text(stream), UserWarning, stacklevel=3)
    transform = None if model._target is None else model._target.row_transform
    if isinstance(transform, Whitening) and not transform.has_found_groups and model.n_columns:
        warnings.warn(transform.no_group_text(), UserWarning, stacklevel=3)


def no_columns_error() -> ValueError:
    """Return the error for a source without any column."""
    return ValueError(
        "Expected at least one column. Got: none.\n"
        "Hint: a generator can be read only once; iter_columns takes a function that returns "
        "a new one."
    )


def _counts(stream: ColumnStream) -> tuple[Counter[str], Counter[str]]:
    """Return how many columns of a stream were encoded so far, and how many could not be."""
    if not isinstance(stream, EncodedStream):
        return Counter(), Counter()
    return Counter(stream.encoded), Counter(stream.skipped)


def _note_source(
    model: Learner,
    stream: ColumnStream,
    earlier: tuple[Counter[str], Counter[str]],
    stop: StopCondition | None,
) -> None:
    """Note which columns were encoded since `earlier`, and whether a condition was met."""
    encoded, not_encoded = (
        now - before for now, before in zip(_counts(stream), earlier, strict=True)
    )
    phase = model._column_phase
    phase.source = phase.source.with_encoded(encoded, not_encoded).with_stop(None, 0)
    model._invalidate()
    if stop is not None:
        stop.note()


def _learn_or_undo(model: Learner, stream: ColumnStream) -> None:
    """Learn a stream; roll back on an error if the stream is reiterable."""
    before = model.n_columns
    try:
        learn_in_session(
            model, Exception if stream.reiterable else (), model._learn_related, stream
        )
    except (ValueError, TypeError) as error:
        if stream.reiterable or type(error) not in (ValueError, TypeError):
            raise
        raise type(error)(
            f"{error}\nThe {model.n_columns - before} columns before it stay learnt."
        ) from error
