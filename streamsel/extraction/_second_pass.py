"""Second passes over the columns, for the loadings of methods that keep a Gram matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from streamsel import params
from streamsel.base.undo import learn_atomically, learn_in_session
from streamsel.extraction._loadings import (
    LoadingsPass,
    LoadingsPassResult,
    collect_loadings,
    loadings_file,
)
from streamsel.params import param
from streamsel.state.gram.gram import MAX_GRAM_ROWS
from streamsel.state.source_check import LearntColumns
from streamsel.stream import ColumnStream

if TYPE_CHECKING:
    from streamsel.extraction._gram import GramExtractor
    from streamsel.extraction.ridge_components import RidgeComponents

Model: TypeAlias = "GramExtractor | RidgeComponents"


_OF_POOL = """
Number of variables with loadings after a second pass (`learn_loadings`). A pool of as many, and at
most twice as many, is kept alongside the Gram matrix: its variables have loadings without a second
pass, and rows continue from them.
"""


def max_loadings_param(doc: str = _OF_POOL) -> Any:
    """Declare the parameter `max_loadings`."""
    return param(params.IntRule(1), default=500, doc=doc)


def max_gram_rows_param() -> Any:
    """Declare the parameter `max_gram_rows`."""
    return param(
        params.IntRule(2),
        default=MAX_GRAM_ROWS,
        doc="""
        Maximum number of observations for a Gram matrix; 15,000 take 0.9 GB, and nine times as much
        while components are computed. With more, PCA and related methods keep the leading axes
        only, by incremental SVD, which `report()` shows; a method that needs the whole matrix
        refuses them.
        """,
    )


def learn_loadings(
    model: Model,
    X: Any,
    names: Sequence[Any] | None,
    to: str | Path | None,
    max_loadings: int | None,
    refine: Callable[[ColumnStream], None] | None = None,
) -> None:
    """Learn the loadings of columns in a second pass, as the method of this name documents.

    `refine` makes passes over the columns that come before.
    """
    rule = params.IntRule(1, optional=True)
    params.check("learn_loadings", {"max_loadings": rule}, {"max_loadings": max_loadings})
    model._refuse_after_rows()
    model._loadings_request()

    def learn(source: ColumnStream) -> None:
        if refine is not None:
            refine(source)
        with nullcontext() if to is None else loadings_file(to, model.components) as sink:
            found = loadings_pass(model, max_loadings).read(source, sink=sink)
        learn_atomically(model, accept_loadings, model, found)

    learn_in_session(model, BaseException, learn, model._numeric_stream(X, names))


def loadings_pass(model: Model, limit: int | None = None) -> LoadingsPass:
    """Return the second pass for the loadings of at most so many columns."""
    state, request = model._loadings_request()
    limit = limit or model.max_loadings
    observed = limit < model.n_columns or request.excluded_directions is not None
    learnt, scan = LearntColumns(state, model.n_columns), model._empty_clone()._scanned
    return LoadingsPass(scan, state, request, learnt, limit, observed=observed)


def accept_loadings(model: Model, found: LoadingsPassResult) -> None:
    """Store the result of a second pass."""
    state, request = model._loadings_request()
    learnt = LearntColumns(state, model.n_columns)
    loadings = collect_loadings(found, request, state.pool.covariate_basis, learnt)
    model._phase.n_passes += 1
    if not state.complete:
        state.set_loadings(loadings)
        model._cache.pop("_map", None)
