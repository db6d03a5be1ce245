"""How accurate are classifiers of many classes on variables that ProjSe selects?

Figure 6 of Szedmak et al. (2023), *Scalable variable selection for two-view learning tasks with
projection operators*, section 5.3: variables selected for one-hot classes, with three kernels
between variables, measured by the centred alignment of a kernel of the samples, restricted to the
selected variables, with the linear kernel of the one-hot classes, and by the accuracy of SVMs on
the official test rows. Of the paper's three datasets of the UCR archive Thorax is left out.

Variables are standardised (mean and deviation of the training rows), as in the authors' script. The
rbf kernel of the samples, of alignment and SVM, has sigma their mean distance on the variables
selected: gamma = 1 / (2 sigma^2). C = 1; the linear SVM is one against the rest, with squared hinge
loss. ProjSe centres and scales the variables and the indicators of the classes; its rbf kernel has
sigma the mean distance between the indicators.

Crop has 7,200 rows to train and 16,799 to test: the selection uses all of the former, SVMs and
alignment 2,400 of them, and accuracy 4,800 of the latter (stratified samples). Crop repeats many
rows, some of them both in training and test: its accuracies are optimistic, for every selection.

Beyond the paper: the most relevant variables, without deflation. Selections go up to the number of
classes, as in the paper.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from _curves import interval
from _experiment import COLOURS, Dataset, Experiment, machine, plt, table
from scipy.spatial.distance import pdist
from sklearn.feature_selection import f_classif
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC, LinearSVC

from streamsel import ProjSe, evaluate

COUNTS = {
    "crop": (1, 2, 3, 5, 10, 15, 24),
    "shapesall": (1, 2, 5, 10, 20, 40, 60),
    "digits": (1, 5, 10),
}
MOST = {"train": 2_400, "test": 4_800}
MEASURES = {
    "svm_linear": "accuracy, linear SVM",
    "svm_rbf": "accuracy, rbf SVM",
    "alignment_linear": "alignment, linear kernel",
    "alignment_rbf": "alignment, rbf kernel",
}
ALL = "all variables"
SHOWN = """![Accuracy of two SVMs and alignment of two kernels against the number of variables, one
line per selection. The band is the 95 % interval of random ones.]"""


def projse(X: np.ndarray, y: np.ndarray, k: int, _seed: int, kernel: str) -> np.ndarray:
    model = ProjSe(k, kernel=kernel, target_type="class")
    model.learn_target(y)
    model.learn_columns(X)
    return np.array(model.selected)


def most_relevant(X: np.ndarray, y: np.ndarray, k: int, _seed: int) -> np.ndarray:
    return np.argsort(-f_classif(X, y)[0], kind="stable")[:k]


def at_random(X: np.ndarray, _y: np.ndarray, k: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(X.shape[1])[:k]


def everything(X: np.ndarray, _y: np.ndarray, _k: int, _seed: int) -> np.ndarray:
    return np.arange(X.shape[1])


SELECTIONS: dict[str, Callable[..., np.ndarray]] = {
    "ProjSe, linear": partial(projse, kernel="linear"),
    "ProjSe, poly": partial(projse, kernel="poly"),
    "ProjSe, rbf": partial(projse, kernel="rbf"),
    "most relevant": most_relevant,
    "random": at_random,
    ALL: everything,
}
STYLES = {
    "ProjSe, linear": (COLOURS[0], "o-"),
    "ProjSe, poly": (COLOURS[1], "s-"),
    "ProjSe, rbf": (COLOURS[2], "^-"),
    "most relevant": (COLOURS[4], "D-"),
    "random": (COLOURS[5], "-"),
}

Split = tuple[np.ndarray, np.ndarray]


def official(dataset: Dataset) -> tuple[Split, Split]:
    """Return the training and the test rows, X (n, p) standardised and y."""
    split = dataset.archive.get("split", np.arange(dataset.y.size) % 2)
    X = dataset.X.astype(float)
    X = X[:, X[split == 0].std(0) > 0.0]
    train = X[split == 0]
    X = (X - train.mean(0)) / train.std(0)
    return (X[split == 0], dataset.y[split == 0]), (X[split == 1], dataset.y[split == 1])


def sample(rows: Split, most: int) -> Split:
    """Return at most so many rows, of each class its share."""
    X, y = rows
    if y.size <= most:
        return X, y
    kept, _ = train_test_split(np.arange(y.size), train_size=most, stratify=y, random_state=0)
    return X[kept], y[kept]


def measures(train: Split, test: Split) -> dict[str, float]:
    (A, y), (B, y_test) = train, test
    gamma = 1.0 / (2.0 * pdist(A).mean() ** 2)
    indicators = (y[:, None] == np.unique(y)).astype(float)
    return {
        "svm_linear": LinearSVC(dual=False).fit(A, y).score(B, y_test),
        "svm_rbf": SVC(gamma=gamma).fit(A, y).score(B, y_test),
        "alignment_linear": evaluate.linear_alignment(A, indicators),
        "alignment_rbf": evaluate.kernel_alignment(
            rbf_kernel(A, gamma=gamma), indicators @ indicators.T
        ),
    }


def measured_selection(
    datasets: dict[str, Dataset], name: str, selection: str, seed: int
) -> list[dict[str, Any]]:
    train, test = official(datasets[name])
    X, y = train
    select = SELECTIONS[selection]
    select(X[:, :5], y, 2, seed)  # compile before the measurement
    start = time.perf_counter()
    selected = select(X, y, COUNTS[name][-1], seed)
    seconds = time.perf_counter() - start
    n = {"n": y.size, "p": X.shape[1], "classes": len(set(y)), "n_test": test[1].size}
    (A, y), (B, y_test) = sample(train, MOST["train"]), sample(test, MOST["test"])
    rows = []
    for k in (X.shape[1],) if selection == ALL else COUNTS[name]:
        measured = measures((A[:, selected[:k]], y), (B[:, selected[:k]], y_test))
        task = {"dataset": name, "selection": selection, "seed": seed, "k": k}
        rows.append(task | n | measured | {"seconds": seconds})
    return rows


def draw(experiment: Experiment, results: pd.DataFrame) -> list[str]:
    return [
        experiment.draw(panels(rows), f"-{name}")
        for name, rows in results.groupby("dataset", sort=False)
    ]


def panels(rows: pd.DataFrame) -> plt.Figure:
    """Draw one dataset, a panel a measure, a line a selection."""
    figure, axes = plt.subplots(2, 2, figsize=(7.6, 5.6), sharex=True)
    for panel, (measure, title) in zip(axes.flat, MEASURES.items(), strict=True):
        for selection, (colour, style) in STYLES.items():
            values = rows[rows.selection == selection].groupby("k")[measure]
            means = values.mean()
            panel.plot(means, style, color=colour, ms=3.5, lw=1.3, label=selection)
            if selection == "random":
                of_seed = rows[rows.selection == selection].pivot_table(measure, "seed", "k")
                means, half = interval(of_seed)
                low, high = means - half, means + half
                panel.fill_between(means.index, low, high, color=colour, alpha=0.25, lw=0)
        level = rows[rows.selection == ALL][measure].mean()
        panel.axhline(level, color=COLOURS[6], ls="--", lw=1.0, label=ALL)
        panel.set(title=title, ylim=(0.0, None))
    for panel in axes[1]:
        panel.set_xlabel("variables selected")
    figure.suptitle(rows.dataset.iloc[0])
    axes[1, 1].legend(loc="lower right")
    return figure


def numbers(rows: pd.DataFrame) -> str:
    """Return the table of one dataset: accuracy at half the counts and at most, and alignment."""
    counts = COUNTS[rows.dataset.iloc[0]]
    lines = []
    for selection, found in rows.groupby("selection", sort=False):
        line = {"selection": selection}
        for measure in ("svm_linear", "svm_rbf"):
            for k in (counts[len(counts) // 2], counts[-1]):
                line[f"{MEASURES[measure].partition(', ')[2]}, k = {k}"] = value(found, measure, k)
        line[f"alignment, k = {counts[-1]}"] = value(found, "alignment_linear", counts[-1])
        line["seconds"] = f"{found.seconds.mean():.3f}" if selection in STYLES else ""
        lines.append(line)
    return table(pd.DataFrame(lines))


def value(found: pd.DataFrame, measure: str, k: int) -> str:
    values = found[measure] if set(found.selection) == {ALL} else found[found.k == k][measure]
    spread = f" ({values.std(ddof=0):.3f})" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def text(results: pd.DataFrame, figures: list[str]) -> str:
    parts = []
    for (name, rows), figure in zip(results.groupby("dataset", sort=False), figures, strict=True):
        n, p, classes, n_test = rows[["n", "p", "classes", "n_test"]].iloc[0]
        parts += [
            f"**{name}**, p = {p}, {classes} classes, {n:,} training and {n_test:,} test rows:",
            f"{SHOWN}({figure})",
            numbers(rows),
        ]
    shown = "\n\n".join(parts)
    return f"""
Variables are standardised, and selected for the classes on the official training rows. Accuracy is
measured on the official test rows. SVMs and alignment use at most {MOST["train"]:,} training rows
and {MOST["test"]:,} test rows. For random selection, the table shows the mean and the standard
deviation over {results.seed.max() + 1} seeds. *Seconds* is the time of the selection.

{shown}

[All numbers](projse-classification.csv) were made by `python demos/papers/projse_classification.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("projse-classification", __doc__)
    names = experiment.small(["shapesall", "crop"], ["digits"])
    datasets = {dataset.name: dataset for dataset in experiment.datasets(names)}
    tasks = [
        (name, selection, seed)
        for name in datasets
        for selection in SELECTIONS
        for seed in range(experiment.small(5, 2) if selection == "random" else 1)
    ]
    results = experiment.each(partial(measured_selection, datasets), tasks)
    experiment.publish(text(results, draw(experiment, results)))


if __name__ == "__main__":
    main()
