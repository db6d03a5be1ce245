"""What do two components show? A scatter plot of every extractor on three real sets.

Every extractor learns two components of the training rows, with default parameters, and transforms
the test rows. LaplacianEigenmaps map new rows by landmarks. A table has the error of 5-NN on test
rows with the two components as its only inputs.

leukemia_golub3571, 72 rows of two classes in 3,571 columns: half of the rows is for tests. isolet,
the letters A to J: 400 rows for training and 200 for tests. mnist_10k: 800 and 300. Columns have
mean 0 and deviation 1 on the training rows, except pixels, which are not scaled. Every panel has
its own scale, whatever the variance of the components.
"""

from functools import partial

import numpy as np
import pandas as pd
from _experiment import Dataset, Experiment, Row, machine, plt, table
from _gram_family import (
    DISCRIMINANT,
    EIGENMAPS,
    KERNEL,
    PLS,
    PRINCIPAL,
    PROBABILISTIC,
    RANDOM,
    RANKED,
    RIDGE,
    ROBUST,
    SOSPCA,
    SPARSE,
    SUPERVISED,
    components,
    learnt,
)
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sospca_errors import prepared

SETS = {"leukemia_golub3571": (36, 36), "isolet": (400, 200), "mnist_10k": (800, 300)}
QUICK = {"wine": (80, 80), "digits": (100, 50)}
MOST_CLASSES, NEAREST = 10, 5
PIXELS = ("mnist_10k", "digits")
# Without a target, then with one.
METHODS = (
    *(PRINCIPAL, SPARSE, ROBUST, PROBABILISTIC, KERNEL, EIGENMAPS, RANDOM),
    *(RANKED, SUPERVISED, PLS, DISCRIMINANT, RIDGE, SOSPCA),
)


def split_of(dataset: Dataset, n_train: int, n_test: int) -> tuple[np.ndarray, ...]:
    """Return X and y of training and test rows, of the first classes."""
    X, y = prepared(dataset, dataset.y.size)
    few = y < MOST_CLASSES
    A, B, y, y_test = train_test_split(
        X[few], y[few], train_size=n_train, test_size=n_test, stratify=y[few], random_state=0
    )
    varies = np.ptp(A, axis=0) > 0.0
    scaler = StandardScaler(with_std=dataset.name not in PIXELS).fit(A[:, varies])
    return scaler.transform(A[:, varies]), y, scaler.transform(B[:, varies]), y_test


def work(
    datasets: dict[str, Dataset], sizes: dict[str, tuple[int, int]], name: str, method: str
) -> list[Row]:
    """Return the components of the test rows, one row each."""
    A, y, B, y_test = split_of(datasets[name], *sizes[name])
    Z, Zt = components(learnt(method, A, y, 2), A, B)
    deviation = np.where(Z.std(axis=0) > 0.0, Z.std(axis=0), 1.0)
    predicted = KNeighborsClassifier(NEAREST).fit(Z / deviation, y).predict(Zt / deviation)
    shape = {"dataset": name, "method": method, "n": len(A), "p": A.shape[1]}
    shape["error"] = 100.0 * float(np.mean(predicted != y_test))
    # Three digits are enough for a plot.
    points = [[float(f"{value:.3g}") for value in row] for row in Zt.tolist()]
    return [
        shape | {"class": int(c), "first": one, "second": other}
        for c, (one, other) in zip(y_test, points, strict=True)
    ]


def draw(results: pd.DataFrame, methods: list[str]) -> plt.Figure:
    """Draw one column per dataset and one row per method, in two halves next to each other."""
    names = list(results.dataset.unique())
    half = -(-len(methods) // 2)
    figure, axes = plt.subplots(
        half, 2 * len(names), figsize=(2.5 * len(names), 1.25 * half), squeeze=False
    )
    figure.set_dpi(110)  # the points are rasterized, because they are many
    for panel in axes.flat:
        panel.axis("off")
    for i, method in enumerate(methods):
        row, side = i % half, i // half
        for j, name in enumerate(names):
            panel = axes[row, side * len(names) + j]
            here = results[(results.method == method) & (results.dataset == name)]
            panel.axis("on")
            panel.scatter(
                *(here["first"], here["second"]),
                c=here["class"],
                cmap="tab10",
                vmin=0,
                vmax=MOST_CLASSES - 1,
                s=4,
                lw=0,
                antialiased=False,
                rasterized=True,
            )
            panel.set(xticks=[], yticks=[])
            if not j:
                panel.set_ylabel(method, fontsize=7)
            if not row:
                panel.set_title(name.partition("_")[0], fontsize=8)
    return figure


def text(results: pd.DataFrame, figure: str) -> str:
    sizes = ". ".join(
        f"{name} has {here.n.iloc[0]:,} training rows, "
        f"{len(here) // here.method.nunique():,} test rows and {here.p.iloc[0]:,} columns"
        for name, here in results.groupby("dataset", sort=False)
    )
    errors = results.pivot_table(index="method", columns="dataset", values="error", sort=False)
    cells = (
        errors.round(1).map("{:.1f}".format).reset_index().rename(columns={"method": "error, %"})
    )
    return f"""
The figure shows test rows in two components that were learnt from the training rows, with one
colour per class. {sizes}.

![One row of panels per method, one column per dataset. Methods on the left have no target, and
those on the right have one.]({figure})

The table shows the error of {NEAREST}-NN on these test rows, with components scaled to unit
variance:

{table(cells)}

[All numbers](two-components.csv) were made by `python demos/papers/two_components.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("two-components", __doc__)
    sizes = experiment.small(SETS, QUICK)
    datasets = {dataset.name: dataset for dataset in experiment.datasets(sizes)}
    tasks = [(name, method) for method in METHODS for name in datasets]
    results = experiment.each(partial(work, datasets, sizes), tasks)
    experiment.publish(text(results, experiment.draw(draw(results, list(METHODS)))))


if __name__ == "__main__":
    main()
