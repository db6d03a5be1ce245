"""Models that learn the same columns on different rows, in batches within a memory limit."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel._utils.text import bytes_text, count_text
from streamsel.base.learner import Learner
from streamsel.base.undo import UndoLog
from streamsel.data.chunks import Block
from streamsel.data.columns import wrong_length_error
from streamsel.evaluate.stored_columns import StoredColumns, stored_size
from streamsel.stream import ColumnStream
from streamsel.targets.encoding import encode_target
from streamsel.targets.glm import FAMILIES
from streamsel.targets.kept_rows import kept_indices
from streamsel.targets.survival import times_and_events
from streamsel.targets.target import Target

Rows = NDArray[np.intp]


def row_subset(stream: ColumnStream, rows: Rows) -> ColumnStream:
    """Return the same columns of some rows; every pass over them is a pass over the stream."""

    def take(names: Sequence[Hashable]) -> dict[Hashable, Any]:
        return {name: values[rows] for name, values in stream.take(names).items()}

    def blocks() -> Iterator[Block]:
        for block in stream.blocks():
            yield Block(block.names, RowPicker(block.values).of(rows), block.groups)

    return ColumnStream(
        blocks,
        n_rows=len(rows),
        n_columns=stream.n_columns,
        reiterable=stream.reiterable,
        names=stream.names,
        take=take,
    )


class RowPicker:
    """Repeated selection of rows from the values of a block.

    Parameters
    ----------
    values
        (n, b), an array or a sparse matrix.
    """

    def __init__(self, values: Any) -> None:
        self._is_sparse = hasattr(values, "tocsr")
        # Rows are selected from a matrix by rows, which is made once; columns stay contiguous.
        self._values = values.tocsr() if self._is_sparse else values.T

    def of(self, rows: Rows) -> Any:
        """Return these rows, in a layout with contiguous columns."""
        if self._is_sparse:
            return self._values[rows].tocsc()
        return np.take(self._values, rows, axis=1).T


# Assumed number of columns, if it is unknown.
_ASSUMED_COLUMNS = 100_000
# Default memory limit for the models of a pass, in bytes.
MAX_BYTES = 512_000_000
# Models that take less together always learn in one pass.
_SMALL_BYTES = 16_000_000


def takes_groups(learner: Any, y: Any, covariates: Any = None, weights: Any = None) -> bool:
    """Return whether a learner, with this target, learns the columns of a category as a group."""
    if not isinstance(learner, Learner) or not learner._supports_groups():
        return False
    twin = learner.clone()
    # Errors and warnings come from the models.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            twin.learn_target(y, covariates, weights)
        except (ValueError, TypeError):
            return False
    return twin._takes_groups


class ModelBatch:
    """Batch of models that learn the same columns, each on some of the rows.

    The source is read as rarely as the memory limit permits. If a copy of all columns and one model
    take less than the models together, the columns are copied in the first pass, and the models
    learn from the copy, one after the other. Otherwise every block is passed to all models of a
    pass, in the smallest number of passes for which the models of each stay within the limit. At
    the end of a pass, `finish` stores the results of each model, and the model is dropped. Models
    with `exact=True` read the columns individually, one after the other.

    Parameters
    ----------
    members
        Models that have learnt nothing, each with the rows to learn.
    y, covariates, weights
        Target, covariates and weights of all rows; None for none.
    n
        Number of rows.
    finish
        Called with the index of a model and the model, once it has learnt all columns.
    max_bytes
        Memory limit for the models of a pass, in bytes.
    keep_columns
        Whether to copy the columns in any case, if the copy is within the limit.

    Attributes
    ----------
    columns
        The copy of the columns.
    """

    def __init__(
        self,
        members: Sequence[tuple[Any, Rows]],
        y: Any,
        covariates: Any = None,
        weights: Any = None,
        *,
        n: int,
        finish: Callable[[int, Any], object],
        max_bytes: int,
        keep_columns: bool = False,
    ) -> None:
        self._members: list[tuple[Any, Rows]] = list(members)
        self._n, self._finish, self._max_bytes = n, finish, max_bytes
        self._keep_columns = keep_columns
        self.columns = StoredColumns(0)
        for model, rows in members:
            of_rows = (
                None if each is None else kept_indices(each, rows)
                for each in (y, covariates, weights)
            )
            target, *others = of_rows
            model.learn_target(target, *others)
        indices = range(len(members))
        self._together = [i for i in indices if not members[i][0]._needs_single_source]
        self._alone = [i for i in indices if members[i][0]._needs_single_source]

    def plan(self, n_columns: int | None, first: Block | None = None) -> PassSchedule:
        """Return the assignment of models to passes, and their memory; prepare the copy.

        Parameters
        ----------
        n_columns
            Number of columns; None if unknown.
        first
            The first block, from which the size of a copy follows; None without a copy.
        """
        p = _ASSUMED_COLUMNS if n_columns is None else n_columns
        size = max(
            (model._new_columns(len(rows)).bytes_for(p) for model, rows in self._members), default=0
        )
        at_once, n_models = max(1, self._max_bytes // max(1, size)), len(self._together)
        n_passes = max(1, -(-n_models // at_once))
        copied = math.inf
        if first is not None and first.names:
            copied = stored_size(first) * p // len(first.names)
        limit = self._max_bytes if self._keep_columns else self._max_bytes // 2
        fits = copied <= limit
        if fits and max(_SMALL_BYTES, copied + size) < min(n_models, at_once) * size:
            n_passes = n_models
        is_used = fits and (len(self._alone) > 0 or n_passes > 1)
        self.columns = StoredColumns(limit if is_used or self._keep_columns else 0)
        passes = [part.tolist() for part in np.array_split(self._together, n_passes)]
        return PassSchedule(passes, len(self._alone), size, int(copied) if is_used else None)

    def further_passes(self, plan: PassSchedule) -> list[list[int]]:
        """Return the passes after the first: of a plan, unless the copy has become too large."""
        rest = [i for part in plan.passes[1:] for i in part]
        if plan.bytes_copied is None or self.columns.is_complete or not rest:
            return plan.passes[1:]
        at_once = max(1, self._max_bytes // max(1, plan.bytes_each))
        n_passes = -(-len(rest) // at_once)
        return [part.tolist() for part in np.array_split(rest, n_passes)]

    def learn(self, stream: ColumnStream, on_block: Callable[[Block], object]) -> None:
        """Learn a stream; `on_block` is called with each block learnt in the first pass."""
        blocks = iter(stream.blocks())
        first = next(blocks, None)
        plan = self.plan(stream.n_columns, first)
        if stream.n_columns is None and not stream.reiterable and plan.bytes_copied is None:
            # A source of unknown length that can be read only once takes a single pass, whatever
            # its memory.
            plan = plan._replace(passes=[self._together])
        is_read_again = len(plan.passes) > 1 and plan.bytes_copied is None
        if is_read_again and not stream.reiterable:
            raise _read_once_error(plan, self._max_bytes)
        for block in () if first is None else itertools.chain([first], blocks):
            self.learn_first(block, plan)
            on_block(block)
        self.end_pass(plan.passes[0])
        source = self.columns.stream() or stream
        further = self.further_passes(plan)
        if further and not source.reiterable:
            raise _read_once_error(plan, self._max_bytes)
        for part in further:
            for block in source.blocks():
                self.learn_block(block, part)
            self.end_pass(part)
        self.learn_individually(source)

    def learn_first(self, block: Block, plan: PassSchedule) -> None:
        """Learn a block in the first pass, and copy it."""
        self.learn_block(block, plan.passes[0])
        self.columns.record(block)

    def learn_block(self, block: Block, part: Sequence[int]) -> None:
        """Learn a block with all models of a pass; after an error none of them has learnt it."""
        # Surplus rows would go unnoticed: every model takes only its own rows.
        if block.values.shape[0] != self._n:
            raise wrong_length_error(block.names, block.values.shape[0], self._n)
        picker = RowPicker(block.values)
        members = [self._members[i] for i in part]
        undone = [UndoLog(model) for model, _ in members]
        try:
            for model, rows in members:
                model._learn_block(Block(block.names, picker.of(rows), block.groups))
        except BaseException:
            for undo in undone:
                undo.settle()
            raise

    def end_pass(self, part: Sequence[int]) -> None:
        """End a pass: store the results of its models, and drop them."""
        for i in part:
            model, rows = self._members[i]
            self._finish(i, model)
            self._members[i] = (None, rows)

    def learn_individually(self, stream: ColumnStream) -> None:
        """Learn the stream with the models that read it individually, one after the other."""
        for i in self._alone:
            model, rows = self._members[i]
            model.learn_columns(row_subset(stream, rows))
            self.end_pass([i])


def _read_once_error(plan: PassSchedule, max_bytes: int) -> ValueError:
    return ValueError(
        f"Expected a source that can be read more than once: {plan.text(max_bytes)}. "
        "Got: a source that can be read only once.\nHint: increase max_bytes, or bound the "
        "memory of each model by max_candidates."
    )


class PassSchedule(NamedTuple):
    """Assignment of models to passes.

    Parameters
    ----------
    passes
        Indices of the models of each pass.
    n_individual
        Number of models that read the columns individually.
    bytes_each
        Approximate memory of a model, in bytes.
    bytes_copied
        Approximate size of the copy of the columns that further passes read; None without one.
    """

    passes: list[list[int]]
    n_individual: int
    bytes_each: int
    bytes_copied: int | None

    def text(self, max_bytes: int) -> str:
        """Return a description of passes and memory."""
        n, at_once = sum(map(len, self.passes)), max(map(len, self.passes), default=0)
        count = count_text(n + self.n_individual, "model")
        text = f"{count} of up to {bytes_text(self.bytes_each)} each"
        if self.bytes_copied is not None and (self.n_individual or len(self.passes) > 1):
            copied = bytes_text(self.bytes_copied)
            return f"{text} learn one after the other, from a copy of the columns of {copied}"
        if self.n_individual:
            return f"{text} read the columns one after the other"
        memory = bytes_text(at_once * self.bytes_each)
        if len(self.passes) == 1:
            return f"{text} learn in one pass, {memory}"
        text += f" learn in {len(self.passes)} passes of {at_once}, {memory}"
        if at_once * self.bytes_each > max_bytes:
            return f"{text}: one model exceeds the limit of {bytes_text(max_bytes)}"
        return f"{text}, to stay within {bytes_text(max_bytes)}"


def check_learner(learner: Any) -> None:
    """Raise TypeError for an object that is not a learner of columns."""
    if isinstance(learner, type) or not hasattr(learner, "learn_columns"):
        raise TypeError(
            "Expected learner: an object with learn_columns and clone, such as ProjSe(k=10). Got: "
            f"{params.parameter_repr(learner)}."
        )


def prepared_learner(learner: Any, y: Any, covariates: Any, weights: Any) -> tuple[Any, Any]:
    """Return a learner for subsets of these rows, and the strata of all rows.

    All rows decide whether numbers are classes, instead of every subset by itself; a target that
    cannot be learnt is refused here.

    Returns
    -------
    A clone, and (n,) codes of strata: classes, whether the event was observed, or whether a count
    is above 0. None for other targets.
    """
    whole = learner.clone()
    whole.learn_target(y, covariates, weights)
    target = whole._target
    kind = learner.target_type
    if kind == "survival":
        return learner.clone(), times_and_events(y)[1]
    if kind in FAMILIES:
        columns = encode_target(y, FAMILIES[kind]).columns
        is_class = FAMILIES[kind] == "class"
        return learner.clone(), columns.argmax(axis=1) if is_class else columns[:, 0] > 0.0
    # The columns of a frame have kinds of their own.
    if not isinstance(target, Target) or target.kinds:
        return learner.clone(), None
    known = {"target_type": "class" if target.is_class else "numeric"}
    codes = encode_target(y, "class").columns.argmax(axis=1) if target.is_class else None
    return learner.clone(known), codes


def count_rows(stream: ColumnStream, y: Any) -> int:
    """Return the number of rows: that of the target, or else of the stream."""
    if y is not None:
        try:
            return int(y.shape[0]) if hasattr(y, "shape") else len(y)
        except (TypeError, IndexError):
            text = f"Expected a target with one value per row. Got: {params.type_name(y)}."
            raise TypeError(text) from None
    if stream.n_rows is None:
        raise ValueError(
            "Expected a stream with a known number of rows, because there is no target. Got: an "
            "unknown number.\nHint: iter_columns(pairs, n_rows=...)."
        )
    return stream.n_rows
