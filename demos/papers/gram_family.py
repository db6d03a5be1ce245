"""Do the directions of largest variance separate classes, and which methods find those that do?

Jung (2022), *Machine Learning: The Basics*, chapter 9, starts with PCA and warns that the best
reconstruction need not be the best prediction. For labelled data it ranks all principal components
by q²/λ, the share of the label that each explains, and takes the largest; this is RankedPCA. The
measure is the error on test rows of a model that has 1, 2, 5 and 10 components as its only inputs:
of PCA, RankedPCA, SupervisedPCA (PCA of the most relevant quarter of the columns, 50 at most, 11 at
least), PLS, Discriminant and RidgeComponents, with default parameters otherwise; and of
RidgeComponents that do not weight columns by their relevance, γ = 0.

The planted problems are two classes in 200 rows of ten factors whose deviation is ten times that of
the noise. "Low-variance signal": the classes differ along one direction of the noise.
"High-variance signal": they differ along the first factor.

The real sets and their splits are those of extractors_worth.py: training rows, at most 600, are two
thirds of at most 1,200; columns have mean 0 and deviation 1 on the training rows; five splits, ten
of sets with few rows. The models are linear discriminant analysis and 1-NN, on unscaled components,
with their relative sizes.
"""

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _curves import add_legend, curves, panels, without_unit_effect
from _experiment import COLOURS, Dataset, Experiment, Row, machine, plt, table
from _gram_family import (
    DISCRIMINANT,
    MOST_RELEVANT,
    PLS,
    PRINCIPAL,
    RANKED,
    RIDGE,
    SUPERVISED,
    components,
    learnt,
)
from _problems import (
    FAMILIES,
    FAMILY,
    MANY,
    MOST_ROWS,
    N_PLANTED,
    N_TEST,
    TWO,
    Split,
    needed,
    split_of,
    standardised,
)
from extractors_worth import FEW, QS, compared, measures


class Plan(NamedTuple):
    """Two classes `distance` apart along the noise, or apart along the first factor."""

    n_columns: int
    distance: float
    along_factor: bool
    seed: int


PLANS = {
    "low-variance signal, 100 columns": Plan(100, 4.0, False, 2817552143),
    "low-variance signal, 2,000 columns": Plan(2_000, 6.0, False, 4193219919),
    "high-variance signal, 2,000 columns": Plan(2_000, 0.0, True, 2970228975),
}
UNWEIGHTED = "Ridge, γ = 0"
METHODS = (PRINCIPAL, RANKED, SUPERVISED, PLS, DISCRIMINANT, RIDGE, UNWEIGHTED)
# Methods in the figure; the ridge without weights is in the tables.
STYLES = {
    PRINCIPAL: (COLOURS[3], "v-"),
    RANKED: (COLOURS[1], "s-"),
    SUPERVISED: (COLOURS[2], "^-"),
    PLS: (COLOURS[4], "D-"),
    DISCRIMINANT: (COLOURS[6], "x-"),
    RIDGE: (COLOURS[0], "o-"),
}
CLASSIFIERS = ("LDA", "1-NN")
UNDRAWN = ("low-variance signal, 100 columns",)
N_SPLITS, N_SPLITS_OF_FEW = 5, 10


def planted(plan: str, seed: int) -> Split:
    """Return rows of two classes that differ along a direction of the noise, or along a factor."""
    p, distance, along_factor, plan_seed = PLANS[plan]
    n = N_PLANTED + N_TEST
    rng = np.random.default_rng([plan_seed, seed])
    y = rng.integers(2, size=n)
    directions = np.linalg.qr(rng.standard_normal((p, 11)))[0].T
    factors = rng.standard_normal((n, 10)) * np.sqrt(p)
    if along_factor:
        factors[:, 0] *= 1.5
        factors[:, 0] += 4.0 * np.sqrt(p) * y
    X = rng.standard_normal((n, p)) + factors @ directions[:10]
    X += distance * y[:, None] * directions[10]
    return standardised(X[:N_PLANTED], y[:N_PLANTED], X[N_PLANTED:], y[N_PLANTED:])


def family_of(problem: str) -> str:
    return problem if problem in PLANS else FAMILY[problem]


def made(method: str, A: np.ndarray, y: np.ndarray, q: int) -> Any:
    if method == UNWEIGHTED:
        return learnt(RIDGE, A, y, q, relevance_power=0.0)
    return learnt(method, A, y, q)


def work(datasets: dict[str, Dataset], most_rows: int, problem: str, seed: int) -> list[Row]:
    """Judge every method on one split."""
    if problem in PLANS:
        split = planted(problem, seed)
    else:
        split = split_of(datasets, problem, seed, most_rows)
    A, y, B, y_test = split
    shape = {"family": family_of(problem), "problem": problem, "n": len(A), "p": A.shape[1]}
    shape |= {
        "split": seed,
        "larger class": 100.0 * float(np.mean(y_test != np.bincount(y).argmax())),
    }
    rows = []
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            Z, Zt = components(made(method, A, y, min(max(QS), A.shape[1])), A, B)
        rows += [
            shape
            | {"method": method, "q": q}
            | measures(Z[:, :q], y, Zt[:, :q], y_test, scaled=False)
            for q in QS
        ]
    return rows


def errors(results: pd.DataFrame, classifier: str, q: int) -> pd.DataFrame:
    """Return mean errors over splits: problems x methods."""
    rows = results[results.q == q]
    means = rows.pivot_table(index="problem", columns="method", values=classifier, sort=False)
    return means[list(METHODS)]


def family_table(results: pd.DataFrame) -> str:
    """Return the mean errors of every family, the lowest of a row bold."""
    lines = []
    for family, here in results.groupby("family", sort=False):
        for classifier in CLASSIFIERS:
            for q in QS:
                means = errors(here, classifier, q).mean().round(1)
                cells = {
                    m: f"**{v:.1f}**" if v == means.min() else f"{v:.1f}" for m, v in means.items()
                }
                lines.append({"": f"{family}, {classifier}", "q": str(q)} | cells)
    return table(pd.DataFrame(lines))


def problem_table(results: pd.DataFrame, q: int) -> str:
    lines = []
    for problem, here in results.groupby("problem", sort=False):
        means = errors(here, CLASSIFIERS[0], q).loc[problem].round(1)
        cells = {m: f"**{v:.1f}**" if v == means.min() else f"{v:.1f}" for m, v in means.items()}
        n, p = here[["n", "p"]].max()
        chance = f"{here['larger class'].mean():.1f}"
        lines.append(
            {f"q = {q}, LDA": f"{problem} ({n:,} × {p:,})", "larger class": chance} | cells
        )
    return table(pd.DataFrame(lines))


def comparison_table(results: pd.DataFrame) -> str:
    """Return the differences in error to PCA on the real sets."""
    real, lines = results[~results.problem.isin(PLANS)], []
    for classifier in CLASSIFIERS:
        for method in METHODS[1:]:
            line = {"less than PCA": f"{method}, {classifier}"}
            for q in QS:
                means = errors(real, classifier, q)
                line[f"q = {q}"] = compared(means[PRINCIPAL] - means[method])
            lines.append(line)
    return table(pd.DataFrame(lines))


def draw(results: pd.DataFrame) -> plt.Figure:
    """Draw mean error against q, one row of panels per model, one column per family."""
    families = [family for family in results.family.unique() if family not in UNDRAWN]
    short = [family.partition(" columns")[0] for family in families]
    titles = [f"{family}, {classifier}" for classifier in CLASSIFIERS for family in short]
    figure, axes = panels(titles, len(families), 2.2)
    pairs = [(family, classifier) for classifier in CLASSIFIERS for family in families]
    for panel, (family, classifier) in zip(axes, pairs, strict=False):
        here = results[results.family == family]
        unit = "split" if family in PLANS else "problem"
        curves(
            panel,
            without_unit_effect(here.pivot_table(classifier, unit, ["q", "method"])),
            STYLES,
            QS,
        )
        panel.set_ylim(0.0)
    add_legend(axes)
    return figure


def text(results: pd.DataFrame, figure: str) -> str:
    real = results[~results.problem.isin(PLANS)]
    counts = real.groupby("family").problem.nunique().reindex([TWO, MANY], fill_value=0)
    return f"""
Cells show mean errors on test rows, in %, with q components. The problems are planted classes,
{counts[TWO]} real datasets with two classes, and {counts[MANY]} real datasets with many classes.
SupervisedPCA is PCA of the most relevant quarter of the columns, but of {MOST_RELEVANT} columns at
most. With two classes, Discriminant has one component at every q. The lowest error of a row is
bold.

![Mean error against the number of components q, one panel per family and classifier, one line per
method.]({figure})

Error bars are 95 % intervals of the mean over real problems, or over splits of planted problems,
after differences between these are removed.

{family_table(results)}

**Error of PCA minus error of the method.** Cells show the mean over the real datasets, in points,
with its 95 % interval. They also count the datasets on which the method has a lower – equal –
higher error. A mean is bold if p < 0.05 by Wilcoxon's signed rank test, without multiplicity
correction.

{comparison_table(results)}

{problem_table(results, QS[1])}

[All numbers](gram-family.csv) were made by `python demos/papers/gram_family.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("gram-family", __doc__)
    most_rows = experiment.small(MOST_ROWS, 150)
    real = experiment.small([*FAMILIES[TWO], *FAMILIES[MANY]], ["breast_cancer", "wine"])
    plans = list(experiment.small(PLANS, list(PLANS)[:1]))
    files = dict.fromkeys(filter(None, map(needed, real)))
    datasets = {dataset.name: dataset for dataset in experiment.datasets(files)}
    few = {name for name, dataset in datasets.items() if dataset.y.size <= FEW} | set(plans)
    tasks = [
        (problem, seed)
        for problem in [*plans, *datasets]
        for seed in range(experiment.small(N_SPLITS_OF_FEW if problem in few else N_SPLITS, 1))
    ]
    results = experiment.each(partial(work, datasets, most_rows), tasks)
    experiment.publish(text(results, experiment.draw(draw(results))))


if __name__ == "__main__":
    main()
