"""Components on rows after a merge: what two models know of theirs, put together."""

from __future__ import annotations

import numpy as np

from streamsel.extraction._on_rows import ComponentsOnRows
from streamsel.moments import Moments
from streamsel.target import TargetSpace

# Weights whose difference is less than this part of them are equal.
_ROUNDING = 1e-12


def follow_merge(
    mine: ComponentsOnRows,
    theirs: ComponentsOnRows,
    along: str,
    moments: Moments,
    space: TargetSpace,
) -> None:
    """Let components go on after the moments of the variables were merged.

    Where the other has learnt rows with the same components their moments are joined exactly;
    otherwise the spread of mine in my rows stands for that in all. What the other found may join as
    candidates. Where I have no components yet, I go on with the other's.
    """
    mine.keep_candidates([])
    if along == "rows":
        if not mine.count:
            _adopt(mine, theirs)
        elif _same_components(mine, theirs):
            _add_rows(mine, theirs)
        _stretch(mine, moments)
    mine.choose(moments, space)


def _adopt(mine: ComponentsOnRows, theirs: ComponentsOnRows) -> None:
    """Go on from the components of another, as if their rows had been mine."""
    first = mine.q + 1
    mine.count, mine.n = theirs.count, theirs.n
    held = [theirs.watched.slots[name] for name in theirs.loaded]
    B, shift = theirs.watched["B"][held], theirs.watched["shift"][held]
    mine.watched.append(theirs.loaded, B=B, shift=shift)
    mine.mean[:], mine.J[:] = theirs.mean[:first], theirs.J[:first, :first]


def _same_components(mine: ComponentsOnRows, theirs: ComponentsOnRows) -> bool:
    if mine.count != theirs.count or set(mine.loaded) != set(theirs.loaded):
        return False
    there = [theirs.watched.slots[name] for name in mine.watched.names]
    B = theirs.watched["B"][there]
    return bool(np.allclose(mine.watched["B"], B, rtol=0.0, atol=1e-12))


def _add_rows(mine: ComponentsOnRows, theirs: ComponentsOnRows) -> None:
    """Add the moments that the same components have over other rows."""
    first, total = mine.q + 1, mine.n + theirs.n
    there = [theirs.watched.slots[name] for name in mine.watched.names]
    moved = theirs.watched["shift"][there] - mine.watched["shift"]
    apart = theirs.mean[:first] + moved @ mine.watched["B"] - mine.mean
    mine.J += theirs.J[:first, :first] + np.outer(apart, apart) * (mine.n * theirs.n / total)
    mine.mean += apart * (theirs.n / total)
    mine.n = total


def _stretch(mine: ComponentsOnRows, moments: Moments) -> None:
    """Let the components' moments stand for all rows, whose means are known."""
    weight = moments.weight
    rest = weight - mine.n
    if rest > _ROUNDING * weight and mine.count:
        stats = moments.over_all_rows(mine.slots_of(mine.watched, moments))
        apart = (stats.mean - mine.watched["shift"]) @ mine.watched["B"] - mine.mean
        mine.J *= weight / mine.n
        mine.J += np.outer(apart, apart) * (mine.n * weight / rest)
        mine.mean += apart
    mine.n = weight
