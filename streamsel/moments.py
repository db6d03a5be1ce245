"""The state of the row axis: moments of every variable, of itself and with the target.

 Both pillars decide on first and second moments alone. A column delivers a variable's all at once,
rows accumulate them; so what was learnt on columns goes on, exactly, on rows.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.rows import learn_row, over_all_rows
from streamsel._jit.scan import ROUNDINGS, UNDERFLOW
from streamsel.columns import Stats
from streamsel.kernels import VariableKernel
from streamsel.row_target import RowTarget
from streamsel.shapes import expect_shapes
from streamsel.table import Table
from streamsel.target import Target, TargetSpace

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

# Columns of the field "own", in the order of the kernels.
_SHIFT, _WEIGHT, _MEAN, _M2, _BORN = range(5)
# When the weight of a row has grown to this, all are divided by it: a power of two rounds nothing.
_HEAVY = 1024.0
# A block of rows is taken in pieces of about this many numbers.
_PIECE = 1 << 18


class Moments:
    """Weighted moments of variables and target over rows.

    A row that does not name a variable observed it as 0; a row that has NaN for it did not observe
    it, and counts as if it had had its mean there. Rows fade by growing weights: the newest weighs
    1 / (1 - fading_factor) times the one before, and what is read is divided by the newest weight,
    so that a row costs nothing for the variables that it does not name.

    Parameters
    ----------
    fading_factor
        In [0, 1): what part of its weight a row loses with every later one.
    target
        The target's names and form.

    Attributes
    ----------
    rows
        Rows seen.
    n
        Their weight, in units of `unit`.
    unit
        The weight of the newest row.
    squares
        The sum of the squared weights.
    table
        The variables in order of arrival: `own` (shift, weight of the rows that name it, mean about
        the shift, sum of squares, row of arrival), `cross` and `about` (c,), over those rows the
        products with the target and the target's means, and `missed` (1 + c,), the weight and the
        target's sums of the rows that did not observe it.
    of_target
        (1 + c, c) the target's means, about its origin, and its sums of products.
    """

    def __init__(self, fading_factor: float, target: RowTarget) -> None:
        self.fading_factor = fading_factor
        self.target = target
        self.rows = 0
        self.n = 0.0
        self.unit = 1.0
        self.squares = 0.0
        c = len(target)
        self.table = Table(_fields(c))
        self.of_target: Floats = np.zeros((1 + c, c))
        # Whether no variable was ever let go.
        self.complete = True
        # Of rows in which names that come now were not observed: weight, and the target's sums.
        self.forgotten: Floats = np.zeros(1 + c)

    @classmethod
    def following(cls, target: Target, kind: str, fading_factor: float) -> Moments:
        """Return the moments that go on from n rows which came as columns, no variables yet."""
        moments = cls(fading_factor, RowTarget.following(target, kind))
        moments.rows = target.n
        moments.n = moments.squares = float(target.n)
        moments.of_target[1:] = target.cyy
        return moments

    def take_columns(self, names: Iterable[Hashable], stats: Stats) -> None:
        """Take up variables with their moments over all rows so far, which all named them."""
        p, c = stats.cxy.shape
        own = np.zeros((p, 5))
        own[:, _SHIFT], own[:, _WEIGHT], own[:, _M2] = stats.mean, self.n, stats.m2
        missed = np.zeros((p, 1 + c))
        self.table.append(names, own=own, cross=stats.cxy, about=np.zeros((p, c)), missed=missed)

    def forget(self) -> None:
        """Note that variables were let go: a name that comes now may be one of theirs."""
        self.complete = False
        self.forgotten[0] = self.n
        self.forgotten[1:] = self.n * self.of_target[0]

    # Learning

    def admit(self, names: Sequence[Hashable]) -> None:
        """Take up new variables; before this row they were 0."""
        p, c = len(names), len(self.target)
        own = np.zeros((p, 5))
        own[:, _BORN] = self.rows
        missed = np.tile(self.forgotten, (p, 1))
        self.table.append(
            names, own=own, cross=np.zeros((p, c)), about=np.zeros((p, c)), missed=missed
        )

    def admit_targets(self, form: str, first: Mapping[Hashable, float]) -> None:
        """Take up new target columns, given with their first values; they were 0 before."""
        before = len(self.target)
        self.target.admit(form, first)
        c = len(self.target)
        if c == before:
            return
        self.of_target = _padded(_padded(self.of_target, 1 + c).T, c).T.copy()
        self.forgotten = _padded(self.forgotten, 1 + c)
        table = Table(_fields(c))
        rows = {field: self.table[field] for field in table.fields}
        for field in ("cross", "about", "missed"):
            rows[field] = _padded(rows[field].T, table.fields[field][0]).T
        table.append(self.table.slots, **rows)
        self.table = table

    def learn_one(self, values: Floats, slots: Places, y: Floats) -> int:
        """Learn a row; return 0, or 1 + the place of a value that cannot be learnt.

        Parameters
        ----------
        values, slots
            (m,) values, NaN where not observed, and places of their variables in the table.
        y
            (c,) target columns, about their origin.
        """
        w = self.unit / (1.0 - self.fading_factor) if self.rows else 1.0
        table = self.table
        fields = (table["own"], table["cross"], table["about"], table["missed"], self.of_target)
        bad = learn_row(values, slots, y, w, self.n, *fields)
        if not bad:
            self.rows += 1
            self._passed(w, w, w * w)
        return int(bad)

    def _passed(self, unit: float, weight: float, squares: float) -> None:
        self.unit = unit
        self.n += weight
        self.squares += squares
        if unit > _HEAVY:
            self.rescale(2.0 ** -np.floor(np.log2(unit)))

    def rescale(self, factor: float) -> None:
        """Multiply all weights by a factor."""
        self.unit *= factor
        self.n *= factor
        self.squares *= factor * factor
        self.table["own"][:, [_WEIGHT, _M2]] *= factor
        self.table["cross"][:] *= factor
        self.table["missed"][:] *= factor
        self.of_target[1:] *= factor
        self.forgotten *= factor

    def weights(self, size: int) -> Floats:
        """Return the weights of the next rows."""
        if self.fading_factor == 0.0:
            return np.ones(size)
        first = self.unit / (1.0 - self.fading_factor) if self.rows else 1.0
        return np.asarray(first * (1.0 - self.fading_factor) ** -np.arange(size))

    def pieces(self, size: int, width: int) -> Iterable[slice]:
        """Cut so many rows into pieces, for the cache, and not too far apart in weight."""
        most = max(1, _PIECE // max(1, width))
        if self.fading_factor:
            most = min(most, max(1, int(5.0 / self.fading_factor)))
        return (slice(start, min(start + most, size)) for start in range(0, size, most))

    def learn_many(self, X: Floats, slots: Places, Y: Floats) -> None:
        """Learn a piece of rows by matrix products (Chan, Golub and LeVeque 1979).

        Parameters
        ----------
        X, slots
            (b, m) values, NaN where not observed, none infinite, and the places of the columns.
        Y
            (b, c) target columns, about their origin.
        """
        w = self.weights(len(X))
        weight = float(w.sum())
        self._join_variables(X, slots, Y, w, weight)
        mean = w @ Y / weight
        centred = Y - mean
        apart = mean - self.of_target[0]
        total = self.n + weight
        self.of_target[1:] += (w * centred.T) @ centred
        self.of_target[1:] += np.outer(apart, apart) * (self.n * weight / total)
        self.of_target[0] += apart * (weight / total)
        self.rows += len(X)
        self._passed(float(w[-1]), weight, float(w @ w))

    def _join_variables(
        self, X: Floats, slots: Places, Y: Floats, w: Floats, weight: float
    ) -> None:
        table = self.table
        own = table["own"][slots]
        lacking = np.isnan(X)
        held = np.full(slots.size, weight)
        sums = np.broadcast_to(w @ Y, (slots.size, Y.shape[1]))
        some = lacking.any(axis=0)
        W = np.broadcast_to(w[:, None], X.shape)
        new = own[:, _WEIGHT] == 0.0
        if some.any():
            W = np.where(lacking, 0.0, W)
            held[some] = W[:, some].sum(axis=0)
            missing = np.where(lacking, w[:, None], 0.0)
            table["missed"][slots, 0] += missing.sum(axis=0)
            table["missed"][slots, 1:] += missing.T @ Y
            sums = W.T @ Y
            first = np.argmin(lacking, axis=0)
            seen = held > 0.0
            fresh = new & seen
            own[fresh, _SHIFT] = X[first[fresh], np.flatnonzero(fresh)]
            X = np.where(lacking, own[:, _SHIFT] + own[:, _MEAN], X)
        else:
            own[new, _SHIFT] = X[0, new]
        held_or_1 = np.where(held > 0.0, held, 1.0)
        centred = X - own[:, _SHIFT]
        mean = np.einsum("ij,ij->j", W, centred) / held_or_1
        centred -= mean
        about = sums / held_or_1[:, None]
        weighted = W * centred
        m2 = np.einsum("ij,ij->j", weighted, centred)
        cross = weighted.T @ Y - np.einsum("ij->j", weighted)[:, None] * about
        self._combine(slots, own, held, mean, m2, cross, about)

    def _combine(
        self,
        slots: Places,
        own: Floats,
        weight: Floats,
        mean: Floats,
        m2: Floats,
        cross: Floats,
        about: Floats,
    ) -> None:
        """Add to variables moments over other rows that name them; means are about the shift."""
        table = self.table
        total = own[:, _WEIGHT] + weight
        part = weight / np.where(total > 0.0, total, 1.0)
        d = mean - own[:, _MEAN]
        apart = about - table["about"][slots]
        f = d * own[:, _WEIGHT] * part
        table["cross"][slots] += cross + f[:, None] * apart
        table["about"][slots] += apart * part[:, None]
        own[:, _WEIGHT] = total
        own[:, _MEAN] += d * part
        own[:, _M2] += m2 + d * f
        table["own"][slots] = own

    # What was learnt

    def over_all_rows(self, places: Places | None = None) -> Stats:
        """Return the moments of variables over all rows; their newest has weight 1.

        Parameters
        ----------
        places
            Which variables; None for all.
        """
        fields = [self.table[field] for field in ("own", "cross", "about", "missed")]
        if places is not None:
            fields = [field[places] for field in fields]
        p, c = fields[1].shape
        stats = Stats(np.empty(p), np.empty(p), np.empty((p, c)))
        over_all_rows(*fields, self.n * self.of_target[0], self.n, self.unit, *stats)
        mean, m2, _ = stats
        rounding = (ROUNDINGS * mean) ** 2 * (self.n / self.unit)
        m2[(m2 <= rounding) | (m2 < UNDERFLOW)] = 0.0
        return stats

    @property
    def weight(self) -> float:
        """The weight of all rows, where the newest has weight 1."""
        return self.n / self.unit

    @property
    def effective_rows(self) -> float:
        """How many rows of equal weight tell as much (Kish 1965)."""
        return self.n * self.n / self.squares if self.squares else 0.0

    def space(self, kernel: VariableKernel) -> TargetSpace:
        """Return the target space of all rows."""
        cyy = self.of_target[1:] / self.unit
        level = self.of_target[0] + np.asarray(self.target.origin)
        squares = np.diag(cyy)
        still = squares <= (ROUNDINGS * level) ** 2 * self.weight
        if still.any():
            cyy[still] = 0.0
            cyy[:, still] = 0.0
        return TargetSpace(cyy, self.weight, kernel)

    def mature(self, grace_period: int) -> NDArray[np.bool_]:
        """Return which variables have been tracked for so many rows."""
        mature: NDArray[np.bool_] = self.table["own"][:, _BORN] + grace_period <= self.rows
        return mature

    def next_mature(self, grace_period: int) -> int:
        """Return the first row by which one more variable will have been tracked for so many."""
        born = self.table["own"][:, _BORN]
        young = born[born + grace_period > self.rows]
        return int(young.min(initial=self.rows)) + grace_period

    def let_go(self, staying: Places) -> None:
        """Drop all variables but these, given in ascending order."""
        self.complete = False
        self.table.keep(staying)

    # Merging

    def merge(self, other: Moments) -> None:
        """Take in the moments of other rows, of a target of the same form; the other is left."""
        theirs = copy.deepcopy(other)
        theirs.rescale(self.unit / theirs.unit)
        assert self.target.form is not None  # noqa: S101
        self.admit_targets(self.target.form, dict.fromkeys(theirs.target.slots, 0.0))
        theirs.speak_of(self.target)
        self._merge_variables(theirs)
        total = self.n + theirs.n
        apart = theirs.of_target[0] - self.of_target[0]
        self.of_target[1:] += theirs.of_target[1:]
        self.of_target[1:] += np.outer(apart, apart) * (self.n * theirs.n / total)
        self.of_target[0] += apart * (theirs.n / total)
        self.forgotten += theirs.forgotten
        self.rows += theirs.rows
        self.n = total
        self.squares += theirs.squares
        self.complete &= theirs.complete

    def speak_of(self, target: RowTarget) -> None:
        """Take over another's target columns, all of mine among them, their order and origins."""
        place = np.array([self.target.slots.get(name, -1) for name in target.slots], dtype=np.intp)
        held = place >= 0
        origin = np.append(self.target.origin, 0.0)
        # A column that I never saw was 0 in all my rows; so is index -1 of what is padded.
        moved = origin[place] - target.origin

        def taken(array: Floats) -> Floats:
            found: Floats = np.where(held, _padded(array.T, len(held) + 1).T[..., place], 0.0)
            return found

        cyy = taken(taken(self.of_target[1:]).T).T
        self.of_target = np.vstack([taken(self.of_target[0]) + moved, cyy])
        self.forgotten = np.append(
            self.forgotten[:1], taken(self.forgotten[1:]) + self.forgotten[0] * moved
        )
        missed = self.table["missed"]
        rows = {
            "own": self.table["own"],
            "cross": taken(self.table["cross"]),
            "about": taken(self.table["about"]) + moved,
            "missed": np.hstack([missed[:, :1], taken(missed[:, 1:]) + missed[:, :1] * moved]),
        }
        table = Table(_fields(len(held)))
        table.append(self.table.slots, **rows)
        self.table, self.target = table, copy.deepcopy(target)

    def _merge_variables(self, theirs: Moments) -> None:
        mine, yours = self.table, theirs.table
        both = [name for name in yours.slots if name in mine.slots]
        mine["missed"][:] += theirs.forgotten
        if both:
            here = np.array([mine.slots[name] for name in both], dtype=np.intp)
            there = np.array([yours.slots[name] for name in both], dtype=np.intp)
            mine["missed"][here] += yours["missed"][there] - theirs.forgotten
            own, other = mine["own"][here], yours["own"][there]
            unseen = own[:, _WEIGHT] == 0.0
            own[unseen, _SHIFT] = other[unseen, _SHIFT]
            mean = other[:, _MEAN] + (other[:, _SHIFT] - own[:, _SHIFT])
            parts = (other[:, _WEIGHT], mean, other[:, _M2])
            self._combine(here, own, *parts, yours["cross"][there], yours["about"][there])
        new = [name for name in yours.slots if name not in mine.slots]
        places = np.array([yours.slots[name] for name in new], dtype=np.intp)
        rows = {field: yours[field][places] for field in yours.fields}
        rows["own"][:, _BORN] += self.rows
        rows["missed"] += self.forgotten
        mine.append(new, **rows)

    def join(self, other: Moments) -> None:
        """Take in other variables of the same rows; the other is left as it is."""
        theirs = copy.deepcopy(other)
        theirs.rescale(self.unit / theirs.unit)
        theirs.speak_of(self.target)
        self.table.append(
            theirs.table.slots, **{field: theirs.table[field] for field in theirs.table.fields}
        )
        self.complete &= theirs.complete

    def same_rows(self, other: Moments) -> bool:
        """Whether the other has learnt as many rows of a target of the same moments."""
        if self.rows != other.rows or self.target.slots.keys() != other.target.slots.keys():
            return False
        theirs = copy.deepcopy(other)
        theirs.rescale(self.unit / theirs.unit)
        theirs.speak_of(self.target)
        scale = np.sqrt(np.diag(self.of_target[1:]))
        apart = np.abs(self.of_target[1:] - theirs.of_target[1:])
        return bool((apart <= 1e-9 * scale * scale[:, None]).all())

    # Persistence

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs."""
        return {
            "rows": self.rows,
            "weights": [self.n, self.unit, self.squares],
            "complete": self.complete,
            "form": self.target.form,
            "target_names": list(self.target.slots),
            "origin": np.array(self.target.origin),
            "of_target": self.of_target,
            "forgotten": self.forgotten,
            "table": self.table.to_state(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], fading_factor: float, kind: str) -> Moments:
        """Return the moments that `to_state` described."""
        target = RowTarget(kind)
        target.form = state["form"]
        target.slots = {name: k for k, name in enumerate(state["target_names"])}
        target.origin = np.asarray(state["origin"]).tolist()
        moments = cls(fading_factor, target)
        c = len(target.slots)
        expect_shapes(state, origin=(c,), of_target=(1 + c, c), forgotten=(1 + c,))
        moments.rows = state["rows"]
        moments.n, moments.unit, moments.squares = state["weights"]
        moments.complete = state["complete"]
        moments.of_target = np.array(state["of_target"])
        moments.forgotten = np.array(state["forgotten"])
        moments.table = Table.from_state(state["table"], _fields(c))
        return moments


def _fields(c: int) -> dict[str, tuple[int, ...]]:
    return {"own": (5,), "cross": (c,), "about": (c,), "missed": (1 + c,)}


def _padded(array: Floats, size: int) -> Floats:
    """Return the array with zeros behind its last row."""
    padded = np.zeros((size, *array.shape[1:]))
    padded[: len(array)] = array
    return padded
