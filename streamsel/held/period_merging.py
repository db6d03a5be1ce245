"""Merge of the cross-moments of two models, over other rows of the same variables."""

from __future__ import annotations

import copy
from collections.abc import Hashable

import numpy as np

from streamsel.held.part import Places
from streamsel.held.period import Period

# A window, whether unknown variables were 0 in its rows, and the names of its model's targets.
Side = tuple[Period, bool, list[Hashable]]


def merge_periods(mine: Side, theirs: Side) -> None:
    """Add the rows of another window, for the variables in both.

    The targets of `mine` must include those of the other.
    """
    (one, one_open, targets), (other, other_open, others) = mine, theirs
    other = copy.deepcopy(other)
    one.add_targets(len(targets) - len(one.targets))
    _reorder_targets(other, others, targets)
    _agree_on_variables(one, other, one_open=one_open, other_open=other_open)
    for period, further in ((one, other), (other, one)):
        period.add_gaps(further.gaps)
        period.add_waiting()
    other.rescale(one.unit / other.unit)
    _agree_on_shifts(one, other)
    my_columns, other_columns = _columns(one, list(one.slots)), _columns(other, list(one.slots))
    gappy = list(one.gaps)
    my_columns = np.append(my_columns, [one.gaps[name] for name in gappy]).astype(np.intp)
    other_columns = np.append(other_columns, [other.gaps[name] for name in gappy]).astype(np.intp)
    one.S[my_columns[:, None], my_columns] += other.S[other_columns[:, None], other_columns]
    one.sums[my_columns] += other.sums[other_columns]
    one.n += other.n
    one.squares += other.squares
    one.rows += other.rows
    one.next_look = 2 * one.rows
    one.find_shifts()


def _reorder_targets(period: Period, names: list[Hashable], wanted: list[Hashable]) -> None:
    """Reorder the targets as wanted; targets that are new here were 0."""
    columns = dict(zip(names, period.targets.tolist(), strict=True))
    new = [name for name in wanted if name not in columns]
    period.add_targets(len(new))
    columns |= dict(zip(new, period.targets[len(names) :].tolist(), strict=True))
    period.targets = np.array([columns[name] for name in wanted], dtype=np.intp)


def _agree_on_variables(one: Period, other: Period, *, one_open: bool, other_open: bool) -> None:
    if one_open:
        one.add([name for name in other.slots if name not in one.slots])
    if other_open:
        other.add([name for name in one.slots if name not in other.slots])
    both = one.slots.keys() & other.slots.keys()
    one.keep_only(both)
    other.keep_only(both)


def _agree_on_shifts(one: Period, other: Period) -> None:
    own, gap, seen, _ = one.observed()
    other_columns = _columns(other, list(one.slots))
    # The shift of a variable that was never observed is arbitrary.
    new = seen == 0.0
    one.shift[own[new]] = other.shift[other_columns[new]]
    of_gaps = np.full(other_columns.size, -1, dtype=np.intp)
    gappy = np.flatnonzero(gap >= 0)
    names = [*([None] * len(one.targets)), *one.slots]
    of_gaps[gappy] = [other.gaps[names[i]] for i in gappy.tolist()]
    other.move(other_columns, of_gaps, one.shift[own])


def _columns(period: Period, names: list[Hashable]) -> Places:
    """Return the columns of targets and variables."""
    columns = [*period.targets.tolist(), *(period.slots[name] for name in names)]
    return np.array(columns, dtype=np.intp)
