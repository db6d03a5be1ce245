"""The column axis: what every learner does with columns, one at a time or a stream of them.

 Columns come in whatever form, are let in by one door, and are handed on in order. A learner sees
a column as its moments (`columns.Stats`) and, when it asks, its values; what it keeps of them its
state says, or it says in `_observe`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from streamsel.columns import (
    Block,
    Chunk,
    Stats,
    chunks,
    column,
    of_observed,
    why_bad,
)
from streamsel.held.histogram import Histogram
from streamsel.held.part import ColumnHeld
from streamsel.held.summary import StreamSummary
from streamsel.learner.limits import learning
from streamsel.learner.undo import Undoable
from streamsel.learner.watched import OnBlock, watched
from streamsel.names import first_bad_name, why_bad_name
from streamsel.params import shown
from streamsel.plain import array_of
from streamsel.stream import ColumnStream, as_stream
from streamsel.target.kept import MISSING, KeptRows, kept_rows
from streamsel.target.permuted import PermutedTarget
from streamsel.target.space import TargetSpace
from streamsel.target.target import NoTarget, Target
from streamsel.threads import effective_jobs

# Fewer rows than this are too few to tell an identifier from classes.
_ENOUGH_ROWS = 8
_FLOAT64 = np.dtype(np.float64)


class ColumnAxis(Undoable):
    """Takes columns in by their door and hands them on, in order and with their moments."""

    def _begin_columns(self) -> None:
        self.n_columns = 0
        self.n_passes: float = 0
        self._n_constant = 0
        self._target: Target | NoTarget | None = None
        self._space: TargetSpace | None = None
        self._without_target = not self.supervised
        # What columns fill; None before the first, and once there are rows.
        self._columns: ColumnHeld | None = None
        # What is counted of all columns; None where they were not counted.
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
        """Learn what is to be explained; once, before the columns.

        Parameters
        ----------
        y
            Numbers of shape (n,) or (n, c), labels of shape (n,), or a Series or DataFrame of
            either; with `target="survival"` times and events (n, 2). None, where the learner allows
            it, lets the variables explain each other. One column of whole numbers with 2 to 20
            distinct values, at most n / 2 of them, is classes, whether the numbers are integers or
            floats, unless `target="numeric"`; `report().target` shows how the target was taken.
            Two values are a quantity where the learner, as it is set, takes no classes.
        covariates
            What everything is asked *given*, such as age or batch: numbers of shape (n,) or
            (n, d), labels, a Series or DataFrame of either, or a dict: name -> either. They are
            projected out of target and variables: relevance is that of what they leave.
        weights
            How much each observation counts beside the others, (n,) numbers, 0 or above; 2 for one
            that stands for two. All that is asked is then weighted, and noise floor and p-values
            count (Σw)² / Σw² observations. With fewer than about 100 of these, and with weights
            that are inverse variances, p-values are too large. None for all the same.
        strata
            Groups of observations, such as batches or families, within which the target is permuted
            where `permutations` is above 0: (n,) labels or whole numbers. None for one group.
        missing
            `"drop"` leaves out rows whose target is missing (NaN, None, NA), as if they were not
            there: columns, covariates, weights and strata still have a value for every row, which
            may be missing in these. `"error"` refuses a missing target, but in a row of weight 0.

        Raises
        ------
        ValueError
            For a target that is constant, not finite, of fewer than two rows, or given after
            columns were learnt, for covariates that explain all of it, and for weights where what
            is asked is not a function of weighted moments.
        TypeError
            For values that are neither numbers nor labels, and weights that are no numbers.

        Notes
        -----
        Costs O(n (c + d)²) once; holds O(n (c + d)). With weights each column is copied and turned,
        O(n), and sparse ones become dense. Where rows are left out each column is copied without
        them. The model file keeps which rows count; `embedding` is NaN in the others.
        """
        self._refuse_after_rows()
        if missing not in MISSING:
            raise ValueError(f"Expected missing='error' or 'drop'. Got: {shown(missing)}.")
        if self.n_columns:
            raise ValueError(
                f"Expected the target before the columns. Got: one after {self.n_columns}.\n"
                "Hint: a new target starts a new stream; model.clone() is a fresh model."
            )
        if not self.supervised and y is not None:
            raise ValueError(
                f"Expected no target: {type(self).__name__} learns without one. Got: a target.\n"
                "Hint: learn_columns(X) is all that it takes."
            )
        if y is None:
            self._whole(self._learn_no_target, covariates, weights)
            return
        if self.covariates and covariates is None:
            raise ValueError(
                f"Expected the covariates {list(self.covariates)}, as the parameter covariates "
                "says. Got: none.\nHint: learn_target(y, covariates=Z)."
            )
        if strata is not None and not self.permutations:
            raise ValueError(
                "Expected permutations above 0, for strata say what is permuted. Got: 0.\n"
                f"Hint: {type(self).__name__}(permutations=1000), or leave the strata out; "
                "covariates=strata adjusts for them."
            )
        kept = kept_rows(y, weights, missing)
        if kept is None:
            self._whole(self._learn_target, y, covariates, weights, strata)
        else:
            given = {"covariates": covariates, "weights": weights, "strata": strata}
            given = {name: None if v is None else kept.of(v, name) for name, v in given.items()}
            self._whole(self._learn_target, kept.of(y, "a target"), *given.values(), kept)
        target = self._target
        assert isinstance(target, Target)  # noqa: S101
        if target.is_class and np.count_nonzero(~target.is_given) == target.n >= _ENOUGH_ROWS:
            warnings.warn(_classes_of_one(target.n), UserWarning, stacklevel=2)

    def _learn_target(
        self,
        y: Any,
        covariates: Any,
        weights: Any,
        strata: Any = None,
        kept: KeptRows | None = None,
    ) -> None:
        """Learn the target of all rows, or of those that count, and what goes with it."""
        given = covariates, self.covariates, weights, strata, kept
        with nullcontext() if kept is None else kept.naming_rows():
            target = Target(y, self.target, *given)
            try:
                self._take_target(target)
            except ValueError:
                # A quantity of two values has the same correlations as two classes.
                by_rule = target.is_class and target.by_rule
                if not by_rule or np.count_nonzero(~target.is_given) > 2:
                    raise
                self._take_target(Target(y, "numeric", *given))

    def _take_target(self, target: Target) -> None:
        c = int(np.count_nonzero(~target.is_given))
        self._check_target(c, is_class=target.is_class)
        if target.is_class and c == target.n > 2 and self._needs_classes:
            raise ValueError(_classes_of_one(c))
        self._refuse_weights(target)
        space = TargetSpace(
            target.cyy,
            target.n,
            self._variable_kernel(),
            target.is_given,
            target.effective_rows,
            is_pair=target.is_pair,
        )
        if not space.linear_rank:
            raise ValueError(
                "Expected a target that varies beside its covariates. Got: one that they explain "
                "in full.\nHint: check that the target is not among the covariates."
            )
        self._without_target, self._target, self._space = False, target, space
        self._summary = self._new_summary()

    def _new_summary(self) -> StreamSummary:
        """Return a summary of no columns."""
        target, space = self._target, self._space
        if not isinstance(target, Target) or space is None or not self.permutations:
            return StreamSummary()
        seed = self.permutation_seed
        return StreamSummary(PermutedTarget(target, space, self.permutations, seed))

    def _learn_no_target(self, covariates: Any, weights: Any) -> None:
        if self.supervised and not self.takes_no_target:
            raise ValueError(
                f"Expected a target: {type(self).__name__} is supervised. Got: None.\n"
                "Hint: ProjSe selects without a target too."
            )
        if covariates is not None:
            raise ValueError(
                "Expected a target beside covariates. Got: None.\n"
                "Hint: to select given covariates, without a target, regress the columns on them."
            )
        target = None if weights is None else NoTarget.of_weights(weights)
        self._refuse_weights(target)
        self._without_target, self._target, self._space = True, target, None

    def _refuse_weights(self, target: Target | NoTarget | None) -> None:
        if target is not None and target.weights is not None and not self._takes_weights:
            raise ValueError(
                f"Expected no weights: {type(self).__name__} as it is set looks at observations "
                "one by one, not at weighted moments. Got: some.\n"
                "Hint: repeat each row as often as it counts, or leave the weights out."
            )

    def _refuse_after_rows(self) -> None:
        if self._on_rows:
            raise ValueError(
                "Expected rows, for the model has learnt rows, and does not keep their "
                "observations. Got: a target or a column.\n"
                "Hint: columns first, then rows; or merge two models that learnt other rows."
            )

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
        learning(self._at_work, self._learn_column, name, values)

    def _learn_column(self, name: Hashable, values: Any) -> None:
        # With moments of rows there are no columns, and then none changes nothing.
        if self._window is None and not self._one_source and self._lets_go(name, values):
            return
        self._refuse_after_rows()
        self._check_source(None)
        target = self._target
        if target is None:
            shape = np.shape(
                values if hasattr(values, "shape") else array_of(values, f"values of {shown(name)}")
            )
            target = self._expected_target(shape[0] if shape else 0)
        chunk = column(name, values, target.n, target.weights, target.kept)
        stats = self._scan(chunk, target, 1)
        m2 = stats.m2[0]
        if not math.isfinite(m2):
            raise why_bad(name, chunk.column(0), target.kept)
        held = self._held_names()
        # Nearly all names are text or numbers, and new.
        plain = type(name) in (str, int) and name not in held
        if not plain and first_bad_name((name,), held) is not None:
            raise why_bad_name(name)
        self._undoably(self._learn_chunk, chunk, stats, target, int(m2 == 0.0))

    def learn_columns(
        self,
        X: Any,
        names: Sequence[Hashable] | None = None,
        *,
        on_block: OnBlock | None = None,
    ) -> None:
        """Learn many variables: a block, or a whole stream of them.

        Parameters
        ----------
        X
            An (n, p) array or sparse matrix, a frame of any library that narwhals knows, an
            AnnData, a `ColumnStream`, any iterable of (name, values), or the path or URL of a file
            (Parquet, Arrow, `.npy`, `.bed`, `.h5ad`, Zarr, text), as `stream.as_stream` takes them.
        names
            Names of the columns of an array or matrix; numbered on from `n_columns` if None.
        on_block
            Called with the model after each whole block that was learnt, of every reading: to show
            how far it is, or to save the model. What it raises ends the learning, and undoes
            nothing.

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
        self._refuse_after_rows()
        self._check_source(stream)
        watched(self._learn_or_undo, stream, self, on_block)

    def _learn_or_undo(self, stream: ColumnStream) -> None:
        """Learn a stream; what can be read again is learnt as a whole, or not at all."""
        before = self.n_columns
        try:
            self._in_session(Exception if stream.rereadable else (), self._learn_stream, stream)
        except (ValueError, TypeError) as error:
            if stream.rereadable or type(error) not in (ValueError, TypeError):
                raise
            raise type(error)(
                f"{error}\nThe {self.n_columns - before} columns before it stay learnt."
            ) from error

    def _check_source(self, stream: ColumnStream | None) -> None:
        """Refuse a stream, or a single column (None), where one source is to be read again."""
        if not self._one_source:
            return
        if stream is None:
            got = "a single column"
        elif not stream.rereadable:
            got = "a source that can be read once"
        elif self.n_columns:
            got = "another source"
        else:
            return
        raise ValueError(
            "Expected one source that can be read again, as exact=True asks for. Got: "
            f"{got}.\nHint: exact=False proves what one pass can prove (n_certified); "
            "a pool that holds all columns is exact in one pass."
        )

    @property
    def n_passes_expected(self) -> float:
        """How often the columns will have been read if nothing more changes the answer."""
        return self.n_passes

    def _learn_stream(self, stream: ColumnStream) -> None:
        self._learn_once(stream)

    def _learn_once(self, stream: ColumnStream) -> None:
        for block in stream.blocks():
            self._learn_block(block)

    def _learn_block(self, block: Block) -> None:
        error = self._whole(self._learn_chunks, block)
        if error is not None:
            raise error

    def _learn_chunks(self, block: Block) -> Exception | None:
        """Learn the columns of a block up to the first bad one; return what is wrong with it."""
        target = self._expected_target(block.values.shape[0])
        self._target = target
        for chunk in chunks(block, target.n, target.weights, target.kept):
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
        """Return the moments of a chunk's columns; not finite for those that cannot be learnt."""
        stats = chunk.scan(target, n_jobs)
        return of_observed(chunk, stats) if self.takes_missing else stats

    def _scanned(self, source: ColumnStream) -> Iterator[tuple[Chunk, Stats]]:
        """Yield columns that are read again, with their moments; raise at the first bad one."""
        target = self._target
        assert target is not None  # noqa: S101
        for block in source.blocks():
            for chunk in chunks(block, target.n, target.weights, target.kept):
                stats = self._scan(chunk, target, effective_jobs(self.n_jobs))
                bad = np.flatnonzero(~np.isfinite(stats.m2))
                if bad.size:
                    raise why_bad(chunk.names[bad[0]], chunk.column(int(bad[0])), target.kept)
                yield chunk, stats

    def _learn_chunk(
        self, chunk: Chunk, stats: Stats, target: Target | NoTarget, constant: int
    ) -> None:
        """Learn a chunk's columns, as many as stats has; all are good, and so many constant."""
        if self._columns is None:
            self._columns = self._new_columns(target.n)
        space, summary = self._space, self._summary
        if space is None or summary is None:
            self._observe(chunk, stats)
        else:
            assert isinstance(target, Target)  # noqa: S101
            # Nearly always what is held asks for it too.
            relevance = space.note(stats.m2, stats.cxy)
            try:
                self._observe(chunk, stats)
            finally:
                space.forget()
            summary.add(chunk, stats, target, space, relevance, self.n_columns)
        self.n_columns += stats.m2.size
        self._n_constant += constant
        self.n_passes = self.n_passes or 1
        self._target = target
        self._outdate()

    def _lets_go(self, name: Hashable, values: Any) -> bool:
        """Learn a column if it is a good one, and clearly changes nothing but counts.

        Asked of columns as they mostly come; any other goes the way of a chunk, with the same end.
        """
        held, space, target, summary = self._columns, self._space, self._target, self._summary
        if held is None or space is None or target is None or summary is None:
            return False
        bar = held.indifferent_below
        if not (
            bar > 0.0
            and self.n_columns < summary.simple_until
            and target.weights is None
            and type(values) is np.ndarray
            and values.dtype is _FLOAT64
            and values.shape == (target.n if target.kept is None else target.kept.n,)
            and values.flags.carray
            and type(name) in (str, int)
            and name not in held.table.slots
        ):
            return False
        if target.kept is not None:
            values = values.take(target.kept.index)
        place = space.below(values, target.Y, bar)
        if place < 0:
            return False
        n_columns = self.n_columns
        histogram = summary.histogram
        if n_columns >= histogram.until:
            self._count_first(histogram, place)
            return True
        if self._found:
            self._outdate()
        alone = histogram.alone
        before = alone[place]
        try:
            alone[place] = before + 1
            self.n_columns = n_columns + 1
        except BaseException:
            alone[place], self.n_columns = before, n_columns
            raise
        return True

    def _count_first(self, histogram: Histogram, place: int) -> None:
        """Count a column that changes nothing else, and is the first of a bin of arrival."""
        n_columns, restore = self.n_columns, histogram.snapshot()
        try:
            histogram.move_on(n_columns)
            # Replaced: what is restored refers to the list of before.
            histogram.alone = [*histogram.alone]
            histogram.alone[place] += 1
            self.n_columns = n_columns + 1
            self._outdate()
        except BaseException:
            restore()
            self.n_columns = n_columns
            raise

    def _observe(self, chunk: Chunk, stats: Stats) -> None:
        """Learn the columns of a chunk, in order, as many as stats has; all of them are good."""
        assert self._columns is not None  # noqa: S101
        self._columns.admit(chunk, stats, self.n_columns)

    def _first_bad(self, chunk: Chunk, stats: Stats) -> tuple[int, Exception | None]:
        """Return how many columns stand before the first bad one, and what is wrong with it."""
        stop, error = len(chunk.names), None
        finite = np.isfinite(stats.m2)
        if not finite.all():
            stop = int(np.argmin(finite))
            kept = None if self._target is None else self._target.kept
            error = why_bad(chunk.names[stop], chunk.column(stop), kept)
        again = first_bad_name(chunk.names[:stop], self._held_names())
        if again is None:
            return stop, error
        return again, why_bad_name(chunk.names[again])

    def _expected_target(self, n: int) -> Target | NoTarget:
        """Return the target that a column of n values belongs to."""
        self._refuse_after_rows()
        if self._target is not None:
            return self._target
        if not self._without_target:
            raise ValueError(
                "Expected a target before the first column. Got: a column.\n"
                "Hint: call learn_target(y) first"
                + ("; learn_target(None) selects without one." if self.takes_no_target else ".")
            )
        if n < 2:
            raise ValueError(f"Expected columns of at least 2 observations. Got: {n}.")
        return NoTarget(n)

    def _held_names(self) -> Mapping[Hashable, int]:
        """Return the names that the model holds, each with its place."""
        return {} if self._columns is None else self._columns.slots


def _classes_of_one(n: int) -> str:
    """Return the message for a target in which each of n rows is a class of its own."""
    return (
        f"Expected classes that several rows share. Got: {n} classes in {n} rows.\n"
        "Hint: is the target an identifier? target='numeric' takes numbers as a quantity."
    )
