"""Selectors that keep a pool of columns, and read them again until their answer is proven."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from streamsel import params
from streamsel.columns import Chunk, Stats, chunks
from streamsel.held.part import Floats
from streamsel.held.plan import MOST, Plan
from streamsel.held.stage_pool import StagePool
from streamsel.held.stages import Circle, unlike_before
from streamsel.learner.selector import Selector, State
from streamsel.params import param
from streamsel.stream import ColumnStream
from streamsel.threads import effective_jobs

# A pool that is cut back to fewer than so many times k is read more often than it saves.
_LEAST = 2

AnyPlan = TypeVar("AnyPlan", bound=Plan)


class Rereader(Selector[State]):
    """A selector that reads its source again, in a circle, until its answer is proven."""

    exact: bool = param(
        params.Flag(),
        default=False,
        doc="""
        Whether `learn_columns` reads its source again until the whole answer is proven that of all
        columns. Such a model learns one source, once.
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
        pool.begin_again(self.n_columns)
        while not pool.settled:
            self._read_again(stream, pool)

    def _read_again(self, stream: ColumnStream, pool: Circle) -> None:
        """Read the source again, to its end or until the whole answer is proven."""
        assert self._target is not None  # noqa: S101
        arrival = 0
        for block in stream.blocks():
            for chunk in chunks(block, self._target.n):
                with self._undone_by(BaseException):
                    stats = chunk.scan(self._target, effective_jobs(self.n_jobs))
                    pool.admit(chunk, stats, arrival, noted=self._notes(chunk, stats))
                    arrival += len(chunk.names)
                    self.n_passes = pool.seen / self.n_columns
                    self._outdate()
                if pool.settled:
                    return
        if arrival != self.n_columns:
            raise unlike_before(f"{arrival} columns, after {self.n_columns}")


class Staged(Rereader[Any], Generic[AnyPlan]):
    """A selector whose answer has stages (`held.stages`): `_plan` says what it is in a pool."""

    keeps = StagePool

    max_candidates: int | None = param(
        params.Whole(1, optional=True),
        default=None,
        doc="""
        How many columns, at least k, are kept with their observations when the pool is cut back,
        which is when twice as many are held; None for as many as `max_pool_bytes` allow.
        """,
    )
    max_pool_bytes: int = param(
        params.Whole(1),
        default=64 << 20,
        doc="""
        Bytes of the observations that are kept, $8 n$ a column; but of $4 k$ columns at least. As
        long as all columns fit, the answer is exact in one reading; beyond, memory is constant, and
        `n_certified` says how much of the answer is proven.
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
        return max(_LEAST * (self._asked or 1), self.max_pool_bytes // (16 * n))

    def _observe(self, chunk: Chunk, stats: Stats) -> None:
        assert isinstance(self._columns, StagePool)  # noqa: S101
        self._columns.admit(chunk, stats, self.n_columns, noted=self._notes(chunk, stats))
