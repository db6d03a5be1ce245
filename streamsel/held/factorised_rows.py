"""The online factorisation on rows: the roles swap, and variables come and go."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from streamsel._jit.rows import LARGEST
from streamsel.held.beside import Along, Beside, Steps, put, take
from streamsel.held.fit import Code, Coded, Fit, solve, whitened
from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Places
from streamsel.held.possible import (
    expect_between,
    expect_bounded,
    expect_products,
    expect_sums,
    expect_totals,
)
from streamsel.held.table import Table
from streamsel.rollback import Restore
from streamsel.shapes import Array, Count, ListOf, expect, expect_shapes

# How many rows make the first batch; each that follows is as long as all before it, up to `width`.
_FIRST = 8
# Directions of less than this part of the largest are not tracked, and are sought anew, from random
# loadings so many times as long as the noise.
_LOST, _ANEW = 1e-6, 2.0
# Of the squares of values less than this part is rounding.
_ROUNDING = 1e-13

_OF_Q, _OF_1 = (
    ("V", "B", "sum_of_codes"),
    ("squares", "shift", "sum", "sum_of_squares", "spread", "off"),
)


class Now(NamedTuple):
    """What the factorisation is when the rows of the batch are taken in.

    Parameters
    ----------
    fit
        Loadings, (m, q), for its components, and the sums that they make the most of.
    squares, spread
        (m,) weighted sums of squares, and what a variable is typically off by.
    """

    fit: Fit
    squares: Floats
    spread: Floats


class FactorisedRows(Beside):
    """x ≈ V z for every row x: loadings V of the variables tracked, and sums over the rows.

    Rows are coded on the loadings there are, about the means there were, and leave sums; after a
    batch these are taken about the means of then, and the loadings are renewed. A variable that is
    new was 0 before.

    Parameters
    ----------
    q
        Number of components.
    width
        How many rows make a batch.
    code
        What the method makes of a row.
    random
        Names -> random loadings, (m, q), to begin with.

    Attributes
    ----------
    table
        The variables, in the order of the moments'. V; B, Σ x zᵀ; their squares, as expected; what
        they are typically off by; and of the batch, about `shift`, the sums of codes times values,
        of values, and of squares. `off` is the sum of what they were off by.
    A, noise, weight
        Σ z zᵀ, the variance that the components leave, and the weight of the rows in these sums.
    of_codes, codes, batch
        Of the batch Σ z zᵀ, Σ z, and its weight.
    rows, before, until
        Rows learnt here, those before the batch, and those at which it is full.
    """

    changing = (
        *("table", "A", "noise", "weight", "rows", "before", "until"),
        *("of_codes", "codes", "batch", "_new", "_followed", "_in_use", "_steps"),
    )
    merges_along: ClassVar[frozenset[Along]] = frozenset({"rows"})
    prepares = True

    def __init__(
        self, q: int, width: int, code: Code, random: Callable[[Sequence[Hashable]], Floats]
    ) -> None:
        self.q, self.width = q, width
        self._code, self._random = code, random
        fields: dict[str, tuple[int, ...]] = {}
        fields |= dict.fromkeys(_OF_Q, (q,))
        fields |= dict.fromkeys(_OF_1, ())
        self.table = Table(fields)
        self.A: Floats = np.zeros((q, q))
        self.noise = self.weight = 0.0
        self.rows, self.before, self.until = 0, 0, _FIRST
        self._empty_batch()
        # Variables whose first values are yet to come.
        self._new: list[Hashable] = []
        # Loadings to code rows on; made anew when they have changed.
        self._in_use: Floats | None = None
        # What is to be done of a row that was prepared.
        self._steps: Steps = ()
        self._followed: Any = None

    def _empty_batch(self) -> None:
        self.of_codes: Floats = np.zeros((self.q, self.q))
        self.codes: Floats = np.zeros(self.q)
        self.batch = 0.0
        for field in ("sum_of_codes", "sum", "sum_of_squares", "off"):
            self.table[field][:] = 0.0

    def begin(
        self, names: Sequence[Hashable], means: Floats, V: Floats, A: Floats, fit: Fit
    ) -> None:
        """Go on from loadings that were learnt with columns, of components with products A.

        Parameters
        ----------
        names, means, V, A
            Variables, their means, their loadings, (m, q), and Σ z zᵀ over the rows.
        fit
            What was found; its noise is in its unit.
        """
        n = len(fit.D)
        self.A, self.weight = A, float(n)
        self.noise = fit.noise * fit.unit * fit.unit
        squares = np.square(V @ A).sum(axis=1) / n + n * self.noise
        spread = np.sqrt(self.noise)
        self._append(names, V=V, B=V @ A, squares=squares, spread=spread, shift=means)
        self._begin_batch(n)

    def _append(self, names: Sequence[Hashable], **told: Any) -> None:
        m = len(names)
        rows = {field: np.zeros((m, *shape)) for field, shape in self.table.fields.items()}
        for field, value in told.items():
            rows[field][:] = value
        self.table.append(names, **rows)
        self._in_use = None

    # Variables that come and go

    def take_up(self, names: list[Hashable], moments: Moments) -> None:
        """Note variables that come for the first time with the next row; others may have moved."""
        # A name that comes may be one that was let go just before.
        self._followed = None
        self._drop(moments, names)
        self._append(names)
        self._new = [*self._new, *names]
        self._followed = moments.table.slots

    def _drop(self, moments: Moments, new: Collection[Hashable] = ()) -> None:
        """Drop who was let go; new names are of no one held."""
        slots = moments.table.slots
        if slots is self._followed:
            return
        names = self.table.names
        stay = slots.keys() - set(new)
        if not stay >= self.table.slots.keys():
            self.table.keep([i for i, name in enumerate(names) if name in stay])
            self._new = [name for name in self._new if name in slots]
            self._in_use = None
        self._followed = slots

    def follow(self, moments: Moments) -> None:
        """Drop who was let go, and take up who came otherwise than with a row."""
        self._drop(moments)
        slots = moments.table.slots
        new = [name for name in moments.table.names if name not in self.table.slots]
        if new:
            shift = moments.stats(np.array([slots[name] for name in new], dtype=np.intp)).mean
            self._append(new, shift=shift)
        if self.table.names != moments.table.names:
            order = [self.table.slots[name] for name in moments.table.names]
            rows = {field: self.table[field][order] for field in self.table.fields}
            self.table = Table(self.table.fields)
            self.table.append(moments.table.names, **rows)
            self._in_use = None

    def protected(self) -> Collection[Hashable]:
        """Return the names that must not be let go."""
        return ()

    # Learning

    def make_ready(self, X: Floats, slots: Places, moments: Moments) -> None:
        """Take up what rows, (b, m), bring for the first time."""
        if moments.table.slots is not self._followed:
            self.follow(moments)
        if self._new:
            self._meet(X[0], slots)

    def prepare_one(
        self, values: Floats, slots: Places, y: Floats, moments: Moments, w: float
    ) -> None:
        """Do what can fail of learning a row; of one that the moments will refuse, nothing."""
        if (np.abs(values) > LARGEST).any():
            self._steps = ()
        else:
            self._steps = self.prepare_many(values[None], slots, y, moments, np.array([w]))

    def learn_one(
        self,
        values: Floats,  # noqa: ARG002
        slots: Places,  # noqa: ARG002
        y: Floats,  # noqa: ARG002
        moments: Moments,  # noqa: ARG002
        w: float,  # noqa: ARG002
    ) -> None:
        """Learn the row that was prepared, unless that was done."""
        take(self._steps)

    def prepare_many(
        self,
        X: Floats,
        slots: Places,
        Y: Floats,  # noqa: ARG002
        moments: Moments,
        w: Floats | None,
    ) -> Steps:
        """Return the steps of learning rows."""
        shift = self.table["shift"]
        U = np.broadcast_to(-shift, (len(X), shift.size)).copy()
        U[:, slots] = X - shift[slots]
        fading = 1.0 - moments.fading_factor
        weights = fading ** np.arange(len(X) - 1.0, -1.0, -1.0)
        if w is not None:
            weights = weights * w
        coded = self._coded(U, weights)
        keep = fading ** len(X)
        off = np.zeros(shift.size)
        if coded.off is not None:
            left = U - coded.off - coded.codes @ self._loadings().T
            off = weights @ np.abs(np.nan_to_num(left, nan=0.0))
        gains = {
            "sum_of_codes": coded.B,
            "sum": weights @ coded.values,
            "sum_of_squares": coded.squares,
            "off": off,
        }
        faded = (*gains, "B", "squares") if keep < 1.0 else tuple(gains)
        table = self.table.with_new(faded)
        for field in faded:
            np.multiply(self.table[field], keep, out=table[field])
            if field in gains:
                table[field][:] += gains[field]
        attributes = {
            "table": table,
            "of_codes": keep * self.of_codes + coded.A,
            "codes": keep * self.codes + weights @ coded.codes,
            "batch": keep * self.batch + float(weights.sum()),
            "A": keep * self.A,
            "weight": self.weight * keep,
            "rows": self.rows + len(X),
        }
        return put(self, moments, attributes)

    def detach(self) -> None:
        """Replace the arrays of the variables by copies: a renewal writes into them."""
        self.table.detach()

    def saved(self, slots: Places) -> Restore | None:  # noqa: ARG002
        """Return what undoes a row."""
        self.detach()
        return None

    def _meet(self, first: Floats, slots: Places) -> None:
        """Take values of newcomers about the first, and note that they were 0 before it."""
        names, self._new = self._new, []
        at = {slot: i for i, slot in enumerate(slots.tolist())}
        places = np.array([self.table.slots[name] for name in names], dtype=np.intp)
        shift = np.array([first[at[place]] if place in at else 0.0 for place in places.tolist()])
        shift[np.isnan(shift)] = 0.0
        self.table["shift"][places] = shift
        self.table["sum"][places] = -shift * self.batch
        self.table["sum_of_squares"][places] = np.square(shift) * self.batch
        self.table["sum_of_codes"][places] = -shift[:, None] * self.codes

    def _coded(self, U: Floats, weights: Floats) -> Coded:
        if not self.weight:
            # Nothing is known but names: random sums of the values.
            U = np.nan_to_num(U, nan=0.0)
            codes = U @ self._loadings()
            weighted = codes * weights[:, None]
            squares = weights @ np.square(U)
            return Coded(codes, weighted.T @ codes, U.T @ weighted, squares, U)
        fit = self._fit(self._loadings(), self.table["B"], self.table["squares"])
        return self._code.encode_rows(fit, U, self.table["spread"], weights)

    def _fit(self, D: Floats, B: Floats, squares: Floats) -> Fit:
        total = float(squares.sum())
        return Fit(D, self.A, B, total, self.weight, self.noise, 1.0, self.rows, 0.0)

    def _loadings(self) -> Floats:
        """Return what rows are coded on: random loadings where a direction is not tracked."""
        if self._in_use is None:
            V = self.table["V"]
            _, spread, Rt = np.linalg.svd(V)
            spread = np.append(spread, np.zeros(self.q - spread.size))
            lost = Rt[~(spread > _LOST * spread.max(initial=0.0))]
            self._in_use = V
            if len(lost) and len(V):
                random = self._random(self.table.names)
                scale = _ANEW * np.sqrt(self.noise / len(V)) if self.weight else 1.0
                self._in_use = V + scale * (random @ lost.T) @ lost
        return self._in_use

    # The renewal

    def until_refresh(self, moments: Moments) -> int:  # noqa: ARG002
        """Return how many rows are left before the batch is full."""
        return self.until - self.rows

    def refresh_if_due(self, moments: Moments) -> None:
        """Renew the loadings when the batch is full."""
        if self.rows >= self.until:
            self.refresh(moments)

    def refresh(self, moments: Moments) -> None:
        """Take in the rows of the batch, and renew the loadings."""
        self.follow(moments)
        means = moments.stats().mean
        self._take(self.now(means), means)

    def _take(self, now: Now, means: Floats) -> None:
        fit, squares, spread = now
        self.A, self.noise, self.weight = fit.A, fit.noise, fit.weight
        self.table["V"][:], self.table["B"][:] = fit.D, fit.B
        self.table["squares"][:], self.table["spread"][:] = squares, spread
        self.table["shift"][:] = means
        self._empty_batch()
        self._in_use = None
        self._begin_batch(self.rows)

    def _begin_batch(self, rows: int) -> None:
        self.rows = self.before = rows
        self.until = rows + min(self.width, max(_FIRST, rows))

    def now(self, means: Floats) -> Now:
        """Return what a renewal would find now, (m,) being the means of the variables."""
        table = self.table
        squares, B = table["squares"], table["B"]
        if not self.batch:
            return Now(self._fit(table["V"], B, squares), squares, table["spread"])
        # The rows about the means of now, and codes about what these are coded as.
        moved = means - table["shift"]
        turn = self._turn()
        code, n = moved @ turn, self.batch
        of_codes = self.of_codes - np.outer(self.codes, code) - np.outer(code, self.codes)
        of_codes = of_codes + n * np.outer(code, code)
        products = table["sum_of_codes"] - np.outer(table["sum"], code)
        products = products - np.outer(moved, self.codes - n * code)
        gain = table["sum_of_squares"] - moved * (2.0 * table["sum"] - n * moved)
        gain = np.where(gain > _ROUNDING * table["sum_of_squares"], gain, 0.0)
        # As on columns the early codes count less.
        keep = np.sqrt(self.before / self.rows)
        all_squares = keep * squares + gain
        weight = keep * self.weight + n
        fit = Fit(
            D=table["V"],
            A=keep * self.A + of_codes,
            B=keep * B + products,
            squares=float(all_squares.sum()),
            weight=weight,
            noise=self.noise,
            unit=1.0,
            columns=self.rows,
            odd=0.0,
        )
        if not fit.squares > 0.0:
            return Now(self._fit(table["V"], B, squares), squares, table["spread"])
        if not self.weight:
            fit = whitened(fit)
            spread = np.sqrt(all_squares / weight)
        else:
            spread = (keep * self.weight * table["spread"] + table["off"]) / weight
        return Now(self._code.renew_rows(fit), all_squares, spread)

    def _turn(self) -> Floats:
        """Return what turns values into codes, (m, q), outliers and gaps aside."""
        V = self._loadings()
        if not self.weight:
            return V
        least = max(self.noise, np.finfo(float).tiny)
        return solve(V.T @ V + least * np.eye(self.q), V.T).T

    # Merging

    def merging(self, theirs: Self, along: Along) -> None:
        """Note whom to protect: nobody."""

    def merged(self, theirs: Self, along: Along, moments: Moments, others: Moments) -> None:  # noqa: ARG002
        """Go on with the rows of both: of theirs with what their factorisation makes of them."""
        theirs = copy.deepcopy(theirs)
        for one in (self, theirs):
            one._take_in_batch()
        before = dict(zip(self.table.names, self.table["shift"].tolist(), strict=True))
        self.follow(moments)
        names, rows = self.table.names, self.rows + theirs.rows
        told = theirs._told(names)
        if not self.weight:
            for field in ("V", "B", "squares", "spread"):
                self.table[field][:] = told[field]
            self.A, self.noise, self.weight = theirs.A, theirs.noise, theirs.weight
        elif theirs.weight:
            apart = np.array([before.get(name, 0.0) for name in names]) - told["shift"]
            self._add(told, theirs, apart)
        self._begin_batch(rows)
        self.table["shift"][:] = moments.stats().mean
        self._in_use = None

    def _take_in_batch(self) -> None:
        """Take in the rows of the batch about the means of the rows learnt here."""
        means = self.table["shift"] + self.table["sum"] / max(self.weight + self.batch, 1.0)
        self._take(self.now(means), means)

    def _told(self, names: Sequence[Hashable]) -> dict[str, Floats]:
        """Return what is known of variables, 0 of those that are not known."""
        slots = self.table.slots
        there = np.array([name in slots for name in names], dtype=np.bool_)
        at = [slots[name] for name in names if name in slots]
        told = {}
        for field, shape in self.table.fields.items():
            told[field] = np.zeros((len(names), *shape))
            told[field][there] = self.table[field][at]
        return told

    def _add(self, told: dict[str, Floats], theirs: Self, apart: Floats) -> None:
        """Add rows of which is known what their factorisation makes of them, and what it leaves.

        `apart` is how far my means are from theirs.
        """
        turn, V, n = self._turn(), told["V"], theirs.weight
        left = np.maximum(told["squares"] - np.einsum("ik,kl,il->i", V, theirs.A, V), 0.0)
        products = V @ (theirs.A @ (V.T @ turn)) + left[:, None] * turn
        between = self.weight * n / (self.weight + n)
        code = apart @ turn
        products += between * np.outer(apart, code)
        squares = self.table["squares"] + told["squares"] + between * np.square(apart)
        inner = self._loadings().T @ self._loadings() + self.noise * np.eye(self.q)
        self.A = self.A + turn.T @ products + n * self.noise * np.linalg.inv(inner)
        self.A = 0.5 * (self.A + self.A.T)
        self.weight += n
        fit = self._fit(self.table["V"], self.table["B"] + products, squares)
        spread = (self.weight - n) * self.table["spread"] + n * told["spread"]
        means = self.table["shift"].copy()
        self._take(Now(self._code.renew_rows(fit), squares, spread / self.weight), means)

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        table = self.table
        expect_bounded("loadings", table["V"], table["shift"], table["spread"], self.codes)
        expect_totals("sums over rows", table["sum"], table["sum_of_codes"], table["off"])
        expect_sums("sums over rows", table["B"], table["squares"], table["sum_of_squares"])
        expect_products(self.A, "codes")
        expect_products(self.of_codes, "codes")
        expect_between("weights", np.array([self.noise, self.weight, self.batch]), 0.0, 1e300)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        return {
            "table": self.table.to_state(),
            "A": self.A,
            "of_codes": self.of_codes,
            "codes": self.codes,
            "numbers": np.array([self.noise, self.weight, self.batch]),
            "rows": [self.rows, self.before, self.until],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        q = self.q
        expect_shapes(state, A=(q, q), of_codes=(q, q), codes=(q,))
        expect(state, numbers=Array((3,), least=0.0), rows=ListOf(3, Count()))
        self.table = Table.from_state(state["table"], self.table.fields)
        self.A, self.of_codes = np.array(state["A"]), np.array(state["of_codes"])
        self.codes = np.array(state["codes"])
        self.noise, self.weight, self.batch = state["numbers"].tolist()
        self.rows, self.before, self.until = state["rows"]
        if not 0 <= self.before <= self.rows < self.until:
            raise ValueError(f"Expected a batch of rows that is not full. Got: {state['rows']!r}.")
