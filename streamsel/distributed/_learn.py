"""The one call: a model learns a source on many machines."""

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

    Each task learns one part of the source; what was learnt of parts that follow one another is put
    together, `fan_in` at a time, in a tree of fixed shape and order. The result is the same, to the
    last bit, whatever the workers, their number and their deaths.

    Parameters
    ----------
    model
        A learner whose state can be put together; it learns in place.
    source
        Columns: a `ColumnStream` that can be split, a list of parts, or a dask array whose chunks
        hold whole columns, (n, b). Or rows: a dask frame, each partition of which `learn_many` is
        handed.
    y
        The target, as `learn_target` has it; None if the model knows it, or needs none. Of a dask
        frame: the name of its column, or a list of them.
    covariates
        As `learn_target` has them. A dask frame has them among its columns, by the model's
        parameter.
    names
        What the columns of a dask array are called; numbers if None.
    client
        A `distributed.Client`, or the address of a scheduler; None starts a cluster on this
        machine, one process a core, for as long as the call takes.
    parts
        How many parts to make of a `ColumnStream`; None for parts of about 128 MB.
    fan_in
        How many results a task puts together, at least 2; `fan_in**2` parts are a wave.
    retries
        How often a part that raises is tried again. The death of a worker does not count: parts it
        had are read by others.
    loadings
        Whether an extractor of which `learn_loadings` would tell more reads all parts again, as
        that does; the source is all that the model has learnt then.
    on_block
        Called with the model and the summary whenever a wave is in the model, which it may save.
        What it raises ends the learning.

    Returns
    -------
    Summary
        How much was read, and what was left out.

    Raises
    ------
    PartError
        Where a part cannot be learnt: the message says which columns of which file.
    ConnectionError
        Where no scheduler answers, or none any more.
    ValueError, TypeError
        For a model that cannot learn in parts, and a source or a target that is none; nothing was
        read then.

    Notes
    -----
    After an error, or an interrupt, the model holds the waves that were put together until then,
    and `learn(model, parts[summary.n_parts:], y)` goes on behind them, to the same bits; `on_block`
    is handed the summary. A dask frame, and a model with `exact=True`, are learnt as a whole or not
    at all; `exact=True` reads all parts again for as often as the proof needs it.

    Moments, Gram matrices and stages are exact, to rounding, in whatever parts columns come. What
    SOSPCA finds, and RidgeComponents with `max_support`, depends on where the source is cut, as it
    does on the order of columns.

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
                f"Expected loadings=False behind columns learnt before. Got: {model.n_columns} of "
                "them.\nHint: learn_loadings reads all columns again."
            )
        leaves = leaves_of(source, parts, names)
        _take_target(model, y, covariates)
    job = Job(model, leaves, rows=rows, fan_in=fan_in, retries=retries)
    with connected(client) as mine:
        with closing(job.results(mine)) as results:
            for found in results:
                job.fold(found)
                if on_block is not None:
                    on_block(model, job.summary)
        job.finish(mine, loadings=loadings)
    return job.summary


def check_columns(model: Any) -> None:
    """Refuse a model that cannot learn the columns of a source in parts."""
    model._refuse_after_rows()
    why = model._why_not_in_parts()
    if why is not None:
        raise ValueError(
            "Expected a learner whose state can be put together of parts. Got: "
            f"{type(model).__name__}; {why}.\n"
            "Hint: learn_columns learns them in one process, one after the other."
        )
    if model._one_source and model.n_columns:
        raise ValueError(
            "Expected one source, as exact=True asks for. Got: another, after "
            f"{model.n_columns} columns.\nHint: begin anew, with model.clone()."
        )


def _check_rows(model: Any, y: Any, covariates: Any) -> None:
    name = type(model).__name__
    if model._by_window:
        raise ValueError(
            f"Expected a learner whose rows add up. Got: {name}, which learns rows by windows.\n"
            "Hint: a dask array of columns, or learn_many, one partition after the other."
        )
    if model.fading_factor:
        raise ValueError(
            "Expected fading_factor=0.0: partitions are learnt side by side, and none is the "
            f"latest. Got: {model.fading_factor}."
        )
    if covariates is not None:
        raise ValueError(
            "Expected no covariates beside a dask frame. Got: some.\n"
            f"Hint: {name}(covariates=(name, ...)) says which of its columns they are."
        )
    if model.supervised != (y is not None):
        expected = "y, the name of a column," if model.supervised else "no y"
        raise ValueError(f"Expected {expected} for {name}. Got: {y!r}.")


def _take_target(model: Any, y: Any, covariates: Any) -> None:
    """Let the model learn its target; or find that it is the one that it has."""
    if y is None and covariates is None:
        # Raises where there is no target, and one is needed.
        model._expected_target(2)
    elif not model.n_columns:
        model.learn_target(y, covariates=covariates)
    else:
        again = model.clone()
        again.learn_target(y, covariates=covariates)
        if model._target is None or not model._target.same_as(again._target):
            raise ValueError(
                f"Expected the target of the {model.n_columns} columns that were learnt. Got: "
                "another.\nHint: begin anew, with model.clone()."
            )
