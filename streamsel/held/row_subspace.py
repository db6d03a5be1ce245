"""The leading axes of variables over rows: where they are too many for their joint moments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsel.held.part import Floats, Part, Places
from streamsel.held.possible import expect_bounded
from streamsel.held.subspace import leading
from streamsel.shapes import Array, Flag, Number, expect, expect_shapes, rows_of

# So many times the rank rows wait until they are taken in.
_TIMES = 4


class Level(NamedTuple):
    """What is held of each of p variables.

    Parameters
    ----------
    axes
        A (p, k): AAᵀ stands for the sums of products about the means.
    mean, seen
        (p,) means, and the weights of the rows that they are of; the newest row has weight 1.
    """

    axes: Floats
    mean: Floats
    seen: Floats

    @classmethod
    def from_state(cls, state: dict[str, Any], rank: int) -> Level:
        """Return what a file says, if it fits together, of at most so many axes."""
        p = rows_of(state, "axes")
        expect_shapes(state, axes=(p, min(np.shape(state["axes"])[-1], rank)), mean=(p,))
        expect(state, seen=Array((p,), least=0.0))
        return cls(*(state[name] for name in cls._fields))

    def grown(self, p: int, seen: float) -> Level:
        """Return it with further variables, which were 0 in rows of this weight."""
        more = p - len(self.mean)
        axes = np.pad(self.axes, ((0, more), (0, 0)))
        mean, seen_by = np.pad(self.mean, (0, more)), np.pad(self.seen, (0, more))
        seen_by[p - more :] = seen
        return Level(axes, mean, seen_by)


class Rows(NamedTuple):
    """Rows that wait, all of the same variables.

    Parameters
    ----------
    X, places
        (b, m) values, NaN where not observed, and their variables.
    known
        How many variables there were.
    w
        (b,) how much each counts, but for what it fades.
    """

    X: Floats
    places: Places
    known: int
    w: Floats


class RowSubspace(Part):
    """The leading axes of the sums of products of variables, by incremental singular values.

    Of the variables A (p, rank) is held, with AAᵀ in the place of their sums of products about the
    means. Rows wait until there are enough; then the leading part of the singular value
    decomposition of the axes, the rows about their own means, and what these means are off by, is
    the next A. That is scikit-learn's IncrementalPCA, with rows that fade, that need not name all
    variables, and of variables that come later.

    Parameters
    ----------
    rank
        How many axes are kept.
    keep
        In (0, 1]: what of its weight a row keeps with every later one.

    Attributes
    ----------
    weight
        Of all rows, but those that wait.
    level
        What is held of the variables.

    Notes
    -----
    Whatever is beyond the leading axes when rows are taken in is let go for good: variances are
    never above those of the exact axes, and the less they fall off the more is lost.

    **Cost.** About 9 rank operations a value in a row, and rank / 2 for a variable that it does not
    name.

    **Memory.** rank numbers a variable, and 4 rank rows.

    References
    ----------
    [^1]: Ross, D., Lim, J., Lin, R.-S., Yang, M.-H. (2008). Incremental learning for robust visual
        tracking. International Journal of Computer Vision 77, 125-141.
    """

    changing = ("weight", "level", "waiting", "n_waiting", "is_open")

    def __init__(self, rank: int, keep: float) -> None:
        self.rank, self.keep, self.width = rank, keep, _TIMES * rank
        self.weight = 0.0
        self.level = Level(np.zeros((0, 0)), np.zeros(0), np.zeros(0))
        # Replaced, never changed in place.
        self.waiting: tuple[Rows, ...] = ()
        self.n_waiting = 0
        # Whether variables that come were 0 in all rows before.
        self.is_open = True

    @property
    def known(self) -> int:
        """How many variables there were at the last row."""
        return max([len(self.level.mean), *(rows.known for rows in self.waiting)])

    def begin(self, level: Level, weight: float) -> None:
        """Go on from rows of this weight."""
        self.level, self.weight = level, weight

    def learn(self, X: Floats, places: Places, known: int, w: Floats | None = None) -> None:
        """Learn rows, (b, m), of weights (b,) or 1, of these of as many variables as are known."""
        for name, value in self.learnt(X, places, known, w).items():
            setattr(self, name, value)

    def learnt(
        self, X: Floats, places: Places, known: int, w: Floats | None = None
    ) -> dict[str, Any]:
        """Return the attributes that it has once it has learnt rows; change nothing."""
        after = RowSubspace(self.rank, self.keep)
        after.level, after.weight, after.is_open = self.level, self.weight, self.is_open
        after.waiting, after.n_waiting = self.waiting, self.n_waiting
        w = np.ones(len(X)) if w is None else w
        start = 0
        while start < len(X):
            stop = start + after.width - after.n_waiting
            part = X[start:stop].copy()
            after.waiting = (*after.waiting, Rows(part, places.copy(), known, w[start:stop]))
            after.n_waiting += len(part)
            start += len(part)
            if after.n_waiting == after.width:
                after.level, after.weight = after.as_of(known), after._weight_with_all()
                after.waiting, after.n_waiting = (), 0
        return {name: getattr(after, name) for name in self.changing}

    def _weight_with_all(self) -> float:
        return self.weight * self.keep**self.n_waiting + float(self._weights().sum())

    def _weights(self) -> Floats:
        faded = self.keep ** np.arange(self.n_waiting - 1.0, -1.0, -1.0)
        weights: Floats = faded * np.concatenate([np.zeros(0), *(rows.w for rows in self.waiting)])
        return weights

    def as_of(self, p: int) -> Level:
        """Return what is known of p variables by now; what waits goes on waiting."""
        level = self.level.grown(p, self.weight if self.is_open else 0.0)
        if not self.n_waiting:
            return level
        faded, w = self.keep**self.n_waiting, self._weights()
        axes, seen = level.axes * np.sqrt(faded), level.seen * faded
        Z, places = self._together(level.mean)
        is_seen = ~np.isnan(Z)
        Z = np.where(is_seen, Z, 0.0)
        # Who is named by none of the rows was 0 in all of them.
        off, weight = -level.mean, np.full(p, w.sum())
        weight[places] = w @ is_seen
        off[places] = w @ Z / np.maximum(weight[places], np.finfo(float).tiny)
        Z = np.where(is_seen, Z - off[places], 0.0) * np.sqrt(w)[:, None]
        both = seen + weight
        part = weight / np.where(both > 0.0, both, 1.0)
        axes = _with(axes, Z, places, off * np.sqrt(seen * part), self.rank)
        return Level(axes, level.mean + off * part, both)

    def _together(self, mean: Floats) -> tuple[Floats, Places]:
        """Return the rows that wait, about these means, and the variables that they name."""
        parts = self.waiting
        places = np.unique(np.concatenate([rows.places for rows in parts]))
        Z, start = np.tile(-mean[places], (self.n_waiting, 1)), 0
        for X, named, known, _ in parts:
            of_rows = Z[start : start + len(X)]
            if not self.is_open:
                of_rows[:, places >= known] = np.nan
            at = np.searchsorted(places, named)
            of_rows[:, at] = X - mean[named]
            start += len(X)
        return Z, places

    def merge(self, other: RowSubspace, places: Places, p: int) -> None:
        """Take in other rows.

        Parameters
        ----------
        other
            What is known of them; left as it is.
        places
            Where its variables stand among mine.
        p
            How many variables there are now.
        """
        mine, theirs = self.as_of(p), other.as_of(places.size)
        weight = other._weight_with_all()
        axes = np.zeros((p, theirs.axes.shape[1]))
        mean, seen = np.zeros(p), np.full(p, weight if other.is_open else 0.0)
        axes[places], mean[places], seen[places] = theirs
        both, off = mine.seen + seen, mean - mine.mean
        part = seen / np.where(both > 0.0, both, 1.0)
        between = off * np.sqrt(mine.seen * part)
        together = _with(mine.axes, axes.T, np.arange(p), between, self.rank)
        self.weight = self._weight_with_all() + weight
        self.level = Level(together, mine.mean + off * part, both)
        self.waiting, self.n_waiting = (), 0
        self.is_open &= other.is_open

    # Files

    def _one_by_one(self) -> dict[str, Any]:
        """Return the rows that wait, however they came: their values in order of the variables."""
        none: Floats = np.zeros(0)
        values, places, ends, known = [none], [np.zeros(0, dtype=np.intp)], [0], []
        for rows in self.waiting:
            order = np.argsort(rows.places)
            for x in rows.X[:, order]:
                values.append(x)
                places.append(rows.places[order])
                ends.append(ends[-1] + x.size)
                known.append(rows.known)
        together = np.concatenate(values)
        is_seen = ~np.isnan(together)
        return {
            "values": np.where(is_seen, together, 0.0),
            "seen": is_seen,
            "places": np.concatenate(places),
            "ends": np.array(ends),
            "known": np.array(known, dtype=np.intp),
            "weights": np.concatenate([none, *(rows.w for rows in self.waiting)]),
        }

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        expect_bounded("axes", self.level.axes, self.level.mean, self.level.seen)
        for rows in self.waiting:
            expect_bounded("rows", np.nan_to_num(rows.X), rows.w)

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        return {
            "level": self.level._asdict(),
            "weight": self.weight,
            "open": self.is_open,
            "waiting": self._one_by_one(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        expect(state, weight=Number(0.0), open=Flag())
        self.level = Level.from_state(state["level"], self.rank)
        self.weight, self.is_open = state["weight"], state["open"]
        waiting = state["waiting"]
        size, b = rows_of(waiting, "values"), rows_of(waiting, "known")
        expect(waiting, values=Array((size,)), seen=Array((size,), np.bool_))
        # In files of before there were weights each is 1.
        waiting = {"weights": np.ones(b)} | waiting
        expect(waiting, known=Array((b,), np.int64, least=0), weights=Array((b,), least=0.0))
        expect(waiting, places=Array((size,), np.int64, least=0))
        expect(waiting, ends=Array((b + 1,), np.int64, least=0, below=size + 1))
        values, places, ends = waiting["values"], waiting["places"], waiting["ends"]
        if b >= self.width:
            raise ValueError(f"Expected fewer than {self.width} rows that wait. Got: {b}.")
        if ends[0] != 0 or ends[-1] != size or (np.diff(ends) < 0).any():
            raise ValueError("Expected rows that wait one after the other. Got: others.")
        X = np.where(waiting["seen"], values, np.nan)
        told = zip(ends[:-1], ends[1:], waiting["known"].tolist(), waiting["weights"], strict=True)
        for start, end, known, w in told:
            named = places[start:end]
            in_order = (np.diff(named) > 0).all()
            if not in_order or (named.size and not (named[0] >= 0 and named[-1] < known)):
                raise ValueError(f"Expected rows of {known} variables. Got: others.")
            self.waiting = (*self.waiting, Rows(X[None, start:end], named, known, np.array([w])))
        self.n_waiting = b


def _with(axes: Floats, Z: Floats, places: Places, off: Floats, rank: int) -> Floats:
    """Return the leading axes of axes, of rows Z (b, m) of some variables, and of one of all."""
    of_rows = Z @ axes[places], Z @ off[places]
    products = np.block(
        [
            [axes.T @ axes, of_rows[0].T, (axes.T @ off)[:, None]],
            [of_rows[0], Z @ Z.T, of_rows[1][:, None]],
            [off @ axes, of_rows[1], np.array([[off @ off]])],
        ]
    )
    W, k = leading(products, rank), axes.shape[1]
    new = axes @ W[:k]
    new[places] += Z.T @ W[k:-1]
    new += off[:, None] * W[-1]
    return new
