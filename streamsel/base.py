"""The contract of two axes: what every learner does with columns, and how River sees it.

 A learner sees a column as its moments (`columns.Stats`) and, when it asks, its values. `Learner`
takes columns in whatever form they come, lets them in by the one door, and hands them on in order;
a subclass says in `_observe` what it learns from them.
"""

from __future__ import annotations

import abc
import math
import numbers
import warnings
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from river import base

from streamsel import params
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
from streamsel.noise import noise_floor
from streamsel.stream import ColumnStream, as_stream
from streamsel.target import KINDS, NoTarget, Target, TargetSpace


class Learner(
    base.MiniBatchSupervisedTransformer, base.MiniBatchTransformer, base.SupervisedTransformer
):
    """What selectors and extractors have in common.

    These three bases together are what River's Pipeline and TransformerUnion treat rightly in every
    place:
    a plain `SupervisedTransformer` is not applied while a pipeline learns (River 0.26).
    """

    _rules: ClassVar[dict[str, params.Rule]] = {
        "target": params.Choice(KINDS),
        "n_jobs": params.Jobs(),
    }
    _takes_no_target = False

    target: str
    n_jobs: int

    def __init__(self) -> None:
        params.check(type(self).__name__, self._rules, vars(self))
        self.n_columns = 0
        self.n_constant = 0
        self._target: Target | NoTarget | None = None
        self._space: TargetSpace | None = None
        self._without_target = False

    # The target

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
        self._check_target(target)
        space = TargetSpace(target.cyy, target.n, self._variable_kernel())
        self._without_target, self._target, self._space = False, target, space

    def _check_target(self, target: Target) -> None:
        """Refuse a target that the parameters cannot be used with."""

    def _variable_kernel(self) -> VariableKernel:
        return VariableKernel()

    # Columns

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
        self.n_constant += m2 == 0.0
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
            self.n_constant += int(np.count_nonzero(stats.m2 == 0.0))
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
            "n_constant": self.n_constant,
            "_target": self._target,
        }

    def _rewind(self, mark: dict[str, Any]) -> None:
        vars(self).update(mark)

    # What was learnt

    @property
    def n_rows(self) -> int | None:
        """Observations in every column; None before the target is known."""
        return None if self._target is None else self._target.n

    @property
    @abc.abstractmethod
    def relevance(self) -> dict[Hashable, float]:
        """Relevance, in [0, 1], of what the model puts out: name -> ‖Uᵀx̃‖ / ‖x̃‖."""

    def noise_floor(self, level: float = 0.05) -> float:
        """Return the relevance that the best of as many noise columns exceeds with this chance.

        Parameters
        ----------
        level
            The chance, over all columns seen, that noise passes for more.

        Returns
        -------
        A relevance in [0, 1]; NaN where there is none: without a target, for one.

        Raises
        ------
        ValueError
            For a level outside (0, 1), or before the target is known.

        Notes
        -----
        -----
        Of n Gaussian observations without association relevance² ~ Beta(r/2, (n - 1 - r)/2), r the
        rank of the target. Among p columns the largest is below the 1 - level/p quantile with
        chance at least 1 - level (Bonferroni). Where n - 1 <= r every column is explained in full,
        and the floor is 1.

        The floor is for single columns: a component of SOSPCA, chosen and rotated among them,
        passes it more often. With a kernel that is not linear it is the largest relevance in
        feature space of 4,096 directions, drawn once, along which a variable is as relevant as the
        linear floor; NaN where that kernel sees the scale of a variable (scale=False).
        """
        if not isinstance(level, numbers.Real) or not 0.0 < level < 1.0:
            raise ValueError(f"The 'level' must be in the range (0, 1). Got {level!r} instead.")
        if self._without_target:
            return float("nan")
        if self._target is None or self._space is None:
            raise ValueError(
                "Expected a target before the noise floor is asked for.\n"
                "Hint: call learn_target(y) first."
            )
        varying = self.n_columns - self.n_constant
        floor = noise_floor(self._target.n, self._space.linear_rank, varying, level)
        return self._space.largest_relevance(floor)

    def merge(self, other: Self) -> None:
        """Take in what another model has learnt from other columns of the same target.

        Parameters
        ----------
        other
            A model of the same class and parameters; left as it is.

        Raises
        ------
        ValueError
            Where class, parameters or target differ, or a variable is held by both.
        """
        # The number of threads is the one parameter that changes nothing.
        apart = {"n_jobs": None}
        if type(other) is not type(self) or (
            other._get_params() | apart != self._get_params() | apart
        ):
            raise ValueError(
                f"Expected a {type(self).__name__} with the same parameters. Got: {other!r}.\n"
                "Hint: models that are to be merged are clones of one another."
            )
        if other is self:
            raise ValueError("Expected another model to merge. Got: the model itself.")
        if other._target is None:
            return
        if self._target is None and not self._without_target:
            raise ValueError(
                "Expected a model with a target to merge into. Got: one without.\n"
                "Hint: call learn_target(y) on both, with the same y."
            )
        mine = self._expected_target(other._target.n)
        if not mine.same_as(other._target):
            raise ValueError(
                "Expected two models of the same target. Got: different targets.\n"
                "Hint: models can be merged that learnt different columns of the same rows."
            )
        both = self._held_names().keys() & other._held_names().keys()
        if both:
            raise ValueError(
                f"Expected models of different columns. Got: {next(iter(both))!r} in both."
            )
        mark = self._mark()
        try:
            self._merge(other)
        except BaseException:
            self._rewind(mark)
            raise
        self._target = mine
        self.n_columns += other.n_columns
        self.n_constant += other.n_constant

    @abc.abstractmethod
    def _merge(self, other: Self) -> None:
        """Take in another model's state; the target is the same, the columns are not."""

    # Rows

    def learn_one(self, x: dict[Hashable, Any], y: Any = None) -> None:
        """Learn from a row; not available yet."""
        raise NotImplementedError(_ROWS_TO_COME)

    def learn_many(self, X: Any, y: Any = None) -> None:
        """Learn from a frame of rows; not available yet."""
        raise NotImplementedError(_ROWS_TO_COME)

    # Persistence

    def __getstate__(self) -> dict[str, Any]:
        return {"params": self._get_params(), "state": self._get_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, **state["params"])
        self._set_state(state["state"])

    def _get_state(self) -> dict[str, Any]:
        """Return what was learnt, as arrays and values that JSON can hold (names as lists)."""
        target = self._target
        state: dict[str, Any] = {
            "n_columns": self.n_columns,
            "n_constant": self.n_constant,
            "without_target": self._without_target,
            "n_rows": None if target is None else target.n,
        }
        if isinstance(target, Target):
            state |= {
                "target_names": list(target.names),
                "target_is_class": target.is_class,
                "target_mean": target.mean,
                "target_Y": target.Y[: target.c],
            }
        return state

    def _set_state(self, state: dict[str, Any]) -> None:
        """Take up what `_get_state` returned."""
        self.n_columns = state["n_columns"]
        self.n_constant = state["n_constant"]
        self._without_target = state["without_target"]
        if "target_Y" in state:
            expect_shapes(
                state,
                target_Y=(len(state["target_names"]), state["n_rows"]),
                target_mean=(len(state["target_names"]),),
            )
            self._target = Target.restored(
                state["target_Y"],
                state["target_mean"],
                state["target_names"],
                is_class=state["target_is_class"],
            )
            self._space = TargetSpace(self._target.cyy, self._target.n, self._variable_kernel())
        elif state["n_rows"] is not None:
            self._target = NoTarget(state["n_rows"])


_ROWS_TO_COME = (
    "Learning from rows is not available yet.\n"
    "Hint: learn from columns: learn_target(y), then learn_columns(X)."
)


def expect_shapes(state: dict[str, Any], **shapes: tuple[int, ...]) -> None:
    """Raise ValueError for an array of a state whose shape does not fit the others'."""
    for name, shape in shapes.items():
        if np.shape(state[name]) != shape:
            raise ValueError(f"Expected {name} of shape {shape}. Got: {np.shape(state[name])}.")


def _repeated(name: Hashable) -> ValueError:
    return ValueError(
        f"Expected a new name for every column. Got: {name!r} again.\n"
        "Hint: a variable is learnt once; give the columns names of their own."
    )
