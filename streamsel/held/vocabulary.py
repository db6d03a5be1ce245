"""A bounded vocabulary: which variables are let go when a new name needs room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

import numpy as np
from numpy.typing import NDArray

from streamsel.columns import Stats
from streamsel.held.moments import Moments
from streamsel.rollback import Rollback
from streamsel.ties import most_relevant_first

# When one variable must go, so large a part of the vocabulary may: to look for the least relevant
# costs a look at all.
_AT_ONCE = 8


class Vocabulary(Rollback):
    """Keeps the number of tracked variables below a cap.

    The least relevant go first, the latest among equals, but none that is protected and none that
    has been tracked for less than its grace period; an eighth of the cap at once. Where so many
    cannot go a newcomer is not tracked, and is a newcomer again when it comes next.

    Parameters
    ----------
    most
        The cap; None for none.
    grace_period
        In rows.

    Attributes
    ----------
    full_until
        The row before which not enough can go.
    """

    changing = ("most", "grace_period", "full_until")

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
        if self.most is None:
            return wanted
        short = len(moments.table) + wanted - self.most
        if short > 0 and moments.rows >= self.full_until:
            # Where nobody is held nobody need stay.
            self._let_go(moments, short, protected() if len(moments.table) else (), relevance)
        return max(0, min(wanted, self.most - len(moments.table)))

    def _let_go(
        self,
        moments: Moments,
        short: int,
        protected: Collection[Hashable],
        relevance: Callable[[Stats], NDArray[np.float64]],
    ) -> None:
        slots = moments.table.slots
        free = np.ones(len(slots), dtype=np.bool_)
        free[[slots[name] for name in protected]] = False
        places = np.flatnonzero(free)
        at_once = max(1, (self.most or 0) // _AT_ONCE)
        grown = np.sort(moments.born[places] + self.grace_period)
        if not grown.size:
            self.full_until = moments.rows + self.grace_period
        elif grown[min(at_once, grown.size) - 1] > moments.rows:
            # To look at all whenever one can go would cost a look at all at every row.
            self.full_until = int(grown[min(at_once, grown.size) - 1])
        else:
            places = places[moments.born[places] + self.grace_period <= moments.rows]
            ranking = most_relevant_first(relevance(moments.stats(places)))
            free[:] = True
            free[places[ranking[-max(short, at_once) :]]] = False
            moments.let_go(np.flatnonzero(free))
