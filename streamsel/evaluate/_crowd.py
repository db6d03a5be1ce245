"""Models that learn the same columns side by side, each of rows of its own: by one reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from streamsel import params
from streamsel.columns import Block, wrong_length
from streamsel.evaluate._subsets import Picker, Rows, picked, rows_of
from streamsel.learner.undo import Undo
from streamsel.stream import ColumnStream
from streamsel.target.encode import encode


class Crowd:
    """Models that learn the same columns, each of some of the rows.

    Every block that is read is handed to all of them, so that one reading serves all. Those that
    read their source again until their answer is proven (`exact=True`) read it by themselves.

    Parameters
    ----------
    members
        Models that have learnt nothing, each with the rows that it is to learn.
    y, covariates, weights
        What all rows have for a target, for covariates and for weights; None for none.
    n
        How many rows there are.
    """

    def __init__(
        self,
        members: Sequence[tuple[Any, Rows]],
        y: Any,
        covariates: Any = None,
        weights: Any = None,
        *,
        n: int,
    ) -> None:
        self.members, self._n = members, n
        for model, rows in members:
            of_rows = (
                None if each is None else picked(each, rows) for each in (y, covariates, weights)
            )
            target, *beside = of_rows
            model.learn_target(target, *beside)
        self._together = [member for member in members if not member[0]._one_source]
        self._alone = [member for member in members if member[0]._one_source]

    def learn(self, stream: ColumnStream, on_block: Callable[[Block], object]) -> None:
        """Learn a stream: by one reading, and more for each model that reads again by itself.

        The function is called with each block of the one reading that was learnt.
        """
        for block in stream.blocks():
            self.learn_block(block)
            on_block(block)
        self.read_alone(stream)

    def learn_block(self, block: Block) -> None:
        """Let all learn a block that learn together; where one cannot, none has learnt it."""
        # Of too many rows some would be taken for others, and no model would see it.
        if block.values.shape[0] != self._n:
            raise wrong_length(block.names, block.values.shape[0], self._n)
        picker = Picker(block.values)
        undone = [Undo(model) for model, _ in self._together]
        try:
            for model, rows in self._together:
                model._learn_block(Block(block.names, picker.of(rows)))
        except BaseException:
            for undo in undone:
                undo.settle()
            raise

    def read_alone(self, stream: ColumnStream) -> None:
        """Let those learn that read the stream again, one after the other."""
        for model, rows in self._alone:
            model.learn_columns(rows_of(stream, rows))


def check_learner(learner: Any) -> None:
    """Refuse what is no learner that columns could be handed to."""
    if isinstance(learner, type) or not hasattr(learner, "learn_columns"):
        raise TypeError(
            "Expected a learner, such as ProjSe(k=10), with learn_columns and clone. Got: "
            f"{params.shown(learner)}."
        )


def prepared(learner: Any, y: Any, covariates: Any, weights: Any) -> tuple[Any, Any]:
    """Return a learner for parts of these rows, and the classes of all rows.

    Whether integers are classes is told of all rows, not of every part again; what is wrong with
    the target is said here.

    Returns
    -------
    A clone, and (n,) codes of classes; None where the target has none.
    """
    whole = learner.clone()
    whole.learn_target(y, covariates, weights)
    if y is None or learner.target == "survival":
        return learner.clone(), None
    encoded = encode(y, learner.target)
    if encoded.kinds:  # a frame: each column is what it is
        return learner.clone(), None
    known = {"target": "class" if encoded.is_class else "numeric"}
    codes = encoded.columns.argmax(axis=1) if encoded.is_class else None
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
