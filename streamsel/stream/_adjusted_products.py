"""Products of two base columns, adjusted for both, and their moments as matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from streamsel._kernels.products import adjusted_products, centre, moments_of_adjusted_products
from streamsel.data.generated import GeneratedMoments, parts_of_width
from streamsel.stream._products import TILE_ROWS, Ranges, run_over_tiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamsel.stream._products import BaseColumns, Factors, Floats

_LEFT_ROWS = 128


class AdjustedProducts:
    """Formula of products of two columns, without the part that the columns explain linearly.

    Such a column is the residual of the product of x and z in the regression on 1, x and z, which
    does not depend on the means of x and z; it is 0 if they explain the product.

    Parameters
    ----------
    base
        The base columns.
    """

    def __init__(self, base: BaseColumns) -> None:
        self.base = base
        d = len(base.X)
        self._mean, self._low, self._m2 = np.empty(d), np.empty(d), np.empty(d)
        ranges = Ranges.of(map(self._centre, range(d)), d)
        self._is_safe = ranges.are_safe(np.arange(d)[:, None])

    def _centre(self, j: int) -> Floats:
        """Record the moments of a base column, and return it centred."""
        x: Floats = self.base.X[j].astype(np.float64)
        with np.errstate(all="ignore"):
            self._mean[j] = x.mean()
            x -= self._mean[j]
            self._low[j] = x.mean()
            x -= self._low[j]
            self._m2[j] = x @ x
        return x

    @np.errstate(all="ignore")
    def make(self, prefix: Factors, last: npt.NDArray[np.intp], out: Floats) -> None:
        """Fill `out` (k, n) with the columns of a factor and some later ones, ascending."""
        u = self._centred(np.array(prefix))[0]
        adjusted_products(u, self._centred(last), out)

    def products(self, prefix: Factors, last: range, V: Floats) -> Floats:
        """Return the inner products, (k, q), of columns with rows V (q, n)."""
        found = np.empty((len(last), len(V)))
        for part in parts_of_width(len(last), max(1, TILE_ROWS * 256 // V.shape[1])):
            out = np.empty((part.stop - part.start, V.shape[1]))
            self.make(prefix, np.array(last[part]), out)
            found[part] = out @ V.T
        return found

    def moments(
        self,
        prefixes: Sequence[Factors],
        first: npt.NDArray[np.intp],
        Y: Floats,
        n_jobs: int,
    ) -> GeneratedMoments:
        """Return the moments of the columns of all factors with all later ones."""
        (d, n), c = self.base.X.shape, len(Y)
        size = int((d - first).sum())
        m2, cxy, is_accurate = np.empty(size), np.empty((size, c)), np.empty(size, "?")
        factor_cxy = np.zeros((d, c))
        start = 0
        for rows in parts_of_width(len(prefixes), max(8, _LEFT_ROWS // (2 + c))):
            which = np.array([prefix[0] for prefix in prefixes[rows]])
            stop = start + int((d - first[rows]).sum())
            columns, begin = slice(start, stop), int(which[0])
            sums = self._sums(which, Y, factor_cxy, n_jobs)
            moments_of_adjusted_products(
                *(*sums, which, begin, n, self._m2, factor_cxy, self._is_safe),
                *(m2[columns], cxy[columns], is_accurate[columns]),
            )
            start = stop
        zeros = np.zeros(size)
        return GeneratedMoments(zeros, zeros, m2, cxy, is_accurate)

    def _sums(
        self, prefixes: npt.NDArray[np.intp], Y: Floats, factor_cxy: Floats, n_jobs: int
    ) -> tuple[Floats, ...]:
        """Return the sums that `moments_of_adjusted_products` needs, from the first factor on.

        The products of the factors with Y, `factor_cxy` (d, c), are filled from there on, too.
        Tiles of the operands are fixed: no bit of the sums depends on the number of threads.
        """
        start, t, c = int(prefixes[0]), prefixes.size, len(Y)
        d, n = self.base.X.shape
        left_sums = np.zeros(((2 + c) * t, d - start))
        left_squares = np.zeros((2 * t, d - start))
        factor_cxy[start:] = 0.0

        @np.errstate(all="ignore")
        def add_rows(rows: slice) -> None:
            U = self._centred(prefixes, rows)
            left = np.concatenate([U, U * U, (Y[:, None, rows] * U).reshape(c * t, U.shape[1])])

            @np.errstate(all="ignore")
            def add_tile(tile: slice) -> None:
                columns = np.arange(start + tile.start, start + tile.stop)
                right = self._centred(columns, rows)
                left_sums[:, tile] += left @ right.T
                factor_cxy[columns] += right @ Y[:, rows].T
                np.square(right, out=right)
                left_squares[:, tile] += left[: 2 * t] @ right.T

            run_over_tiles(add_tile, d - start, n_jobs)

        for rows in parts_of_width(n, TILE_ROWS):
            add_rows(rows)
        sums, with_prefix, targets = np.split(left_sums, [t, 2 * t])
        with_factor, squares = left_squares[:t], left_squares[t:]
        return sums, squares, with_prefix, with_factor, targets.reshape(c, t, d - start)

    def _centred(self, which: npt.NDArray[np.intp], rows: slice = slice(None)) -> Floats:
        """Return some columns, centred, in some rows."""
        start, stop, _ = rows.indices(self.base.X.shape[1])
        out = np.empty((which.size, stop - start))
        centre(self.base.X, which, start, self._mean, self._low, out)
        return out
