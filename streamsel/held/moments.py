"""The state of the row axis: moments of every variable, of itself and with the target.

 A column delivers a variable's moments all at once, rows accumulate them; so what was learnt on
columns goes on, exactly, on rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from streamsel._jit.rows import (
    DUE,
    LARGEST,
    NOTHING,
    ROWS,
    SQUARES,
    TOTAL,
    UNIT,
    add_zeros,
    combine,
    learn_row,
    learn_rows,
    over_all_rows,
)
from streamsel._jit.scan import ROUNDINGS, UNDERFLOW
from streamsel.columns import Stats
from streamsel.held.counts import count
from streamsel.held.part import Floats, Held, Places
from streamsel.held.possible import (
    expect_between,
    expect_bounded,
    expect_products,
    expect_sums,
    expect_weights,
)
from streamsel.held.sweeping import moments_of
from streamsel.held.table import Table, padded
from streamsel.rollback import Restore
from streamsel.shapes import Count, Flag, ListOf, Number, expect, expect_shapes
from streamsel.summation import two_sum
from streamsel.target.kernels import VariableKernel
from streamsel.target.observed import NO_TARGET, Observation
from streamsel.target.rows import RowTarget
from streamsel.target.space import TargetSpace
from streamsel.target.target import NoTarget, Target

LINEAR = VariableKernel()

# Columns of the field "own", in the order of the kernels.
SHIFT, SEEN, MEAN, M2, UNTIL, _BORN = range(6)
# The fields of a variable, in that order too.
_FIELDS = ("own", "cross", "about", "last")
# When the weight of a row has grown to this, all are divided by it: a power of two rounds nothing.
_HEAVY = 1024.0
# Rows are taken in pieces of at most so many, for the digits.
_PIECE = 8192
# A row that is never reached.
NEVER = math.inf


class Moments(Held):
    """Weighted moments of variables and target over rows.

    A row that does not name a variable observed it as 0; a row that has NaN for it did not observe
    it, and counts as if it had had its mean there. Rows fade by growing weights: the newest weighs
    1 / (1 - fading_factor) times the one before, and what is read is divided by the newest weight,
    so that a row costs nothing for the variables that it does not name.

    A row is one call of a compiled loop, which changes all numbers of rows too: there is no moment
    at which an exception would find some of it learnt.

    Parameters
    ----------
    fading_factor
        In [0, 1): what part of its weight a row loses with every later one.
    target
        The target's names and form.
    kernel
        The kernel between variables.

    Attributes
    ----------
    counts
        The numbers that follow, as `_jit.rows.learn_row` says.
    rows
        Rows seen.
    total
        Their weight, in units of `unit`; where the newest row has weight 1 it is `n`.
    unit
        The weight of the newest row.
    squares
        The sum of the squared weights.
    table
        The variables in order of arrival, as `_jit.rows.learn_row` says: `own` (shift, weight of
        the rows that observed it, mean about the shift, sum of squares, weight of all rows up to
        its last, row of arrival), `cross`, `about` and `last`, (c,) each.
    of_target
        (1 + c, c) the target's means, about its origin, and its sums of products.
    """

    changing = ("target", "counts", "table", "of_target", "_complete", "_space", "forgotten")

    rows: int = count(ROWS, int)
    total: float = count(TOTAL)
    unit: float = count(UNIT)
    squares: float = count(SQUARES)

    def __init__(
        self, fading_factor: float, target: RowTarget, kernel: VariableKernel = LINEAR
    ) -> None:
        self.fading_factor = fading_factor
        self.target = target
        self.kernel = kernel
        self.counts: Floats = np.array([0.0, 0.0, 1.0, 0.0, -1.0, 1.0 - fading_factor, 0.0])
        c = len(target)
        self.table = Table(fields(c))
        self.of_target: Floats = np.zeros((1 + c, c))
        self._complete = True
        # Made when it is asked for, and the number of rows for which it holds.
        self._space: tuple[int, TargetSpace] | None = None
        # Of the rows in which names that come now were not observed: weight, and target's means.
        self.forgotten: Floats = np.zeros(1 + c)

    def follow(self, target: Target | NoTarget) -> None:
        """Go on from n rows which came as columns; no row and no variable has come yet.

        Where these have weights they count n in all, as of weights only the ratios do.
        """
        self.rows = target.n
        self.total = float(target.n)
        self.squares = self.total * (self.total / target.effective_rows)
        if isinstance(target, Target):
            self.target = RowTarget.following(target, self.target.kind)
            c = len(self.target)
            self.table = Table(fields(c))
            self.of_target = np.vstack([target.low, target.cyy])
            self.forgotten = np.zeros(1 + c)

    def take_columns(self, names: Iterable[Hashable], stats: Stats) -> None:
        """Take up variables with their moments over all rows so far, which all named them."""
        p = len(stats.m2)
        own = np.zeros((p, 6))
        own[:, SHIFT], own[:, MEAN], own[:, M2] = stats.mean, stats.low, stats.m2
        own[:, SEEN] = own[:, UNTIL] = self.total
        means = np.tile(self.of_target[0], (p, 1))
        self.table.append(names, own=own, cross=stats.cxy, about=means, last=means)

    def forget(self) -> None:
        """Note that variables were let go: a name that comes now may be one of theirs."""
        self._complete = False
        self.forgotten = np.append(self.total, self.of_target[0])

    # Learning

    def admit(self, names: Sequence[Hashable]) -> None:
        """Take up new variables; before this row they were 0."""
        p, c = len(names), len(self.target)
        own = np.zeros((p, 6))
        own[:, UNTIL], own[:, _BORN] = self.forgotten[0], self.rows
        zeros = np.zeros((p, c))
        last = np.tile(self.forgotten[1:], (p, 1))
        self.table.append(names, own=own, cross=zeros, about=zeros, last=last)

    def admit_targets(self, seen: Observation) -> None:
        """Take up new target columns; they were 0 before."""
        before = len(self.target)
        self._space = None
        self.target.admit(seen)
        c = len(self.target)
        if c == before:
            return
        self.of_target = padded(padded(self.of_target, 1 + c).T, c).T.copy()
        self.forgotten = padded(self.forgotten, 1 + c)
        table = Table(fields(c))
        rows = {field: self.table[field] for field in table.fields}
        for field in ("cross", "about", "last"):
            rows[field] = padded(rows[field].T, table.fields[field][0]).T
        table.append(self.table.slots, **rows)
        self.table = table

    def learn_one(
        self, values: Floats, slots: Places, y: Floats, weight: float = 1.0, refused: int = NOTHING
    ) -> int:
        """Learn a row; return 0, or why it was not learnt, as `_jit.rows.learn_row` does.

        Parameters
        ----------
        values, slots
            (m,) values, NaN where not observed, and places of their variables in the table.
        y
            (c,) target columns, about their origin.
        weight
            How much the row counts, compared with 1 for any other.
        refused
            What is not learnt.
        """
        # Not views of the rows that are held: to make them would cost as much as the row itself.
        found: int = learn_row(
            values, slots, y, weight, refused, self.counts, *self.table.rooms(), self.of_target
        )
        return found

    @property
    def due(self) -> float:
        """The row from which on there may be more to do than to learn it."""
        return float(self.counts[DUE])

    def learns_until(self, due: float) -> None:
        """Note what `due` is to say; it is 0 before."""
        self.counts[DUE] = due

    def _arrays(self) -> tuple[Floats, ...]:
        return tuple(self.table[field] for field in _FIELDS)

    def _next_weight(self) -> float:
        return self.unit / (1.0 - self.fading_factor) if self.rows else 1.0

    @property
    def until_heavy(self) -> float:
        """How many rows may come, at least, before `follow_levels` has something to do."""
        if self.fading_factor == 0.0:
            return NEVER
        return math.floor(math.log(_HEAVY / self.unit) / -math.log1p(-self.fading_factor))

    def follow_levels(self) -> None:
        """Make the weights smaller where they have grown, and bring shifts up to the means."""
        if self.unit > _HEAVY:
            self.rescale(2.0 ** -math.frexp(self.unit)[1])
            self._follow_levels()
            self._space = None

    def rescale(self, factor: float) -> None:
        """Multiply all weights by a factor."""
        self.detach()
        self.counts[[TOTAL, UNIT]] *= factor
        self.counts[SQUARES] *= factor * factor
        self.table["own"][:, [SEEN, M2, UNTIL]] *= factor
        self.table["cross"][:] *= factor
        self.of_target[1:] *= factor
        self.forgotten[0] *= factor

    def detach(self) -> None:
        """Replace what loops write into by copies, so that a snapshot keeps it as it is."""
        self.table.detach()
        self.counts, self.of_target = self.counts.copy(), self.of_target.copy()
        self.forgotten = self.forgotten.copy()

    def saved(self, slots: Places) -> Restore:
        """Return what undoes rows of these variables alone, however often it is called.

        What is cheaper than `detach`, before rows that name few of the variables.
        """
        known = slots[slots < len(self.table)]
        arrays = (*self.table.rooms(), self.counts, self.of_target)
        copies = [array[known] for array in arrays[:-2]] + [array.copy() for array in arrays[-2:]]

        def restore() -> None:
            for array, copy in zip(arrays[:-2], copies[:-2], strict=True):
                array[known] = copy
            for array, copy in zip(arrays[-2:], copies[-2:], strict=True):
                array[:] = copy

        return restore

    def _follow_levels(self) -> None:
        """Bring shifts and origins up to the means.

        While rows fade a level may move far from where it was first, and a mean that is large
        against its spread loses digits.
        """
        own = self.table["own"]
        own[:, SHIFT], own[:, MEAN] = two_sum(own[:, SHIFT], own[:, MEAN])
        moved = self.of_target[0].copy()
        origin, left = two_sum(np.asarray(self.target.origin), moved)
        self.target.origin = origin.tolist()
        self.of_target[0] = left
        for means in (self.table["about"], self.table["last"], self.forgotten[1:]):
            means[:] = (means - moved) + left

    def weights(self, size: int) -> Floats:
        """Return the weights of the next rows, each of which counts as any other."""
        if self.fading_factor == 0.0:
            return np.ones(size)
        return np.asarray(self._next_weight() * (1.0 - self.fading_factor) ** -np.arange(size))

    def pieces(self, size: int) -> list[slice]:
        """Cut so many rows into pieces, for the digits, and not too far apart in weight."""
        most = min(_PIECE, max(1, int(5.0 / self.fading_factor))) if self.fading_factor else _PIECE
        return [slice(start, min(start + most, size)) for start in range(0, size, most)]

    def learn_many(
        self, X: Floats, slots: Places, Y: Floats, weights: Floats | None = None
    ) -> bool:
        """Learn a piece of rows at once."""
        found = self.sums_of(X, slots, Y, weights)
        if found is None:
            return False
        self.take(found)
        return True

    def take(self, found: tuple[Any, ...]) -> None:
        """Learn the rows of which `sums_of` returned this, in one step."""
        learn_rows(*found, self.counts, *self.table.rooms(), self.of_target)

    def sums_of(
        self, X: Floats, slots: Places, Y: Floats, weights: Floats | None = None
    ) -> tuple[Any, ...] | None:
        """Return what `take` learns of a piece of rows (Chan, Golub and LeVeque 1979).

        Parameters
        ----------
        X, slots
            (b, m) values, NaN where not observed, and the places of the columns.
        Y
            (b, c) target columns.
        weights
            (b,) how much each row counts; None for all the same.

        Returns
        -------
        None where a value is infinite or too large.
        """
        Y = Y - self.target.origin
        w = self.weights(len(X))
        unit = float(w[-1])
        if weights is not None:
            w = w * weights
        weight = float(w.sum())
        level = w @ Y / weight
        Y -= level
        weighted = w[:, None] * Y if self.fading_factor or weights is not None else Y
        found = moments_of(X, w, weighted, level)
        if found is None:
            return None
        of_rows = (len(X), unit, weight, float(w @ w))
        return (*of_rows, slots, *found, level, np.ascontiguousarray(weighted.T @ Y))

    def add_zeros(self, slots: Places) -> None:
        """Add to variables the rows since their last that did not name them."""
        add_zeros(slots, *self._arrays(), self.total, self.of_target[0])

    def combine(
        self,
        slots: Places,
        seen: Floats,
        shift: Floats,
        mean: Floats,
        m2: Floats,
        cross: Floats,
        about: Floats,
    ) -> None:
        """Add to variables their moments over other rows, of the weight `seen` (Chan 1979)."""
        combine(slots, seen, shift, mean, m2, cross, about, *self._arrays()[:3])

    def combine_target(self, weight: float, mean: Floats, cyy: Floats) -> None:
        """Add to the target's moments those of other rows, of this weight; `total` is left."""
        self._space = None
        total = self.total + weight
        apart = mean - self.of_target[0]
        self.of_target[1:] += cyy + apart[:, None] * apart * (self.total * weight / total)
        self.of_target[0] += apart * (weight / total)

    # What was learnt

    @property
    def complete(self) -> bool:
        """Whether no variable was ever let go."""
        return self._complete

    def stats(self, places: Places | None = None) -> Stats:
        """Return the moments of variables over all rows, of all if places is None.

        The newest row has weight 1.
        """
        table, p = self.table, len(self.table)
        arrays = table.rooms()
        if places is not None:
            arrays, p = [array[places] for array in arrays], len(places)
        mean, m2, cxy = np.empty(p), np.empty(p), np.empty((p, len(self.of_target[0])))
        weights = (self.of_target[0], self.total, self.unit)
        over_all_rows(*arrays, *weights, ROUNDINGS, UNDERFLOW, mean, m2, cxy)
        return Stats(mean, np.zeros(p), m2, cxy)

    def mean_of(self, place: int) -> float:
        """Return the mean of a variable over all rows, as `stats` does; 0 if none observed it."""
        shift, seen, mean, _, until, _ = self.table["own"][place].tolist()
        gap = self.total - until
        weight = seen + gap
        return float(shift + mean - (shift + mean) * (gap / weight)) if weight else 0.0

    def seen(self) -> Floats:
        """Return the weights of the rows that observed each variable."""
        own = self.table["own"]
        seen: Floats = (own[:, SEEN] + (self.total - own[:, UNTIL])) / self.unit
        return seen

    @property
    def n(self) -> float:
        """The weight of all rows, where the newest has weight 1."""
        return self.total / self.unit

    @property
    def effective_rows(self) -> float:
        """How many rows of equal weight tell as much (Kish 1965)."""
        return self.total * self.total / self.squares if self.squares else 0.0

    @property
    def space(self) -> TargetSpace | None:
        """The target space of all rows, made once between two learns; None without a target."""
        if self.target.form in (None, NO_TARGET):
            return None
        rows, made = self.rows, self._space
        if made is None or made[0] != rows:
            self._space = made = rows, self._made_space()
        return made[1]

    def _made_space(self) -> TargetSpace:
        if len(self.target) == 1:
            return self._space_of_one()
        cyy = self.of_target[1:] / self.unit
        level = self.of_target[0] + np.asarray(self.target.origin)
        squares = np.diag(cyy)
        still = squares <= (ROUNDINGS * level) ** 2 * self.n
        if still.any():
            cyy[still] = 0.0
            cyy[:, still] = 0.0
        is_given = self.target.is_given() if self.target.covariates else None
        return TargetSpace(cyy, self.n, self.kernel, is_given)

    def _space_of_one(self) -> TargetSpace:
        """Return what `_made_space` does of one column, as is asked for after every row."""
        square, level = float(self.of_target[1, 0]) / self.unit, self.of_target[0, 0]
        rounding = ROUNDINGS * (float(level) + self.target.origin[0])
        if square <= rounding * rounding * self.n:
            square = 0.0
        return TargetSpace(np.array([[square]]), self.n, self.kernel, None)

    @property
    def born(self) -> Floats:
        """The row at which each variable came."""
        return self.table["own"][:, _BORN]

    def let_go(self, staying: Places) -> None:
        """Drop all variables but these, given in ascending order."""
        self._complete = False
        self.table.keep(staying)

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        own, c = self.table["own"], len(self.target)
        expect_weights(self.total, self.unit, self.squares, self.rows)
        expect_between("weights of rows", own[:, [SEEN, UNTIL]], 0.0, self.total * (1.0 + 1e-6))
        expect_bounded("means", own[:, SHIFT], own[:, MEAN], self.of_target[:1])
        expect_bounded("means", self.table["about"], self.table["last"], self.forgotten)
        expect_sums("moments", own[:, M2], self.table["cross"])
        expect_between("rows", own[:, _BORN], 0.0, float(self.rows))
        if c:
            expect_products(self.of_target[1:], "targets")

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        return {
            "rows": self.rows,
            "weights": [self.total, self.unit, self.squares],
            "complete": self._complete,
            "target": self.target.to_state(),
            "of_target": self.of_target,
            "forgotten": self.forgotten,
            "table": self.table.to_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        expect(state, rows=Count(), weights=ListOf(3, Number(0.0)), complete=Flag())
        self.target.set_state(state["target"])
        c = len(self.target)
        expect_shapes(state, of_target=(1 + c, c), forgotten=(1 + c,))
        self.rows = state["rows"]
        if self.rows:
            self.target.doubt_no_more()
        self.counts[[TOTAL, UNIT, SQUARES]] = state["weights"]
        self._complete = state["complete"]
        self.of_target = np.array(state["of_target"])
        # Means lie between values, and these are bounded.
        if not (np.abs(self.of_target[:1]) <= 2.0 * LARGEST).all():
            raise ValueError("Expected means of the target that values can have. Got: others.")
        self.forgotten = np.array(state["forgotten"])
        self.table = Table.from_state(state["table"], fields(c))


def fields(c: int) -> dict[str, tuple[int, ...]]:
    """Return the fields of a variable, and their shapes, with c target columns."""
    return dict(zip(_FIELDS, ((6,), (c,), (c,), (c,)), strict=True))
