"""How often does an association test have false positives, with and without relatedness?

1,410 related mice and their 12,226 markers. A trait is drawn that all chromosomes but one determine
to 60 %, by many small effects, and the markers of that one are tested: none of them is causal, but
families share it. The measured trait, permuted, is the null without structure. The effect of one
marker is added to the drawn trait to compare the power. Compared are
`SelectKBest` without relatedness, with ten principal components as covariates, given the
relatedness by all markers, and given that by the other chromosomes.
"""

from typing import Any

import numpy as np
import pandas as pd
from _experiment import Experiment, Row, machine, table
from scipy import stats

from streamsel import Relatedness, SelectKBest

METHODS = ("none", "10 components", "relatedness, all markers", "relatedness, others")
LEVELS = (0.05, 0.01, 0.001)
SHARE, EFFECT = 0.6, 0.15


def genotypes(experiment: Experiment) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return markers, their chromosomes and the trait; simulated families in a quick run."""
    if not experiment.quick:
        with np.load(experiment.data / "mouse_hs1940.npz") as file:
            X, chromosome, y = file["X"], file["chromosome"], file["y"]
        varies = X.min(axis=0) < X.max(axis=0)
        return X[:, varies], chromosome[varies], y
    rng = np.random.default_rng(0)
    parents = rng.binomial(2, 0.4, size=(10, 400))[np.arange(100) % 10]
    X = np.where(rng.random((100, 400)) < 0.6, parents, rng.binomial(2, 0.4, size=(100, 400)))
    return X, np.repeat(["1", "2"], 200), rng.normal(size=100)


def kinship(X: np.ndarray) -> np.ndarray:
    Z = X - X.mean(axis=0)
    return Z @ Z.T / Z.shape[1]


def components(K: np.ndarray, k: int = 10) -> dict[str, np.ndarray]:
    vectors = np.linalg.eigh(K)[1][:, -k:]
    return {f"PC{i}": vectors[:, i] for i in range(k)}


def p_values(X: np.ndarray, y: np.ndarray, method: str, K: np.ndarray, rest: np.ndarray) -> Any:
    model = SelectKBest("all")
    further: dict[str, Any] = {}
    if method == "10 components":
        further = {"covariates": components(K)}
    elif method != "none":
        further = {"relatedness": Relatedness(K if method.endswith("all markers") else rest)}
    model.learn_target(y, **further)
    model.learn_columns(X)
    found = model.statistics()
    p = np.ones(X.shape[1])
    p[found["name"].astype(int)] = found["p_value"]
    return p


def work_of(experiment: Experiment, runs: int) -> Any:
    X, chromosome, trait = genotypes(experiment)
    K = kinship(X.astype(float))

    def work(which: str) -> list[Row]:
        inside = chromosome == which
        rest = kinship(X[:, ~inside].astype(float))
        tested = X[:, inside]
        Z = X[:, ~inside] - X[:, ~inside].mean(axis=0)
        made = []
        for run in range(runs):
            rng = np.random.default_rng((int(which), run))
            u = Z @ rng.normal(size=Z.shape[1])
            noise = rng.normal(size=len(X))
            drawn = np.sqrt(SHARE) * u / u.std() + np.sqrt(1.0 - SHARE) * noise
            cause = tested[:, rng.integers(tested.shape[1])].astype(float)
            caused = drawn + EFFECT * (cause - cause.mean()) / cause.std()
            targets = {"background": drawn, "permuted": rng.permutation(trait)}
            for method in METHODS:
                for null, y in targets.items():
                    p = p_values(tested, y, method, K, rest)
                    counts = {f"below {level}": int((p < level).sum()) for level in LEVELS}
                    made.append(
                        {"chromosome": which, "run": run, "null": null, "method": method}
                        | {"tests": p.size, "factor": stats.chi2.isf(np.median(p), 1) / 0.4549}
                        | counts
                    )
                found = p_values(cause[:, None], caused, method, K, rest)[0]
                made[-2]["power"] = float(found < 0.05 / X.shape[1])
        return made

    return work


def rates(found: pd.DataFrame) -> str:
    lines = []
    for (null, method), runs in found.groupby(["null", "method"], sort=False):
        tests = runs["tests"].sum()
        line = {"target": null, "adjusted for": method}
        for level in LEVELS:
            line[f"p < {level}"] = f"{runs[f'below {level}'].sum() / tests:.4f}"
        line["λ, median"] = f"{runs['factor'].median():.2f}"
        lines.append(line)
    return table(pd.DataFrame(lines).sort_values("target", kind="stable"))


def section(found: pd.DataFrame) -> str:
    one = found[(found["null"] == "background") & (found["method"] == "none")]
    power = found[found["null"] == "background"].groupby("method", sort=False)["power"].mean()
    passing = ", ".join(f"{value:.0%} ({method})" for method, value in power.items())
    return f"""
Cells show the share of the p-values of non-causal markers that are below a level. There are
{len(one)} traits of each kind, and {int(one["tests"].sum()):,} tests of each method. λ is the
genomic inflation factor.

{rates(found)}

One causal marker with an effect of {EFFECT} standard deviations is added to each trait with a
background. These shares of the added markers pass Bonferroni's threshold over all markers:
{passing}.

[All numbers](association-nulls.csv) were made by `python demos/papers/association_nulls.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("association-nulls", __doc__)
    if not experiment.quick:
        experiment.available(("mouse_hs1940",))
    chromosomes = experiment.small([str(i) for i in range(1, 20)], ["1", "2"])
    runs = experiment.small(2, 1)
    # A redraw does no work, and needs no data.
    work = list if experiment.redraws else work_of(experiment, runs)
    found = experiment.each(work, [(which,) for which in chromosomes])
    experiment.publish(section(found))


if __name__ == "__main__":
    main()
