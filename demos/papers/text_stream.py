"""Does a selection of words help on a stream of messages?

The SMS Spam Collection in its order: 5,574 messages, each a row of counts of its words (15 on
average, of 8,753), 13 % of them spam. Every row is predicted first and then learnt by River's
logistic regression; the measure is F1 of spam. Before the model there is nothing, a selection,
components of SOSPCA, or River's feature hasher, which also bounds the number of weights.

The learning rate (0.1, 0.3 or 1, also of the intercept) of each was chosen by F1 on the first half
of the stream; the result is F1 on the second half, while the model goes on learning. The table has
both halves for all numbers of words that were tried. The methods and the range of learning rates
were decided after both halves had been seen; `refresh_factor=1.25`, a warm-up of 500, the bounded
false discovery rate and 4,000 cells were added after the other results. Two more orders, shuffled
with seeds 0 and 1, show the influence of the order. Intervals: percentile bootstrap over the rows
of the second half, 2,000 resamples, of the difference in F1 to all words, row by row. ProjSe and
SelectKBest are the same if the target has two classes and k is given.

"From the warehouse": the first half is learnt as columns, at once; logistic regression learns the
selected words of the same rows, and the second half comes as a stream, with a fixed selection.

Cost: processor time per row of the second half, predicted and learnt, the least of all runs of a
transformer, and the size of the pickled pipeline at the end.

The same transformers also precede multinomial naive Bayes and the five nearest of the last 300
rows, in the original order.

A small stream for comparison: River's Phishing, 1,250 rows of nine features, area under the ROC
curve of the whole stream, with a StandardScaler and logistic regression (learning rate 0.01,
River's default) after four transformers. River's SelectKBest ranks by the signed Pearson
correlation, River's own choice.

A quick run takes 800 rows of words drawn by Zipf's law, and needs no file.
"""

import functools
import itertools
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from _experiment import COLOURS, Experiment, Row, machine, plt, read, table
from river import (
    base,
    datasets,
    feature_selection,
    linear_model,
    metrics,
    naive_bayes,
    neighbors,
    optim,
    preprocessing,
    stats,
)

from streamsel import SOSPCA, ForwardSelection, ProjSe, SelectKBest

Stream = list[tuple[dict[str, float], bool]]
MakeTransformer = Callable[[], base.Transformer | None]

ALL = "all words"
SIZES = (50, 200, 500, 1000, 2000)
BOUNDED = {"max_features": 1000, "target_type": "class"}
TRANSFORMERS: dict[str, MakeTransformer] = {
    ALL: lambda: None,
    **{f"ProjSe({k})": functools.partial(ProjSe, k, target_type="class") for k in SIZES},
    "ProjSe(200), of 1,000": functools.partial(ProjSe, 200, **BOUNDED),
    "ProjSe(500), of 1,000": functools.partial(ProjSe, 500, **BOUNDED),
    "SelectKBest(fdr=0.05)": lambda: SelectKBest(None, fdr=0.05, target_type="class"),
    "SelectKBest(fdr=0.3)": lambda: SelectKBest(None, fdr=0.3, target_type="class"),
    "ProjSe(2000), refresh_factor 1.25": functools.partial(
        ProjSe, 2000, target_type="class", refresh_factor=1.25
    ),
    "SelectKBest(fdr=0.3), warm-up 500": lambda: SelectKBest(
        None, fdr=0.3, target_type="class", warm_up=500
    ),
    "SelectKBest(fdr=0.3), of 1,000": functools.partial(SelectKBest, None, fdr=0.3, **BOUNDED),
    "ForwardSelection(200), of 1,000": functools.partial(ForwardSelection, 200, **BOUNDED),
    "SOSPCA(10)": lambda: SOSPCA(10, target_type="class"),
    "hashed to 500": lambda: preprocessing.FeatureHasher(500, seed=0),
    "hashed to 1,000": lambda: preprocessing.FeatureHasher(1000, seed=0),
    "hashed to 4,000": lambda: preprocessing.FeatureHasher(4000, seed=0),
}
STORED: dict[str, MakeTransformer] = {
    "ProjSe(200)": TRANSFORMERS["ProjSe(200)"],
    "ProjSe(500)": TRANSFORMERS["ProjSe(500)"],
    "ForwardSelection(200)": lambda: ForwardSelection(200, target_type="class"),
    "ForwardSelection(500)": lambda: ForwardSelection(500, target_type="class"),
}
PHISHING: dict[str, MakeTransformer] = {
    "all features": lambda: None,
    "ProjSe(4)": lambda: ProjSe(4, target_type="class"),
    "SOSPCA(4)": lambda: SOSPCA(4, target_type="class"),
    "SelectKBest(4), River's": lambda: feature_selection.SelectKBest(stats.PearsonCorr(), k=4),
}
MODELS: dict[str, Callable[[], base.Classifier]] = {
    "naive Bayes": naive_bayes.MultinomialNB,
    "neighbours": lambda: neighbors.KNNClassifier(5, engine=neighbors.LazySearch(300)),
}
BEFORE_MODELS = (ALL, "ProjSe(50)", "ProjSe(200)", "ProjSe(1000)")
RATES = (0.1, 0.3, 1.0)
ORDERS = (-1, 0, 1)  # as it came, and seeds
RESAMPLES = 2000
QUICK = 800  # rows of a quick run


def work(folder: Path, most: int, part: str, *task: Any) -> list[Row]:
    if part == "phishing":
        return [{"part": part, "transformer": task[0], "auc": of_phishing(*task)}]
    *what, order = task
    rows = messages(folder, most, order)
    parts = {"transformers": of_transformer, "stored": of_stored, "models": of_model}
    found = parts[part](rows, *what)
    half, truth = len(rows) // 2, np.array([y for _, y in rows])
    spam = found.pop("spam")
    row = {"part": part, "order": order, "n": len(rows)}
    row |= {"first": f1(spam[:half], truth[:half]), "second": f1(spam[half:], truth[half:])}
    return [row | difference(spam[half:], reference(folder, most, order), truth[half:]) | found]


@functools.lru_cache(maxsize=1)
def messages(folder: Path, most: int, order: int) -> Stream:
    """Return rows of words, and whether they are spam; drawn by Zipf's law if `most` is 800."""
    if most == QUICK:
        rows = planted(most)
    else:
        dataset = read(folder / "sms_spam.npz")
        X = scipy.sparse.csr_array(dataset.X)
        names = dataset.archive["feature_names"].tolist()
        parts = itertools.pairwise(X.indptr.tolist())
        words = [
            {names[j]: float(v) for j, v in zip(X.indices[a:b], X.data[a:b], strict=True)}
            for a, b in parts
        ]
        spam = dataset.classes.tolist().index("spam")
        rows = list(zip(words, (dataset.y == spam).tolist(), strict=True))
    if order < 0:
        return rows
    return [rows[i] for i in np.random.default_rng(order).permutation(len(rows))]


def planted(n: int) -> Stream:
    """Return messages of 15 words; every fiftieth word is twenty times as frequent in spam."""
    rng = np.random.default_rng(0)
    chances = 1.0 / np.arange(1.0, 2001.0)
    spammy = chances * np.where(np.arange(2000) % 50 == 10, 20.0, 1.0)
    rows = []
    for is_spam in (rng.random(n) < 0.2).tolist():
        p = spammy if is_spam else chances
        drawn = rng.choice(2000, 15, p=p / p.sum())
        words, counts = np.unique(drawn, return_counts=True)
        rows.append(({f"w{j}": float(c) for j, c in zip(words, counts, strict=True)}, is_spam))
    return rows


def logistic(rate: float) -> base.Classifier:
    return linear_model.LogisticRegression(optim.SGD(rate), intercept_lr=rate)


def predictions(pipe: base.Classifier, rows: Stream) -> tuple[np.ndarray, float]:
    """Return the probability of spam, predicted before each row was learnt, and seconds per row."""
    start, spam = time.process_time(), []
    for x, y in rows:
        spam.append(pipe.predict_proba_one(x).get(True, 0.0))
        pipe.learn_one(x, y)
    return np.array(spam), (time.process_time() - start) / len(rows)


def f1(spam: np.ndarray, truth: np.ndarray) -> float:
    predicted = spam > 0.5
    return float(200.0 * np.sum(predicted & truth) / max(1, np.sum(predicted) + np.sum(truth)))


@functools.lru_cache(maxsize=4)
def reference(folder: Path, most: int, order: int) -> np.ndarray:
    """Return the predictions of all words on the second half, at the best rate of the first."""
    rows = messages(folder, most, order)
    half, truth = len(rows) // 2, np.array([y for _, y in rows])
    spam = [predictions(logistic(rate), rows)[0] for rate in RATES]
    return max(spam, key=lambda each: f1(each[:half], truth[:half]))[half:]


def difference(spam: np.ndarray, other: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the difference in F1 of two predictions, with an interval."""
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(truth), (RESAMPLES, len(truth)))
    found = [f1(spam[rows], truth[rows]) - f1(other[rows], truth[rows]) for rows in draws]
    low, high = np.quantile(found, [0.025, 0.975])
    return {
        "difference": f1(spam, truth) - f1(other, truth),
        "low": float(low),
        "high": float(high),
    }


def of_transformer(rows: Stream, name: str, rate: float) -> Row:
    transformer, model = TRANSFORMERS[name](), logistic(rate)
    pipe = model if transformer is None else transformer | model
    half = len(rows) // 2
    first, _ = predictions(pipe, rows[:half])
    second, seconds = predictions(pipe, rows[half:])
    made = {"transformer": name, "rate": rate, "spam": np.concatenate([first, second])}
    in_use = len(transformer.in_use) if isinstance(transformer, ProjSe | SelectKBest) else None
    made |= {"in_use": in_use, "weights": len(model.weights), "us": 1e6 * seconds}
    return made | {"bytes": len(pickle.dumps(pipe))}


def of_stored(rows: Stream, name: str, rate: float) -> Row:
    half, truth = len(rows) // 2, np.array([y for _, y in rows])
    transformer, model = STORED[name](), logistic(rate)
    words = list(dict.fromkeys(word for x, _ in rows[:half] for word in x))
    index_of = {word: j for j, word in enumerate(words)}
    cells = [
        (i, index_of[word], v) for i, (x, _) in enumerate(rows[:half]) for word, v in x.items()
    ]
    i, j, values = zip(*cells, strict=True)
    X = scipy.sparse.csc_array((values, (i, j)), shape=(half, len(words)))
    start = time.process_time()
    transformer.learn_target(truth[:half])
    transformer.learn_columns(X, names=words)
    learnt = time.process_time() - start
    kept = [(transformer.transform_one(x), y) for x, y in rows]
    spam, _ = predictions(model, kept)
    return {"transformer": name, "rate": rate, "spam": spam, "seconds": learnt}


def of_model(rows: Stream, name: str, before: str) -> Row:
    transformer, model = TRANSFORMERS[before](), MODELS[name]()
    pipe = model if transformer is None else transformer | model
    half = len(rows) // 2
    first, _ = predictions(pipe, rows[:half])
    second, seconds = predictions(pipe, rows[half:])
    spam = np.concatenate([first, second])
    return {"transformer": before, "model": name, "spam": spam, "us": 1e6 * seconds}


def of_phishing(name: str) -> float:
    transformer, auc = PHISHING[name](), metrics.ROCAUC()
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression(optim.SGD(0.01))
    pipe = model if transformer is None else transformer | model
    for x, y in datasets.Phishing():
        auc.update(y, pipe.predict_proba_one(x))
        pipe.learn_one(x, y)
    return 100.0 * auc.get()


def tasks(orders: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Return the tasks; those that measure time come first."""
    made: list[tuple[Any, ...]] = [
        ("transformers", name, rate, order)
        for order in orders
        for name in TRANSFORMERS
        for rate in RATES
    ]
    made += [("models", model, before, -1) for model in MODELS for before in BEFORE_MODELS]
    made += [("stored", name, rate, order) for order in orders for name in STORED for rate in RATES]
    return made + [("phishing", name) for name in PHISHING]


def chosen(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the run at the best rate of the first half, for each transformer and order."""
    best = runs.groupby(["transformer", "order"], sort=False)["first"].idxmax()
    return runs.loc[best]


def transformers_table(runs: pd.DataFrame, *, costs: bool) -> str:
    """Return F1 in the original order, and the difference to all words in the others."""
    lines = []
    for name, found in chosen(runs).groupby("transformer", sort=False):
        came = found[found["order"] < 0].iloc[0]
        shuffled = found.loc[found["order"] >= 0, "difference"]
        interval = f"{came['low']:+.1f} to {came['high']:+.1f}"
        line = {"before logistic regression": name, "rate": f"{came['rate']:g}"}
        line |= {"F1, first half": f"{came['first']:.1f}", "second half": f"{came['second']:.1f}"}
        line["compared with all words"] = (
            "" if name == ALL else f"{came['difference']:+.1f} ({interval})"
        )
        if len(shuffled):
            line["shuffled"] = "" if name == ALL else ", ".join(f"{v:+.1f}" for v in shuffled)
        if costs:
            in_use = came["in_use"]
            line["words in use"] = "" if np.isnan(in_use) else f"{in_use:,.0f}"
            least = runs.loc[runs["transformer"] == name, "us"].min()
            line |= {"weights": f"{came['weights']:,.0f}", "µs per row": f"{least:.0f}"}
            line["kB"] = f"{came['bytes'] / 1e3:,.0f}"
        else:
            line["seconds to learn"] = f"{came['seconds']:.2g}"
        lines.append(line)
    return table(pd.DataFrame(lines))


def models_table(runs: pd.DataFrame) -> str:
    lines = []
    for before, found in runs.groupby("transformer", sort=False):
        line = {"": before}
        for _, run in found.iterrows():
            line[f"{run['model']}, F1"] = f"{run['second']:.1f}"
            line[f"{run['model']}, µs per row"] = f"{run['us']:.0f}"
        lines.append(line)
    return table(pd.DataFrame(lines))


def draw(runs: pd.DataFrame) -> plt.Figure:
    """Draw F1 of the second half against the words in use, and against the pipeline's size."""
    found = chosen(runs)
    found = found[found["order"] < 0].set_index("transformer")
    everything = found.loc[ALL]
    fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), sharey=True)
    families = {
        "ProjSe, of all words": [f"ProjSe({k})" for k in SIZES],
        "ProjSe, of 1,000 tracked": [f"ProjSe({k}), of 1,000" for k in (200, 500)],
        "ProjSe, refreshed sooner": ["ProjSe(2000), refresh_factor 1.25"],
        "false discovery rate": [f"SelectKBest(fdr={rate})" for rate in (0.05, 0.3)],
        "the same, of 1,000 tracked": ["SelectKBest(fdr=0.3), of 1,000"],
        "hashed": ["hashed to 500", "hashed to 1,000", "hashed to 4,000"],
    }
    for (label, names), colour in zip(families.items(), COLOURS, strict=False):
        part = found.loc[names]
        error = np.abs(part[["low", "high"]].sub(part["difference"], axis=0)).to_numpy().T
        for ax, what in zip(axes, ("in_use", "bytes"), strict=True):
            x = part[what].where(part[what].notna(), part["weights"])
            x = x / (1e3 if what == "bytes" else 1.0)
            ax.errorbar(x, part["second"], error, fmt="o-", ms=5, color=colour, label=label, lw=1)
    for ax, title in zip(axes, ("words in use", "size of the pipeline"), strict=True):
        ax.set_title(title)
        ax.axhline(everything["second"], color="black", lw=0.8)
        ax.set_xscale("log")
    axes[1].plot(everything["bytes"] / 1e3, everything["second"], "k*", ms=10, label=ALL)
    axes[0].set_xlabel("words, or cells, in use")
    axes[1].set_xlabel("size of the pipeline, kB")
    axes[0].set_ylabel("F1 of spam, second half")
    axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig


def section(found: dict[str, pd.DataFrame], image: str) -> str:
    """Return the text, with the figure and the tables."""
    phishing = found["phishing"].set_index("transformer")["auc"]
    small = table(pd.DataFrame([{name: f"{v:.1f}" for name, v in phishing.items()}]))
    n = int(found["transformers"]["n"].iloc[0])
    return f"""
River's logistic regression receives {n:,} messages, one row of words each (progressive validation).
Its learning rate is the best of three rates on the first half of the stream. F1 of spam is measured
on the second half. *Compared with all words* is the difference of F1 in points, with a 95 %
interval (paired bootstrap over rows), in the original order. *Shuffled* is this difference in two
other orders. Methods *of 1,000* have `max_features=1000`. A word that is no longer in use keeps its
weight. Processor time is the shortest of all runs.

![F1 of the second half against (a) the words in use and (b) the size of the pipeline. The line
shows all words, and error bars are 95 % intervals of the difference to these.]({image})

{transformers_table(found["transformers"], costs=True)}

Next, words are selected from the first half (stored as columns) and then fixed. F1 on this half is
optimistic, because the selection has used its labels.

{transformers_table(found["stored"], costs=False)}

The next table shows other models after the same transformers, on the second half:

{models_table(found["models"])}

River's Phishing has nine features. Numbers are the area under the ROC curve of the whole stream in
%.

{small}

[All numbers](text-stream.csv) were made by `python demos/papers/text_stream.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("text-stream", __doc__)
    most = experiment.small(0, QUICK)
    if not experiment.quick and not experiment.available(["sms_spam"]):
        experiment.give_up("sms_spam.npz is required")
    orders = experiment.small(ORDERS, ORDERS[:1])
    results = experiment.each(functools.partial(work, experiment.data, most), tasks(orders))
    found = dict(iter(results.groupby("part")))
    experiment.publish(section(found, experiment.draw(draw(found["transformers"]))))


if __name__ == "__main__":
    # Under its own name, so that processes (--jobs) find the functions that cache the data.
    from text_stream import main

    main()
