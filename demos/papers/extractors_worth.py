"""What are q components worth: how often does a model err that sees nothing else?

Figure 1 of Fillmore (2009), *Sparse online supervised PCA*, asked anew, of every extractor at
1, 2, 5 and 10 components: RidgeComponents and SOSPCA of this package, PLS and PCA of scikit-learn,
and two rivals that are written out in `_extractors.py`: supervised PCA (Bair et al. 2006: PCA of
the most relevant columns; 5-fold cross-validation says how many) and treelets (Lee et al. 2008, of
the 500 most relevant columns; how far up the tree is cross-validated too, and the q most relevant
of the basis are taken). Beside them stand the q variables that ForwardSelection picks. On classes
LDA, 1-NN and an SVM (Gaussian kernel, "scale", C = 1) judge by their errors; on a number linear
regression by its R2; on several labels linear regression by how it ranks the rows, label by label
(mean average precision).

Training rows, at most 600, are two thirds of at most 1,200 (a stratified sample), the others are
test rows; five splits, ten of those with 200 training rows or less. Columns come in the order of
the file, in units of their deviation on the training rows, but words count as present or absent.
Components are brought to deviation 1 before they are judged, but where their own scale is asked
for; equally near rows vote.

RidgeComponents is tried in several ways. By that name here it keeps the Gram matrix, K, and has the
loadings of all columns (`max_loadings` is their number). With the default of 500, `K, two passes`
has those of the 500 largest, and `K, one pass` is regressed on the 500 to 1,000 columns that it
holds. Pools of 200 and 500 keep no matrix.

What is planted has 200 training rows, and noise of half the signal's deviation. The regressions on
real data tell the columns a quarter and half along the file by the others; of isolet and shapesall,
where neighbours are alike, by those at least 40 away. Of ml_bibtex the 20 most frequent labels.
"""

import warnings
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd
from _curves import add_legend, curves, levelled, panels
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
# Of the classes the files on which the rule was chosen; the others are held out.
CHOSEN_ON = ["colon_alon", "glioma", "isolet", "basehock", "internet_ads_adbench"]
CHOSEN_ON += ["ionosphere", "sonar", "digits"]
LEVEL = 0.05
LEAST_PROBLEMS = 3  # of which there is an interval
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


def judged(
    Z: np.ndarray, y: np.ndarray, Zt: np.ndarray, told: np.ndarray, *, alike: bool = True
) -> Row:
    """Return in percent what models err, or explain, that see components, all of deviation 1."""
    deviation = Z.std(axis=0)
    there = deviation > 1e-9 * deviation.max(initial=1e-9)
    mean = Z[:, there].mean(axis=0)
    scale = deviation[there] if alike else deviation[there].max(initial=0.0)
    Z, Zt = (Z[:, there] - mean) / scale, (Zt[:, there] - mean) / scale
    if kind_of(y) == "class":
        return {name: 100.0 * float(np.mean(a != told)) for name, a in answers(Z, y, Zt)}
    fitted = y.mean(axis=0) + Zt @ np.linalg.lstsq(Z, y - y.mean(axis=0))[0]
    if y.ndim == 1:
        left, all_there_is = np.square(told - fitted).sum(), np.square(told - y.mean()).sum()
        return {R2: 100.0 * float(max(-1.0, 1.0 - left / all_there_is))}
    known = np.flatnonzero(told.any(axis=0) & y.any(axis=0))
    precisions = [average_precision_score(told[:, label], fitted[:, label]) for label in known]
    return {PRECISION: 100.0 * float(np.mean(precisions))}


def answers(Z: np.ndarray, y: np.ndarray, Zt: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (classifier, what it says of the test rows); the larger class without components."""
    if not Z.shape[1]:
        for name in CLASSIFIERS:
            yield name, np.full(len(Zt), np.bincount(y).argmax())
        return
    yield "LDA", LinearDiscriminantAnalysis().fit(Z, y).predict(Zt)
    # Rows of few words are equally near to many: these vote, the first of them says nothing.
    apart = euclidean_distances(Zt, Z, squared=True).round(9)
    votes = (apart == apart.min(axis=1, keepdims=True)) @ indicators(y)
    yield "1-NN", np.unique(y)[votes.argmax(axis=1)]
    yield "SVM", SVC().fit(Z, y).predict(Zt)


def work(
    datasets: dict[str, Dataset], most_rows: int, problem: str, seed: int, group: str
) -> list[Row]:
    split: Split = split_of(datasets, problem, seed, most_rows)
    A, y, B, told = split
    shape = {"family": FAMILY[problem], "problem": problem, "n": len(A), "p": A.shape[1]}
    with warnings.catch_warnings():
        # Of few rows five are too few of a class to be in every fold.
        warnings.simplefilter("ignore", UserWarning)
        return [
            shape
            | {"split": seed, "method": method, "q": q}
            | judged(Z, y, Zt, told, alike=group != OWN)
            for method, q, (Z, Zt) in representations(A, y, B, group, QS, seed)
        ]


def asked_of(results: pd.DataFrame) -> dict[str, Sequence[str]]:
    """Return the families that are there, and how each is judged."""
    there = set(results.family)
    return {family: measures for family, measures in MEASURES.items() if family in there}


def views(results: pd.DataFrame) -> dict[str, tuple[pd.DataFrame, Sequence[str]]]:
    """Return the rows of which something is told together, and how they are judged."""
    classes = results[results.family.isin([TWO, MANY])]
    found = {
        ALL_CLASSES: (classes, CLASSIFIERS),
        HELD_OUT: (classes[~classes.problem.isin(CHOSEN_ON)], CLASSIFIERS),
    }
    return found | {
        family: (results[results.family == family], measures)
        for family, measures in asked_of(results).items()
    }


def means_of(rows: pd.DataFrame, measures: Sequence[str], q: int) -> pd.DataFrame:
    """Return means over splits and these measures: problems x methods."""
    rows = rows[rows.q == q]
    rows = rows.assign(value=rows.reindex(columns=list(measures)).mean(axis=1))
    return rows.pivot_table(index="problem", columns="method", values="value")


def family_table(results: pd.DataFrame, families: Sequence[str]) -> str:
    """Return mean measures of every method, the best of a column bold."""
    heads, columns = ["%"], [METHODS]
    asked = asked_of(results)
    for family, measure in [(f, m) for f in families for m in asked.get(f, ())]:
        name = measure if len(asked[family]) > 1 else family
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


def duel(gains: pd.Series) -> str:
    """Return a mean with its interval, and how often it is above 0, 0 and below; bold if clear."""
    gains = gains.dropna().round(9)
    k = len(gains)
    told = f"{gains.mean():+.1f}"
    if k >= LEAST_PROBLEMS:
        half = student.ppf(1.0 - LEVEL / 2.0, k - 1) * gains.std() / np.sqrt(k)
        told += f" ± {half:.1f}"
    told = told.replace("-", "−")
    counts = "–".join(str(int(np.sum(np.sign(gains) == sign))) for sign in (1, 0, -1))
    is_clear = p_value(wilcoxon, gains.to_numpy()) < LEVEL
    return f"**{told}** {counts}" if is_clear else f"{told} {counts}"


def duels(results: pd.DataFrame, method: str, rivals: Sequence[str], *, apart: bool) -> str:
    """Return by how much a method is better than rivals, by family and perhaps measure, and q."""
    lines = []
    for rival in rivals:
        for name, (rows, measures) in views(results).items():
            for which in [[m] for m in measures] if apart else [measures]:
                sign = 1.0 if which[0] in (R2, PRECISION) else -1.0
                told = f"{name}, {which[0]}" if len(which) < len(measures) else name
                line = {f"{method} against": f"{rival}: {told}"}
                for q in QS:
                    means = means_of(rows, which, q)
                    line[f"q = {q}"] = duel(sign * (means[method] - means[rival]))
                lines.append(line)
    return table(pd.DataFrame(lines))


def scale_table(results: pd.DataFrame) -> str:
    """Return the errors on components of deviation 1 and on components as they come."""
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
    """Return of every problem the mean measure of the methods that are drawn."""
    lines = []
    shapes = results.groupby("problem")[["n", "p"]].max()
    for family, measures in asked_of(results).items():
        means = means_of(results[results.family == family], measures, q)[list(STYLES)].round(1)
        for problem in [name for name in FAMILIES[family] if name in means.index]:
            values = means.loc[problem]
            best = values.max() if measures[0] in (R2, PRECISION) else values.min()
            n, p = shapes.loc[problem]
            told = {m: f"**{v:.1f}**" if v == best else f"{v:.1f}" for m, v in values.items()}
            lines.append({f"q = {q}": f"{problem} ({n:,} × {p:,})"} | told)
    return table(pd.DataFrame(lines))


def draw(results: pd.DataFrame) -> plt.Figure:
    """Draw every measure of every family against q."""
    there = asked_of(results)
    asked = [(family, measure) for family in there for measure in there[family]]
    drawn = {method: style for method, style in STYLES.items() if method != POOL_500}
    titles = [
        f"{family}: {measure}" if family in (TWO, MANY) else family for family, measure in asked
    ]
    figure, axes = panels(titles, 3, 2.3)
    for panel, (family, measure) in zip(axes, asked, strict=False):
        here = results[results.family == family]
        found = pd.concat(
            {q: means_of(here, [measure], q).reindex(columns=list(drawn)) for q in QS}, axis=1
        )
        curves(panel, levelled(found), drawn, QS)
        told = {R2: "R², %", PRECISION: "average precision, %"}
        panel.set_ylabel(told.get(measure, "error, %"))
        panel.set_ylim(0.0, None)
    add_legend(axes)
    return figure


def text(results: pd.DataFrame, figure: str) -> str:
    shapes = results.groupby("problem")[["n", "p"]].max()
    counts = results.groupby("family", sort=False).problem.nunique()
    sizes = "; ".join(f"{family}: {count}" for family, count in counts.items())
    return f"""
{len(shapes)} problems ({sizes}). Training rows from
{shapes.n.min():,} to {shapes.n.max():,}, columns from {shapes.p.min():,} to {shapes.p.max():,}.
Means over splits, then over problems, in %. `RidgeComponents` has K and the loadings of all
columns; the rows below it obtain them otherwise, or have other powers γ; `q selected` are the picks
of ForwardSelection. Bold: best of a column.

![Nine panels of means against the number of components q: the errors of LDA, 1-NN and an SVM on two
classes and on many, the mean average precision on several labels, and R² of real and of planted
regressions; one line per extractor, with 95 % intervals.]({figure})

Error bars: 95 % intervals of the mean over the problems of a family, without differences between
problems; the two problems of several labels have none.

Two classes, mean error:

{family_table(results, [TWO])}

Many classes, mean error:

{family_table(results, [MANY])}

Several labels, mean average precision, and regression, R²:

{family_table(results, [LABELS, REAL, PLANTED])}

**Compared with PLS, and the pool with SOSPCA.** Gain in points (lower error, or more explained)
with the 95 % interval over problems, and the number of problems on which it is better – equal –
worse. Bold: p < {LEVEL}, Wilcoxon's signed rank test over problems (single tests; impossible with
five problems or fewer). `held out`: classification sets that were not used to choose the rule.

{duels(results, RIDGE, ["PLS"], apart=True)}

{duels(results, POOL_500, ["SOSPCA"], apart=True)}

Compared with the others, means of the three classifiers:

{duels(results, RIDGE, [SUPERVISED, TREELETS, "PCA"], apart=False)}

**Scale.** Mean errors on components scaled to unit variance, as in all other tables, and on
unscaled components.

{scale_table(results)}

Every problem, mean error, mean average precision or R²:

{problem_table(results, QS[1])}

{problem_table(results, QS[-1])}

`python demos/papers/extractors_worth.py`; [all numbers](extractors-worth.csv); made with
{machine()}.
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
