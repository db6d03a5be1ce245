"""Scree plot: relevance or share of variance of each component, and the level of noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.plot._axes import add_legend_above, draw_noise_level, draw_points
from streamsel.plot._labels import count_label, integer_label
from streamsel.plot.inputs import report_from
from streamsel.plot.style import ACCENT, axes_in_style, set_description
from streamsel.state.base import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streamsel.base.report import Report

# 95 % quantile of the Tracy-Widom law for real matrices.
_TRACY_WIDOM = 0.9793
# With more components their numbers are left out.
_MAX_NUMBERED = 20


def scree(model: Any, ax: Axes | None = None, **kwargs: Any) -> Axes:
    r"""Plot relevance or share of variance of each component (scree plot).

    Parameters
    ----------
    model
        An extractor, or its report.
    ax
        Axes to draw on; None draws on the current axes of pyplot.
    **kwargs
        Properties of the points, as of `Axes.plot`.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    TypeError
        For a selector, and for objects that are not models.
    ValueError
        For a model without results, and for components that all have the same value, such as
        random ones.
    ImportError
        Without matplotlib.

    Notes
    -----
    Supervised components are shown by their relevance, those of `PCA` by their share of the
    variance, other unsupervised ones by the variance of the training rows, which a report
    does not hold.

    The level of noise is drawn where it is known. For `SOSPCA` and `RankedPCA` it is the noise
    floor of single columns; a rotation of several columns exceeds it more often. For
    `PCA(scale=True)` it is the share that the first component of $p$ independent columns exceeds
    with probability at most 5 %, by the Tracy-Widom law[^1]: with $m = n - 1$ degrees of freedom
    $(\mu + 0.9793\,\sigma) / (m p)$, where $\mu = (\sqrt{m} + \sqrt{p})^2$ and
    $\sigma = (\sqrt{m} + \sqrt{p}) (1/\sqrt{m} + 1/\sqrt{p})^{1/3}$. For components fitted to a
    target from all columns, such as those of `PLS` and `RidgeComponents`, no level is drawn: with
    more columns than rows, components of noise are as relevant.

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
    report = report_from(model, "components")
    label, numbers, values = _heights(model, report)
    noise = _noise(report)
    with axes_in_style(ax) as panel:
        indices = np.arange(len(values))
        texts = [f"{k}: {value:.3g}" for k, value in zip(numbers, values.tolist(), strict=True)]
        style = {"color": ACCENT, "markersize": 3.5, "gid": "components"}
        points = draw_points(panel, indices, values, texts, kwargs, **style)
        panel.vlines(indices, 0.0, values, color=points.get_color(), lw=1.0)
        if noise is not None:
            level, kind = noise
            draw_noise_level(panel, level, gid="noise", label=f"{kind}: {level:.2g}")
            add_legend_above(panel)
        panel.set(
            xlim=(-0.6, max(len(values) - 0.4, 2.4)),
            ylim=(0.0, 1.08 * max(values.max(), noise[0] if noise else 0.0) or 1.0),
            ylabel=label,
        )
        if len(values) <= _MAX_NUMBERED:
            panel.set_xticks(indices, numbers)
            panel.set_xlabel("component")
        else:
            panel.xaxis.set_major_formatter(integer_label)
            panel.set_xlabel("components, in order")
        set_description(panel, f"{label.capitalize()} of {count_label(len(values), 'component')}.")
    return panel


def _heights(model: Any, report: Report) -> tuple[str, list[str], Floats]:
    """Return the label, the numbers and the values of components, the largest first."""
    numbers = [row["name"].removeprefix(report.learner.lower()) for row in report.results]
    if "share" in report.results[0]:
        shares = np.array([row["share"] for row in report.results])
        return "share of the variance", numbers, shares
    relevance = np.array([row["relevance"] or 0.0 for row in report.results])
    if not (relevance == 1.0).all() or report.noise_floor is not None:
        return "relevance", numbers, relevance
    embedding = None if "any_variable" in report.details else getattr(model, "embedding", None)
    if embedding is not None and embedding.size:
        variances = embedding.var(axis=0)
        order = np.argsort(-variances, kind="stable")
        if len(variances) == 1 or np.ptp(variances) > 1e-9 * variances.max():
            return "variance", [str(k) for k in order.tolist()], variances[order]
    raise ValueError(
        "Expected components with different values. Got: those of "
        f"{report.learner}, which are all equal.\nHint: use scatter to show the rows."
    )


def _noise(report: Report) -> tuple[float, str] | None:
    """Return the level of noise and its label; None if it is not known."""
    # The noise floor of single columns applies to components that are single columns, rotations of
    # a few, or found without the target. It does not apply to components fitted to the target from
    # all columns: with more columns than rows even noise fits in full.
    if report.details.get("noise_floor_applies") and report.noise_floor is not None:
        return report.noise_floor, "noise floor of single columns"
    parameters = report.parameters
    if report.learner == "PCA" and parameters["scale"] and not parameters["fading_factor"]:
        level = noise_share(report.rows, report.columns_seen - report.columns_constant)
        return None if level is None else (level, "first component of noise")
    return None


def noise_share(n: int, p: int) -> float | None:
    """Return the share of variance that a component of noise exceeds with probability 5 %.

    Parameters
    ----------
    n, p
        Number of observations, and of independent columns of variance 1.

    Notes
    -----
    The law is that of columns of random length. Columns scaled to equal length vary less, so the
    probability is smaller for few columns.
    """
    m = n - 1
    if min(m, p) < 2:
        return None
    root = math.sqrt(m) + math.sqrt(p)
    spread = root * math.cbrt(1.0 / math.sqrt(m) + 1.0 / math.sqrt(p))
    return min(1.0, (root**2 + _TRACY_WIDOM * spread) / (m * p))
