"""A bounded vocabulary: which variables are discarded when a new name needs room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

import numpy as np
from numpy.typing import NDArray

from streamsel._utils.numeric import argsort_by_relevance
from streamsel._utils.rollback import Rollback
from streamsel.data.chunks import Stats
from streamsel.state.moments.moments import Moments

# One in this many variables is discarded at once, because each search for the least relevant ones
# scans the whole vocabulary.
_DISCARD_DIVISOR = 8


class Vocabulary(Rollback):
    """Cap on the number of tracked variables.

    The least relevant variables are discarded first, the latest among equals, except those
    protected or in their grace period; up to an eighth of the cap at once. If not enough can be
    discarded, a new variable is not tracked, and counts as new when it next appears.

    Parameters
    ----------
    max_features
        Maximum number of tracked variables; None for no limit.
    grace_period
        Number of rows after its arrival in which a variable is not discarded.

    Attributes
    ----------
    no_room_until
        The row before which not enough variables can be discarded.
    """

    changing = ("max_features", "grace_period", "no_room_until")

    def __init__(self, max_features: int | None, grace_period: int) -> None:
        self.max_features = max_features
        self.grace_period = grace_period
        self.no_room_until = 0

    def make_room(
        self,
        moments: Moments,
        n_new: int,
        protected: Callable[[], Collection[Hashable]],
        relevance: Callable[[Stats], NDArray[np.float64]],
    ) -> int:
        """Return how many of the new variables can be tracked, after discarding others.

        Parameters
        ----------
        moments
            The tracked variables; discarded ones are removed.
        n_new
            Number of new variables.
        protected
            Returns the names that must be kept.
        relevance
            Moments of variables -> their relevance.
        """
        if self.max_features is None:
            return n_new
        short = len(moments.table) + n_new - self.max_features
        if short > 0 and moments.rows >= self.no_room_until:
            # Without tracked variables, none needs protection.
            self._discard(moments, short, protected() if len(moments.table) else (), relevance)
        return max(0, min(n_new, self.max_features - len(moments.table)))

    def _discard(
        self,
        moments: Moments,
        short: int,
        protected: Collection[Hashable],
        relevance: Callable[[Stats], NDArray[np.float64]],
    ) -> None:
        index_of = moments.table.index_of
        is_free = np.ones(len(index_of), dtype=np.bool_)
        is_free[[index_of[name] for name in protected]] = False
        candidates = np.flatnonzero(is_free)
        n_at_once = max(1, (self.max_features or 0) // _DISCARD_DIVISOR)
        end_of_grace = np.sort(moments.arrival_rows[candidates] + self.grace_period)
        if not end_of_grace.size:
            self.no_room_until = moments.rows + self.grace_period
        elif end_of_grace[min(n_at_once, end_of_grace.size) - 1] > moments.rows:
            # Scanning whenever a single variable can be discarded would cost a scan per row.
            self.no_room_until = int(end_of_grace[min(n_at_once, end_of_grace.size) - 1])
        else:
            candidates = candidates[
                moments.arrival_rows[candidates] + self.grace_period <= moments.rows
            ]
            ranking = argsort_by_relevance(relevance(moments.stats(candidates)))
            is_free[:] = True
            is_free[candidates[ranking[-max(short, n_at_once) :]]] = False
            moments.keep_only(np.flatnonzero(is_free))
