"""Bar plot of selection frequencies over resampled data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.evaluate.stability import _distinct
from streamsel.plot._axes import draw_bars, height_of_rows
from streamsel.plot._labels import count_label, hover_name
from streamsel.plot.style import ACCENT, FAINT, SELECTED, axes_in_style, ink, set_description
from streamsel.serialization.json_values import is_iterable_collection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Number of variables drawn, the most frequent ones.
_MAX_DRAWN = 20


def stability(found: Any, ax: Axes | None = None, **kwargs: Any) -> Axes:
    """Plot how often each variable is selected over resampled data.

    Parameters
    ----------
    found
        The result of `streamsel.evaluate.subsample_stability`, or selections: `model.selected` of
        several learners, each fitted to a sample of the rows.
    ax
        Axes to draw on; None draws on the current axes of pyplot.
    **kwargs
        Further arguments of `Axes.barh`.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    TypeError
        For any other object.
    ValueError
        If nothing was selected.
    ImportError
        Without matplotlib.

    Notes
    -----
    The twenty most frequent variables are drawn, with Wilson's 95 % interval for the number of
    selections. For a result of `subsample_stability` the variables selected on all rows are
    coloured and the others grey, and the title is the index of Nogueira and others (2018) with its
    interval: 1 if all selections are equal, 0 if they overlap as by chance.

    Examples
    --------
    >>> from streamsel import plot
    >>> ax = plot.stability([["a", "b"], ["a", "c"], ["a", "b"]])
    >>> [(text.get_text(), float(bar.get_width()))
    ...  for text, bar in zip(ax.get_yticklabels(), ax.patches)]
    [('a', 1.0), ('b', 0.667), ('c', 0.333)]
    """
    frequency, drawn = _frequencies(found)
    shown = list(frequency)[:_MAX_DRAWN]
    if not shown:
        raise ValueError(
            "Expected selections of some variables. Got: only empty ones.\n"
            "Hint: lower the noise floor, or use more rows."
        )
    selected = {*getattr(found, "selected", ())}
    with axes_in_style(ax, height_of_rows(len(shown)) + 5.0, has_rows=True) as panel:
        other = FAINT if selected else ACCENT
        colours = [SELECTED if name in selected else other for name in shown]
        shares = [frequency[name] for name in shown]
        intervals = np.array([binomial_interval(share, drawn) for share in shares])
        texts = [
            f"{hover_name(name)}: {share:.0%} ({low:.0%} to {high:.0%})"
            for name, share, (low, high) in zip(shown, shares, intervals.tolist(), strict=True)
        ]
        draw_bars(panel, shown, shares, colours, texts, kwargs)
        panel.hlines(range(len(shown)), *intervals.T, color=ink(), lw=0.8, gid="intervals")
        panel.set(xlim=(0.0, 1.0), xlabel="share of the selections")
        index = getattr(found, "index", None)
        title = ""
        if isinstance(index, tuple):
            value, low, high = index
            title = f"stability {value:.2f} ({low:.2f} to {high:.2f})"
            panel.set_title(title)
        label = f"Selection frequency of {count_label(len(frequency), 'variable')}"
        set_description(panel, f"{label}; {title}." if title else f"{label}.")
    return panel


def binomial_interval(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a probability, from a share of n cases."""
    z2 = NormalDist().inv_cdf(0.975) ** 2
    scale = 1.0 + z2 / n
    centre = (share + z2 / (2.0 * n)) / scale
    half_width = math.sqrt(z2 * (share * (1.0 - share) + z2 / (4.0 * n)) / n) / scale
    return max(0.0, centre - half_width), min(1.0, centre + half_width)


def _frequencies(found: Any) -> tuple[Mapping[Hashable, float], int]:
    """Return the selection frequencies, the largest first, and the number of selections."""
    known = getattr(found, "frequency", None)
    if isinstance(known, Mapping):
        return known, len(found.selections)
    drawn = [*found] if is_iterable_collection(found) else [found]
    if not all(map(is_iterable_collection, drawn)):
        raise TypeError(
            "Expected selections, or a result of subsample_stability. Got: "
            f"{type(found).__name__}.\nHint: stability([a.selected, b.selected])."
        )
    # A string is kept whole, so that _distinct refuses it by its index.
    selections = [names if isinstance(names, str) else list(names) for names in drawn]
    for i, names in enumerate(selections):
        _distinct(names, i)
    counts = Counter(name for names in selections for name in names)
    frequency = {name: n / len(selections) for name, n in counts.most_common()}
    return frequency, len(selections)
