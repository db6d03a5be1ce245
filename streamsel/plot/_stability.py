"""How often variables are selected when the data are drawn again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.evaluate.stability import _distinct
from streamsel.plain import is_many
from streamsel.plot._rows import height_of, name_rows
from streamsel.plot._style import ACCENT, CHOSEN, INK, describe, drawing
from streamsel.plot._words import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# So many variables are drawn, the most frequent ones.
_MOST = 20


def stability(found: Any, ax: Axes | None = None) -> Axes:
    """Draw how often each variable was selected when the data were drawn again.

    Parameters
    ----------
    found
        What `streamsel.evaluate.subsample_stability` returns, or selections: `model.selected` of
        several learners, of a sample of the rows each.
    ax
        Where to draw; None makes a figure, 85 mm wide.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    TypeError
        For what is neither.
    ValueError
        Where nothing was selected.
    ImportError
        Without matplotlib.

    Notes
    -----
    The twenty most frequent are drawn, with the interval of 95 % (Wilson's) that comes of there
    being no more selections than these. Of what `subsample_stability` returns those that all rows
    select are in another colour, and the title is the index of Nogueira and others (2018), with its
    interval: 1 where all selections are the same, 0 where they have no more in common than chance.

    Examples
    --------
    >>> from streamsel import plot
    >>> ax = plot.stability([["a", "b"], ["a", "c"], ["a", "b"]])
    >>> [(text.get_text(), float(bar.get_width()))
    ...  for text, bar in zip(ax.get_yticklabels(), ax.patches)]
    [('a', 1.0), ('b', 0.667), ('c', 0.333)]
    """
    frequency, drawn = _frequencies(found)
    shown = list(frequency)[:_MOST]
    if not shown:
        raise ValueError(
            "Expected selections of some variables. Got: none in any.\n"
            "Hint: a smaller noise floor, or more rows, may let something be selected."
        )
    chosen = {*getattr(found, "selected", ())}
    with drawing(ax, height_of(len(shown)) + 5.0) as panel:
        panel.barh(
            range(len(shown)),
            [frequency[name] for name in shown],
            height=0.62,
            color=[CHOSEN if name in chosen else ACCENT for name in shown],
        )
        intervals = np.array([interval(frequency[name], drawn) for name in shown])
        panel.hlines(range(len(shown)), *intervals.T, color=INK, lw=0.8, gid="intervals")
        name_rows(panel, shown)
        panel.set_xlim(0.0, 1.0)
        panel.set_xlabel("share of the selections")
        index = getattr(found, "index", None)
        said = ""
        if isinstance(index, tuple):
            value, low, high = index
            said = f"stability {value:.2f} ({low:.2f} to {high:.2f})"
            panel.set_title(said)
        what = f"How often {count(len(frequency), 'variable')} were selected"
        describe(panel, f"{what}; {said}." if said else f"{what}.")
    return panel


def interval(share: float, n: int) -> tuple[float, float]:
    """Return between what the chance lies of what came in this share of n cases, with 95 %."""
    z2 = NormalDist().inv_cdf(0.975) ** 2
    whole = 1.0 + z2 / n
    middle = (share + z2 / (2.0 * n)) / whole
    spread = math.sqrt(z2 * (share * (1.0 - share) + z2 / (4.0 * n)) / n) / whole
    return max(0.0, middle - spread), min(1.0, middle + spread)


def _frequencies(found: Any) -> tuple[Mapping[Hashable, float], int]:
    """Return in what part of the selections each variable is, the most frequent first.

    And how many selections there are.
    """
    known = getattr(found, "frequency", None)
    if isinstance(known, Mapping):
        return known, len(found.selections)
    drawn = [*found] if is_many(found) else [found]
    if not all(map(is_many, drawn)):
        raise TypeError(
            "Expected selections, or what subsample_stability returns. Got: "
            f"{type(found).__name__}.\nHint: stability([a.selected, b.selected])."
        )
    # A text is refused with its place.
    selections = [names if isinstance(names, str) else list(names) for names in drawn]
    for i, names in enumerate(selections):
        _distinct(names, i)
    counts = Counter(name for names in selections for name in names)
    frequency = {name: n / len(selections) for name, n in counts.most_common()}
    return frequency, len(selections)
