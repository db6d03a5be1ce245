"""Components: how relevant each is, or how much of the variance it has, and what noise reaches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.held.part import Floats
from streamsel.plot._reports import expect_found, report_of
from streamsel.plot._style import ACCENT, NOISE, describe, drawing
from streamsel.plot._words import count, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streamsel.learner.report import Report

# What noise exceeds in one of twenty cases: of Tracy and Widom's law of real matrices.
_TRACY_WIDOM = 0.9793
# More components than these have no room for their numbers.
_NUMBERED = 20
# Components that are single columns, or rotated among a few, or found without the target: what
# single columns of noise reach says something of these. Of those made of all columns to fit the
# target it says nothing, for noise too is explained in full where columns outnumber rows.
_LIKE_COLUMNS = {"SOSPCA", "RankedPCA"}


def scree(model: Any, ax: Axes | None = None) -> Axes:
    r"""Draw how much each component has of the target, or of the variance.

    Parameters
    ----------
    model
        An extractor, or its report.
    ax
        Where to draw; None makes a figure, 85 mm wide.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    TypeError
        For a selector, and for what is no model.
    ValueError
        For a model that has found nothing, and for components none of which is more than another:
        random ones, for instance.
    ImportError
        Without matplotlib.

    Notes
    -----
    Of components that are about a target it is their relevance; of `PCA` their share of the
    variance. Of others without a target it is the variance of the training rows, which a report
    does not hold.

    What noise reaches is drawn where it is known. For `SOSPCA` and `RankedPCA` it is the noise
    floor of single columns; a component that was rotated among several passes it more often. For
    `PCA(scale=True)` it is the share that the first component of $p$ columns that have nothing to
    do with one another exceeds once in twenty times at most, by the law of Tracy and Widom[^1]:
    with $m = n - 1$ degrees of freedom $(\mu + 0.9793\,\sigma) / (m p)$, where
    $\mu = (\sqrt{m} + \sqrt{p})^2$ and
    $\sigma = (\sqrt{m} + \sqrt{p}) (1/\sqrt{m} + 1/\sqrt{p})^{1/3}$. For components that were
    made of all columns to fit a target, as those of `PLS` and `RidgeComponents`, nothing is drawn:
    where columns outnumber rows those of noise are as relevant.

    References
    ----------
    [^1]: Johnstone, I. M. (2001). On the distribution of the largest eigenvalue in principal
    components analysis. Annals of Statistics 29(2), 295-327.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import PCA, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 500)) + rng.normal(size=(100, 500))
    >>> model = PCA(n_components=6, scale=True)
    >>> model.learn_columns(X)
    >>> ax = plot.scree(model)
    >>> ax.get_ylabel()
    'share of the variance'
    """
    report = report_of(model)
    expect_found(report, "components")
    label, numbers, values = _heights(model, report)
    noise = _noise(report)
    with drawing(ax) as panel:
        places = np.arange(len(values))
        panel.vlines(places, 0.0, values, color=ACCENT, lw=1.0)
        panel.plot(places, values, "o", color=ACCENT, ms=3.5, gid="components")
        if noise is not None:
            level, what = noise
            panel.axhline(
                level,
                color=NOISE,
                lw=0.9,
                ls=(0, (4, 2.5)),
                gid="noise",
                label=f"{what}: {level:.2g}",
            )
            panel.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderpad=0.1)
        panel.set_xlim(-0.6, max(len(values) - 0.4, 2.4))
        panel.set_ylim(0.0, 1.08 * max(values.max(), noise[0] if noise else 0.0) or 1.0)
        if len(values) <= _NUMBERED:
            panel.set_xticks(places, numbers)
            panel.set_xlabel("component")
        else:
            panel.xaxis.set_major_formatter(whole)
            panel.set_xlabel("components, in order")
        panel.set_ylabel(label)
        describe(panel, f"{label.capitalize()} of {count(len(values), 'component')}.")
    return panel


def _heights(model: Any, report: Report) -> tuple[str, list[str], Floats]:
    """Return what components have, their numbers, and how much each has, the largest first."""
    numbers = [row["name"].removeprefix(report.learner.lower()) for row in report.found]
    if "share" in report.found[0]:
        shares = np.array([row["share"] for row in report.found])
        return "share of the variance", numbers, shares
    relevance = np.array([row["relevance"] or 0.0 for row in report.found])
    if not (relevance == 1.0).all() or report.noise_floor is not None:
        return "relevance", numbers, relevance
    embedding = None if "any_variable" in report.facts else getattr(model, "embedding", None)
    if embedding is not None and embedding.size:
        variances = embedding.var(axis=0)
        order = np.argsort(-variances, kind="stable")
        if len(variances) == 1 or np.ptp(variances) > 1e-9 * variances.max():
            return "variance", [str(k) for k in order.tolist()], variances[order]
    raise ValueError(
        "Expected components some of which are more than others. Got: those of "
        f"{report.learner}, all alike.\nHint: scatter shows where they place the rows."
    )


def _noise(report: Report) -> tuple[float, str] | None:
    """Return what noise reaches, and what that is; None where it is not known."""
    if report.learner in _LIKE_COLUMNS and report.noise_floor is not None:
        return report.noise_floor, "noise floor of single columns"
    set_to = report.parameters
    if report.learner == "PCA" and set_to["scale"] and not set_to["fading_factor"]:
        level = largest_share(report.rows, report.columns_seen - report.columns_constant)
        return None if level is None else (level, "first component of noise")
    return None


def largest_share(n: int, p: int) -> float | None:
    """Return the share of variance that a component of noise exceeds with a chance of 5 %.

    Parameters
    ----------
    n, p
        Observations, and columns of variance 1 that have nothing to do with one another.

    Notes
    -----
    It is the law of columns of random length. Those that were scaled to the same one vary less, so
    that with few columns the chance is smaller.
    """
    m = n - 1
    if min(m, p) < 2:
        return None
    root = math.sqrt(m) + math.sqrt(p)
    spread = root * math.cbrt(1.0 / math.sqrt(m) + 1.0 / math.sqrt(p))
    return min(1.0, (root**2 + _TRACY_WIDOM * spread) / (m * p))
