"""Models that learn the same columns, each of its own rows, in as few passes as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel.columns import Block, wrong_length
from streamsel.evaluate._subsets import Picker, Rows, rows_of
from streamsel.learner.undo import Undo
from streamsel.stream import ColumnStream
from streamsel.target.encode import encode
from streamsel.target.kept import picked
from streamsel.target.target import Target
from streamsel.words import bytes_text, count

# Of columns whose number is not known so many are expected.
_UNKNOWN = 100_000
# What the models of a pass may hold together, if nothing else is said.
MAX_BYTES = 512_000_000


class Crowd:
    """Models that learn the same columns, each of some of the rows.

    Every block that is read is passed to all models of a pass. There are as many passes as it takes
    for the models of each to stay within the memory allowed: when a pass ends, `finish` keeps what
    is needed of each model, and the model is dropped. Models with `exact=True` read their source by
    themselves, one after the other.

    Parameters
    ----------
    members
        Models that have learnt nothing, each with the rows that it is to learn.
    y, covariates, weights
        What all rows have for a target, for covariates and for weights; None for none.
    n
        How many rows there are.
    finish
        Called with the number of a model and the model once it has learnt all columns.
    max_bytes
        Bytes that the models of a pass may hold together.
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
    ) -> None:
        self._members: list[tuple[Any, Rows]] = list(members)
        self._n, self._finish, self._max_bytes = n, finish, max_bytes
        for model, rows in members:
            of_rows = (
                None if each is None else picked(each, rows) for each in (y, covariates, weights)
            )
            target, *beside = of_rows
            model.learn_target(target, *beside)
        places = range(len(members))
        self._together = [i for i in places if not members[i][0]._one_source]
        self._alone = [i for i in places if members[i][0]._one_source]

    def plan(self, n_columns: int | None) -> Plan:
        """Return which models learn in which pass, and what they will hold.

        Parameters
        ----------
        n_columns
            How many columns will come; None where that is not known.
        """
        p = _UNKNOWN if n_columns is None else n_columns
        size = max(
            (model._new_columns(len(rows)).bytes_for(p) for model, rows in self._members), default=0
        )
        n_passes = 1
        if self._together:
            at_once = max(1, self._max_bytes // max(1, size))
            n_passes = -(-len(self._together) // at_once)
        passes = [part.tolist() for part in np.array_split(self._together, n_passes)]
        return Plan(passes, len(self._alone), size)

    def learn(self, stream: ColumnStream, on_block: Callable[[Block], object]) -> None:
        """Learn a stream; the function is called with each block that the first pass has learnt."""
        plan = self.plan(stream.n_columns)
        if stream.n_columns is None and not stream.rereadable:
            # Of unknown length: it is read once, whatever that takes.
            plan = plan._replace(passes=[self._together])
        if len(plan.passes) > 1 and not stream.rereadable:
            raise ValueError(
                f"Expected columns that can be read again: {plan.text(self._max_bytes)}. Got: a "
                "source that can be read once.\nHint: max_bytes allows more memory; "
                "max_candidates bounds that of each model."
            )
        for number, part in enumerate(plan.passes):
            for block in stream.blocks():
                self.learn_block(block, part)
                if number == 0:
                    on_block(block)
            self.end(part)
        self.read_alone(stream)

    def learn_block(self, block: Block, part: Sequence[int]) -> None:
        """Let the models of a pass learn a block; where one cannot, none has learnt it."""
        # Of too many rows some would be taken for others, and no model would see it.
        if block.values.shape[0] != self._n:
            raise wrong_length(block.names, block.values.shape[0], self._n)
        picker = Picker(block.values)
        members = [self._members[i] for i in part]
        undone = [Undo(model) for model, _ in members]
        try:
            for model, rows in members:
                model._learn_block(Block(block.names, picker.of(rows)))
        except BaseException:
            for undo in undone:
                undo.settle()
            raise

    def end(self, part: Sequence[int]) -> None:
        """End a pass: keep what is needed of its models, and drop them."""
        for i in part:
            model, rows = self._members[i]
            self._finish(i, model)
            self._members[i] = (None, rows)

    def read_alone(self, stream: ColumnStream) -> None:
        """Let those learn that read the stream again, one after the other."""
        for i in self._alone:
            model, rows = self._members[i]
            model.learn_columns(rows_of(stream, rows))
            self.end([i])


class Plan(NamedTuple):
    """Which models learn in which pass.

    Parameters
    ----------
    passes
        Numbers of the models of each pass.
    n_alone
        How many models read the columns by themselves.
    bytes_each
        About how many bytes a model holds.
    """

    passes: list[list[int]]
    n_alone: int
    bytes_each: int

    def text(self, max_bytes: int) -> str:
        """Return what it takes, in words."""
        n, at_once = sum(map(len, self.passes)), max(map(len, self.passes), default=0)
        said = f"{count(n + self.n_alone, 'model')} of up to {bytes_text(self.bytes_each)} each"
        if self.n_alone:
            return f"{said} read the columns one after the other"
        held = bytes_text(at_once * self.bytes_each)
        if len(self.passes) == 1:
            return f"{said} learn in one pass, {held}"
        said += f" learn in {len(self.passes)} passes of {at_once}, {held}"
        if at_once * self.bytes_each > max_bytes:
            return f"{said}: one takes more than the bound of {bytes_text(max_bytes)}"
        return f"{said}, to stay within {bytes_text(max_bytes)}"


def check_learner(learner: Any) -> None:
    """Refuse what is no learner that columns could be handed to."""
    if isinstance(learner, type) or not hasattr(learner, "learn_columns"):
        raise TypeError(
            "Expected a learner, such as ProjSe(k=10), with learn_columns and clone. Got: "
            f"{params.shown(learner)}."
        )


def prepared(learner: Any, y: Any, covariates: Any, weights: Any) -> tuple[Any, Any]:
    """Return a learner for parts of these rows, and the classes of all rows.

    All rows decide whether numbers are classes, not every part by itself; a target that cannot be
    learnt is refused here.

    Returns
    -------
    A clone, and (n,) codes of classes; None where the target has none.
    """
    whole = learner.clone()
    whole.learn_target(y, covariates, weights)
    target = whole._target
    # Each column of a frame is what it is.
    if not isinstance(target, Target) or target.kinds or learner.target == "survival":
        return learner.clone(), None
    known = {"target": "class" if target.is_class else "numeric"}
    codes = encode(y, "class").columns.argmax(axis=1) if target.is_class else None
    return learner.clone(known), codes


def count_rows(stream: ColumnStream, y: Any) -> int:
    """Return how many rows there are: as many as the target has, or else the stream."""
    if y is not None:
        return int(np.shape(y)[0]) if hasattr(y, "shape") else len(y)
    if stream.n_rows is None:
        raise ValueError(
            "Expected a stream that knows its number of rows, as there is no target. Got: one that "
            "does not.\nHint: iter_columns(pairs, n_rows=...)."
        )
    return stream.n_rows
