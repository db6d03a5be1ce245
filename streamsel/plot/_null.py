"""Relevance against its null: how many columns are as relevant as noise would make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamsel.held.part import Floats
from streamsel.plot._density import density_of
from streamsel.plot._reports import report_of
from streamsel.plot._style import ACCENT, FAINT, NOISE, TINY, describe, drawing
from streamsel.plot._words import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of pure noise so many of the points lie in the band.
_BAND = 0.95


class Quantiles(NamedTuple):
    """Chances of the columns under noise, as they are and as noise would have them, in -log10.

    Parameters
    ----------
    expected, observed
        The chance of the k-th most relevant column: k / (p + 1), and what its relevance has.
    low, high
        Between which the observed one of pure noise lies.
    """

    expected: Floats
    observed: Floats
    low: Floats
    high: Floats


def null(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the chances of the columns under pure noise against those that noise would have.

    Parameters
    ----------
    model
        A learner with a target, or its report.
    ax
        Where to draw; None makes a figure, 85 mm wide.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    ValueError
        For a model without a target, one that has seen no column, and one for which it is not known
        how relevant noise is.
    TypeError
        For what is no model.
    ImportError
        Without matplotlib.

    Notes
    -----
    If no column tells of the target the points follow the diagonal, within the band where 95 % of
    noise lies, point by point (the k-th of p chances is Beta(k, p - k + 1)). A curve above it from
    the left on says that nearly all columns tell a little: by structure that they share, such as
    batches or ancestry. Relevances are known by bins, 4 % apart; columns so relevant that noise
    has no chance above 1e-300 are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import SelectKBest, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 500))
    >>> model = SelectKBest(k=3)
    >>> model.learn_target(X[:, 7] + rng.normal(size=100))
    >>> model.learn_columns(X)
    >>> ax = plot.null(model)
    >>> ax.get_xlabel()
    'expected of noise, −log₁₀ p'
    """
    report = report_of(model)
    density = density_of(report)
    if density.null is None:
        raise ValueError(
            "Expected a model for which it is known how relevant noise is. Got: "
            f"{report.learner}, of which it is not.\nHint: relevance shows how relevant the "
            "columns are."
        )
    found = quantiles(density.counts.sum(axis=0), density.null)
    with drawing(ax, height=80.0) as panel:
        end = 1.04 * max(found.expected.max(initial=0.0), 0.5)
        line = [0.0, end]
        panel.fill_between(found.expected, found.low, found.high, color=FAINT, alpha=0.35, lw=0)
        panel.plot(line, line, color=NOISE, lw=0.8, gid="noise")
        panel.plot(found.expected, found.observed, "o", color=ACCENT, ms=2.6, mew=0, gid="observed")
        panel.set_xlim(0.0, end)
        panel.set_ylim(0.0, 1.06 * max(found.observed.max(initial=0.0), end))
        panel.set_xlabel("expected of noise, −log₁₀ p")
        panel.set_ylabel("observed, −log₁₀ p")
        panel.annotate(
            "noise",
            (end, end),
            (-2, -9),
            textcoords="offset points",
            ha="right",
            va="top",
            color=NOISE,
            fontsize=TINY,
        )
        p = int(density.counts.sum())
        describe(panel, f"Chances of {count(p, 'column')} under noise, observed against expected.")
    return panel


def quantiles(counts: Any, chances: Floats) -> Quantiles:
    """Return chances in -log10 at the edges of bins.

    Parameters
    ----------
    counts
        (b,) columns in each bin of relevance.
    chances
        (b + 1,) of a column of noise to be above each edge.
    """
    from scipy.special import betaincinv

    p = int(np.sum(counts))
    above = np.cumsum(np.asarray(counts)[::-1])[::-1]
    # At an edge above which nothing new lies the next one tells the same, and more sharply.
    new = (np.asarray(counts) > 0) & (above > 0) & (chances[:-1] > 0.0)
    k, chance = above[new].astype(np.float64), chances[:-1][new]
    tail = (1.0 - _BAND) / 2.0
    low, high = (betaincinv(k, p - k + 1.0, level) for level in (1.0 - tail, tail))
    return Quantiles(*(-np.log10(part) for part in (k / (p + 1.0), chance, low, high)))
