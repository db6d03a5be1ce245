"""After a change of the relevant variables, how many rows does a pipeline take to recover?

Transforms use a snapshot of the selection, which is refreshed when the number of rows has grown by
`refresh_factor` (with fading: when so much of their weight is new). A selected variable stays while
it is among the best `hysteresis` k, but at most among k and an eighth of the others. This keeps
inputs stable while nothing changes; in this experiment something does.

Two streams. *planted*: five of 60 Gaussian variables determine the class, and five others from row
1,500 on. *spambase*: all 57 features of mails, shuffled, exchange their names at random at row
2,300. ProjSe selects ten variables before a StandardScaler and logistic regression, which follows a
change by itself. Each row is predicted first and then learnt. "all features" is the same pipeline
without a selection.

The fading factor is 0 or 0.01, and rules differ from the default `refresh_factor=2` and
`hysteresis=3`; "every row" selects again at every row (both 1, no warm-up). Detected drift: River's
ADWIN with its defaults monitors the errors of the pipeline. At a detection either `refresh()` is
called, which uses the best k of that moment without hysteresis, or a new selector starts, which has
learnt nothing.

Accuracy is counted in blocks of 50 rows, and the curves are means over ten streams (seeds 0 to 9).
"Before" is the accuracy of the 500 rows before the change. "Back" is the first block from which on
200 rows are within three points of before. The two rules with `refresh_factor=1.25` were added
after the results of the others; after these the hysteresis was narrowed and `refresh()` changed to
disregard it. So these streams are no test of either.
"""

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _curves import interval
from _experiment import COLOURS, Experiment, Row, machine, plt, table
from _row_streams import (
    ALL,
    EVERY_ROW,
    Stream,
    drifting,
    exchanged,
    hits,
    model_steps,
    pipeline,
    stream,
)
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
# Name -> parameters, action at a detected drift.
RULES: dict[str, tuple[dict[str, float], str]] = {
    "refresh_factor 1": ({"refresh_factor": 1.0}, ""),
    "refresh_factor 1.25": ({"refresh_factor": 1.25}, ""),
    "refresh_factor 2": ({}, ""),
    "refresh_factor 4": ({"refresh_factor": 4.0}, ""),
    "hysteresis 1": ({"hysteresis": 1.0}, ""),
    "hysteresis 1, refresh_factor 1.25": ({"hysteresis": 1.0, "refresh_factor": 1.25}, ""),
    "every row": (EVERY_ROW, ""),
    "refresh() at a detected drift": ({}, "refresh"),
    "hysteresis 1, refresh() at a detected drift": ({"hysteresis": 1.0}, "refresh"),
    "a new one at a detected drift": ({}, "new"),
}
FADING = (0.0, 0.01)
SEEDS = tuple(range(10))
BLOCK = 50  # rows per point of a curve
LEVEL_ROWS, BACK_ROWS, POINTS = 500, 200, 3.0
SHOWN = {
    ALL: (COLOURS[5], "-"),
    "every row": (COLOURS[2], "-"),
    "refresh_factor 2": (COLOURS[0], "-"),
    "refresh_factor 1.25": (COLOURS[3], "-"),
    "refresh() at a detected drift": (COLOURS[1], "-"),
    "a new one at a detected drift": (COLOURS[6], "-"),
}


def work(folder: Path, name: str, rule: str, fading: float, seed: int) -> list[Row]:
    if name == "planted":
        rows = drifting(seed, N_PLANTED)
    else:
        rows = exchanged(stream(folder, name, N_SPAMBASE, seed), seed)
    model = model_steps("logistic", words=False, built=False)
    detected: list[int] = []
    if rule == ALL:
        right = hits(pipeline(model), rows)
    else:
        parameters, at_drift = RULES[rule]
        selector = ProjSe(K, target_type="class", fading_factor=fading, **parameters)
        right, detected = monitored(selector, model, rows, at_drift)
    counts = right[: len(right) // BLOCK * BLOCK].reshape(-1, BLOCK).sum(axis=1)
    shape = {"dataset": name, "rule": rule, "fading": fading, "seed": seed, "n": len(rows)}
    shape |= {"accuracy": right.mean(), "drifts": " ".join(map(str, detected))}
    return [shape | {"right": " ".join(map(str, counts.tolist()))}]


def monitored(
    selector: ProjSe, model: list[Any], rows: Stream, at_drift: str
) -> tuple[np.ndarray, list[int]]:
    """Return which rows were predicted correctly, and the rows at which ADWIN detected a drift."""
    detector, right, detected = drift.ADWIN(), [], []
    both = pipeline([selector, *model])
    for i, (x, y) in enumerate(rows):
        right.append(both.predict_one(x) == y)
        both.learn_one(x, y)
        detector.update(not right[-1])
        if at_drift and detector.drift_detected:
            detected.append(i)
            if at_drift == "new":
                selector = selector.clone()
                both = pipeline([selector, *model])
            else:
                selector.refresh()
    return np.array(right), detected


class Recovery(NamedTuple):
    """Accuracy per block of one rule, in %, and its summary.

    `curves` has one row per stream; `curve` is their mean.
    """

    curves: np.ndarray
    curve: np.ndarray
    before: float
    after: float
    back: int | None


def recovery(rows: pd.DataFrame) -> Recovery:
    """Summarise the streams of one rule."""
    counts = np.array([[int(count) for count in line.split()] for line in rows["right"]])
    curves = 100.0 * counts / BLOCK
    curve = curves.mean(axis=0)
    change = int(rows["n"].iloc[0]) // 2 // BLOCK
    before = curve[change - LEVEL_ROWS // BLOCK : change].mean()
    width = BACK_ROWS // BLOCK
    level = np.convolve(curve[change:], np.ones(width) / width, "valid")
    within = np.flatnonzero(level >= before - POINTS)
    after = curve[change : change + LEVEL_ROWS // BLOCK].mean()
    return Recovery(curves, curve, before, after, BLOCK * int(within[0]) if within.size else None)


def draw(found: dict[tuple[Any, ...], Recovery], names: list[str]) -> plt.Figure:
    heights = [1.0, 1.0, 0.2]
    fig, axes = plt.subplots(
        3, len(names), figsize=(7.6, 6.2), height_ratios=heights, squeeze=False
    )
    for fading, line in zip(FADING, axes, strict=False):
        for name, ax in zip(names, line, strict=True):
            for rule, (colour, style) in SHOWN.items():
                one = found.get((name, rule, 0.0 if rule == ALL else fading))
                if one is not None:
                    width = BACK_ROWS // BLOCK
                    means = pd.DataFrame(one.curves).T.rolling(width).mean().dropna().T
                    smooth, half = interval(means)
                    x = BLOCK * (np.arange(smooth.size) + width) - BLOCK * one.curve.size // 2
                    ax.plot(x, smooth, style, color=colour, lw=1.3, label=rule)
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
    legend.set_in_layout(False)  # as wide as both columns
    return fig


def section(found: dict[tuple[Any, ...], Recovery], results: pd.DataFrame, image: str) -> str:
    """Return the text, with the figure and a table."""
    lines = []
    names = list(dict.fromkeys(name for name, _, _ in found))
    pairs = dict.fromkeys((rule, fading) for _, rule, fading in found)
    for rule, fading in sorted(pairs, key=lambda pair: (pair[0] != ALL, pair[1])):
        line = {"": rule, "fading": "" if rule == ALL else f"{fading:g}"}
        for name in names:
            one = found[name, rule, fading]
            line[f"{name}: before, %"] = f"{one.before:.1f}"
            line["500 rows after" if name == names[0] else "500 rows after "] = f"{one.after:.1f}"
            key = "back after rows" if name == names[0] else "back after rows "
            line[key] = f"{one.back:,}" if one.back is not None else "> " + rows_after(one)
        lines.append(line)
    return f"""
ProjSe (k = {K}) precedes a StandardScaler and logistic regression. Accuracy in % by progressive
validation is averaged over {results.seed.nunique()} streams. On *planted*, five of 60 variables
determine the class in the first half, and five other variables determine it in the second half. On
*spambase*, the features exchange their names in the middle. *Back* is the number of rows after the
change, in blocks of {BLOCK}, until {BACK_ROWS} rows follow whose accuracy is within {POINTS:g}
points of the accuracy in the {LEVEL_ROWS} rows before.

![Accuracy against the rows since the change, without fading above and with below.]({image})

Bands are 95 % intervals of the mean over the streams.

{table(pd.DataFrame(lines))}

[All numbers](rows-drift.csv) were made by `python demos/papers/rows_drift.py`
with {machine()}.
"""


def rows_after(one: Recovery) -> str:
    """Return the number of rows after the change."""
    return f"{BLOCK * (one.curve.size - one.curve.size // 2):,}"


def main() -> None:
    experiment = Experiment("rows-drift", __doc__)
    names = experiment.small(STREAMS, STREAMS[:1])
    there = experiment.available([name for name in names if name != "planted"])
    names = [name for name in names if name in (*there, "planted")]
    tasks = [
        (name, rule, fading, seed)
        for seed in experiment.small(SEEDS, SEEDS[:1])
        for name in names
        for fading in FADING
        for rule in (ALL, *RULES)
        if (rule == ALL and not fading) or rule in (RULES if fading else UNFADED)
    ]
    results = experiment.each(functools.partial(work, experiment.data), tasks)
    groups = results.groupby(["dataset", "rule", "fading"], sort=False)
    found = {key: recovery(rows) for key, rows in groups}
    image = experiment.draw(draw(found, names))
    experiment.publish(section(found, results, image))


if __name__ == "__main__":
    # Under its own name, so that processes (--jobs) find the functions that cache the data.
    from rows_drift import main

    main()
