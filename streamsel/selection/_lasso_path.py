"""Solutions of the LASSO for one alpha after another, over all variables held."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.held.part import Floats, Held, Places

# By what part a slope may be above its bar and yet be taken for one that is not.
TOLERANCE = 1e-9
# Slopes are of the size of 1, and rounded.
_ROUNDING = 1e-14
# Variables join the work by so many at least, which costs hardly more than one, and at most, or by
# half as many as there are already.
_AT_LEAST, _AT_MOST = 32, 64
# What goes with another this closely is its copy.
COPY = 1.0 - 1e-14
# So many solutions are looked at together.
_TOGETHER = 8
# On a rough path this many alphas are one.
_COARSE = 5
# A target that goes with no variable more closely goes with none.
NOTHING = 1e-12

_NONE: Places = np.zeros(0, dtype=np.intp)
_VOID: Floats = np.zeros(0)

Bools = NDArray[np.bool_]


class Penalty(NamedTuple):
    """What coefficients cost: α n (ρ Σ d|b| + (1 - ρ)/2 Σ d²b²), and for which alphas.

    Parameters
    ----------
    alphas
        Descending; None for a grid from where the first variable enters.
    l1_ratio, n_alphas, alpha_min_ratio, scale
        As Lasso has them.
    is_rough
        Whether a few of the alphas will do.
    """

    alphas: tuple[float, ...] | None
    l1_ratio: float
    n_alphas: int
    alpha_min_ratio: float
    scale: bool
    is_rough: bool = False

    def roughly(self) -> Penalty:
        """Return the same for fewer alphas, where they are many."""
        many = self.n_alphas if self.alphas is None else len(self.alphas)
        return self._replace(is_rough=many > 2 * _COARSE)

    def grid(self, first: float) -> list[float]:
        """Return the alphas, where this is the one at which the first variable enters."""
        found = np.array(self.alphas or ())
        if self.alphas is None:
            found = np.geomspace(first, first * self.alpha_min_ratio, self.n_alphas)
        if self.is_rough:
            found = np.append(found[:-1:_COARSE], found[-1])
        return [float(alpha) for alpha in found]


class Solution(NamedTuple):
    """What minimises loss and penalty for one alpha.

    Parameters
    ----------
    alpha
        The alpha.
    places, values
        The variables whose coefficients are not 0, ascending, and these, as of variables of length
        1 and divided by the problem's norm.
    level
        The intercept of the linear predictor of centred variables.
    """

    alpha: float
    places: Places
    values: Floats
    level: float


class Path(NamedTuple):
    """Solutions along a path.

    Parameters
    ----------
    solutions
        One for each alpha, descending.
    weights
        (p,) d, what the coefficients cost.
    norm
        What coefficients are divided by.
    is_cut_short
        Whether it ends because more variables would be active than there is room for.
    """

    solutions: list[Solution]
    weights: Floats
    norm: float
    is_cut_short: bool

    def active(self) -> Places:
        """Return who is active in any solution, ascending."""
        return together(self.solutions)


NO_PATH = Path([], _VOID, 1.0, is_cut_short=False)


def together(solutions: Sequence[Solution]) -> Places:
    """Return who is active in any of some solutions, ascending."""
    return np.unique(np.concatenate([_NONE, *(found.places for found in solutions)]))


class Problem(abc.ABC):
    """A loss, and what is held of the variables.

    Attributes
    ----------
    weights
        (p,) d, what a coefficient of a variable of length 1 costs.
    varies
        (p,) which variables may have a coefficient.
    start
        (p,) minus the slopes of the loss where all coefficients are 0.
    norm
        What coefficients are divided by, and slopes: the loss by its square.
    empty_loss
        The loss there.
    b, level
        (p,) the coefficients, and the intercept of the linear predictor of centred variables.
    work
        Variables whose coefficients may differ from 0, ascending.
    """

    start: Floats
    norm: float
    empty_loss: float

    def __init__(self, held: Held, penalty: Penalty) -> None:
        stats, space = held.stats(), held.space
        left = stats.m2 if space is None else space.left(stats.m2, stats.cxy)
        self.n = float(held.n)
        self.varies = left > 0.0
        lengths = np.sqrt(np.where(self.varies, left, 1.0))
        self.weights = np.full(left.size, self.n**-0.5) if penalty.scale else 1.0 / lengths
        self.work, self.b, self.level = _NONE, np.zeros(left.size), 0.0
        self._share_alike = penalty.l1_ratio < 1.0

    def without_copies(self, W: Places, C: Floats) -> Places:
        """Return which of some variables, (s,) with correlations C, are not copies of others.

        Of copies only the first may differ from 0, unless the penalty has them share.
        """
        copies = np.abs(C) >= COPY
        if self._share_alike or np.count_nonzero(copies) == W.size:
            return np.arange(W.size)
        d = self.weights[W]
        copies &= d <= d[:, None] * (1.0 + 1e-12)
        copies = np.tril(copies, -1)
        is_copy = copies.any(axis=1)
        for j in np.flatnonzero(is_copy & (self.b[W] != 0.0)).tolist():
            first = int(np.argmax(copies[j]))
            self.b[W[first]] += np.sign(C[j, first]) * self.b[W[j]]
            self.b[W[j]] = 0.0
        return np.flatnonzero(~is_copy)

    def begin(self, places: Places, values: Floats, level: float) -> None:
        """Let these be the coefficients."""
        self.b[:] = 0.0
        self.b[places] = values
        self.level = level

    @abc.abstractmethod
    def use(self, places: Places) -> None:
        """Let these, ascending, be the work."""

    @abc.abstractmethod
    def lower(self, bar: Floats, ridge: Floats, edge: Floats) -> None:
        """Find the best coefficients of the work, for these weights, (p,)."""

    @abc.abstractmethod
    def slopes_of(self, found: Sequence[Solution]) -> Floats:
        """Return minus the slopes of the loss along all coefficients, at solutions, (S, p)."""

    @abc.abstractmethod
    def loss(self) -> float:
        """Return the loss of the coefficients as they are, none of which is beside the work."""

    @abc.abstractmethod
    def dual(self, shrunk: float) -> float:
        """Return the dual of the loss at its own dual point, times `shrunk`."""


class Sampled(Problem):
    """A problem that has the observations of its variables."""

    @abc.abstractmethod
    def rests(self, found: Sequence[Solution]) -> Floats:
        """Return the residuals of solutions, (S, n), whose products with variables are slopes."""


class _At(NamedTuple):
    """An alpha, as what coefficients cost, (p,): slope, curvature, and the slope with rounding."""

    alpha: float
    bar: Floats
    ridge: Floats
    edge: Floats

    @classmethod
    def of(cls, alpha: float, problem: Problem, penalty: Penalty) -> _At:
        bar = alpha * per_alpha(problem, penalty) * problem.weights
        ridge = problem.n * alpha * (1.0 - penalty.l1_ratio) * np.square(problem.weights)
        return cls(alpha, bar, ridge, bar * (1.0 + TOLERANCE) + _ROUNDING)


def per_alpha(problem: Problem, penalty: Penalty) -> float:
    """Return what alpha is to be multiplied by, and by a variable's weight, for its bar."""
    return problem.n * penalty.l1_ratio / problem.norm


def solve(
    problem: Problem,
    penalty: Penalty,
    k: int | None,
    limit: int | None = None,
    before: Sequence[Solution] = (),
    stays: Sequence[bool] = (),
) -> Path:
    """Return the solutions for one alpha after another.

    Parameters
    ----------
    problem
        What is held of the variables; used up.
    penalty
        The alphas, and what a coefficient costs.
    k
        The path ends with the first solution of so many variables; None for none.
    limit
        The most variables that may be active on the path, together; with more it ends before.
    before
        Solutions of a path before, to begin with.
    stays
        Which of these are solutions of all variables still, if their alphas are on the path.
    """
    steep = np.where(problem.varies, np.abs(problem.start), 0.0)
    if steep.max(initial=0.0) <= NOTHING:
        return NO_PATH
    first = float((steep / problem.weights).max()) / per_alpha(problem, penalty)
    alphas = penalty.grid(first)
    solutions: list[Solution] = []
    slopes, last = problem.start, first
    # Where most have changed it is faster to begin anew.
    known = [one.alpha for one in before]
    if 2 * sum(stays) > len(known) and known == alphas[: len(known)]:
        solutions = list(before)
        wrong = [s for s, stay in enumerate(stays) if not stay]
        slopes = _mend(problem, penalty, solutions, wrong, [one.places for one in solutions])
        problem.begin(*solutions[-1][1:])
        last = known[-1]
    size, why = _until(solutions, k, limit)
    while not why and size < len(alphas):
        found, works = _guessed(problem, penalty, alphas[size : size + _TOGETHER], slopes, last)
        slopes = _mend(problem, penalty, found, list(range(len(found))), works)
        problem.begin(*found[-1][1:])
        last = found[-1].alpha
        solutions += found
        size, why = _until(solutions, k, limit)
    return Path(solutions[:size], problem.weights, problem.norm, why == "no room")


def _until(solutions: list[Solution], k: int | None, limit: int | None) -> tuple[int, str]:
    """Return how many of some solutions the path has, and why there are no more, if so."""
    active = _NONE
    for s, one in enumerate(solutions):
        active = np.union1d(active, one.places)
        if limit is not None and active.size > limit:
            return s, "no room"
        if k is not None and one.places.size >= k:
            return s + 1, "enough"
    return len(solutions), ""


def _guessed(
    problem: Problem, penalty: Penalty, alphas: list[float], slopes: Floats, last: float
) -> tuple[list[Solution], list[Places]]:
    """Return what may be solutions for some alphas, and what they are solutions of.

    That is from the coefficients as they are, and the slopes there, for the last alpha before.
    """
    found, works = [], []
    for alpha in alphas:
        one = _At.of(alpha, problem, penalty)
        problem.use(np.flatnonzero(problem.b))
        # What is this steep will probably enter (the sequential strong rule).
        above = np.abs(slopes) > min(2.0 - last / alpha, 1.0) * one.bar
        _widen(problem, above, slopes, one, _AT_LEAST)
        problem.lower(one.bar, one.ridge, one.edge)
        found.append(_found(problem, alpha))
        works.append(problem.work)
    return found, works


def _found(problem: Problem, alpha: float) -> Solution:
    places = np.flatnonzero(problem.b)
    return Solution(alpha, places, problem.b[places], problem.level)


def _mend(
    problem: Problem,
    penalty: Penalty,
    found: list[Solution],
    todo: list[int],
    works: list[Places],
) -> Floats:
    """Let what may be solutions, of some of the variables, be solutions of all.

    Parameters
    ----------
    problem, penalty
        The loss, and what coefficients cost.
    found
        What may be solutions; changed in place.
    todo, works
        Which of them are not known to be, and of which variables they are.

    Returns
    -------
    The slopes at the last of them.
    """
    last: Floats | None = None
    while todo:
        slopes, wrong = problem.slopes_of([found[s] for s in todo]), []
        for s, mine in zip(todo, slopes, strict=True):
            at = _At.of(found[s].alpha, problem, penalty)
            problem.work = works[s]
            if s == len(found) - 1:
                last = mine
            if _widen(problem, np.abs(mine) > at.edge, mine, at, 1):
                problem.begin(*found[s][1:])
                problem.lower(at.bar, at.ridge, at.edge)
                found[s], works[s] = _found(problem, at.alpha), problem.work
                wrong.append(s)
        todo = wrong
    return problem.slopes_of(found[-1:])[0] if last is None else last


def _widen(problem: Problem, above: Bools, slopes: Floats, at: _At, least: int) -> bool:
    """Let the steepest variables join the work, if any is above; return whether one was."""
    free = problem.varies.copy()
    free[problem.work] = False
    size = int(np.count_nonzero(free & above))
    if not size:
        return False
    steep = np.where(free, np.abs(slopes) / at.bar, -1.0)
    size = min(max(size, least), max(_AT_MOST, problem.work.size // 2), int(np.count_nonzero(free)))
    bottom = np.partition(steep, -size)[-size]
    # Copies come together, that the first of them goes first.
    joins = steep >= bottom * (1.0 - TOLERANCE)
    joins[problem.work] = True
    problem.use(np.flatnonzero(joins))
    return True


def quality(
    problem: Problem, penalty: Penalty, path: Path, outside: Floats | None = None
) -> tuple[float, float]:
    """Return how good a path is: its largest duality gap, and violation of the conditions.

    Parameters
    ----------
    problem, penalty
        What is held of the variables, used up, and what coefficients cost.
    path
        The path.
    outside
        (S,) the steepest of the variables that are not held, in units of their bars.

    Returns
    -------
    The gap as part of the loss of the empty model; the violation as part of the bar.
    """
    if not path.solutions:
        return 0.0, 0.0
    gap = violation = 0.0
    for s, found in enumerate(path.solutions):
        at = _At.of(found.alpha, problem, penalty)
        problem.use(found.places)
        problem.begin(*found[1:])
        b = problem.b
        pull = problem.slopes_of([found])[0] - at.ridge * b
        active = b != 0.0
        short = (np.abs(pull - at.bar * np.sign(b)) / at.bar)[active]
        steepest = float((np.abs(pull) / at.bar)[problem.varies].max())
        if outside is not None:
            steepest = max(steepest, float(outside[s]))
        violation = max(violation, steepest - 1.0, float(short.max(initial=0.0)))
        squares = 0.5 * float(at.ridge @ (b * b))
        shrunk = 1.0 / max(1.0, steepest)
        reached = problem.loss() + float(at.bar @ np.abs(b)) + squares
        gap = max(gap, reached - problem.dual(shrunk) + shrunk * shrunk * squares)
    return gap / problem.empty_loss, violation
