"""Batches of series, intermediate results that features share, and declarations of features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from streamsel._kernels.series_dependence import fill_lagged_products
from streamsel._kernels.series_values import (
    MEAN,
    STANDARD_DEVIATION,
    STATISTICS,
    fill_repeats,
    fill_statistics,
)
from streamsel.params import ChoiceRule, FlagRule, FloatRule, IntRule

Floats = npt.NDArray[np.float64]
Parameters = Mapping[str, Any]
Rule = ChoiceRule | FlagRule | FloatRule | IntRule

# A batch fits into the cache, and the features of it into a few megabytes.
_MAX_OBSERVATIONS = 65_536
_MAX_SERIES = 1024
# Observations in a segment of Welch's method.
_WELCH_LENGTH = 256


class SeriesFeature(NamedTuple):
    """A feature of series that may have parameters.

    Parameters
    ----------
    compute
        Returns (k, b), for each of k sets of parameters the feature of every series of a batch. It
        depends on that series alone, and is not finite if undefined.
    rules
        The rule of every parameter, in alphabetical order.
    defaults
        The sets of parameters that are streamed by default.
    """

    compute: Callable[[SeriesBatch, Sequence[Parameters]], Floats]
    rules: Mapping[str, Rule] = {}
    defaults: Sequence[Parameters] = ({},)


def each(one: Callable[..., Floats]) -> Callable[[SeriesBatch, Sequence[Parameters]], Floats]:
    """Return a function that computes a feature for one set of parameters after the other."""
    return lambda batch, parameter_sets: np.array(
        [one(batch, **parameters) for parameters in parameter_sets]
    )


class SeriesBatch:
    """Series in ascending order of length, one per row, with NaN after their ends.

    Parameters
    ----------
    series
        (b, t) observations.
    lengths
        (b,) numbers of observations, ascending.
    """

    def __init__(self, series: Floats, lengths: npt.NDArray[np.int64]) -> None:
        self.series, self.lengths = series, lengths
        self._autocovariances: dict[int, Floats] = {}

    @cached_property
    def statistics(self) -> Floats:
        """(30, b) the statistics of `STATISTICS`."""
        found = np.empty((len(STATISTICS), self.lengths.size))
        fill_statistics(self.series, self.lengths, found)
        return found

    @cached_property
    def ordered(self) -> Floats:
        """(b, t) ascending values of each series."""
        return np.sort(self.series, axis=1)

    @cached_property
    def repeats(self) -> Floats:
        """(5, b) counts and sums of repeated values, as `fill_repeats` has them."""
        found = np.empty((5, self.lengths.size))
        fill_repeats(self.ordered, self.lengths, found)
        return found

    @cached_property
    def centred(self) -> Floats:
        """(b, t) series minus their means."""
        centred: Floats = self.series - self.statistics[MEAN][:, None]
        return centred

    @property
    def deviations(self) -> Floats:
        """(b,) standard deviations."""
        deviations: Floats = self.statistics[STANDARD_DEVIATION]
        return deviations

    def quantiles(self, shares: npt.ArrayLike) -> Floats:
        """Return (q, b) quantiles by linear interpolation between values."""
        position = np.asarray(shares)[:, None] * (self.lengths - 1.0)
        below = np.maximum(np.floor(position), 0.0)
        part = position - below
        index = below.astype(np.intp)
        rows = np.arange(self.lengths.size)
        low = self.ordered[rows, index]
        high = self.ordered[rows, np.minimum(index + 1, np.maximum(self.lengths - 1, 0))]
        # From the nearer end, as NumPy does.
        width = high - low
        nearer_low = low + width * part
        found: Floats = np.where(part < 0.5, nearer_low, high - width * (1.0 - part))
        return found

    def autocorrelations(self, lags: list[int]) -> Floats:
        """Return (k, b) autocorrelations at some lags; NaN if undefined."""
        missing = [lag for lag in {0, *lags} if lag not in self._autocovariances]
        if missing:
            found = np.empty((len(missing), self.lengths.size))
            fill_lagged_products(self.centred, self.lengths, np.array(missing), found)
            self._autocovariances.update(zip(missing, found, strict=True))
        rows = np.array([self._autocovariances[lag] for lag in lags])
        correlations: Floats = rows / self._autocovariances[0]
        return correlations

    def runs(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows of series of equal length, at least 1, and these without padding."""
        ends = np.flatnonzero(np.diff(self.lengths)) + 1
        for start, stop in zip([0, *ends], [*ends, self.lengths.size], strict=True):
            if length := self.lengths[start]:
                yield slice(start, stop), self.series[start:stop, :length]

    @cached_property
    def spectra(self) -> list[tuple[slice, npt.NDArray[np.complex128]]]:
        """Fourier coefficients of the series of each length."""
        return [(rows, np.fft.rfft(part)) for rows, part in self.runs()]

    @cached_property
    def densities(self) -> list[tuple[slice, Floats, Floats]]:
        """Rows, frequencies and power spectral densities (Welch) of the series of each length."""
        return [(rows, *_welch(part)) for rows, part in self.runs()]


def _welch(series: Floats) -> tuple[Floats, Floats]:
    """Return frequencies and power spectral densities, by half-overlapping Hann windows."""
    n = series.shape[1]
    length = min(n, _WELCH_LENGTH)
    step = length - length // 2
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(length) / length)
    if length == 1:
        window = np.ones(1)
    segments = np.lib.stride_tricks.sliding_window_view(series, length, axis=1)[:, ::step]
    constant = np.ptp(segments, axis=2, keepdims=True) == 0.0
    segments = np.where(constant, 0.0, segments - segments.mean(axis=2, keepdims=True))
    density = np.square(np.abs(np.fft.rfft(segments * window))).mean(axis=1)
    density /= (window * window).sum()
    # The spectrum is one-sided: only 0 and the frequency of Nyquist have no mirror image.
    density[:, 1 : (length + 1) // 2] *= 2.0
    return np.arange(density.shape[1]) / length, density


def iter_series_batches(
    values: Floats, starts: npt.NDArray[np.int64]
) -> Iterator[tuple[npt.NDArray[np.intp] | slice, SeriesBatch]]:
    """Yield series in batches of similar length, with their indices.

    Parameters
    ----------
    values
        Observations of all series, one after another.
    starts
        (n + 1,) where the series start, and the end of the last one.
    """
    lengths = np.diff(starts)
    n = lengths.size
    is_even = bool((lengths == lengths[0]).all()) and lengths[0] > 0
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < n:
        max_series = min(_MAX_SERIES, max(1, _MAX_OBSERVATIONS // max(1, lengths[order[start]])))
        ids = order[start : start + max_series]
        sizes = lengths[ids] * np.arange(1, ids.size + 1)
        ids = ids[: max(1, int(np.searchsorted(sizes, _MAX_OBSERVATIONS, side="right")))]
        part = lengths[ids]
        if is_even:
            stop = start + ids.size
            series = values[starts[start] : starts[stop]].reshape(ids.size, part[-1])
            yield slice(start, stop), SeriesBatch(series, part)
        else:
            yield ids, SeriesBatch(_padded(values, starts[ids], part), part)
        start += ids.size


def _padded(
    values: Floats, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> Floats:
    """Return series as rows of a matrix, with NaN after their ends."""
    t = np.arange(max(1, lengths[-1]))
    index = np.minimum(starts[:, None] + t, max(0, values.size - 1))
    if values.size == 0:
        return np.full(index.shape, np.nan)
    series: Floats = np.where(t < lengths[:, None], values[index], np.nan)
    return series
