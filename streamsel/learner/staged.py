"""Define multi-pass selectors, which read a pool's source again until the answer is proven."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from streamsel import params
from streamsel.columns import Chunk, Stats, chunks
from streamsel.held.in_parts import InParts
from streamsel.held.known import Known, unlike_before
from streamsel.held.part import ColumnHeld, Floats
from streamsel.held.plan import MOST, Plan
from streamsel.held.stage_found import Asked, StageFound
from streamsel.held.stage_pool import StagePool
from streamsel.held.stages import Circle
from streamsel.learner.selector import Selector, State
from streamsel.params import param
from streamsel.stream import ColumnStream
from streamsel.threads import effective_jobs

# Size of the pool in multiples of k (minimum, and sufficient) and in columns (sufficient). A
# smaller pool needs more passes; a larger one takes more time than it saves.
_MIN_PER_K, _ENOUGH_PER_K, _ENOUGH_COLUMNS = 2, 10, 500

AnyPlan = TypeVar("AnyPlan", bound=Plan)


class Rereader(Selector[State]):
    """Base class of selectors that read their source cyclically until the answer is proven."""

    exact: bool = param(
        params.Flag(),
        default=False,
        doc="""
        Whether `learn_columns` makes further passes over its source until the whole answer is
        proven to be that of all columns. Such a model learns one source, once, whose column names
        are distinct.
        """,
    )

    def _notes(self, chunk: Chunk, stats: Stats) -> Mapping[str, Floats]:  # noqa: ARG002
        """Return values of the extra fields for columns, as `_noted` names them."""
        return {}

    @property
    def _one_source(self) -> bool:
        return self.exact

    @property
    def n_passes_expected(self) -> float:
        """Expected total number of passes over the columns, if the answer does not change."""
        pool = self._columns
        if not isinstance(pool, Circle) or pool.total is None:
            return self.n_passes
        return pool.until_settled / pool.total

    def _learn_stream(self, stream: ColumnStream) -> None:
        super()._learn_stream(stream)
        pool = self._columns
        if not self._one_source or not isinstance(pool, Circle) or pool.complete:
            return
        self._whole(self._start_passes, pool)
        while not pool.settled:
            self._read_again(stream, pool)

    def _start_passes(self, pool: Circle) -> None:
        pool.begin_again(self.n_columns)
        self._outdate()

    def _next_reading(self) -> StageReading | None:
        pool = self._columns
        if not self._one_source or not isinstance(pool, InParts) or pool.complete:
            return None
        self._whole(self._start_partitioned_passes, pool)
        return None if pool.settled else StageReading.of(self, pool)

    def _start_partitioned_passes(self, pool: InParts) -> None:
        pool.begin_in_parts(self.n_columns)
        self._outdate()

    def _take_reading(self, reading: StageReading, found: StageFound) -> None:
        pool = self._columns
        assert isinstance(pool, InParts)  # noqa: S101
        if reading.seen != pool.seen:
            raise ValueError(
                "Expected the result of the current pass. Got: the result of another pass.\n"
                "Hint: pass the result of each pass to the model once, before the next pass."
            )
        self._whole(self._apply_result, pool, found)

    def _apply_result(self, pool: InParts, found: StageFound) -> None:
        pool.take(found)
        self.n_passes += 1
        self._outdate()

    def _read_again(self, stream: ColumnStream, pool: Circle) -> None:
        """Read the source again, to its end or until the whole answer is proven."""
        assert self._target is not None  # noqa: S101
        arrival = 0
        for block in stream.blocks():
            for chunk in chunks(block, self._target.n, self._target.weights, self._target.kept):
                self._whole(self._read_chunk, chunk, pool, arrival)
                arrival += len(chunk.names)
                if pool.settled:
                    return
        if arrival != self.n_columns:
            raise unlike_before(f"{arrival} columns, after {self.n_columns}")

    def _read_chunk(self, chunk: Chunk, pool: Circle, arrival: int) -> None:
        assert self._target is not None  # noqa: S101
        stats = chunk.scan(self._target, effective_jobs(self.n_jobs))
        pool.admit(chunk, stats, arrival, noted=self._notes(chunk, stats))
        self.n_passes = pool.seen / self.n_columns
        self._outdate()


class StageReading:
    """A pass that scores the columns of a part for each stage of a model's candidate solution.

    Parameters
    ----------
    model
        A model with the same target and candidate solution, and no other state.
    asked, known
        The scores requested, and the columns that the model keeps.
    seen
        Number of columns read so far, which identifies the pass.
    """

    def __init__(self, model: Rereader[Any], asked: Asked, known: Known, seen: int) -> None:
        self.model, self.asked, self.known, self.seen = model, asked, known, seen

    @classmethod
    def of(cls, model: Rereader[Any], pool: InParts) -> StageReading:
        """Return the next pass of a model."""
        twin = model._blank()
        twin._columns = twin._new_columns(pool.n)
        twin._columns.set_state(pool.abridged())
        known = Known.of(pool.table)
        known = known._replace(names=list(known.names), m2=known.m2.copy())
        return cls(twin, pool.asked(), known, pool.seen)

    def read(self, stream: ColumnStream, arrival: int) -> StageFound:
        """Return the result for the columns of a part; `arrival` columns come before it."""
        model, pool = self.model, self.model._columns
        assert isinstance(pool, InParts)  # noqa: S101
        found = StageFound(self.asked, arrival, pool.table.fields)
        for chunk, stats in model._scanned(stream):
            pool.look(chunk, stats, self.known, found, model._notes(chunk, stats))
        found.cut_back()
        return found


class Staged(Rereader[Any], Generic[AnyPlan]):
    """Base class of selectors whose answer is found in stages (`held.stages`), by `_plan`."""

    keeps = StagePool
    # Whether a small multiple of k candidates suffices for an answer of k.
    _few_are_enough: ClassVar[bool] = True

    max_candidates: int | None = param(
        params.Whole(1, optional=True),
        default=None,
        doc="""
        Number of columns, at least k, whose observations are kept when the pool is cut back, which
        happens at twice this number; None to derive it from `max_pool_bytes`.
        """,
    )
    max_pool_bytes: int = param(
        params.Whole(1),
        default=64 << 20,
        doc="""
        Bytes of observations, $8 n$ per column, up to which all columns are kept, so that the
        answer is exact after one pass; the pool has room for at least $4 k$ columns. Beyond this
        limit fewer columns are kept, and `n_certified` gives the part of the answer that is proven.
        While columns are learnt, memory may be two to three times as much.
        """,
    )

    # Implemented by methods

    def _plan(self, pool: StagePool, before: AnyPlan | None, n_proven: int) -> AnyPlan:
        """Return the candidate solution for the current pool.

        Parameters
        ----------
        pool
            The pool, in order of arrival.
        before
            The previous candidate solution, to continue from.
        n_proven
            Number of leading stages of it that are proven.
        """
        raise NotImplementedError

    def _restored_plan(self, pool: StagePool, state: dict[str, Any]) -> AnyPlan:
        """Return the candidate solution restored from the result of `Plan.to_state`."""
        raise NotImplementedError

    def _ceiling(self, pool: StagePool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG002
        """Return upper bounds on the scores of columns; MOST if there is no bound."""
        return np.full(rows["m2"].size, MOST)

    # Shared behaviour

    def _limit(self, n: int) -> int:
        if self.max_candidates is not None:
            return self.max_candidates
        k = self._asked or 1
        capacity = max(_MIN_PER_K * k, self.max_pool_bytes // (16 * n))
        return (
            min(capacity, max(_ENOUGH_PER_K * k, _ENOUGH_COLUMNS))
            if self._few_are_enough
            else capacity
        )

    def _new_columns(self, n: int) -> ColumnHeld:
        pool = super()._new_columns(n)
        assert isinstance(pool, StagePool)  # noqa: S101
        if self.max_candidates is None:
            pool.room = max(pool.room, self.max_pool_bytes // (8 * n))
        return pool

    def _observe(self, chunk: Chunk, stats: Stats) -> None:
        assert isinstance(self._columns, StagePool)  # noqa: S101
        self._columns.admit(chunk, stats, self.n_columns, noted=self._notes(chunk, stats))
