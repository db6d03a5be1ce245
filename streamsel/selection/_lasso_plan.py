"""The path of a LASSO over a pool, a stage for each alpha."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.correlations import correlations
from streamsel.held.part import Floats, Places
from streamsel.held.plan import Plan, Whole
from streamsel.held.pool import TIE, Picks
from streamsel.held.stage_pool import StagePool
from streamsel.selection._lasso_path import (
    COPY,
    NO_PATH,
    NOTHING,
    TOLERANCE,
    Path,
    Penalty,
    Sampled,
    Solution,
    per_alpha,
    solve,
)
from streamsel.shapes import Array, Flag, expect, expect_shapes, rows_of
from streamsel.ties import most_relevant_first

# Coefficients that differ by no more than this part are equal.
_ALIKE = 1e-9


class PathPlan(Plan):
    """Solutions over a pool; a column scores how steep it is, as part of its bar.

    Parameters
    ----------
    pool
        The pool.
    problem, penalty
        The loss over its variables, and what coefficients cost.
    path
        The solutions.
    k
        How many variables are asked for.

    Attributes
    ----------
    is_rough
        Whether it has a few of the alphas only: enough to see which columns are worth keeping.
    """

    ordered: ClassVar[bool] = False

    def __init__(
        self, pool: StagePool, problem: Sampled, penalty: Penalty, path: Path, k: int
    ) -> None:
        self._pool, self._scale = pool, penalty.scale
        # Whether of copies only the first may be active.
        self._firsts = penalty.l1_ratio == 1.0
        self.path, self.is_rough = path, penalty.is_rough
        self.names, self.arrivals = list(pool.names), pool.table["arrival"].copy()
        self.picks = ranked(path, k)
        found = path.solutions
        size = max(1, len(found))
        self.holders = np.full(size, -1, dtype=np.int64)
        self.tolerance = np.full(size, TIE)
        self.must_stay = path.active()
        if not found:
            # One stage waits for the first variable that goes with the target.
            self.keys, self.bars, self._scale = [None], np.full(1, NOTHING), True
            self.tolerance[:] = 0.0
            empty = Solution(0.0, self.must_stay, np.zeros(0), problem.level)
            self._V = problem.rests([empty]) / np.sqrt(pool.n)
            return
        self.keys = [self._key(solution) for solution in found]
        self.bars = np.full(size, 1.0 + TOLERANCE)
        if penalty.alphas is None:
            # Where the grid begins must be known better than what is on it.
            self.bars[0] = 1.0
            steep = np.where(problem.varies, np.abs(problem.start) / problem.weights, 0.0)
            self.must_stay = np.union1d(self.must_stay, [int(np.argmax(steep))])
        bars = per_alpha(problem, penalty) * np.array([one.alpha for one in found])
        self._V = problem.rests(found) / bars[:, None]

    def _key(self, found: Solution) -> tuple[Any, ...]:
        active = tuple([self.names[j] for j in found.places.tolist()])
        return found.alpha, active, (found.values > 0.0).tobytes()

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; the least for who is active."""
        pool = self._pool
        scores = self._in_bars(pool.table["unit"] @ self._V.T, pool.left(pool.stats()))
        for s, found in enumerate(self.path.solutions):
            scores[found.places, s] = -np.inf
        return scores

    def scores_of(
        self, chunk: Chunk, stats: Stats, places: Places, noted: Mapping[str, Floats]
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        del noted
        left = self._pool.left(stats, places)
        return self._in_bars(correlations(chunk, stats, places, self._V, left), left)

    def _in_bars(self, products: Floats, left: Floats) -> Floats:
        np.abs(products, out=products)
        products *= np.sqrt(self._pool.n) if self._scale else np.sqrt(left)[:, None]
        return products

    def copied(
        self, chunk: Chunk, stats: Stats, places: Places, arrivals: Places, scores: Floats
    ) -> Whole:
        """Return of which active variable columns of a chunk are copies that came before, (b,)."""
        found = np.full(places.size, -1, dtype=np.int64)
        near = self._near(scores)
        if near.size:
            units = self._pool.units_of(chunk, stats, places[near])
            found[near] = self._copied(units, arrivals[near])
        return found

    def _near(self, scores: Floats) -> Places:
        """Return who is as steep as those that are active, and may be a copy of one."""
        return np.flatnonzero((scores >= 1.0 - TOLERANCE).any(axis=1) & self._firsts)

    def _copied(self, units: Floats, arrivals: Floats | Places) -> Whole:
        now = self._pool.table["arrival"]
        active = np.flatnonzero(np.isin(now, self.arrivals[self.path.active()]))
        if not active.size:
            return np.full(len(units), -1, dtype=np.int64)
        copies = np.abs(units @ self._pool.table["unit"][active].T) >= COPY
        copies &= arrivals[:, None] < now[active]
        found: Whole = np.where(copies, now[active].astype(np.int64), -1).max(axis=1)
        return found

    def goes_on_as(self) -> tuple[list[Solution], list[bool]]:
        """Return the solutions, and which none of the variables violates that came since.

        None where one that is active has a copy that came before it.
        """
        pool = self._pool
        new = np.flatnonzero(~np.isin(pool.table["arrival"], self.arrivals))
        left = pool.left(pool.stats(new))
        scores = self._in_bars(pool.table["unit"][new] @ self._V.T, left)
        near = new[self._near(scores)]
        if (self._copied(pool.table["unit"][near], pool.table["arrival"][near]) >= 0).any():
            return [], []
        steepest = scores.max(axis=0, initial=0.0)
        return self.solutions(), (steepest <= 1.0 + TOLERANCE).tolist()

    def path_now(self) -> Path:
        """Return the path, with the places of the pool as it is now."""
        weights = np.full(len(self._pool.names), self._pool.n**-0.5)
        if not self._scale:
            weights = 1.0 / np.sqrt(self._pool.left(self._pool.stats()))
        return self.path._replace(solutions=self.solutions(), weights=weights)

    def solutions(self) -> list[Solution]:
        """Return the solutions, with the places of the pool as it is now."""
        now = self._pool.table["arrival"]
        order = np.argsort(now)
        active = self.path.active()
        places = order[np.searchsorted(now[order], self.arrivals[active])]
        place = np.zeros(len(self.names), dtype=np.intp)
        place[active] = places
        return [found._replace(places=place[found.places]) for found in self.path.solutions]

    def to_state(self) -> dict[str, Any]:
        """Return the solutions by name."""
        found = self.path.solutions
        return {
            "names": [self.names[j] for one in found for j in one.places.tolist()],
            "sizes": np.array([one.places.size for one in found], dtype=np.int64),
            "values": np.concatenate([np.zeros(0), *(one.values for one in found)]),
            "alphas": np.array([one.alpha for one in found]),
            "levels": np.array([one.level for one in found]),
            "is_cut_short": self.path.is_cut_short,
            "is_rough": self.is_rough,
        }


def planned(
    pool: StagePool, problem: Sampled, penalty: Penalty, k: int | None, before: PathPlan | None
) -> PathPlan:
    """Return the path that a pool has now; what stands of the one before stays."""
    is_full = len(pool.names) >= 2 * pool.limit
    # What stays at a cut leaves room for others.
    limit = 3 * pool.limit // 2 if pool.let_go or is_full else None
    solutions: list[Solution] = []
    stays: list[bool] = []
    if pool.total is not None and before is not None:
        solutions, stays = before.goes_on_as()
    elif is_full:
        # In the first reading plans come and go; hardly anything is proven under them.
        penalty = penalty.roughly()
    path = solve(problem, penalty, k, limit, solutions, stays)
    return PathPlan(pool, problem, penalty, path, len(pool.names) if k is None else k)


def restored(
    pool: StagePool, problem: Sampled, penalty: Penalty, k: int, state: dict[str, Any]
) -> PathPlan:
    """Return the plan that `PathPlan.to_state` described."""
    size = rows_of(state, "alphas")
    expect_shapes(state, alphas=(size,), levels=(size,), values=(rows_of(state, "names"),))
    expect(state, sizes=Array((size,), np.int64, least=0), is_cut_short=Flag(), is_rough=Flag())
    if state["sizes"].sum() != len(state["names"]):
        raise ValueError("Expected as many variables as the solutions have. Got: others.")
    places = np.array([pool.slots[name] for name in state["names"]], dtype=np.intp)
    ends = np.cumsum(state["sizes"])[:-1]
    parts = zip(
        state["alphas"].tolist(),
        np.split(places, ends),
        np.split(state["values"], ends),
        state["levels"].tolist(),
        strict=True,
    )
    path = NO_PATH
    if size:
        solutions = [Solution(*part) for part in parts]
        path = Path(solutions, problem.weights, problem.norm, state["is_cut_short"])
    return PathPlan(pool, problem, penalty._replace(is_rough=state["is_rough"]), path, k)


def ranked(path: Path, k: int) -> Picks:
    """Return the first k variables of a path's last solution, in the order in which they entered.

    Of those that entered at once the one with the largest coefficient goes first, then the first.
    """
    found = path.solutions
    if not found or not found[-1].places.size:
        return Picks([], [], [])
    places, weight = found[-1].places, np.abs(found[-1].values) * path.weights[found[-1].places]
    entered = np.full(places.size, len(found), dtype=np.intp)
    for s in range(len(found) - 1, -1, -1):
        entered[np.isin(places, found[s].places, assume_unique=True)] = s
    order: list[int] = []
    for s in np.unique(entered).tolist():
        mine = np.flatnonzero(entered == s)
        heavy = weight[mine] / weight[mine].max() * (TIE / _ALIKE)
        order += mine[most_relevant_first(heavy)].tolist()
    order = order[:k]
    rounds = entered[order].tolist()
    return Picks(places[order].tolist(), [found[s].alpha for s in rounds], rounds)
