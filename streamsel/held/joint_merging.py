"""Joint moments of sums after a merge: what two models know of theirs, put together."""

from __future__ import annotations

import numpy as np

from streamsel.held.joint import JointMoments, slots_of
from streamsel.held.moments import Moments

# Weights whose difference is less than this part of them are equal.
_ROUNDING = 1e-12
# Loadings that differ by less are equal.
_SAME = 1e-12


def watch_sums(mine: JointMoments, theirs: JointMoments) -> None:
    """Watch the variables of the other's sums, without loadings yet."""
    names = [name for name in theirs.loaded if name not in mine.watched.slots]
    nothing = np.zeros(len(names))
    mine.watched.append(names, B=np.zeros((len(names), mine.n_sums)), shift=nothing)


def merge_rows(mine: JointMoments, theirs: JointMoments, moments: Moments) -> None:
    """Let sums go on after the moments of the variables were merged with those of other rows.

    Where the other has learnt rows with the same sums their moments are joined exactly; otherwise
    the spread of mine in my rows stands for that in all. Where I have no sums yet, I go on with the
    other's. There are no candidates.
    """
    if not mine.loaded:
        _adopt(mine, theirs)
    elif _same_sums(mine, theirs):
        _add_rows(mine, theirs)
    _stretch(mine, moments)


def _adopt(mine: JointMoments, theirs: JointMoments) -> None:
    """Go on from the sums of another, as if their rows had been mine."""
    first, mine.n = mine.n_sums, theirs.n
    held = [theirs.watched.slots[name] for name in theirs.loaded]
    B, shift = theirs.watched["B"][held], theirs.watched["shift"][held]
    mine.watched.append(theirs.loaded, B=B, shift=shift)
    mine.mean[:], mine.J[:] = theirs.mean[:first], theirs.J[:first, :first]


def _same_sums(mine: JointMoments, theirs: JointMoments) -> bool:
    if set(mine.loaded) != set(theirs.loaded):
        return False
    there = [theirs.watched.slots[name] for name in mine.watched.names]
    B = theirs.watched["B"][there]
    return bool(np.allclose(mine.watched["B"], B, rtol=0.0, atol=_SAME))


def _add_rows(mine: JointMoments, theirs: JointMoments) -> None:
    """Add the moments that the same sums have over other rows."""
    first, total = mine.n_sums, mine.n + theirs.n
    there = [theirs.watched.slots[name] for name in mine.watched.names]
    moved = theirs.watched["shift"][there] - mine.watched["shift"]
    apart = theirs.mean[:first] + moved @ mine.watched["B"] - mine.mean
    mine.J += theirs.J[:first, :first] + np.outer(apart, apart) * (mine.n * theirs.n / total)
    mine.mean += apart * (theirs.n / total)
    mine.n = total


def _stretch(mine: JointMoments, moments: Moments) -> None:
    """Let the sums' moments stand for all rows, whose means are known."""
    weight = moments.n
    rest = weight - mine.n
    if rest > _ROUNDING * weight and mine.loaded:
        stats = moments.stats(slots_of(mine.watched, moments))
        apart = (stats.mean - mine.watched["shift"]) @ mine.watched["B"] - mine.mean
        mine.J *= weight / mine.n
        mine.J += np.outer(apart, apart) * (mine.n * weight / rest)
        mine.mean += apart
    mine.n = weight
