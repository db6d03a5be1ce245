"""Share one Gram matrix between several methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np

from streamsel.base.undo import learn_atomically
from streamsel.state.gram.pooled import SharedGram
from streamsel.targets.kept_rows import same_kept_rows
from streamsel.targets.row_transform import same_transform
from streamsel.targets.target import NoTarget, Target

if TYPE_CHECKING:
    from streamsel.base.extractor import Extractor


def share_columns(model: Extractor, other: Extractor, check: Callable[[SharedGram], None]) -> None:
    """Let a model without columns share the Gram matrix of another, as `learn_from` documents.

    `check` raises ValueError if the state of the other model is not sufficient.
    """
    if not hasattr(other, "learn_from"):
        raise TypeError(
            "Expected a learner that keeps the Gram matrix of all columns, such as PCA. Got: "
            f"{type(other).__name__}."
        )
    model._refuse_after_rows()
    other._refuse_after_rows()
    state, target = cast("SharedGram | None", other._columns), other._target
    if model.n_columns or state is None or target is None:
        got = "no columns to learn from" if state is None else f"{model.n_columns} own columns"
        raise ValueError(
            f"Expected a model without columns, and another one with columns. Got: {got}.\n"
            "Hint: model.clone() is an unfitted model; call learn_target(y) before learn_from."
        )
    mine = model._column_phase.expected_target(model, target.n)
    if mine.n != target.n:
        raise ValueError(f"Expected columns of {mine.n} rows. Got: {target.n}.")
    if not same_transform(mine.row_transform, target.row_transform):
        raise ValueError(
            "Expected columns of observations with the same weights and relatedness. Got: "
            "different ones.\nHint: learn_target(y, weights=w) on both, with the same w."
        )
    if not same_kept_rows(mine.kept, target.kept):
        raise ValueError(
            "Expected columns of the same rows. Got: different excluded rows.\n"
            "Hint: learn_target(y, missing='drop') excludes the rows where y is missing."
        )
    columns = cast("SharedGram", model._new_columns(mine.n))
    has_covariates = state.pool.covariate_basis is not None
    if columns.scaled != state.scaled or has_covariates:
        got = "covariates" if has_covariates else f"scale={state.scaled}"
        raise ValueError(
            f"Expected a model of scale={columns.scaled} without covariates. Got: {got}.\n"
            "Hint: a Gram matrix can be shared by methods with the same scale."
        )
    if columns.scaled and columns.pool.covariate_basis is not None:
        raise ValueError(
            "Expected no covariates with scale=True. Got: covariates, whose residual columns "
            "have another scale than the columns learnt.\nHint: learn_columns(X)."
        )
    check(state)
    learn_atomically(model, _share, model, other, mine, columns, state)


def _share(
    model: Extractor,
    other: Extractor,
    mine: Target | NoTarget,
    columns: SharedGram,
    state: SharedGram,
) -> None:
    target = other._target
    columns.share(state, mine.Y[: mine.c] if isinstance(mine, Target) else np.zeros((0, mine.n)))
    phase, theirs = model._column_phase, other._column_phase
    phase.target, phase.columns = mine, columns
    phase.n_columns, phase.constant = theirs.n_columns, theirs.constant
    phase.kept_constants = None if theirs.kept_constants is None else theirs.kept_constants.copy()
    phase.n_passes = theirs.n_passes
    # The relevance of the columns to a different target is not known.
    same = target is not None and mine.same_as(target)
    summary = theirs.summary if same else None
    phase.summary = None if summary is None else summary.copy()
    model._invalidate()


def expect_matrix(state: SharedGram) -> None:
    """Raise ValueError if a state keeps only the leading axes of the Gram matrix."""
    if state.rank is not None:
        raise ValueError(
            f"Expected a model that keeps a Gram matrix. Got: a model of {state.n} rows that "
            "keeps only the leading axes.\nHint: use a larger max_gram_rows there."
        )
