"""How many rows before components or a selection exist, and what is returned until then?

A transformer that learns rows has nothing to return at first. Before `warm_up` rows an extractor
returns its components as 0.0, which a downstream scaler learns, and a selector returns all
features. Here `warm_up` varies, and with each of its values what is returned before: that
("filled"), or no feature at all, `{}` ("empty").

Each row is predicted first and then learnt (progressive validation), at most 1,000 rows per stream.
The transformers are three extractors with 5 and 10 components (fewer where there are fewer
features), two selectors, and KernelPCA, which begins with its first window of 200 rows. The models
downstream are naive Bayes, logistic regression after a StandardScaler and a Hoeffding tree for
classes, linear regression after a StandardScaler and a Hoeffding tree for numbers. Streams are
shuffled with two seeds; sets ordered in time keep their order. Every third to sixth column of wide
sets is used.

A result is compared with that of the same transformer with the former default, `warm_up=50`,
filled: points of accuracy, or the share of the error that is saved, in %, at most 100 either way.
The streams are halved: the defaults were chosen on one half, and are judged on the other. A win or
a loss is a difference of more than 0.5 of a stream and a model, over sizes and seeds. SOSPCA begins
at `warm_up` rows here; before it did not begin until its first refresh, at row 100.
"""

import functools
import math
from pathlib import Path
from typing import Any

import pandas as pd
from _experiment import COLOURS, Experiment, Row, machine, plt, table
from _row_streams import RIVERS
from _warm_up import (
    BY_WINDOW,
    DRAWN,
    EMPTY,
    EXTRACTORS,
    FILLED,
    NUMERIC,
    SELECTORS,
    Pipeline,
    labelled,
    learner,
)

# Variables selected per stream; the defaults are chosen on one half and judged on the other.
CHOOSE = {
    "isolet": 15,
    "spambase": 15,
    "ionosphere": 10,
    "Phishing": 4,
    "digits": 15,
    "Waveform": 10,
    "LED": 8,
    "diabetes": 4,
    "TrumpApproval": 3,
    "Friedman": 5,
    "isolet, a column": 15,
}
JUDGE = {
    "mnist_10k": 30,
    "madelon": 15,
    "sonar": 10,
    "ImageSegments": 6,
    "breast_cancer": 8,
    "RandomRBF": 7,
    "Hyperplane": 7,
    "ChickWeights": 1,
    "SP500Stocks": 4,
    "Planes2D": 4,
    "FriedmanDrift": 5,
    "shapesall, a column": 30,
}
QUICK = {"choose": {"digits": 15, "Friedman": 5}, "judge": {"breast_cancer": 8, "Planes2D": 4}}
HALVES = {"choose": CHOOSE, "judge": JUDGE}
# Files that a stream needs under another name than its own.
FILES = {"isolet, a column": "isolet", "shapesall, a column": "shapesall"}
OF_EXTRACTORS, OF_SELECTORS = (0, 10, 20, 50, 100), (0, 50, 100, 200, 400)
QS, SEEDS, MOST_ROWS = (5, 10), (0, 1), 1000
WAS = 50
# Rows from here on are past every warm-up; shorter streams than twice that have too few.
LATE = 400
CLEAR = 0.5
KINDS = {"extractors": EXTRACTORS, "window": BY_WINDOW, "selectors": SELECTORS}


def work(
    folder: Path,
    most: int,
    half: str,
    name: str,
    transformer: str,
    size: int,
    warm_up: int,
    seed: int,
) -> list[Row]:
    rows, is_class = labelled(folder, name, most, seed)
    pipeline = Pipeline(learner(transformer, size, warm_up, is_class=is_class), is_class=is_class)
    for x, y in rows:
        pipeline.take(x, y)
    late = pipeline.results(LATE) if len(rows) >= 2 * LATE else {}
    shape = {
        "half": half,
        "dataset": name,
        "is_class": is_class,
        "transformer": transformer,
        "size": size,
    }
    shape |= {"seed": seed, "n": len(rows), "warm_up": warm_up}
    return [
        shape
        | {"before": before, "model": model, "result": result}
        | {"late": late.get((before, model), math.nan)}
        for (before, model), result in pipeline.results().items()
    ]


def tasks(
    folder: Path, most: int, halves: dict[str, dict[str, int]], seeds: tuple[int, ...]
) -> list[tuple[Any, ...]]:
    """Return the tasks, stream by stream."""
    made: list[tuple[Any, ...]] = []
    for half, streams in halves.items():
        for name, k in streams.items():
            p = len(labelled(folder, name, most, 0).rows[0][0])
            runs = [
                *((f, q, w) for f in EXTRACTORS for q in sizes(p) for w in OF_EXTRACTORS),
                *((f, k, w) for f in SELECTORS for w in OF_SELECTORS),
                *((f, min(QS[0], p), WAS) for f in BY_WINDOW),
            ]
            # Sets in order of time have one order.
            for seed in seeds[:1] if name in NUMERIC else seeds:
                made += [(half, name, *run, seed) for run in runs]
    return made


def sizes(p: int) -> list[int]:
    """Return numbers of components for p features."""
    return sorted({min(q, p) for q in QS})


def gains(rows: pd.DataFrame, column: str = "result") -> pd.DataFrame:
    """Return what each stream and model gains over the former default, over sizes and seeds."""
    rows = rows.dropna(subset=[column])
    keys = ["half", "is_class", "dataset", "transformer", "size", "seed", "model"]
    was = rows[(rows["warm_up"] == WAS) & (rows["before"] == FILLED)].set_index(keys)[column]
    rows = rows.join(was.rename("was"), on=keys)
    saved = 100.0 * (rows["was"] - rows[column]) / rows["was"].clip(lower=1e-12)
    points = rows[column] - rows["was"]
    rows = rows.assign(gain=points.where(rows["is_class"], saved.clip(-100.0, 100.0)))
    means: pd.DataFrame = rows.groupby(
        ["half", "is_class", "transformer", "before", "warm_up", "dataset", "model"], sort=False
    )["gain"].mean()
    return means.reset_index()


def cell(values: pd.Series) -> str:
    """Return mean gain, wins and losses."""
    wins, losses = int((values > CLEAR).sum()), int((values < -CLEAR).sum())
    return f"{values.mean():+.1f} ({wins}/{losses})"


def gains_table(found: pd.DataFrame, rows_of: str, label: str) -> str:
    """Return a table: a row for each `rows_of` and warm-up, a column for half and filling."""
    lines = []
    for (of, warm_up), part in found.groupby([rows_of, "warm_up"]):
        line = {label: of, "`warm_up`": str(warm_up)}
        for half in HALVES:
            for before in (FILLED, EMPTY):
                values = part[(part["half"] == half) & (part["before"] == before)]["gain"]
                line[f"{half}, {before}"] = cell(values)
        lines.append(line)
    return table(pd.DataFrame(lines))


def of_kind(found: pd.DataFrame, kind: str) -> pd.DataFrame:
    part = found[found["transformer"].isin(KINDS[kind])]
    targets = part["is_class"].map({True: "classes, points", False: "numbers, % of the error"})
    return part.assign(target=targets)


def draw(found: pd.DataFrame) -> plt.Figure:
    """Draw the mean gain in the judged half against the warm-up, a panel for each kind."""
    fig, axes = plt.subplots(1, 2, figsize=(8.0, 3.4))
    judged = found[(found["half"] == "judge") & found["is_class"]]
    for kind, ax in zip(("extractors", "selectors"), axes, strict=True):
        for i, name in enumerate(KINDS[kind]):
            for before, style in ((FILLED, "-"), (EMPTY, ":")):
                part = judged[(judged["transformer"] == name) & (judged["before"] == before)]
                mean = part.groupby("warm_up")["gain"].mean()
                label = name if before == FILLED else f"{name}, {{}}"
                ax.plot(mean.index, mean, style, marker="o", ms=3, color=COLOURS[i], label=label)
        ax.axhline(0.0, color="black", lw=0.6)
        ax.set_title(kind)
        ax.set_xlabel("warm_up, rows")
        ax.legend(fontsize=8)
    axes[0].set_ylabel("points above warm_up=50")
    return fig


def section(found: pd.DataFrame, late: pd.DataFrame, image: str) -> str:
    """Return the text, with the figure and the tables."""
    extractors, selectors = of_kind(found, "extractors"), of_kind(found, "selectors")
    return f"""
Cells show the mean gain over `warm_up={WAS}`, filled. Brackets count the wins and losses of more
than {CLEAR} among pairs of a stream and a model. *Filled* means that, before warm-up ends, an
extractor returns 0.0, and a selector returns all features. *Empty* means that both return `{{}}`.
The defaults were chosen on one half of the streams (*choose*) and judged on the other half
(*judge*).

![Mean gain in the judged half against warm_up, for targets that are classes. Lines are dotted where
`{{}}` is returned before.]({image})

Extractors:

{gains_table(extractors, "target", "target")}

Each extractor, all targets:

{gains_table(extractors, "transformer", "extractor")}

Models downstream of the extractors:

{gains_table(extractors, "model", "model")}

KernelPCA begins with its first full window of 200 rows, whatever `warm_up` is:

{gains_table(of_kind(found, "window"), "model", "model")}

Selectors, all rows:

{gains_table(selectors, "target", "target")}

Selectors from row {LATE} on, where each has a selection in use:

{gains_table(of_kind(late, "selectors"), "target", "target")}

[All numbers](rows-warm-up.csv) were made by `python demos/papers/rows_warm_up.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("rows-warm-up", __doc__)
    halves = experiment.small(HALVES, QUICK)
    made = (*RIVERS, *NUMERIC, *DRAWN, "diabetes")
    names = [name for streams in halves.values() for name in streams]
    files = {FILES.get(name, name) for name in names if name not in made}
    there = experiment.available(sorted(files))
    halves = {
        half: {
            name: k for name, k in each.items() if name in made or FILES.get(name, name) in there
        }
        for half, each in halves.items()
    }
    most, seeds = experiment.small((MOST_ROWS, SEEDS), (150, SEEDS[:1]))
    call = functools.partial(work, experiment.data, most)
    rows = experiment.each(
        call, [] if experiment.redraws else tasks(experiment.data, most, halves, seeds)
    )
    found = gains(rows)
    experiment.publish(section(found, gains(rows, "late"), experiment.draw(draw(found))))


if __name__ == "__main__":
    # Under its own name, so that processes (--jobs) find the functions that cache the data.
    from rows_warm_up import main

    main()
