"""Candidate Lasso path over a pool: one stage per alpha."""

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

# Relative tolerance of equal coefficients.
_COEFFICIENT_RTOL = 1e-9


class PathPlan(Plan):
    """Solutions over a pool; a column's score is its absolute gradient relative to its threshold.

    Parameters
    ----------
    pool
        The pool.
    problem, penalty
        The loss over its variables, and the penalty.
    path
        The solutions.
    k
        Number of variables wanted.

    Attributes
    ----------
    is_rough
        Whether it has only some of the alphas, enough to rank columns for the pool.
    """

    ordered: ClassVar[bool] = False

    def __init__(
        self, pool: StagePool, problem: Sampled, penalty: Penalty, path: Path, k: int
    ) -> None:
        self._pool, self._scale = pool, penalty.scale
        # Whether only the first of identical columns may be active.
        self._only_first_copies = penalty.l1_ratio == 1.0
        self.path, self.is_rough = path, penalty.is_rough
        self.names, self.arrivals = list(pool.names), pool.table["arrival"].copy()
        self.picks = ranked(path, k)
        found = path.solutions
        size = max(1, len(found))
        self.holders = np.full(size, -1, dtype=np.int64)
        self.tolerance = np.full(size, TIE)
        self.must_stay = path.active()
        if not found:
            # One stage is open for the first variable that correlates with the target.
            self.keys, self.bars, self._scale = [None], np.full(1, NOTHING), True
            self.tolerance[:] = 0.0
            empty = Solution(0.0, self.must_stay, np.zeros(0), problem.level)
            self._V = problem.rests([empty]) / np.sqrt(pool.n)
            return
        self.keys = [self._key(solution) for solution in found]
        self.bars = np.full(size, 1.0 + TOLERANCE)
        if penalty.alphas is None:
            # The start of the grid must be more accurate than the solutions on it.
            self.bars[0] = 1.0
            gradients = np.where(problem.varies, np.abs(problem.start) / problem.weights, 0.0)
            self.must_stay = np.union1d(self.must_stay, [int(np.argmax(gradients))])
        thresholds = per_alpha(problem, penalty) * np.array([one.alpha for one in found])
        self._V = problem.rests(found) / thresholds[:, None]

    def _key(self, found: Solution) -> tuple[Any, ...]:
        active = tuple([self.names[j] for j in found.places.tolist()])
        return found.alpha, active, (found.values > 0.0).tobytes()

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for active ones."""
        pool = self._pool
        scores = self._relative(pool.table["unit"] @ self._V.T, pool.left(pool.stats()))
        for s, found in enumerate(self.path.solutions):
            scores[found.places, s] = -np.inf
        return scores

    def scores_of(
        self, chunk: Chunk, stats: Stats, places: Places, noted: Mapping[str, Floats]
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        del noted
        left = self._pool.left(stats, places)
        return self._relative(correlations(chunk, stats, places, self._V, left), left)

    def _relative(self, products: Floats, left: Floats) -> Floats:
        np.abs(products, out=products)
        products *= np.sqrt(self._pool.n) if self._scale else np.sqrt(left)[:, None]
        return products

    def copied(
        self, chunk: Chunk, stats: Stats, places: Places, arrivals: Places, scores: Floats
    ) -> Whole:
        """Return the latest active variable that each column duplicates and precedes, (b,).

        By arrival; -1 for a column that duplicates none.
        """
        found = np.full(places.size, -1, dtype=np.int64)
        candidates = self._possible_copies(scores)
        if candidates.size:
            units = self._pool.units_of(chunk, stats, places[candidates])
            found[candidates] = self._copied(units, arrivals[candidates])
        return found

    def _possible_copies(self, scores: Floats) -> Places:
        """Return the columns that reach the active variables' scores, and may duplicate one."""
        return np.flatnonzero((scores >= 1.0 - TOLERANCE).any(axis=1) & self._only_first_copies)

    def _copied(self, units: Floats, arrivals: Floats | Places) -> Whole:
        arrivals_now = self._pool.table["arrival"]
        active = np.flatnonzero(np.isin(arrivals_now, self.arrivals[self.path.active()]))
        if not active.size:
            return np.full(len(units), -1, dtype=np.int64)
        copies = np.abs(units @ self._pool.table["unit"][active].T) >= COPY
        copies &= arrivals[:, None] < arrivals_now[active]
        originals: Whole = np.where(copies, arrivals_now[active].astype(np.int64), -1).max(axis=1)
        return originals

    def still_valid(self) -> tuple[list[Solution], list[bool]]:
        """Return the solutions, and which of them no later variable violates.

        Both are empty if a later variable duplicates an active one and precedes it.
        """
        pool = self._pool
        added = np.flatnonzero(~np.isin(pool.table["arrival"], self.arrivals))
        left = pool.left(pool.stats(added))
        scores = self._relative(pool.table["unit"][added] @ self._V.T, left)
        candidates = added[self._possible_copies(scores)]
        if (
            self._copied(pool.table["unit"][candidates], pool.table["arrival"][candidates]) >= 0
        ).any():
            return [], []
        largest = scores.max(axis=0, initial=0.0)
        return self.solutions(), (largest <= 1.0 + TOLERANCE).tolist()

    def path_now(self) -> Path:
        """Return the path with current indices of the pool."""
        weights = np.full(len(self._pool.names), self._pool.n**-0.5)
        if not self._scale:
            weights = 1.0 / np.sqrt(self._pool.left(self._pool.stats()))
        return self.path._replace(solutions=self.solutions(), weights=weights)

    def solutions(self) -> list[Solution]:
        """Return the solutions with current indices of the pool."""
        arrivals_now = self._pool.table["arrival"]
        order = np.argsort(arrivals_now)
        active = self.path.active()
        indices = order[np.searchsorted(arrivals_now[order], self.arrivals[active])]
        index_of = np.zeros(len(self.names), dtype=np.intp)
        index_of[active] = indices
        return [found._replace(places=index_of[found.places]) for found in self.path.solutions]

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
    """Return the current path of a pool, reusing still valid solutions of the previous one."""
    is_full = len(pool.names) >= 2 * pool.limit
    # Pinned variables must leave room for others when the pool is cut.
    limit = 3 * pool.limit // 2 if pool.let_go or is_full else None
    solutions: list[Solution] = []
    is_valid: list[bool] = []
    if pool.total is not None and before is not None:
        solutions, is_valid = before.still_valid()
    elif is_full:
        # In the first pass solutions change too often to certify anything.
        penalty = penalty.roughly()
    path = solve(problem, penalty, k, limit, solutions, is_valid)
    return PathPlan(pool, problem, penalty, path, len(pool.names) if k is None else k)


def restored(
    pool: StagePool, problem: Sampled, penalty: Penalty, k: int, state: dict[str, Any]
) -> PathPlan:
    """Return the candidate solution in a state of `PathPlan.to_state`."""
    size = rows_of(state, "alphas")
    expect_shapes(state, alphas=(size,), levels=(size,), values=(rows_of(state, "names"),))
    expect(state, sizes=Array((size,), np.int64, least=0), is_cut_short=Flag(), is_rough=Flag())
    if state["sizes"].sum() != len(state["names"]):
        raise ValueError(
            "Expected as many names as the solutions have variables. Got: "
            f"{len(state['names'])} and {state['sizes'].sum()}."
        )
    indices = np.array([pool.slots[name] for name in state["names"]], dtype=np.intp)
    ends = np.cumsum(state["sizes"])[:-1]
    parts = zip(
        state["alphas"].tolist(),
        np.split(indices, ends),
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
    """Return the first k variables of a path's last solution, in order of entry.

    Ties are ordered by descending absolute coefficient, then by arrival.
    """
    found = path.solutions
    if not found or not found[-1].places.size:
        return Picks([], [], [])
    indices, weight = found[-1].places, np.abs(found[-1].values) * path.weights[found[-1].places]
    entered = np.full(indices.size, len(found), dtype=np.intp)
    for s in range(len(found) - 1, -1, -1):
        entered[np.isin(indices, found[s].places, assume_unique=True)] = s
    order: list[int] = []
    for s in np.unique(entered).tolist():
        members = np.flatnonzero(entered == s)
        relative_weight = weight[members] / weight[members].max() * (TIE / _COEFFICIENT_RTOL)
        order += members[most_relevant_first(relative_weight)].tolist()
    order = order[:k]
    rounds = entered[order].tolist()
    return Picks(indices[order].tolist(), [found[s].alpha for s in rounds], rounds)
