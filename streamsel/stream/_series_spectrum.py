"""Features of the Fourier transform and the power spectral density of series."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from streamsel._kernels.series_patterns import fill_binned_entropy
from streamsel._kernels.series_values import MAXIMUM, MINIMUM
from streamsel.params import ChoiceRule, FloatRule, IntRule
from streamsel.stream._series_batch import Floats, Parameters, SeriesBatch, SeriesFeature, each

# A coefficient below this share of the largest possible one is rounding, and has no angle.
_ROUNDING = 1e-15
# A spectrum that is narrower, in squared coefficients, has no shape.
_MIN_VARIANCE = 0.5
_FREQUENCY = FloatRule(0.0, below=0.5, closed=True)
_OCTAVES = (0.0, 0.03125, 0.0625, 0.125, 0.25, 0.5)


def _fft_coefficient(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    out = np.full((len(parameter_sets), batch.lengths.size), np.nan)
    largest = np.maximum(np.abs(batch.statistics[MAXIMUM]), np.abs(batch.statistics[MINIMUM]))
    limits = _ROUNDING * batch.lengths * largest
    attributes = np.array([parameters["attr"] for parameters in parameter_sets])
    coefficients = np.array([parameters["coeff"] for parameters in parameter_sets])
    for rows, spectrum in batch.spectra:
        exists = coefficients < spectrum.shape[1]
        for attribute in dict.fromkeys(attributes.tolist()):
            indices = np.flatnonzero(exists & (attributes == attribute))
            part = spectrum[:, coefficients[indices]]
            if attribute == "angle":
                angle = np.degrees(np.arctan2(part.imag, part.real))
                values = np.where(np.abs(part) > limits[rows, None], angle, 0.0)
            else:
                values = np.abs(part) if attribute == "abs" else getattr(part, attribute)
            out[indices, rows] = values.T
    return out


def _spectral_moments(batch: SeriesBatch) -> dict[str, Floats]:
    """Return centroid, variance, skew and kurtosis of the absolute spectrum."""
    names = ("centroid", "variance", "skew", "kurtosis")
    out = np.full((4, batch.lengths.size), np.nan)
    for rows, spectrum in batch.spectra:
        share = np.abs(spectrum)
        share /= share.sum(axis=1, keepdims=True)
        k = np.arange(spectrum.shape[1])
        centroid = (share * k).sum(axis=1)
        distance = k - centroid[:, None]
        variance = (share * distance**2).sum(axis=1)
        shaped = np.where(variance < _MIN_VARIANCE, np.nan, variance)
        out[0, rows], out[1, rows] = centroid, variance
        out[2, rows] = (share * distance**3).sum(axis=1) / shaped**1.5
        out[3, rows] = (share * distance**4).sum(axis=1) / shaped**2
    return dict(zip(names, out, strict=True))


def _fft_aggregated(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    found = _spectral_moments(batch)
    return np.array([found[parameters["aggtype"]] for parameters in parameter_sets])


def _welch_density(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    out = np.full((len(parameter_sets), batch.lengths.size), np.nan)
    coefficients = np.array([parameters["coeff"] for parameters in parameter_sets])
    for rows, _, density in batch.densities:
        indices = np.flatnonzero(coefficients < density.shape[1])
        out[indices, rows] = density[:, coefficients[indices]].T
    return out


def _welch_power_share(batch: SeriesBatch, *, high: float, low: float) -> Floats:
    out = np.full(batch.lengths.size, np.nan)
    for rows, frequencies, density in batch.densities:
        is_inside = (frequencies > low) & (frequencies <= high)
        # Copies of one layout: the sums of a series are the same in any batch.
        inside, all_but_mean = density[:, is_inside].copy("C"), density[:, 1:].copy("C")
        out[rows] = inside.sum(axis=1) / all_but_mean.sum(axis=1)
    return out


def _fourier_entropy(batch: SeriesBatch, bins: int) -> Floats:
    out = np.full(batch.lengths.size, np.nan)
    for rows, _, density in batch.densities:
        largest = density.max(axis=1)
        lengths = np.full(largest.size, density.shape[1])
        found = np.empty(largest.size)
        fill_binned_entropy(density / largest[:, None], lengths, bins, found)
        out[rows] = np.where(largest > 0.0, found, np.nan)
    return out


SPECTRAL_FEATURES = {
    "fft_coefficient": SeriesFeature(
        _fft_coefficient,
        {"attr": ChoiceRule(("real", "imag", "abs", "angle")), "coeff": IntRule(0)},
        [
            {"attr": attr, "coeff": coeff}
            for attr in ("real", "imag", "abs", "angle")
            for coeff in range(attr == "imag", 100)
        ],
    ),
    "fft_aggregated": SeriesFeature(
        _fft_aggregated,
        {"aggtype": ChoiceRule(("centroid", "variance", "skew"))},
        [{"aggtype": name} for name in ("centroid", "variance", "skew")],
    ),
    "spectral_kurtosis": SeriesFeature(each(lambda batch: _spectral_moments(batch)["kurtosis"])),
    "spkt_welch_density": SeriesFeature(
        _welch_density, {"coeff": IntRule(0)}, [{"coeff": coeff} for coeff in (2, 5, 8)]
    ),
    "welch_power_share": SeriesFeature(
        each(_welch_power_share),
        {"high": _FREQUENCY, "low": _FREQUENCY},
        [{"high": high, "low": low} for low, high in pairwise(_OCTAVES)],
    ),
    "fourier_entropy": SeriesFeature(
        each(_fourier_entropy),
        {"bins": IntRule(1, below=10_001)},
        [{"bins": bins} for bins in (2, 3, 5, 10, 100)],
    ),
}
