"""Define the phases of a learner, and the interface that they require of it.

A learner is in one phase at a time: it is fresh or learns columns, then learns rows one by one, or
in windows, or only counts them. A phase owns all that is learnt, so a learner has no attribute that
is None in other phases.
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from streamsel._utils.rollback import Rollback
from streamsel.base.groups import GroupCounts
from streamsel.base.refresh import RefreshSchedule
from streamsel.base.source_facts import SourceFacts
from streamsel.base.undo import Transactional
from streamsel.data.chunks import Chunk, Stats
from streamsel.state.base import ColumnState, Floats, VariableState
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension
from streamsel.state.stream_summary import StreamSummary
from streamsel.targets.kernels import VariableKernel
from streamsel.targets.observation import Observation
from streamsel.targets.rows import RowTarget
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import NoTarget, Target


class LearnerHooks(Transactional, Protocol):
    """Interface that phases require of a learner: its parameters, and hooks of its model."""

    n_jobs: int
    covariates: tuple[Hashable, ...] | None
    target_type: str
    permutations: int
    permutation_seed: int
    fading_factor: float
    max_features: int | None
    grace_period: int
    _is_supervised: ClassVar[bool]
    _takes_no_target: ClassVar[bool]
    _is_univariate: ClassVar[bool]
    _refresh: RefreshSchedule
    _phase: Phase
    _cache: dict[str, Any]

    @property
    def _by_window(self) -> bool: ...

    @property
    def _needs_single_source(self) -> bool: ...

    @property
    def _needs_classes(self) -> bool: ...

    @property
    def _takes_weights(self) -> bool: ...

    @property
    def _allows_missing(self) -> bool: ...

    @property
    def _takes_generated(self) -> bool: ...

    @property
    def _row_target_type(self) -> str: ...

    @property
    def _window_size(self) -> int: ...

    def _current(self) -> Any: ...

    def _check_target(self, c: int, *, is_class: bool) -> None: ...

    def _check_columns(self, target: RowTarget, seen: Observation, rows: int) -> None: ...

    def _variable_kernel(self) -> VariableKernel: ...

    def _new_columns(self, n: int) -> ColumnState: ...

    @classmethod
    def _supports_groups(cls) -> bool: ...

    def _new_groups(self, n: int) -> ColumnState: ...

    def _observed_moments(self, chunk: Chunk, stats: Stats) -> Stats: ...

    def _add_columns(self, state: ColumnState, chunk: Chunk, stats: Stats) -> None: ...

    def _new_row_extension(self) -> RowExtension | None: ...

    def _protected(
        self, moments: Moments, extension: RowExtension | None
    ) -> Collection[Hashable]: ...

    def _relevances_of_stats(self, moments: Moments, stats: Stats) -> Floats: ...

    def _take_target(self, target: Target) -> None: ...

    def _take_no_target(self, target: NoTarget | None) -> None: ...

    def _learn_window(self, names: list[Hashable], X: Floats, target: Target | None) -> None: ...

    def _refresh_if_due(self, rows: int) -> None: ...


class ConstantColumn(NamedTuple):
    """A column with one value in all rows.

    Parameters
    ----------
    value
        The value.
    arrival
        Number of columns that came before.
    """

    value: float
    arrival: int


class Phase(Rollback, abc.ABC):
    """State of a learner, and the way in which it goes on learning.

    Attributes
    ----------
    n_columns, n_passes
        Number of variables seen as columns, and of passes over them.
    constant
        Number of constant columns that no moments account for.
    kept_constants
        Constant columns that the state of columns does not keep, from which rows continue, by name;
        None if there were too many.
    on_rows
        Whether rows were learnt.
    columns, moments, extension
        The state of columns; and of rows with its extension. None in other phases.
    target, space
        Target of the columns, and its space; None in other phases.
    without_target
        Whether the learner learns without a target.
    summary
        Statistics of all columns seen; None where not available.
    source
        Facts about how the columns were read.
    group_counts
        Numbers of groups of columns seen; None if no column had a group.
    groups
        On windows of rows that follow grouped columns: the members of each group; None otherwise.
    """

    on_rows: ClassVar[bool]

    n_columns: int
    n_passes: float
    constant: int
    kept_constants: Mapping[Hashable, ConstantColumn] | None = MappingProxyType({})
    without_target: bool
    columns: ColumnState | None = None
    moments: Moments | None = None
    extension: RowExtension | None = None
    target: Target | NoTarget | None = None
    space: TargetSpace | None = None
    summary: StreamSummary | None = None
    source: SourceFacts = SourceFacts()
    group_counts: GroupCounts | None = None
    groups: Mapping[Hashable, Sequence[Hashable]] | None = None

    # Results

    @property
    @abc.abstractmethod
    def state(self) -> VariableState | None:
        """The state that results are computed from; None before the first variable."""

    @property
    @abc.abstractmethod
    def n_rows(self) -> int:
        """Number of rows seen: observations in every column, plus rows learnt since."""

    @property
    def n_constant(self) -> int:
        """Number of constant variables among those seen."""
        return self.constant

    @property
    def n_varying(self) -> int:
        """Number of non-constant variables, or groups of these, among those seen."""
        counts = self.group_counts
        return self.n_columns - self.n_constant if counts is None else counts.n - counts.n_constant

    @property
    def n_candidates(self) -> int:
        """Number of columns seen, or of groups of these."""
        return self.n_columns if self.group_counts is None else self.group_counts.n

    @property
    def is_grouped(self) -> bool:
        """Whether columns are selected by groups."""
        return self.group_counts is not None or self.groups is not None

    @property
    def is_blank(self) -> bool:
        """Whether there are no variables to compute results from."""
        return self.state is None or not self.n_columns

    @property
    @abc.abstractmethod
    def target_description(self) -> str | None:
        """How the target was interpreted; on rows without class sizes."""

    @abc.abstractmethod
    def rows_and_space(self, state: VariableState | None) -> tuple[float, TargetSpace | None]:
        """Return the effective number of rows, and the target space over them.

        Parameters
        ----------
        state
            The state that results are computed from.
        """

    @property
    def weight(self) -> float:
        """Effective number of rows of equal weight (Kish 1965), for the schedule of refreshes."""
        return float(self.n_rows)

    # Learning

    def learn_row(self, model: LearnerHooks, x: dict[Hashable, Any], y: Any, w: float) -> None:
        """Learn a row."""
        raise NotImplementedError

    def learn_rows(self, model: LearnerHooks, X: Any, y: Any, w: Any) -> None:
        """Learn many rows."""
        raise NotImplementedError

    def clear_row_cache(self) -> None:
        """Clear the cached names of the previous row: their indices may have changed."""

    def recheck_due(self) -> None:
        """Check before the next row whether further work is due."""

    def prepare_merge(self) -> None:
        """Prepare for changes in place."""

    # Files

    @property
    def parts(self) -> tuple[Any, ...]:
        """The states of the phase; each checks its own values."""
        every = (self.target, self.columns, self.moments, self.extension)
        return tuple(part for part in every if part is not None)

    @abc.abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return the learnt state for a model file, as arrays and JSON-compatible values."""


def columns_to_state(phase: Phase) -> dict[str, Any]:
    """Return learnt columns for a model file."""
    target, columns, summary = phase.target, phase.columns, phase.summary
    state: dict[str, Any] = {
        "n_columns": phase.n_columns,
        "n_constant": phase.constant,
        "n_passes": phase.n_passes,
        "without_target": phase.without_target,
        "n_rows": None if target is None else target.n,
    }
    if target is not None:
        state |= target.to_state()
    if columns is not None:
        state["columns"] = columns.to_state()
    if phase.space is not None and phase.n_columns and summary is not None:
        state["summary"] = summary.to_state()
    if source := phase.source.to_state():
        state["source"] = source
    if phase.kept_constants is None:
        state["constants"] = None
    elif phase.kept_constants:
        state["constants"] = list(phase.kept_constants)
        values, arrivals = zip(*phase.kept_constants.values(), strict=True)
        state["constant_values"], state["constant_arrivals"] = np.array(values), np.array(arrivals)
    if phase.group_counts is not None:
        state["group_counts"] = phase.group_counts._asdict()
    return state
