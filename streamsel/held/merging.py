"""Moments of two models put together: other rows of the same variables, or the other way round."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from streamsel.held.moments import M2, MEAN, SEEN, SHIFT, UNTIL, Moments, fields
from streamsel.held.table import Table, padded
from streamsel.target.observed import Observation
from streamsel.target.rows import RowTarget

Floats = NDArray[np.float64]


def merge_rows(mine: Moments, other: Moments) -> None:
    """Take in the moments of other rows, of a target of the same form; the other is left."""
    assert other.target.form is not None  # noqa: S101
    columns = dict.fromkeys(other.target.slots, 0.0)
    mine.admit_targets(Observation(other.target.form, columns, other.target.kinds))
    theirs = _in_words_of(mine, other)
    # Who is unknown on one side was 0 there.
    mine.admit([name for name in theirs.table.names if name not in mine.table.slots])
    theirs.admit([name for name in mine.table.names if name not in theirs.table.slots])
    everyone = np.arange(len(mine.table))
    mine.add_zeros(everyone)
    theirs.add_zeros(everyone)
    there = np.array([theirs.table.slots[name] for name in mine.table.names], dtype=np.intp)
    own, cross, about = (theirs.table[field][there] for field in ("own", "cross", "about"))
    seen, shift, mean, m2 = own.T[[SEEN, SHIFT, MEAN, M2]]
    mine.combine(everyone, seen, shift, mean, m2, cross, about)
    mine.combine_target(theirs.total, theirs.of_target[0], theirs.of_target[1:])
    mine.total += theirs.total
    mine.table["own"][:, UNTIL] = mine.total
    mine.table["last"][:] = mine.of_target[0]
    lost = mine.forgotten[0] + theirs.forgotten[0]
    if lost:
        apart = theirs.forgotten[1:] - mine.forgotten[1:]
        mine.forgotten[1:] += apart * (theirs.forgotten[0] / lost)
        mine.forgotten[0] = lost
    mine.rows += theirs.rows
    mine.squares += theirs.squares
    mine._complete &= theirs._complete


def merge_columns(mine: Moments, other: Moments) -> None:
    """Take in other variables of the same rows; the other is left."""
    theirs = _in_words_of(mine, other)
    own = theirs.table["own"]
    # Their weight of all rows is mine, but for rounding.
    own[own[:, UNTIL] == theirs.total, UNTIL] = mine.total
    rows = {field: theirs.table[field] for field in theirs.table.fields}
    mine.table.append(theirs.table.names, **rows)
    mine._complete &= theirs._complete


def same_rows(mine: Moments, other: Moments) -> bool:
    """Whether the other has learnt as many rows of a target of the same moments."""
    if mine.rows != other.rows or mine.target.slots.keys() != other.target.slots.keys():
        return False
    theirs = _in_words_of(mine, other)
    scale = np.sqrt(np.diag(mine.of_target[1:]))
    apart = np.abs(mine.of_target[1:] - theirs.of_target[1:])
    return bool((apart <= 1e-9 * scale * scale[:, None]).all())


def _in_words_of(mine: Moments, other: Moments) -> Moments:
    """Return a copy of the other with my unit of weight, and my target columns and origins."""
    theirs = copy.deepcopy(other)
    theirs.rescale(mine.unit / theirs.unit)
    _speak_of(theirs, mine.target)
    return theirs


def _speak_of(moments: Moments, target: RowTarget) -> None:
    """Go over to the columns of a target, all of the moments' own among them, and its origins."""
    slots, held_by = moments.target.slots, moments.target
    place = np.array([slots.get(name, -1) for name in target.slots], dtype=np.intp)
    held = place >= 0
    # A column that these rows never had was 0 in all of them; so is index -1 of what is padded.
    moved = np.append(held_by.origin, 0.0)[place] - target.origin

    def taken(array: Floats) -> Floats:
        found: Floats = np.where(held, padded(array.T, len(held) + 1).T[..., place], 0.0)
        return found

    cyy = taken(taken(moments.of_target[1:]).T).T
    moments.of_target = np.vstack([taken(moments.of_target[0]) + moved, cyy])
    moments.forgotten = np.append(moments.forgotten[:1], taken(moments.forgotten[1:]) + moved)
    rows = {
        "own": moments.table["own"],
        "cross": taken(moments.table["cross"]),
        "about": taken(moments.table["about"]) + moved,
        "last": taken(moments.table["last"]) + moved,
    }
    table = Table(fields(len(held)))
    table.append(moments.table.names, **rows)
    moments.table, moments.target = table, copy.deepcopy(target)
