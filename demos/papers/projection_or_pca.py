"""Is a random projection as good as PCA, and for which classifier?

Fradkin and Madigan (2003), *Experiments with random projections for machine learning*, as reported
by Hsu (2005), *Dimensionality reduction for supervised learning*: a decision tree, nearest
neighbours and an SVM on k dimensions of PCA and of a random projection, on five datasets of two
classes. Their findings:

1. nearest neighbours depend least on the choice between the two;
2. an SVM has a higher error in few dimensions, which soon falls with more; a random projection
   suits it, but less than PCA, and gives more support vectors;
3. both are bad for a decision tree.

In addition to the paper: RidgeComponents with their defaults, of all variables; these use the
classes of the training rows.

The datasets, the numbers of dimensions, the sizes of the test sets, 100 random splits (30 of
internet_ads), variables standardised by mean and variance of the training rows, and equally likely
entries of -1 and 1 in the random projection are those of the paper. Differences:

- internet_ads is another version, with 1,966 rows instead of 3,279: the test set is the same share
  of it. (Hsu prints its dimensions as those of a second Spambase.)
- C4.5 is scikit-learn's tree by entropy, at least two rows per leaf, with C4.5's pruning: a subtree
  is removed if the upper limit of its errors (one-sided, 75 %) is no better than that of a leaf.
  The gain ratio and the raising of subtrees are left out. The CSV file also has the tree before
  pruning.
- SVMLight's defaults are kept: a linear kernel, and C = 1 / mean of x'x, so that no scale matters.
- "Nearest neighbour methods" are taken as 1-NN and 5-NN.

Choices that the paper does not state: splits are stratified, the intensities of colon are
logarithms, variables without variance in the training rows are left out. PCA is computed once per
split and cut to its first k dimensions, and so is the random projection: the first k of 500 random
columns are as random as k new ones, so every error has the right distribution, and only errors of
one split at different k are dependent. PCA has no more dimensions than training rows (less one, for
the mean). Each split draws another projection, so intervals include its randomness.

Intervals are those of Nadeau and Bengio (2003): splits share their rows, so the variance of a mean
of s of them is (1/s + test rows / training rows) times that of one, not 1/s times.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from _curves import add_legend, curves, panels, without_unit_effect
from _experiment import COLOURS, Dataset, Experiment, Row, machine, plt, table
from scipy.stats import beta, t
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sospca_errors import prepared

from streamsel import RandomProjection, RidgeComponents

FEW, MANY = (5, 10, 15, 20, 25, 30), (5, 10, 25, 50, 100, 200, 500)


class Protocol(NamedTuple):
    """The protocol of one dataset; `shown` are the dimensions in the tables."""

    n_test: int
    n_splits: int
    ks: tuple[int, ...]
    shown: tuple[int, ...]


PROTOCOLS = {
    "ionosphere": Protocol(51, 100, FEW, (5, 30)),
    "spambase": Protocol(1_601, 100, FEW, (5, 30)),
    "internet_ads_adbench": Protocol(647, 30, MANY, (5, 50, 500)),
    "colon_alon": Protocol(12, 100, MANY, (5, 50, 500)),
    "leukemia_golub3571": Protocol(12, 100, MANY, (5, 50, 500)),
}
QUICK = {"breast_cancer": Protocol(169, 3, (5, 10, 25), (5, 25))}
NONE, PRINCIPAL, RANDOM, RIDGE = "none", "PCA", "random projection", "RidgeComponents"
REDUCTIONS = (PRINCIPAL, RANDOM, RIDGE)
STYLES = {
    PRINCIPAL: (COLOURS[3], "v-"),
    RANDOM: (COLOURS[5], "x-"),
    RIDGE: (COLOURS[0], "o-"),
}
SHORT = {PRINCIPAL: "PCA", RANDOM: "random", RIDGE: "ridge"}
CLASSIFIERS = ("tree", "1-NN", "5-NN", "SVM")
SHOWN = ("tree", "1-NN", "SVM")
CONFIDENCE = 0.25  # C4.5's default
LEVEL = 0.05

Split = tuple[np.ndarray, np.ndarray]


def split_of(dataset: Dataset, n_test: int, seed: int) -> tuple[Split, Split]:
    """Return X and y of the training rows of a random split, and of its test rows."""
    X, y = prepared(dataset, dataset.y.size)
    A, B, y, y_test = train_test_split(X, y, test_size=n_test, stratify=y, random_state=seed)
    varies = np.ptp(A, axis=0) > 0.0
    scaler = StandardScaler().fit(A[:, varies])
    return (scaler.transform(A[:, varies]), y), (scaler.transform(B[:, varies]), y_test)


def reduced(
    reduction: str, A: np.ndarray, y: np.ndarray, B: np.ndarray, most: int, seed: int
) -> Split:
    """Return training and test rows in `most` dimensions, or in as many as there are."""
    if reduction == NONE:
        return A, B
    if reduction == RANDOM:
        model = RandomProjection(most, kind="sign", seed=seed)
        model.learn_columns(A)
        return model.embedding, model.transform_many(B)
    n, p = A.shape
    most = min(most, n - 1, p)
    if reduction == PRINCIPAL:
        pca = PCA(most, svd_solver="full").fit(A)
        return pca.transform(A), pca.transform(B)
    # All variables are kept, so the result is exact: as a pool if they are fewer than the rows,
    # else in addition to their Gram matrix.
    ridge = RidgeComponents(
        most, target_type="class", max_support=p if p < n else None, max_loadings=p
    )
    ridge.learn_target(y)
    ridge.learn_columns(A)
    return ridge.transform_many(A), ridge.transform_many(B)


def pruned(tree: DecisionTreeClassifier) -> np.ndarray:
    """Return for each node the leaf of the pruned tree for rows that reach the node."""
    nodes = tree.tree_
    n = nodes.n_node_samples
    wrong = np.rint(n * (1.0 - nodes.value[:, 0].max(axis=1)))
    as_leaf = n * beta.ppf(1.0 - CONFIDENCE, wrong + 1.0, n - wrong)
    least, is_leaf = as_leaf.copy(), nodes.children_left < 0
    for node in reversed(range(nodes.node_count)):  # children come after their parent
        if not is_leaf[node]:
            below = least[nodes.children_left[node]] + least[nodes.children_right[node]]
            is_leaf[node] = as_leaf[node] <= below
            least[node] = min(as_leaf[node], below)
    stop = np.arange(nodes.node_count)
    for node in range(nodes.node_count):
        if (is_leaf[node] or stop[node] != node) and nodes.children_left[node] >= 0:
            stop[[nodes.children_left[node], nodes.children_right[node]]] = stop[node]
    return stop


def nearest(A: np.ndarray, B: np.ndarray, most: int) -> np.ndarray:
    """Return the nearest rows of A to each row of B, the first ones of ties."""
    # Repeated rows are ties: rounding errors must not choose among them.
    distances = euclidean_distances(B, A, squared=True)
    distances = (distances / distances.mean()).round(9)
    found = []
    for _ in range(most):  # a few passes, because sorting takes longer than learning
        found.append(distances.argmin(axis=1))
        distances[np.arange(len(B)), found[-1]] = np.inf
    return np.column_stack(found)


def measures(A: np.ndarray, y: np.ndarray, B: np.ndarray, y_test: np.ndarray, seed: int) -> Row:
    """Return the errors of the classifiers, and the number of support vectors of the SVM."""
    tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=seed)
    at = tree.fit(A, y).apply(B)
    of_node = tree.tree_.value[:, 0].argmax(axis=1)
    near = nearest(A, B, 5)
    gram = A @ A.T
    svm = SVC(kernel="precomputed", C=len(A) / np.trace(gram)).fit(gram, y)
    predictions = {
        "tree": of_node[pruned(tree)[at]],
        "tree, not pruned": of_node[at],
        "1-NN": y[near[:, 0]],
        "5-NN": (y[near].mean(axis=1) > 0.5).astype(int),
        "SVM": svm.predict(B @ A.T),
    }
    errors = {name: float(np.mean(made != y_test)) for name, made in predictions.items()}
    return errors | {"support vectors": int(svm.n_support_.sum())}


def work(
    datasets: dict[str, Dataset],
    protocols: dict[str, Protocol],
    name: str,
    seed: int,
    reduction: str,
) -> list[Row]:
    """Measure one reduction to every k on one split."""
    n_test, _, ks, _ = protocols[name]
    (A, y), (B, y_test) = split_of(datasets[name], n_test, seed)
    shape = {"dataset": name, "split": seed, "n_train": y.size, "n_test": y_test.size}
    shape |= {"p": A.shape[1], "majority": float(np.mean(y_test != np.bincount(y).argmax()))}
    train, test = reduced(reduction, A, y, B, max(ks), seed)
    most = A.shape[1] if reduction == RANDOM else len(A)
    made = []
    for k in (A.shape[1],) if reduction == NONE else [k for k in ks if k <= most]:
        row = {"reduction": reduction, "k": k, "used": int(np.any(train[:, :k], axis=0).sum())}
        made.append(shape | row | measures(train[:, :k], y, test[:, :k], y_test, seed))
    return made


class Mean(NamedTuple):
    """A mean over splits, its variance, and its degrees of freedom."""

    value: float
    variance: float
    freedom: int

    def half_width(self) -> float:
        """Return half the length of the interval of 95 %."""
        return float(t.ppf(1.0 - LEVEL / 2.0, self.freedom) * np.sqrt(self.variance))

    def format(self) -> str:
        text = f"{self.value:+.1f} ± {self.half_width():.1f}"
        return f"**{text}**" if abs(self.value) > self.half_width() else text


def over_splits(values: pd.Series, here: pd.DataFrame) -> Mean:
    """Return the mean of one value per split, with the variance of Nadeau and Bengio."""
    share = here.n_test.iloc[0] / here.n_train.iloc[0]
    variance = values.var() * (1.0 / len(values) + share)
    return Mean(float(values.mean()), float(variance), len(values) - 1)


def of_datasets(means: list[Mean]) -> Mean:
    """Return the mean of these datasets' means; splits of different ones are independent."""
    variance = sum(mean.variance for mean in means) / len(means) ** 2
    value = sum(mean.value for mean in means) / len(means)
    return Mean(value, variance, min(mean.freedom for mean in means))


def errors(here: pd.DataFrame, reduction: str, k: int | None = None) -> pd.DataFrame:
    """Return the errors of one dataset in %: splits x classifiers, of one k or the mean of all."""
    rows = here[here.reduction == reduction]
    rows = rows if k is None else rows[rows.k == k]
    return 100.0 * rows.groupby("split")[list(CLASSIFIERS)].mean()


def by_dataset(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return dict(list(results.groupby("dataset", sort=False)))


def error_table(results: pd.DataFrame, protocols: dict[str, Protocol]) -> str:
    """Return the table of mean errors, marked where they differ from those on all variables."""
    lines = []
    for name, here in by_dataset(results).items():
        alone = errors(here, NONE)
        for k in protocols[name].shown:
            line = {"dataset, k": f"{name}, {k}"}
            for classifier in SHOWN:
                line[f"{classifier}, all"] = f"{alone[classifier].mean():.1f}"
                for reduction, short in SHORT.items():
                    found = errors(here, reduction, k)[classifier]
                    worse = over_splits(found - alone[classifier], here)
                    mark = " ▲" if worse.value > 0.0 else " ▼"
                    mark = mark if abs(worse.value) > worse.half_width() else ""
                    cell = f"{found.mean():.1f}{mark}" if len(found) else "–"
                    line[f"{classifier}, {short}"] = cell
            lines.append(line)
    return table(pd.DataFrame(lines))


def difference_table(results: pd.DataFrame, reduction: str) -> str:
    """Return the error of a reduction minus that of PCA, mean over all k that both have."""
    lines, columns = [], {}
    for name, here in by_dataset(results).items():
        common = here[here.k.isin(here[here.reduction == PRINCIPAL].k)]
        difference = errors(common, reduction) - errors(common, PRINCIPAL)
        if reduction == RANDOM:
            for classifier in ("tree", "5-NN", "SVM"):
                difference[f"{classifier} minus 1-NN"] = difference[classifier] - difference["1-NN"]
        means = {column: over_splits(difference[column], here) for column in difference}
        lines.append({"": name} | {column: mean.format() for column, mean in means.items()})
        for column, mean in means.items():
            columns.setdefault(column, []).append(mean)
    last = {column: of_datasets(means).format() for column, means in columns.items()}
    return table(pd.DataFrame([*lines, {"": "mean of the datasets"} | last]))


def all_variables_table(results: pd.DataFrame) -> str:
    """Return the error minus that on all variables, in the fewest and the most dimensions."""
    lines = []
    for reduction in REDUCTIONS:
        for which, at in {"fewest": min, "most": max}.items():
            line = {"": f"{reduction}, {which}"}
            for classifier in CLASSIFIERS:
                means = []
                for here in by_dataset(results).values():
                    k = at(here[here.reduction == PRINCIPAL].k)
                    worse = errors(here, reduction, k) - errors(here, NONE)
                    means.append(over_splits(worse[classifier], here))
                line[classifier] = of_datasets(means).format()
            lines.append(line)
    return table(pd.DataFrame(lines))


def support_table(results: pd.DataFrame, protocols: dict[str, Protocol]) -> str:
    """Return the share of training rows that are support vectors, in %."""
    lines = []
    share = results.assign(share=100.0 * results["support vectors"] / results.n_train)
    for name, here in by_dataset(share).items():
        means = here.groupby(["reduction", "k"]).share.mean()
        for k in protocols[name].shown:
            line = {"dataset, k": f"{name}, {k}", "all": f"{means[NONE].mean():.0f}"}
            for reduction, short in SHORT.items():
                line[short] = f"{means[reduction, k]:.0f}" if (reduction, k) in means else "–"
            lines.append(line)
    return table(pd.DataFrame(lines))


def draw(results: pd.DataFrame) -> plt.Figure:
    """Draw mean error against k, one row of panels per dataset, one column per classifier."""
    frames = by_dataset(results)
    titles = [f"{name}, {classifier}" for name in frames for classifier in SHOWN]
    figure, axes = panels(titles, len(SHOWN), 1.8)
    pairs = [(here, classifier) for here in frames.values() for classifier in SHOWN]
    for panel, (here, classifier) in zip(axes, pairs, strict=False):
        ks = sorted(here[here.reduction == RANDOM].k.unique())
        reduced = here[here.reduction.isin(REDUCTIONS)]
        found = 100.0 * reduced.pivot_table(classifier, "split", ["k", "reduction"])
        curves(panel, without_unit_effect(found), STYLES, ks)
        levels = {"all variables": errors(here, NONE)[classifier].mean()}
        levels["larger class"] = 100.0 * here.majority.mean()
        for (label, level), style in zip(levels.items(), ("-", ":"), strict=True):
            panel.axhline(level, color=COLOURS[6], ls=style, lw=1.0, label=label)
        panel.set_ylim(0.0)
        if panel.get_xlabel():
            panel.set_xlabel("dimensions")
    add_legend(axes)
    return figure


def text(results: pd.DataFrame, protocols: dict[str, Protocol], figure: str) -> str:
    sizes = [
        {
            "dataset": name,
            "training rows": f"{here.n_train.iloc[0]:,}",
            "test rows": f"{here.n_test.iloc[0]:,}",
            "variables": f"{here.p.median():,.0f}",
            "splits": str(here.split.nunique()),
        }
        for name, here in by_dataset(results).items()
    ]
    grown = results[results.reduction != NONE]
    before = 100.0 * (grown["tree, not pruned"] - grown["tree"]).groupby(grown.reduction).mean()
    alone = results[results.reduction == NONE]
    alone = 100.0 * (alone["tree, not pruned"] - alone["tree"]).mean()
    others = ", ".join(f"{before[name]:+.1f} ({name})" for name in REDUCTIONS)
    return f"""
{table(pd.DataFrame(sizes))}

![Error against the number of dimensions, one row of panels per dataset, one column per classifier,
one line per method. Solid horizontal lines
show the error on all variables, and dotted lines show the error of the larger class.]({figure})

Error bars are 95 % intervals of the mean over splits, after differences between splits are removed.

{error_table(results, protocols)}

The table shows errors in %, as means over splits, on all variables and on k dimensions. ▲ means a
higher error than on all variables, and ▼ means a lower error, by a paired t-test over splits at 95
%. The test is corrected for shared rows (Nadeau and Bengio), but not for multiplicity. PCA and
RidgeComponents have no more dimensions than training rows. Without pruning, the error of the tree
is higher by these points on average over all rows of the CSV: {alone:+.1f} (all variables),
{others}.

**Error after reduction minus error on all variables.** The differences are means over the datasets,
in points. *Fewest* is five dimensions. *Most* is the largest number that PCA has: 500 on
internet_ads, 50 on colon and leukemia, and 30 on the other two datasets. The 95 % intervals are
corrected in the same way, and a difference is bold if its interval excludes 0.

{all_variables_table(results)}

**Random projection minus PCA.** These differences are means over all k that both methods have. The
last three columns show how much larger this difference is than for 1-NN.

{difference_table(results, RANDOM)}

**RidgeComponents minus PCA.** These differences are computed in the same way.

{difference_table(results, RIDGE)}

**Support vectors.** The table shows their number for the SVM, in % of the training rows.

{support_table(results, protocols)}

[All numbers](projection-or-pca.csv) were made by `python demos/papers/projection_or_pca.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("projection-or-pca", __doc__)
    protocols = experiment.small(PROTOCOLS, QUICK)
    datasets = {dataset.name: dataset for dataset in experiment.datasets(protocols)}
    tasks = [
        (name, seed, reduction)
        for name in datasets
        for seed in range(protocols[name].n_splits)
        for reduction in (NONE, *REDUCTIONS)
    ]
    results = experiment.each(partial(work, datasets, protocols), tasks)
    experiment.publish(text(results, protocols, experiment.draw(draw(results))))


if __name__ == "__main__":
    main()
