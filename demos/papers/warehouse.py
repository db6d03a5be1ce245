"""From the warehouse to the stream: does a River pipeline gain from components of the history?

A part of a dataset, the history, is learnt as columns. The other rows come one by one; a River
pipeline predicts each row first and then learns it (progressive validation). The transformer before
its model has learnt the history as columns: 25 RidgeComponents, or ProjSe with 60 variables; or
there is only a scaler, or nothing. Five parts, in one CSV file:

1. *accuracy*: on the rows that come, for each transformer and model. A cold model starts with these
   rows, so that only its inputs differ; a warm one has learnt the history first, row by row,
   through the transformer. "On rows alone": RidgeComponents that have not learnt the history.
2. *speed*: rows per second and latency of the whole warm pipeline with River's models; all
   contenders take the same rows in turn, in one process, 16 at a time; processor time.
3. *parts*: the same of the transformers alone: transforming, learning, and a refresh.
4. *drift*: from the middle of the rows on features, or classes, exchange their names at random. The
   fading factor is 0 or 0.005; downstream are the five nearest of the last 300 rows, which forget
   by themselves.
5. *no gain expected*: few features, trees and forests, classes that are a tree of two variables of
   40 (*thresholds*), and classes with which no single variable correlates (madelon).

Naive Bayes, smoothed or not, and the neighbours are River's on arrays (every run checks that their
predictions are the same). Rows are shuffled with a seed before they are split. Features are scaled
row by row by River's StandardScaler where the table states it, and always before logistic
regression. Components are not scaled. The numbers 25 and 60 are those of a prototype, on isolet and
mnist_10k.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _experiment import COLOURS, Experiment, Row, machine, plt, table
from _row_streams import ALL, BAYES, RIVERS, SMOOTHED, Stream, exchanged, hits, stream
from _warehouse import (
    FOREST,
    LOGISTIC,
    NEIGHBOURS,
    POOL,
    REFRESHED,
    RIDGE,
    ROWS_ALONE,
    SCALED,
    SELECTED,
    TREE,
    Learns,
    Predicts,
    Refreshes,
    Transforms,
    clocked,
    model_steps,
    relabelled,
    split_stream,
    transformer_steps,
    whole,
)
from river import drift

# Rows of the history, rows that come, selected variables, components.
SETS = {"isolet": (780, 780, 60, 25), "mnist_10k": (2000, 1500, 60, 25)}
NO_GAIN = {
    "spambase": (1000, 1000, 20, 10),
    "madelon": (1300, 700, 20, 10),
    "Phishing": (600, 650, 5, 5),
    "thresholds": (1000, 1000, 10, 5),
}
QUICK = {"digits": (400, 150, 15, 8)}
QUICK_NO_GAIN = {"thresholds": (300, 300, 10, 5)}
MODELS = (BAYES, SMOOTHED, TREE, NEIGHBOURS, LOGISTIC)
NO_GAIN_MODELS = (SMOOTHED, FOREST, LOGISTIC)
TRANSFORMERS = (ALL, SCALED, SELECTED, RIDGE, POOL, ROWS_ALONE)
TIMED = (ALL, SELECTED, RIDGE, POOL)
NO_GAIN_TRANSFORMERS = (ALL, SELECTED, RIDGE)
TREE_TRANSFORMERS = (ALL, SELECTED, RIDGE, ROWS_ALONE)
TIMED_MODELS = (BAYES, TREE, NEIGHBOURS)
EXCHANGES = {"features": exchanged, "classes": relabelled}
FADING = (0.0, 0.005)
AT_DRIFT = "the same, refresh() at a detected drift"
DRIFT_TRANSFORMERS = (ALL, SELECTED, RIDGE, REFRESHED, AT_DRIFT)
SEEDS = (0, 1)
BLOCK, SKIP, TIMED_ROWS = 30, 10, 64
COLOUR = dict(zip((RIDGE, ALL, SELECTED, REFRESHED, POOL, SCALED), COLOURS, strict=False))
MARKERS = dict(zip(TIMED_MODELS, "osD", strict=True))


def work(folder: Path, sizes: dict[str, Any], part: str, *task: Any) -> list[Row]:
    parts = {"accuracy": of_accuracy, "speed": of_speed, "parts": of_parts, "drift": of_drift}
    return [{"part": part} | row for row in parts.get(part, of_accuracy)(folder, sizes, *task)]


def of_accuracy(
    folder: Path, sizes: dict[str, Any], name: str, model: str, before: str, start: str, seed: int
) -> list[Row]:
    stored, coming, *kq = sizes[name]
    data = split_stream(folder, name, stored, coming, seed)
    right = hits(whole(before, model, data.history, *kq, is_warm=start == "warm"), data.rows)
    row = {"dataset": name, "model": model, "transformer": before, "start": start, "seed": seed}
    return [row | {"n": right.size, "accuracy": right.mean(), "right": blocks(right)}]


def of_speed(folder: Path, sizes: dict[str, Any], name: str, model: str) -> list[Row]:
    stored, coming, *kq = sizes[name]
    data = split_stream(folder, name, stored, coming, 0)
    works = {
        before: Predicts(whole(before, model, data.history, *kq, is_warm=True, by_river=True))
        for before in transformers_of(model, TIMED)
    }
    return timed({"dataset": name, "model": model}, works, data.rows)


def of_parts(folder: Path, sizes: dict[str, Any], name: str) -> list[Row]:
    stored, coming, *kq = sizes[name]
    data = split_stream(folder, name, stored, coming, 0)
    made = []
    for what, Work in (("transform", Transforms), ("learn", Learns), ("refresh", Refreshes)):
        works: dict[str, Any] = {}
        for before in (SCALED, SELECTED, RIDGE, POOL):
            if what != "refresh" or before in (RIDGE, POOL):
                step = transformer_steps(before, data.history, *kq)[0]
                for x, y in data.rows[:SKIP]:
                    Learns(step)((x, y))
                works[before] = Work(step)
        rows = data.rows if what != "refresh" else data.rows[:4]
        made += timed({"dataset": name, "model": what}, works, rows)
    return made


def timed(shape: Row, works: dict[str, Any], rows: Stream) -> list[Row]:
    made = []
    for before, seconds in clocked(works, rows[:TIMED_ROWS]).items():
        low, high = np.percentile(1e3 * seconds, [50, 99])
        row = {
            "transformer": before,
            "a_second": 1.0 / seconds.mean(),
            "median_ms": low,
            "p99_ms": high,
        }
        made.append(shape | row)
    return made


def of_drift(
    folder: Path,
    sizes: dict[str, Any],
    name: str,
    what: str,
    before: str,
    fading: float,
    seed: int,
) -> list[Row]:
    stored, coming, k, q = sizes[name]
    data = split_stream(folder, name, stored, coming, seed)
    rules: dict[str, Any] = {} if before == ALL else {"fading_factor": fading}
    first = RIDGE if before == AT_DRIFT else before
    model = whole(first, NEIGHBOURS, data.history, k, q, is_warm=True, **rules)
    rows = EXCHANGES[what](data.rows, seed)
    right = hits_with_refreshes(model, rows) if before == AT_DRIFT else hits(model, rows)
    row = {
        "dataset": name,
        "exchanged": what,
        "transformer": before,
        "fading": fading,
        "seed": seed,
    }
    return [row | {"n": right.size, "accuracy": right.mean(), "right": blocks(right)}]


def hits_with_refreshes(model: Any, rows: Stream) -> np.ndarray:
    """Return the same as `hits`; components are refreshed when ADWIN detects a drift."""
    detector, right = drift.ADWIN(), []
    for x, y in rows:
        right.append(model.predict_one(x) == y)
        model.learn_one(x, y)
        detector.update(not right[-1])
        if detector.drift_detected:
            model["RidgeComponents"].refresh()
    return np.array(right)


def blocks(right: np.ndarray) -> str:
    """Return the number of correct predictions in each block of rows."""
    counts = right[: right.size // BLOCK * BLOCK].reshape(-1, BLOCK).sum(axis=1)
    return " ".join(map(str, counts.tolist()))


def transformers_of(model: str, names: tuple[str, ...]) -> list[str]:
    """Return the transformers that are tried before a model: trees are slow, some need no scale."""
    if model == TREE:
        return [name for name in names if name in TREE_TRANSFORMERS]
    return [name for name in names if name != SCALED or model in (BAYES, NEIGHBOURS)]


def fadings(before: str) -> tuple[float, ...]:
    """Return the fading factors of a transformer: all of them for RidgeComponents."""
    return FADING if before == RIDGE else FADING[:1] if before == ALL else FADING[1:]


def tasks(there: list[str], no_gain: list[str], seeds: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Return the tasks, those in which time is measured first, then seed by seed."""
    made: list[tuple[Any, ...]] = [("parts", name) for name in there]
    made += [("speed", name, model) for name in there for model in TIMED_MODELS]
    for seed in seeds:
        made += [
            ("drift", name, what, before, fading, seed)
            for name in there[:1]
            for what in EXCHANGES
            for before in DRIFT_TRANSFORMERS
            for fading in fadings(before)
        ]
        made += [
            ("no gain", name, model, before, "cold", seed)
            for name in no_gain
            for model in NO_GAIN_MODELS
            for before in NO_GAIN_TRANSFORMERS
        ]
        made += [
            ("accuracy", name, model, before, start, seed)
            for name in there
            for model in MODELS
            for before in transformers_of(model, TRANSFORMERS)
            for start in ("cold", "warm")
            if start == "cold" or (before != ROWS_ALONE and model != TREE)
        ]
    return made


# Tables and figures


def spread(values: pd.Series) -> str:
    many = f" ± {100.0 * values.std():.1f}" if len(values) > 1 else ""
    return f"{100.0 * values.mean():.1f}{many}"


def accuracy_table(rows: pd.DataFrame, transformers: tuple[str, ...]) -> str:
    """Return accuracies in %, one row per dataset, model and start."""
    lines = []
    keys = ["dataset", "model", "start"] if "warm" in set(rows["start"]) else ["dataset", "model"]
    for names, runs in rows.groupby(keys, sort=False):
        line = dict(zip(("", "model", "start"), names, strict=False))
        found = dict(iter(runs.groupby("transformer")["accuracy"]))
        lines.append(line | {f: spread(found[f]) if f in found else "" for f in transformers})
    return table(pd.DataFrame(lines))


def speed_table(rows: pd.DataFrame, label: str) -> str:
    lines = []
    for (name, model, before), runs in rows.groupby(
        ["dataset", "model", "transformer"], sort=False
    ):
        one = runs.iloc[0]
        line = {"": name, label: model, "transformer": before}
        line |= {"rows per second": f"{one.a_second:,.0f}", "median, ms": f"{one.median_ms:.2f}"}
        lines.append(line | {"99th percentile, ms": f"{one.p99_ms:.2f}"})
    return table(pd.DataFrame(lines))


def curve(rows: pd.DataFrame) -> np.ndarray:
    """Return the mean accuracy of each block, in %."""
    counts = np.array([[int(count) for count in line.split()] for line in rows["right"]])
    found: np.ndarray = 100.0 * counts.mean(axis=0) / BLOCK
    return found


def drift_table(rows: pd.DataFrame) -> str:
    """Return accuracy before the change, and in the first and the second half of what follows."""
    lines = []
    keys = ["transformer", "fading", "exchanged", "dataset"]
    found = {key: curve(runs) for key, runs in rows.groupby(keys)}
    pairs = [(before, what) for what in EXCHANGES for before in DRIFT_TRANSFORMERS]
    for before, what in pairs:
        for fading in fadings(before):
            line = {"exchanged": what, "": before, "fading": f"{fading:g}" if before != ALL else ""}
            for name in rows["dataset"].unique():
                points = found[before, fading, what, name]
                half, rest = points.size // 2, (points.size + 1) // 4
                parts = points[:half], points[half : half + rest], points[half + rest :]
                for when, part in zip(("before", "after", "later"), parts, strict=True):
                    line[f"{name}: {when}"] = f"{part.mean():.1f}"
            lines.append(line)
    return table(pd.DataFrame(lines))


def draw_accuracy(found: dict[str, pd.DataFrame], there: list[str]) -> plt.Figure:
    """Draw accuracy against rows per second, one panel per dataset."""
    fig, axes = plt.subplots(1, len(there), figsize=(9.0, 4.4), squeeze=False)
    groups = found["accuracy"].groupby(["dataset", "start", "model", "transformer"])
    right = 100.0 * groups["accuracy"].mean()
    for name, ax in zip(there, axes[0], strict=True):
        for row in found["speed"].itertuples():
            for start, inside in (("cold", "none"), ("warm", None)) if row.dataset == name else ():
                # All features as they are or scaled, whichever is better.
                names = (ALL, SCALED) if row.transformer == ALL else (row.transformer,)
                keys = [(name, start, row.model, before) for before in names]
                y = max((right[key] for key in keys if key in right), default=np.nan)
                colour = COLOUR[row.transformer]
                shape = {"color": colour, "markerfacecolor": inside or colour, "ms": 7}
                ax.plot(row.a_second, y, MARKERS[row.model], **shape)
        ax.set_title(name)
        ax.set_xscale("log")
        ax.set_xlabel("rows per second, predicted and learnt")
    axes[0, 0].set_ylabel("accuracy, %")
    ax = axes[0, -1]
    for before in TIMED:
        ax.plot([], [], "s", color=COLOUR[before], label=before)
    for model, marker in MARKERS.items():
        ax.plot([], [], marker, color="black", label=model)
    ax.plot([], [], "o", color="black", markerfacecolor="none", label="hollow: cold")
    ax.legend(fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig


def draw_drift(rows: pd.DataFrame, there: list[str]) -> plt.Figure:
    """Draw accuracy row by row when features exchange names."""
    shown = ((ALL, 0.0, "-"), (RIDGE, 0.0, ":"), (RIDGE, 0.005, "-"), (REFRESHED, 0.005, "-"))
    fig, axes = plt.subplots(1, len(there), figsize=(7.6, 3.6), squeeze=False, sharey=True)
    rows = rows[rows["exchanged"] == "features"]
    for name, ax in zip(there, axes[0], strict=True):
        for before, fading, style in shown:
            runs = rows[(rows["dataset"] == name) & (rows["transformer"] == before)]
            points = curve(runs[runs["fading"] == fading])
            smooth = np.convolve(points, np.ones(3) / 3, "valid")
            x = BLOCK * (np.arange(smooth.size) + 3)
            label = before if before == ALL else f"{before}, fading by {fading:g}"
            ax.plot(x, smooth, style, color=COLOUR[before], lw=1.4, label=label)
        ax.axvline(BLOCK * points.size / 2, color="black", lw=0.6, ls=":")
        ax.set_title(name)
        ax.set_xlabel("rows that came")
    axes[0, 0].set_ylabel("accuracy, %")
    axes[0, -1].legend(fontsize=8.5)
    return fig


def section(
    found: dict[str, pd.DataFrame], sizes: dict[str, Any], there: list[str], images: list[str]
) -> str:
    """Return the text, with figures and tables."""
    counts = ", and ".join(
        f"{name} has {sizes[name][0]:,} stored and {sizes[name][1]:,} later rows" for name in there
    )
    _, _, k, q = sizes[there[0]]
    return f"""
{counts}. Stored rows are learnt as columns. The transformer is {q} RidgeComponents or {k} variables
of ProjSe, both learnt from the stored rows. Without a transformer, the model receives all features.
River's model starts cold (with the first later row) or warm (with the transformed stored rows).
Cells show the accuracy in % by progressive validation, as mean ± standard deviation over
{len(SEEDS)} shuffles.

![Accuracy against rows per second, one panel per dataset. Hollow markers are cold starts. All
features are unscaled or scaled, whichever is better.]({images[0]})

{accuracy_table(found["accuracy"], TRANSFORMERS)}

The next table shows the processor time of the warm pipeline to predict and learn a row: the mean
(as rows per second) and two quantiles.

{speed_table(found["speed"], "model")}

The next table shows the transformers alone. To *refresh* is to learn a row and compute a new
snapshot. This is due when the number of rows has doubled, or as set by `refresh_factor`.

{speed_table(found["parts"], "task")}

From the middle of the rows on, features or classes exchange their names at random. The table shows
the accuracy in % before the exchange, in the first half of the rows after it, and in the second
half. The model predicts from the 5 nearest of the last 300 rows, and starts warm.

![Accuracy row by row: all features and RidgeComponents.]({images[1]})

{drift_table(found["drift"])}

No gain was expected in the last cases, all with a cold start. These cases have few features, a
forest as the model, a class that a decision tree on two of the 40 variables determines
(*thresholds*), or a class with which no single variable correlates (madelon).

{accuracy_table(found["no gain"], NO_GAIN_TRANSFORMERS)}

[All numbers](warehouse.csv) were made by `python demos/papers/warehouse.py`
with {machine()}.
"""


def expect_rivers_predictions(rows: Stream) -> None:
    """Fail if our models on arrays predict differently from River's, except ties of rounding.

    Neighbours are also checked with names that come and go, as after a selection.
    """
    lacking = [
        ({name: v for j, (name, v) in enumerate(x.items()) if (i // 15 + j) % 3}, y)
        for i, (x, y) in enumerate(rows)
    ]
    for name, given in ((BAYES, rows), (NEIGHBOURS, rows), (NEIGHBOURS, lacking)):
        ours, theirs = (
            hits(model_steps(name, by_river=river)[0], given) for river in (False, True)
        )
        if np.mean(ours != theirs) > 0.01:
            raise AssertionError(f"{name}: other predictions in {np.sum(ours != theirs)} rows")


def main() -> None:
    experiment = Experiment("warehouse", __doc__)
    sizes = experiment.small(SETS, QUICK)
    no_gain = experiment.small(NO_GAIN, QUICK_NO_GAIN)
    there = experiment.available(sizes)
    made = (*RIVERS, "thresholds")
    files = experiment.available([name for name in no_gain if name not in made])
    no_gain_there = [name for name in no_gain if name in (*files, *made)]
    for name in () if experiment.redraws else there:
        expect_rivers_predictions(stream(experiment.data, name, 60, 0))
    seeds = SEEDS
    call = functools.partial(work, experiment.data, sizes | no_gain)
    results = experiment.each(call, tasks(there, no_gain_there, seeds))
    found = dict(iter(results.groupby("part")))
    there = list(found["speed"]["dataset"].unique())
    images = [
        experiment.draw(draw_accuracy(found, there)),
        experiment.draw(draw_drift(found["drift"], there[:1]), "-drift"),
    ]
    experiment.publish(section(found, sizes, there, images))


if __name__ == "__main__":
    # Under its own name, so that processes (--jobs) find the functions that cache the data.
    from warehouse import main

    main()
