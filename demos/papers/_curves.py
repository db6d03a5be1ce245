"""Curves of means with their 95 % intervals, as the figures of several experiments have them."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from _experiment import plt
from scipy import stats

LEVEL = 0.95
LEAST = 3  # units of which there is an interval
APART = 0.012  # of an axis, two curves: so that their bars do not lie on one another


def interval(values: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return of every column the mean over rows, and half the width of its 95 % interval."""
    count = values.count()
    half = values.sem() * stats.t.ppf(0.5 + LEVEL / 2.0, np.maximum(count - 1, 1))
    return values.mean(), half.where(count >= LEAST)


def levelled(values: pd.DataFrame) -> pd.DataFrame:
    """Return a table, a unit a row, in which units differ only in what they tell columns apart by.

    All columns were measured in the same units (datasets, splits), so that how hard a unit is says
    nothing of their differences: it is taken out, and the deviations are enlarged by what that
    takes from them (Cousineau 2005, Morey 2008). Means of whole columns stay as they are.
    """
    means = values.mean()
    apart = values - means
    apart = apart.sub(apart.mean(axis=1), axis=0)
    columns = values.shape[1]
    return means + (apart - apart.mean()) * np.sqrt(columns / max(columns - 1, 1))


def curves(
    panel: plt.Axes,
    values: pd.DataFrame,
    styles: Mapping[str, tuple[str, str]],
    ticks: Sequence[Hashable],
    labels: Mapping[str, str] | None = None,
) -> None:
    """Draw the mean and the interval of every method at every tick.

    `values` has a unit a row and pairs (tick, method) as columns; ticks stand equally far apart.
    """
    means, halves = interval(values)
    for i, (method, (colour, style)) in enumerate(styles.items()):
        places = [place for place, tick in enumerate(ticks) if (tick, method) in means.index]
        if places:
            pairs = [(ticks[place], method) for place in places]
            x = np.array(places) + APART * len(ticks) * (i - (len(styles) - 1) / 2.0)
            label = (labels or {}).get(method, method)
            shape = {"color": colour, "ms": 3.5, "lw": 1.3, "elinewidth": 0.8, "label": label}
            panel.errorbar(x, means[pairs], halves[pairs], fmt=style, **shape)
    panel.set_xticks(range(len(ticks)), map(str, ticks))


def panels(
    titles: list[str], n_columns: int, height: float, below: float = 0.6
) -> tuple[plt.Figure, list[plt.Axes]]:
    """Return a figure with a panel a title, and a last one, `below` inches, for the legend."""
    n_rows = -(-len(titles) // n_columns)
    figure = plt.figure(figsize=(7.6, height * n_rows + below + 0.2))
    grid = figure.add_gridspec(n_rows + 1, n_columns, height_ratios=[height] * n_rows + [below])
    axes = [figure.add_subplot(grid[divmod(i, n_columns)]) for i in range(len(titles))]
    for panel, title in zip(axes, titles, strict=True):
        panel.set_title(title)
    for panel in axes[::n_columns]:
        panel.set_ylabel("error, %")
    for panel in axes[-n_columns:]:
        panel.set_xlabel("components")
    axes.append(figure.add_subplot(grid[n_rows, :]))
    axes[-1].axis("off")
    return figure, axes


def add_legend(axes: list[plt.Axes], ncols: int = 4) -> None:
    """Say in the last panel what the lines of the first are."""
    lines = axes[0].get_legend_handles_labels()
    axes[-1].legend(*lines, ncols=ncols, loc="center").set_in_layout(False)
