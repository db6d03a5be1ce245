"""Multi-pass pool that scores parts of the columns independently, under one candidate solution."""

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
    """Cyclic pool that can also run a pass as independent parts of the columns."""

    # Requests to the parts

    def begin_in_parts(self, total: int) -> None:
        """Begin the next pass over the same columns."""
        if self.total is None:
            self.begin_again(total)
            self._raise_thresholds()
        elif self.total != total:
            # The number of columns may be unknown before a pass ends: proven stages stay proven,
            # the others start over.
            self._changes()
            full = self.seen - self.since >= self.total
            self.since = np.where(full, 0, total)
            self.seen = self.total = total

    def _raise_thresholds(self) -> None:
        """Exclude columns that the next cut would discard.

        Under every stage the pool holds as many better columns as the stage's share of the limit.
        To be called after the candidate solution was made and before the pool changes.
        """
        plan = self.plan
        assert plan is not None  # noqa: S101
        r = max(1, self.limit // max(1, int(self._sought(plan).sum())))
        if len(self.table) >= r:
            scores = plan.scores()
            worst = len(scores) - r
            self.floors = np.maximum(self.floors, np.partition(scores, worst, axis=0)[worst])

    def asked(self) -> Asked:
        """Return the request of the next pass for columns that are not in the pool."""
        plan = self.plan
        assert plan is not None  # noqa: S101
        return Asked.under(plan, self._sought(plan), self.floors, self.limit)

    def abridged(self) -> dict[str, Any]:
        """Return the state of a pool with this candidate solution and the columns it needs."""
        plan, state = self.plan, self.to_state()
        assert plan is not None  # noqa: S101
        indices = np.sort([self.slots[plan.names[j]] for j in plan.must_stay]).astype(np.intp)
        names = [self.names[j] for j in indices.tolist()]
        table = {"names": names} | {
            field: self.table[field][indices] for field in self.table.fields
        }
        return state | {"table": table, "n_known": len(names)}

    # Scoring of a part

    def look(
        self,
        chunk: Chunk,
        stats: Stats,
        known: Known,
        found: StageFound,
        noted: Mapping[str, Floats] = {},
    ) -> None:
        """Score the next columns of a part, without any change to this pool.

        Parameters
        ----------
        chunk, stats
            The columns, and their moments.
        known
            Columns of the pool that this one was reduced from.
        found
            Result of the pass over the part so far.
        noted
            Further fields of the columns.
        """
        plan, first = self.plan, found.first + found.n_read
        assert plan is not None  # noqa: S101
        known.expect(chunk, stats, first)
        indices = np.flatnonzero(self.left(stats) > 0.0)
        indices = indices[~known.among(first + indices)]
        for piece in pieces(indices, chunk.n):
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

    # Combination of the results

    def take(self, found: StageFound) -> None:
        """Add the results of a pass over all columns, and make a new candidate solution."""
        assert self.plan is not None  # noqa: S101
        assert self.total is not None  # noqa: S101
        if found.first or found.n_read != self.total:
            raise unlike_before(f"{found.first + found.n_read} columns instead of {self.total}")
        names = set(self.slots)
        for name in found.names:
            if name in names:
                raise unlike_before(f"two columns with the name {name!r}")
            names.add(name)
        self._changes()
        n_proven = leading(~self._sought(self.plan))
        # All discarded columns have been scored under all stages.
        self.seen += self.total
        self.lost = np.maximum(found.lost, LEAST)
        self._let_go_below(max(found.ceiling, LEAST))
        self._latest = None
        if found.names:
            self.table.append(found.names, **found.rows)
            self._replan(self.seen, n_proven)
            self._raise_thresholds()
        if len(self.table) >= 2 * self.limit:
            self._cut()

    def _let_go_below(self, ceiling: float) -> None:
        """Set the upper bound of later scores of discarded columns."""
        self.ceiling = ceiling
