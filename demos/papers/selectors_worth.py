"""What is the error of classifiers on k selected variables?

No figure of a paper, but the evidence for "Choosing a method": every selector of the package that
accepts classes and keeps k variables, compared with FastCan (forward selection without a ridge, in
memory), with k random variables, and with all of them. The ridge of forward selection is studied in
the same way: chosen on one half of the datasets and tested on the other.

A dataset is split into stratified halves ten times: variables are selected on one half, on which
LDA, 1-NN and an SVM are fitted, and the other half is for tests. At most 4,000 rows are used (a
stratified sample); with more than 1,000 rows the classifiers use five of the ten splits. Variables
without variance in the training rows are left out; the classifiers get variables of mean 0 and
deviation 1. LDA shrinks its covariance by Ledoit and Wolf's rule, because k may be the number of
rows; the SVM has C = 1 and the Gaussian kernel with gamma = 1 / (k variance), scikit-learn's
"scale". Words count as present or absent; the class of ml_emotions is the label nearest to a share
of one half (ml_bibtex is left out: two of its words predict its label without an error). A
selection of 25 is cut to its first 10 and 5; a shorter one is used as it is; a dataset of p
variables counts if k < p. All variables are tested on two splits only, and without LDA, for which
5,000 are too many.

Stability is the index of Nogueira et al. (2018) of the ten selections with k = 10.

Lasso has one target: with more than two classes, one path for each indicator of a class, and the
variables that enter the paths are taken in turn. SelectKBest ranks by F, which for classes is also
the limit of forward selection as the ridge grows. Crop has repeated rows, some of them in training
and test: its errors are optimistic for every selection.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from _curves import add_legend, curves, panels, without_unit_effect
from _experiment import COLOURS, Dataset, Experiment, Row, machine, plt, table
from fastcan import FastCan
from scipy.stats import wilcoxon
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sospca_errors import p_value, prepared

from streamsel import evaluate, registry

DATASETS = [
    *("basehock", "breast_cancer", "colon_alon", "crop", "digits", "glioma"),
    *("internet_ads_adbench", "ionosphere", "isolet", "leukemia_golub3571", "madelon"),
    *("ml_emotions", "mnist", "shapesall", "sms_spam", "sonar", "spambase", "wine"),
]
KS = (5, 10, 25)
STABLE_K = 10
MOST_ROWS = 4_000
N_SPLITS = 10
FEW_ROWS, N_TESTED = 1_000, 5  # splits with classifiers if there are more rows
N_TESTED_ALL = 2  # splits with classifiers of all variables, which take long
CLASSIFIERS = ("LDA", "1-NN", "SVM")
RIDGES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
DEFAULT = 1.0
LEVEL = 0.05
HALVINGS = 1_000
SHOWN_RIDGES = (0.0, 1.0, 3.0)
FASTCAN, RANDOM, ALL = "FastCan", "random", "all variables"
ONE_TARGET = ("Lasso",)

Split = tuple[np.ndarray, np.ndarray]


def forward(ridge: float) -> str:
    return f"ForwardSelection, λ = {ridge:g}"


# Learners of the catalogue, and what differs from their defaults.
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    **{forward(ridge): ("ForwardSelection", {"ridge": ridge}) for ridge in RIDGES},
    "MRMR": ("MRMR", {}),
    "ProjSe": ("ProjSe", {}),
    "SelectKBest": ("SelectKBest", {"score": "f"}),
    "Lasso": ("Lasso", {}),
}
STYLES = {
    forward(1.0): (COLOURS[0], "o-"),
    "MRMR": (COLOURS[1], "s-"),
    "ProjSe": (COLOURS[2], "^-"),
    "SelectKBest": (COLOURS[4], "D-"),
    "Lasso": (COLOURS[3], "v-"),
    RANDOM: (COLOURS[5], "-"),
}


def rows_of(dataset: Dataset, most_rows: int) -> Split:
    """Return X (n, p) and y of at most `most_rows` rows; the most balanced of several labels."""
    if "Y2" in dataset.archive:
        labels = dataset.archive["Y2"]
        most_even = np.abs(labels.mean(axis=0) - 0.5).argmin()
        dataset = dataset._replace(y=labels[:, most_even].astype(int))
    return prepared(dataset, most_rows)


def halves(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[Split, Split, np.ndarray]:
    """Return X and y of the training half and of the test half, and the columns that vary."""
    A, B, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    varies = np.flatnonzero(np.ptp(A, axis=0))
    scaler = StandardScaler().fit(A[:, varies])
    return (scaler.transform(A[:, varies]), y), (scaler.transform(B[:, varies]), y_test), varies


def learnt(learner: str, parameters: dict[str, Any], X: np.ndarray, target: np.ndarray) -> Any:
    kind = "class" if target.dtype.kind == "i" else "numeric"
    model = registry.fetch(learner)(max(KS), target_type=kind, **parameters)
    model.learn_target(target)
    model.learn_columns(X)
    return model


def in_turn(rankings: list[list[int]]) -> list[int]:
    """Return the first of every ranking, then the second of each, without repetition."""
    rounds = itertools.zip_longest(*rankings)
    return list(dict.fromkeys(j for taken in rounds for j in taken if j is not None))


def ranking(method: str, X: np.ndarray, y: np.ndarray, seed: int) -> list[int]:
    """Return the variables that a method selects, in its order."""
    n, p = X.shape
    if method == ALL:
        return list(range(p))
    if method == RANDOM:
        return np.random.default_rng(seed).permutation(p)[: max(KS)].tolist()
    indicators = (y[:, None] == np.unique(y)).astype(float)[:, 1:]
    if method == FASTCAN:
        # Centred columns span n - 1 directions, and FastCan needs one per pick.
        most = min(max(KS), p, n - 1)
        return FastCan(most, verbose=0).fit(X, indicators).indices_.tolist()
    learner, parameters = OURS[method]
    if learner not in ONE_TARGET:
        return list(learnt(learner, parameters, X, y).selected)
    if indicators.shape[1] > 1:
        indicators = (y[:, None] == np.unique(y)).astype(float)
    return in_turn([list(learnt(learner, parameters, X, c).selected) for c in indicators.T])


def errors(train: Split, test: Split, *, with_lda: bool) -> Row:
    """Return the error of each classifier on the test rows."""
    (A, y), (B, y_test) = train, test
    # Rows of few words are ties: rounding errors must not choose among them.
    nearest = euclidean_distances(B, A, squared=True).round(9).argmin(axis=1)
    predictions = {"1-NN": y[nearest], "SVM": SVC().fit(A, y).predict(B)}
    if with_lda:
        lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(A, y)
        predictions["LDA"] = lda.predict(B)
    return {name: float(np.mean(made != y_test)) for name, made in predictions.items()}


def work(
    datasets: dict[str, Dataset], most_rows: int, methods: list[str], name: str, seed: int
) -> list[Row]:
    """Select on one half of a split by every method, test on the other."""
    X, y = rows_of(datasets[name], most_rows)
    (A, of_train), (B, of_test), varies = halves(X, y, seed)
    shape = {"dataset": name, "n": y.size, "p": X.shape[1], "classes": len(set(y.tolist()))}
    is_tested = seed < N_TESTED or y.size <= FEW_ROWS
    rows = []
    for method in methods:
        if method == ALL and seed >= N_TESTED_ALL:
            continue
        ranked = ranking(method, A, of_train, seed)
        p = len(varies)
        for k in [p] if method == ALL else [k for k in KS if k < p]:
            row = shape | {"split": seed, "method": method, "k": k, "used": len(ranked[:k])}
            if k == STABLE_K:
                row["selected"] = " ".join(map(str, varies[ranked[:k]]))
            seen = (A[:, ranked[:k]], of_train), (B[:, ranked[:k]], of_test)
            rows.append(row | (errors(*seen, with_lda=method != ALL) if is_tested else {}))
    return rows


def of_datasets(
    results: pd.DataFrame, ks: Sequence[int] = KS, classifiers: Sequence[str] = CLASSIFIERS
) -> pd.DataFrame:
    """Return errors in percent, means over splits, classifiers and k: datasets x methods."""
    rows = results[results.k.isin(ks) & (results.method != ALL)]
    rows = rows.assign(error=100.0 * rows[list(classifiers)].mean(axis=1))
    means = rows.pivot_table(index=["dataset", "k"], columns="method", values="error")
    return means.groupby("dataset").mean()


def kinds(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the results of datasets of a kind."""
    made = {
        "two classes": results.classes == 2,
        "more classes": results.classes > 2,
        f"n ≤ {FEW_ROWS:,}": results.n <= FEW_ROWS,
        f"n > {FEW_ROWS:,}": results.n > FEW_ROWS,
    }
    return {kind: results[rows] for kind, rows in made.items() if rows.any()}


def shown(results: pd.DataFrame) -> list[str]:
    """Return the methods of the tables, in their order."""
    kept = [*map(forward, SHOWN_RIDGES), FASTCAN, *OURS, RANDOM]
    there = set(results.method) - {forward(r) for r in RIDGES if r not in SHOWN_RIDGES}
    return [method for method in dict.fromkeys(kept) if method in there]


def stability(results: pd.DataFrame) -> pd.Series:
    """Return the stability of each method, mean over datasets."""
    made = results[(results.k == STABLE_K) & (results.method != ALL)]
    values = {
        key: evaluate.selection_stability(map(str.split, rows.selected), rows.p.iloc[0]).value
        for key, rows in made.groupby(["method", "dataset"])
    }
    return pd.Series(values).groupby(level=0).mean()


def columns(lines: dict[str, pd.Series], index: list[str], digits: int = 1) -> str:
    """Return a table of means; the lowest error and the highest stability are bold."""
    frame = pd.DataFrame(lines).loc[index]
    text = pd.DataFrame(index=frame.index)
    for name, values in frame.items():
        decimals = 2 if name == "stability" else digits
        best = values.max() if name == "stability" else values.min()
        text[name] = [
            f"**{v:.{decimals}f}**"
            if round(v, decimals) == round(best, decimals)
            else f"{v:.{decimals}f}"
            for v in values
        ]
    return table(text.reset_index(names=""))


def main_table(results: pd.DataFrame) -> str:
    lines = {
        f"{classifier}, k = {k}": of_datasets(results, (k,), (classifier,)).mean()
        for classifier in CLASSIFIERS
        for k in KS
    }
    lines["mean"] = of_datasets(results).mean()
    lines["rank"] = of_datasets(results)[shown(results)].round(9).rank(axis=1).mean()
    lines["stability"] = stability(results)
    return columns(lines, shown(results))


def ridge_table(results: pd.DataFrame) -> str:
    """Return mean errors for each ridge; F has the ranking of an infinite ridge."""
    lines = {f"k = {k}": of_datasets(results, (k,)).mean() for k in KS}
    means = of_datasets(results)
    ridges = [*map(forward, RIDGES), "SelectKBest"]
    lines["mean"] = means.mean()
    lines["rank"] = means[ridges].round(9).rank(axis=1).mean()
    lines |= {kind: of_datasets(rows).mean() for kind, rows in kinds(results).items()}
    lines["stability"] = stability(results)
    heads = [*(f"λ = {ridge:g}" for ridge in RIDGES), "λ = ∞ (F)"]
    names = dict(zip(ridges, heads, strict=True))
    renamed = {name: values.rename(names) for name, values in lines.items()}
    return columns(renamed, heads, 2)


def paired(results: pd.DataFrame) -> str:
    """Return the numbers of datasets with lower, equal and higher error, and the p-values."""
    flagship = forward(DEFAULT)
    views = {f"k = {k}": of_datasets(results, (k,)) for k in KS} | {"all k": of_datasets(results)}
    views |= {kind: of_datasets(rows) for kind, rows in kinds(results).items()}
    lines = []
    for rival in shown(results):
        line = {f"{flagship} against": rival}
        for view, means in views.items():
            cell, p = compared(means[flagship] - means[rival])
            line[view] = f"**{cell}**" if p < LEVEL else cell
        if rival != flagship:
            lines.append(line)
    return table(pd.DataFrame(lines))


def compared(differences: pd.Series) -> tuple[str, float]:
    """Return how often a difference is below, equal to and above 0, and the p-value."""
    differences = differences.round(9).to_numpy()
    counts = "–".join(str(int(np.sum(np.sign(differences) == sign))) for sign in (-1, 0, 1))
    p = p_value(wilcoxon, differences)
    return f"{counts} ({p:.2g})", p


def dataset_table(results: pd.DataFrame) -> str:
    means = of_datasets(results)[shown(results)]
    shapes = results.groupby("dataset")[["n", "p", "classes"]].max()
    lines = []
    for name, values in means.iterrows():
        n, p, classes = shapes.loc[name]
        cells = {
            method: f"**{v:.1f}**" if v <= values.min() + 1e-9 else f"{v:.1f}"
            for method, v in values.items()
        }
        lines.append({"": f"{name} ({n:,} × {p:,}, {classes})"} | cells)
    return table(pd.DataFrame(lines))


def chosen_by_halves(results: pd.DataFrame) -> str:
    """Return text and a table on the ridge chosen on one half of the datasets, tested on the other.

    Chosen by the mean error, which a few datasets may dominate, or by the mean rank.
    """
    means = of_datasets(results)[[forward(ridge) for ridge in RIDGES]]
    errors, ranks = means.to_numpy(), means.round(9).rank(axis=1).to_numpy()
    d = len(errors)
    rng = np.random.default_rng(0)
    halved = [np.split(rng.permutation(d), [d // 2]) for _ in range(HALVINGS)]
    lines = {"λ": [f"{ridge:g}" for ridge in RIDGES]}
    tested = {}
    for what, values in {"error": errors, "rank": ranks}.items():
        chosen = [int(values[choosing].mean(axis=0).argmin()) for choosing, _ in halved]
        pairs = zip(chosen, halved, strict=True)
        tested[what] = np.mean([errors[testing, at].mean() for at, (_, testing) in pairs])
        counts = np.bincount(chosen, minlength=len(RIDGES))
        lines[f"chosen by mean {what}"] = [str(count) for count in counts]
    fixed = np.mean([errors[testing].mean(axis=0) for _, testing in halved], axis=0)
    lines["error, %"] = [f"{error:.2f}" for error in fixed]
    default = means[forward(DEFAULT)]
    lines["lower – equal – higher (p)"] = [
        "" if ridge == DEFAULT else compared(means[forward(ridge)] - default)[0] for ridge in RIDGES
    ]
    return f"""
λ was chosen on one half of the datasets and tested on the other, in {HALVINGS:,} random halvings.
The error on the other half is {tested["error"]:.2f} % if λ is chosen by mean error, and
{tested["rank"]:.2f} % if it is chosen by mean rank. The table shows the error of each λ on the same
halves. It also compares each λ with λ = {DEFAULT:g} on all datasets.

{table(pd.DataFrame(lines))}
"""


def draw(results: pd.DataFrame) -> plt.Figure:
    """Draw mean error against k, one panel per classifier, and against the ridge."""
    figure, axes = panels([*CLASSIFIERS, "ForwardSelection, mean of the three"], 2, 2.7)
    for panel, classifier in zip(axes, CLASSIFIERS, strict=False):
        each = {k: of_datasets(results, (k,), (classifier,)).filter(list(STYLES)) for k in KS}
        labels = {forward(1.0): "ForwardSelection", RANDOM: "at random"}
        curves(panel, without_unit_effect(pd.concat(each, axis=1)), STYLES, KS, labels)
        panel.set_title(classifier)
        panel.set_xlabel("variables selected")
    last = axes[len(CLASSIFIERS)]
    styles = {}
    each = {}
    for k, colour in zip(KS, (COLOURS[1], COLOURS[2], COLOURS[4]), strict=True):
        styles[f"{k} variables"] = (colour, "o-")
        found = without_unit_effect(
            of_datasets(results, (k,))[[forward(ridge) for ridge in RIDGES]]
        )
        for ridge, (_, errors_of_ridge) in zip(RIDGES, found.items(), strict=True):
            each[f"{ridge:g}", f"{k} variables"] = errors_of_ridge
    curves(last, pd.DataFrame(each), styles, [f"{ridge:g}" for ridge in RIDGES])
    last.set_xlabel("ridge")
    last.legend(loc="lower left")
    for panel in axes[:-1]:
        panel.set_ylim(0.0)
    add_legend(axes, 3)
    return figure


def text(results: pd.DataFrame, figure: str) -> str:
    shapes = results.groupby("dataset")[["n", "p", "classes"]].max()
    at_most = ", ".join(
        f"{count} of {len(shapes)} at k = {k}"
        for k in KS
        if (count := results[results.k == k].dataset.nunique()) < len(shapes)
    )
    everything = results[results.method == ALL].groupby("dataset")[["1-NN", "SVM"]].mean()
    alone = 100.0 * everything.mean()
    short = results[results.used < results.k]
    less = "; ".join(f"{m}: {len(r)}" for m, r in short.groupby("method"))
    return f"""
{(shapes.classes == 2).sum()} of {len(shapes)} datasets have two classes, and
{(shapes.classes > 2).sum()} have more classes. All have {shapes.n.min():,} to {shapes.n.max():,}
rows and {shapes.p.min():,} to {shapes.p.max():,} variables. Variables are selected on one half of
the rows. The table shows errors on the other half in %. They are means over splits and then over
the datasets with more than k variables ({at_most}, otherwise all). LDA has a shrunken covariance
(Ledoit and Wolf). 1-NN and the SVM (Gaussian kernel, `gamma="scale"`) receive variables of standard
deviation 1. *Rank* is the rank of a method's error on a dataset, averaged over datasets.
*Stability* is Nogueira's index over {results.split.max() + 1} half-samples with k = {STABLE_K},
averaged over datasets. The best value of a column is bold.

{main_table(results)}

With all variables, the error is {alone["1-NN"]:.1f} % for 1-NN and {alone["SVM"]:.1f} % for the
SVM. Few of the {(results.method == FASTCAN).sum()} selections of a method have fewer than k
variables ({less or "none"}).

![Mean error against k and, for forward selection, against its ridge λ.]({figure})

Error bars are 95 % intervals of the mean over datasets, after differences between datasets are
removed. In panels a to c, ForwardSelection has λ = 1.

A cell counts the datasets on which the error of ForwardSelection, averaged over the three
classifiers, is lower – equal – higher. The p-value in brackets comes from Wilcoxon's signed rank
test over the datasets, without correction. A cell is bold if p is below {LEVEL}.

{paired(results)}

**Ridge.** The table shows mean errors of the three classifiers in %. For large λ, the selection
becomes a ranking by F.

{ridge_table(results)}

{chosen_by_halves(results)}

**Each dataset.** The table shows the mean error of the three classifiers over all k in %. Brackets
show the numbers of rows, variables and classes.

{dataset_table(results)}

[All numbers](selectors-worth.csv) were made by `python demos/papers/selectors_worth.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("selectors-worth", __doc__)
    names = experiment.small(DATASETS, ["breast_cancer", "digits", "wine"])
    datasets = {dataset.name: dataset for dataset in experiment.datasets(names)}
    methods = [*OURS, FASTCAN, RANDOM, ALL]
    most_rows = experiment.small(MOST_ROWS, 200)
    seeds = range(experiment.small(N_SPLITS, 2))
    tasks = [(name, seed) for name in datasets for seed in seeds]
    results = experiment.each(functools.partial(work, datasets, most_rows, methods), tasks)
    experiment.publish(text(results, experiment.draw(draw(results))))


if __name__ == "__main__":
    main()
