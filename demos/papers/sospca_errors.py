"""What does reducing p variables to q do to the error of a classifier?

The experiment of figure 1 of Fillmore (2009), *Sparse online supervised PCA*, section 4: linear
discriminant analysis, an SVM with a Gaussian kernel and 1-NN, on ten datasets of two classes,
without reduction and on q = 1 ... 50 components of SOSPCA, by 10-fold cross-validation.

The paper's own datasets were "prepared by other students" and are not to be had; these are others,
from 30 to 5,000 variables. As there, every variable lies in [-1, 1] (range of the training rows),
so that one of two values is an indicator of -1 and 1; word counts become indicators of presence.
Variables that do not vary in the training rows are left out. What is reduced is learnt on the
training rows alone, in the order of the file. Choices that the paper does not state: folds are
stratified, C = 1, and `signed=True` uses the correlation with the second of the two classes.

Beyond the paper:

- other methods: the q most correlated variables, PCA, PLS, a Gaussian random projection, and SOSPCA
  with the columns in random order;
- a second SVM whose bandwidth follows the data (gamma = 1 / (q variance), scikit-learn's "scale").
  With sigma = 0.3 two points of [-1, 1]^p are nearly orthogonal unless p is small: the kernel
  matrix is nearly the identity, and any reduction of p improves it;
- the error of the larger class, the baseline of a constant prediction;
- two datasets of more classes, in the second figure only, because `signed=True` needs two classes;
  glioma with 7 folds, as many as its smallest class has rows.

At most 1,200 rows of a dataset are taken (a stratified sample): two SVMs on each of 43
representations are what costs. Training rows are shuffled, since 1-NN takes the first of equally
near ones, and one word has but two values.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from _curves import add_legend, curves, panels, without_unit_effect
from _experiment import COLOURS, Dataset, Experiment, machine, plt, table
from scipy.stats import ttest_1samp, wilcoxon
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import f_classif
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import MinMaxScaler
from sklearn.random_projection import GaussianRandomProjection
from sklearn.svm import SVC

from streamsel import SOSPCA

BINARY = [
    "madelon",
    "basehock",
    "colon_alon",
    "leukemia_golub3571",
    "ionosphere",
    "spambase",
    "sonar",
    "internet_ads_adbench",
    "sms_spam",
    "breast_cancer",
]
MORE_CLASSES = ["glioma", "isolet"]
WORDS = ["basehock", "sms_spam"]
QS = (1, 2, 5, 10, 20, 50)
MOST_ROWS = 1_200
SIGMA = 0.3
LEVEL = 0.05
PAPERS_SVM = "SVM, σ = 0.3"
SHOWN = "SVM, scale"  # of the second figure and table
NONE = "none"
# Methods in the figures: without the shuffled one, which coincides, and random projections.
STYLES = {
    "SOSPCA": (COLOURS[0], "o-"),
    "SOSPCA, paper": (COLOURS[1], "s-"),
    "most correlated": (COLOURS[2], "^-"),
    "PCA": (COLOURS[3], "v-"),
    "PLS": (COLOURS[4], "D-"),
}
REDUCTIONS = [
    *("SOSPCA", "SOSPCA, shuffled", "SOSPCA, paper", "most correlated"),
    *("PCA", "PLS", "random projection"),
]

Split = tuple[np.ndarray, np.ndarray]


def prepared(dataset: Dataset, most_rows: int) -> Split:
    """Return at most so many rows of a dataset, X (n, p) dense and y, before any scaling."""
    X, y = dataset.X, dataset.y
    rows = np.arange(y.size)
    if y.size > most_rows:
        rows, _ = train_test_split(rows, train_size=most_rows, stratify=y, random_state=0)
    X = X[rows].toarray() if scipy.sparse.issparse(X) else X[rows]
    if dataset.name in WORDS:
        X = X[:, (X > 0).sum(0) >= 5] > 0
    if dataset.name == "colon_alon":
        X = np.log(X)
    return X.astype(float), y[rows]


def n_folds(y: np.ndarray) -> int:
    return min(10, int(np.bincount(y, minlength=1).min()))


def scaled(train: np.ndarray, test: np.ndarray) -> Split:
    varies = np.ptp(train, axis=0) > 0.0
    scaler = MinMaxScaler((-1.0, 1.0)).fit(train[:, varies])
    return scaler.transform(train[:, varies]), scaler.transform(test[:, varies])


def fold_of(dataset: Dataset, most_rows: int, fold: int) -> tuple[Split, Split]:
    """Return X and y of the training rows of a fold, and of its test rows, scaled."""
    X, y = prepared(dataset, most_rows)
    folds = StratifiedKFold(n_folds(y), shuffle=True, random_state=0).split(X, y)
    train, test = list(folds)[fold]
    train = np.random.default_rng(fold).permutation(train)
    A, B = scaled(X[train], X[test])
    return (A, y[train]), (B, y[test])


def sospca(train: np.ndarray, y: np.ndarray, test: np.ndarray, model: SOSPCA) -> Split:
    model.learn_target(y)
    model.learn_columns(train)
    return model.transform_many(train), model.transform_many(test)


def fitted_pls(X: np.ndarray, targets: np.ndarray, most: int) -> tuple[PLSRegression, int]:
    """Return PLS of at most so many components, and how many it has."""
    pls = PLSRegression(most, scale=False, max_iter=5_000)
    with warnings.catch_warnings():
        # Few rows are explained in full before there are 50 components; the rest stay empty.
        warnings.filterwarnings("ignore", "y residual is constant", UserWarning)
        pls.fit(X, targets)
    return pls, int(np.any(pls.x_weights_, axis=0).sum())


def representations(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, qs: tuple[int, ...], seed: int
) -> Iterator[tuple[str, int, Split]]:
    """Yield (reduction, q, the reduced training and test rows)."""
    n, p = train.shape
    yield NONE, p, (train, test)
    ranking = np.argsort(-f_classif(train, y)[0], kind="stable")
    most = min(max(qs), p, n - 1)
    pca = PCA(most, random_state=seed).fit(train)
    targets = (y[:, None] == np.unique(y)).astype(float)
    pls, n_pls = fitted_pls(train, targets[:, 1:], most)
    nested = {
        "most correlated": (train[:, ranking], test[:, ranking]),
        "PCA": (pca.transform(train), pca.transform(test)),
        "PLS": (pls.transform(train)[:, :n_pls], pls.transform(test)[:, :n_pls]),
    }
    order = np.random.default_rng(seed).permutation(p)
    for q in qs:
        for name, (A, B) in nested.items():
            yield name, q, (A[:, :q], B[:, :q])
        projection = GaussianRandomProjection(min(q, p), random_state=seed).fit(train)
        yield "random projection", q, (projection.transform(train), projection.transform(test))
        yield "SOSPCA", q, sospca(train, y, test, SOSPCA(q, target_type="class"))
        shuffled = SOSPCA(q, target_type="class")
        yield "SOSPCA, shuffled", q, sospca(train[:, order], y, test[:, order], shuffled)
        if targets.shape[1] == 2:
            paper = SOSPCA(q, rotation="paper", signed=True, target_type="numeric")
            yield "SOSPCA, paper", q, sospca(train, targets[:, 1], test, paper)


def predictions(
    train: np.ndarray, y: np.ndarray, test: np.ndarray
) -> Iterator[tuple[str, np.ndarray, float]]:
    """Yield (classifier, its answers for the test rows, its kernel between two median rows)."""
    yield "LDA", LinearDiscriminantAnalysis().fit(train, y).predict(test), np.nan
    among, to = (euclidean_distances(rows, train, squared=True) for rows in (train, test))
    # A few words have equally near rows: rounding errors must not choose among them.
    yield "1-NN", y[to.round(9).argmin(1)], np.nan
    gammas = {PAPERS_SVM: 0.5 / SIGMA**2, SHOWN: 1.0 / (train.shape[1] * train.var())}
    for name, gamma in gammas.items():
        svm = SVC(kernel="precomputed").fit(np.exp(-gamma * among), y)
        yield name, svm.predict(np.exp(-gamma * to)), float(np.exp(-gamma * np.median(among)))


def errors_of_fold(
    datasets: dict[str, Dataset], qs: tuple[int, ...], most_rows: int, name: str, fold: int
) -> list[dict[str, Any]]:
    (A, y), (B, of_test) = fold_of(datasets[name], most_rows, fold)
    majority = float(np.mean(of_test != np.bincount(y).argmax()))
    shape = {"dataset": name, "fold": fold, "n": y.size + of_test.size, "p": A.shape[1]}
    shape |= {"majority": majority}
    return [
        shape
        | {"reduction": reduction, "q": q, "used": reduced[0].shape[1], "classifier": classifier}
        | {"error": float(np.mean(predicted != of_test)), "kernel": kernel}
        for reduction, q, reduced in representations(A, y, B, qs, fold)
        for classifier, predicted, kernel in predictions(reduced[0], y, reduced[1])
    ]


def over_folds(
    experiment: Experiment, work: Callable[..., list[dict[str, Any]]], qs: tuple[int, ...]
) -> pd.DataFrame:
    """Return the rows of `work(datasets, qs, most_rows, name, fold)` for every fold."""
    names = experiment.small([*BINARY, *MORE_CLASSES], ["breast_cancer", "wine"])
    datasets = {dataset.name: dataset for dataset in experiment.datasets(names)}
    tasks = [
        (name, fold)
        for name, dataset in datasets.items()
        for fold in range(experiment.small(n_folds(dataset.y), 2))
    ]
    most_rows = experiment.small(MOST_ROWS, 150)
    return experiment.each(partial(work, datasets, qs, most_rows), tasks)


def errors(frame: pd.DataFrame, classifier: str, reduction: str, q: int | None) -> pd.DataFrame:
    """Return the errors of one classifier after one reduction, in percent: datasets x folds."""
    rows = frame[(frame.classifier == classifier) & (frame.reduction == reduction)]
    rows = rows if q is None else rows[rows.q == q]
    return 100 * rows.pivot_table(index="dataset", columns="fold", values="error")


def p_value(test: Callable[..., Any], differences: np.ndarray) -> float:
    """Return the p-value of a test that differences are centred on 0."""
    return float(test(differences).pvalue) if np.ptp(differences) > 0.0 else 1.0


def mean_errors(frame: pd.DataFrame, qs: tuple[int, ...]) -> str:
    """Return the table of mean errors, marked if they differ from those without reduction."""
    lines = []
    for classifier in frame.classifier.unique():
        unreduced = errors(frame, classifier, NONE, None)
        alone = f"{unreduced.mean(axis=1).mean():.1f}"
        lines.append([f"*{classifier}*, no reduction: {alone}", *[""] * len(qs)])
        for reduction in REDUCTIONS:
            line = [reduction]
            for q in qs:
                reduced = errors(frame, classifier, reduction, q)
                differences = (reduced - unreduced).to_numpy()
                over_folds = p_value(partial(ttest_1samp, popmean=0.0), differences.ravel())
                mark = "" if over_folds >= LEVEL else " ▲" if differences.mean() > 0.0 else " ▼"
                bold = "**" if p_value(wilcoxon, differences.mean(1).round(9)) < LEVEL else ""
                line.append(f"{bold}{reduced.mean(axis=1).mean():.1f}{bold}{mark}")
            lines.append(line)
    return table(pd.DataFrame(lines, columns=["mean error, %", *(f"q = {q}" for q in qs)]))


def matches(frame: pd.DataFrame, qs: tuple[int, ...]) -> str:
    """Return the numbers of datasets on which SOSPCA has a lower, equal and higher error."""
    lines = []
    for rival in REDUCTIONS[1:]:
        line = [rival]
        for q in qs:
            ours, theirs = (
                errors(frame, SHOWN, name, q).mean(axis=1) for name in ("SOSPCA", rival)
            )
            differences = (ours - theirs).round(9).to_numpy()
            counts = "–".join(str(np.sum(np.sign(differences) == sign)) for sign in (-1, 0, 1))
            bold = "**" if p_value(wilcoxon, differences) < LEVEL else ""
            line.append(f"{bold}{counts}{bold}")
        lines.append(line)
    return table(pd.DataFrame(lines, columns=["SOSPCA against", *(f"q = {q}" for q in qs)]))


def curve(panel: plt.Axes, frame: pd.DataFrame, classifier: str, unit: str) -> None:
    """Draw mean error against q, one line per reduction, with 95 % intervals."""
    frame = frame[frame.classifier == classifier]
    reduced = frame[frame.reduction.isin(list(STYLES))]
    errors = 100.0 * reduced.pivot_table("error", unit, ["q", "reduction"])
    curves(panel, without_unit_effect(errors), STYLES, sorted(reduced.q.unique()))
    alone = 100.0 * frame[frame.reduction == NONE].error.mean()
    panel.axhline(alone, color=COLOURS[6], lw=1.0, label="no reduction")
    panel.set_ylim(0.0)


def draw(experiment: Experiment, binary: pd.DataFrame, results: pd.DataFrame) -> tuple[str, str]:
    """Draw means over datasets for each classifier, and one classifier for each dataset."""
    classifiers = list(binary.classifier.unique())
    means, axes = panels(classifiers, 2, 2.8)
    for panel, classifier in zip(axes, classifiers, strict=False):
        curve(panel, binary, classifier, "dataset")
    top = max(panel.get_ylim()[1] for panel in axes[:-1])
    for panel in axes[:-1]:
        panel.set_ylim(0.0, top)
    add_legend(axes)
    sizes = results.groupby("dataset", sort=False).p.median()
    each, axes = panels([f"{name}, {p:,.0f} variables" for name, p in sizes.items()], 3, 1.9)
    for panel, name in zip(axes, sizes.index, strict=False):
        curve(panel, results[results.dataset == name], SHOWN, "fold")
    add_legend(axes)
    return experiment.draw(means), experiment.draw(each, "-datasets")


def text(binary: pd.DataFrame, qs: tuple[int, ...], figures: tuple[str, str]) -> str:
    shapes = binary.groupby("dataset")[["n", "p"]].max()
    svm = binary[binary.classifier == PAPERS_SVM]
    medians = svm[svm.reduction.isin([NONE, "SOSPCA"])].groupby(["reduction", "dataset", "q"])
    kernel = medians.kernel.median().groupby(["reduction", "q"]).median()
    unreduced = svm[svm.reduction == NONE].groupby("dataset").kernel.median().median()
    kernels = {"no reduction": f"{unreduced:.1g}"} | {
        f"SOSPCA, q = {q}" if q == qs[0] else f"q = {q}": f"{kernel['SOSPCA', q]:.2g}" for q in qs
    }
    return f"""
The {len(shapes)} datasets of two classes have {shapes.n.min():,} to {shapes.n.max():,} rows and
{shapes.p.min():,} to {shapes.p.max():,} columns, scaled to [-1, 1]. Errors come from stratified
10-fold cross-validation, with all learning inside the fold. `SVM, scale` has scikit-learn's
`gamma="scale"`.

![Mean error over the datasets against the number of components q, one panel per classifier, one
line per method. The horizontal line is the error without reduction.]({figures[0]})

Error bars are 95 % intervals of the mean over datasets, after differences between datasets are
removed.

The next table shows the kernel with σ = {SIGMA} between two rows at the median distance, as a
median over the datasets:

{table(pd.DataFrame([kernels]))}

{mean_errors(binary, qs)}

▲ means a higher error than without reduction, and ▼ means a lower error, by a paired t-test over
folds and datasets at 95 %. The paper presumably uses the same test. Folds of one dataset are not
independent. A number is bold if the difference is also significant by a Wilcoxon test over the
means of the datasets.

The next table counts the datasets on which the error of SOSPCA is lower – equal – higher, with
`{SHOWN}`. Counts are bold if the Wilcoxon test is significant.

{matches(binary, qs)}

![Error of the SVM with gamma = scale against the number of components q, one panel per
dataset.]({figures[1]})

Error bars are 95 % intervals of the mean over folds, after differences between folds are removed.

[All numbers](sospca-errors.csv) were made by `python demos/papers/sospca_errors.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("sospca-errors", __doc__)
    qs = experiment.small(QS, (1, 5, 20))
    results = over_folds(experiment, errors_of_fold, qs)
    binary = results[results.dataset.isin(BINARY)]
    experiment.publish(text(binary, qs, draw(experiment, binary, results)))


if __name__ == "__main__":
    main()
