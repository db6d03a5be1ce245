"""Joint moments of two models put together: over other rows of the same variables."""

from __future__ import annotations

import copy
from collections.abc import Hashable

import numpy as np

from streamsel.held.part import Places
from streamsel.held.period import Period

# A period, whether who is unknown to it was 0 in its rows, and the names of its model's targets.
Side = tuple[Period, bool, list[Hashable]]


def merge_periods(mine: Side, theirs: Side) -> None:
    """Take the rows of another period into mine, over the variables that both know.

    My targets are those of both, in order.
    """
    (one, one_open, targets), (other, other_open, others) = mine, theirs
    other = copy.deepcopy(other)
    one.add_targets(len(targets) - len(one.targets))
    _rename_targets(other, others, targets)
    _agree_on_variables(one, other, one_open=one_open, other_open=other_open)
    for period, further in ((one, other), (other, one)):
        period.add_gaps(further.gaps)
        period.add_waiting()
    other.rescale(one.unit / other.unit)
    _agree_on_shifts(one, other)
    here, there = _columns(one, list(one.slots)), _columns(other, list(one.slots))
    gappy = list(one.gaps)
    here = np.append(here, [one.gaps[name] for name in gappy]).astype(np.intp)
    there = np.append(there, [other.gaps[name] for name in gappy]).astype(np.intp)
    one.S[here[:, None], here] += other.S[there[:, None], there]
    one.sums[here] += other.sums[there]
    one.n += other.n
    one.squares += other.squares
    one.rows += other.rows
    one.next_look = 2 * one.rows
    one.find_shifts()


def _rename_targets(period: Period, names: list[Hashable], wanted: list[Hashable]) -> None:
    """Let the targets be those wanted, in order; who is not there yet was 0."""
    held = dict(zip(names, period.targets.tolist(), strict=True))
    new = [name for name in wanted if name not in held]
    period.add_targets(len(new))
    held |= dict(zip(new, period.targets[len(names) :].tolist(), strict=True))
    period.targets = np.array([held[name] for name in wanted], dtype=np.intp)


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
    there = _columns(other, list(one.slots))
    # Who was never observed has no values to be about.
    new = seen == 0.0
    one.shift[own[new]] = other.shift[there[new]]
    of_gaps = np.full(there.size, -1, dtype=np.intp)
    gappy = np.flatnonzero(gap >= 0)
    names = [*([None] * len(one.targets)), *one.slots]
    of_gaps[gappy] = [other.gaps[names[i]] for i in gappy.tolist()]
    other.move(there, of_gaps, one.shift[own])


def _columns(period: Period, names: list[Hashable]) -> Places:
    """Return the columns of targets and variables."""
    columns = [*period.targets.tolist(), *(period.slots[name] for name in names)]
    return np.array(columns, dtype=np.intp)
