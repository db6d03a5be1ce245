"""What is the error of a model on q components?

Figure 1 of Fillmore (2009), *Sparse online supervised PCA*, repeated for every extractor with 1, 2,
5 and 10 components: RidgeComponents and SOSPCA of this package, PLS and PCA of scikit-learn, and
two methods that are implemented in `_extractors.py`: supervised PCA (Bair et al. 2006: PCA of the
most relevant columns; their number by 5-fold cross-validation) and treelets (Lee et al. 2008, of
the 500 most relevant columns; the level of the tree is also cross-validated, and the q most
relevant vectors of the basis are used). The q variables that ForwardSelection picks are included
for comparison. The measures are, for classes, the errors of LDA, 1-NN and an SVM (Gaussian kernel,
"scale", C = 1); for numbers, R2 of a linear regression; for several labels, the mean average
precision of a linear regression that ranks the rows for each label.

Training rows, at most 600, are two thirds of at most 1,200 (a stratified sample), the others are
test rows; five splits, ten of sets with 200 training rows or fewer. Columns come in the order of
the file, in units of their deviation on the training rows; words count as present or absent.
Components are scaled to deviation 1 before the models, except in the comparison of scales; equally
near rows vote.

RidgeComponents has several variants. Under this name it keeps the Gram matrix, K, and the loadings
of all columns (`max_loadings` is their number). With the default of 500, `K, two passes` has the
500 largest loadings, and `K, one pass` is regressed on the 500 to 1,000 columns that it keeps.
Pools of 200 and 500 keep no matrix.

Planted problems have 200 training rows, and noise of half the deviation of the signal. The
regressions on real data predict the columns a quarter and half along the file from the others; in
isolet and shapesall, where neighbours are similar, from those at least 40 away. ml_bibtex has its
20 most frequent labels.
"""

import warnings
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd
from _curves import add_legend, curves, panels, without_unit_effect
from _experiment import COLOURS, Dataset, Experiment, Row, machine, plt, table
from _extractors import (
    GROUPS,
    ONCE,
    OWN,
    POOL_200,
    POOL_500,
    RIDGE,
    SELECTED,
    STRONG,
    SUMS,
    SUPERVISED,
    TREELETS,
    TWICE,
    WEAK,
    indicators,
    kind_of,
    representations,
)
from _problems import (
    FAMILIES,
    FAMILY,
    LABELS,
    MANY,
    MOST_ROWS,
    PLANTED,
    REAL,
    TWO,
    Split,
    needed,
    split_of,
)
from scipy.stats import t as student
from scipy.stats import wilcoxon
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import average_precision_score
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.svm import SVC
from sospca_errors import p_value

QS = (1, 2, 5, 10)
N_SPLITS, N_SPLITS_OF_FEW, FEW = 5, 10, 300
CLASSIFIERS = ("LDA", "1-NN", "SVM")
R2, PRECISION = "R2", "mAP"
ALL_CLASSES, HELD_OUT = "all classes", "held out"
# Files of classes on which the rule was chosen; the others are held out.
CHOSEN_ON = ["colon_alon", "glioma", "isolet", "basehock", "internet_ads_adbench"]
CHOSEN_ON += ["ionosphere", "sonar", "digits"]
LEVEL = 0.05
MIN_PROBLEMS = 3  # for an interval
METHODS = [
    *(RIDGE, TWICE, ONCE, WEAK, STRONG, *SUMS, POOL_500, POOL_200),
    *("SOSPCA", SUPERVISED, TREELETS, "PLS", "PCA", SELECTED),
]
STYLES = {
    RIDGE: (COLOURS[0], "o-"),
    POOL_500: (COLOURS[0], "--"),
    "SOSPCA": (COLOURS[1], "s-"),
    SUPERVISED: (COLOURS[2], "^-"),
    TREELETS: (COLOURS[5], "x-"),
    "PLS": (COLOURS[4], "D-"),
    "PCA": (COLOURS[3], "v-"),
}
MEASURES = {TWO: CLASSIFIERS, MANY: CLASSIFIERS, LABELS: (PRECISION,), REAL: (R2,), PLANTED: (R2,)}


def measures(
    Z: np.ndarray, y: np.ndarray, Zt: np.ndarray, y_test: np.ndarray, *, scaled: bool = True
) -> Row:
    """Return the errors or scores of models on components, in %.

    Components are scaled to deviation 1, or all by the same factor.
    """
    deviation = Z.std(axis=0)
    there = deviation > 1e-9 * deviation.max(initial=1e-9)
    mean = Z[:, there].mean(axis=0)
    scale = deviation[there] if scaled else deviation[there].max(initial=0.0)
    Z, Zt = (Z[:, there] - mean) / scale, (Zt[:, there] - mean) / scale
    if kind_of(y) == "class":
        return {name: 100.0 * float(np.mean(a != y_test)) for name, a in predictions(Z, y, Zt)}
    fitted = y.mean(axis=0) + Zt @ np.linalg.lstsq(Z, y - y.mean(axis=0))[0]
    if y.ndim == 1:
        residual, total = np.square(y_test - fitted).sum(), np.square(y_test - y.mean()).sum()
        return {R2: 100.0 * float(max(-1.0, 1.0 - residual / total))}
    known = np.flatnonzero(y_test.any(axis=0) & y.any(axis=0))
    precisions = [average_precision_score(y_test[:, label], fitted[:, label]) for label in known]
    return {PRECISION: 100.0 * float(np.mean(precisions))}


def predictions(Z: np.ndarray, y: np.ndarray, Zt: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (classifier, predictions of the test rows); the larger class without components."""
    if not Z.shape[1]:
        for name in CLASSIFIERS:
            yield name, np.full(len(Zt), np.bincount(y).argmax())
        return
    yield "LDA", LinearDiscriminantAnalysis().fit(Z, y).predict(Zt)
    # Rows of few words have many nearest neighbours: all of them vote, not the first.
    distances = euclidean_distances(Zt, Z, squared=True).round(9)
    votes = (distances == distances.min(axis=1, keepdims=True)) @ indicators(y)
    yield "1-NN", np.unique(y)[votes.argmax(axis=1)]
    yield "SVM", SVC().fit(Z, y).predict(Zt)


def work(
    datasets: dict[str, Dataset], most_rows: int, problem: str, seed: int, group: str
) -> list[Row]:
    split: Split = split_of(datasets, problem, seed, most_rows)
    A, y, B, y_test = split
    shape = {"family": FAMILY[problem], "problem": problem, "n": len(A), "p": A.shape[1]}
    with warnings.catch_warnings():
        # With few rows a class may be too small for five folds.
        warnings.simplefilter("ignore", UserWarning)
        return [
            shape
            | {"split": seed, "method": method, "q": q}
            | measures(Z, y, Zt, y_test, scaled=group != OWN)
            for method, q, (Z, Zt) in representations(A, y, B, group, QS, seed)
        ]


def measures_of(results: pd.DataFrame) -> dict[str, Sequence[str]]:
    """Return the families of the results, and the measures of each."""
    there = set(results.family)
    return {family: names for family, names in MEASURES.items() if family in there}


def views(results: pd.DataFrame) -> dict[str, tuple[pd.DataFrame, Sequence[str]]]:
    """Return the groups of rows that are summarised together, and their measures."""
    classes = results[results.family.isin([TWO, MANY])]
    found = {
        ALL_CLASSES: (classes, CLASSIFIERS),
        HELD_OUT: (classes[~classes.problem.isin(CHOSEN_ON)], CLASSIFIERS),
    }
    return found | {
        family: (results[results.family == family], names)
        for family, names in measures_of(results).items()
    }


def means_of(rows: pd.DataFrame, names: Sequence[str], q: int) -> pd.DataFrame:
    """Return means over splits and these measures: problems x methods."""
    rows = rows[rows.q == q]
    rows = rows.assign(value=rows.reindex(columns=list(names)).mean(axis=1))
    return rows.pivot_table(index="problem", columns="method", values="value")


def family_table(results: pd.DataFrame, families: Sequence[str]) -> str:
    """Return mean measures of every method, the best of a column bold."""
    heads, columns = ["%"], [METHODS]
    measured = measures_of(results)
    for family, measure in [(f, m) for f in families for m in measured.get(f, ())]:
        name = measure if len(measured[family]) > 1 else family
        for q in QS:
            means = (
                means_of(results[results.family == family], [measure], q)
                .mean()
                .reindex(METHODS)
                .round(1)
            )
            best = means.max() if measure in (R2, PRECISION) else means.min()
            heads.append(f"{name}, q = {q}" if q == QS[0] else f"{q}")
            columns.append([f"**{v:.1f}**" if v == best else f"{v:.1f}" for v in means])
    return table(pd.DataFrame(list(zip(*columns, strict=True)), columns=heads))


def compared(gains: pd.Series) -> str:
    """Return a mean with its interval, and counts above, at and below 0; bold if significant."""
    gains = gains.dropna().round(9)
    k = len(gains)
    text = f"{gains.mean():+.1f}"
    if k >= MIN_PROBLEMS:
        half = student.ppf(1.0 - LEVEL / 2.0, k - 1) * gains.std() / np.sqrt(k)
        text += f" ± {half:.1f}"
    text = text.replace("-", "−")
    counts = "–".join(str(int(np.sum(np.sign(gains) == sign))) for sign in (1, 0, -1))
    is_significant = p_value(wilcoxon, gains.to_numpy()) < LEVEL
    return f"**{text}** {counts}" if is_significant else f"{text} {counts}"


def comparisons(
    results: pd.DataFrame, method: str, rivals: Sequence[str], *, by_measure: bool
) -> str:
    """Return how much better a method is than others, by family and q, and perhaps by measure."""
    lines = []
    for rival in rivals:
        for name, (rows, names) in views(results).items():
            for which in [[m] for m in names] if by_measure else [names]:
                sign = 1.0 if which[0] in (R2, PRECISION) else -1.0
                group = f"{name}, {which[0]}" if len(which) < len(names) else name
                line = {f"{method} against": f"{rival}: {group}"}
                for q in QS:
                    means = means_of(rows, which, q)
                    line[f"q = {q}"] = compared(sign * (means[method] - means[rival]))
                lines.append(line)
    return table(pd.DataFrame(lines))


def scale_table(results: pd.DataFrame) -> str:
    """Return the errors on components of unit variance and on unscaled components."""
    heads = ["components of unit variance, unscaled"]
    lines = [[name] for name in (RIDGE, POOL_500, "PLS", "PCA")]
    for family in (TWO, MANY):
        for measure in CLASSIFIERS[1:]:
            for q in QS[1:]:
                rows = results[results.family == family]
                means = means_of(rows, [measure], q).mean()
                heads.append(f"{family}, {measure}, q = {q}" if q == QS[1] else f"{q}")
                for line in lines:
                    line.append(f"{means[line[0]]:.1f}, {means[f'{line[0]}, {OWN}']:.1f}")
    return table(pd.DataFrame(lines, columns=heads))


def problem_table(results: pd.DataFrame, q: int) -> str:
    """Return the mean measure of every problem and every method of the figure."""
    lines = []
    shapes = results.groupby("problem")[["n", "p"]].max()
    for family, names in measures_of(results).items():
        means = means_of(results[results.family == family], names, q)[list(STYLES)].round(1)
        for problem in [name for name in FAMILIES[family] if name in means.index]:
            values = means.loc[problem]
            best = values.max() if names[0] in (R2, PRECISION) else values.min()
            n, p = shapes.loc[problem]
            cells = {m: f"**{v:.1f}**" if v == best else f"{v:.1f}" for m, v in values.items()}
            lines.append({f"q = {q}": f"{problem} ({n:,} × {p:,})"} | cells)
    return table(pd.DataFrame(lines))


def draw(results: pd.DataFrame) -> plt.Figure:
    """Draw every measure of every family against q."""
    there = measures_of(results)
    pairs = [(family, measure) for family in there for measure in there[family]]
    drawn = {method: style for method, style in STYLES.items() if method != POOL_500}
    titles = [
        f"{family}: {measure}" if family in (TWO, MANY) else family for family, measure in pairs
    ]
    figure, axes = panels(titles, 3, 2.3)
    for panel, (family, measure) in zip(axes, pairs, strict=False):
        here = results[results.family == family]
        found = pd.concat(
            {q: means_of(here, [measure], q).reindex(columns=list(drawn)) for q in QS}, axis=1
        )
        curves(panel, without_unit_effect(found), drawn, QS)
        labels = {R2: "R², %", PRECISION: "average precision, %"}
        panel.set_ylabel(labels.get(measure, "error, %"))
        panel.set_ylim(0.0, None)
    add_legend(axes)
    return figure


def text(results: pd.DataFrame, figure: str) -> str:
    shapes = results.groupby("problem")[["n", "p"]].max()
    counts = results.groupby("family").problem.nunique().reindex(list(FAMILIES), fill_value=0)
    return f"""
{counts[TWO]} problems have two classes, {counts[MANY]} have many classes, and {counts[LABELS]} have
several labels. {counts[REAL]} problems are regressions on real data, and {counts[PLANTED]} are
regressions on planted data. All have {shapes.n.min():,} to {shapes.n.max():,} training rows and
{shapes.p.min():,} to {shapes.p.max():,} columns. Numbers are means over splits and then over
problems, in %. The best number of a column is bold.

`RidgeComponents` uses the Gram matrix K and the loadings of all columns. `K, two passes` uses the
500 largest loadings, and `K, one pass` uses the loadings of 500 to 1,000 columns. The next rows use
another power γ, or a pool. `q selected` means q picks of ForwardSelection.

![Nine panels, one per measure and family of problems: means against the number of components q, one
line per extractor.]({figure})

Error bars are 95 % intervals of the mean over the problems of a family, after differences between
problems are removed. The two problems with several labels have no error bars.

Two classes, mean error:

{family_table(results, [TWO])}

Many classes, mean error:

{family_table(results, [MANY])}

Several labels, mean average precision, and regression, R²:

{family_table(results, [LABELS, REAL, PLANTED])}

**RidgeComponents compared with PLS, and the pool compared with SOSPCA.** Cells show the gain in
points (lower error, higher precision or R²) with its 95 % interval over problems. They also count
the problems on which the first method is better – equal – worse. A gain is bold if p < {LEVEL} by
Wilcoxon's signed rank test over problems, without multiplicity correction. This is impossible with
five problems or fewer. `held out` means the classification datasets that were not used to design
the method.

{comparisons(results, RIDGE, ["PLS"], by_measure=True)}

{comparisons(results, POOL_500, ["SOSPCA"], by_measure=True)}

RidgeComponents compared with the other methods, by the mean of the three classifiers:

{comparisons(results, RIDGE, [SUPERVISED, TREELETS, "PCA"], by_measure=False)}

**Scale.** Cells show the mean error on components scaled to unit variance (as in all other tables)
and on unscaled components.

{scale_table(results)}

Mean error, mean average precision or R² of every problem:

{problem_table(results, QS[1])}

{problem_table(results, QS[-1])}

[All numbers](extractors-worth.csv) were made by `python demos/papers/extractors_worth.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("extractors-worth", __doc__)
    most_rows = experiment.small(MOST_ROWS, 200)
    slice_of = [
        "breast_cancer",
        "wine",
        "digits",
        "diabetes",
        "diabetes, squares",
        "dense of 1,000",
    ]
    problems = experiment.small(list(FAMILY), slice_of)
    files = dict.fromkeys(name for name in map(needed, problems) if name)
    datasets = {dataset.name: dataset for dataset in experiment.datasets(files)}
    tasks = [
        (problem, seed, group)
        for group in GROUPS
        for problem in problems
        if needed(problem) is None or needed(problem) in datasets
        if group != OWN or FAMILY[problem] in (TWO, MANY)
        for seed in range(experiment.small(n_splits(datasets, problem), 2))
    ]
    results = experiment.each(partial(work, datasets, most_rows), tasks)
    experiment.publish(text(results, experiment.draw(draw(results))))


def n_splits(datasets: dict[str, Dataset], problem: str) -> int:
    file = needed(problem)
    is_small = FAMILY[problem] == PLANTED or (file and datasets[file].y.size <= FEW)
    return N_SPLITS_OF_FEW if is_small else N_SPLITS


if __name__ == "__main__":
    main()
