"""Speculate and verify: make a bounded pool's picks those over all columns, in few readings.

 One reading computes, for every column, its score under every prefix of the speculated picks at
once. The first pick that is not the best of all columns is replaced by the one that is; all before
it are proven. Meanwhile the pool is filled anew, under the projector that the picks proven so far
have left, for the next speculation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.pool import SPENT, Picks, Pool
from streamsel.selection._candidates import Candidates, Prefixes, copied_rows


def unlike_before(what: str) -> ValueError:
    """Return the error for a source that is not the same when it is read again."""
    return ValueError(
        "Expected the same columns in the same order at every reading, as exact=True needs. "
        f"Got: {what}.\nHint: exact=False reads once; max_candidates=None is exact in one pass."
    )


class _Best(NamedTuple):
    """The best column seen so far under one prefix of the picks."""

    score: float = SPENT
    arrival: int = -1
    name: Hashable = None
    rows: dict[str, Any] | None = None


class _Round:
    """The picks of one round, and the best of all columns under each prefix of them.

    Parameters
    ----------
    number
        Of the round.
    before
        Candidates picked in the rounds before it.
    picks
        Candidates picked in it.
    prefixes
        Of them.
    ends
        Whether the picks say that nothing is left under the last prefix, that with all of them.
    """

    def __init__(
        self, number: int, before: list[int], picks: list[int], prefixes: Prefixes, *, ends: bool
    ) -> None:
        self.number = number
        self.before = before
        self.picks = picks
        self._prefixes = prefixes
        self.best = [_Best() for _ in range(len(picks) + ends)]

    def see(
        self, pool: Pool, chunk: Chunk, stats: Stats, first_arrival: int, part: slice, vectors: Any
    ) -> None:
        """Look whether a column of a part is better than the best so far under a prefix."""
        m2 = stats.m2[part]
        barred = m2 == 0.0
        for arrival in pool.table["arrival"][self.before].astype(np.intp) - first_arrival:
            if part.start <= arrival < part.stop:
                barred[arrival - part.start] = True
        highest = np.array([best.score for best in self.best])
        who = np.full(highest.size, -1, dtype=np.intp)
        self._prefixes.outdo(vectors, m2, barred, highest, who)
        for s in np.flatnonzero(who >= 0):
            place = part.start + who[s]
            rows = pool.rows_of(chunk, stats, np.array([place]))
            self.best[s] = _Best(
                float(highest[s]), first_arrival + int(place), chunk.names[place], rows
            )


class Verification:
    """One reading of all columns, against the picks of a pool.

    Parameters
    ----------
    pool, candidates
        The pool that the picks come from, and what the method makes of it; left as they are.
    picks
        Its picks, the first of them known.
    k
        How many there should be.
    """

    def __init__(self, pool: Pool, candidates: Candidates, picks: Picks, k: int) -> None:
        self._old = pool
        self._candidates = candidates
        self._picks = picks
        self._rounds: list[_Round] = []
        numbers = sorted(set(picks.rounds)) or [0]
        for number in numbers:
            # Rounds ascend.
            start, stop = bisect_left(picks.rounds, number), bisect_right(picks.rounds, number)
            before, mine = picks.places[:start], picks.places[start:stop]
            ends = number != numbers[-1] or len(picks.places) < k
            self._rounds.append(_Round(number, before, mine, candidates.prefixes(mine), ends=ends))
        self._pool = pool.empty()
        proven = pool.known.places
        self._pool.table.append(
            self._names(proven),
            arrival=pool.table["arrival"][proven],
            **copied_rows(pool.table, proven),
        )
        self._pool.known = pool.known._replace(places=list(range(len(proven))))
        self._proven_arrivals = pool.table["arrival"][proven].astype(np.intp)
        self._expected = {
            int(pool.table["arrival"][j]): name
            for j, name in zip(picks.places, self._names(picks.places), strict=True)
        }

    def _names(self, places: list[int]) -> list[Hashable]:
        names = list(self._old.table.slots)
        return [names[place] for place in places]

    def see(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Score the columns of a chunk under every prefix, and offer them to the new pool."""
        size = stats.m2.size
        for arrival, expected in self._expected.items():
            if first_arrival <= arrival < first_arrival + size:
                name = chunk.names[arrival - first_arrival]
                if name != expected:
                    raise unlike_before(f"{name!r} in the place of {expected!r}")
        for part, vectors in self._candidates.vectors(chunk, stats):
            for this in self._rounds:
                this.see(self._old, chunk, stats, first_arrival, part, vectors)
        new = stats.m2 > 0.0
        proven = self._proven_arrivals - first_arrival
        new[proven[(proven >= 0) & (proven < size)]] = False
        self._pool.admit(chunk, stats, first_arrival, np.flatnonzero(new))

    def finish(self) -> tuple[Pool, bool]:
        """Return the new pool, knowing all that is proven, and whether that is everything.

        Raises
        ------
        ValueError
            Where what was proven before is so no longer: the values have changed.
        """
        picks, arrivals = self._picks, self._old.table["arrival"]
        for this in self._rounds:
            for s, best in enumerate(this.best):
                n = len(this.before) + s
                expected = int(arrivals[this.picks[s]]) if s < len(this.picks) else -1
                if best.arrival != expected:
                    if n < len(self._old.known.places):
                        raise unlike_before("columns of other values")
                    self._know(n, this.number, best)
                    return self._pool, False
        self._know(len(picks.places), 0, None)
        return self._pool, True

    def _know(self, n: int, number: int, best: _Best | None) -> None:
        """Take the first n picks, and the true best after them, for proven."""
        picks, old = self._picks.first(n), self._old.table
        held = {int(a): i for i, a in enumerate(self._pool.table["arrival"])}
        places = [
            self._place(held, int(old["arrival"][j]), name, copied_rows(old, [j]))
            for j, name in zip(picks.places, self._names(picks.places), strict=True)
        ]
        scores, rounds = list(picks.scores), list(picks.rounds)
        if best is not None and best.rows is not None:
            places.append(self._place(held, best.arrival, best.name, best.rows))
            scores.append(best.score)
            rounds.append(number)
        self._pool.known = Picks(places, scores, rounds)
        # The best under the prefixes that were wrong are good guesses for those to come.
        for this in self._rounds:
            for guess in this.best:
                if guess.rows is not None:
                    self._place(held, guess.arrival, guess.name, guess.rows)

    def _place(
        self, held: dict[int, int], arrival: int, name: Hashable, rows: dict[str, Any]
    ) -> int:
        """Return the place of a column in the new pool, putting it there if need be."""
        if arrival not in held:
            held[arrival] = len(self._pool.table)
            self._pool.table.append((name,), arrival=np.array([arrival]), **rows)
        return held[arrival]
