"""Timeline of the variables in use, over the rows learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamsel._utils import optional
from streamsel.base.selector import Selector
from streamsel.history import History
from streamsel.params import type_name
from streamsel.plot._axes import height_of_rows, label_rows
from streamsel.plot._labels import count_label, hover_name, integer_label
from streamsel.plot.style import (
    FAINT,
    SELECTED,
    axes_in_style,
    merge_properties,
    set_description,
    set_hover,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matplotlib.axes import Axes

# More lines would be too thin to see; the names longest in use are drawn.
_MAX_DRAWN = 200


def history(history: Any, ax: Axes | None = None, **kwargs: Any) -> Axes:
    """Plot when each variable was in use, while a learner learnt rows.

    Parameters
    ----------
    history
        A `streamsel.History`: a step of a pipeline, `pipeline["History"]`.
    ax
        Axes to draw on; None draws on the current axes of pyplot.
    **kwargs
        Further arguments of `Axes.broken_barh`.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    TypeError
        For any other object.
    ValueError
        For a history in which no variable was in use yet.
    ImportError
        Without matplotlib.

    Notes
    -----
    Names are in the order of their first use; those in use now are coloured. Thin lines are
    refreshes of an extractor's components. If there are more than two hundred names, those longest
    in use are drawn.

    Examples
    --------
    >>> import random
    >>> from streamsel import History, ProjSe, plot
    >>> history = History(ProjSe(k=1, warm_up=10))
    >>> rng = random.Random(0)
    >>> for _ in range(100):
    ...     x = {name: rng.gauss(0, 1) for name in "abc"}
    ...     history.learn_one(x, x["b"])
    >>> ax = plot.history(history)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['b']
    """
    if not isinstance(history, History):
        raise TypeError(
            f"Expected a History. Got: {type_name(history)}.\n"
            "Hint: put History(learner) into the pipeline instead of the learner."
        )
    spans = history.spans()
    if not spans:
        raise ValueError(
            "Expected a history with variables in use. Got: "
            f"{history.n_rows:,} rows without any.\nHint: none is in use before warm_up rows, and "
            f"random components use no single one. This is {type(history.learner).__name__}."
        )
    drawn = _longest(spans)
    collections = optional.import_matplotlib("collections")
    in_use = {*history.learner.in_use}
    with axes_in_style(ax, height_of_rows(len(drawn)), has_rows=True) as panel:
        if not isinstance(history.learner, Selector):
            for event in history.events:
                panel.axvline(event.row, color=FAINT, lw=0.4, zorder=0, gid="refresh")
        for index, name in enumerate(drawn):
            parts = [(start, stop - start) for start, stop in spans[name]]
            colour = SELECTED if name in in_use else FAINT
            style = {"color": colour, "linewidth": 0.0, "gid": f"name {index}"}
            bars = panel.broken_barh(
                *(parts, (index - 0.36, 0.72)),
                **merge_properties(collections.PolyCollection, style, kwargs),
            )
            rows = ", ".join(f"{start:,} to {stop:,}" for start, stop in spans[name])
            set_hover(panel, bars, [f"{hover_name(name)}: rows {rows}"])
        label_rows(panel, drawn)
        if panel.get_ylabel():
            panel.set_ylabel("variables, in order of first use")
        # After learning from columns the first use is at a high row count.
        begin = min(start for parts in spans.values() for start, _ in parts)
        begin = begin if begin > history.n_rows / 4 else 0
        panel.set(xlim=(begin, max(begin + 1, history.n_rows)), xlabel="rows learnt")
        panel.xaxis.set_major_formatter(integer_label)
        what = f"When {count_label(len(spans), 'variable')} were in use, in {history.n_rows:,} rows"
        left_out = len(spans) - len(drawn)
        set_description(panel, f"{what}; {left_out:,} are left out." if left_out else f"{what}.")
    return panel


def _longest(spans: dict[Hashable, list[tuple[int, int]]]) -> list[Hashable]:
    """Return the names longest in use, in their original order."""
    n_rows = {name: sum(stop - start for start, stop in parts) for name, parts in spans.items()}
    longest = {*sorted(n_rows, key=lambda name: -n_rows[name])[:_MAX_DRAWN]}
    return [name for name in spans if name in longest]
