"""What observations have in common over all columns: what linear methods are functions of."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, eigsh

from streamsel.held.part import Floats, Places

# An axis with less than this part of the largest eigenvalue is rounding.
_SPENT = 1e-12
# A matrix of more rows, of which a smaller part of the axes is asked for, is not decomposed whole.
_LARGE, _FEW = 1500, 0.05
# Vectors that Lanczos keeps at least: it restarts less often, which costs more than they do.
_STEPS = 60


class About(NamedTuple):
    """What is known beside the inner products.

    Parameters
    ----------
    n
        Observations, of equal weight, less the rank of the covariates.
    rows
        The weight of all observations, the newest of which has 1.
    weight
        What the squares of a variable of variance 1 sum to.
    p
        Columns that vary.
    even
        How many columns that vary alike would vary as evenly: (Σv)² / Σv², v their variances.
    cyy
        (c, c) inner products of the target's columns.
    """

    n: float
    rows: float
    weight: float
    p: int
    even: float
    cyy: Floats


class Inner:
    """Inner products of observations, K = X̃D²X̃ᵀ, and what the target has to do with them.

    On columns K is what all of them add up to, (n, n). Where the columns are few, or on rows, their
    principal axes stand for the observations: K is diagonal, and inner products are what they were.
    So whoever asks no more than these finds the same on both axes.

    Parameters
    ----------
    K
        (s, s) the matrix, or (s,) its diagonal, descending, where it has no more.
    U
        (s, r) orthonormal basis of the target space; where principal axes stand for observations,
        its part along these. r = 0 without a target.
    Y
        (s, c) the target's columns, centred; in the same way.
    about
        What else is known.
    trace
        Of K before all but the leading axes were let go; None where none was.
    """

    def __init__(
        self, K: Floats, U: Floats, Y: Floats, about: About, trace: float | None = None
    ) -> None:
        self.K, self.U, self.Y = K, U, Y
        self.n, self.rows, self.weight, self.p, self.even, self.cyy = about
        if trace is None:
            trace = float(K.sum() if K.ndim == 1 else K.trace())
        self.trace = trace

    @property
    def size(self) -> int:
        """How many observations there are, or axes that stand for them."""
        return len(self.K)

    def times(self, V: Floats) -> Floats:
        """Return K V, (s, k)."""
        found: Floats = self.K[:, None] * V if self.K.ndim == 1 else self.K @ V
        return found

    def axes(self, q: int | None = None) -> tuple[Floats, Floats]:
        """Return the leading eigenvalues (k,), descending, and eigenvectors (s, k).

        Parameters
        ----------
        q
            How many at most; None for all that are more than rounding.
        """
        if q == 0:
            return np.zeros(0), np.zeros((self.size, 0))
        if self.K.ndim == 1:
            k = _substantial(self.K, self.trace)
            k = k if q is None else min(q, k)
            return self.K[:k], np.eye(self.size, k)
        if q is None:
            d, E = self._all
        elif self.size > _LARGE and q < _FEW * self.size:
            d, E = self._leading(q)
        elif "_all" in vars(self):
            d, E = self._all
        else:
            first = max(0, self.size - q)
            found = eigh(self.K, subset_by_index=[first, self.size - 1], check_finite=False)
            d, E = found[0][::-1], found[1][:, ::-1]
        k = _substantial(d, self.trace)
        k = k if q is None else min(q, k)
        return d[:k], E[:, :k]

    def values(self) -> Floats:
        """Return all eigenvalues that are more than rounding, descending."""
        if self.K.ndim == 1:
            d = self.K
        else:
            d = eigh(self.K, eigvals_only=True, check_finite=False)[::-1]
        return d[: _substantial(d, self.trace)]

    @functools.cached_property
    def _all(self) -> tuple[Floats, Floats]:
        d, E = eigh(self.K, check_finite=False, driver="evd")
        return d[::-1], E[:, ::-1]

    def _leading(self, q: int) -> tuple[Floats, Floats]:
        # A start that is the same every time, and in no eigenspace.
        start = np.random.default_rng(0).normal(size=self.size)
        try:
            d, E = eigsh(self.K, k=q, which="LA", v0=start, ncv=max(2 * q + 1, _STEPS))
        except ArpackError:
            return self._all
        order = np.argsort(-d, kind="stable")
        return d[order], E[:, order]


def _substantial(d: Floats, trace: float) -> int:
    """Return how many eigenvalues, descending, are more than rounding."""
    if not d.size or not trace > 0.0:
        return 0
    return int(np.count_nonzero(d > _SPENT * d[0]))


def left_of(held: Any, places: Places | None = None) -> Floats:
    """Return what covariates leave of the sums of squares of variables, of all if None."""
    stats = held.stats(places)
    left: Floats = stats.m2 if held.space is None else held.space.left(stats.m2, stats.cxy)
    return left


def of_variables(held: Any, places: Places, scale: Floats, about: About) -> tuple[Inner, Floats]:
    """Return the inner products of variables known one by one, along their principal axes.

    Parameters
    ----------
    held
        What offers `products`.
    places, scale
        (m,) the variables, and what they are multiplied by.
    about
        What is known, but for what follows from the variables.

    Returns
    -------
    inner, weighted
        The inner products, and the variables, (m, s), as the axes see them.
    """
    stats, space = held.stats(places), held.space
    length = np.sqrt(left_of(held, places)) * scale
    C = held.products(places)[places] * length * length[:, None]
    d, V = eigh(C, check_finite=False, driver="evd")
    k = int(np.count_nonzero(d > _SPENT * d[-1])) if d[-1] > 0.0 else 0
    d, V = d[::-1][:k], V[:, ::-1][:, :k]
    root = np.sqrt(d)
    parts = np.square(length / length.max())
    about = about._replace(p=places.size, even=float(parts.sum()) ** 2 / float(parts @ parts))
    U, Y = np.zeros((k, 0)), np.zeros((k, 0))
    if space is not None:
        U = V.T @ (length[:, None] * held.coordinates(places)) / root[:, None]
        Y = V.T @ (scale[:, None] * (stats.cxy @ space.own.T)) / root[:, None]
    return Inner(d, U, Y, about), V * root
