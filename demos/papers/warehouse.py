"""From the warehouse to the stream: what are components of the history worth to a River pipeline?

A part of a dataset has gone by as columns: the history. The other rows come one by one; a River
pipeline answers each and learns it then (progressive validation). What stands before its model has
learnt the history as columns: 25 RidgeComponents, or ProjSe with 60 variables; or it is nothing but
a scaler, or nothing. Five parts, in one CSV:

1. *worth*: accuracy on the rows that come, behind each. The model behind knows nothing when they
   begin (cold), so that all that differs is what it is given; or it has learnt the history first,
   row by row, through what stands before it (warm). "On rows alone": RidgeComponents that have not
   seen the history.
2. *speed*: rows a second and latency of the whole warm pipeline, River's models; all contenders
   take the same rows in turn, in one process, 16 at a time; seconds are those of the processor.
3. *parts*: the same of the transformers alone: transforming, learning, and a renewal.
4. *turn*: from the middle of the rows on features, or classes, exchange their names at random. With
   a fading factor of 0 and 0.005; behind, the five nearest of the last 300 rows, which
   forget by themselves.
5. *not*: where it should not pay: few features, trees and forests, a truth that is a tree of two
   variables of 40 (*thresholds*), one that no variable tells of by itself (madelon).

Naive Bayes, smoothed or not, and the neighbours are River's on arrays (every run checks that they
answer as River's do). Rows are shuffled with a seed before they are cut. Features are scaled row by
row by River's StandardScaler, where it says so; before logistic regression always. Components are
given as they come. 25 and 60 were a prototype's, on isolet and mnist_10k.
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
    RENEWED,
    RIDGE,
    ROWS_ALONE,
    SCALED,
    SELECTED,
    TREE,
    Answers,
    Learns,
    Renews,
    Transforms,
    behind,
    clocked,
    front,
    relabelled,
    story,
    whole,
)
from river import drift

# Rows of the history and to come, variables selected, components.
SETS = {"isolet": (780, 780, 60, 25), "mnist_10k": (2000, 1500, 60, 25)}
NOT = {
    "spambase": (1000, 1000, 20, 10),
    "madelon": (1300, 700, 20, 10),
    "Phishing": (600, 650, 5, 5),
    "thresholds": (1000, 1000, 10, 5),
}
QUICK = {"digits": (400, 150, 15, 8)}
QUICK_NOT = {"thresholds": (300, 300, 10, 5)}
MODELS = (BAYES, SMOOTHED, TREE, NEIGHBOURS, LOGISTIC)
NOT_MODELS = (SMOOTHED, FOREST, LOGISTIC)
FRONTS = (ALL, SCALED, SELECTED, RIDGE, POOL, ROWS_ALONE)
TIMED = (ALL, SELECTED, RIDGE, POOL)
NOT_FRONTS = (ALL, SELECTED, RIDGE)
TREE_FRONTS = (ALL, SELECTED, RIDGE, ROWS_ALONE)
TIMED_MODELS = (BAYES, TREE, NEIGHBOURS)
EXCHANGES = {"features": exchanged, "classes": relabelled}
FADING = (0.0, 0.005)
ALARMED = "the same, refresh() at a detected drift"
FOLLOWERS = (ALL, SELECTED, RIDGE, RENEWED, ALARMED)
SEEDS = (0, 1)
BLOCK, SKIP, TIMED_ROWS = 30, 10, 64
COLOUR = dict(zip((RIDGE, ALL, SELECTED, RENEWED, POOL, SCALED), COLOURS, strict=False))
MARKERS = dict(zip(TIMED_MODELS, "osD", strict=True))


def work(folder: Path, sizes: dict[str, Any], part: str, *task: Any) -> list[Row]:
    parts = {"worth": of_worth, "speed": of_speed, "parts": of_parts, "turn": of_turn}
    return [{"part": part} | row for row in parts.get(part, of_worth)(folder, sizes, *task)]


def of_worth(
    folder: Path, sizes: dict[str, Any], name: str, model: str, before: str, start: str, seed: int
) -> list[Row]:
    stored, coming, *kq = sizes[name]
    told = story(folder, name, stored, coming, seed)
    right = hits(whole(before, model, told.history, *kq, knows=start == "warm"), told.rows)
    row = {"dataset": name, "model": model, "front": before, "start": start, "seed": seed}
    return [row | {"n": right.size, "accuracy": right.mean(), "right": blocks(right)}]


def of_speed(folder: Path, sizes: dict[str, Any], name: str, model: str) -> list[Row]:
    stored, coming, *kq = sizes[name]
    told = story(folder, name, stored, coming, 0)
    works = {
        before: Answers(whole(before, model, told.history, *kq, knows=True, by_river=True))
        for before in fronts_of(model, TIMED)
    }
    return timed({"dataset": name, "model": model}, works, told.rows)


def of_parts(folder: Path, sizes: dict[str, Any], name: str) -> list[Row]:
    stored, coming, *kq = sizes[name]
    told = story(folder, name, stored, coming, 0)
    made = []
    for what, Work in (("transform", Transforms), ("learn", Learns), ("refresh", Renews)):
        works: dict[str, Any] = {}
        for before in (SCALED, SELECTED, RIDGE, POOL):
            if what != "refresh" or before in (RIDGE, POOL):
                step = front(before, told.history, *kq)[0]
                for x, y in told.rows[:SKIP]:
                    Learns(step)((x, y))
                works[before] = Work(step)
        rows = told.rows if what != "refresh" else told.rows[:4]
        made += timed({"dataset": name, "model": what}, works, rows)
    return made


def timed(shape: Row, works: dict[str, Any], rows: Stream) -> list[Row]:
    made = []
    for before, seconds in clocked(works, rows[:TIMED_ROWS]).items():
        low, high = np.percentile(1e3 * seconds, [50, 99])
        row = {"front": before, "a_second": 1.0 / seconds.mean(), "median_ms": low, "p99_ms": high}
        made.append(shape | row)
    return made


def of_turn(
    folder: Path,
    sizes: dict[str, Any],
    name: str,
    what: str,
    before: str,
    fading: float,
    seed: int,
) -> list[Row]:
    stored, coming, k, q = sizes[name]
    told = story(folder, name, stored, coming, seed)
    rules: dict[str, Any] = {} if before == ALL else {"fading_factor": fading}
    first = RIDGE if before == ALARMED else before
    model = whole(first, NEIGHBOURS, told.history, k, q, knows=True, **rules)
    rows = EXCHANGES[what](told.rows, seed)
    right = renewed_at_alarms(model, rows) if before == ALARMED else hits(model, rows)
    row = {"dataset": name, "exchanged": what, "front": before, "fading": fading, "seed": seed}
    return [row | {"n": right.size, "accuracy": right.mean(), "right": blocks(right)}]


def renewed_at_alarms(model: Any, rows: Stream) -> np.ndarray:
    """Return what `hits` does; at an alarm of ADWIN components are renewed."""
    watch, right = drift.ADWIN(), []
    for x, y in rows:
        right.append(model.predict_one(x) == y)
        model.learn_one(x, y)
        watch.update(not right[-1])
        if watch.drift_detected:
            model["RidgeComponents"].refresh()
    return np.array(right)


def blocks(right: np.ndarray) -> str:
    """Return how many of each block of rows were answered rightly."""
    counts = right[: right.size // BLOCK * BLOCK].reshape(-1, BLOCK).sum(axis=1)
    return " ".join(map(str, counts.tolist()))


def fronts_of(model: str, fronts: tuple[str, ...]) -> list[str]:
    """Return what is tried before a model: trees are slow, and others mind no scale."""
    if model == TREE:
        return [name for name in fronts if name in TREE_FRONTS]
    return [name for name in fronts if name != SCALED or model in (BAYES, NEIGHBOURS)]


def fadings(before: str) -> tuple[float, ...]:
    """Return the factors by which what stands before forgets: all of them of RidgeComponents."""
    return FADING if before == RIDGE else FADING[:1] if before == ALL else FADING[1:]


def tasks(there: list[str], not_there: list[str], seeds: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Return the tasks, those in which time is measured first, then seed by seed."""
    made: list[tuple[Any, ...]] = [("parts", name) for name in there]
    made += [("speed", name, model) for name in there for model in TIMED_MODELS]
    for seed in seeds:
        made += [
            ("turn", name, what, before, fading, seed)
            for name in there[:1]
            for what in EXCHANGES
            for before in FOLLOWERS
            for fading in fadings(before)
        ]
        made += [
            ("not", name, model, before, "cold", seed)
            for name in not_there
            for model in NOT_MODELS
            for before in NOT_FRONTS
        ]
        made += [
            ("worth", name, model, before, start, seed)
            for name in there
            for model in MODELS
            for before in fronts_of(model, FRONTS)
            for start in ("cold", "warm")
            if start == "cold" or (before != ROWS_ALONE and model != TREE)
        ]
    return made


# What is shown


def spread(values: pd.Series) -> str:
    many = f" ± {100.0 * values.std():.1f}" if len(values) > 1 else ""
    return f"{100.0 * values.mean():.1f}{many}"


def worth_table(rows: pd.DataFrame, fronts: tuple[str, ...]) -> str:
    """Return accuracies in %, a line for each dataset, model and start."""
    lines = []
    keys = ["dataset", "model", "start"] if "warm" in set(rows["start"]) else ["dataset", "model"]
    for names, runs in rows.groupby(keys, sort=False):
        line = dict(zip(("", "model", "start"), names, strict=False))
        found = dict(iter(runs.groupby("front")["accuracy"]))
        lines.append(line | {f: spread(found[f]) if f in found else "" for f in fronts})
    return table(pd.DataFrame(lines))


def speed_table(rows: pd.DataFrame, label: str) -> str:
    lines = []
    for (name, model, before), runs in rows.groupby(["dataset", "model", "front"], sort=False):
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


def turn_table(rows: pd.DataFrame) -> str:
    """Return accuracy before the change, and in the first and the second half of what follows."""
    lines = []
    keys = ["front", "fading", "exchanged", "dataset"]
    found = {key: curve(runs) for key, runs in rows.groupby(keys)}
    pairs = [(before, what) for what in EXCHANGES for before in FOLLOWERS]
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


def draw_worth(found: dict[str, pd.DataFrame], there: list[str]) -> plt.Figure:
    """Draw accuracy against rows a second, a panel a dataset."""
    fig, axes = plt.subplots(1, len(there), figsize=(9.0, 4.4), squeeze=False)
    groups = found["worth"].groupby(["dataset", "start", "model", "front"])
    right = 100.0 * groups["accuracy"].mean()
    for name, ax in zip(there, axes[0], strict=True):
        for row in found["speed"].itertuples():
            for start, inside in (("cold", "none"), ("warm", None)) if row.dataset == name else ():
                # All features at their better: as they are, or scaled.
                fronts = (ALL, SCALED) if row.front == ALL else (row.front,)
                keys = [(name, start, row.model, before) for before in fronts]
                y = max((right[key] for key in keys if key in right), default=np.nan)
                colour = COLOUR[row.front]
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


def draw_turn(rows: pd.DataFrame, there: list[str]) -> plt.Figure:
    """Draw accuracy row by row where features exchange names."""
    shown = ((ALL, 0.0, "-"), (RIDGE, 0.0, ":"), (RIDGE, 0.005, "-"), (RENEWED, 0.005, "-"))
    fig, axes = plt.subplots(1, len(there), figsize=(7.6, 3.6), squeeze=False, sharey=True)
    rows = rows[rows["exchanged"] == "features"]
    for name, ax in zip(there, axes[0], strict=True):
        for before, fading, style in shown:
            runs = rows[(rows["dataset"] == name) & (rows["front"] == before)]
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
    """Return the text: what was done, the figures, the tables."""
    worth = found["worth"]
    counts = ", ".join(f"{name} {sizes[name][0]:,} and {sizes[name][1]:,}" for name in there)
    _, _, k, q = sizes[there[0]]
    shuffles = "one shuffle" if len(SEEDS) == 1 else f"{len(SEEDS)} shuffles, mean and deviation"
    return f"""
Stored rows, learnt as columns, and later rows: {counts}. Transformers: {q} RidgeComponents or {k}
variables of ProjSe, both of the stored rows, or none. River's model starts cold, with the first
later row, or warm, with the transformed stored rows. Accuracy in % of rows that are predicted
first and then learnt: {shuffles}.

![Accuracy against rows per second: one panel per dataset, colours for the transformers, shapes for
the models; hollow markers for a cold start. All features are unscaled or scaled, whichever is
better.]({images[0]})

{worth_table(worth, FRONTS)}

Processor time to predict and learn a row with the warm pipeline: the mean, as rows per second, and
two quantiles.

{speed_table(found["speed"], "model")}

The transformers alone; "refresh" is to learn a row and to compute a new snapshot, which is due
when the number of rows has doubled, or as set by `refresh_factor`.

{speed_table(found["parts"], "does")}

From the middle of the rows on features or classes exchange their names at random: accuracy in %
before, in the first half of the rows after, and in the second. Model: the 5 nearest of the last 300
rows, warm.

![Accuracy row by row: all features, RidgeComponents that do not fade, that fade by 0.005 per row,
and the same refreshed sooner.]({images[1]})

{turn_table(found["turn"])}

Cases without an expected gain, cold: few features, forests, a rule that is a tree of two of 40
variables (*thresholds*), and one that shows in no single variable (madelon).

{worth_table(found["not"], NOT_FRONTS)}

`python demos/papers/warehouse.py`; [all numbers](warehouse.csv); made with
{machine()}.
"""


def expect_rivers_answers(rows: Stream) -> None:
    """Fail if our models on arrays answer otherwise than River's, but for a tie of rounding.

    Neighbours also where names come and go, as behind a selection that is renewed.
    """
    lacking = [
        ({name: v for j, (name, v) in enumerate(x.items()) if (i // 15 + j) % 3}, y)
        for i, (x, y) in enumerate(rows)
    ]
    for name, given in ((BAYES, rows), (NEIGHBOURS, rows), (NEIGHBOURS, lacking)):
        ours, theirs = (hits(behind(name, by_river=river)[0], given) for river in (False, True))
        if np.mean(ours != theirs) > 0.01:
            raise AssertionError(f"{name}: other answers in {np.sum(ours != theirs)} rows")


def main() -> None:
    experiment = Experiment("warehouse", __doc__)
    sizes = experiment.small(SETS, QUICK)
    nots = experiment.small(NOT, QUICK_NOT)
    there = experiment.available(sizes)
    made = (*RIVERS, "thresholds")
    files = experiment.available([name for name in nots if name not in made])
    not_there = [name for name in nots if name in (*files, *made)]
    for name in there:
        expect_rivers_answers(stream(experiment.data, name, 60, 0))
    seeds = SEEDS
    call = functools.partial(work, experiment.data, sizes | nots)
    results = experiment.each(call, tasks(there, not_there, seeds))
    found = dict(iter(results.groupby("part")))
    there = list(found["speed"]["dataset"].unique())
    images = [
        experiment.draw(draw_worth(found, there)),
        experiment.draw(draw_turn(found["turn"], there[:1]), "-turn"),
    ]
    experiment.publish(section(found, sizes, there, images))


if __name__ == "__main__":
    # Under its own name, so that processes (--jobs) find the functions that cache the data.
    from warehouse import main

    main()
