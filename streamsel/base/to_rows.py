"""Start the phases on rows: they continue from the columns that a learner has learnt."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from streamsel.base.phase import ConstantColumn, LearnerHooks, Phase
from streamsel.base.rows import RowPhase
from streamsel.base.windows import Window, WindowPhase
from streamsel.data.chunks import Stats
from streamsel.state.base import ColumnState
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.vocabulary import Vocabulary
from streamsel.targets.glm import FAMILIES
from streamsel.targets.rows import RowTarget
from streamsel.targets.target import Target


def new_row_phase(model: LearnerHooks, before: Phase) -> RowPhase:
    """Return a phase on rows that continues from any columns learnt, without changing the model."""
    _refuse_rows(model, before)
    target, names = before.target, model.covariates or ()
    state = None if before.columns is None else before.columns.carried()
    row_target = RowTarget(model.target_type, names)
    moments = Moments(model.fading_factor, row_target, model._variable_kernel())
    if target is not None:
        if isinstance(target, Target) and set(target.covariate_kinds) != set(names):
            raise ValueError(
                f"Expected the covariates of the columns, {list(target.covariate_kinds)}, in the "
                f"parameter covariates, to read them from rows. Got: {list(names)}.\n"
                "Hint: name them in the constructor, and pass them to learn_target under these "
                "names."
            )
        moments.continue_from(target)
        _add_columns(moments, before, state)
    n_tracked = int((moments.stats().m2 == 0.0).sum()) if len(moments.table) else 0
    constant = before.n_constant - n_tracked
    vocabulary = Vocabulary(model.max_features, model.grace_period)
    extension = model._new_row_extension()
    return RowPhase(before, constant, moments, extension, vocabulary, state)


def _add_columns(moments: Moments, before: Phase, state: ColumnState | None) -> None:
    """Add the variables that were learnt as columns to the moments."""
    if state is None:
        return
    moments.add_column_moments(*_with_constants(state, before.kept_constants))
    # A variable that was not kept need not have been 0.
    if moments.complete and before.n_columns > len(moments.table):
        moments.note_discard()


def _with_constants(
    state: ColumnState, constants: Mapping[Hashable, ConstantColumn] | None
) -> tuple[list[Hashable], Stats]:
    """Return the names and moments of all variables of a state, and of constant columns.

    They are in order of arrival. After a discard, constant columns are of no use.
    """
    names, stats = [*state.names], state.stats()
    if not constants or not state.complete:
        return names, stats
    arrivals = state.arrivals(np.arange(len(names)))
    if arrivals is None:
        return names, stats
    added = {name: column for name, column in constants.items() if name not in state.index_of}
    values = np.array([column.value for column in added.values()])
    zeros = np.zeros(values.size)
    of_added = Stats(values, zeros, zeros, np.zeros((values.size, stats.cxy.shape[1])))
    order = np.argsort([*arrivals, *(column.arrival for column in added.values())], kind="stable")
    names += added
    both = (np.concatenate(parts)[order] for parts in zip(stats, of_added, strict=True))
    return [names[j] for j in order.tolist()], Stats(*both)


def new_window_phase(model: LearnerHooks, before: Phase) -> WindowPhase:
    """Return a phase on windows that continues from any columns, without changing the model."""
    _refuse_rows(model, before)
    target = before.target
    if isinstance(target, Target) and target.covariate_kinds:
        raise ValueError(
            "Expected columns, as the model has learnt columns with covariates, which windows "
            "of rows do not support. Got: a row.\n"
            "Hint: learn the rows with model.clone(), without covariates."
        )
    row_target = RowTarget(model._row_target_type) if model._is_supervised else None
    window = Window(model._window_size, row_target, model.max_features)
    if target is not None:
        window.before = target.n
        if isinstance(target, Target):
            window.target = RowTarget.from_target(target, model._row_target_type)
    phase, state = WindowPhase(before, window), before.columns
    if before.group_counts is not None and state is not None:
        members = state.members_of(range(len(state.names)))
        phase.groups = dict(zip(state.names, members, strict=True))
    return phase


def refuse_rows_of_groups(model: LearnerHooks, before: Phase) -> None:
    """Raise ValueError for a model of grouped columns that cannot learn rows by windows."""
    target, state = before.target, before.columns
    fading = model.fading_factor
    for is_refused, expected, got in (
        (fading != 0.0, "fading_factor=0.0", f"fading_factor={fading!r}"),
        (
            target is not None and target.row_transform is not None,
            "no weights or relatedness",
            "some",
        ),
        (state is not None and not state.complete, "all groups", "a pool that has discarded some"),
    ):
        if is_refused:
            raise ValueError(
                f"Expected {expected}: rows after groups of columns are learnt by windows, in "
                f"which all groups are known by name. Got: {got}.\n"
                "Hint: learn the rows with model.clone(), as single columns."
            )


def _refuse_rows(model: LearnerHooks, before: Phase) -> None:
    """Raise ValueError for a model that cannot learn rows."""
    target = before.target
    if isinstance(target, Target) and target.untransformed is not None:
        raise ValueError(
            'Expected columns, as relatedness="auto" requires. Got: a row.\n'
            "Hint: learn_columns(source) first."
        )
    if target is not None and target.row_transform is not None and target.row_transform.by_column:
        raise ValueError(
            "Expected columns, as groups of columns are left out of the relatedness: their moments "
            "have no common scale. Got: a row.\nHint: relatedness without groups."
        )
    if model._is_supervised and before.without_target:
        raise ValueError(
            "Expected a model with a target. Got: a row for a model that selects without a "
            "target.\nHint: selection without a target needs the observations of whole columns."
        )
    kind = model.target_type
    if model._is_supervised and kind in ("survival", *FAMILIES):
        reason = (
            "martingale residuals depend on all observations at risk, including later rows."
            if kind == "survival"
            else "the null model depends on all observations, including later rows; other target "
            "types can learn rows."
        )
        raise ValueError(
            f"Expected columns, as target_type={kind!r} requires. Got: a row.\nHint: {reason}"
        )
