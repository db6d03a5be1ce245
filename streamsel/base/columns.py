"""Define the phase of a learner on columns: their target, their state, and statistics of all.

Columns of any input form are validated in one place and passed on in order. A learner receives a
column as its moments (`columns.Stats`) and, on request, its values; the state defines what is
kept of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamsel._utils.system import effective_jobs
from streamsel.base.groups import GroupCounts, check_groups
from streamsel.base.learn_target import new_summary, space_of
from streamsel.base.phase import ConstantColumn, LearnerHooks, Phase, columns_to_state
from streamsel.base.source_facts import SourceFacts
from streamsel.base.to_rows import new_row_phase, new_window_phase, refuse_rows_of_groups
from streamsel.base.undo import with_rollback
from streamsel.base.windows import WindowPhase
from streamsel.data.chunks import Block, Chunk, GeneratedChunk, Stats, group_starts
from streamsel.data.columns import bad_column_error, iter_chunks, single_column
from streamsel.data.names import LazyNames, bad_name_error, first_invalid_name
from streamsel.params import parameter_repr
from streamsel.serialization.json_values import as_array
from streamsel.state.base import ColumnState, VariableState
from streamsel.state.histogram import RelevanceHistogram
from streamsel.state.stream_summary import StreamSummary
from streamsel.stream import ColumnStream
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import NoTarget, Target
from streamsel.targets.weights import weight_of_row

_FLOAT64 = np.dtype(np.float64)
# Moments have a relative error of 1e-10. The error of a relevance is then below the first number,
# if at least the second fraction of the sum of squares is left after adjusting for covariates.
_RELEVANCE_ERROR, _CANCELLATION_RTOL = 1e-6, 1e-3
# Names of constant columns are kept up to this number, or that of the other columns kept.
_MAX_CONSTANTS = 10_000


class ColumnPhase(Phase):
    """A learner before its first row.

    Parameters
    ----------
    without_target
        Whether columns can be learnt without a target.

    Attributes
    ----------
    columns
        State of the columns; None before the first.
    """

    on_rows = False
    changing = (
        "n_columns",
        "n_passes",
        "constant",
        "kept_constants",
        "without_target",
        "target",
        "space",
        "columns",
        "summary",
        "source",
        "group_counts",
    )

    def __init__(self, *, without_target: bool) -> None:
        self.n_columns = 0
        self.n_passes = 0
        # Number of constant columns.
        self.constant = 0
        self.kept_constants: dict[Hashable, ConstantColumn] | None = {}
        self.without_target = without_target
        self.target: Target | NoTarget | None = None
        self.space: TargetSpace | None = None
        self.columns: ColumnState | None = None
        self.summary: StreamSummary | None = StreamSummary()
        self.source = SourceFacts()
        self.group_counts: GroupCounts | None = None

    # Results

    @property
    def state(self) -> VariableState | None:
        """The state of the columns; None before the first."""
        return self.columns

    @property
    def n_rows(self) -> int:
        """Number of observations in every column; 0 before it is known."""
        return 0 if self.target is None else self.target.n

    @property
    def target_description(self) -> str | None:
        """How the target was interpreted."""
        return None if self.target is None else self.target.description

    def rows_and_space(self, state: VariableState | None) -> tuple[float, TargetSpace | None]:
        """Return the effective number of observations, and the target space."""
        del state
        return 0.0 if self.target is None else self.target.effective_rows, self.space

    # The target

    def take_target(self, model: LearnerHooks, target: Target) -> None:
        """Adopt a target that the method has accepted."""
        space = space_of(model, target)
        self.without_target, self.target, self.space = False, target, space
        self.summary = new_summary(model, target, space)

    def learn_without_target(self, target: NoTarget | None) -> None:
        """Select without a target; with weights if they are given."""
        self.without_target, self.target, self.space = True, target, None

    def expected_target(self, model: LearnerHooks, n: int) -> Target | NoTarget:
        """Return the target that a column of n values belongs to."""
        self.refuse_awaiting("columns")
        if self.target is not None:
            return self.target
        if not self.without_target:
            raise ValueError(
                "Expected a target before the first column. Got: a column.\n"
                "Hint: call learn_target(y) first"
                + ("; learn_target(None) selects without one." if model._takes_no_target else ".")
            )
        if n < 2:
            raise ValueError(f"Expected columns of at least 2 observations. Got: {n}.")
        return NoTarget(n)

    def refuse_awaiting(self, got: str) -> None:
        """Raise ValueError if relatedness is to be computed from a source of all columns."""
        if self.target is not None and self.target.untransformed is not None:
            raise ValueError(
                'Expected a reiterable source of all columns, as relatedness="auto" requires. Got: '
                f"{got}.\n"
                "Hint: learn_columns(source), or relatedness=Relatedness.from_columns(source)."
            )

    # Columns

    def learn_column(self, model: LearnerHooks, name: Hashable, values: Any) -> None:
        """Learn one variable."""
        if self._can_skip(model, name, values):
            return
        target = self.target
        if target is None:
            shape = np.shape(
                values
                if hasattr(values, "shape")
                else as_array(values, f"values of {parameter_repr(name)}")
            )
            target = self.expected_target(model, shape[0] if shape else 0)
        chunk = single_column(name, values, target.n, target.row_transform, target.kept)
        stats = _scan(model, chunk, target, 1)
        m2 = stats.m2[0]
        if not math.isfinite(m2):
            raise bad_column_error(name, chunk.column(0), target.kept)
        tracked = self.tracked_names()
        # Fast path: nearly all names are text or integers, and new.
        plain = type(name) in (str, int) and name not in tracked
        if not plain and first_invalid_name((name,), tracked) is not None:
            raise bad_name_error(name)
        with_rollback(model, self._learn_chunk, model, chunk, stats, target, int(m2 == 0.0))

    def learn_block(self, model: LearnerHooks, block: Block) -> Exception | None:
        """Learn the columns of a block up to the first bad one; return its error, or None."""
        target = self.expected_target(model, block.values.shape[0])
        self.target = target
        n_jobs = effective_jobs(model.n_jobs)
        # A look-up of every tracked name in every chunk would take longer than the scan.
        is_new = isinstance(block.names, LazyNames) and (
            first_invalid_name(block.names, self.tracked_names()) is None
        )
        for chunk in iter_chunks(block, target.n, target.row_transform, target.kept, n_jobs):
            stats = _scan(model, chunk, target, n_jobs)
            stop, error = self._first_bad(chunk, stats, is_new=is_new)
            if error is not None:
                stats = Stats(*(array[:stop] for array in stats))
            if stop:
                constant = int(np.count_nonzero(stats.m2 == 0.0))
                self._learn_chunk(model, chunk, stats, target, constant)
            if error is not None:
                return error
        return None

    def scanned(self, model: LearnerHooks, source: ColumnStream) -> Iterator[tuple[Any, Any]]:
        """Yield the columns of a further pass with their moments; raise at the first bad one.

        If columns have groups, yield the groups with their statistics.
        """
        n_jobs = effective_jobs(model.n_jobs)
        for block in source.blocks(generated=model._takes_generated):
            target = self.expected_target(model, block.values.shape[0])
            for chunk in iter_chunks(block, target.n, target.row_transform, target.kept, n_jobs):
                stats = _scan(model, chunk, target, n_jobs)
                bad = np.flatnonzero(~np.isfinite(stats.m2))
                if bad.size:
                    raise bad_column_error(
                        chunk.names[bad[0]], chunk.column(int(bad[0])), target.kept
                    )
                if self.group_counts is None or self.columns is None:
                    yield chunk, stats
                else:
                    yield from self.columns.iter_groups(chunk, stats)

    def _learn_chunk(
        self,
        model: LearnerHooks,
        chunk: Chunk,
        stats: Stats,
        target: Target | NoTarget,
        constant: int,
    ) -> None:
        """Learn the leading columns of a chunk, as many as `stats` has; all of them are valid."""
        if chunk.groups is not None or self.group_counts is not None:
            self._learn_groups(model, chunk, stats, target)
        else:
            self._learn_single_columns(model, chunk, stats, target)
        if constant:
            self._keep_constants(chunk, stats)
        self.n_columns += stats.m2.size
        self.constant += constant
        self.n_passes = self.n_passes or 1
        self.target = target
        model._invalidate()

    def _learn_single_columns(
        self, model: LearnerHooks, chunk: Chunk, stats: Stats, target: Target | NoTarget
    ) -> None:
        state = self.columns
        if state is None:
            state = self.columns = model._new_columns(target.n)
        space, summary = self.space, self.summary
        if isinstance(chunk, GeneratedChunk):
            stats = _with_exact(chunk, stats, state.exact_from, space)
        if space is None or summary is None or isinstance(target, NoTarget):
            model._add_columns(state, chunk, stats)
        else:
            # Cached in the space, as nearly all states need it too.
            relevance = space.cache_relevance(stats.m2, stats.cxy)
            try:
                model._add_columns(state, chunk, stats)
            finally:
                space.clear_cache()
            summary.add(chunk, stats, target, space, relevance, self.n_columns)

    def _keep_constants(self, chunk: Chunk, stats: Stats) -> None:
        """Keep names and values of constant columns that the state does not keep.

        Rows and merges of rows continue from them. They are of no use after a column was discarded.
        """
        state = self.columns
        if self.kept_constants is None or state is None or not state.complete or self.is_grouped:
            return
        if len(state.names) == self.n_columns + stats.m2.size:
            return  # the state keeps constant columns too
        for j in np.flatnonzero(stats.m2 == 0.0).tolist():
            if chunk.names[j] not in state.index_of:
                value = float(stats.mean[j] + stats.mean_error[j])
                self.kept_constants[chunk.names[j]] = ConstantColumn(value, self.n_columns + j)
        if len(self.kept_constants) > max(_MAX_CONSTANTS, len(state.names)):
            self.kept_constants = None

    def _learn_groups(
        self, model: LearnerHooks, chunk: Chunk, stats: Stats, target: Target | NoTarget
    ) -> None:
        """Learn the leading columns of a chunk by groups; a column without one is its own group."""
        state = self.start_groups(model, target)
        counts, summary = self.group_counts or GroupCounts(0, 0), self.summary
        if summary is not None and isinstance(target, Target):
            summary.add_sample(chunk, stats, target, self.n_columns)
        for groups, of_groups in state.iter_groups(chunk, stats):
            state.admit(groups, of_groups, counts.n)
            varies = of_groups.rank > 0.0
            if summary is not None:
                relevance = np.where(varies, of_groups.relevance, -np.inf)
                summary.add_relevance(relevance, counts.n)
            counts = counts.plus(varies.size, int(np.count_nonzero(~varies)))
        self.group_counts = counts

    def start_groups(self, model: LearnerHooks, target: Target | NoTarget) -> ColumnState:
        """Return the state of groups; columns learnt before the first group become groups."""
        state = self.columns
        if state is None or not state.is_grouped:
            state = self.columns = self.as_groups(model, target)
            self.group_counts = GroupCounts(self.n_columns, self.constant)
        return state

    def as_groups(self, model: LearnerHooks, target: Target | NoTarget) -> ColumnState:
        """Return the state of columns as one of groups, without changing it."""
        state = self.columns
        if state is not None and state.is_grouped:
            return state
        grouped = self.no_groups(model, target)
        if state is not None:
            grouped.adopt_columns(state)
        return grouped

    def no_groups(self, model: LearnerHooks, target: Target | NoTarget) -> ColumnState:
        """Return an empty state of groups; ValueError for a model that does not support them."""
        return model._new_groups(check_groups(model, target).n)

    def _can_skip(self, model: LearnerHooks, name: Hashable, values: Any) -> bool:
        """Learn a valid column that changes only counts, and return True; if unsure, return False.

        A fast path for the most common form of columns; any other is learnt as a chunk, with the
        same result.
        """
        state, space, target, summary = self.columns, self.space, self.target, self.summary
        if state is None or space is None or target is None or summary is None:
            return False
        threshold = state.irrelevant_below
        if not (
            threshold > 0.0
            and self.n_columns < summary.histogram_only_until
            and target.row_transform is None
            and type(values) is np.ndarray
            and values.dtype is _FLOAT64
            and values.shape == (target.n if target.kept is None else target.kept.n,)
            and values.flags.carray
            and type(name) in (str, int)
            and name not in state.index_of
        ):
            return False
        if target.kept is not None:
            values = values.take(target.kept.index)
        bin_index = space.bin_if_below(values, target.Y, threshold)
        if bin_index < 0:
            return False
        n_columns = self.n_columns
        histogram = summary.histogram
        if n_columns >= histogram.last_bin_end:
            self._count_first(model, histogram, bin_index)
            return True
        if model._cache:
            model._invalidate()
        counts = histogram.singles
        before = counts[bin_index]
        try:
            counts[bin_index] = before + 1
            self.n_columns = n_columns + 1
        except BaseException:
            counts[bin_index], self.n_columns = before, n_columns
            raise
        return True

    def _count_first(
        self, model: LearnerHooks, histogram: RelevanceHistogram, bin_index: int
    ) -> None:
        """Count a column that changes only counts, and is the first of its bin of arrival."""
        n_columns, restore = self.n_columns, histogram.snapshot()
        try:
            histogram.start_bin(n_columns)
            # The list is replaced, as the snapshot refers to the old one.
            histogram.singles = [*histogram.singles]
            histogram.singles[bin_index] += 1
            self.n_columns = n_columns + 1
            model._invalidate()
        except BaseException:
            restore()
            self.n_columns = n_columns
            raise

    def _first_bad(
        self, chunk: Chunk, stats: Stats, *, is_new: bool
    ) -> tuple[int, Exception | None]:
        """Return the number of columns before the first bad one, and its error or None.

        With groups, the number of columns before the group of the first bad one. `is_new` skips the
        check of names.
        """
        stop, error = len(chunk.names), None
        finite = np.isfinite(stats.m2)
        if not finite.all():
            stop = int(np.argmin(finite))
            kept = None if self.target is None else self.target.kept
            error = bad_column_error(chunk.names[stop], chunk.column(stop), kept)
        if chunk.groups is not None:
            return _first_bad_group(chunk, chunk.groups, self.tracked_names(), stop, error)
        if is_new:
            return stop, error
        repeated = first_invalid_name(chunk.names[:stop], self.tracked_names())
        if repeated is None:
            return stop, error
        return repeated, bad_name_error(chunk.names[repeated])

    def tracked_names(self) -> Mapping[Hashable, int]:
        """Return the tracked names with their indices."""
        return {} if self.columns is None else self.columns.index_of

    # The first rows

    def learn_row(self, model: LearnerHooks, x: dict[Hashable, Any], y: Any, w: float) -> None:
        """Learn the first row; afterwards the learner is in another phase."""
        if model._by_window or self.is_grouped:
            self._new_window_phase(model).learn_row(model, x, y, w)
            return
        w = 1.0 if w == 1.0 else weight_of_row(w)
        if w:
            new_row_phase(model, self).learn_first(model, x, y, w)

    def learn_rows(self, model: LearnerHooks, X: Any, y: Any, w: Any) -> None:
        """Learn the first rows; afterwards the learner is in another phase."""
        by_window = model._by_window or self.is_grouped
        phase = self._new_window_phase(model) if by_window else new_row_phase(model, self)
        phase.learn_rows(model, X, y, w)

    def _new_window_phase(self, model: LearnerHooks) -> WindowPhase:
        if self.is_grouped:
            refuse_rows_of_groups(model, self)
        return new_window_phase(model, self)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the learnt state for a model file, as arrays and JSON-compatible values."""
        return columns_to_state(self)


def _first_bad_group(
    chunk: Chunk,
    groups: Sequence[Hashable],
    tracked: Mapping[Hashable, int],
    stop: int,
    error: Exception | None,
) -> tuple[int, Exception | None]:
    """Return the number of columns before the first bad group, and its error or None.

    Parameters
    ----------
    chunk, groups
        The columns, and the group of each.
    tracked
        Names of groups that are in use.
    stop, error
        Index of the first column with bad values, and its error; or their number and None.
    """
    starts = group_starts(groups, len(groups))
    starts = starts[: np.searchsorted(starts, stop, side="right")]
    is_whole = error is None
    last = len(groups) if is_whole else int(starts[-1])
    firsts = starts[starts < last].tolist()
    names = [chunk.names[j] if groups[j] is None else groups[j] for j in firsts]
    repeated = first_invalid_name(names, tracked)
    if repeated is not None:
        last, error = firsts[repeated], bad_name_error(names[repeated])
    for start, end in zip(firsts, [*firsts[1:], last], strict=False):
        if start >= last:
            break
        members = chunk.names[start:end]
        bad = first_invalid_name(members, {}) if end - start > 1 else None
        if bad is not None:
            return start, bad_name_error(members[bad])
    return last, error


def _scan(model: LearnerHooks, chunk: Chunk, target: Target | NoTarget, n_jobs: int) -> Stats:
    """Return the moments of a chunk's columns; not finite for columns that are not valid."""
    stats = chunk.scan(target, n_jobs)
    return model._observed_moments(chunk, stats) if model._allows_missing else stats


def _with_exact(
    chunk: GeneratedChunk, stats: Stats, exact_from: float, space: TargetSpace | None
) -> Stats:
    """Return moments that are exact for columns whose relevance may reach `exact_from`."""
    if exact_from == math.inf:
        return stats
    if space is None or exact_from == -math.inf:
        return chunk.exact(stats, np.arange(stats.m2.size))
    relevance = space.relevance(stats.m2, stats.cxy)
    adjusted = space.adjusted_squares(stats.m2, stats.cxy)
    is_certain = (relevance < exact_from - _RELEVANCE_ERROR) & (
        adjusted >= _CANCELLATION_RTOL * stats.m2
    )
    return chunk.exact(stats, np.flatnonzero(~is_certain))
