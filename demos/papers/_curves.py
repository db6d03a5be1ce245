"""Curves of means with 95 % intervals, for the figures of several experiments."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from _experiment import plt
from scipy import stats

LEVEL = 0.95
MIN_UNITS = 3  # for an interval
DODGE = 0.012  # shift between two curves, as a share of the axis: their error bars do not overlap


def interval(values: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return the mean of every column and half the width of its 95 % interval."""
    count = values.count()
    half = values.sem() * stats.t.ppf(0.5 + LEVEL / 2.0, np.maximum(count - 1, 1))
    return values.mean(), half.where(count >= MIN_UNITS)


def without_unit_effect(values: pd.DataFrame) -> pd.DataFrame:
    """Return values without the main effect of the unit: one row per unit, one column per method.

    All columns were measured on the same units (datasets, splits), so the difficulty of a unit is
    no part of the differences between columns. It is removed, and the deviations are corrected for
    the loss of variance (Cousineau 2005, Morey 2008). The means of the columns are unchanged.
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

    `values` has one row per unit and pairs (tick, method) as columns; ticks are equidistant.
    """
    means, halves = interval(values)
    for rank, (method, (colour, style)) in enumerate(styles.items()):
        positions = [i for i, tick in enumerate(ticks) if (tick, method) in means.index]
        if positions:
            pairs = [(ticks[i], method) for i in positions]
            x = np.array(positions) + DODGE * len(ticks) * (rank - (len(styles) - 1) / 2.0)
            label = (labels or {}).get(method, method)
            shape = {"color": colour, "ms": 3.5, "lw": 1.3, "elinewidth": 0.8, "label": label}
            panel.errorbar(x, means[pairs], halves[pairs], fmt=style, **shape)
    panel.set_xticks(range(len(ticks)), map(str, ticks))


def panels(
    titles: list[str], n_columns: int, height: float, below: float = 0.6
) -> tuple[plt.Figure, list[plt.Axes]]:
    """Return a figure with one panel per title, and one, `below` inches high, for the legend."""
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
    """Show the legend of the first panel in the last one."""
    lines = axes[0].get_legend_handles_labels()
    axes[-1].legend(*lines, ncols=ncols, loc="center").set_in_layout(False)
