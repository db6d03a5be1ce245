"""Leading axes of variables over rows, where joint moments would need too much memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsel._utils.numeric import leading_axes
from streamsel.serialization.invariants import expect_bounded
from streamsel.serialization.schema import (
    ArrayKind,
    BoolKind,
    FloatKind,
    expect,
    expect_shapes,
    length_in,
)
from streamsel.state.base import Floats, Indices, State

# Rows in a batch, as a multiple of the rank.
_BATCH_PER_RANK = 4


class VariableMoments(NamedTuple):
    """Means and axes of p variables.

    Parameters
    ----------
    axes
        A (p, k): AAᵀ approximates the sums of products about the means.
    mean, weight
        (p,) means, and the weight of the rows behind each; the newest row has weight 1.
    """

    axes: Floats
    mean: Floats
    weight: Floats

    @classmethod
    def from_state(cls, state: dict[str, Any], rank: int) -> VariableMoments:
        """Return the moments in a file, with at most `rank` axes, if its parts are consistent."""
        p = length_in(state, "axes")
        expect_shapes(state, axes=(p, min(np.shape(state["axes"])[-1], rank)), mean=(p,))
        expect(state, weight=ArrayKind((p,), minimum=0.0))
        return cls(*(state[name] for name in cls._fields))

    def grown(self, p: int, seen: float) -> VariableMoments:
        """Return the moments of p variables; new ones were 0 in rows of weight `seen`."""
        more = p - len(self.mean)
        axes = np.pad(self.axes, ((0, more), (0, 0)))
        mean, seen_by = np.pad(self.mean, (0, more)), np.pad(self.weight, (0, more))
        seen_by[p - more :] = seen
        return VariableMoments(axes, mean, seen_by)


class RowBuffer(NamedTuple):
    """Buffered rows, all of the same variables.

    Parameters
    ----------
    X, indices
        (b, m) values, NaN where not observed, and indices of the variables.
    n_variables
        Number of variables at the time.
    w
        (b,) weights before fading.
    """

    X: Floats
    indices: Indices
    n_variables: int
    w: Floats


class RowSubspace(State):
    """Leading axes of the sums of products of variables, by incremental SVD of rows.

    The state is A (p, rank), with AAᵀ in the place of the sums of products about the means. Rows
    are buffered; then the leading part of the singular value decomposition of the axes, the rows
    about their own means, and the shift of the means, becomes the next A. This is scikit-learn's
    IncrementalPCA, extended to fading weights, rows that name only some variables, and variables
    that arrive later.

    Parameters
    ----------
    rank
        Number of axes.
    keep
        In (0, 1]: the factor by which the weight of a row falls with every later row.

    Attributes
    ----------
    weight
        Total weight of all rows, without the buffered ones.
    moments
        Means and axes of the variables.

    Notes
    -----
    Components beyond the leading axes are truncated at every batch: variances never exceed those of
    the exact axes, and the loss is larger the more slowly the variances decay.

    **Cost.** About 9 rank operations per value in a row, and rank / 2 per variable that it does not
    name.

    **Memory.** rank numbers per variable, and 4 rank rows.

    References
    ----------
    [^1]: Ross, D., Lim, J., Lin, R.-S., Yang, M.-H. (2008). Incremental learning for robust visual
        tracking. International Journal of Computer Vision 77, 125-141.
    """

    changing = ("weight", "moments", "buffered", "n_buffered", "new_were_zero")

    def __init__(self, rank: int, keep: float) -> None:
        self.rank, self.keep, self.width = rank, keep, _BATCH_PER_RANK * rank
        self.weight = 0.0
        self.moments = VariableMoments(np.zeros((0, 0)), np.zeros(0), np.zeros(0))
        # Replaced, never changed in place.
        self.buffered: tuple[RowBuffer, ...] = ()
        self.n_buffered = 0
        # Whether a new variable was 0 in all earlier rows.
        self.new_were_zero = True

    @property
    def n_variables(self) -> int:
        """The number of variables at the last row."""
        return max([len(self.moments.mean), *(rows.n_variables for rows in self.buffered)])

    def begin(self, level: VariableMoments, weight: float) -> None:
        """Continue from the moments of rows of this total weight."""
        self.moments, self.weight = level, weight

    def learn(self, X: Floats, indices: Indices, known: int, w: Floats | None = None) -> None:
        """Learn rows (b, m) of `known` variables' `indices`, with weights (b,), by default 1."""
        for name, value in self.after_learning(X, indices, known, w).items():
            setattr(self, name, value)

    def after_learning(
        self, X: Floats, indices: Indices, known: int, w: Floats | None = None
    ) -> dict[str, Any]:
        """Return the attributes after learning rows, without changing anything."""
        after = RowSubspace(self.rank, self.keep)
        after.moments, after.weight, after.new_were_zero = (
            self.moments,
            self.weight,
            self.new_were_zero,
        )
        after.buffered, after.n_buffered = self.buffered, self.n_buffered
        w = np.ones(len(X)) if w is None else w
        start = 0
        while start < len(X):
            stop = start + after.width - after.n_buffered
            part = X[start:stop].copy()
            after.buffered = (
                *after.buffered,
                RowBuffer(part, indices.copy(), known, w[start:stop]),
            )
            after.n_buffered += len(part)
            start += len(part)
            if after.n_buffered == after.width:
                after.moments, after.weight = after.with_buffer(known), after._weight_with_all()
                after.buffered, after.n_buffered = (), 0
        return {name: getattr(after, name) for name in self.changing}

    def _weight_with_all(self) -> float:
        return self.weight * self.keep**self.n_buffered + float(self._weights().sum())

    def _weights(self) -> Floats:
        faded = self.keep ** np.arange(self.n_buffered - 1.0, -1.0, -1.0)
        weights: Floats = faded * np.concatenate([np.zeros(0), *(rows.w for rows in self.buffered)])
        return weights

    def with_buffer(self, p: int) -> VariableMoments:
        """Return the moments of p variables with the buffered rows; the buffer is unchanged."""
        level = self.moments.grown(p, self.weight if self.new_were_zero else 0.0)
        if not self.n_buffered:
            return level
        faded, w = self.keep**self.n_buffered, self._weights()
        axes, seen = level.axes * np.sqrt(faded), level.weight * faded
        Z, indices = self._together(level.mean)
        is_seen = ~np.isnan(Z)
        Z = np.where(is_seen, Z, 0.0)
        # A variable that no row names was 0 in all of them.
        mean_shift, weight = -level.mean, np.full(p, w.sum())
        weight[indices] = w @ is_seen
        mean_shift[indices] = w @ Z / np.maximum(weight[indices], np.finfo(float).tiny)
        Z = np.where(is_seen, Z - mean_shift[indices], 0.0) * np.sqrt(w)[:, None]
        both = seen + weight
        share = weight / np.where(both > 0.0, both, 1.0)
        axes = _with(axes, Z, indices, mean_shift * np.sqrt(seen * share), self.rank)
        return VariableMoments(axes, level.mean + mean_shift * share, both)

    def _together(self, mean: Floats) -> tuple[Floats, Indices]:
        """Return the buffered rows, about these means, and the indices of their variables."""
        parts = self.buffered
        indices = np.unique(np.concatenate([rows.indices for rows in parts]))
        Z, start = np.tile(-mean[indices], (self.n_buffered, 1)), 0
        for X, named, known, _ in parts:
            block = Z[start : start + len(X)]
            if not self.new_were_zero:
                block[:, indices >= known] = np.nan
            columns = np.searchsorted(indices, named)
            block[:, columns] = X - mean[named]
            start += len(X)
        return Z, indices

    def merge(self, other: RowSubspace, indices: Indices, p: int) -> None:
        """Add other rows.

        Parameters
        ----------
        other
            The state of these rows; it is not changed.
        indices
            Indices of its variables among mine.
        p
            Number of variables after the merge.
        """
        mine, theirs = self.with_buffer(p), other.with_buffer(indices.size)
        weight = other._weight_with_all()
        axes = np.zeros((p, theirs.axes.shape[1]))
        mean, seen = np.zeros(p), np.full(p, weight if other.new_were_zero else 0.0)
        axes[indices], mean[indices], seen[indices] = theirs
        both, mean_shift = mine.weight + seen, mean - mine.mean
        share = seen / np.where(both > 0.0, both, 1.0)
        between = mean_shift * np.sqrt(mine.weight * share)
        together = _with(mine.axes, axes.T, np.arange(p), between, self.rank)
        self.weight = self._weight_with_all() + weight
        self.moments = VariableMoments(together, mine.mean + mean_shift * share, both)
        self.buffered, self.n_buffered = (), 0
        self.new_were_zero &= other.new_were_zero

    # Files

    def _buffered_rows(self) -> dict[str, Any]:
        """Return the buffered rows one by one, values in order of the variables."""
        empty: Floats = np.zeros(0)
        values, indices, ends, known = [empty], [np.zeros(0, dtype=np.intp)], [0], []
        for rows in self.buffered:
            order = np.argsort(rows.indices)
            for x in rows.X[:, order]:
                values.append(x)
                indices.append(rows.indices[order])
                ends.append(ends[-1] + x.size)
                known.append(rows.n_variables)
        joined = np.concatenate(values)
        is_seen = ~np.isnan(joined)
        return {
            "values": np.where(is_seen, joined, 0.0),
            "seen": is_seen,
            "indices": np.concatenate(indices),
            "ends": np.array(ends),
            "n_variables": np.array(known, dtype=np.intp),
            "weights": np.concatenate([empty, *(rows.w for rows in self.buffered)]),
        }

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        expect_bounded("axes", self.moments.axes, self.moments.mean, self.moments.weight)
        for rows in self.buffered:
            expect_bounded("rows", np.nan_to_num(rows.X), rows.w)

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {
            "moments": self.moments._asdict(),
            "weight": self.weight,
            "new_were_zero": self.new_were_zero,
            "buffered": self._buffered_rows(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, weight=FloatKind(0.0), new_were_zero=BoolKind())
        self.moments = VariableMoments.from_state(state["moments"], self.rank)
        self.weight, self.new_were_zero = state["weight"], state["new_were_zero"]
        buffered = state["buffered"]
        size, b = length_in(buffered, "values"), length_in(buffered, "n_variables")
        expect(buffered, values=ArrayKind((size,)), seen=ArrayKind((size,), np.bool_))
        expect(
            buffered,
            n_variables=ArrayKind((b,), np.int64, minimum=0),
            weights=ArrayKind((b,), minimum=0.0),
        )
        expect(buffered, indices=ArrayKind((size,), np.int64, minimum=0))
        expect(buffered, ends=ArrayKind((b + 1,), np.int64, minimum=0, below=size + 1))
        values, indices, ends = buffered["values"], buffered["indices"], buffered["ends"]
        if b >= self.width:
            raise ValueError(f"Expected fewer than {self.width} buffered rows. Got: {b}.")
        if ends[0] != 0 or ends[-1] != size or (np.diff(ends) < 0).any():
            raise ValueError("Expected consecutive buffered rows. Got: row ends out of order.")
        X = np.where(buffered["seen"], values, np.nan)
        rows = zip(
            ends[:-1], ends[1:], buffered["n_variables"].tolist(), buffered["weights"], strict=True
        )
        for start, end, known, w in rows:
            named = indices[start:end]
            in_order = (np.diff(named) > 0).all()
            if not in_order or (named.size and not (named[0] >= 0 and named[-1] < known)):
                raise ValueError(f"Expected ascending variable indices below {known}. Got: others.")
            self.buffered = (
                *self.buffered,
                RowBuffer(X[None, start:end], named, known, np.array([w])),
            )
        self.n_buffered = b


def _with(axes: Floats, Z: Floats, indices: Indices, mean_shift: Floats, rank: int) -> Floats:
    """Return leading axes of given axes, rows Z (b, m) of some variables, and one row of all."""
    row_products = Z @ axes[indices], Z @ mean_shift[indices]
    products = np.block(
        [
            [axes.T @ axes, row_products[0].T, (axes.T @ mean_shift)[:, None]],
            [row_products[0], Z @ Z.T, row_products[1][:, None]],
            [mean_shift @ axes, row_products[1], np.array([[mean_shift @ mean_shift]])],
        ]
    )
    W, k = leading_axes(products, rank), axes.shape[1]
    new = axes @ W[:k]
    new[indices] += Z.T @ W[k:-1]
    new += mean_shift[:, None] * W[-1]
    return new
