"""`learn`: a model learns a source on many machines."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import closing
from typing import Any

from streamsel import params
from streamsel.distributed._clusters import connected
from streamsel.distributed._collections import frame_leaves, is_frame
from streamsel.distributed._dask import distributed
from streamsel.distributed._job import Job
from streamsel.distributed._sources import leaves_of
from streamsel.distributed._summary import Summary
from streamsel.learner.base import Learner


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
    on_block: Callable[[Any, Summary], object] | None = None,
) -> Summary:
    """Let a model learn a source on many machines, or on all cores of this one, by Dask.

    Each task learns one part of the source; results of consecutive parts are merged, `fan_in` at a
    time, in a tree of fixed shape and order. The result is bit-identical whatever the number of
    workers and whichever of them die.

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
        Names of the columns of a dask array; numbers if None.
    client
        A `distributed.Client`, or the address of a scheduler; None starts a temporary cluster on
        this machine, one process per core.
    parts
        The number of parts of a `ColumnStream`; None for parts of about 128 MB.
    fan_in
        How many results a task merges, at least 2; `fan_in**2` parts are a wave.
    retries
        How often a part that raises is tried again. The death of a worker does not count: its parts
        are read by others.
    loadings
        Whether to read all parts again for an extractor that `learn_loadings` would improve; the
        source must then be all that the model has learnt.
    on_block
        Called with the model and the summary after each merged wave, to save the model for
        instance. An error that it raises ends the learning.

    Returns
    -------
    Summary
        Counts of what was read and skipped.

    Raises
    ------
    PartError
        If a part cannot be learnt: the message names its file and columns.
    ConnectionError
        If no scheduler answers, or it no longer does.
    ValueError, TypeError
        For a model that cannot learn in parts, and for an invalid source or target; before anything
        is read.

    Notes
    -----
    After an error or an interrupt the model has the waves merged until then, and
    `learn(model, parts[summary.n_parts:], y)` continues after them, with bit-identical results;
    `on_block` receives the summary. For a dask frame, and a model with `exact=True`, either all is
    learnt or nothing; `exact=True` reads all parts again as often as its proof needs.

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
    distributed()
    rules = {"fan_in": params.Whole(2), "retries": params.Whole(0)}
    params.check("learn", rules, {"fan_in": fan_in, "retries": retries})
    if not isinstance(model, Learner):
        raise TypeError(f"Expected one of streamsel's learners. Got: {type(model).__name__}.")
    rows = is_frame(source)
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
        leaves = leaves_of(source, parts, names)
        _take_target(model, y, covariates)
    job = Job(model, leaves, rows=rows, fan_in=fan_in, retries=retries)
    with connected(client) as connection:
        with closing(job.results(connection)) as results:
            for found in results:
                job.fold(found)
                if on_block is not None:
                    on_block(model, job.summary)
        job.finish(connection, loadings=loadings)
    return job.summary


def check_columns(model: Any) -> None:
    """Raise ValueError for a model that cannot learn the columns of a source in parts."""
    model._refuse_after_rows()
    why = model._why_not_in_parts()
    if why is not None:
        raise ValueError(
            "Expected a learner whose state can be merged from parts. Got: "
            f"{type(model).__name__}; {why}.\n"
            "Hint: learn_columns learns columns in one process, in order."
        )
    if model._one_source and model.n_columns:
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
    if model.supervised != (y is not None):
        expected = "y, the name of a column," if model.supervised else "no y"
        raise ValueError(f"Expected {expected} for {name}. Got: {y!r}.")


def _take_target(model: Any, y: Any, covariates: Any) -> None:
    """Set the target of a model, or check that it equals the present one."""
    if y is None and covariates is None:
        # Raises if a required target is missing.
        model._expected_target(2)
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
