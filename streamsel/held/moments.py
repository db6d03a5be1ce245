"""State of the row axis: moments of every variable, and with the target.

A column delivers a variable's moments all at once, rows accumulate them; learning therefore
continues exactly from columns to rows.
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
# Fields of a variable, in the order of the kernels.
_FIELDS = ("own", "cross", "about", "last")
# Weights are divided by a power of two, which causes no rounding, once a row weighs more.
_MAX_ROW_WEIGHT = 1024.0
# Maximum number of rows per piece, for numerical accuracy.
_MAX_PIECE_ROWS = 8192
# A row that is never reached.
NEVER = math.inf


class Moments(Held):
    """Weighted moments of variables and target over rows.

    A row that does not name a variable observed it as 0; a row with NaN for it did not observe it,
    and counts as if the value were the mean. Rows fade by growing weights: the newest weighs 1 / (1
    - fading_factor) times the previous one, and results are divided by the newest weight, so that a
    row costs nothing for variables that it does not name.

    A row is one call of a compiled loop, which also changes all numbers of rows: no exception can
    leave a row partly learnt.

    Parameters
    ----------
    fading_factor
        In [0, 1): the fraction of its weight that a row loses with each later row.
    target
        Names and form of the target.
    kernel
        The kernel between variables.

    Attributes
    ----------
    counts
        The following numbers, in the layout of `_jit.rows.learn_row`.
    rows
        Rows seen.
    total
        Their weight, in units of `unit`; relative to the newest row it is `n`.
    unit
        The weight of the newest row.
    squares
        The sum of the squared weights.
    table
        The variables in order of arrival, in the layout of `_jit.rows.learn_row`: `own` (shift,
        weight of the rows that observed it, mean about the shift, sum of squares, weight of all
        rows up to its last, row of arrival), `cross`, `about` and `last`, (c,) each.
    of_target
        (1 + c, c) means of the target about its origin, and its sums of products.
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
        # Cached target space, and the number of rows for which it is valid.
        self._space: tuple[int, TargetSpace] | None = None
        # Weight, and target means, of the rows in which a new variable counts as not observed.
        self.forgotten: Floats = np.zeros(1 + c)

    def follow(self, target: Target | NoTarget) -> None:
        """Continue from n rows learnt as columns; no row or variable has been learnt yet.

        Weighted rows count n in all, because only the ratios of weights matter.
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
        """Add variables with their moments over all rows so far, all of which named them."""
        p = len(stats.m2)
        own = np.zeros((p, 6))
        own[:, SHIFT], own[:, MEAN], own[:, M2] = stats.mean, stats.low, stats.m2
        own[:, SEEN] = own[:, UNTIL] = self.total
        means = np.tile(self.of_target[0], (p, 1))
        self.table.append(names, own=own, cross=stats.cxy, about=means, last=means)

    def forget(self) -> None:
        """Note that variables were discarded: a new name may be one of them."""
        self._complete = False
        self.forgotten = np.append(self.total, self.of_target[0])

    # Learning

    def admit(self, names: Sequence[Hashable]) -> None:
        """Add new variables, which were 0 before this row."""
        p, c = len(names), len(self.target)
        own = np.zeros((p, 6))
        own[:, UNTIL], own[:, _BORN] = self.forgotten[0], self.rows
        zeros = np.zeros((p, c))
        last = np.tile(self.forgotten[1:], (p, 1))
        self.table.append(names, own=own, cross=zeros, about=zeros, last=last)

    def admit_targets(self, seen: Observation) -> None:
        """Add new target columns, which were 0 before this row."""
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
        """Learn a row; return 0, or the reason why it was refused, as `_jit.rows.learn_row` does.

        Parameters
        ----------
        values, slots
            (m,) values, NaN if missing, and indices of their variables in the table.
        y
            (c,) target columns, about their origin.
        weight
            Weight of the row, relative to 1 for any other.
        refused
            Kinds of rows to refuse.
        """
        # Arrays with their spare capacity: creating views would cost as much as the row itself.
        found: int = learn_row(
            values, slots, y, weight, refused, self.counts, *self.table.rooms(), self.of_target
        )
        return found

    @property
    def due(self) -> float:
        """The row from which other work than learning may be due."""
        return float(self.counts[DUE])

    def learns_until(self, due: float) -> None:
        """Set `due`, which is 0 before."""
        self.counts[DUE] = due

    def _arrays(self) -> tuple[Floats, ...]:
        return tuple(self.table[field] for field in _FIELDS)

    def _next_weight(self) -> float:
        return self.unit / (1.0 - self.fading_factor) if self.rows else 1.0

    @property
    def until_heavy(self) -> float:
        """The minimum number of rows before `follow_levels` has work to do."""
        if self.fading_factor == 0.0:
            return NEVER
        return math.floor(math.log(_MAX_ROW_WEIGHT / self.unit) / -math.log1p(-self.fading_factor))

    def follow_levels(self) -> None:
        """Rescale weights that have grown large, and move shifts to the means."""
        if self.unit > _MAX_ROW_WEIGHT:
            self.rescale(2.0 ** -math.frexp(self.unit)[1])
            self._move_shifts()
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
        """Copy the arrays that compiled loops write into, so that a snapshot keeps the old ones."""
        self.table.detach()
        self.counts, self.of_target = self.counts.copy(), self.of_target.copy()
        self.forgotten = self.forgotten.copy()

    def saved(self, slots: Places) -> Restore:
        """Return a function that undoes rows of these variables, however often it is called.

        It is cheaper than `detach`, for rows that name few of the variables.
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

    def _move_shifts(self) -> None:
        """Move shifts and origins to the means.

        While rows fade a mean may drift far from its first value, and a mean that is large compared
        with the spread loses digits.
        """
        own = self.table["own"]
        own[:, SHIFT], own[:, MEAN] = two_sum(own[:, SHIFT], own[:, MEAN])
        moved = self.of_target[0].copy()
        origin, remainder = two_sum(np.asarray(self.target.origin), moved)
        self.target.origin = origin.tolist()
        self.of_target[0] = remainder
        for means in (self.table["about"], self.table["last"], self.forgotten[1:]):
            means[:] = (means - moved) + remainder

    def weights(self, size: int) -> Floats:
        """Return the weights of the next rows, if all count equally."""
        if self.fading_factor == 0.0:
            return np.ones(size)
        return np.asarray(self._next_weight() * (1.0 - self.fading_factor) ** -np.arange(size))

    def pieces(self, size: int) -> list[slice]:
        """Split rows into pieces that are short, and similar in weight, for accuracy."""
        max_rows = (
            min(_MAX_PIECE_ROWS, max(1, int(5.0 / self.fading_factor)))
            if self.fading_factor
            else _MAX_PIECE_ROWS
        )
        return [slice(start, min(start + max_rows, size)) for start in range(0, size, max_rows)]

    def learn_many(
        self, X: Floats, slots: Places, Y: Floats, weights: Floats | None = None
    ) -> bool:
        """Learn a piece of rows at once; return False if a value is infinite or too large."""
        found = self.sums_of(X, slots, Y, weights)
        if found is None:
            return False
        self.take(found)
        return True

    def take(self, found: tuple[Any, ...]) -> None:
        """Learn the rows summarised by `sums_of`, in one step."""
        learn_rows(*found, self.counts, *self.table.rooms(), self.of_target)

    def sums_of(
        self, X: Floats, slots: Places, Y: Floats, weights: Floats | None = None
    ) -> tuple[Any, ...] | None:
        """Return the sums over a piece of rows that `take` learns (Chan, Golub and LeVeque 1979).

        Parameters
        ----------
        X, slots
            (b, m) values, NaN if missing, and the indices of the columns.
        Y
            (b, c) target columns.
        weights
            (b,) weights of the rows; None for equal ones.

        Returns
        -------
        None if a value is infinite or too large.
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
        """Add zeros for the rows since each variable's last one."""
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
        """Add the variables' moments over other rows, of the weight `seen` (Chan 1979)."""
        combine(slots, seen, shift, mean, m2, cross, about, *self._arrays()[:3])

    def combine_target(self, weight: float, mean: Floats, cyy: Floats) -> None:
        """Add the target's moments over other rows of this weight; `total` is not changed."""
        self._space = None
        total = self.total + weight
        difference = mean - self.of_target[0]
        self.of_target[1:] += cyy + difference[:, None] * difference * (self.total * weight / total)
        self.of_target[0] += difference * (weight / total)

    # What was learnt

    @property
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""
        return self._complete

    def stats(self, places: Places | None = None) -> Stats:
        """Return the moments of variables over all rows; of all variables if `places` is None.

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
        """Return the mean of a variable over all rows, as in `stats`; 0 if never observed."""
        shift, seen, mean, _, until, _ = self.table["own"][place].tolist()
        gap = self.total - until
        weight = seen + gap
        return float(shift + mean - (shift + mean) * (gap / weight)) if weight else 0.0

    def seen(self) -> Floats:
        """Return the total weight of the rows that observed each variable."""
        own = self.table["own"]
        seen: Floats = (own[:, SEEN] + (self.total - own[:, UNTIL])) / self.unit
        return seen

    @property
    def n(self) -> float:
        """The total weight of all rows; the newest row has weight 1."""
        return self.total / self.unit

    @property
    def effective_rows(self) -> float:
        """The effective number of rows of equal weight (Kish 1965)."""
        return self.total * self.total / self.squares if self.squares else 0.0

    @property
    def space(self) -> TargetSpace | None:
        """The target space over all rows, cached between updates; None without a target."""
        if self.target.form in (None, NO_TARGET):
            return None
        rows, cached = self.rows, self._space
        if cached is None or cached[0] != rows:
            self._space = cached = rows, self._compute_space()
        return cached[1]

    def _compute_space(self) -> TargetSpace:
        if len(self.target) == 1:
            return self._space_of_one_column()
        cyy = self.of_target[1:] / self.unit
        level = self.of_target[0] + np.asarray(self.target.origin)
        squares = np.diag(cyy)
        is_constant = squares <= (ROUNDINGS * level) ** 2 * self.n
        if is_constant.any():
            cyy[is_constant] = 0.0
            cyy[:, is_constant] = 0.0
        is_given = self.target.is_given() if self.target.covariates else None
        return TargetSpace(cyy, self.n, self.kernel, is_given)

    def _space_of_one_column(self) -> TargetSpace:
        """Return the target space of a single column, faster: it is needed after every row."""
        square, level = float(self.of_target[1, 0]) / self.unit, self.of_target[0, 0]
        rounding = ROUNDINGS * (float(level) + self.target.origin[0])
        if square <= rounding * rounding * self.n:
            square = 0.0
        return TargetSpace(np.array([[square]]), self.n, self.kernel, None)

    @property
    def born(self) -> Floats:
        """The row of arrival of each variable."""
        return self.table["own"][:, _BORN]

    def let_go(self, staying: Places) -> None:
        """Discard all variables but these, given in ascending order."""
        self._complete = False
        self.table.keep(staying)

    def expect_possible(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
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
        """Return the state for a model file, as arrays and JSON-compatible values."""
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
        """Restore the state from `to_state`, in a new object with the same parameters."""
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
        # A mean lies between values, which are bounded.
        if not (np.abs(self.of_target[:1]) <= 2.0 * LARGEST).all():
            raise ValueError(
                "Expected means of the target in the range of valid values. Got: larger ones."
            )
        self.forgotten = np.array(state["forgotten"])
        self.table = Table.from_state(state["table"], fields(c))


def fields(c: int) -> dict[str, tuple[int, ...]]:
    """Return the fields of a variable, and their shapes, for c target columns."""
    return dict(zip(_FIELDS, ((6,), (c,), (c,), (c,)), strict=True))
