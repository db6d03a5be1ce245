"""Merge of the moments of two models: over other rows, or of other variables."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from streamsel.state.base import VariableTable, zero_padded
from streamsel.state.moments.moments import M2, MEAN, SEEN, SHIFT, UNTIL, Moments, fields
from streamsel.targets.observation import Observation
from streamsel.targets.rows import RowTarget

Floats = NDArray[np.float64]


def merge_moments_of_rows(mine: Moments, other: Moments) -> None:
    """Add the moments of other rows with a target of the same form; `other` is not changed."""
    assert other.target.form is not None  # noqa: S101
    columns = dict.fromkeys(other.target.index_of, 0.0)
    mine.admit_targets(Observation(other.target.form, columns, other.target.kinds))
    theirs = _converted(mine, other)
    # A variable unknown to one model was 0 there.
    mine.admit([name for name in theirs.table.names if name not in mine.table.index_of])
    theirs.admit([name for name in mine.table.names if name not in theirs.table.index_of])
    every_index = np.arange(len(mine.table))
    mine.add_zeros(every_index)
    theirs.add_zeros(every_index)
    other_indices = np.array(
        [theirs.table.index_of[name] for name in mine.table.names], dtype=np.intp
    )
    own, cross, about = (theirs.table[field][other_indices] for field in ("own", "cross", "about"))
    seen, shift, mean, m2 = own.T[[SEEN, SHIFT, MEAN, M2]]
    mine.combine(every_index, seen, shift, mean, m2, cross, about)
    mine.combine_target(theirs.total, theirs.target_moments[0], theirs.target_moments[1:])
    mine.total += theirs.total
    mine.table["own"][:, UNTIL] = mine.total
    mine.table["last"][:] = mine.target_moments[0]
    forgotten_weight = mine.before_arrival[0] + theirs.before_arrival[0]
    if forgotten_weight:
        difference = theirs.before_arrival[1:] - mine.before_arrival[1:]
        mine.before_arrival[1:] += difference * (theirs.before_arrival[0] / forgotten_weight)
        mine.before_arrival[0] = forgotten_weight
    mine.rows += theirs.rows
    mine.squares += theirs.squares
    mine._complete &= theirs._complete


def merge_moments_of_columns(mine: Moments, other: Moments) -> None:
    """Add other variables of the same rows; `other` is not changed."""
    theirs = _converted(mine, other)
    own = theirs.table["own"]
    # The total weights agree up to rounding.
    own[own[:, UNTIL] == theirs.total, UNTIL] = mine.total
    rows = {field: theirs.table[field] for field in theirs.table.fields}
    mine.table.append(theirs.table.names, **rows)
    mine._complete &= theirs._complete


def have_same_rows(mine: Moments, other: Moments) -> bool:
    """Return whether both models have learnt as many rows with the same target moments."""
    if mine.rows != other.rows or mine.target.index_of.keys() != other.target.index_of.keys():
        return False
    theirs = _converted(mine, other)
    scale = np.sqrt(np.diag(mine.target_moments[1:]))
    difference = np.abs(mine.target_moments[1:] - theirs.target_moments[1:])
    return bool((difference <= 1e-9 * scale * scale[:, None]).all())


def _converted(mine: Moments, other: Moments) -> Moments:
    """Return a copy of `other` with the unit of weight, target columns and origins of `mine`."""
    theirs = copy.deepcopy(other)
    theirs.rescale(mine.unit / theirs.unit)
    _convert_target(theirs, mine.target)
    return theirs


def _convert_target(moments: Moments, target: RowTarget) -> None:
    """Convert moments to a target with other origins and a superset of the columns."""
    index_of, current = moments.target.index_of, moments.target
    index = np.array([index_of.get(name, -1) for name in target.index_of], dtype=np.intp)
    is_known = index >= 0
    # A column that these rows never had was 0 in all of them; index -1 selects the padding.
    shift_change = np.append(current.shift, 0.0)[index] - target.shift

    def taken(array: Floats) -> Floats:
        found: Floats = np.where(
            is_known, zero_padded(array.T, len(is_known) + 1).T[..., index], 0.0
        )
        return found

    cyy = taken(taken(moments.target_moments[1:]).T).T
    moments.target_moments = np.vstack([taken(moments.target_moments[0]) + shift_change, cyy])
    moments.before_arrival = np.append(
        moments.before_arrival[:1], taken(moments.before_arrival[1:]) + shift_change
    )
    rows = {
        "own": moments.table["own"],
        "cross": taken(moments.table["cross"]),
        "about": taken(moments.table["about"]) + shift_change,
        "last": taken(moments.table["last"]) + shift_change,
    }
    table = VariableTable(fields(len(is_known)))
    table.append(moments.table.names, **rows)
    moments.table, moments.target = table, copy.deepcopy(target)
