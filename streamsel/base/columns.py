"""Implement the column axis: learning the target, single columns and streams of columns.

Columns of any input form are validated in one place and passed on in order. A learner receives a
column as its moments (`columns.Stats`) and, on request, its values; the state defines what is
kept of them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from streamsel._utils.sparse import is_sparse
from streamsel._utils.system import effective_jobs
from streamsel.base.guard import learn_exclusively
from streamsel.base.undo import Transactional
from streamsel.data.columns import (
    Block,
    Chunk,
    Stats,
    bad_column_error,
    iter_chunks,
    observed_moments,
    single_column,
)
from streamsel.data.names import bad_name_error, first_invalid_name
from streamsel.params import parameter_repr
from streamsel.serialization.json_values import as_array
from streamsel.state.base import ColumnState
from streamsel.state.histogram import RelevanceHistogram
from streamsel.state.stream_summary import StreamSummary
from streamsel.stream import ColumnStream, as_stream
from streamsel.targets.kept_rows import MISSING_POLICIES, KeptRows, kept_rows
from streamsel.targets.permutations import PermutedTarget
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import NoTarget, Target

OnBlock = Callable[[Any], object]


class _CallbackError(BaseException):
    """Carries an exception of the user's function past the handlers that roll back."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def block_callback(
    learn: Callable[[ColumnStream], None],
    stream: ColumnStream,
    model: Any,
    on_block: OnBlock | None,
) -> None:
    """Learn a stream, and call a function after each block.

    Parameters
    ----------
    learn
        Learns a stream.
    stream
        The stream.
    model
        Argument of the function.
    on_block
        The function; None for none.

    Raises
    ------
    Exception
        Any exception of the function, and those of `learn`.
    """
    if on_block is None:
        learn(stream)
        return

    def blocks() -> Iterator[Block]:
        for block in stream.blocks():
            yield block
            # The consumer requests the next block only after learning this one.
            try:
                on_block(model)
            except Exception as error:
                raise _CallbackError(error) from error

    ended = None
    try:
        learn(
            ColumnStream(
                blocks,
                n_rows=stream.n_rows,
                n_columns=stream.n_columns,
                reiterable=stream.reiterable,
            )
        )
    except _CallbackError as error:
        ended = error.error
    # Raised here, so that the traceback does not include `_CallbackError`.
    if ended is not None:
        raise ended


# With fewer rows, an identifier cannot be distinguished from classes.
_MIN_ROWS_IDENTIFIER = 8
_FLOAT64 = np.dtype(np.float64)


class ColumnAxis(Transactional):
    """Validate columns and pass them to the state, in order and with their moments."""

    def _begin_columns(self) -> None:
        self.n_columns = 0
        self.n_passes: float = 0
        self._n_constant = 0
        self._target: Target | NoTarget | None = None
        self._space: TargetSpace | None = None
        self._without_target = not self._is_supervised
        # State on columns; None before the first column, and once there are rows.
        self._columns: ColumnState | None = None
        # Statistics of all columns seen; None where not available.
        self._summary: StreamSummary | None = StreamSummary()

    def learn_target(
        self,
        y: Any,
        covariates: Any = None,
        weights: Any = None,
        *,
        strata: Any = None,
        missing: str = "error",
    ) -> None:
        """Learn the target; once, before the columns.

        Parameters
        ----------
        y
            Numbers of shape (n,) or (n, c), labels of shape (n,), or a Series or DataFrame of
            either; with `target_type="survival"`, times and events (n, 2). None, where the learner
            allows it, for unsupervised selection, in which the variables explain each other. A
            single column of whole numbers with 2 to 20 distinct values, at most n / 2 of them, is
            treated as classes, for integers and floats, unless `target_type="numeric"`;
            `report().target` shows how the target was interpreted. Two values are treated as a
            quantity if the learner, with its parameters, does not support classes.
        covariates
            Variables to adjust for, such as age or batch: numbers of shape (n,) or (n, d), labels,
            a Series or DataFrame of either, or a dict: name -> either. They are projected out of
            the target and the variables: relevance is that of the residuals.
        weights
            Weight of each observation relative to the others, (n,) numbers, 0 or above; 2 for an
            observation that represents two. All statistics are then weighted, and the noise floor
            and p-values are based on (Σw)² / Σw² observations. With fewer than about 100 of these,
            and with inverse-variance weights, p-values are too large. None for equal weights.
        strata
            Groups of observations, such as batches or families, within which the target is permuted
            if `permutations` is above 0: (n,) labels or whole numbers. None for a single group.
        missing
            `"drop"` excludes rows whose target is missing (NaN, None, NA), as if they did not
            exist: columns, covariates, weights and strata still have a value for every row, which
            may be missing in excluded rows. `"error"` rejects a missing target, except in a row of
            weight 0.

        Raises
        ------
        ValueError
            For a target that is constant, not finite, or of fewer than two rows; for a target
            passed after columns were learnt; for covariates that explain all of it; and for weights
            where the method is not a function of weighted moments.
        TypeError
            For values that are neither numbers nor labels, and weights that are not numbers.

        Notes
        -----
        Costs O(n (c + d)²) once, and O(n (c + d)) memory. With weights each column is copied and
        transformed, O(n), and sparse columns become dense. With excluded rows each column is copied
        without them. The model file stores which rows are included; `embedding` is NaN in the
        others.
        """
        self._refuse_after_rows()
        if missing not in MISSING_POLICIES:
            raise ValueError(f"Expected missing='error' or 'drop'. Got: {parameter_repr(missing)}.")
        if self.n_columns:
            raise ValueError(
                f"Expected the target before the columns. Got: a target after {self.n_columns} "
                "columns.\nHint: model.clone() is an unfitted model for a new target."
            )
        if not self._is_supervised and y is not None:
            raise ValueError(
                f"Expected no target: {type(self).__name__} learns without one. Got: a target.\n"
                "Hint: call learn_columns(X) alone."
            )
        if y is None:
            self._learn_atomically(self._learn_no_target, covariates, weights)
            return
        if self.covariates and covariates is None:
            raise ValueError(
                f"Expected the covariates {list(self.covariates)}, which the parameter covariates "
                "names. Got: none.\nHint: learn_target(y, covariates=Z)."
            )
        if strata is not None and not self.permutations:
            raise ValueError(
                "Expected permutations above 0 with strata, within which to permute. Got: 0.\n"
                f"Hint: {type(self).__name__}(permutations=1000), or omit strata; "
                "covariates=strata adjusts for them."
            )
        kept = kept_rows(y, weights, missing)
        if kept is None:
            self._learn_atomically(self._learn_target, y, covariates, weights, strata)
        else:
            arguments = {"covariates": covariates, "weights": weights, "strata": strata}
            arguments = {
                name: None if v is None else kept.restrict(v, name) for name, v in arguments.items()
            }
            self._learn_atomically(
                self._learn_target, kept.restrict(y, "a target"), *arguments.values(), kept
            )
        target = self._target
        assert isinstance(target, Target)  # noqa: S101
        if (
            target.is_class
            and np.count_nonzero(~target.is_covariate) == target.n >= _MIN_ROWS_IDENTIFIER
        ):
            warnings.warn(_one_class_per_row(target.n), UserWarning, stacklevel=2)

    def _learn_target(
        self,
        y: Any,
        covariates: Any,
        weights: Any,
        strata: Any = None,
        kept: KeptRows | None = None,
    ) -> None:
        """Learn the target and its covariates, weights and strata, of all rows or of those kept."""
        options = covariates, self.covariates, weights, strata, kept
        with nullcontext() if kept is None else kept.renumber_errors():
            target = Target(y, self.target_type, *options)
            try:
                self._take_target(target)
            except ValueError:
                # Two numeric values have the same correlations as two classes.
                by_rule = target.is_class and target.decided_by_values
                if not by_rule or np.count_nonzero(~target.is_covariate) > 2:
                    raise
                self._take_target(Target(y, "numeric", *options))

    def _take_target(self, target: Target) -> None:
        c = int(np.count_nonzero(~target.is_covariate))
        self._check_target(c, is_class=target.is_class)
        if target.is_class and c == target.n > 2 and self._needs_classes:
            raise ValueError(_one_class_per_row(c))
        self._refuse_weights(target)
        space = TargetSpace(
            target.cyy,
            target.n,
            self._variable_kernel(),
            target.is_covariate,
            target.effective_rows,
            is_pair=target.is_pair,
        )
        if not space.linear_rank:
            raise ValueError(
                "Expected a target that the covariates do not determine. Got: a target that they "
                "explain in full.\nHint: check that the target is not among the covariates."
            )
        self._without_target, self._target, self._space = False, target, space
        self._summary = self._new_summary()

    def _new_summary(self) -> StreamSummary:
        """Return an empty summary."""
        target, space = self._target, self._space
        if not isinstance(target, Target) or space is None or not self.permutations:
            return StreamSummary()
        seed = self.permutation_seed
        return StreamSummary(PermutedTarget(target, space, self.permutations, seed))

    def _learn_no_target(self, covariates: Any, weights: Any) -> None:
        if self._is_supervised and not self._takes_no_target:
            raise ValueError(
                f"Expected a target: {type(self).__name__} is supervised. Got: None.\n"
                "Hint: ProjSe also selects without a target."
            )
        if covariates is not None:
            raise ValueError(
                "Expected a target with covariates. Got: None.\n"
                "Hint: to adjust for covariates without a target, regress the columns on them."
            )
        target = None if weights is None else NoTarget.of_weights(weights)
        self._refuse_weights(target)
        self._without_target, self._target, self._space = True, target, None

    def _refuse_weights(self, target: Target | NoTarget | None) -> None:
        if target is not None and target.weights is not None and not self._takes_weights:
            raise ValueError(
                f"Expected no weights: {type(self).__name__} with these parameters uses single "
                "observations, not weighted moments. Got: weights.\n"
                "Hint: repeat each row in proportion to its weight, or omit weights."
            )

    def _refuse_after_rows(self) -> None:
        if self._on_rows:
            raise ValueError(
                "Expected rows, as the model has learnt rows and does not store their "
                "observations. Got: a target or a column.\n"
                "Hint: learn columns first, then rows; or merge two models that learnt other rows."
            )

    def learn_column(self, name: Hashable, values: Any) -> None:
        """Learn one variable.

        Parameters
        ----------
        name
            Any hashable name that is not tracked by the model.
        values
            The n observations: an array or sequence of shape (n,), or a sparse column. float64,
            float32, int8 and uint8 are read without a copy.

        Raises
        ------
        ValueError
            For missing or infinite values, a wrong length, or a name that the model tracks already
            (names of discarded columns may be used again).
        TypeError
            For values that are not real numbers, or a name that cannot be hashed.
        """
        learn_exclusively(self._guard, self._learn_column, name, values)

    def _learn_column(self, name: Hashable, values: Any) -> None:
        # On moments of rows `_columns` is None, and then `_can_skip` returns False.
        if self._window is None and not self._needs_single_source and self._can_skip(name, values):
            return
        self._refuse_after_rows()
        self._check_source(None)
        target = self._target
        if target is None:
            shape = np.shape(
                values
                if hasattr(values, "shape")
                else as_array(values, f"values of {parameter_repr(name)}")
            )
            target = self._expected_target(shape[0] if shape else 0)
        chunk = single_column(name, values, target.n, target.weights, target.kept)
        stats = self._scan(chunk, target, 1)
        m2 = stats.m2[0]
        if not math.isfinite(m2):
            raise bad_column_error(name, chunk.column(0), target.kept)
        tracked = self._tracked_names()
        # Fast path: nearly all names are text or integers, and new.
        plain = type(name) in (str, int) and name not in tracked
        if not plain and first_invalid_name((name,), tracked) is not None:
            raise bad_name_error(name)
        self._with_rollback(self._learn_chunk, chunk, stats, target, int(m2 == 0.0))

    def learn_columns(
        self,
        X: Any,
        names: Sequence[Hashable] | None = None,
        *,
        on_block: OnBlock | None = None,
    ) -> None:
        """Learn many variables: a block, or a stream of blocks.

        Parameters
        ----------
        X
            An (n, p) array or sparse matrix, a frame of any library supported by narwhals, an
            AnnData, a `ColumnStream`, any iterable of (name, values), or the path or URL of a file
            of any format, as `stream.as_stream` accepts them.
        names
            Names of the columns of an array or matrix; numbered from `n_columns` on if None.
        on_block
            Called with the model after each block that was learnt completely, in every pass: to
            report progress, or to save the model. An exception that it raises ends the learning,
            without rolling back any block.

        Raises
        ------
        ValueError, TypeError
            As `learn_column`, and for a name that occurs twice in one block. If X can be read
            again, the model is then rolled back to its state before the call; if it cannot (a
            generator), the columns before the bad one stay learnt, as they would be lost otherwise.

        Notes
        -----
        The result depends neither on how the columns are divided into blocks, nor on `n_jobs`.
        After an interrupt (Ctrl-C) every complete block is learnt and the model is usable.
        """
        is_matrix = isinstance(X, np.ndarray) or is_sparse(X)
        if names is None and is_matrix and X.ndim == 2:
            names = range(self.n_columns, self.n_columns + X.shape[1])
        stream = as_stream(X, names)
        self._refuse_after_rows()
        self._check_source(stream)
        block_callback(self._learn_or_undo, stream, self, on_block)

    def _learn_or_undo(self, stream: ColumnStream) -> None:
        """Learn a stream; roll back on an error if the stream is reiterable."""
        before = self.n_columns
        try:
            self._learn_in_session(
                Exception if stream.reiterable else (), self._learn_stream, stream
            )
        except (ValueError, TypeError) as error:
            if stream.reiterable or type(error) not in (ValueError, TypeError):
                raise
            raise type(error)(
                f"{error}\nThe {self.n_columns - before} columns before it stay learnt."
            ) from error

    def _check_source(self, stream: ColumnStream | None) -> None:
        """Raise ValueError for a source (None: a single column) that rules out several passes."""
        if not self._needs_single_source:
            return
        if stream is None:
            got = "a single column"
        elif not stream.reiterable:
            got = "a source that can be read only once"
        elif self.n_columns:
            got = "another source"
        else:
            return
        raise ValueError(
            "Expected one source that can be read again, as exact=True requires. Got: "
            f"{got}.\nHint: exact=False certifies as many picks as one pass can (n_certified); "
            "a pool that keeps all columns is exact in one pass."
        )

    @property
    def _n_passes_expected(self) -> float:
        """Expected total number of passes over the columns, if the answer does not change."""
        return self.n_passes

    def _learn_stream(self, stream: ColumnStream) -> None:
        self._learn_once(stream)

    def _learn_once(self, stream: ColumnStream) -> None:
        for block in stream.blocks():
            self._learn_block(block)

    def _learn_block(self, block: Block) -> None:
        error = self._learn_atomically(self._learn_chunks, block)
        if error is not None:
            raise error

    def _learn_chunks(self, block: Block) -> Exception | None:
        """Learn the columns of a block up to the first bad one; return its error, or None."""
        target = self._expected_target(block.values.shape[0])
        self._target = target
        for chunk in iter_chunks(block, target.n, target.weights, target.kept):
            stats = self._scan(chunk, target, effective_jobs(self.n_jobs))
            stop, error = self._first_bad(chunk, stats)
            if error is not None:
                stats = Stats(*(array[:stop] for array in stats))
            if stop:
                constant = int(np.count_nonzero(stats.m2 == 0.0))
                self._learn_chunk(chunk, stats, target, constant)
            if error is not None:
                return error
        return None

    def _scan(self, chunk: Chunk, target: Target | NoTarget, n_jobs: int) -> Stats:
        """Return the moments of a chunk's columns; not finite for columns that are not valid."""
        stats = chunk.scan(target, n_jobs)
        return observed_moments(chunk, stats) if self._takes_missing else stats

    def _scanned(self, source: ColumnStream) -> Iterator[tuple[Chunk, Stats]]:
        """Yield the columns of a further pass with their moments; raise at the first bad one."""
        target = self._target
        assert target is not None  # noqa: S101
        for block in source.blocks():
            for chunk in iter_chunks(block, target.n, target.weights, target.kept):
                stats = self._scan(chunk, target, effective_jobs(self.n_jobs))
                bad = np.flatnonzero(~np.isfinite(stats.m2))
                if bad.size:
                    raise bad_column_error(
                        chunk.names[bad[0]], chunk.column(int(bad[0])), target.kept
                    )
                yield chunk, stats

    def _learn_chunk(
        self, chunk: Chunk, stats: Stats, target: Target | NoTarget, constant: int
    ) -> None:
        """Learn the leading columns of a chunk, as many as `stats` has; all of them are valid."""
        if self._columns is None:
            self._columns = self._new_columns(target.n)
        space, summary = self._space, self._summary
        if space is None or summary is None:
            self._add_columns(chunk, stats)
        else:
            assert isinstance(target, Target)  # noqa: S101
            # Shared through the space, as nearly all states compute it too.
            relevance = space.cache_relevance(stats.m2, stats.cxy)
            try:
                self._add_columns(chunk, stats)
            finally:
                space.clear_cache()
            summary.add(chunk, stats, target, space, relevance, self.n_columns)
        self.n_columns += stats.m2.size
        self._n_constant += constant
        self.n_passes = self.n_passes or 1
        self._target = target
        self._invalidate()

    def _can_skip(self, name: Hashable, values: Any) -> bool:
        """Learn a valid column that changes only counts, and return True; False if unsure.

        A fast path for the most common form of columns; any other is learnt as a chunk, with the
        same result.
        """
        state, space, target, summary = self._columns, self._space, self._target, self._summary
        if state is None or space is None or target is None or summary is None:
            return False
        threshold = state.irrelevant_below
        if not (
            threshold > 0.0
            and self.n_columns < summary.histogram_only_until
            and target.weights is None
            and type(values) is np.ndarray
            and values.dtype is _FLOAT64
            and values.shape == (target.n if target.kept is None else target.kept.n,)
            and values.flags.carray
            and type(name) in (str, int)
            and name not in state.table.index_of
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
            self._count_first(histogram, bin_index)
            return True
        if self._cache:
            self._invalidate()
        counts = histogram.singles
        before = counts[bin_index]
        try:
            counts[bin_index] = before + 1
            self.n_columns = n_columns + 1
        except BaseException:
            counts[bin_index], self.n_columns = before, n_columns
            raise
        return True

    def _count_first(self, histogram: RelevanceHistogram, bin_index: int) -> None:
        """Count a column that changes only counts, and is the first of its bin of arrival."""
        n_columns, restore = self.n_columns, histogram.snapshot()
        try:
            histogram.start_bin(n_columns)
            # The list is replaced, as the snapshot refers to the old one.
            histogram.singles = [*histogram.singles]
            histogram.singles[bin_index] += 1
            self.n_columns = n_columns + 1
            self._invalidate()
        except BaseException:
            restore()
            self.n_columns = n_columns
            raise

    def _add_columns(self, chunk: Chunk, stats: Stats) -> None:
        """Learn the leading columns of a chunk, in order, as many as `stats` has; all are valid."""
        assert self._columns is not None  # noqa: S101
        self._columns.admit(chunk, stats, self.n_columns)

    def _first_bad(self, chunk: Chunk, stats: Stats) -> tuple[int, Exception | None]:
        """Return the number of columns before the first bad one, and its error or None."""
        stop, error = len(chunk.names), None
        finite = np.isfinite(stats.m2)
        if not finite.all():
            stop = int(np.argmin(finite))
            kept = None if self._target is None else self._target.kept
            error = bad_column_error(chunk.names[stop], chunk.column(stop), kept)
        repeated = first_invalid_name(chunk.names[:stop], self._tracked_names())
        if repeated is None:
            return stop, error
        return repeated, bad_name_error(chunk.names[repeated])

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

    def _tracked_names(self) -> Mapping[Hashable, int]:
        """Return the tracked names with their indices."""
        return {} if self._columns is None else self._columns.index_of


def _one_class_per_row(n: int) -> str:
    """Return the message for a target in which each of n rows has a class of its own."""
    return (
        f"Expected classes of several rows each. Got: {n} classes in {n} rows.\n"
        "Hint: is the target an identifier? target_type='numeric' treats numbers as a quantity."
    )
