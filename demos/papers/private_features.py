"""How well can a sensitive property be predicted from features that hide it, and at what cost?

Jung (2022), *Machine Learning: The Basics*, chapter 9, publishes the principal components that are
least informative about a sensitive property: RankedPCA(rank_by="private"). PrivateFeatures are the
combinations of columns with the largest variance among those that are uncorrelated with it. Two
measures: the accuracy of attackers for the sensitive property (linear discriminant analysis, 1-NN
and an SVM with a Gaussian kernel), and the accuracy of the same three models for another property,
the requested one. They are compared with PCA, which ignores the property, and with all columns.

The properties, sensitive and requested: mnist_10k, whether the digit is odd, and its pair (0 and 1,
2 and 3, ...). isolet, whether the spoken letter rhymes with E, and which of 26 it is. ml_emotions,
quiet-still and sad-lonely, which correlate by 0.55; and relaxing-calm and happy-pleased, 0.13.
ml_bibtex, the most frequent tag and the second.

At most 1,200 rows: one half is for learning features, a quarter is other rows, a quarter is for
tests; five splits. Attackers learn from the rows of the features, where by construction no linear
relation is left, and once more from the other rows, whose property was not removed. Columns have
mean 0 and deviation 1 on the rows of the features, words count as present or absent; attackers
receive features of deviation 1, which they could compute themselves. Accuracy is balanced, the mean
over classes, and the models assume equally frequent classes: chance is 50 % for a property of two
classes.
"""

import itertools
import warnings
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from _curves import add_legend, interval, panels
from _experiment import COLOURS, Dataset, Experiment, Row, machine, plt, table
from _gram_family import PRINCIPAL, PRIVATE, RANKED, components, learnt
from _problems import standardised
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

QS = (2, 10, 40)
N_SPLITS, MOST_ROWS = 5, 1_200
ALL = "all columns"
METHODS = (PRINCIPAL, RANKED, PRIVATE)
STYLES = {PRINCIPAL: COLOURS[3], RANKED: COLOURS[1], PRIVATE: COLOURS[0], ALL: COLOURS[6]}
MODELS = ("linear", "1-NN", "SVM")
SENSITIVE, OTHERS, REQUESTED = "sensitive", "sensitive, other rows", "requested"
RHYMES = [letter in "BCDEGPTVZ" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]


class Problem(NamedTuple):
    """A dataset, and two properties of its rows: names of labels, or derived from the classes."""

    dataset: str
    sensitive: str
    requested: str


PROBLEMS = {
    "mnist_10k: odd, pair": Problem("mnist_10k", "odd", "pair"),
    "isolet: rhymes with E, letter": Problem("isolet", "rhymes", "letter"),
    "ml_emotions: quiet, sad": Problem("ml_emotions", "quiet-still", "sad-lonely"),
    "ml_emotions: calm, happy": Problem("ml_emotions", "relaxing-calm", "happy-pleased"),
    "ml_bibtex: two tags": Problem("ml_bibtex", "TAG_statphys23", "TAG_bibteximport"),
}
QUICK = {"digits: odd, pair": Problem("digits", "odd", "pair")}


def properties(dataset: Dataset, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return the sensitive and the requested property of all rows, as codes of classes."""
    y = dataset.y
    of = {"odd": y % 2, "pair": y // 2, "letter": y}
    if problem.sensitive == "rhymes":
        of["rhymes"] = np.array(RHYMES, dtype=int)[y]
    if "Y2" in dataset.archive:
        names = dataset.archive["label_names"].tolist()
        of = {name: dataset.archive["Y2"][:, names.index(name)].astype(int) for name in problem[1:]}
    return of[problem.sensitive], of[problem.requested]


def rows_of(dataset: Dataset, most_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return indices of rows, and their columns; words in at least five rows, as 0 or 1."""
    rows = np.random.default_rng(0).permutation(dataset.y.size)[:most_rows]
    X = dataset.X[rows]
    if dataset.name == "ml_bibtex":
        X = X.toarray() > 0
        X = X[:, X.sum(axis=0) >= 5]
    return rows, np.asarray(X, dtype=float)


def predictions(Z: np.ndarray, y: np.ndarray, Zt: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (model, predictions of the test rows)."""
    classes = np.unique(y)
    even = np.full(classes.size, 1.0 / classes.size)
    linear = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=even)
    yield "linear", linear.fit(Z, y).predict(Zt)
    yield "1-NN", KNeighborsClassifier(1).fit(Z, y).predict(Zt)
    yield "SVM", SVC(class_weight="balanced").fit(Z, y).predict(Zt)


def accuracy(Z: np.ndarray, y: np.ndarray, Zt: np.ndarray, truth: np.ndarray) -> Row:
    """Return the balanced accuracies, in %, of models that learn features of deviation 1."""
    deviation = Z.std(axis=0)
    there = deviation > 1e-9 * deviation.max(initial=1e-9)
    Z, Zt = Z[:, there] / deviation[there], Zt[:, there] / deviation[there]
    with warnings.catch_warnings():
        # With few rows a class may have no test row, or no training row.
        warnings.simplefilter("ignore", UserWarning)
        return {
            model: 100.0 * float(balanced_accuracy_score(truth, predicted))
            for model, predicted in predictions(Z, y, Zt)
        }


def work(
    datasets: dict[str, Dataset], problems: dict[str, Problem], most_rows: int, name: str, seed: int
) -> list[Row]:
    """Measure every method on one split."""
    dataset = datasets[problems[name].dataset]
    rows, X = rows_of(dataset, most_rows)
    secret, requested = (values[rows] for values in properties(dataset, problems[name]))
    made, later = train_test_split(
        np.arange(rows.size), test_size=0.5, stratify=secret, random_state=seed
    )
    other, test = train_test_split(later, test_size=0.5, stratify=secret[later], random_state=seed)
    A, _, C, _ = standardised(X[made], secret[made], X[later], secret[later])
    B = {"other": C[np.isin(later, other)], "test": C[np.isin(later, test)]}
    other, test = later[np.isin(later, other)], later[np.isin(later, test)]
    shape = {"problem": name, "n": made.size, "p": A.shape[1], "split": seed}

    def measures(method: str, q: int, Z: np.ndarray, Zo: np.ndarray, Zt: np.ndarray) -> list[Row]:
        kept = 100.0 * float(Z.var(axis=0).sum() / A.var(axis=0).sum())
        row = shape | {"method": method, "q": q, "variance": kept}
        return [
            row | {"of": SENSITIVE} | accuracy(Z, secret[made], Zt, secret[test]),
            row | {"of": OTHERS} | accuracy(Zo, secret[other], Zt, secret[test]),
            row | {"of": REQUESTED} | accuracy(Z, requested[made], Zt, requested[test]),
        ]

    found = measures(ALL, X.shape[1], A, B["other"], B["test"])
    for method in METHODS:
        parameters = {"rank_by": "private"} if method == RANKED else {}
        model = learnt(method, A, secret[made], min(max(QS), A.shape[1] - 1), **parameters)
        Z, Zo = components(model, A, B["other"])
        Zt = model.transform_many(B["test"])
        for q in QS:
            found += measures(method, q, Z[:, :q], Zo[:, :q], Zt[:, :q])
    return found


def problem_table(results: pd.DataFrame) -> str:
    """Return the accuracies of every problem, method and number of features."""
    lines = []
    for problem, here in results.groupby("problem", sort=False):
        n, p = here[["n", "p"]].max()
        for method, q in here[["method", "q"]].drop_duplicates().itertuples(index=False):
            of = here[(here.method == method) & (here.q == q)]
            line = {
                "": f"{problem} ({n:,} × {p:,})",
                "features": method,
                "q": "" if method == ALL else str(q),
                "variance": f"{of.variance.mean():.1f}",
            }
            for which in (SENSITIVE, OTHERS, REQUESTED):
                means = of[of["of"] == which][list(MODELS)].mean()
                line[which] = " / ".join(f"{mean:.0f}" for mean in means)
            lines.append(line)
    return table(pd.DataFrame(lines))


def draw(results: pd.DataFrame) -> plt.Figure:
    """Draw accuracy for the requested property against accuracy for the sensitive one.

    The linear model on the left, the best of three on the right; one row per problem.
    """
    problems = list(results.problem.unique())
    results = results.assign(best=results[list(MODELS)].max(axis=1))
    columns = {MODELS[0]: "linear model", "best": "best of three"}
    titles = [f"{problem}, {column}" for problem in problems for column in columns.values()]
    figure, axes = panels(titles, len(columns), 2.2)
    pairs = itertools.product(problems, columns)
    for panel, (problem, column) in zip(axes, pairs, strict=False):
        of_split = results[results.problem == problem].pivot_table(
            column, "split", ["method", "q", "of"]
        )
        for method, colour in STYLES.items():
            draw_tradeoff(panel, of_split[method], method, colour)
        panel.axvline(50.0, color=COLOURS[5], ls=":", lw=1.0)
        panel.set_xlim(45.0, 102.0)
    for panel in axes[:-1]:
        panel.set_ylabel("")
        panel.set_xlabel("")
    for panel in axes[:-1:2]:
        panel.set_ylabel("requested, %")
    for panel in axes[-3:-1]:
        panel.set_xlabel("sensitive, %")
    add_legend(axes)
    return figure


def draw_tradeoff(panel: plt.Axes, found: pd.DataFrame, method: str, colour: str) -> None:
    """Draw the points of one method, the larger the more features, each with its intervals."""
    means, halves = interval(found)
    qs = sorted(found.columns.unique("q"))
    attackers = [max(((q, SENSITIVE), (q, OTHERS)), key=means.get) for q in qs]
    requested = [(q, REQUESTED) for q in qs]
    x, y = means[attackers], means[requested]
    style = {"fmt": "-", "color": colour, "lw": 0.8, "elinewidth": 0.6}
    panel.errorbar(x, y, halves[requested], halves[attackers], **style)
    panel.scatter(x, y, s=12.0 + 16.0 * np.arange(len(qs)), color=colour, label=method)


def text(results: pd.DataFrame, figure: str) -> str:
    return f"""
Cells show the balanced accuracy, in %, of a linear model / 1-NN / an SVM, as means over
{results.split.nunique()} splits. Attackers learn the sensitive property from the rows from which
features were built, or from other rows. Chance is 50 for the sensitive property. *Variance* is the
features' share of the variance of all columns, in %.

![Accuracy for the requested property against accuracy for the sensitive one, by the better of its
two attackers, one row per problem. Left panels have the linear model, right ones the best of three.
Larger dots have more features.]({figure})

Error bars are 95 % intervals of the mean over splits, in both directions.

{problem_table(results)}

[All numbers](private-features.csv) were made by `python demos/papers/private_features.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("private-features", __doc__)
    problems = experiment.small(PROBLEMS, QUICK)
    most_rows = experiment.small(MOST_ROWS, 300)
    files = dict.fromkeys(problem.dataset for problem in problems.values())
    datasets = {dataset.name: dataset for dataset in experiment.datasets(files)}
    tasks = [
        (name, seed)
        for name, problem in problems.items()
        if problem.dataset in datasets
        for seed in range(experiment.small(N_SPLITS, 2))
    ]
    results = experiment.each(partial(work, datasets, problems, most_rows), tasks)
    experiment.publish(text(results, experiment.draw(draw(results))))


if __name__ == "__main__":
    main()
