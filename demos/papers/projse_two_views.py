"""Two views, each the target of the other: how strongly do selected variables correlate?

Section 5.4 and figure 7 of Szedmak, Huusari, Le and Rousu (2023): from each view ProjSe selects
variables with the other view as its target, and the canonical correlations between the first k
selected of either side measure how much of the common variation k variables of each keep.

Protocol. MNIST (60,000 training and 10,000 test images): the left and the right half of an image,
392 pixels each. ml_bibtex (4,880 and 2,515 documents): 1,836 words and 159 labels; it replaces
the paper's MediaMill. Selection and canonical directions are learnt on the training rows; the
correlations on the test rows are those of the test rows' projections on these directions, pair by
pair. The Gaussian kernel is between variables, with the default width. For comparison: the k most
relevant variables of each view (the same relevance, without projecting out what was picked), k
variables at random (mean of 10 draws), and all variables.

Some pixels are lit in one training image of 60,000. Such a pixel is explained in full by an
equally rare one in the other half, and is uninformative about other images. So MNIST is used twice:
as it is, and with the pixels that are lit in at least one training image of a thousand.

The time of a selection is that of `learn_target`, `learn_columns` and `selected` for both views, on
the uint8 data; the lower limit for comparison is the product of one view's transpose with the
other, in float64 prepared in advance, which any method of both views needs.

Departures from the paper. It does not say which canonical correlation it shows, nor on which rows;
here are the first, the mean and the sum, on training and on test rows. Its numbers (figure 7,
tables 4 and 5) are not in the available text, so they are not compared.
"""

import functools
import itertools
import time
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse
from _curves import add_legend, panels
from _experiment import COLOURS, Experiment, Row, machine, plt, read, table
from sklearn.datasets import load_digits

from streamsel import ProjSe

COMMON = ", common pixels"
SHARE_LIT = 0.001
KS = (1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200, 300)
TIMED = (10, 50, 150)
TABULATED = (("first", 20), ("first", 100), ("sum", 10), ("sum", 20), ("sum", 50), ("sum", 100))
N_RANDOM = 10
N_TRAIN_DIGITS = 1_200
BATCH = 10_000
RANK_TOLERANCE = 1e-10
SPLITS = ("train", "test")
KERNELS = {"linear": "ProjSe, linear", "rbf": "ProjSe, Gaussian"}
RELEVANT, RANDOM, ALL, PRODUCT = "most relevant", "random", "all variables", "X'Y"
COLOUR = dict(zip((*KERNELS.values(), RELEVANT, RANDOM), COLOURS, strict=False))
COLOUR[ALL] = COLOURS[6]

View = np.ndarray | scipy.sparse.csc_array


@functools.lru_cache(maxsize=1)
def views(folder: Path, name: str) -> tuple[list[View], list[View]]:
    """Return the two views' training rows, stored by column, and their test rows."""
    source = name.removesuffix(COMMON)
    if source == "digits":
        X = load_digits().images.astype(np.uint8)
        train = np.arange(len(X)) < N_TRAIN_DIGITS
    else:
        dataset = read(folder / f"{source}.npz")
        train = dataset.archive["split"] == 0
        X = dataset.X.reshape(-1, 28, 28) if source == "mnist" else dataset.X
    if scipy.sparse.issparse(X):
        Y = dataset.archive["Y2"]
        return [X[train].tocsc(), np.asfortranarray(Y[train])], [X[~train], Y[~train]]
    parts = [half.reshape(len(X), -1) for half in np.split(X, 2, axis=2)]
    if name != source:
        common = [
            np.count_nonzero(part[train], axis=0) >= SHARE_LIT * train.sum() for part in parts
        ]
        parts = [part[:, kept] for part, kept in zip(parts, common, strict=True)]
    return [np.asfortranarray(part[train]) for part in parts], [part[~train] for part in parts]


def dense(part: View) -> np.ndarray:
    return part.toarray() if scipy.sparse.issparse(part) else part


@functools.lru_cache(maxsize=1)
def covariances(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariances of both views' variables, on training and on test rows.

    Both in units of the training rows' standard deviations; what is constant there has zeros.
    """
    made = []
    for parts in views(folder, name):
        rows = [dense(part) for part in parts]
        n, p = len(rows[0]), sum(part.shape[1] for part in rows)
        # Sums of products of bytes are integers, exact in float64.
        products, sums = np.zeros((p, p)), np.zeros(p)
        for begin in range(0, n, BATCH):
            batch = np.hstack([part[begin : begin + BATCH] for part in rows]).astype(float)
            products += batch.T @ batch
            sums += batch.sum(axis=0)
        made.append(products / n - np.outer(sums, sums) / n**2)
    deviations = np.sqrt(np.diag(made[0]))
    scales = np.divide(1.0, deviations, out=np.zeros(p), where=deviations > 0.0)
    return made[0] * np.outer(scales, scales), made[1] * np.outer(scales, scales)


def whitening(R: np.ndarray) -> np.ndarray:
    """Return W with W' R W the identity, R a covariance matrix, up to its rank."""
    values, vectors = np.linalg.eigh(R)
    kept = values > values[-1] * RANK_TOLERANCE
    return vectors[:, kept] / np.sqrt(values[kept])


def correlations(
    train: np.ndarray, test: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return canonical correlations, and those of the same directions on the test rows."""
    A, B = (whitening(train[np.ix_(side, side)]) for side in (left, right))
    U, found, Vt = np.linalg.svd(A.T @ train[np.ix_(left, right)] @ B, full_matrices=False)
    A, B = A @ U, B @ Vt.T
    common, of_left, of_right = (
        np.sum((test[np.ix_(rows, columns)] @ W) * V, axis=0)
        for rows, columns, V, W in ((left, right, A, B), (left, left, A, A), (right, right, B, B))
    )
    spread = np.sqrt(of_left * of_right)
    return found, np.divide(common, spread, out=np.zeros_like(common), where=spread > 0.0)


def learn(X: View, target: View, k: int, kernel: str) -> ProjSe:
    model = ProjSe(k=k, kernel=kernel, target_type="numeric")
    model.learn_target(dense(target))
    model.learn_columns(X)
    return model


def orders(folder: Path, name: str, what: str) -> dict[str, list[list[np.ndarray]]]:
    """Return for each method its draws, each an order of both views' variables, best first."""
    parts = views(folder, name)[0]
    varying = np.diag(covariances(folder, name)[0]) > 0.0
    sides = [np.flatnonzero(side) for side in np.split(varying, [parts[0].shape[1]])]
    if what == ALL:
        return {ALL: [sides]}
    if what == RANDOM:
        draws = map(np.random.default_rng, range(N_RANDOM))
        return {RANDOM: [[draw.permutation(side) for side in sides] for draw in draws]}
    pairs = (parts, parts[::-1])
    found = [learn(X, target, X.shape[1], what).relevance for X, target in pairs]
    made = {KERNELS[what]: [[np.array(list(side)) for side in found]]}
    if what == "linear":
        ranked = [sorted(side, key=side.__getitem__, reverse=True) for side in found]
        made[RELEVANT] = [[np.array(side) for side in ranked]]
    return made


def agreement(folder: Path, name: str, what: str) -> list[Row]:
    """Return the canonical correlations of the first k variables of each side, for every k."""
    train, test = covariances(folder, name)
    offset = views(folder, name)[0][0].shape[1]
    rows = []
    for method, draws in orders(folder, name, what).items():
        sizes = [len(side) for side in draws[0]]
        for k in [max(sizes)] if what == ALL else [k for k in KS if k <= min(sizes)]:
            found = [
                correlations(train, test, left[:k], right[:k] + offset) for left, right in draws
            ]
            for split, values in zip(SPLITS, zip(*found, strict=True), strict=True):
                summary = np.mean([(one[0], one.mean(), one.sum()) for one in values], axis=0)
                row = {"dataset": name, "method": method, "rows": split, "k": k}
                rows.append(row | dict(zip(("first", "mean", "sum"), summary, strict=True)))
    return rows


def seconds(folder: Path, name: str, what: str, k: int) -> list[Row]:
    """Return how long selecting k variables in both views takes, or one product of the views."""
    parts = views(folder, name)[0]
    if what == PRODUCT:
        X, target = (part.astype(float) for part in parts)
        X.T @ target  # wakes up the library
        begin = time.perf_counter()
        X.T @ target
        taken = 2.0 * (time.perf_counter() - begin)
    else:
        learn(parts[0][:100], parts[1][:100], k, what).selected  # noqa: B018 (compiles)
        begin = time.perf_counter()
        for X, target in (parts, parts[::-1]):
            learn(X, target, k, what).selected  # noqa: B018 (computed on access)
        taken = time.perf_counter() - begin
    return [{"dataset": name, "method": KERNELS.get(what, what), "k": k, "seconds": taken}]


def work(folder: Path, name: str, what: str, k: int) -> list[Row]:
    """Do one task: correlations at every k (k = 0), or the time at one."""
    return seconds(folder, name, what, k) if k else agreement(folder, name, what)


def figure(found: pd.DataFrame) -> plt.Figure:
    """Draw the first correlation and the sum of all against k, a column for each dataset."""
    names = list(found["dataset"].unique())
    kinds = [
        (summary, rows, f"{summary}, {word} rows")
        for rows, word in (("test", "test"), ("train", "training"))
        for summary in ("first", "sum")
    ]
    titles = [name for _ in kinds for name in names]
    fig, axes = panels(titles, len(names), 1.9)
    for ax in axes:
        ax.set_xlabel("")
    for ax, ((summary, rows, word), name) in zip(
        axes, itertools.product(kinds, names), strict=False
    ):
        here = found[(found["dataset"] == name) & (found["rows"] == rows)]
        for method, curve in here.groupby("method", sort=False):
            style = {"color": COLOUR[method], "lw": 1.3, "label": method}
            if method == ALL:
                ax.axhline(curve[summary].iloc[0], **style)
            else:
                ax.plot(curve["k"], curve[summary], marker="o", ms=3, **style)
        ax.set_xscale("log")
        ticks = [k for k in (1, 10, 100) if k <= here["k"].max()]
        ax.set_xticks(ticks, list(map(str, ticks)))
        ax.set_ylim(0.0, 1.03 if summary == "first" else None)
        if name == names[0]:
            ax.set_ylabel(word)
    for ax in axes[-1 - len(names) : -1]:
        ax.set_xlabel("variables of each view")
    add_legend(axes, 5)
    return fig


def section(found: pd.DataFrame, timed: pd.DataFrame, image: str) -> str:
    """Return the text, with the figure, correlations at a few k, and times."""
    test = found[found["rows"] == "test"]
    lines = []
    for (name, method), curve in test.groupby(["dataset", "method"], sort=False):
        line = {"dataset": name, "method": method}
        for summary, k in TABULATED:
            at = curve.loc[(curve["k"] == k) | (method == ALL), summary]
            line[f"{summary}, k = {k}"] = "".join(f"{value:.3g}" for value in at)
        lines.append(line)
    cost = timed.pivot_table("seconds", ["dataset", "method"], "k", sort=False)
    times = []
    for name, kernel in itertools.product(timed["dataset"].unique(), KERNELS.values()):
        least, taken = cost.loc[(name, PRODUCT), 1], cost.loc[(name, kernel), list(TIMED)]
        line = {"dataset": name, "method": kernel}
        line |= {f"k = {k}": f"{taken[k]:.3g} s" for k in TIMED}
        line |= {"two products": f"{least:.3g} s", "ratio": f"{taken.median() / least:.1f}"}
        times.append(line)
    return f"""
In each of two views, k variables are selected with the other view as the target (Szedmak et al.
2023, section 5.4). The views are the left and right halves of MNIST's digits (60,000 training and
10,000 test images), or the words and labels of ml_bibtex (4,880 training and 2,515 test documents).
`common pixels` are lit in at least one training image in a thousand. Canonical correlations are
computed between the two selections on test rows, in directions learnt on training rows. *Random* is
a mean over {N_RANDOM} draws. The paper's numbers (figure 7, tables 4 and 5) were not available.

![First canonical correlation and sum of all, against the number of variables selected from each
view. Test rows are above, and training rows below.]({image})

{table(pd.DataFrame(lines))}

The table above shows the first correlation and the sum of all correlations on the test rows. *All
variables* does not depend on k. The next table shows the time to select from both views, and the
time of two products X'Y of the views, in float64 or sparse:

{table(pd.DataFrame(times))}

[All numbers](projse-two-views.csv) were made by `python demos/papers/projse_two_views.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("projse-two-views", __doc__)
    images = experiment.small("mnist", "digits")
    wanted = experiment.small((images, "ml_bibtex"), (images,))
    names = experiment.available(wanted)
    kinds = (*KERNELS, RANDOM, ALL)
    variants = [name + kind for name in names for kind in ("", COMMON)[: 1 + (name == images)]]
    tasks = [(name, what, 0) for name in variants for what in kinds]
    tasks += [(name, kernel, k) for name in names for kernel in KERNELS for k in TIMED]
    tasks += [(name, PRODUCT, 1) for name in names]
    found = experiment.each(functools.partial(work, experiment.data), tasks)
    timed = found["seconds"].notna()
    image = experiment.draw(figure(found[~timed]))
    experiment.publish(section(found[~timed], found[timed], image))


if __name__ == "__main__":
    # Under its own name, so that processes (--jobs) find the functions that cache the data.
    from projse_two_views import main

    main()
