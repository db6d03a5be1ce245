"""Selectors that keep a pool of columns, and read them again until their answer is proven."""

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

# With fewer candidates than so many times k, or than so many, columns are read more often; with
# more it takes longer to plan than that saves.
_LEAST, _ENOUGH, _FEW = 2, 10, 500

AnyPlan = TypeVar("AnyPlan", bound=Plan)


class Rereader(Selector[State]):
    """A selector that reads its source again, in a circle, until its answer is proven."""

    exact: bool = param(
        params.Flag(),
        default=False,
        doc="""
        Whether `learn_columns` reads its source again until the whole answer is proven that of all
        columns. Such a model learns one source, once, of columns that all have names of their own.
        """,
    )

    def _notes(self, chunk: Chunk, stats: Stats) -> Mapping[str, Floats]:  # noqa: ARG002
        """Return what else is noted of columns as they come, as `_noted` says."""
        return {}

    @property
    def _one_source(self) -> bool:
        return self.exact

    @property
    def n_passes_expected(self) -> float:
        """How often the columns will have been read if nothing more changes the answer."""
        pool = self._columns
        if not isinstance(pool, Circle) or pool.total is None:
            return self.n_passes
        return pool.until_settled / pool.total

    def _learn_stream(self, stream: ColumnStream) -> None:
        super()._learn_stream(stream)
        pool = self._columns
        if not self._one_source or not isinstance(pool, Circle) or pool.complete:
            return
        self._whole(self._begin_again, pool)
        while not pool.settled:
            self._read_again(stream, pool)

    def _begin_again(self, pool: Circle) -> None:
        pool.begin_again(self.n_columns)
        self._outdate()

    def _next_reading(self) -> StageReading | None:
        pool = self._columns
        if not self._one_source or not isinstance(pool, InParts) or pool.complete:
            return None
        self._whole(self._begin_in_parts, pool)
        return None if pool.settled else StageReading.of(self, pool)

    def _begin_in_parts(self, pool: InParts) -> None:
        pool.begin_in_parts(self.n_columns)
        self._outdate()

    def _take_reading(self, reading: StageReading, found: StageFound) -> None:
        pool = self._columns
        assert isinstance(pool, InParts)  # noqa: S101
        if reading.seen != pool.seen:
            raise ValueError(
                "Expected what the last reading asked for was found. Got: what another one did.\n"
                "Hint: every reading is taken up once, before the next."
            )
        self._whole(self._take_found, pool, found)

    def _take_found(self, pool: InParts, found: StageFound) -> None:
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
    """What the columns of a part score under the stages of a model's plan.

    Parameters
    ----------
    model
        One of the same target and plan, which holds nothing else.
    asked, known
        What is asked, and the columns that the model holds.
    seen
        What tells a reading from those before and after.
    """

    def __init__(self, model: Rereader[Any], asked: Asked, known: Known, seen: int) -> None:
        self.model, self.asked, self.known, self.seen = model, asked, known, seen

    @classmethod
    def of(cls, model: Rereader[Any], pool: InParts) -> StageReading:
        """Return the next reading of a model."""
        twin = model._blank()
        twin._columns = twin._new_columns(pool.n)
        twin._columns.set_state(pool.abridged())
        known = Known.of(pool.table)
        known = known._replace(names=list(known.names), m2=known.m2.copy())
        return cls(twin, pool.asked(), known, pool.seen)

    def read(self, stream: ColumnStream, arrival: int) -> StageFound:
        """Return what is found in the columns of a part, before which so many come."""
        model, pool = self.model, self.model._columns
        assert isinstance(pool, InParts)  # noqa: S101
        found = StageFound(self.asked, arrival, pool.table.fields)
        for chunk, stats in model._scanned(stream):
            pool.look(chunk, stats, self.known, found, model._notes(chunk, stats))
        found.cut_back()
        return found


class Staged(Rereader[Any], Generic[AnyPlan]):
    """A selector whose answer has stages (`held.stages`): `_plan` says what it is in a pool."""

    keeps = StagePool
    # Whether an answer of k needs no more than a few times as many candidates.
    _few_are_enough: ClassVar[bool] = True

    max_candidates: int | None = param(
        params.Whole(1, optional=True),
        default=None,
        doc="""
        How many columns, at least k, are kept with their observations when the pool is cut back,
        which is when twice as many are held; None for what `max_pool_bytes` says.
        """,
    )
    max_pool_bytes: int = param(
        params.Whole(1),
        default=64 << 20,
        doc="""
        Bytes of observations, $8 n$ a column, up to which all columns are kept, and the answer is
        exact in one reading; for $4 k$ columns there is room at least. Beyond, fewer are kept, and
        `n_certified` says how much of the answer is proven. While columns come in, memory may be
        two or three times as much.
        """,
    )

    # What a method says

    def _plan(self, pool: StagePool, before: AnyPlan | None, n_proven: int) -> AnyPlan:
        """Return the answer that a pool has now.

        Parameters
        ----------
        pool
            In order of arrival.
        before
            The last plan, to go on from.
        n_proven
            How many of its leading stages are proven.
        """
        raise NotImplementedError

    def _restored_plan(self, pool: StagePool, state: dict[str, Any]) -> AnyPlan:
        """Return the plan of which `Plan.to_state` kept this."""
        raise NotImplementedError

    def _ceiling(self, pool: StagePool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG002
        """Return, for columns, what no score of theirs can ever be above; MOST where any may be."""
        return np.full(rows["m2"].size, MOST)

    # What follows

    def _limit(self, n: int) -> int:
        if self.max_candidates is not None:
            return self.max_candidates
        k = self._asked or 1
        most = max(_LEAST * k, self.max_pool_bytes // (16 * n))
        return min(most, max(_ENOUGH * k, _FEW)) if self._few_are_enough else most

    def _new_columns(self, n: int) -> ColumnHeld:
        pool = super()._new_columns(n)
        assert isinstance(pool, StagePool)  # noqa: S101
        if self.max_candidates is None:
            pool.room = max(pool.room, self.max_pool_bytes // (8 * n))
        return pool

    def _observe(self, chunk: Chunk, stats: Stats) -> None:
        assert isinstance(self._columns, StagePool)  # noqa: S101
        self._columns.admit(chunk, stats, self.n_columns, noted=self._notes(chunk, stats))
