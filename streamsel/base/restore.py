"""Restore a learner from a model file, and check that learning can produce its contents."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.base.columns import ColumnPhase
from streamsel.base.groups import GroupCounts, check_groups, groups_from_state
from streamsel.base.learn_target import refuse_weights
from streamsel.base.phase import ConstantColumn
from streamsel.base.source_facts import SourceFacts
from streamsel.base.to_rows import new_row_phase, new_window_phase
from streamsel.serialization.invariants import expect_explained, expect_relevances
from streamsel.serialization.schema import (
    ArrayKind,
    BoolKind,
    CountKind,
    FloatKind,
    NamesKind,
    OptionalKind,
    expect,
)
from streamsel.state.sketch import RandomSketch
from streamsel.targets.glm import FAMILIES
from streamsel.targets.observation import NO_TARGET
from streamsel.targets.target import NoTarget, Target

if TYPE_CHECKING:
    from streamsel.base.learner import Learner


def restore_phase(model: Learner, state: dict[str, Any]) -> None:
    """Restore the learnt state of a model."""
    expect(state, n_columns=CountKind(), n_constant=CountKind(), n_passes=FloatKind(0.0))
    expect(state, without_target=BoolKind(), n_rows=OptionalKind(CountKind(1)))
    columns = _restore_columns(model, state)
    if "window" in state:
        windows = new_window_phase(model, columns)
        if "groups" in state:
            windows.groups = groups_from_state(state["groups"])
        windows.window.set_state(state["window"])
        model._phase = windows
    elif "moments" in state:
        rows = new_row_phase(model, columns)
        rows.set_state(state)
        model._phase = rows


def _restore_columns(model: Learner, state: dict[str, Any]) -> ColumnPhase:
    """Return the phase on columns from a file."""
    model._phase = phase = ColumnPhase(without_target=state["without_target"])
    phase.n_columns, phase.constant = state["n_columns"], state["n_constant"]
    phase.n_passes = state["n_passes"]
    if "source" in state:
        phase.source = SourceFacts.restored(state["source"], phase.n_columns)
    _expect_target(model, state)
    if "target_Y" in state:
        target = Target.restored(state)
        null, kind = target.null_model, model.target_type
        if (None if null is None else null.family) != (kind if kind in FAMILIES else None):
            raise ValueError("Corrupt model file: the null model must be that of the target type.")
        model._take_target(target)
    elif state["n_rows"] is not None:
        phase.target = NoTarget.restored(state)
        refuse_weights(model, phase.target)
    if "constants" in state:
        phase.kept_constants = _restored_constants(state)
    if "group_counts" in state:
        phase.group_counts = GroupCounts.restored(state["group_counts"])
        check_groups(model, phase.target)
    if "columns" in state:
        new = model._new_columns if phase.group_counts is None else model._new_groups
        phase.columns = new(state["n_rows"])
        phase.columns.set_state(state["columns"])
    if "summary" in state and phase.summary is not None:
        phase.summary.set_state(state["summary"], phase.n_columns, phase.n_candidates)
    elif "moments" in state or (phase.space is not None and phase.n_columns):
        phase.summary = None
    return phase


def _restored_constants(state: dict[str, Any]) -> dict[Hashable, ConstantColumn] | None:
    """Return the constant columns from a file, which are not more than their number."""
    expect(state, constants=OptionalKind(NamesKind()))
    names = state["constants"]
    if names is None:
        return None
    shape, below = (len(names),), state["n_columns"]
    expect(
        state,
        constant_values=ArrayKind(shape),
        constant_arrivals=ArrayKind(shape, np.int64, minimum=0, below=below),
    )
    if len(names) > state["n_constant"]:
        raise ValueError(
            f"Expected at most {state['n_constant']} constant columns. Got: {len(names)}."
        )
    numbers = state["constant_values"].tolist(), state["constant_arrivals"].tolist()
    return dict(zip(names, map(ConstantColumn, *numbers), strict=True))


def _expect_target(model: Learner, state: dict[str, Any]) -> None:
    """Raise ValueError if the target in a file is missing, or does not fit the learner."""
    has_target, without_target = "target_Y" in state, state["without_target"]
    may_lack_target = not model._is_supervised or model._takes_no_target
    is_missing = "columns" in state and (state["n_rows"] is None or has_target is without_target)
    if (
        (without_target and (has_target or not may_lack_target))
        or is_missing
        or (not without_target and not model._is_supervised)
    ):
        raise ValueError(
            "Corrupt model file: a target is missing, or present in an unsupervised model."
        )


def expect_possible(model: Learner) -> None:
    """Raise ValueError for moments that no data can produce, as they would lead to NaN."""
    if model._moments is not None:
        has_target = model._moments.target.form not in (None, NO_TARGET)
        if has_target is not model._is_supervised:
            raise ValueError(
                "Corrupt model file: rows must have a target in supervised models only."
            )
    state = model._state
    if state is None or isinstance(state, RandomSketch) or model._phase.group_counts is not None:
        return
    with np.errstate(all="ignore"):
        stats, relevance = state.stats(), state.relevance()
    sums = np.isfinite(stats.m2).all() and (stats.m2 >= 0.0).all()
    # The relevance is -inf for constant variables and for those that covariates explain in
    # full.
    if not (sums and np.isfinite(stats.cxy).all() and (relevance < np.inf).all()):
        raise ValueError("Corrupt model file: moments must be finite and non-negative.")


def expect_reachable(model: Learner) -> None:
    """Raise ValueError for a restored state that no learning can produce.

    Copies in memory are not checked: the products computed here take longer than the copy.
    """
    for part in model._phase.parts:
        part.expect_valid()
    state = model._state
    if state is None or isinstance(state, RandomSketch) or model._phase.group_counts is not None:
        return
    stats, relevance = state.stats(), state.relevance()
    expect_relevances(relevance[relevance > -np.inf])
    if state.space is not None:
        expect_explained(stats.m2, stats.mean, stats.cxy, state.space.squares)
