"""The column axis: what every learner does with columns, one at a time or a stream of them.

 Columns come in whatever form, are let in by one door, and are handed on in order. A learner sees
a column as its moments (`columns.Stats`) and, when it asks, its values; it says in `_observe` what
it learns from them.
"""

from __future__ import annotations

import abc
import math
import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from streamsel.columns import (
    Block,
    Chunk,
    Stats,
    chunks,
    column,
    effective_jobs,
    first_repeated,
    unhashable,
    why_bad,
)
from streamsel.kernels import VariableKernel
from streamsel.stream import ColumnStream, as_stream
from streamsel.target import NoTarget, Target, TargetSpace


class ColumnAxis(abc.ABC):
    """Takes columns in by their door and hands them on, in order and with their moments."""

    _takes_no_target = False

    target: str
    n_jobs: int
    _moments: Any

    def __init__(self) -> None:
        self.n_columns = 0
        self._n_constant = 0
        self._target: Target | NoTarget | None = None
        self._space: TargetSpace | None = None
        self._without_target = False

    def learn_target(self, y: Any) -> None:
        """Learn what is to be explained; once, before the columns.

        Parameters
        ----------
        y
            Numbers of shape (n,) or (n, c), labels of shape (n,), or a Series or DataFrame of
            either. None, where the learner allows it, lets the variables explain each other.

        Raises
        ------
        ValueError
            For a target that is constant, not finite, of fewer than two rows, or given after
            columns were learnt.
        TypeError
            For values that are neither numbers nor labels.

        Notes
        -----
        Costs O(n c²) once; holds O(n c).
        """
        self._refuse_after_rows()
        if self.n_columns:
            raise ValueError(
                f"Expected the target before the columns. Got: one after {self.n_columns}.\n"
                "Hint: a new target starts a new stream; model.clone() is a fresh model."
            )
        if y is None:
            if not self._takes_no_target:
                raise ValueError(
                    f"Expected a target: {type(self).__name__} is supervised. Got: None.\n"
                    "Hint: ProjSe selects without a target too."
                )
            self._without_target, self._target, self._space = True, None, None
            return
        target = Target(y, self.target)
        if target.codes:
            warnings.warn(
                f"The target is {target.codes} distinct integers and is taken as a quantity. If "
                "they are codes of classes say target='class', if not target='numeric'.",
                UserWarning,
                stacklevel=2,
            )
        self._check_target(target.c, is_class=target.is_class)
        space = TargetSpace(target.cyy, target.n, self._variable_kernel())
        self._without_target, self._target, self._space = False, target, space

    def _refuse_after_rows(self) -> None:
        if self._moments is not None:
            raise ValueError(
                "Expected rows, for the model has learnt rows, and does not keep their "
                "observations. Got: a target or a column.\n"
                "Hint: columns first, then rows; or merge two models that learnt other rows."
            )

    def _check_target(self, c: int, *, is_class: bool) -> None:  # noqa: B027
        """Refuse a target that the parameters cannot be used with."""

    def _variable_kernel(self) -> VariableKernel:
        return VariableKernel()

    def learn_column(self, name: Hashable, values: Any) -> None:
        """Learn one variable.

        Parameters
        ----------
        name
            Any hashable name that the model does not hold yet.
        values
            The n observations: an array or sequence of shape (n,), or a sparse column. float64,
            float32, int8 and uint8 are read in place.

        Raises
        ------
        ValueError
            For missing or infinite values, a wrong length, or a name that the model holds (names of
            columns that were let go are forgotten).
        TypeError
            For values that are not real numbers, or a name that cannot be hashed.
        """
        target = self._target
        if target is None:
            target = self._expected_target(len(np.shape(values)) and np.shape(values)[0])
        chunk = column(name, values, target.n)
        stats = chunk.scan(target, 1)
        m2 = stats.m2[0]
        if not math.isfinite(m2):
            raise why_bad(name, chunk.column(0))
        if not isinstance(name, Hashable):
            raise unhashable(name)
        if name in self._held_names():
            raise _repeated(name)
        self._observe(chunk, stats)
        self.n_columns += 1
        self._n_constant += m2 == 0.0
        self._target = target

    def learn_columns(self, X: Any, names: Sequence[Hashable] | None = None) -> None:
        """Learn many variables: a block, or a whole stream of them.

        Parameters
        ----------
        X
            An (n, p) array or sparse matrix, a frame of any library that narwhals knows, a
            `ColumnStream`, or any iterable of (name, values).
        names
            Names of the columns of an array or matrix; numbered on from `n_columns` if None.

        Raises
        ------
        ValueError, TypeError
            As `learn_column`, and for a name that stands twice in one block. Where X can be read
            again the model is then as it was before the call; where it cannot (a generator), the
            columns before the bad one stay learnt, for they would be lost.

        Notes
        -----
        The result does not depend on how the columns are cut into blocks, nor on `n_jobs`. An
        interrupt (Ctrl-C) leaves every whole block learnt and the model usable.
        """
        is_matrix = isinstance(X, np.ndarray) or hasattr(X, "tocsc")
        if names is None and is_matrix and X.ndim == 2:
            names = range(self.n_columns, self.n_columns + X.shape[1])
        stream = as_stream(X, names)
        mark = self._mark() if stream.rereadable else None
        before = self.n_columns
        try:
            self._learn_stream(stream)
        except Exception as error:
            if mark is not None:
                self._rewind(mark)
            elif type(error) in (ValueError, TypeError):
                raise type(error)(
                    f"{error}\nThe {self.n_columns - before} columns before it stay learnt."
                ) from error
            raise

    def _learn_stream(self, stream: ColumnStream) -> None:
        for block in stream.blocks():
            self._learn_block(block)

    def _learn_block(self, block: Block) -> None:
        mark = self._mark()
        try:
            target = self._expected_target(block.values.shape[0])
            for chunk in chunks(block, target.n):
                error = self._learn_chunk(chunk, target)
                if error is not None:
                    break
            else:
                error = None
            self._target = target
        except BaseException:
            self._rewind(mark)
            raise
        if error is not None:
            raise error

    def _learn_chunk(self, chunk: Chunk, target: Target | NoTarget) -> Exception | None:
        """Learn a chunk's columns up to the first bad one; return what is wrong with that one."""
        stats = chunk.scan(target, effective_jobs(self.n_jobs))
        stop, error = self._first_bad(chunk, stats)
        if error is not None:
            stats = Stats(*(array[:stop] for array in stats))
        if stop:
            self._observe(chunk, stats)
            self.n_columns += stop
            self._n_constant += int(np.count_nonzero(stats.m2 == 0.0))
        return error

    def _first_bad(self, chunk: Chunk, stats: Stats) -> tuple[int, Exception | None]:
        """Return how many columns stand before the first bad one, and what is wrong with it."""
        stop, error = len(chunk.names), None
        finite = np.isfinite(stats.m2)
        if not finite.all():
            stop = int(np.argmin(finite))
            error = why_bad(chunk.names[stop], chunk.column(stop))
        again = first_repeated(chunk.names[:stop], self._held_names())
        if again is None:
            return stop, error
        return again, _repeated(chunk.names[again])

    def _expected_target(self, n: int) -> Target | NoTarget:
        """Return the target that a column of n values belongs to."""
        self._refuse_after_rows()
        if self._target is not None:
            return self._target
        if not self._without_target:
            raise ValueError(
                "Expected a target before the first column. Got: a column.\n"
                "Hint: call learn_target(y) first"
                + ("; learn_target(None) selects without one." if self._takes_no_target else ".")
            )
        if n < 2:
            raise ValueError(f"Expected columns of at least 2 observations. Got: {n}.")
        return NoTarget(n)

    @abc.abstractmethod
    def _observe(self, chunk: Chunk, stats: Stats) -> None:
        """Learn the columns of a chunk, in order, as many as stats has; all of them are good.

        Raising leaves the model as it was before the chunk.
        """

    @abc.abstractmethod
    def _held_names(self) -> dict[Hashable, int]:
        """Return the names that the model holds, each with its place."""

    def _mark(self) -> dict[str, Any]:
        """Return what `_rewind` needs to undo whatever is learnt from here on."""
        return {
            "n_columns": self.n_columns,
            "_n_constant": self._n_constant,
            "_target": self._target,
        }

    def _rewind(self, mark: dict[str, Any]) -> None:
        vars(self).update(mark)


def _repeated(name: Hashable) -> ValueError:
    return ValueError(
        f"Expected a new name for every column. Got: {name!r} again.\n"
        "Hint: a variable is learnt once; give the columns names of their own."
    )
