"""Other variables matter from the middle on: how many rows later is a pipeline on rows back?

Transforms use a *standing* selection, renewed when the rows have multiplied by `refresh_factor`
(where they fade, when so many of equal weight are new), and a variable that stands stays while it
is among the best `hysteresis` k, but at most among k and an eighth of the others. That is calm
while nothing changes; here something does.

Two streams. *planted*: 60 Gaussian variables, of which five say the class, and from row 1,500 on
five others. *spambase*: 57 features of mails, shuffled, which exchange their names at random from
row 2,300 on, all of them. ProjSe selects ten; behind it a StandardScaler and logistic regression,
which follows a change by itself. It answers each row first and learns it then. "all features" is
the same without a selection.

With a fading factor of 0 or 0.01, and with others than the default renewal of 2 and slack of 3;
"every row" is what transforms did before there was calm (renewal 1, slack 1, no warm-up). Alarm:
River's ADWIN, as it is by default, watches the errors of the pipeline, and at an alarm calls
`refresh()`, which lets the best k of that moment stand, whatever stood; or begins with a new
selector, which has learnt nothing.

Accuracy is counted in blocks of 50 rows, and the curves are means over ten streams (seeds 0 to 9).
"Before" is that of the 500 rows before the change. It is "back" at the first block from which on
200 rows are within three points of before. The two with a renewal of 1.25 were added when the
others had been seen; and when these had, slack was narrowed and `refresh()` made to disregard it.
So these streams are no test of either.
"""

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _curves import interval
from _experiment import COLOURS, Experiment, Row, machine, plt, table
from _row_streams import ALL, AS_BEFORE, Stream, behind, exchanged, hits, pipeline, stream, turning
from river import drift

from streamsel import ProjSe

N_PLANTED, N_SPAMBASE, K = 3000, 4601, 10
STREAMS = ("planted", "spambase")
UNFADED = (
    "refresh_factor 2",
    "every row",
    "refresh() at a detected drift",
    "a new one at a detected drift",
)
# Name -> parameters, what an alarm does.
FOLLOWERS: dict[str, tuple[dict[str, float], str]] = {
    "refresh_factor 1": ({"refresh_factor": 1.0}, ""),
    "refresh_factor 1.25": ({"refresh_factor": 1.25}, ""),
    "refresh_factor 2": ({}, ""),
    "refresh_factor 4": ({"refresh_factor": 4.0}, ""),
    "hysteresis 1": ({"hysteresis": 1.0}, ""),
    "hysteresis 1, refresh_factor 1.25": ({"hysteresis": 1.0, "refresh_factor": 1.25}, ""),
    "every row": (AS_BEFORE, ""),
    "refresh() at a detected drift": ({}, "renew"),
    "hysteresis 1, refresh() at a detected drift": ({"hysteresis": 1.0}, "renew"),
    "a new one at a detected drift": ({}, "new"),
}
FADING = (0.0, 0.01)
SEEDS = tuple(range(10))
BLOCK = 50  # rows that a point of a curve counts
LEVEL_ROWS, BACK_ROWS, POINTS = 500, 200, 3.0
SHOWN = {
    ALL: (COLOURS[5], "-"),
    "every row": (COLOURS[2], "-"),
    "refresh_factor 2": (COLOURS[0], "-"),
    "refresh_factor 1.25": (COLOURS[3], "-"),
    "refresh() at a detected drift": (COLOURS[1], "-"),
    "a new one at a detected drift": (COLOURS[6], "-"),
}


def work(folder: Path, name: str, follower: str, fading: float, seed: int) -> list[Row]:
    if name == "planted":
        rows = turning(seed, N_PLANTED)
    else:
        rows = exchanged(stream(folder, name, N_SPAMBASE, seed), seed)
    model = behind("logistic", words=False, built=False)
    alarms: list[int] = []
    if follower == ALL:
        right = hits(pipeline(model), rows)
    else:
        rules, at_alarm = FOLLOWERS[follower]
        selector = ProjSe(K, target_type="class", fading_factor=fading, **rules)
        right, alarms = watched(selector, model, rows, at_alarm)
    counts = right[: len(right) // BLOCK * BLOCK].reshape(-1, BLOCK).sum(axis=1)
    shape = {"dataset": name, "rule": follower, "fading": fading, "seed": seed, "n": len(rows)}
    shape |= {"accuracy": right.mean(), "drifts": " ".join(map(str, alarms))}
    return [shape | {"right": " ".join(map(str, counts.tolist()))}]


def watched(
    selector: ProjSe, model: list[Any], rows: Stream, at_alarm: str
) -> tuple[np.ndarray, list[int]]:
    """Return which rows were answered rightly, and the rows of the alarms of ADWIN."""
    watch, right, alarms = drift.ADWIN(), [], []
    both = pipeline([selector, *model])
    for i, (x, y) in enumerate(rows):
        right.append(both.predict_one(x) == y)
        both.learn_one(x, y)
        watch.update(not right[-1])
        if at_alarm and watch.drift_detected:
            alarms.append(i)
            if at_alarm == "new":
                selector = selector.clone()
                both = pipeline([selector, *model])
            else:
                selector.refresh()
    return np.array(right), alarms


class Followed(NamedTuple):
    """The mean curve of one way to follow: accuracy a block, in %, and what it says.

    `curves` has a stream a row, of which `curve` is the mean.
    """

    curves: np.ndarray
    curve: np.ndarray
    before: float
    after: float
    back: int | None


def followed(rows: pd.DataFrame) -> Followed:
    """Sum up the streams of one way to follow."""
    counts = np.array([[int(count) for count in line.split()] for line in rows["right"]])
    curves = 100.0 * counts / BLOCK
    curve = curves.mean(axis=0)
    change = int(rows["n"].iloc[0]) // 2 // BLOCK
    before = curve[change - LEVEL_ROWS // BLOCK : change].mean()
    width = BACK_ROWS // BLOCK
    level = np.convolve(curve[change:], np.ones(width) / width, "valid")
    within = np.flatnonzero(level >= before - POINTS)
    after = curve[change : change + LEVEL_ROWS // BLOCK].mean()
    return Followed(curves, curve, before, after, BLOCK * int(within[0]) if within.size else None)


def draw(found: dict[tuple[Any, ...], Followed], names: list[str]) -> plt.Figure:
    heights = [1.0, 1.0, 0.2]
    fig, axes = plt.subplots(
        3, len(names), figsize=(7.6, 6.2), height_ratios=heights, squeeze=False
    )
    for fading, line in zip(FADING, axes, strict=False):
        for name, ax in zip(names, line, strict=True):
            for follower, (colour, style) in SHOWN.items():
                one = found.get((name, follower, 0.0 if follower == ALL else fading))
                if one is not None:
                    width = BACK_ROWS // BLOCK
                    means = pd.DataFrame(one.curves).T.rolling(width).mean().dropna().T
                    smooth, half = interval(means)
                    x = BLOCK * (np.arange(smooth.size) + width) - BLOCK * one.curve.size // 2
                    ax.plot(x, smooth, style, color=colour, lw=1.3, label=follower)
                    band = {"color": colour, "alpha": 0.15, "lw": 0}
                    ax.fill_between(x, smooth - half, smooth + half, **band)
            ax.axvline(0.0, color="black", lw=0.6, ls=":")
            ax.set_title(f"{name}, fading factor {fading:g}")
            ax.set_xlim(left=-LEVEL_ROWS)
        line[0].set_ylabel("last 200 rows right, %")
    for ax, blank in zip(axes[1], axes[2], strict=True):
        ax.set_xlabel("rows since the change")
        blank.axis("off")
    lines = axes[1, 0].get_legend_handles_labels()
    legend = axes[2, 0].legend(*lines, ncols=3, loc="center left")
    legend.set_in_layout(False)  # it is as wide as both columns
    return fig


def section(found: dict[tuple[Any, ...], Followed], results: pd.DataFrame, image: str) -> str:
    """Return the text: what was done, the figure, a table."""
    lines = []
    names = list(dict.fromkeys(name for name, _, _ in found))
    pairs = dict.fromkeys((follower, fading) for _, follower, fading in found)
    for follower, fading in sorted(pairs, key=lambda pair: (pair[0] != ALL, pair[1])):
        line = {"": follower, "fading": "" if follower == ALL else f"{fading:g}"}
        for name in names:
            one = found[name, follower, fading]
            line[f"{name}: before, %"] = f"{one.before:.1f}"
            line["500 rows after" if name == names[0] else "500 rows after "] = f"{one.after:.1f}"
            key = "back after rows" if name == names[0] else "back after rows "
            line[key] = f"{one.back:,}" if one.back is not None else "> " + left(one)
        lines.append(line)
    return f"""
ProjSe (k = {K}) before a StandardScaler and logistic regression, by progressive validation:
accuracy in %, means over {results.seed.nunique()} streams. *planted*: five of 60 variables
determine the class, from the middle on five others; *spambase*: its features exchange their names
there. "Back": the first {BLOCK} rows from which on {BACK_ROWS} are within {POINTS:g} points of the
{LEVEL_ROWS} rows before the change. "At a detected drift": by ADWIN, which monitors the errors.

![Accuracy against the rows since the change, without fading above and with below: all features,
and a selection refreshed at every row, by default, with `refresh_factor=1.25`, and at a detected
drift, and a new selector at a detected drift; bands are 95 % intervals.]({image})

Bands: 95 % intervals of the mean over the streams.

{table(pd.DataFrame(lines))}

`python demos/papers/rows_drift.py`; [all numbers](rows-drift.csv); made with
{machine()}.
"""


def left(one: Followed) -> str:
    """Say how many rows there are after the change."""
    return f"{BLOCK * (one.curve.size - one.curve.size // 2):,}"


def main() -> None:
    experiment = Experiment("rows-drift", __doc__)
    names = experiment.small(STREAMS, STREAMS[:1])
    there = experiment.available([name for name in names if name != "planted"])
    names = [name for name in names if name in (*there, "planted")]
    tasks = [
        (name, follower, fading, seed)
        for seed in experiment.small(SEEDS, SEEDS[:1])
        for name in names
        for fading in FADING
        for follower in (ALL, *FOLLOWERS)
        if (follower == ALL and not fading) or follower in (FOLLOWERS if fading else UNFADED)
    ]
    results = experiment.each(functools.partial(work, experiment.data), tasks)
    groups = results.groupby(["dataset", "rule", "fading"], sort=False)
    found = {key: followed(rows) for key, rows in groups}
    image = experiment.draw(draw(found, names))
    experiment.publish(section(found, results, image))


if __name__ == "__main__":
    # Under its own name, so that processes (--jobs) find the functions that cache the data.
    from rows_drift import main

    main()
