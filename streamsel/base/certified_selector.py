"""Define multi-pass and certified selectors, which repeat passes until the answer is proven."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from streamsel import params
from streamsel._utils.system import effective_jobs
from streamsel.base.selector import Selector, State
from streamsel.base.undo import learn_atomically
from streamsel.data.columns import Chunk, Stats, iter_chunks
from streamsel.params import param
from streamsel.state.base import ColumnState, Floats
from streamsel.state.pool.candidate_solution import FLOAT_MAX, CandidateSolution
from streamsel.state.pool.certified import CertifiedPool
from streamsel.state.pool.cyclic import CyclicPool
from streamsel.state.pool.fingerprint import PoolFingerprint, pool_changed_error
from streamsel.state.pool.partitioned import PartitionedPool, PassRequest, StageResult
from streamsel.stream import ColumnStream

# Size of the pool in multiples of k (minimum, and sufficient) and in columns (sufficient). A
# smaller pool needs more passes; a larger one takes more time than it saves.
_MIN_PER_K, _ENOUGH_PER_K, _ENOUGH_COLUMNS = 2, 10, 500

AnyPlan = TypeVar("AnyPlan", bound=CandidateSolution)


class MultiPassSelector(Selector[State]):
    """Base class of selectors that read their source cyclically until the answer is proven."""

    exact: bool = param(
        params.FlagRule(),
        default=False,
        doc="""
        Whether `learn_columns` makes further passes over its source until the whole answer is
        proven to be that of all columns. Such a model learns one source, once, whose column names
        are distinct.
        """,
    )

    def _extra_values(self, chunk: Chunk, stats: Stats) -> Mapping[str, Floats]:  # noqa: ARG002
        """Return values of the extra fields for columns, as `_extra_fields` names them."""
        return {}

    @property
    def _needs_single_source(self) -> bool:
        return self.exact

    @property
    def _n_passes_expected(self) -> float:
        """Expected total number of passes over the columns, if the answer does not change."""
        pool = self._columns
        if not isinstance(pool, CyclicPool) or pool.total is None:
            return self.n_passes
        return pool.columns_until_certified / pool.total

    def _learn_stream(self, stream: ColumnStream) -> None:
        super()._learn_stream(stream)
        pool = self._columns
        if not self._needs_single_source or not isinstance(pool, CyclicPool) or pool.complete:
            return
        learn_atomically(self, self._start_passes, pool)
        while not pool.is_certified:
            self._run_pass(stream, pool)

    def _start_passes(self, pool: CyclicPool) -> None:
        pool.begin_pass(self.n_columns)
        self._invalidate()

    def _next_pass(self) -> CertificationPass | None:
        pool = self._columns
        if not self._needs_single_source or not isinstance(pool, PartitionedPool) or pool.complete:
            return None
        learn_atomically(self, self._start_partitioned_passes, pool)
        return None if pool.is_certified else CertificationPass.of(self, pool)

    def _start_partitioned_passes(self, pool: PartitionedPool) -> None:
        pool.begin_partitioned_pass(self.n_columns)
        self._invalidate()

    def _apply_pass(self, reading: CertificationPass, found: StageResult) -> None:
        pool = self._columns
        assert isinstance(pool, PartitionedPool)  # noqa: S101
        if reading.seen != pool.seen:
            raise ValueError(
                "Expected the result of the current pass. Got: the result of another pass.\n"
                "Hint: pass the result of each pass to the model once, before the next pass."
            )
        learn_atomically(self, self._apply_result, pool, found)

    def _apply_result(self, pool: PartitionedPool, found: StageResult) -> None:
        pool.combine(found)
        self._phase.n_passes += 1
        self._invalidate()

    def _run_pass(self, stream: ColumnStream, pool: CyclicPool) -> None:
        """Read the source again, to its end or until the whole answer is proven."""
        assert self._target is not None  # noqa: S101
        arrival = 0
        for block in stream.blocks():
            for chunk in iter_chunks(
                block, self._target.n, self._target.weights, self._target.kept
            ):
                learn_atomically(self, self._read_chunk, chunk, pool, arrival)
                arrival += len(chunk.names)
                if pool.is_certified:
                    return
        if arrival != self.n_columns:
            raise pool_changed_error(f"{arrival} columns, after {self.n_columns}")

    def _read_chunk(self, chunk: Chunk, pool: CyclicPool, arrival: int) -> None:
        assert self._target is not None  # noqa: S101
        stats = chunk.scan(self._target, effective_jobs(self.n_jobs))
        pool.admit(chunk, stats, arrival, noted=self._extra_values(chunk, stats))
        self._phase.n_passes = pool.seen / self.n_columns
        self._invalidate()


class CertificationPass:
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

    def __init__(
        self, model: MultiPassSelector[Any], asked: PassRequest, known: PoolFingerprint, seen: int
    ) -> None:
        self.model, self.asked, self.known, self.seen = model, asked, known, seen

    @classmethod
    def of(cls, model: MultiPassSelector[Any], pool: PartitionedPool) -> CertificationPass:
        """Return the next pass of a model."""
        twin = model._empty_clone()
        columns = twin._column_phase.columns = twin._new_columns(pool.n)
        columns.set_state(pool.reduced_state())
        known = PoolFingerprint.of(pool.table)
        known = known._replace(names=list(known.names), m2=known.m2.copy())
        return cls(twin, pool.request(), known, pool.seen)

    def read(self, stream: ColumnStream, arrival: int) -> StageResult:
        """Return the result for the columns of a part; `arrival` columns come before it."""
        model, pool = self.model, self.model._columns
        assert isinstance(pool, PartitionedPool)  # noqa: S101
        found = StageResult(self.asked, arrival, pool.table.fields)
        for chunk, stats in model._scanned(stream):
            pool.score_part(chunk, stats, self.known, found, model._extra_values(chunk, stats))
        found.cut_back()
        return found


class CertifiedSelector(MultiPassSelector[Any], Generic[AnyPlan]):
    """Base class of selectors whose answer is found in stages, by `_candidate_solution`."""

    _column_state_type = CertifiedPool
    # Whether a small multiple of k candidates suffices for an answer of k.
    _small_pool_suffices: ClassVar[bool] = True

    max_candidates: int | None = param(
        params.IntRule(1, optional=True),
        default=None,
        doc="""
        Number of columns, at least k, whose observations are kept when the pool is cut back, which
        happens at twice this number; None to derive it from `max_pool_bytes`.
        """,
    )
    max_pool_bytes: int = param(
        params.IntRule(1),
        default=64 << 20,
        doc="""
        Bytes of observations, $8 n$ per column, up to which all columns are kept, so that the
        answer is exact after one pass; the pool has room for at least $4 k$ columns. Beyond this
        limit fewer columns are kept, and `n_certified` gives the part of the answer that is proven.
        While columns are learnt, memory may be two to three times as much.
        """,
    )

    # Implemented by methods

    def _candidate_solution(
        self, pool: CertifiedPool, before: AnyPlan | None, n_proven: int
    ) -> AnyPlan:
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

    def _solution_from_state(self, pool: CertifiedPool, state: dict[str, Any]) -> AnyPlan:
        """Return the candidate solution that `CandidateSolution.to_state` saved."""
        raise NotImplementedError

    def _score_upper_bound(self, pool: CertifiedPool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG002
        """Return upper bounds on the scores of columns; `FLOAT_MAX` if there is none."""
        return np.full(rows["m2"].size, FLOAT_MAX)

    # Shared behaviour

    def _pool_capacity(self, n: int) -> int:
        if self.max_candidates is not None:
            return self.max_candidates
        k = self._n_requested or 1
        capacity = max(_MIN_PER_K * k, self.max_pool_bytes // (16 * n))
        return (
            min(capacity, max(_ENOUGH_PER_K * k, _ENOUGH_COLUMNS))
            if self._small_pool_suffices
            else capacity
        )

    def _new_columns(self, n: int) -> ColumnState:
        pool = super()._new_columns(n)
        assert isinstance(pool, CertifiedPool)  # noqa: S101
        if self.max_candidates is None:
            pool.room = max(pool.room, self.max_pool_bytes // (8 * n))
        return pool

    def _add_columns(self, state: ColumnState, chunk: Chunk, stats: Stats) -> None:
        assert isinstance(state, CertifiedPool)  # noqa: S101
        state.admit(chunk, stats, self.n_columns, noted=self._extra_values(chunk, stats))
