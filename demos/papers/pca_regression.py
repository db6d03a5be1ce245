"""Is a linear regression on rows better after principal components, and after which others?

Principal component regression in a River pipeline. Half of the rows, at most 400, are learnt as
columns, and the regression learns the components of these rows. The same number of rows then comes
one by one, each predicted first and then learnt, also by the extractor. "From nothing": everything
starts with the first row that comes; for the first 50 rows, `warm_up`, components are 0, and with
`warm_up=0` there are components at once.

Each transformer precedes two River models: LinearRegression by gradient steps of 0.01, after a
scaler, and BayesianLinearRegression, which has no step size, but takes time quadratic in the number
of its inputs per row. All features are tried with both, and with steps of 0.001 and 0.0001.

The problems are the real regressions of extractors_worth.py with enough rows: diabetes, also with
all squares and products; and isolet and shapesall, in which the column a quarter along the file is
predicted from the others, except those less than 40 away. The target is in units of its deviation
on the stored rows. PCA and PLS scale columns to deviation 1, RidgeComponents weight columns anyway,
and SOSPCA receives columns of that deviation. Three shuffles. A model whose error is a hundred
times the deviation in the mean counts as divergent.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from _experiment import Dataset, Experiment, Row, machine, table
from _gram_family import PLS, PRINCIPAL, RIDGE, SOSPCA
from _problems import needed, whole
from river import linear_model, optim, preprocessing

import streamsel

PROBLEMS = ["diabetes", "diabetes, squares", "isolet, column 1/4", "shapesall, column 1/4"]
MOST_HALF, QS, N_SHUFFLES = 400, (5, 20), 3
FROM_NOTHING, AT_ONCE = "PCA, from nothing", "PCA, from nothing, warm_up=0"
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    PRINCIPAL: (PRINCIPAL, {"scale": True}),
    FROM_NOTHING: (PRINCIPAL, {"scale": True}),
    AT_ONCE: (PRINCIPAL, {"scale": True, "warm_up": 0}),
    PLS: (PLS, {}),
    RIDGE: (RIDGE, {}),
    SOSPCA: (SOSPCA, {}),
}
STEPS = (0.01, 0.001, 0.0001)
BY_STEPS, BAYESIAN = "gradient steps", "Bayesian"
DIVERGENT = -1e4


def halves(datasets: dict[str, Dataset], problem: str, seed: int, most: int) -> tuple[Any, ...]:
    """Return columns and target of stored rows and of later ones, in units of the deviation."""
    X, y = whole(datasets.get(needed(problem)), problem, most_rows=2 * most)
    half = min(most, len(y) // 2)
    order = np.random.default_rng(seed).permutation(len(y))[: 2 * half]
    A, B, stored, coming = X[order[:half]], X[order[half:]], y[order[:half]], y[order[half:]]
    varies = np.ptp(A, axis=0) > 0.0
    mean, deviation = A[:, varies].mean(axis=0), A[:, varies].std(axis=0)
    A, B = ((part[:, varies] - mean) / deviation for part in (A, B))
    centre, unit = stored.mean(), stored.std()
    return A, (stored - centre) / unit, B, (coming - centre) / unit


class Bayesian(linear_model.BayesianLinearRegression):
    """River's model, without its failure on an empty row, which comes before components exist."""

    def learn_one(self, x: dict[Any, float], y: float) -> None:
        if x:
            super().learn_one(x, y)


def regression(model: str, step: float = STEPS[0]) -> Any:
    if model == BAYESIAN:
        return Bayesian()
    return preprocessing.StandardScaler() | linear_model.LinearRegression(optim.SGD(step))


def pipeline(method: str, regressor: str, q: int, A: np.ndarray, y: np.ndarray) -> Any:
    """Return a pipeline that has learnt the stored rows, unless it starts from nothing."""
    name, parameters = METHODS[method]
    model, last = getattr(streamsel, name)(q, **parameters), regression(regressor)
    if method not in (FROM_NOTHING, AT_ONCE):
        if model._is_supervised:
            model.learn_target(y)
        model.learn_columns(A)
        for z, target in zip(model.transform_many(A).tolist(), y.tolist(), strict=True):
            last.learn_one(dict(zip(model.components, z, strict=True)), target)
    return model | last


def of_all(regressor: str, step: float, A: np.ndarray, y: np.ndarray) -> Any:
    """Return a regression of all features that has learnt the stored rows."""
    model = regression(regressor, step)
    for x, target in zip(A.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(enumerate(x)), target)
    return model


def explained(model: Any, B: np.ndarray, y: np.ndarray) -> float:
    """Return R² in % of rows that are predicted first and then learnt; NaN after divergence."""
    errors = np.zeros(len(y))
    for i, (x, target) in enumerate(zip(B.tolist(), y.tolist(), strict=True)):
        row = dict(enumerate(x))
        errors[i] = target - model.predict_one(row)
        model.learn_one(row, target)
    with np.errstate(over="ignore", invalid="ignore"):
        left = np.square(errors).sum() / np.square(y - y.mean()).sum()
    return 100.0 * (1.0 - left) if left < -DIVERGENT else np.nan


def work(
    datasets: dict[str, Dataset], most: int, problem: str, seed: int, method: str, regressor: str
) -> list[Row]:
    A, y, B, y_later = halves(datasets, problem, seed, most)
    shape = {"problem": problem, "n": len(A), "p": A.shape[1], "shuffle": seed, "model": regressor}
    if method in METHODS:
        models = {(method, q): pipeline(method, regressor, q, A, y) for q in QS}
    elif regressor == BAYESIAN:
        models = {("all features", 0): of_all(regressor, 0.0, A, y)}
    else:
        models = {
            (f"all features, steps of {step:g}", 0): of_all(regressor, step, A, y) for step in STEPS
        }
    return [
        shape | {"method": name, "q": q, "R2": explained(model, B, y_later)}
        for (name, q), model in models.items()
    ]


def problem_table(results: pd.DataFrame, regressor: str) -> str:
    """Return mean R² with its deviation over shuffles: methods in rows, problems in columns."""
    lines = []
    results = results[results["model"] == regressor]
    for (method, q), of in results.groupby(["method", "q"], sort=False):
        line = {f"before: {regressor}": f"{method}, q = {q}" if q else method}
        for problem, here in of.groupby("problem", sort=False):
            spread = f" ± {here.R2.std():.1f}" if len(here) > 1 else ""
            mean = f"{here.R2.mean():.1f}{spread}".replace("-", "−")
            n, p = here[["n", "p"]].max()
            line[f"{problem} ({n:,} × {p:,})"] = "diverges" if here.R2.isna().any() else mean
        lines.append(line)
    return table(pd.DataFrame(lines))


def text(results: pd.DataFrame) -> str:
    tables = "\n\n".join(problem_table(results, regressor) for regressor in (BY_STEPS, BAYESIAN))
    return f"""
Cells show R² in % by progressive validation, as mean ± standard deviation over
{results.shuffle.nunique()} shuffles. Brackets show the numbers of stored rows and of columns. There
are as many later rows as stored rows. *From nothing* means without stored rows.

{tables}

[All numbers](pca-regression.csv) were made by `python demos/papers/pca_regression.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("pca-regression", __doc__)
    problems = experiment.small(PROBLEMS, ["diabetes, squares"])
    files = dict.fromkeys(filter(None, map(needed, problems)))
    datasets = {dataset.name: dataset for dataset in experiment.datasets(files)}
    tasks = [
        (problem, seed, method, regressor)
        for regressor in (BY_STEPS, BAYESIAN)
        for problem in problems
        if needed(problem) is None or needed(problem) in datasets
        for seed in range(experiment.small(N_SHUFFLES, 1))
        for method in (*METHODS, "all")
    ]
    most = experiment.small(MOST_HALF, 100)
    experiment.publish(text(experiment.each(partial(work, datasets, most), tasks)))


if __name__ == "__main__":
    main()
