"""Stream of lagged series, whose products with the target are correlations of two series."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from streamsel._utils.numeric import two_sum
from streamsel._utils.system import run_in_threads
from streamsel.data.chunks import Block
from streamsel.data.generated import (
    GeneratedColumns,
    GeneratedMoments,
    MomentsCache,
    parts_of_width,
)
from streamsel.data.names import LazyNames
from streamsel.params import IntRule, parameter_repr
from streamsel.serialization.json_values import is_iterable_collection
from streamsel.stream._coerce import as_stream
from streamsel.stream._products import BaseColumns, Floats
from streamsel.stream._stream import ColumnStream, raise_unknown_names

# Columns of a block, if it has several series.
_BLOCK_COLUMNS = 1 << 16
# Values of the series that are correlated at once: they stay in the cache.
_TILE_VALUES = 1 << 17
# From this many lags on, a Fourier transform takes less time than a product for each.
_MIN_LAGS_FOURIER = 256
# If less than this fraction of the sum of squares of the series is left in a window, moments are
# not accurate.
_CANCELLATION_RTOL = 1e-3
# A sum of squares below this has lost digits to underflow.
_UNDERFLOW = 1e-300


def iter_lags(source: Any, lags: Any) -> ColumnStream:
    """Stream lagged series: each column of a table of series, shifted by each lag.

    Parameters
    ----------
    source
        The series, one per column, of real numbers at equal steps: any input that `as_stream`
        accepts.
    lags
        The largest lag m, for lags from 1 to m; or distinct lags, integers of at least 0.

    Raises
    ------
    ValueError
        If there are no lags or the same one twice, or fewer than two rows have all of them; if the
        series differ in length, or two have the same name.
    TypeError
        If a series does not consist of real numbers; the message names it.

    Notes
    -----
    With m the largest lag, columns have the n - m rows whose lags are all known: the target is
    y[m:]. Column (name, lag) has the value of the series `lag` steps before. Columns are ordered by
    series, then by lag.

    The series are read when the function is called, and kept in memory in their own type. As with
    `iter_interactions`, most columns are not made: their means and sums of squares follow from
    those of the series and of its ends, and their products with the target are its correlations
    with the series. These take n multiplications per column and target, or from 256 lags on
    O(n log n) for all lags of a series, by a Fourier transform.

    See Also
    --------
    iter_interactions : shows which learners gain, and when columns are made.

    Examples
    --------
    >>> import numpy as np
    >>> series = as_stream(np.array([[1.0], [2.0], [4.0], [8.0], [16.0]]), names=["s"])
    >>> for name, values in iter_lags(series, 2):
    ...     print(name, values)
    ('s', 1) [2. 4. 8.]
    ('s', 2) [1. 2. 4.]
    """
    chosen = _checked_lags(lags)
    base = BaseColumns.read(as_stream(source))
    d, n = len(base.names), base.X.shape[1] - max(chosen)
    if n < 2:
        raise ValueError(
            f"Expected series of at least {max(chosen) + 2} values, the largest lag and two rows. "
            f"Got: {base.X.shape[1]}.\nHint: use smaller lags."
        )
    width = max(1, _BLOCK_COLUMNS // len(chosen))

    def read(skip: int) -> Iterator[Block]:
        for part in parts_of_width(d, width):
            start, stop = part.start * len(chosen), part.stop * len(chosen)
            if skip < stop:
                which, rest = range(start, stop), slice(max(0, skip - start), None)
                names, columns = _LagNames(base, chosen, which), LaggedColumns(base, chosen, which)
                yield Block(names[rest], columns.part(rest))

    def take(requested: Sequence[Hashable]) -> dict[Hashable, Any]:
        names = _LagNames(base, chosen, range(d * len(chosen)))
        found = {name: names.find(name) for name in requested}
        if unknown := [name for name, index in found.items() if index is None]:
            raise_unknown_names(unknown, names)
        columns = LaggedColumns(base, chosen, range(len(names)))
        made = columns.columns(np.array(list(found.values()), dtype=np.intp))
        return dict(zip(requested, made, strict=True))

    return ColumnStream(
        lambda: read(0), n_rows=n, n_columns=d * len(chosen), take=take, blocks_from=read
    )


def _checked_lags(lags: Any) -> list[int]:
    if IntRule(1).admits(lags):
        return list(range(1, int(lags) + 1))
    chosen = list(lags) if is_iterable_collection(lags) and not isinstance(lags, str) else []
    if not chosen or not all(map(IntRule(0).admits, chosen)) or len({*chosen}) < len(chosen):
        raise ValueError(
            "Expected lags of iter_lags to be a positive int, or distinct ints in the range "
            f"[0, inf). Got: {parameter_repr(lags)}."
        )
    return [int(lag) for lag in chosen]


class _LagNames(LazyNames):
    """Names of lagged series: pairs of the name of the series and the lag."""

    def __init__(self, base: BaseColumns, lags: list[int], which: range) -> None:
        self._base, self._lags, self._which = base, lags, which
        self._lag_index = {lag: i for i, lag in enumerate(lags)}

    def __len__(self) -> int:
        return len(self._which)

    @overload
    def __getitem__(self, index: int) -> Hashable: ...

    @overload
    def __getitem__(self, index: slice) -> _LagNames: ...

    def __getitem__(self, index: int | slice) -> Hashable | _LagNames:
        if isinstance(index, slice):
            return _LagNames(self._base, self._lags, self._which[index])
        j, i = divmod(self._which[index], len(self._lags))
        return self._base.names[j], self._lags[i]

    def find(self, name: Hashable) -> int | None:
        """Return the index of a name, None if it is not among these."""
        if not isinstance(name, tuple) or len(name) != 2:
            return None
        j, i = self._base.index_of.get(name[0]), self._lag_index.get(name[1])
        if j is None or i is None:
            return None
        found = j * len(self._lags) + i
        return self._which.index(found) if found in self._which else None


class LaggedColumns(GeneratedColumns):
    """Consecutive lagged series.

    Parameters
    ----------
    base
        The series.
    lags
        The lags of each.
    which
        The columns: number of the series times the number of lags, plus the index of the lag.
    """

    def __init__(self, base: BaseColumns, lags: list[int], which: range) -> None:
        self._base, self._lags, self._which = base, lags, which
        self._max = max(lags)
        self.shape = base.X.shape[1] - self._max, len(which)
        self._moments = MomentsCache()
        self._whole: tuple[LaggedColumns, slice] = self, slice(0, len(which))

    def part(self, which: slice) -> LaggedColumns:
        """Return consecutive columns, without making them."""
        found = LaggedColumns(self._base, self._lags, self._which[which])
        # Moments are computed for all at once.
        whole, mine = self._whole
        start = mine.start + which.indices(len(self._which))[0]
        found._whole = whole, slice(start, start + len(found._which))
        return found

    def columns(self, indices: npt.NDArray[np.intp]) -> Floats:
        """Make the columns at `indices`, one per row, (k, n)."""
        out = np.empty((indices.size, self.shape[0]))
        for row, index in zip(out, indices.tolist(), strict=True):
            j, i = divmod(self._which[index], len(self._lags))
            row[:] = self._base.X[j, self._window(self._lags[i])]
        return out

    def _window(self, lag: int) -> slice:
        return slice(self._max - lag, self._max - lag + self.shape[0])

    def products(self, V: Floats) -> Floats:
        """Return the inner products of all columns with the rows of V (q, n), (b, q)."""
        series, mine = self._series()
        found = np.empty((series.stop - series.start, len(self._lags), len(V)))
        step = max(1, _TILE_VALUES // self._base.X.shape[1])
        for part in parts_of_width(len(found), step):
            columns = slice(series.start + part.start, series.start + part.stop)
            found[part] = self._correlate(self._base.X[columns].astype(np.float64), V)
        return found.reshape(-1, len(V))[mine]

    def _series(self) -> tuple[slice, slice]:
        """Return the series of these columns, and the columns among all lags of these series."""
        size, which = len(self._lags), self._which
        first, last = which.start // size, -(-which.stop // size)
        return slice(first, last), slice(which.start - first * size, which.stop - first * size)

    def _correlate(self, X: Floats, V: Floats) -> Floats:
        """Return the products of all lags of series X (s, N) with rows V (q, n), (s, l, q)."""
        found = np.empty((len(X), len(self._lags), len(V)))
        if len(self._lags) < _MIN_LAGS_FOURIER:
            for i, lag in enumerate(self._lags):
                found[:, i] = X[:, self._window(lag)] @ V.T
            return found
        from scipy.fft import irfft, next_fast_len, rfft

        # Row t of the window from k on is row t + k < N of the series: sums do not wrap around.
        size = next_fast_len(X.shape[1], real=True)
        starts = [self._max - lag for lag in self._lags]
        of_series = rfft(X, size, axis=1)
        for k, row in enumerate(V):
            spectrum = of_series * np.conj(rfft(row, size))
            found[:, :, k] = irfft(spectrum, size, axis=1)[:, starts]
        return found

    def moments(self, Y: Floats, n_jobs: int = 1) -> GeneratedMoments:
        """Return the moments of all columns."""
        whole, mine = self._whole
        return whole._moments.of(Y, lambda: whole._computed(Y, n_jobs)).part(mine)

    def _computed(self, Y: Floats, n_jobs: int) -> GeneratedMoments:
        series, mine = self._series()
        shape = series.stop - series.start, len(self._lags)
        mean, mean_error, m2 = (np.empty(shape) for _ in range(3))
        cxy, is_accurate = np.empty((*shape, len(Y))), np.empty(shape, dtype=np.bool_)
        tiles = list(parts_of_width(shape[0], max(1, _TILE_VALUES // self._base.X.shape[1])))

        @np.errstate(all="ignore")
        def add_tiles(which: slice) -> None:
            for tile in tiles[which]:
                columns = slice(series.start + tile.start, series.start + tile.stop)
                X, about, low = _centred(self._base.X[columns])
                sums, squares = self._window_sums(X), self._window_sums(np.square(X))
                shift = sums / self.shape[0]
                mean[tile], mean_error[tile] = two_sum(about[:, None], low[:, None] + shift)
                m2[tile] = squares - sums * shift
                # A constant series, too, is to be scanned.
                total = np.square(X).sum(axis=1, keepdims=True)
                is_accurate[tile] = (m2[tile] >= _CANCELLATION_RTOL * total) & (
                    total * _CANCELLATION_RTOL > _UNDERFLOW
                )
                cxy[tile] = self._correlate(X, Y)

        run_in_threads(add_tiles, len(tiles), max(1, min(n_jobs, len(tiles))))
        found = GeneratedMoments(
            mean.reshape(-1),
            mean_error.reshape(-1),
            m2.reshape(-1),
            cxy.reshape(is_accurate.size, len(Y)),
            is_accurate.reshape(-1),
        )
        return found.part(mine)

    def _window_sums(self, X: Floats) -> Floats:
        """Return the sums of series X (s, N) over the window of each lag, (s, l).

        They are the sum over all rows without those over both ends, which are short.
        """
        lags = np.array(self._lags)
        ends = X[:, : self._max], X[:, : X.shape[1] - self._max - 1 : -1]
        head, tail = (np.cumsum(np.insert(end, 0, 0.0, axis=1), axis=1) for end in ends)
        found: Floats = X.sum(axis=1, keepdims=True) - head[:, self._max - lags] - tail[:, lags]
        return found


def _centred(X: npt.NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """Return series as float64 less their means, these, and the rounding errors of these."""
    centred = X.astype(np.float64)
    mean = centred.mean(axis=1)
    centred -= mean[:, None]
    low = centred.mean(axis=1)
    centred -= low[:, None]
    return centred, mean, low
