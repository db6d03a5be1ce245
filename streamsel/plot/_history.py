"""What stood when: names, and the rows from and to which each of them stood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamsel.history import History
from streamsel.learner.selector import Selector
from streamsel.params import kind_of
from streamsel.plot._rows import height_of, name_rows
from streamsel.plot._style import ACCENT, CHOSEN, FAINT, describe, drawing
from streamsel.plot._words import count, whole

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matplotlib.axes import Axes

# More names than these are lines too thin to see; those that stood longest are drawn.
_MOST = 200


def history(history: Any, ax: Axes | None = None) -> Axes:
    """Draw which variables stood when, while a learner learnt rows.

    Parameters
    ----------
    history
        A `streamsel.History`: a step of a pipeline, `pipeline["History"]`.
    ax
        Where to draw; None makes a figure, 85 mm wide.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    TypeError
        For what is no history.
    ValueError
        For one in which nothing has stood yet.
    ImportError
        Without matplotlib.

    Notes
    -----
    Names stand in the order in which they first stood; those that stand now are in another colour.
    Thin lines are renewals of an extractor's components. Of more than two hundred names those are
    drawn that stood longest.

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
            f"Expected a History. Got: {kind_of(history)}.\n"
            "Hint: let History(learner) stand in the pipeline in place of the learner."
        )
    spans = history.spans()
    if not spans:
        raise ValueError(
            "Expected a history in which something stood. Got: none of its "
            f"{history.n_rows:,} rows.\nHint: nothing stands before warm_up rows, nor of "
            f"what is made of all names alike. This is {type(history.learner).__name__}."
        )
    drawn = _longest(spans)
    now = {*history.learner.standing}
    with drawing(ax, height_of(len(drawn))) as panel:
        if not isinstance(history.learner, Selector):
            for event in history.events:
                panel.axvline(event.row, color=FAINT, lw=0.4, zorder=0, gid="renewal")
        for place, name in enumerate(drawn):
            parts = [(start, stop - start) for start, stop in spans[name]]
            colour = CHOSEN if name in now else ACCENT
            panel.broken_barh(parts, (place - 0.36, 0.72), color=colour, lw=0, gid=f"name {place}")
        name_rows(panel, drawn)
        if panel.get_ylabel():
            panel.set_ylabel("variables, in order of coming")
        # What came as columns was learnt before the first of them stood.
        begin = min(start for parts in spans.values() for start, _ in parts)
        begin = begin if begin > history.n_rows / 4 else 0
        panel.set_xlim(begin, max(begin + 1, history.n_rows))
        panel.xaxis.set_major_formatter(whole)
        panel.set_xlabel("rows learnt")
        what = f"When {count(len(spans), 'variable')} stood, in {history.n_rows:,} rows"
        left_out = len(spans) - len(drawn)
        describe(panel, f"{what}; {left_out:,} are left out." if left_out else f"{what}.")
    return panel


def _longest(spans: dict[Hashable, list[tuple[int, int]]]) -> list[Hashable]:
    """Return the names that stood longest, in the order of all."""
    stood = {name: sum(stop - start for start, stop in parts) for name, parts in spans.items()}
    longest = {*sorted(stood, key=lambda name: -stood[name])[:_MOST]}
    return [name for name in spans if name in longest]
