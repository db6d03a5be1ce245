"""Q-Q plot of the columns' p-values against their distribution under the null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamsel.plot._axes import annotate_noise, draw_points
from streamsel.plot._labels import count_label
from streamsel.plot.inputs import own_p_values, report_density, report_from
from streamsel.plot.style import ACCENT, FAINT, axes_in_style, muted, set_description
from streamsel.state.base import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Pointwise coverage of the band under the null.
_COVERAGE = 0.95
# Maximum number of p-values that are all drawn, and the p-value below which none is.
_N_POINTS, _MIN_P_VALUE = 1_000, 1e-300


class Quantiles(NamedTuple):
    """p-values of the columns, observed and expected under the null, as -log10.

    Parameters
    ----------
    expected, observed
        p-value of the k-th most relevant column: k / (p + 1), and that of its relevance.
    low, high
        Band of the observed p-value under the null.
    """

    expected: Floats
    observed: Floats
    low: Floats
    high: Floats


def qq(model: Any, ax: Axes | None = None, **kwargs: Any) -> Axes:
    """Plot the p-values of the columns against those expected under the null (Q-Q plot).

    Parameters
    ----------
    model
        A learner with a target, or its report. Scores whose p-values do not follow from the
        relevance (`"mutual_info"`, `"rank"`, `"xi"`, and those of the target types `"binary"` and
        `"count"`) require a learner that tracks every column.
    ax
        Axes to draw on; None draws on the current axes of pyplot.
    **kwargs
        Properties of the points, as of `Axes.plot`.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    ValueError
        For a model without a target, one that has seen no column, and one that has neither a known
        null distribution of relevance nor the p-values of all columns.
    TypeError
        For objects that are not models.
    ImportError
        Without matplotlib.

    Notes
    -----
    If no column is associated with the target the points follow the diagonal, within a pointwise 95
    % band under the null (the k-th of p p-values is Beta(k, p - k + 1)). A curve that rises above
    it throughout shows weak association of nearly all columns: shared structure, such as batches or
    ancestry. The inflation factor λ summarizes it: the median statistic divided by its median under
    the null, for more than 1,000 columns. For more than 500 columns, relevances are binned, 4 %
    apart, and a p-value is that of the lower edge of its bin; of more than 1,000 p-values that do
    not follow from the relevance, about 500 are drawn, evenly spaced on the x axis. Columns whose
    p-value is below 1e-300 are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import SelectKBest, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 500))
    >>> model = SelectKBest(k=3)
    >>> model.learn_target(X[:, 7] + rng.normal(size=100))
    >>> model.learn_columns(X)
    >>> ax = plot.qq(model)
    >>> ax.get_xlabel()
    'expected of noise, −log₁₀ p'
    """
    report = report_from(model)
    density = report_density(report)
    own = own_p_values(model)
    if own is None and density.null is not None and density.p_values is not None:
        own = density.p_values[~np.isnan(density.p_values)]
    if own is not None:
        found, p = quantiles_of(own), own.size
    elif density.null is not None:
        found, p = quantiles(density.counts.sum(axis=0), density.null), int(density.counts.sum())
    else:
        raise ValueError(
            "Expected a model with a known null distribution of relevance, or with the p-values of "
            f"all columns. Got: {report.learner}, which has neither.\nHint: for a score with "
            "p-values of its own pass the learner rather than its report, with "
            "max_candidates=None; plot.manhattan shows the relevance of the columns."
        )
    with axes_in_style(ax, height=80.0) as panel:
        end = 1.04 * max(found.expected.max(initial=0.0), 0.5)
        line = [0.0, end]
        panel.fill_between(found.expected, found.low, found.high, color=FAINT, alpha=0.35, lw=0)
        panel.plot(line, line, color=muted(), lw=0.8, gid="noise")
        style = {"color": ACCENT, "markersize": 2.6, "markeredgewidth": 0.0, "gid": "observed"}
        pairs = zip(10.0**-found.observed, 10.0**-found.expected, strict=True)
        texts = [f"p = {p_value:.2g}; expected {expected:.2g}" for p_value, expected in pairs]
        draw_points(panel, found.expected, found.observed, texts, kwargs, **style)
        panel.set(
            xlim=(0.0, end),
            ylim=(0.0, 1.06 * max(found.observed.max(initial=0.0), end)),
            xlabel="expected of noise, −log₁₀ p",
            ylabel="observed, −log₁₀ p",
        )
        at_edge = {"xycoords": ("axes fraction", "data"), "va": "center"}
        annotate_noise(panel, "noise", (1.0, end), (3, 0), **at_edge)
        factor, inflation = report.inflation, ""
        if factor is not None:
            inflation = f" Inflation factor {factor:.2f}."
            panel.annotate(
                *(f"λ = {factor:.2f}", (1.0, 1.0), (0, 2)),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="right",
            )
        set_description(
            panel,
            f"p-values of {count_label(p, 'column')}, observed against expected of noise."
            + inflation,
        )
    return panel


def quantiles(counts: Any, probabilities: Floats) -> Quantiles:
    """Return p-values as -log10 at the edges of bins.

    Parameters
    ----------
    counts
        (b,) columns in each bin of relevance.
    probabilities
        (b + 1,) probability that a column of noise is above each edge.
    """
    p = int(np.sum(counts))
    above = np.cumsum(np.asarray(counts)[::-1])[::-1]
    # An edge of an empty bin is left out: the next edge has the same count and a sharper p-value.
    is_used = (np.asarray(counts) > 0) & (above > 0) & (probabilities[:-1] > 0.0)
    return _with_band(above[is_used].astype(np.float64), probabilities[:-1][is_used], p)


def quantiles_of(p_values: Floats) -> Quantiles:
    """Return the p-values of p columns as -log10; only a part of them if p is large."""
    p = p_values.size
    found, last = np.unique(p_values, return_counts=True)
    k = np.cumsum(last)
    if found.size > _N_POINTS:
        spaced = np.searchsorted(k, np.geomspace(1.0, k[-1], _N_POINTS // 2))
        found, k = found[np.unique(spaced)], k[np.unique(spaced)]
    is_used = found > _MIN_P_VALUE
    return _with_band(k[is_used].astype(np.float64), found[is_used], p)


def _with_band(k: Floats, p_value: Floats, p: int) -> Quantiles:
    """Return the k-th smallest of p p-values, with the band under the null."""
    from scipy.special import betaincinv

    tail = (1.0 - _COVERAGE) / 2.0
    low, high = (betaincinv(k, p - k + 1.0, level) for level in (1.0 - tail, tail))
    return Quantiles(*(-np.log10(part) for part in (k / (p + 1.0), p_value, low, high)))
