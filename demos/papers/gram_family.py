"""Do the directions of most variance tell the classes, and if not, which method keeps what does?

Jung (2022), *Machine Learning: The Basics*, chapter 9, takes PCA for a start and warns of it: what
reconstructs best need not predict best. For labelled data it ranks all principal components by
q²/λ, the share of the label that each explains, and takes the largest, which is RankedPCA here.
Asked is how often a model errs on test rows that sees 1, 2, 5 and 10 components and nothing else:
of PCA, RankedPCA, SupervisedPCA (PCA of the most relevant quarter of the columns, 50 at most, 11 at
least), PLS, Discriminant and RidgeComponents, all else as it is by default; and of RidgeComponents
that do not weigh columns by their relevance, γ = 0.

What is planted are two classes in 200 rows of ten factors that vary ten times as much as the noise,
and have nothing to do with the classes but where it says so. "Told by little": the classes lie
apart along one direction of the noise. "Told by much": they lie apart along the first factor.

The real sets and their splits are those of extractors_worth.py: training rows, at most 600, are two
thirds of at most 1,200; columns of mean 0 and deviation 1 on the training rows; five splits, ten of
few rows. Linear discriminant analysis and 1-NN judge, on components as they come, each as large as
it is beside the others, for that is what a method hands on.
"""

import warnings
import zlib
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from _curves import add_legend, curves, levelled, panels
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
from extractors_worth import FEW, QS, duel, judged

PLANS = {
    "low-variance signal, 100 columns": (100, 4.0, False),
    "low-variance signal, 2,000 columns": (2_000, 6.0, False),
    "high-variance signal, 2,000 columns": (2_000, 0.0, True),
}
UNWEIGHTED = "Ridge, γ = 0"
METHODS = (PRINCIPAL, RANKED, SUPERVISED, PLS, DISCRIMINANT, RIDGE, UNWEIGHTED)
# Of what is drawn: the ridge without weights is in the tables.
STYLES = {
    PRINCIPAL: (COLOURS[3], "v-"),
    RANKED: (COLOURS[1], "s-"),
    SUPERVISED: (COLOURS[2], "^-"),
    PLS: (COLOURS[4], "D-"),
    DISCRIMINANT: (COLOURS[6], "x-"),
    RIDGE: (COLOURS[0], "o-"),
}
JUDGES = ("LDA", "1-NN")
UNDRAWN = ("low-variance signal, 100 columns",)
N_SPLITS, N_SPLITS_OF_FEW = 5, 10


def planted(plan: str, seed: int) -> Split:
    """Return two classes apart by so much along a direction of the noise, or along a factor."""
    p, apart, by_much = PLANS[plan]
    n = N_PLANTED + N_TEST
    rng = np.random.default_rng([zlib.crc32(plan.encode()), seed])
    y = rng.integers(2, size=n)
    directions = np.linalg.qr(rng.standard_normal((p, 11)))[0].T
    factors = rng.standard_normal((n, 10)) * np.sqrt(p)
    if by_much:
        factors[:, 0] *= 1.5
        factors[:, 0] += 4.0 * np.sqrt(p) * y
    X = rng.standard_normal((n, p)) + factors @ directions[:10]
    X += apart * y[:, None] * directions[10]
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
    A, y, B, told = split
    shape = {"family": family_of(problem), "problem": problem, "n": len(A), "p": A.shape[1]}
    shape |= {
        "split": seed,
        "larger class": 100.0 * float(np.mean(told != np.bincount(y).argmax())),
    }
    rows = []
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            Z, Zt = components(made(method, A, y, min(max(QS), A.shape[1])), A, B)
        rows += [
            shape | {"method": method, "q": q} | judged(Z[:, :q], y, Zt[:, :q], told, alike=False)
            for q in QS
        ]
    return rows


def errors(results: pd.DataFrame, judge: str, q: int) -> pd.DataFrame:
    """Return mean errors over splits: problems x methods."""
    rows = results[results.q == q]
    means = rows.pivot_table(index="problem", columns="method", values=judge, sort=False)
    return means[list(METHODS)]


def family_table(results: pd.DataFrame) -> str:
    """Return the mean errors of every family, the least of a line bold."""
    lines = []
    for family, here in results.groupby("family", sort=False):
        for judge in JUDGES:
            for q in QS:
                means = errors(here, judge, q).mean().round(1)
                told = {
                    m: f"**{v:.1f}**" if v == means.min() else f"{v:.1f}" for m, v in means.items()
                }
                lines.append({"": f"{family}, {judge}", "q": str(q)} | told)
    return table(pd.DataFrame(lines))


def problem_table(results: pd.DataFrame, q: int) -> str:
    lines = []
    for problem, here in results.groupby("problem", sort=False):
        means = errors(here, JUDGES[0], q).loc[problem].round(1)
        told = {m: f"**{v:.1f}**" if v == means.min() else f"{v:.1f}" for m, v in means.items()}
        n, p = here[["n", "p"]].max()
        chance = f"{here['larger class'].mean():.1f}"
        lines.append({f"q = {q}, LDA": f"{problem} ({n:,} × {p:,})", "larger class": chance} | told)
    return table(pd.DataFrame(lines))


def duel_table(results: pd.DataFrame) -> str:
    """Return by how much methods err less than PCA on the real sets."""
    real, lines = results[~results.problem.isin(PLANS)], []
    for judge in JUDGES:
        for method in METHODS[1:]:
            line = {"less than PCA": f"{method}, {judge}"}
            for q in QS:
                means = errors(real, judge, q)
                line[f"q = {q}"] = duel(means[PRINCIPAL] - means[method])
            lines.append(line)
    return table(pd.DataFrame(lines))


def draw(results: pd.DataFrame) -> plt.Figure:
    """Draw mean error against q, a row of panels a judge, a column a family."""
    families = [family for family in results.family.unique() if family not in UNDRAWN]
    short = [family.partition(" columns")[0] for family in families]
    titles = [f"{family}, {judge}" for judge in JUDGES for family in short]
    figure, axes = panels(titles, len(families), 2.2)
    pairs = [(family, judge) for judge in JUDGES for family in families]
    for panel, (family, judge) in zip(axes, pairs, strict=False):
        here = results[results.family == family]
        unit = "split" if family in PLANS else "problem"
        curves(panel, levelled(here.pivot_table(judge, unit, ["q", "method"])), STYLES, QS)
        panel.set_ylim(0.0)
    add_legend(axes)
    return figure


def text(results: pd.DataFrame, figure: str) -> str:
    counts = results[~results.problem.isin(PLANS)].groupby("family", sort=False).problem.nunique()
    sizes = "; ".join(f"{family}: {count}" for family, count in counts.items())
    return f"""
Planted classes, and real sets ({sizes}): mean errors in % on test rows, of models of q components.
SupervisedPCA is PCA of the most relevant quarter of the columns, {MOST_RELEVANT} at most. With two
classes Discriminant has one component, whatever q. Bold: lowest of a row.

![Panels of mean error against the number of components q: planted classes, two classes and many,
predicted by LDA and by 1-NN; one line per method, with 95 % intervals.]({figure})

Error bars: 95 % intervals of the mean over problems (planted ones: over splits), without
differences between them.

{family_table(results)}

**Error below that of PCA**, in points, on the real sets, with the 95 % interval over them, and the
number of sets with a lower – equal – higher error. Bold: p < 0.05, Wilcoxon's signed rank test,
single tests.

{duel_table(results)}

{problem_table(results, QS[1])}

`python demos/papers/gram_family.py`; [all numbers](gram-family.csv); made with
{machine()}.
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
