"""A pool with stages that reads its columns again part by part, all parts under one plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.correlations import pieces
from streamsel.held.known import Known, unlike_before
from streamsel.held.part import Floats
from streamsel.held.plan import LEAST, leading
from streamsel.held.stage_found import Asked, Scored, StageFound
from streamsel.held.stages import Circle


class InParts(Circle):
    """A pool that also reads all columns at once, in parts that know nothing of one another."""

    # What is sent

    def begin_in_parts(self, total: int) -> None:
        """Go on with the next reading of the same columns."""
        if self.total is None:
            self.begin_again(total)
            self._raise_floors()
        elif self.total != total:
            # A file need not say how many there are: what is proven is, and the rest begins anew.
            self._changes()
            full = self.seen - self.since >= self.total
            self.since = np.where(full, 0, total)
            self.seen = self.total = total

    def _raise_floors(self) -> None:
        """Ask for no columns that would be let go when the pool is cut the next time.

        There are better ones under every stage, as many as have their turn. To be said when the
        plan was made, before the pool changes.
        """
        plan = self.plan
        assert plan is not None  # noqa: S101
        r = max(1, self.limit // max(1, int(self._sought(plan).sum())))
        if len(self.table) >= r:
            scores = plan.scores()
            worst = len(scores) - r
            self.floors = np.maximum(self.floors, np.partition(scores, worst, axis=0)[worst])

    def asked(self) -> Asked:
        """Return what the next reading asks of the columns that are not held."""
        plan = self.plan
        assert plan is not None  # noqa: S101
        return Asked.under(plan, self._sought(plan), self.floors, self.limit)

    def abridged(self) -> dict[str, Any]:
        """Return the state of a pool with the same plan, and nothing in it but what that needs."""
        plan, state = self.plan, self.to_state()
        assert plan is not None  # noqa: S101
        places = np.sort([self.slots[plan.names[j]] for j in plan.must_stay]).astype(np.intp)
        names = [self.names[j] for j in places.tolist()]
        table = {"names": names} | {field: self.table[field][places] for field in self.table.fields}
        return state | {"table": table, "n_known": len(names)}

    # What is read

    def look(
        self,
        chunk: Chunk,
        stats: Stats,
        known: Known,
        found: StageFound,
        noted: Mapping[str, Floats] = {},
    ) -> None:
        """Score the next columns of a part; nothing of mine changes.

        Parameters
        ----------
        chunk, stats
            The columns, and their moments.
        known
            Those of the pool that this one was abridged from.
        found
            What was found in the columns of the part before.
        noted
            What else is noted of them.
        """
        plan, first = self.plan, found.first + found.n_read
        assert plan is not None  # noqa: S101
        known.expect(chunk, stats, first)
        places = np.flatnonzero(self.left(stats) > 0.0)
        places = places[~known.among(first + places)]
        for piece in pieces(places, chunk.n):
            scores = plan.scores_of(chunk, stats, piece, noted)
            moments = {field: array[piece] for field, array in stats._asdict().items()}
            bounds = self.method._ceiling(self, moments)
            copied = plan.copied(chunk, stats, piece, first + piece, scores)
            kept = found.asked.eligible(scores, first + piece) | (copied >= 0)
            scored = Scored(scores, bounds, copied)
            found.lose(scored.some(~kept))
            if kept.any():
                mine = piece[kept]
                rows = {"arrival": (first + mine).astype(np.float64)}
                rows |= self.rows_of(chunk, stats, mine)
                rows |= {field: array[mine] for field, array in noted.items()}
                names = [chunk.names[j] for j in mine.tolist()]
                found.keep(names, rows, scored.some(kept))
        found.n_read += stats.m2.size

    # What comes of it

    def take(self, found: StageFound) -> None:
        """Take up what a reading of all columns found, and plan anew."""
        assert self.plan is not None  # noqa: S101
        assert self.total is not None  # noqa: S101
        if found.first or found.n_read != self.total:
            raise unlike_before(f"{found.first + found.n_read} columns, after {self.total}")
        names = set(self.slots)
        for name in found.names:
            if name in names:
                raise unlike_before(f"{name!r} as the name of two columns")
            names.add(name)
        self._changes()
        n_proven = leading(~self._sought(self.plan))
        # All who are let go have been seen under all stages, and what they scored is known.
        self.seen += self.total
        self.lost = np.maximum(found.lost, LEAST)
        self._let_go_below(max(found.ceiling, LEAST))
        self._latest = None
        if found.names:
            self.table.append(found.names, **found.rows)
            self._replan(self.seen, n_proven)
            self._raise_floors()
        if len(self.table) >= 2 * self.limit:
            self._cut()

    def _let_go_below(self, ceiling: float) -> None:
        """Note what no later score of a column that was let go can be above."""
        self.ceiling = ceiling
