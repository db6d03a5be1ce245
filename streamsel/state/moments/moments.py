"""Weighted moments of every variable, and its products with the target, updated by rows.

A column yields the same moments in one step, so learning continues exactly from columns to rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from streamsel._kernels.row_moments import (
    DUE,
    MAX_ABS_VALUE,
    REFUSE_NONE,
    ROWS,
    SQUARES,
    TOTAL,
    UNIT,
    add_unnamed_rows,
    any_too_large,
    learn_row,
    learn_row_moments,
    merge_moments,
    moments_over_all_rows,
)
from streamsel._kernels.scan import ROUNDING_RTOL, UNDERFLOW
from streamsel._kernels.sweep import (
    moments_of_observed_rows,
    moments_of_rows,
    moments_of_transposed_rows,
)
from streamsel._utils.numeric import two_sum
from streamsel._utils.rollback import Restore
from streamsel.data.chunks import Stats
from streamsel.serialization.invariants import (
    expect_between,
    expect_bounded,
    expect_products,
    expect_sums,
    expect_weights,
)
from streamsel.serialization.schema import (
    BoolKind,
    CountKind,
    FloatKind,
    ListKind,
    expect,
    expect_shapes,
)
from streamsel.state.base import Floats, Indices, VariableState, VariableTable, counter, zero_padded
from streamsel.targets.kernels import VariableKernel
from streamsel.targets.observation import NO_TARGET, Observation
from streamsel.targets.rows import RowTarget
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import NoTarget, Target


def batch_moments(X: Floats, w: Floats, Y: Floats, level: Floats) -> tuple[Floats, ...] | None:
    """Return the arguments of `Moments.combine` for rows X (b, m), weighted targets about `level`.

    None if a value is infinite or too large.
    """
    m, c = X.shape[1], level.size
    # The kernels need at least one target.
    Y = np.ascontiguousarray(Y.T) if c else np.zeros((1, len(X)))
    shift, mean, m2, products = X[-1].copy(), np.empty(m), np.empty(m), np.empty((len(Y), m))
    # The kernels detect too large values in other rows from the sums.
    if not np.abs(shift).max(initial=0.0) <= 0.5 * MAX_ABS_VALUE:
        is_complete = False
    elif X.flags.c_contiguous or X.strides[0] != X.itemsize:
        is_complete = moments_of_rows(_readonly_contiguous(X), w, Y, shift, mean, m2, products)
    else:
        # Data frames mostly store the values of a variable together.
        is_complete = moments_of_transposed_rows(
            _readonly_contiguous(X.T), w, Y, shift, mean, m2, products
        )
    if is_complete:
        seen, about = np.full(m, w.sum()), np.empty((m, c))
        about[:] = level
    else:
        rows = _readonly_contiguous(X)
        if any_too_large(rows.reshape(-1)):
            return None
        seen, means = np.empty(m), np.empty((len(Y), m))
        moments_of_observed_rows(rows, w, Y, seen, shift, mean, m2, products, means)
        about = means[:c].T + level
    return seen, shift, mean, m2, np.ascontiguousarray(products[:c].T), about


def _readonly_contiguous(X: Floats) -> Floats:
    """Return an array as the kernels require it: C-contiguous and read-only."""
    X = np.ascontiguousarray(X).view()
    X.flags.writeable = False
    return X


LINEAR = VariableKernel()

# Columns of the field "own", in the order of the kernels.
SHIFT, SEEN, MEAN, M2, UNTIL, _ARRIVAL = range(6)
# Fields of a variable, in the order of the kernels.
_FIELDS = ("own", "cross", "about", "last")
# Weights are divided by a power of two, which causes no rounding, once a row weighs more.
_MAX_ROW_WEIGHT = 1024.0
# Maximum number of rows per piece, for numerical accuracy.
_MAX_PIECE_ROWS = 8192
# A row that is never reached.
NEVER = math.inf


class Moments(VariableState):
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
        The following numbers, in the layout of `row_moments.learn_row`.
    rows
        Rows seen.
    total
        Their weight, in units of `unit`; relative to the newest row it is `n`.
    unit
        The weight of the newest row.
    squares
        The sum of the squared weights.
    table
        The variables in order of arrival, in the layout of `row_moments.learn_row`: `own` (shift,
        weight of the rows that observed it, mean about the shift, sum of squares, weight of all
        rows up to its last, row of arrival), `cross`, `about` and `last`, (c,) each.
    target_moments
        (1 + c, c) means of the target about its origin, and its sums of products.
    """

    changing = (
        "target",
        "counts",
        "table",
        "target_moments",
        "_complete",
        "_space",
        "before_arrival",
    )

    rows: int = counter(ROWS, int)
    total: float = counter(TOTAL)
    unit: float = counter(UNIT)
    squares: float = counter(SQUARES)

    def __init__(
        self, fading_factor: float, target: RowTarget, kernel: VariableKernel = LINEAR
    ) -> None:
        self.fading_factor = fading_factor
        self.target = target
        self.kernel = kernel
        self.counts: Floats = np.array([0.0, 0.0, 1.0, 0.0, -1.0, 1.0 - fading_factor, 0.0])
        c = len(target)
        self.table = VariableTable(fields(c))
        self.target_moments: Floats = np.zeros((1 + c, c))
        self._complete = True
        # Cached target space, and the number of rows for which it is valid.
        self._space: tuple[int, TargetSpace] | None = None
        # Weight, and target means, of the rows in which a new variable counts as not observed.
        self.before_arrival: Floats = np.zeros(1 + c)

    def continue_from(self, target: Target | NoTarget) -> None:
        """Continue from n rows learnt as columns; no row or variable has been learnt yet.

        Weighted rows count n in all, because only the ratios of weights matter.
        """
        self.rows = target.n
        self.total = float(target.n)
        self.squares = self.total * (self.total / target.effective_rows)
        if isinstance(target, Target):
            self.target = RowTarget.from_target(target, self.target.kind)
            c = len(self.target)
            self.table = VariableTable(fields(c))
            self.target_moments = np.vstack([target.low, target.cyy])
            self.before_arrival = np.zeros(1 + c)
        else:
            self.target.form = NO_TARGET

    def add_column_moments(self, names: Iterable[Hashable], stats: Stats) -> None:
        """Add variables that all rows so far named, with their moments over these."""
        p = len(stats.m2)
        own = np.zeros((p, 6))
        own[:, SHIFT], own[:, MEAN], own[:, M2] = stats.mean, stats.mean_error, stats.m2
        own[:, SEEN] = own[:, UNTIL] = self.total
        means = np.tile(self.target_moments[0], (p, 1))
        self.table.append(names, own=own, cross=stats.cxy, about=means, last=means)

    def note_discard(self) -> None:
        """Record that variables were discarded: a new name may be one of them."""
        self._complete = False
        self.before_arrival = np.append(self.total, self.target_moments[0])

    # Learning

    def admit(self, names: Sequence[Hashable]) -> None:
        """Add new variables, which were 0 before this row."""
        p, c = len(names), len(self.target)
        own = np.zeros((p, 6))
        own[:, UNTIL], own[:, _ARRIVAL] = self.before_arrival[0], self.rows
        zeros = np.zeros((p, c))
        last = np.tile(self.before_arrival[1:], (p, 1))
        self.table.append(names, own=own, cross=zeros, about=zeros, last=last)

    def admit_targets(self, seen: Observation) -> None:
        """Add new target columns, which were 0 before this row."""
        before = len(self.target)
        self._space = None
        self.target.add_columns(seen)
        c = len(self.target)
        if c == before:
            return
        self.target_moments = zero_padded(zero_padded(self.target_moments, 1 + c).T, c).T.copy()
        self.before_arrival = zero_padded(self.before_arrival, 1 + c)
        table = VariableTable(fields(c))
        rows = {field: self.table[field] for field in table.fields}
        for field in ("cross", "about", "last"):
            rows[field] = zero_padded(rows[field].T, table.fields[field][0]).T
        table.append(self.table.index_of, **rows)
        self.table = table

    def learn_one(
        self,
        values: Floats,
        indices: Indices,
        y: Floats,
        weight: float = 1.0,
        refuse: int = REFUSE_NONE,
    ) -> int:
        """Learn a row; return 0, or the reason why it was refused, as `row_moments.learn_row` does.

        Parameters
        ----------
        values, indices
            (m,) values, NaN if missing, and indices of their variables in the table.
        y
            (c,) target columns, about their origin.
        weight
            Weight of the row, relative to 1 for any other.
        refuse
            Kinds of rows to refuse.
        """
        # Arrays with their spare capacity: creating views would cost as much as the row itself.
        status: int = learn_row(
            values,
            indices,
            y,
            weight,
            refuse,
            self.counts,
            *self.table.all_with_capacity(),
            self.target_moments,
        )
        return status

    @property
    def maintenance_due(self) -> float:
        """The number of the row from which maintenance may be due."""
        return float(self.counts[DUE])

    def set_maintenance_due(self, due: float) -> None:
        """Set `maintenance_due`, which is 0 before."""
        self.counts[DUE] = due

    def _arrays(self) -> tuple[Floats, ...]:
        return tuple(self.table[field] for field in _FIELDS)

    def _next_weight(self) -> float:
        return self.unit / (1.0 - self.fading_factor) if self.rows else 1.0

    @property
    def rows_until_rescale(self) -> float:
        """The minimum number of rows before `recentre` has work to do."""
        if self.fading_factor == 0.0:
            return NEVER
        return math.floor(math.log(_MAX_ROW_WEIGHT / self.unit) / -math.log1p(-self.fading_factor))

    def recentre(self) -> None:
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
        self.target_moments[1:] *= factor
        self.before_arrival[0] *= factor

    def detach(self) -> None:
        """Copy the arrays that compiled loops write into, so that a snapshot keeps the old ones."""
        self.table.detach()
        self.counts, self.target_moments = self.counts.copy(), self.target_moments.copy()
        self.before_arrival = self.before_arrival.copy()

    def undo_row(self, indices: Indices) -> Restore:
        """Return a function that undoes rows of these variables, however often it is called.

        It is cheaper than `detach`, for rows that name few of the variables.
        """
        known = indices[indices < len(self.table)]
        arrays = (*self.table.all_with_capacity(), self.counts, self.target_moments)
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
        moved = self.target_moments[0].copy()
        origin, remainder = two_sum(np.asarray(self.target.shift), moved)
        self.target.shift = origin.tolist()
        self.target_moments[0] = remainder
        for means in (self.table["about"], self.table["last"], self.before_arrival[1:]):
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
        self, X: Floats, indices: Indices, Y: Floats, weights: Floats | None = None
    ) -> bool:
        """Learn a piece of rows at once; return False if a value is infinite or too large."""
        sums = self.batch_sums(X, indices, Y, weights)
        if sums is None:
            return False
        self.add_sums(sums)
        return True

    def add_sums(self, found: tuple[Any, ...]) -> None:
        """Learn the rows summarised by `batch_sums`, in one step."""
        learn_row_moments(*found, self.counts, *self.table.all_with_capacity(), self.target_moments)

    def batch_sums(
        self, X: Floats, indices: Indices, Y: Floats, weights: Floats | None = None
    ) -> tuple[Any, ...] | None:
        """Return the sums over a piece of rows for `add_sums` (Chan, Golub and LeVeque 1979).

        Parameters
        ----------
        X, indices
            (b, m) values, NaN if missing, and the indices of the columns.
        Y
            (b, c) target columns.
        weights
            (b,) weights of the rows; None for equal ones.

        Returns
        -------
        None if a value is infinite or too large.
        """
        Y = Y - self.target.shift
        w = self.weights(len(X))
        unit = float(w[-1])
        if weights is not None:
            w = w * weights
        weight = float(w.sum())
        level = w @ Y / weight
        Y -= level
        weighted = w[:, None] * Y if self.fading_factor or weights is not None else Y
        found = batch_moments(X, w, weighted, level)
        if found is None:
            return None
        of_rows = (len(X), unit, weight, float(w @ w))
        return (*of_rows, indices, *found, level, np.ascontiguousarray(weighted.T @ Y))

    def add_zeros(self, indices: Indices) -> None:
        """Add zeros for the rows since each variable's last one."""
        add_unnamed_rows(indices, *self._arrays(), self.total, self.target_moments[0])

    def combine(
        self,
        indices: Indices,
        seen: Floats,
        shift: Floats,
        mean: Floats,
        m2: Floats,
        cross: Floats,
        about: Floats,
    ) -> None:
        """Add the variables' moments over other rows, of the weight `seen` (Chan 1979)."""
        merge_moments(indices, seen, shift, mean, m2, cross, about, *self._arrays()[:3])

    def combine_target(self, weight: float, mean: Floats, cyy: Floats) -> None:
        """Add the target's moments over other rows of this weight; `total` is not changed."""
        self._space = None
        total = self.total + weight
        difference = mean - self.target_moments[0]
        self.target_moments[1:] += cyy + difference[:, None] * difference * (
            self.total * weight / total
        )
        self.target_moments[0] += difference * (weight / total)

    # Results

    @property
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""
        return self._complete

    def stats(self, indices: Indices | None = None) -> Stats:
        """Return the moments of variables over all rows; of all variables if `indices` is None.

        The newest row has weight 1.
        """
        table, p = self.table, len(self.table)
        arrays = table.all_with_capacity()
        if indices is not None:
            arrays, p = [array[indices] for array in arrays], len(indices)
        mean, m2, cxy = np.empty(p), np.empty(p), np.empty((p, len(self.target_moments[0])))
        weights = (self.target_moments[0], self.total, self.unit)
        moments_over_all_rows(*arrays, *weights, ROUNDING_RTOL, UNDERFLOW, mean, m2, cxy)
        return Stats(mean, np.zeros(p), m2, cxy)

    def mean_of(self, index: int) -> float:
        """Return the mean of a variable over all rows, as in `stats`; 0 if never observed."""
        shift, seen, mean, _, until, _ = self.table["own"][index].tolist()
        gap = self.total - until
        weight = seen + gap
        return float(shift + mean - (shift + mean) * (gap / weight)) if weight else 0.0

    def observed_weights(self) -> Floats:
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
        cyy = self.target_moments[1:] / self.unit
        level = self.target_moments[0] + np.asarray(self.target.shift)
        squares = np.diag(cyy)
        is_constant = squares <= (ROUNDING_RTOL * level) ** 2 * self.n
        if is_constant.any():
            cyy[is_constant] = 0.0
            cyy[:, is_constant] = 0.0
        is_covariate = self.target.is_covariate() if self.target.covariates else None
        return TargetSpace(cyy, self.n, self.kernel, is_covariate)

    def _space_of_one_column(self) -> TargetSpace:
        """Return the target space of a single column, faster: it is needed after every row."""
        square, level = float(self.target_moments[1, 0]) / self.unit, self.target_moments[0, 0]
        rounding = ROUNDING_RTOL * (float(level) + self.target.shift[0])
        if square <= rounding * rounding * self.n:
            square = 0.0
        return TargetSpace(np.array([[square]]), self.n, self.kernel, None)

    @property
    def arrival_rows(self) -> Floats:
        """The row of arrival of each variable."""
        return self.table["own"][:, _ARRIVAL]

    def keep_only(self, kept: Indices) -> None:
        """Discard all variables but these, given in ascending order."""
        self._complete = False
        self.table.keep(kept)

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, such as those of a corrupt file."""
        own, c = self.table["own"], len(self.target)
        expect_weights(self.total, self.unit, self.squares, self.rows)
        expect_between("weights of rows", own[:, [SEEN, UNTIL]], 0.0, self.total * (1.0 + 1e-6))
        expect_bounded("means", own[:, SHIFT], own[:, MEAN], self.target_moments[:1])
        expect_bounded("means", self.table["about"], self.table["last"], self.before_arrival)
        expect_sums("moments", own[:, M2], self.table["cross"])
        expect_between("rows", own[:, _ARRIVAL], 0.0, float(self.rows))
        if c:
            expect_products(self.target_moments[1:], "targets")

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {
            "rows": self.rows,
            "weights": [self.total, self.unit, self.squares],
            "complete": self._complete,
            "target": self.target.to_state(),
            "of_target": self.target_moments,
            "forgotten": self.before_arrival,
            "table": self.table.to_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, rows=CountKind(), weights=ListKind(3, FloatKind(0.0)), complete=BoolKind())
        self.target.set_state(state["target"])
        c = len(self.target)
        expect_shapes(state, of_target=(1 + c, c), forgotten=(1 + c,))
        self.rows = state["rows"]
        if self.rows:
            self.target.disable_code_warning()
        self.counts[[TOTAL, UNIT, SQUARES]] = state["weights"]
        self._complete = state["complete"]
        self.target_moments = np.array(state["of_target"])
        # A mean lies between values, which are bounded.
        if not (np.abs(self.target_moments[:1]) <= 2.0 * MAX_ABS_VALUE).all():
            raise ValueError(
                "Expected means of the target in the range of valid values. Got: larger ones."
            )
        self.before_arrival = np.array(state["forgotten"])
        self.table = VariableTable.from_state(state["table"], fields(c))


def fields(c: int) -> dict[str, tuple[int, ...]]:
    """Return the fields of a variable, and their shapes, for c target columns."""
    return dict(zip(_FIELDS, ((6,), (c,), (c,), (c,)), strict=True))
