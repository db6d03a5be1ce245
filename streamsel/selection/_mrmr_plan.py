"""mRMR of variables of which the observations are held, and how others score under its picks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from streamsel._jit.redundancy import fold
from streamsel.columns import Chunk, Stats
from streamsel.held.correlations import correlations
from streamsel.held.part import Floats, Places
from streamsel.held.plan import LEAST, origin_of
from streamsel.held.pool import units
from streamsel.held.products import TOGETHER, Products
from streamsel.held.stage_pool import StagePool
from streamsel.selection._greedy_plan import GreedyPlan
from streamsel.selection._redundancy import (
    Informations,
    Narrow,
    Relevance,
    Trade,
    codes_of_columns,
    greedy,
    shared,
)
from streamsel.target.space import TargetSpace


def _nobody() -> Places:
    return np.empty(0, dtype=np.intp)


class Measures(NamedTuple):
    """How variables are measured.

    Parameters
    ----------
    relevance, trade
        What a variable tells, and the form of a score.
    n_bins
        Into how many bins variables are cut; 0 where that is not needed.
    target
        (1, n) codes of the target, and how many there are, where relevance is mutual information.
    by_bins
        Whether what variables have in common is mutual information.
    """

    relevance: Relevance
    trade: Trade
    n_bins: int
    target: tuple[Narrow, int] | None
    by_bins: bool

    def codes(self, X: Floats) -> Narrow | None:
        """Return the bins of variables, one a row, where they are needed."""
        return codes_of_columns(X, self.n_bins) if self.n_bins else None

    def found(self, space: TargetSpace, stats: Stats, codes: Narrow | None) -> Floats:
        """Return what is found of variables, (p,)."""
        if self.target is None or codes is None:
            return space.relevance(stats.m2, stats.cxy)
        return shared(codes, self.target[0], self.n_bins, self.target[1])[:, 0]


class MRMRPlan(GreedyPlan):
    """Picks of mRMR, and how others score under them.

    Parameters
    ----------
    pool
        What it is made of.
    k
        How many picks are asked for.
    measures
        How variables are measured.
    before
        A plan to go on from.
    given
        The picks, where they are known.
    """

    def __init__(
        self,
        pool: StagePool,
        k: int,
        measures: Measures,
        before: MRMRPlan | None = None,
        given: Sequence[int] = (),
    ) -> None:
        assert pool.space is not None  # noqa: S101
        self._pool, self._measures = pool, measures
        origin = origin_of(pool.table["arrival"], before)
        self.codes = self._codes(before, origin)
        found = measures.found(pool.space, pool.stats(), self.codes)
        self._rel = measures.relevance.of(found)
        rows = None if before is None else before.rows
        further = rows, origin, 2 * k + TOGETHER
        self.rows: Products
        if measures.by_bins and self.codes is not None:
            self.rows = Informations(self.codes, measures.n_bins, *further)
        else:
            self.rows = Products(pool.table["unit"], *further)
        slack = measures.relevance.slack(found)
        picks, tolerance = greedy(self._rel, slack, measures.trade, k, self._row, given)
        self.rows.close()
        # Whoever tells something is worth a pick, be its score below 0.
        super().__init__(pool, picks, k, nothing=LEAST / 2.0)
        self.tolerance = np.array([*tolerance, 0.0])[: len(self.keys)]
        self._probes = self.must_stay[: len(self.keys) - 1]
        self._V = pool.samples(self._probes)
        self._of_probes = None if self.codes is None else self.codes[self._probes]

    def _row(self, j: int, likely: Callable[[], Places]) -> Floats:
        # Of mutual information several at once cost as much as one after another.
        return self.rows.of(j, _nobody if self._measures.by_bins else likely)

    def _codes(self, before: MRMRPlan | None, origin: Places) -> Narrow | None:
        """Return the bins of the pool's variables, where they are needed."""
        measures, unit = self._measures, self._pool.table["unit"]
        if before is None or before.codes is None:
            return measures.codes(unit)
        codes = before.codes[origin]
        new = np.flatnonzero(origin < 0)
        if new.size:
            codes[new] = codes_of_columns(unit[new], measures.n_bins)
        return codes

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for who is out of the running."""
        rows = [self.rows.of(j, _nobody) for j in self._probes.tolist()]
        red = np.array(rows).reshape(-1, self._rel.size).T
        scores = self._folded(self._rel, np.ascontiguousarray(red))
        for s, place in enumerate(self.picks.places):
            scores[place, s + 1 :] = -np.inf
        return scores

    def scores_of(
        self,
        chunk: Chunk,
        stats: Stats,
        places: Places,
        noted: Mapping[str, Floats],  # noqa: ARG002
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        space, measures = self._pool.space, self._measures
        assert space is not None  # noqa: S101
        mine = Stats(*(array[places] for array in stats))
        codes = measures.codes(units(chunk, stats, places)) if measures.n_bins else None
        rel = measures.relevance.of(measures.found(space, mine, codes))
        if measures.by_bins and codes is not None:
            return self._folded(rel, self._shared(codes))
        left = self._pool.left(stats, places)
        return self._folded(rel, correlations(chunk, stats, places, self._V, left))

    def _shared(self, codes: Narrow) -> Floats:
        assert self._of_probes is not None  # noqa: S101
        n_bins = self._measures.n_bins
        return shared(codes, self._of_probes, n_bins, n_bins)

    def _folded(self, rel: Floats, red: Floats) -> Floats:
        trade = self._measures.trade
        scores = np.empty((rel.size, len(self.keys)))
        fold(rel, red, trade.floor, trade.beta, scores)
        return scores
