"""A bounded vocabulary: which variables are let go when a new name needs room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

import numpy as np
from numpy.typing import NDArray

from streamsel.columns import Stats
from streamsel.moments import Moments
from streamsel.ties import most_relevant_first

# When one variable must go, so large a part of the vocabulary may: to look for the least relevant
# costs a look at all.
_AT_ONCE = 8


class Vocabulary:
    """Keeps the number of tracked variables below a cap.

    The least relevant go first, the latest among equals, but none that is protected and none that
    has been tracked for less than its grace period. Where none can go a newcomer is not tracked,
    and is a newcomer again when it comes next.

    Parameters
    ----------
    most
        The cap; None for none.
    grace_period
        In rows.

    Attributes
    ----------
    full_until
        The row before which nobody can go.
    """

    def __init__(self, most: int | None, grace_period: int) -> None:
        self.most = most
        self.grace_period = grace_period
        self.full_until = 0

    def make_room(
        self,
        moments: Moments,
        wanted: int,
        protected: Callable[[], Collection[Hashable]],
        relevance: Callable[[Stats], NDArray[np.float64]],
    ) -> int:
        """Return how many of the newcomers wanted can be tracked, after others have been let go.

        Parameters
        ----------
        moments
            What is tracked; what is let go is taken out.
        wanted
            Number of newcomers.
        protected
            Returns the names that must stay.
        relevance
            Moments of variables -> their relevance.
        """
        table = moments.table
        if self.most is None:
            return wanted
        short = len(table) + wanted - self.most
        if short > 0 and moments.rows >= self.full_until:
            mature = moments.mature(self.grace_period)
            for name in protected():
                mature[table.slots[name]] = False
            free = np.flatnonzero(mature)
            going = min(free.size, max(short, self.most // _AT_ONCE))
            if going:
                ranking = most_relevant_first(relevance(moments.over_all_rows(free)))
                stays = np.ones(len(table), dtype=np.bool_)
                stays[free[ranking[-going:]]] = False
                moments.let_go(np.flatnonzero(stays))
            if going < short:
                self.full_until = moments.next_mature(self.grace_period)
        return max(0, min(wanted, self.most - len(moments.table)))
