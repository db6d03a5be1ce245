"""Learn a source on many machines with Dask: `learn`."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import closing
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from streamsel import params
from streamsel.base.learner import Learner
from streamsel.base.undo import learn_atomically, learn_in_session
from streamsel.distributed._tasks import (
    LearnSummary,
    TaskResult,
    learn_part,
    learn_partition,
    merge_column_models,
    merge_pass_results,
    merge_row_models,
    pack_model,
    read_part,
    unpack,
    unpack_model,
)
from streamsel.distributed._tree import Tree, TreeLeaf, results
from streamsel.distributed.cluster import connect, import_distributed
from streamsel.distributed.collections import (
    frame_leaves,
    is_dask_frame,
    n_rows_of,
    split_source,
)
from streamsel.targets.whitening import Whitening

if TYPE_CHECKING:
    from distributed import Client


class DistributedJob:
    """The learning of one source: pass each of `results` to `merge_wave`, then call `finish`.

    Parameters
    ----------
    model
        The learner; validated, with its target if it learns columns.
    leaves
        The parts to read, in order.
    rows
        Whether the parts are rows.
    fan_in, retries
        As in `learn`.

    Attributes
    ----------
    summary
        Counts of the parts merged so far.
    """

    def __init__(
        self, model: Any, leaves: Sequence[TreeLeaf], *, rows: bool, fan_in: int, retries: int
    ) -> None:
        self.summary = LearnSummary()
        self._model, self._leaves, self._rows = model, leaves, rows
        self._fan_in, self._retries = fan_in, retries
        self._blank = pack_model(_unfitted_copy(model, rows=rows))
        # A model that must not be left partly fitted is updated only at the end.
        separate = rows or model._needs_single_source
        self._merged = unpack_model(self._blank) if separate else model
        self._n_learnt: list[int] = []

    def results(self, client: Client) -> Generator[TaskResult]:
        """Yield the merged result of each wave of parts, in order."""
        leaf, merge = (
            (learn_partition, merge_row_models) if self._rows else (learn_part, merge_column_models)
        )
        tree = self._tree(client, leaf, merge, self._blank)
        return results(client, tree, self._leaves, self._fan_in**2)

    def merge_wave(self, result: TaskResult) -> None:
        """Merge the result of a wave."""
        along = "rows" if self._rows else "columns"
        self._merged.merge(unpack(self._blank, result.state), along=along)
        self.summary.add(result.counts)
        self._n_learnt += result.n_learnt

    def finish(self, client: Client, *, loadings: bool) -> None:
        """Update the model from a separate merged state, and run further passes that it needs."""
        model = self._model
        if self._rows:
            model.merge(self._merged, along="rows")
        elif self._merged is not model:
            learn_in_session(model, BaseException, self._adopt_merged, client)
        elif loadings:
            self._run_passes(client)

    def _adopt_merged(self, client: Client) -> None:
        model = self._model
        learn_atomically(model, model._set_state, self._merged._get_state())
        self._run_passes(client)

    def _run_passes(self, client: Client) -> None:
        """Run passes over all parts until the model needs no more."""
        model = self._model
        while (request := model._next_pass()) is not None:
            model._apply_pass(request, self._run_pass(client, request))

    def _run_pass(self, client: Client, request: Any) -> Any:
        """Run one pass over all parts; return its merged result."""
        starts = accumulate(self._n_learnt, initial=0)
        leaves = [
            leaf._replace(args=(start,)) for leaf, start in zip(self._leaves, starts, strict=False)
        ]
        packed = pickle.dumps(request, protocol=pickle.HIGHEST_PROTOCOL)
        tree = self._tree(client, read_part, merge_pass_results, packed)
        first, *others = (
            pickle.loads(result)  # noqa: S301 (by a task of this job)
            for result in results(client, tree, leaves, self._fan_in**2)
        )
        for other in others:
            first.merge(other)
        return first

    def _tree(self, client: Client, leaf: Any, merge: Any, shared: bytes) -> Tree:
        return Tree(client, leaf, merge, shared, fan_in=self._fan_in, retries=self._retries)


def _unfitted_copy(model: Any, *, rows: bool) -> Any:
    """Return an unfitted copy of a model for the tasks, with the target if it learns columns."""
    # Workers are single-threaded.
    parameters = {"n_jobs": 1}
    return model.clone(parameters) if rows else model._empty_clone(parameters)


def learn(
    model: Any,
    source: Any,
    y: Any = None,
    *,
    covariates: Any = None,
    names: Sequence[Hashable] | None = None,
    client: Any = None,
    parts: int | None = None,
    fan_in: int = 8,
    retries: int = 2,
    loadings: bool = False,
    on_block: Callable[[Any, LearnSummary], object] | None = None,
) -> LearnSummary:
    """Learn a source on many machines, or on all cores of this one, with Dask.

    Each task learns one part of the source; results of consecutive parts are merged, `fan_in` at a
    time, in a tree of fixed shape and order. The result is bit-identical for any number
    of workers, also if some of them die.

    Parameters
    ----------
    model
        A learner whose states can be merged; it learns in place.
    source
        Columns: a `ColumnStream` that can be split, a list of parts, or a dask array whose chunks
        have whole columns, (n, b). Or rows: a dask frame, whose partitions are passed to
        `learn_many`.
    y
        The target, as in `learn_target`; None if the model has it, or needs none. For a dask frame,
        the name of its column, or a list of names.
    covariates
        As in `learn_target`. For a dask frame they are columns, named by the model's parameter.
    names
        Names of the columns of a dask array; 0, 1, ... if None.
    client
        A `distributed.Client`, or the address of a scheduler; None starts a temporary cluster on
        this machine, one process per core.
    parts
        The number of parts of a `ColumnStream`; None makes parts of about 128 MB, and
        does not cut one of several files of up to 256 MB.
    fan_in
        How many results a task merges, at least 2; `fan_in**2` parts are a wave.
    retries
        How often a part that raises is tried again. The death of a worker does not count: its parts
        are read by others.
    loadings
        Whether to run a second pass for an extractor that `learn_loadings` would improve; the model
        must then have learnt no other columns.
    on_block
        Called with the model and the summary after each merged wave, to save the model for
        instance. An error that it raises ends the learning.

    Returns
    -------
    LearnSummary
        Counts of the columns or rows that were read and skipped.

    Raises
    ------
    PartError
        If a part cannot be learnt: the message names its file and columns.
    ConnectionError
        If no scheduler answers, or the connection to it is lost.
    ValueError, TypeError
        For a model that cannot learn in parts, for an invalid source or target, and for a source
        whose number of rows is known and differs from the target's; before anything is read. A part
        of a list is opened only by its task, so its number of rows is not known before.

    Notes
    -----
    After an error or an interrupt the model has the waves merged until then, and
    `learn(model, parts[summary.n_parts:], y)` continues after them, with bit-identical results;
    `on_block` receives the summary. A dask frame, and any source of a model with `exact=True`, is
    learnt completely or not at all; with `exact=True` all parts go through further passes until the
    result is proven.

    Moments, Gram matrices and stages are exact, to rounding, for any division into parts. The
    results of SOSPCA, and of RidgeComponents with `max_support`, depend on the division, as they do
    on the order of columns.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from streamsel import SelectKBest
    >>> from streamsel.distributed import learn
    >>> from streamsel.stream import iter_npy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 1000))
    >>> y = X[:, 7] - X[:, 42]
    >>> model = SelectKBest(2)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     np.save(f"{directory}/columns.npy", X)
    ...     learn(model, iter_npy(f"{directory}/columns.npy"), y, parts=4).n_read
    1000
    >>> model.selected
    [42, 7]
    """
    import_distributed()
    rules = {"fan_in": params.IntRule(2), "retries": params.IntRule(0)}
    params.check("learn", rules, {"fan_in": fan_in, "retries": retries})
    if not isinstance(model, Learner):
        raise TypeError(f"Expected one of streamsel's learners. Got: {type(model).__name__}.")
    rows = is_dask_frame(source)
    if rows:
        _check_rows(model, y, covariates)
        leaves = frame_leaves(source, y)
    else:
        check_columns(model)
        if loadings and model.n_columns:
            raise ValueError(
                f"Expected loadings=False for a model with columns. Got: {model.n_columns} of "
                "them.\nHint: learn_loadings reads all columns again."
            )
        leaves = split_source(source, parts, names)
        arguments = model, y, covariates, n_rows_of(source)
        learn_in_session(model, BaseException, _take_target, *arguments)
    job = DistributedJob(model, leaves, rows=rows, fan_in=fan_in, retries=retries)
    with connect(client) as connection:
        with closing(job.results(connection)) as results:
            for result in results:
                job.merge_wave(result)
                if on_block is not None:
                    on_block(model, job.summary)
        job.finish(connection, loadings=loadings)
    return job.summary


def check_columns(model: Any) -> None:
    """Raise ValueError for a model that cannot learn the columns of a source in parts."""
    model._refuse_after_rows()
    reason = model._reason_not_partitioned()
    if reason is not None:
        raise ValueError(
            "Expected a learner whose state can be merged from parts. Got: "
            f"{type(model).__name__}; {reason}.\n"
            "Hint: learn_columns learns columns in one process, in order."
        )
    transform = None if model._target is None else model._target.row_transform
    if isinstance(transform, Whitening) and not transform.stores_groups:
        raise transform.unknown_groups_error()
    if model._needs_single_source and model.n_columns:
        raise ValueError(
            "Expected one source, which exact=True requires. Got: another, after "
            f"{model.n_columns} columns.\nHint: start over with model.clone()."
        )


def _check_rows(model: Any, y: Any, covariates: Any) -> None:
    name = type(model).__name__
    if model._by_window:
        raise ValueError(
            "Expected a learner with mergeable row moments. Got: "
            f"{name}, which learns rows in windows.\n"
            "Hint: use a dask array of columns, or learn_many for one partition after the other."
        )
    if model.fading_factor:
        raise ValueError(
            "Expected fading_factor=0.0, since partitions are learnt in parallel and none is the "
            f"latest. Got: {model.fading_factor}."
        )
    if covariates is not None:
        raise ValueError(
            "Expected covariates=None for a dask frame. Got: covariates.\n"
            f"Hint: {name}(covariates=(name, ...)) names those of its columns."
        )
    if model._is_supervised != (y is not None):
        expected = "y, the name of a column," if model._is_supervised else "no y"
        raise ValueError(f"Expected {expected} for {name}. Got: {y!r}.")


def _take_target(model: Any, y: Any, covariates: Any, n_rows: int | None) -> None:
    """Set the target of a model, or check the current one; compare it with the source's rows."""
    if y is None and covariates is None:
        pass
    elif not model.n_columns:
        model.learn_target(y, covariates=covariates)
    else:
        other = model.clone()
        other.learn_target(y, covariates=covariates)
        if model._target is None or not model._target.same_as(other._target):
            raise ValueError(
                f"Expected the target of the {model.n_columns} columns that were learnt. Got: "
                "another.\nHint: start over with model.clone()."
            )
    # Raises if a required target is missing.
    target = model._column_phase.expected_target(model, 2 if n_rows is None else n_rows)
    n = target.n if target.kept is None else target.kept.n
    if n_rows not in (None, target.n, n):
        raise ValueError(
            f"Expected a source of {n} rows, as the target has. Got: {n_rows}.\n"
            "Hint: a column has one value for every observation of the target."
        )
