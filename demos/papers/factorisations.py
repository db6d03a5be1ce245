"""What do factorisations keep of the columns, beside gross errors and where values are missing?

Three questions to SparsePCA, RobustPCA and ProbabilisticPCA, the codes of one online factorisation,
and to PCA.

1. Reconstruction. How much of the variance of all columns is lost if from 1 to 50 components all
   columns are told again, by the linear regression that errs least on the training rows? Of these
   rows PCA loses least by definition; of the test rows nobody has promised it. Beside them is
   RandomProjection. At most 1,200 rows, two thirds of them for training; columns as they are in the
   file (of leukemia logarithms), centred. Three splits.
2. What they were made for. 200 rows of 1,000 columns that show five hidden variables beside noise
   of deviation 0.5. "Gross errors": one value in twenty is replaced by one of up to 30 deviations.
   "Few columns": each hidden variable shows in 40 columns alone. "Missing": 60 columns, of which a
   fifth of the values is missing, or a half; all but ProbabilisticPCA are given the means of the
   columns instead. Five drawings. Asked is how much of the hidden variables is in the space of five
   components, which is the mean squared cosine of the principal angles, and how much each has to do
   with one component alone, the largest squared correlation.
3. Missing values. A fifth of the values of real columns, here of deviation 1, is left out at
   random, and told by ten components of ProbabilisticPCA. Beside it is PCA of columns whose gaps
   have been filled by their means; errors are in % of those of the means. Three drawings, at most
   800 rows.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from _curves import add_legend, curves, levelled, panels
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
# Values are left out of these too.
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
HIDDEN, SHOWING, N_TOLD = 5, 40, 10


def reconstruction(dataset: Dataset, most_rows: int, method: str, seed: int) -> list[Row]:
    """Return what is lost of training and of test rows, in % of their variance, for every q."""
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
    """Return how many of the loadings are 0, in %."""
    loadings = getattr(model, "loadings", {})
    there = sum(weight != 0.0 for of in loadings.values() for weight in of.values())
    return 100.0 * (1.0 - there / (p * q))


def plan(name: str, seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Return hidden variables, and columns that show them."""
    rng = np.random.default_rng([seed, PLANS.index(name)])
    hidden = rng.standard_normal((n, HIDDEN))
    weights = rng.standard_normal((HIDDEN, p))
    if name == FEW:
        showing = rng.permutation(p)[: HIDDEN * SHOWING].reshape(HIDDEN, SHOWING)
        mask = np.zeros_like(weights)
        mask[np.arange(HIDDEN)[:, None], showing] = 2.0
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
    """Return how much of what is hidden a method finds, in %."""
    p = 60 if name in LACKING else 5 * n
    hidden, X = plan(name, seed, n, p)
    model = learnt(method, X if method == PROBABILISTIC else filled(X), np.zeros(n), HIDDEN)
    Z = model.embedding
    angles = subspace_angles(hidden - hidden.mean(axis=0), Z - Z.mean(axis=0))
    alone = np.square(np.corrcoef(hidden.T, Z.T)[:HIDDEN, HIDDEN:]).max(axis=1)
    row = {"part": PLANTED, "problem": name, "n": n, "p": p, "split": seed, "method": method}
    row |= {"found": 100.0 * float(np.mean(np.cos(angles) ** 2))}
    return [row | {"alone": 100.0 * float(alone.mean()), "zeros": zeros(model, p, HIDDEN)}]


def told(dataset: Dataset, most_rows: int, method: str, seed: int) -> list[Row]:
    """Return the error of values that were left out, in % of that of their columns' means."""
    X, _ = prepared(dataset, most_rows)
    X = scale(X[:, np.ptp(X, axis=0) > 0.0])
    out = np.random.default_rng(seed).random(X.shape) < 0.2
    gaps = np.where(out, np.nan, X)
    gaps[:, np.isnan(gaps).all(axis=0)] = 0.0
    by_mean = filled(gaps)
    model = learnt(method, gaps if method == PROBABILISTIC else by_mean, np.zeros(len(X)), N_TOLD)
    if method == PROBABILISTIC:
        said = model.impute(gaps)
    else:
        said = np.hstack([values for _, values, _ in model.reconstruct(by_mean).blocks()])
    row = {"part": MISSING, "problem": dataset.name, "n": len(X), "p": X.shape[1], "split": seed}
    error, of_mean = (np.square(values - X)[out].mean() for values in (said, by_mean))
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
    ask = told if part == MISSING else reconstruction
    return ask(datasets[problem], most_rows[part], method, seed)


def reconstruction_table(results: pd.DataFrame) -> str:
    """Return what is lost of training and test rows, the least of a column bold."""
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


def sparse_sentence(results: pd.DataFrame) -> str:
    """Say how many loadings of SparsePCA are 0."""
    here = results[(results.part == RECONSTRUCTION) & (results.method == SPARSE)]
    means = here.groupby(["problem", "q"], sort=False).zeros.mean()
    told = "; ".join(
        f"{problem} {', '.join(f'{value:.0f}' for value in values)}"
        for problem, values in means.groupby("problem", sort=False)
    )
    return f"Share of SparsePCA's loadings that are 0, in %, in the same order of q: {told}."


def planted_table(results: pd.DataFrame) -> str:
    """Return how much is found of what is hidden; of few columns, also how it is found."""
    lines = []
    ask = {"found": "in their space", "alone": "in one of them", "zeros": "loadings that are 0"}
    for problem, here in results[results.part == PLANTED].groupby("problem", sort=False):
        for measure, name in ask.items():
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
        line = {"error, % of that of the means": f"{problem} ({n:,} × {p:,})"}
        told = zip(of.mean().items(), of.std().fillna(0.0), strict=True)
        lines.append(line | {m: f"{mean:.1f} ± {spread:.1f}" for (m, mean), spread in told})
    return table(pd.DataFrame(lines))


def draw(results: pd.DataFrame) -> plt.Figure:
    """Draw what is lost of test rows against q, a panel a dataset."""
    here = results[results.part == RECONSTRUCTION]
    problems = list(here.problem.unique())
    figure, axes = panels(problems, len(problems), 2.6)
    for panel, problem in zip(axes, problems, strict=False):
        of_problem = here[here.problem == problem]
        curves(
            panel, levelled(of_problem.pivot_table("test", "split", ["q", "method"])), STYLES, QS
        )
        panel.set_ylim(0.0)
    axes[0].set_ylabel("lost of test rows, %")
    add_legend(axes, 3)
    return figure


def text(results: pd.DataFrame, figure: str) -> str:
    return f"""
Share of the variance of all columns that q components do not explain, in %: means over splits.
Bold: lowest of a dataset.

![Unexplained variance of test rows against the number of components q: three panels, one line per
method, with 95 % intervals.]({figure})

Error bars: 95 % intervals of the mean over splits, without differences between splits.

{reconstruction_table(results)}

{sparse_sentence(results)}

**Planted variables.** Means over draws; bold: highest of a row.

{planted_table(results)}

**Missing values**, one in five, predicted from {N_TOLD} components: root of the mean squared error,
means and deviations over draws.

{missing_table(results)}

`python demos/papers/factorisations.py`; [all numbers](factorisations.csv); made with
{machine()}.
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
