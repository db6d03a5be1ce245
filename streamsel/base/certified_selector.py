"""Define certified selectors, which repeat passes over a source until the answer is certified."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

from streamsel import params
from streamsel.base.selector import Selector
from streamsel.base.undo import learn_atomically
from streamsel.data.chunks import Chunk, Stats
from streamsel.params import param
from streamsel.state.base import ColumnState, VariableState
from streamsel.state.pool.candidate_solution import StagedSolver
from streamsel.state.pool.certifier import Certifier
from streamsel.state.pool.fingerprint import PoolFingerprint, pool_changed_error
from streamsel.state.pool.group_certifier import GroupCertifier
from streamsel.state.pool.group_pool import GroupPool
from streamsel.state.pool.partitioned import (
    PassRequest,
    StageResult,
    begin_partitioned_pass,
    combine,
    reduced_state,
    request_pass,
    score_part,
)
from streamsel.state.pool.pool import Picks
from streamsel.stream import ColumnStream
from streamsel.targets.target import Target

# Minimum size of the pool and sufficient size, in multiples of k; sufficient number of columns. A
# smaller pool needs more passes; a larger one takes more time than it saves.
_MIN_PER_K, _ENOUGH_PER_K, _ENOUGH_COLUMNS = 2, 10, 500


class CertifiedSelector(Selector[Any]):
    """Base class of selectors that read their source again until the answer is certified.

    A method defines a `StagedSolver`, which finds the answer in stages. If it learns rows by
    moments, and its solver needs samples, it also defines `_select_on_rows`.
    """

    _column_state_type: ClassVar[type[ColumnState]] = Certifier
    _needs_samples = True
    # Whether a small multiple of k candidates suffices for an answer of k.
    _small_pool_suffices: ClassVar[bool] = True

    exact: bool = param(
        params.FlagRule(),
        default=False,
        doc="""
        Whether `learn_columns` makes further passes over its source until the whole answer is
        certified to be that of all columns. Such a model learns one source, once, whose column
        names are distinct.
        """,
    )
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
        limit fewer columns are kept, and `n_certified` gives the part of the answer that is
        certified. While columns are learnt, memory may be two to three times as much.
        """,
    )

    # Implemented by methods

    @abc.abstractmethod
    def _solver(self) -> StagedSolver:
        """Return how variables are selected, once the target is known."""

    def _select_on_rows(self, view: Any, k: int) -> Picks:
        """Return the best k variables of a view of rows."""
        return self._solver().picks(view, k)

    # Shared behaviour

    def _select(self, view: VariableState, k: int) -> Picks:
        certifier = self._certifier
        return self._select_on_rows(view, k) if certifier is None else certifier.picks(k)

    @property
    def _certifier(self) -> Certifier | None:
        """The state of the columns; None before the first, and on rows."""
        columns = self._columns
        return columns if isinstance(columns, Certifier) else None

    def _pool_capacity(self, n: int) -> int:
        """Return the size to which a pool is cut back, for n observations."""
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
        room = 0 if self.max_candidates is not None else self.max_pool_bytes // (8 * n)
        return Certifier(self._new_pool(n, self._pool_capacity(n)), self._solver(), room)

    def _new_group_certifier(self, n: int, solver: StagedSolver) -> ColumnState:
        """Return an empty state for groups of columns of n observations, with their axes."""
        target = self._target
        assert isinstance(target, Target)  # noqa: S101
        pool = GroupPool(
            self._significance.known_space,
            n,
            self._pool_capacity(n),
            samples=True,
            normal_scores=self._normal_scores(),
            target_rows=target.Y[: target.c],
        )
        room = 0 if self.max_candidates is not None else max(1, self.max_pool_bytes // (8 * n))
        return GroupCertifier(pool, solver, room, _MIN_PER_K * (self._n_requested or 1))

    # Passes

    @property
    def _needs_single_source(self) -> bool:
        return self.exact

    @property
    def _uncertified(self) -> Certifier | None:
        """The state of the columns, if further passes over these are due; None otherwise."""
        state = self._certifier
        return None if state is None or not self._needs_single_source or state.complete else state

    @property
    def _n_passes_expected(self) -> float:
        """Expected total number of passes over the columns, if the answer does not change."""
        state = self._certifier
        if state is None or state.total is None:
            return self.n_passes
        return state.columns_until_certified / state.total

    def _learn_stream(self, stream: ColumnStream) -> None:
        super()._learn_stream(stream)
        state = self._uncertified
        if state is None:
            return
        learn_atomically(self, self._begin_pass, state)
        while not state.is_certified:
            self._run_pass(stream, state)

    def _begin_pass(self, state: Certifier) -> None:
        state.begin_pass(self._phase.n_candidates)
        self._invalidate()

    def _run_pass(self, stream: ColumnStream, state: Certifier) -> None:
        """Read the source again, to its end or until the whole answer is certified."""
        arrival = 0
        for chunk, stats in self._scanned(stream):
            learn_atomically(self, self._admit_again, state, chunk, stats, arrival)
            arrival += len(chunk.names)
            if state.is_certified:
                return
        if arrival != (total := self._phase.n_candidates):
            raise pool_changed_error(f"{arrival} columns, after {total}")

    def _admit_again(self, state: Certifier, chunk: Chunk, stats: Stats, arrival: int) -> None:
        state.admit(chunk, stats, arrival)
        self._phase.n_passes = state.seen / self._phase.n_candidates
        self._invalidate()

    # Passes over parts of the columns

    def _next_pass(self) -> CertificationPass | None:
        state = self._uncertified
        if state is None:
            return None
        learn_atomically(self, self._begin_partitioned_pass, state)
        return None if state.is_certified else CertificationPass.of(self, state)

    def _begin_partitioned_pass(self, state: Certifier) -> None:
        begin_partitioned_pass(state, self.n_columns)
        self._invalidate()

    def _apply_pass(self, request: CertificationPass, result: StageResult) -> None:
        state = self._certifier
        if state is None or request.seen != state.seen:
            raise ValueError(
                "Expected the result of the current pass. Got: the result of another pass.\n"
                "Hint: pass the result of each pass to the model once, before the next pass."
            )
        learn_atomically(self, self._combine, state, result)

    def _combine(self, state: Certifier, result: StageResult) -> None:
        combine(state, result)
        self._phase.n_passes += 1
        self._invalidate()


class CertificationPass:
    """A pass that scores the columns of a part for each stage of a model's candidate solution.

    Parameters
    ----------
    model
        A model with the same target and candidate solution, and no other columns.
    request, known
        The scores requested, and the columns that the first model keeps.
    seen
        Number of columns read so far, which identifies the pass.
    """

    def __init__(
        self, model: CertifiedSelector, request: PassRequest, known: PoolFingerprint, seen: int
    ) -> None:
        self.model, self.request, self.known, self.seen = model, request, known, seen

    @classmethod
    def of(cls, model: CertifiedSelector, state: Certifier) -> CertificationPass:
        """Return the next pass of a model."""
        twin = model._empty_clone()
        columns = twin._column_phase.columns = twin._new_columns(state.n)
        columns.set_state(reduced_state(state))
        known = PoolFingerprint.of(state.pool.table)
        known = known._replace(names=list(known.names), m2=known.m2.copy())
        return cls(twin, request_pass(state), known, state.seen)

    def read(self, stream: ColumnStream, arrival: int) -> StageResult:
        """Return the result for the columns of a part; `arrival` columns come before it."""
        state = self.model._certifier
        if state is None:
            raise ValueError("Expected a model with a candidate solution. Got: none.")
        result = StageResult(self.request, arrival, state.pool.table.fields)
        for chunk, stats in self.model._scanned(stream):
            score_part(state, chunk, stats, self.known, result)
        result.cut_back()
        return result
