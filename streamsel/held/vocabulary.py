"""A bounded vocabulary: which variables are discarded when a new name needs room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

import numpy as np
from numpy.typing import NDArray

from streamsel.columns import Stats
from streamsel.held.moments import Moments
from streamsel.rollback import Rollback
from streamsel.ties import most_relevant_first

# Share of the vocabulary to discard at once: finding the least relevant variable costs a scan of
# all.
_DISCARD_FRACTION = 8


class Vocabulary(Rollback):
    """Cap on the number of tracked variables.

    The least relevant variables are discarded first, the latest among equals, except those
    protected or in their grace period; up to an eighth of the cap at once. If not enough can be
    discarded, a new variable is not tracked, and counts as new when it next appears.

    Parameters
    ----------
    most
        The cap; None for none.
    grace_period
        In rows.

    Attributes
    ----------
    full_until
        The row before which not enough variables can be discarded.
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
        """Return how many of the new variables can be tracked, after discarding others.

        Parameters
        ----------
        moments
            The tracked variables; discarded ones are removed.
        wanted
            Number of new variables.
        protected
            Returns the names that must be kept.
        relevance
            Moments of variables -> their relevance.
        """
        if self.most is None:
            return wanted
        short = len(moments.table) + wanted - self.most
        if short > 0 and moments.rows >= self.full_until:
            # Without tracked variables, none needs protection.
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
        is_free = np.ones(len(slots), dtype=np.bool_)
        is_free[[slots[name] for name in protected]] = False
        candidates = np.flatnonzero(is_free)
        n_at_once = max(1, (self.most or 0) // _DISCARD_FRACTION)
        end_of_grace = np.sort(moments.born[candidates] + self.grace_period)
        if not end_of_grace.size:
            self.full_until = moments.rows + self.grace_period
        elif end_of_grace[min(n_at_once, end_of_grace.size) - 1] > moments.rows:
            # Scanning whenever a single variable can be discarded would cost a scan per row.
            self.full_until = int(end_of_grace[min(n_at_once, end_of_grace.size) - 1])
        else:
            candidates = candidates[moments.born[candidates] + self.grace_period <= moments.rows]
            ranking = most_relevant_first(relevance(moments.stats(candidates)))
            is_free[:] = True
            is_free[candidates[ranking[-max(short, n_at_once) :]]] = False
            moments.let_go(np.flatnonzero(is_free))
