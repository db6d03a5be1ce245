"""Online factorisation on rows: loadings of the tracked variables, which may change."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from streamsel._kernels.row_moments import MAX_ABS_VALUE
from streamsel._utils.rollback import Restore
from streamsel.serialization.invariants import (
    expect_between,
    expect_bounded,
    expect_products,
    expect_sums,
    expect_totals,
)
from streamsel.serialization.schema import ArrayKind, CountKind, ListKind, expect, expect_shapes
from streamsel.state.base import ColumnState, Floats, Indices, VariableTable
from streamsel.state.factorization.model import Coder, Codes, FactorModel, solve_components, whiten
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import (
    MergeAxis,
    RowExtension,
    Steps,
    replace_attributes,
    run_steps,
)
from streamsel.targets.target import NoTarget, Target

# Number of rows in the first batch; each later batch is as long as all before it, up to `width`.
_FIRST = 8
# Directions whose length is below this fraction of the largest are not tracked. They restart from
# random loadings, of this many times the length of the noise.
_RANK_RTOL, _RESTART_SCALE = 1e-6, 2.0
# A sum of squares below this fraction of the uncentred sum is rounding.
_ZERO_RTOL = 1e-13

_VECTOR_FIELDS, _SCALAR_FIELDS = (
    ("V", "B", "sum_of_codes"),
    ("squares", "shift", "sum", "sum_of_squares", "spread", "off"),
)


class Refreshed(NamedTuple):
    """Result of taking the current batch into the factorisation.

    Parameters
    ----------
    fit
        Loadings, (m, q), in the place of the components, and the sums that they maximise.
    squares, spread
        (m,) weighted sums of squares, and the typical absolute residual of each variable.
    """

    fit: FactorModel
    squares: Floats
    spread: Floats


class RowFactorization(RowExtension):
    """Online factorisation x ≈ V z of rows: loadings V of tracked variables, and sums over rows.

    Rows are coded with the current loadings, about the means at the start of the batch, and only
    sums are kept. At the end of a batch, the sums are moved to the current means and the loadings
    are refreshed. A new variable was 0 in all earlier rows.

    Parameters
    ----------
    q
        Number of components.
    width
        Largest number of rows in a batch.
    code
        How the method codes a row.
    random
        Names -> random initial loadings, (m, q).

    Attributes
    ----------
    table
        The variables, in the order of the moments: V; B, Σ x zᵀ; `squares`, their expected sums of
        squares; `spread`, their typical absolute residual. For the batch, about `shift`: sums of
        codes times values, of values, of squares, and of absolute residuals (`off`).
    A, noise, weight
        Σ z zᵀ, the residual variance, and the weight of the rows in these sums.
    code_products, sum_of_codes, batch_weight
        For the batch: Σ z zᵀ, Σ z, and its weight.
    rows, batch_start, batch_end
        Number of rows learnt, number before the batch, and number at which the batch is full.
    """

    changing = (
        *("table", "A", "noise", "weight", "rows", "batch_start", "batch_end"),
        *(
            "code_products",
            "sum_of_codes",
            "batch_weight",
            "_new",
            "_seen_index",
            "_in_use",
            "_steps",
        ),
    )
    merges_along: ClassVar[frozenset[MergeAxis]] = frozenset({"rows"})
    needs_preparation = True

    def __init__(
        self, q: int, width: int, code: Coder, random: Callable[[Sequence[Hashable]], Floats]
    ) -> None:
        self.q, self.width = q, width
        self._code, self._random = code, random
        fields: dict[str, tuple[int, ...]] = {}
        fields |= dict.fromkeys(_VECTOR_FIELDS, (q,))
        fields |= dict.fromkeys(_SCALAR_FIELDS, ())
        self.table = VariableTable(fields)
        self.A: Floats = np.zeros((q, q))
        self.noise = self.weight = 0.0
        self.rows, self.batch_start, self.batch_end = 0, 0, _FIRST
        self._empty_batch()
        # Variables whose first values arrive with the next row.
        self._new: list[Hashable] = []
        # Loadings for coding; None after a change, then recomputed.
        self._in_use: Floats | None = None
        # Assignments that complete a prepared row.
        self._steps: Steps = ()
        self._seen_index: Any = None

    def _empty_batch(self) -> None:
        self.code_products: Floats = np.zeros((self.q, self.q))
        self.sum_of_codes: Floats = np.zeros(self.q)
        self.batch_weight = 0.0
        for field in ("sum_of_codes", "sum", "sum_of_squares", "off"):
            self.table[field][:] = 0.0

    def start_from_columns(
        self, names: Sequence[Hashable], means: Floats, V: Floats, A: Floats, fit: FactorModel
    ) -> None:
        """Continue from loadings learnt on columns, of components with inner products A.

        Parameters
        ----------
        names, means, V, A
            Variables, their means, their loadings, (m, q), and Σ z zᵀ over the rows.
        fit
            The fit on columns; its noise is in units of its `unit`.
        """
        n = len(fit.D)
        self.A, self.weight = A, float(n)
        self.noise = fit.noise * fit.unit * fit.unit
        squares = np.square(V @ A).sum(axis=1) / n + n * self.noise
        spread = np.sqrt(self.noise)
        self._append(names, V=V, B=V @ A, squares=squares, spread=spread, shift=means)
        self._begin_batch(n)

    starts_from_columns: ClassVar[bool] = True

    def start(
        self,
        columns: ColumnState | None,  # noqa: ARG002
        target: Target | NoTarget | None,  # noqa: ARG002
        moments: Moments,
    ) -> None:
        """Track the variables of the columns that have no loadings, as they were constant."""
        self.follow(moments)

    def _append(self, names: Sequence[Hashable], **values: Any) -> None:
        m = len(names)
        rows = {field: np.zeros((m, *shape)) for field, shape in self.table.fields.items()}
        for field, array in values.items():
            rows[field][:] = array
        self.table.append(names, **rows)
        self._in_use = None

    # Added and discarded variables

    def add_variables(self, names: list[Hashable], moments: Moments) -> None:
        """Add variables that first appear in the next row; other indices may have changed."""
        # A new name may be one that was discarded just before.
        self._seen_index = None
        self._drop(moments, names)
        self._append(names)
        self._new = [*self._new, *names]
        self._seen_index = moments.table.index_of

    def _drop(self, moments: Moments, new: Collection[Hashable] = ()) -> None:
        """Drop discarded variables; the names in `new` denote new variables."""
        index_of = moments.table.index_of
        if index_of is self._seen_index:
            return
        names = self.table.names
        kept = index_of.keys() - set(new)
        if not kept >= self.table.index_of.keys():
            self.table.keep([i for i, name in enumerate(names) if name in kept])
            self._new = [name for name in self._new if name in index_of]
            self._in_use = None
        self._seen_index = index_of

    def follow(self, moments: Moments) -> None:
        """Drop discarded variables, and add those that did not come with a row."""
        self._drop(moments)
        index_of = moments.table.index_of
        new = [name for name in moments.table.names if name not in self.table.index_of]
        if new:
            shift = moments.stats(np.array([index_of[name] for name in new], dtype=np.intp)).mean
            self._append(new, shift=shift)
        if self.table.names != moments.table.names:
            order = [self.table.index_of[name] for name in moments.table.names]
            rows = {field: self.table[field][order] for field in self.table.fields}
            self.table = VariableTable(self.table.fields)
            self.table.append(moments.table.names, **rows)
            self._in_use = None

    def protected(self) -> Collection[Hashable]:
        """Return the names that must not be discarded."""
        return ()

    # Learning

    def prepare_new(self, X: Floats, indices: Indices, moments: Moments) -> None:
        """Initialise variables that first appear in the rows (b, m)."""
        if moments.table.index_of is not self._seen_index:
            self.follow(moments)
        if self._new:
            self._start_new(X[0], indices)

    def prepare_one(
        self, values: Floats, indices: Indices, y: Floats, moments: Moments, w: float
    ) -> None:
        """Prepare learning a row, which may fail; do nothing for a row that the moments refuse."""
        if (np.abs(values) > MAX_ABS_VALUE).any():
            self._steps = ()
        else:
            self._steps = self.prepare_many(values[None], indices, y, moments, np.array([w]))

    def learn_one(
        self,
        values: Floats,  # noqa: ARG002
        indices: Indices,  # noqa: ARG002
        y: Floats,  # noqa: ARG002
        moments: Moments,  # noqa: ARG002
        w: float,  # noqa: ARG002
    ) -> None:
        """Learn the prepared row, if it is not learnt yet."""
        run_steps(self._steps)

    def prepare_many(
        self,
        X: Floats,
        indices: Indices,
        Y: Floats,  # noqa: ARG002
        moments: Moments,
        w: Floats | None,
    ) -> Steps:
        """Return the steps that learn rows."""
        shift = self.table["shift"]
        U = np.broadcast_to(-shift, (len(X), shift.size)).copy()
        U[:, indices] = X - shift[indices]
        fading = 1.0 - moments.fading_factor
        weights = fading ** np.arange(len(X) - 1.0, -1.0, -1.0)
        if w is not None:
            weights = weights * w
        coded = self._coded(U, weights)
        keep = fading ** len(X)
        outlying = np.zeros(shift.size)
        if coded.outliers is not None:
            residuals = U - coded.outliers - coded.codes @ self._loadings().T
            outlying = weights @ np.abs(np.nan_to_num(residuals, nan=0.0))
        gains = {
            "sum_of_codes": coded.B,
            "sum": weights @ coded.values,
            "sum_of_squares": coded.squares,
            "off": outlying,
        }
        faded = (*gains, "B", "squares") if keep < 1.0 else tuple(gains)
        table = self.table.with_empty_fields(faded)
        for field in faded:
            np.multiply(self.table[field], keep, out=table[field])
            if field in gains:
                table[field][:] += gains[field]
        attributes = {
            "table": table,
            "code_products": keep * self.code_products + coded.A,
            "sum_of_codes": keep * self.sum_of_codes + weights @ coded.codes,
            "batch_weight": keep * self.batch_weight + float(weights.sum()),
            "A": keep * self.A,
            "weight": self.weight * keep,
            "rows": self.rows + len(X),
        }
        return replace_attributes(self, moments, attributes)

    def detach(self) -> None:
        """Copy the arrays of the variables, because a refresh writes into them."""
        self.table.detach()

    def undo_row(self, indices: Indices) -> Restore | None:  # noqa: ARG002
        """Return a function that undoes a row, if one is needed."""
        self.detach()
        return None

    def _start_new(self, first: Floats, index_of: Indices) -> None:
        """Centre new variables at their first values, accounting for zeros in the rows before."""
        names, self._new = self._new, []
        index_in_row = {index: i for i, index in enumerate(index_of.tolist())}
        indices = np.array([self.table.index_of[name] for name in names], dtype=np.intp)
        shift = np.array(
            [first[index_in_row[j]] if j in index_in_row else 0.0 for j in indices.tolist()]
        )
        shift[np.isnan(shift)] = 0.0
        self.table["shift"][indices] = shift
        self.table["sum"][indices] = -shift * self.batch_weight
        self.table["sum_of_squares"][indices] = np.square(shift) * self.batch_weight
        self.table["sum_of_codes"][indices] = -shift[:, None] * self.sum_of_codes

    def _coded(self, U: Floats, weights: Floats) -> Codes:
        if not self.weight:
            # No loadings are learnt yet: codes are random projections.
            U = np.nan_to_num(U, nan=0.0)
            codes = U @ self._loadings()
            weighted = codes * weights[:, None]
            squares = weights @ np.square(U)
            return Codes(codes, weighted.T @ codes, U.T @ weighted, squares, U)
        fit = self._fit(self._loadings(), self.table["B"], self.table["squares"])
        return self._code.encode_rows(fit, U, self.table["spread"], weights)

    def _fit(self, D: Floats, B: Floats, squares: Floats) -> FactorModel:
        total = float(squares.sum())
        return FactorModel(D, self.A, B, total, self.weight, self.noise, 1.0, self.rows, 0.0)

    def _loadings(self) -> Floats:
        """Return the loadings for coding; untracked directions are random."""
        if self._in_use is None:
            V = self.table["V"]
            _, spread, Rt = np.linalg.svd(V)
            spread = np.append(spread, np.zeros(self.q - spread.size))
            untracked = Rt[~(spread > _RANK_RTOL * spread.max(initial=0.0))]
            self._in_use = V
            if len(untracked) and len(V):
                random = self._random(self.table.names)
                scale = _RESTART_SCALE * np.sqrt(self.noise / len(V)) if self.weight else 1.0
                self._in_use = V + scale * (random @ untracked.T) @ untracked
        return self._in_use

    # Refresh

    def rows_until_refresh(self, moments: Moments) -> int:  # noqa: ARG002
        """Return the number of rows until the batch is full."""
        return self.batch_end - self.rows

    def refresh_if_due(self, moments: Moments) -> None:
        """Refresh the loadings if the batch is full."""
        if self.rows >= self.batch_end:
            self.refresh(moments)

    def refresh(self, moments: Moments) -> None:
        """Take in the rows of the batch, and refresh the loadings."""
        self.follow(moments)
        means = moments.stats().mean
        self._take(self.refreshed(means), means)

    def _take(self, result: Refreshed, means: Floats) -> None:
        fit, squares, spread = result
        self.A, self.noise, self.weight = fit.A, fit.noise, fit.weight
        self.table["V"][:], self.table["B"][:] = fit.D, fit.B
        self.table["squares"][:], self.table["spread"][:] = squares, spread
        self.table["shift"][:] = means
        self._empty_batch()
        self._in_use = None
        self._begin_batch(self.rows)

    def _begin_batch(self, rows: int) -> None:
        self.rows = self.batch_start = rows
        self.batch_end = rows + min(self.width, max(_FIRST, rows))

    def refreshed(self, means: Floats) -> Refreshed:
        """Return the result of a refresh at this point, given the means (m,) of the variables."""
        table = self.table
        squares, B = table["squares"], table["B"]
        if not self.batch_weight:
            return Refreshed(self._fit(table["V"], B, squares), squares, table["spread"])
        # Shift the sums to the current means, and the codes accordingly.
        moved = means - table["shift"]
        to_codes = self._coding_matrix()
        code, n = moved @ to_codes, self.batch_weight
        of_codes = (
            self.code_products
            - np.outer(self.sum_of_codes, code)
            - np.outer(code, self.sum_of_codes)
        )
        of_codes = of_codes + n * np.outer(code, code)
        products = table["sum_of_codes"] - np.outer(table["sum"], code)
        products = products - np.outer(moved, self.sum_of_codes - n * code)
        gain = table["sum_of_squares"] - moved * (2.0 * table["sum"] - n * moved)
        gain = np.where(gain > _ZERO_RTOL * table["sum_of_squares"], gain, 0.0)
        # Early codes count less, as on columns.
        keep = np.sqrt(self.batch_start / self.rows)
        all_squares = keep * squares + gain
        weight = keep * self.weight + n
        fit = FactorModel(
            D=table["V"],
            A=keep * self.A + of_codes,
            B=keep * B + products,
            squares=float(all_squares.sum()),
            weight=weight,
            noise=self.noise,
            unit=1.0,
            columns=self.rows,
            n_outliers=0.0,
        )
        if not fit.squares > 0.0:
            return Refreshed(self._fit(table["V"], B, squares), squares, table["spread"])
        if not self.weight:
            fit = whiten(fit)
            spread = np.sqrt(all_squares / weight)
        else:
            spread = (keep * self.weight * table["spread"] + table["off"]) / weight
        return Refreshed(self._code.update_rows(fit), all_squares, spread)

    def _coding_matrix(self) -> Floats:
        """Return the matrix from values to codes, (m, q), ignoring outliers and gaps."""
        V = self._loadings()
        if not self.weight:
            return V
        noise = max(self.noise, np.finfo(float).tiny)
        return solve_components(V.T @ V + noise * np.eye(self.q), V.T).T

    # Merging

    def before_merge(self, theirs: Self, along: MergeAxis) -> None:
        """Do nothing before a merge: no variable needs protection."""

    def after_merge(
        self,
        theirs: Self,
        along: MergeAxis,  # noqa: ARG002
        moments: Moments,
        others: Moments,  # noqa: ARG002
    ) -> None:
        """Merge the rows of both, approximating the other's rows by its factorisation."""
        theirs = copy.deepcopy(theirs)
        for one in (self, theirs):
            one._take_in_batch()
        before = dict(zip(self.table.names, self.table["shift"].tolist(), strict=True))
        self.follow(moments)
        names, rows = self.table.names, self.rows + theirs.rows
        fields = theirs._fields_of(names)
        if not self.weight:
            for field in ("V", "B", "squares", "spread"):
                self.table[field][:] = fields[field]
            self.A, self.noise, self.weight = theirs.A, theirs.noise, theirs.weight
        elif theirs.weight:
            mean_shift = np.array([before.get(name, 0.0) for name in names]) - fields["shift"]
            self._add(fields, theirs, mean_shift)
        self._begin_batch(rows)
        self.table["shift"][:] = moments.stats().mean
        self._in_use = None

    def _take_in_batch(self) -> None:
        """Take in the rows of the batch, about the means of all rows learnt here."""
        means = self.table["shift"] + self.table["sum"] / max(self.weight + self.batch_weight, 1.0)
        self._take(self.refreshed(means), means)

    def _fields_of(self, names: Sequence[Hashable]) -> dict[str, Floats]:
        """Return the fields of these variables, 0 for unknown variables."""
        index_of = self.table.index_of
        is_known = np.array([name in index_of for name in names], dtype=np.bool_)
        indices = [index_of[name] for name in names if name in index_of]
        found = {}
        for field, shape in self.table.fields.items():
            found[field] = np.zeros((len(names), *shape))
            found[field][is_known] = self.table[field][indices]
        return found

    def _add(self, fields: dict[str, Floats], theirs: Self, mean_shift: Floats) -> None:
        """Add the other's rows, given by their factorisation and its residual variances.

        `mean_shift` is the difference of my means from theirs.
        """
        to_codes, V, n = self._coding_matrix(), fields["V"], theirs.weight
        residual_squares = np.maximum(
            fields["squares"] - np.einsum("ik,kl,il->i", V, theirs.A, V), 0.0
        )
        products = V @ (theirs.A @ (V.T @ to_codes)) + residual_squares[:, None] * to_codes
        between = self.weight * n / (self.weight + n)
        code = mean_shift @ to_codes
        products += between * np.outer(mean_shift, code)
        squares = self.table["squares"] + fields["squares"] + between * np.square(mean_shift)
        inner = self._loadings().T @ self._loadings() + self.noise * np.eye(self.q)
        self.A = self.A + to_codes.T @ products + n * self.noise * np.linalg.inv(inner)
        self.A = 0.5 * (self.A + self.A.T)
        self.weight += n
        fit = self._fit(self.table["V"], self.table["B"] + products, squares)
        spread = (self.weight - n) * self.table["spread"] + n * fields["spread"]
        means = self.table["shift"].copy()
        self._take(Refreshed(self._code.update_rows(fit), squares, spread / self.weight), means)

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        table = self.table
        expect_bounded("loadings", table["V"], table["shift"], table["spread"], self.sum_of_codes)
        expect_totals("sums over rows", table["sum"], table["sum_of_codes"], table["off"])
        expect_sums("sums over rows", table["B"], table["squares"], table["sum_of_squares"])
        expect_products(self.A, "codes")
        expect_products(self.code_products, "codes")
        expect_between(
            "weights", np.array([self.noise, self.weight, self.batch_weight]), 0.0, 1e300
        )

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {
            "table": self.table.to_state(),
            "A": self.A,
            "of_codes": self.code_products,
            "codes": self.sum_of_codes,
            "numbers": np.array([self.noise, self.weight, self.batch_weight]),
            "rows": [self.rows, self.batch_start, self.batch_end],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        q = self.q
        expect_shapes(state, A=(q, q), of_codes=(q, q), codes=(q,))
        expect(state, numbers=ArrayKind((3,), minimum=0.0), rows=ListKind(3, CountKind()))
        self.table = VariableTable.from_state(state["table"], self.table.fields)
        self.A, self.code_products = np.array(state["A"]), np.array(state["of_codes"])
        self.sum_of_codes = np.array(state["codes"])
        self.noise, self.weight, self.batch_weight = state["numbers"].tolist()
        self.rows, self.batch_start, self.batch_end = state["rows"]
        if not 0 <= self.batch_start <= self.rows < self.batch_end:
            raise ValueError(
                f"Expected row counts of a batch that is not full. Got: {state['rows']!r}."
            )
