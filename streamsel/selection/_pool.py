"""A bounded pool of candidates, and what is known of those it let go."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.columns import Chunk, Stats
from streamsel.selection._candidates import Candidates
from streamsel.selection._greedy import NO_PICKS, SPENT, TIE, Picks, greedy
from streamsel.table import Table


class Pool:
    """Candidates: all of them, or at least `limit` of the best, never more than twice as many.

    When twice the limit are held the pool is cut back to the limit *round by round*: the picks of
    the greedy, then those of the greedy over what is left, under the whole projector again, and so
    on. Keeping the most relevant instead would lose the rarer directions of the target space. It is
    cut at a fixed number of admitted columns, so how the stream is cut into blocks makes no
    difference.

    Parameters
    ----------
    candidates
        Where the candidates are kept; empty or not.
    limit
        None keeps all of them.

    Attributes
    ----------
    discarded
        The largest squared relevance of a column let go; -1.0 while there is none. No score that
        such a column could have had later is above it.
    floor
        A column whose squared relevance is not above this would not have been kept at the last cut
        either.
    """

    def __init__(self, candidates: Candidates, limit: int | None) -> None:
        self.candidates = candidates
        self.limit = limit
        self.discarded = -1.0
        self.floor = -1.0
        # The picks under whose projector the pool is filled, where they are known already.
        self.known = NO_PICKS

    @property
    def table(self) -> Table:
        """The candidates' table."""
        return self.candidates.table

    def admit(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        places: NDArray[np.intp] | None = None,
    ) -> None:
        """Admit columns of a chunk, in order.

        Parameters
        ----------
        chunk, stats
            The columns and the moments of the first of them, or of all.
        first_arrival
            How many columns of the stream stood before the chunk.
        places
            Which columns that have moments, ascending; None for all that the pool has a use for.
        """
        # Rows may go on from a column that did not vary; a bounded pool has no place for it.
        all_kept = self.limit is None and self.candidates.takes_constant
        if places is None and not all_kept and not stats.m2.all():
            places = np.flatnonzero(stats.m2)
        if self.limit is None:
            self._append(chunk, stats, first_arrival, places)
            return
        if places is None:
            places = np.arange(stats.m2.size)
        offered = {field: array[places] for field, array in stats._asdict().items()}
        relevance2 = self.candidates.relevance2(offered)
        while places.size:
            eligible = relevance2 > self.floor
            room = 2 * self.limit - len(self.table)
            admitted = np.flatnonzero(eligible)[:room]
            stop = places.size if admitted.size < room else int(admitted[-1]) + 1
            self._let_go(relevance2[:stop][~eligible[:stop]])
            self._append(chunk, stats, first_arrival, places[admitted])
            places, relevance2 = places[stop:], relevance2[stop:]
            self.cut_back()

    def _append(
        self, chunk: Chunk, stats: Stats, first_arrival: int, places: NDArray[np.intp] | None
    ) -> None:
        if places is None:
            size = stats.m2.size
            names: Sequence[Hashable] = chunk.names[:size]
            arrival = np.arange(first_arrival, first_arrival + size)
        else:
            names = [chunk.names[place] for place in places.tolist()]
            arrival = first_arrival + places
        rows = self.candidates.rows(chunk, stats, places)
        self.table.append(names, arrival=arrival, **rows)

    def cut_back(self) -> None:
        """Cut the pool back to its limit if it holds twice as many."""
        if self.limit is None or len(self.table) < 2 * self.limit:
            return
        picks = greedy(
            self.candidates.deflation(), self.limit, restart=True, forced=self.known, refill=True
        )
        kept = np.sort(np.asarray(picks.places, dtype=np.intp))
        lost = np.ones(len(self.table), dtype=np.bool_)
        lost[kept] = False
        fields = {field: self.table[field][lost] for field in self.table.fields}
        self._let_go(self.candidates.relevance2(fields))
        self.floor = min(picks.scores) if len(picks.places) == self.limit else 0.0
        self.table.keep(kept)
        known = np.searchsorted(kept, self.known.places).tolist()
        self.known = self.known._replace(places=known)

    def _let_go(self, relevance2: NDArray[np.float64]) -> None:
        if relevance2.size:
            self.discarded = max(self.discarded, float(relevance2.max()))

    def certified(self, picks: Picks) -> int:
        """Return how many leading picks no column that was let go can have changed.

        A pick is proven if it is known from a reading of the whole stream, or if all before it are
        proven and its score is above every score that a discarded column could have had. A round
        must have used up the whole rank before the next one may count: a discarded column could
        have had something left where the candidates had not.
        """
        if self.discarded <= SPENT:
            return len(picks.places)
        proven = len(self.known.places)
        bar = self.discarded * (1.0 + TIE)
        in_round = 0
        for n, score in enumerate(picks.scores):
            new_round = n > 0 and picks.rounds[n] != picks.rounds[n - 1]
            if n >= proven and (score <= bar or (new_round and in_round < self.candidates.rank)):
                return n
            in_round = 1 if new_round else in_round + 1
        return len(picks.places)

    def take_in(self, other: Pool, rows: dict[str, NDArray[np.float64]]) -> None:
        """Admit all candidates of another pool, whose rows these are, as arrived after all."""
        self.table.append(other.table.slots, **rows)
        # What was proven over the columns of one is not over those of both.
        self.known = NO_PICKS
        self.discarded = max(self.discarded, other.discarded)
        self.cut_back()

    def mark(self) -> dict[str, Any]:
        """Return what `rewind` needs."""
        table = len(self.table) if self.limit is None else self.table.copy()
        return {
            "table": table,
            "discarded": self.discarded,
            "floor": self.floor,
            "known": self.known,
        }

    def rewind(self, mark: dict[str, Any]) -> None:
        """Undo what was admitted since the mark."""
        if isinstance(mark["table"], Table):
            self.candidates.table = mark["table"]
        else:
            self.table.truncate(mark["table"])
        self.discarded, self.floor, self.known = mark["discarded"], mark["floor"], mark["known"]

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs."""
        return {
            "table": self.table.to_state(),
            "discarded": self.discarded,
            "floor": self.floor,
            "known": [list(part) for part in self.known],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned."""
        self.candidates.table = Table.from_state(state["table"], self.table.fields)
        self.discarded, self.floor = state["discarded"], state["floor"]
        self.known = Picks(*state["known"])
