"""Merge of the component moments of two models."""

from __future__ import annotations

import numpy as np

from streamsel.held.joint import JointMoments, slots_of
from streamsel.held.moments import Moments

# Relative difference below which weights are equal.
_WEIGHT_RTOL = 1e-12
# Difference below which loadings are equal.
_LOADING_ATOL = 1e-12


def watch_sums(mine: JointMoments, theirs: JointMoments) -> None:
    """Watch the variables of the other model's components, with zero loadings."""
    names = [name for name in theirs.loaded if name not in mine.watched.slots]
    nothing = np.zeros(len(names))
    mine.watched.append(names, B=np.zeros((len(names), mine.n_sums)), shift=nothing)


def merge_rows(mine: JointMoments, theirs: JointMoments, moments: Moments) -> None:
    """Merge component moments, after the variables' moments were merged with those of other rows.

    If the other model has the same components, their moments are combined exactly; otherwise the
    covariance over this model's rows is scaled to all rows. A model without components copies those
    of the other. There must be no candidates.
    """
    if not mine.loaded:
        _adopt(mine, theirs)
    elif _same_sums(mine, theirs):
        _add_rows(mine, theirs)
    _scale_to_all_rows(mine, moments)


def _adopt(mine: JointMoments, theirs: JointMoments) -> None:
    """Copy the components and their moments from another model."""
    first, mine.n = mine.n_sums, theirs.n
    loaded = [theirs.watched.slots[name] for name in theirs.loaded]
    B, shift = theirs.watched["B"][loaded], theirs.watched["shift"][loaded]
    mine.watched.append(theirs.loaded, B=B, shift=shift)
    mine.mean[:], mine.J[:] = theirs.mean[:first], theirs.J[:first, :first]


def _same_sums(mine: JointMoments, theirs: JointMoments) -> bool:
    if set(mine.loaded) != set(theirs.loaded):
        return False
    other_indices = [theirs.watched.slots[name] for name in mine.watched.names]
    B = theirs.watched["B"][other_indices]
    return bool(np.allclose(mine.watched["B"], B, rtol=0.0, atol=_LOADING_ATOL))


def _add_rows(mine: JointMoments, theirs: JointMoments) -> None:
    """Add the moments of the same components over other rows."""
    first, total = mine.n_sums, mine.n + theirs.n
    other_indices = [theirs.watched.slots[name] for name in mine.watched.names]
    shift_change = theirs.watched["shift"][other_indices] - mine.watched["shift"]
    difference = theirs.mean[:first] + shift_change @ mine.watched["B"] - mine.mean
    mine.J += theirs.J[:first, :first] + np.outer(difference, difference) * (
        mine.n * theirs.n / total
    )
    mine.mean += difference * (theirs.n / total)
    mine.n = total


def _scale_to_all_rows(mine: JointMoments, moments: Moments) -> None:
    """Scale the components' moments to all rows, whose means are known."""
    weight = moments.n
    rest = weight - mine.n
    if rest > _WEIGHT_RTOL * weight and mine.loaded:
        stats = moments.stats(slots_of(mine.watched, moments))
        difference = (stats.mean - mine.watched["shift"]) @ mine.watched["B"] - mine.mean
        mine.J *= weight / mine.n
        mine.J += np.outer(difference, difference) * (mine.n * weight / rest)
        mine.mean += difference
    mine.n = weight
