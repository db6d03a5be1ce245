"""How well do factorisations reconstruct columns, with gross errors and with missing values?

Three studies of SparsePCA, RobustPCA and ProbabilisticPCA, the methods of one online factorisation,
compared with PCA.

1. Reconstruction. The share of the variance of all columns that is lost if all columns are
   predicted from 1 to 50 components, by the linear regression with the least error on the training
   rows. On these rows PCA loses least by definition; on test rows it need not. RandomProjection is
   included for comparison. At most 1,200 rows, two thirds of them for training; columns as in the
   file (logarithms for leukemia), centred. Three splits.
2. Purpose of each method. 200 rows of 1,000 columns that depend on five hidden variables, with
   noise of deviation 0.5. "Gross errors": one value in twenty is replaced by one of up to 30
   deviations. "Few columns": each hidden variable affects 40 columns. "Missing": 60 columns, a
   fifth or a half of whose values is missing; all methods except ProbabilisticPCA get the means of
   the columns instead. Five samples. Two measures: the share of the hidden variables in the space
   of five components (the mean squared cosine of the principal angles), and the largest squared
   correlation of each with a single component.
3. Missing values. A fifth of the values of real columns, scaled to deviation 1, is left out at
   random and predicted from ten components of ProbabilisticPCA, and for comparison of PCA with gaps
   filled by the means of the columns; errors are in % of those of the means. Three samples, at most
   800 rows.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from _curves import add_legend, curves, panels, without_unit_effect
from _experiment import COLOURS, Dataset, Experiment, Row, machine, plt, table
from _gram_family import (
    PRINCIPAL,
    PROBABILISTIC,
    RANDOM,
    ROBUST,
    SPARSE,
    components,
    learnt,
)
from scipy.linalg import subspace_angles
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from sospca_errors import prepared

QS = (1, 2, 5, 10, 20, 50)
N_SPLITS, N_DRAWN = 3, 5
REAL = ("leukemia_golub3571", "isolet", "mnist_10k")
# For missing values only.
NARROW = ("crop", "ml_emotions", "spambase")
METHODS = (PRINCIPAL, SPARSE, ROBUST, PROBABILISTIC)
STYLES = {
    PRINCIPAL: (COLOURS[3], "v-"),
    SPARSE: (COLOURS[2], "s-"),
    ROBUST: (COLOURS[1], "^-"),
    PROBABILISTIC: (COLOURS[0], "o-"),
    RANDOM: (COLOURS[5], "x-"),
}
RECONSTRUCTION, PLANTED, MISSING = "reconstruction", "planted", "missing"
# Rows.
MOST = {RECONSTRUCTION: 1_200, PLANTED: 200, MISSING: 800}
GROSS, FEW = "gross errors", "few columns"
LACKING = {"missing, a fifth": 0.2, "missing, half": 0.5}
PLANS = (GROSS, FEW, *LACKING)
N_HIDDEN, N_COLUMNS_OF_ONE, N_COMPONENTS = 5, 40, 10


def reconstruction(dataset: Dataset, most_rows: int, method: str, seed: int) -> list[Row]:
    """Return the lost variance of training and of test rows, in %, for every q."""
    X, _ = prepared(dataset, most_rows)
    A, B = train_test_split(X, train_size=2 / 3, random_state=seed)
    mean = A.mean(axis=0)
    A, B = A - mean, B - mean
    most = min(max(QS), *A.shape)
    y = np.zeros(len(A))
    # The components of a factorisation depend on how many there are.
    several = method in (SPARSE, ROBUST, PROBABILISTIC)
    of = {} if several else {most: learnt(method, A, y, most)}
    rows = []
    for q in [q for q in QS if q <= most]:
        model = learnt(method, A, y, q) if several else of[most]
        Z, Zt = (part[:, :q] for part in components(model, A, B))
        about = Z.mean(axis=0)
        back = np.linalg.lstsq(Z - about, A)[0]
        row = {"part": RECONSTRUCTION, "problem": dataset.name, "n": len(A), "p": A.shape[1]}
        row |= {"split": seed, "method": method, "q": q, "zeros": zeros(model, A.shape[1], q)}
        for which, rest in {
            "training": A - (Z - about) @ back,
            "test": B - (Zt - about) @ back,
        }.items():
            whole = A if which == "training" else B
            row[which] = 100.0 * float(np.square(rest).sum() / np.square(whole).sum())
        rows.append(row)
    return rows


def zeros(model: Any, p: int, q: int) -> float:
    """Return the share of zero loadings, in %."""
    loadings = getattr(model, "loadings", {})
    there = sum(weight != 0.0 for of in loadings.values() for weight in of.values())
    return 100.0 * (1.0 - there / (p * q))


def plan(name: str, seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Return hidden variables, and columns that depend on them."""
    rng = np.random.default_rng([seed, PLANS.index(name)])
    hidden = rng.standard_normal((n, N_HIDDEN))
    weights = rng.standard_normal((N_HIDDEN, p))
    if name == FEW:
        columns = rng.permutation(p)[: N_HIDDEN * N_COLUMNS_OF_ONE].reshape(N_HIDDEN, -1)
        mask = np.zeros_like(weights)
        mask[np.arange(N_HIDDEN)[:, None], columns] = 2.0
        weights = weights * mask
    X = hidden @ weights + 0.5 * rng.standard_normal((n, p))
    if name == GROSS:
        wrong = rng.random((n, p)) < 0.05
        X[wrong] = rng.uniform(-30.0, 30.0, size=int(wrong.sum())) * X.std()
    if name in LACKING:
        X[rng.random((n, p)) < LACKING[name]] = np.nan
    return hidden, X


def filled(X: np.ndarray) -> np.ndarray:
    """Return columns with their means where values are missing."""
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


def recovery(name: str, method: str, seed: int, n: int) -> list[Row]:
    """Return the share of the hidden variables that a method recovers, in %."""
    p = 60 if name in LACKING else 5 * n
    hidden, X = plan(name, seed, n, p)
    model = learnt(method, X if method == PROBABILISTIC else filled(X), np.zeros(n), N_HIDDEN)
    Z = model.embedding
    angles = subspace_angles(hidden - hidden.mean(axis=0), Z - Z.mean(axis=0))
    alone = np.square(np.corrcoef(hidden.T, Z.T)[:N_HIDDEN, N_HIDDEN:]).max(axis=1)
    row = {"part": PLANTED, "problem": name, "n": n, "p": p, "split": seed, "method": method}
    row |= {"found": 100.0 * float(np.mean(np.cos(angles) ** 2))}
    return [row | {"alone": 100.0 * float(alone.mean()), "zeros": zeros(model, p, N_HIDDEN)}]


def imputation(dataset: Dataset, most_rows: int, method: str, seed: int) -> list[Row]:
    """Return the error of values that were left out, in % of that of the columns' means."""
    X, _ = prepared(dataset, most_rows)
    X = scale(X[:, np.ptp(X, axis=0) > 0.0])
    out = np.random.default_rng(seed).random(X.shape) < 0.2
    gaps = np.where(out, np.nan, X)
    gaps[:, np.isnan(gaps).all(axis=0)] = 0.0
    by_mean = filled(gaps)
    model = learnt(
        method, gaps if method == PROBABILISTIC else by_mean, np.zeros(len(X)), N_COMPONENTS
    )
    if method == PROBABILISTIC:
        predicted = model.impute(gaps)
    else:
        predicted = np.hstack([values for _, values, _ in model.reconstruct(by_mean).blocks()])
    row = {"part": MISSING, "problem": dataset.name, "n": len(X), "p": X.shape[1], "split": seed}
    error, of_mean = (np.square(values - X)[out].mean() for values in (predicted, by_mean))
    return [row | {"method": method, "error": 100.0 * float(np.sqrt(error / of_mean))}]


def work(
    datasets: dict[str, Dataset],
    most_rows: dict[str, int],
    part: str,
    problem: str,
    method: str,
    seed: int,
) -> list[Row]:
    if part == PLANTED:
        return recovery(problem, method, seed, most_rows[part])
    study = imputation if part == MISSING else reconstruction
    return study(datasets[problem], most_rows[part], method, seed)


def reconstruction_table(results: pd.DataFrame) -> str:
    """Return the lost variance of training and test rows, the lowest of a column bold."""
    lines = []
    for problem, here in results[results.part == RECONSTRUCTION].groupby("problem", sort=False):
        n, p = (int(value) for value in here[["n", "p"]].max())
        for rows in ("training", "test"):
            means = here.pivot_table(index="method", columns="q", values=rows, sort=False).round(1)
            for method, values in means.iterrows():
                line = {"lost, %": f"{problem} ({n:,} × {p:,}), {rows}", "": method}
                line |= {f"q = {q:.0f}": shown(v, means[q].min()) for q, v in values.items()}
                lines.append(line)
    return table(pd.DataFrame(lines).fillna(""))


def shown(value: float, best: float) -> str:
    if np.isnan(value):
        return ""
    return f"**{value:.1f}**" if value == best else f"{value:.1f}"


def sparse_table(results: pd.DataFrame) -> str:
    """Return the share of zero loadings of SparsePCA, by dataset and q."""
    here = results[(results.part == RECONSTRUCTION) & (results.method == SPARSE)]
    head, qs = "SparsePCA's loadings that are 0, %", sorted(here.q.unique())
    lines = []
    for problem, of_problem in here.groupby("problem", sort=False):
        means = of_problem.groupby("q").zeros.mean()
        cells = {f"q = {q:.0f}": f"{means[q]:.0f}" if q in means else "" for q in qs}
        lines.append({head: problem} | cells)
    return table(pd.DataFrame(lines))


def planted_table(results: pd.DataFrame) -> str:
    """Return the recovered share of the hidden variables; for few columns, also two details."""
    lines = []
    measures = {
        "found": "in their space",
        "alone": "in one of them",
        "zeros": "loadings that are 0",
    }
    for problem, here in results[results.part == PLANTED].groupby("problem", sort=False):
        for measure, name in measures.items():
            if measure == "found" or problem == FEW:
                means = here.groupby("method", sort=False)[measure].mean().round(1)
                line = {"hidden variables in components, %": f"{problem}: {name}"}
                lines.append(line | {m: shown(v, means.max()) for m, v in means.items()})
    return table(pd.DataFrame(lines))


def missing_table(results: pd.DataFrame) -> str:
    lines = []
    for problem, here in results[results.part == MISSING].groupby("problem", sort=False):
        n, p = (int(value) for value in here[["n", "p"]].max())
        of = here.groupby("method", sort=False).error
        line = {"error, % of the error of column means": f"{problem} ({n:,} × {p:,})"}
        pairs = zip(of.mean().items(), of.std().fillna(0.0), strict=True)
        lines.append(line | {m: f"{mean:.1f} ± {spread:.1f}" for (m, mean), spread in pairs})
    return table(pd.DataFrame(lines))


def draw(results: pd.DataFrame) -> plt.Figure:
    """Draw the lost variance of test rows against q, one panel per dataset."""
    here = results[results.part == RECONSTRUCTION]
    problems = list(here.problem.unique())
    figure, axes = panels(problems, len(problems), 2.6)
    for panel, problem in zip(axes, problems, strict=False):
        of_problem = here[here.problem == problem]
        curves(
            panel,
            without_unit_effect(of_problem.pivot_table("test", "split", ["q", "method"])),
            STYLES,
            QS,
        )
        panel.set_ylim(0.0)
    axes[0].set_ylabel("lost variance of test rows, %")
    add_legend(axes, 3)
    return figure


def text(results: pd.DataFrame, figure: str) -> str:
    return f"""
Lost variance is the share of the variance of all columns that q components do not explain, in %, as
a mean over splits. The lowest number at each q is bold, separately for training and test rows of a
dataset.

![Unexplained variance of test rows against the number of components q: three panels, one line per
method.]({figure})

Error bars are 95 % intervals of the mean over splits, after differences between splits are removed.

{reconstruction_table(results)}

{sparse_table(results)}

**Planted hidden variables.** *In their space* is the share of the hidden variables that lies in the
space of the components. *In one of them* is their squared correlation with the nearest component.
Numbers are means over draws, and the highest number of a row is bold.

{planted_table(results)}

**Missing values.** One value in five is missing, and is predicted from {N_COMPONENTS} components.
The table shows the root mean squared error, as mean ± standard deviation over draws.

{missing_table(results)}

[All numbers](factorisations.csv) were made by `python demos/papers/factorisations.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("factorisations", __doc__)
    real, narrow = experiment.small((REAL, NARROW), (["digits"], []))
    datasets = {dataset.name: dataset for dataset in experiment.datasets([*real, *narrow])}
    seeds = range(experiment.small(N_SPLITS, 1))
    drawn = range(experiment.small(N_DRAWN, 1))
    tasks = [
        *((RECONSTRUCTION, d, m, s) for d in datasets if d in real for m in STYLES for s in seeds),
        *((PLANTED, name, m, s) for name in PLANS for m in METHODS for s in drawn),
        *((MISSING, d, m, s) for d in datasets for m in (PRINCIPAL, PROBABILISTIC) for s in seeds),
    ]
    most_rows = experiment.small(MOST, dict.fromkeys(MOST, 100))
    results = experiment.each(partial(work, datasets, most_rows), tasks)
    experiment.publish(text(results, experiment.draw(draw(results))))


if __name__ == "__main__":
    main()
