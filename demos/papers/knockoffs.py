"""Do knockoffs on a stream hold the false discovery rate, and where are they refused?

The target is a sum of 40 of 800 columns, 600 rows, with coefficients of random signs, plus noise;
in some designs also of a confounder that no column is. A selection is false if the column is none
of the 40. Designs of local dependence: autoregressive columns, moving averages, genotypes of
simulated haplotypes, heavy tails, spectra; and the markers of 1,410 mice, pruned at a correlation
of 0.8, with 30 causal ones of three times these coefficients, a polygenic background as large as
the noise, and 100 principal components as covariates. Others violate the conditions: there the
rate without the checks of `knockoff_filter` is shown, and the share of runs that these refuse.
Compared with single tests of all columns with Benjamini and Hochberg's correction
(`SelectKBest(fdr=...)`), which ask another question. Level 0.1.

knockpy (Gaussian knockoffs of minimum variance-based reconstructability, Ledoit and Wolf's
covariance, Lasso coefficient difference by cross-validation) is in the Python that STREAMSEL_PEERS
names. A quick run does not need it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _experiment import Experiment, Row, machine, table
from scipy.stats import norm

from streamsel import Lasso, SelectKBest
from streamsel.evaluate import KnockoffSelection, knockoff_filter, knockoff_statistics
from streamsel.stream import iter_array, prune, with_knockoffs

LEVEL, N, P, CAUSAL, EFFECT = 0.1, 600, 800, 40, 5.5
Rng = np.random.Generator
PEER = """
import json, resource, sys, time
import numpy as np
from knockpy.knockoff_filter import KnockoffFilter

file = np.load(sys.argv[1])
start = time.process_time()
chosen = KnockoffFilter(ksampler="gaussian", fstat="lasso").forward(
    X=file["X"], y=file["y"], fdr=0.1, shrinkage="ledoitwolf", knockoff_kwargs={"method": "mvr"}
)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
found = np.flatnonzero(chosen).tolist()
print(json.dumps({"selected": found, "s": time.process_time() - start, "MiB": peak}))
"""


def autoregressive(rho: float, n: int, p: int, rng: Rng) -> np.ndarray:
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    return X


def moving_average(n: int, p: int, rng: Rng) -> np.ndarray:
    E = rng.normal(size=(n, p + 3))
    return sum(E[:, i : p + i] for i in range(4))


def genotypes(n: int, p: int, rng: Rng) -> np.ndarray:
    threshold = norm.ppf(rng.uniform(0.1, 0.5, size=p))
    return sum((autoregressive(0.9, n, p, rng) < threshold).astype(float) for _ in range(2))


def spectra(n: int, p: int, rng: Rng) -> np.ndarray:
    """Smooth curves, of twenty waves each, with noise of the instrument."""
    grid, waves = np.arange(p), np.zeros((n, p))
    for _ in range(20):
        centre = rng.uniform(0, p, size=(n, 1))
        waves += rng.normal(size=(n, 1)) * np.exp(-0.5 * ((grid - centre) / 3.0) ** 2)
    return waves + 0.3 * rng.normal(size=(n, p))


def populations(shift: float, n: int, p: int, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    group = rng.integers(0, 2, size=n)
    return autoregressive(0.5, n, p, rng) + np.outer(group, shift * rng.normal(size=p)), 2.0 * group


def families(n: int, p: int, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    family = np.arange(n) // 4
    shared = autoregressive(0.5, n // 4, p, rng)[family]
    X = np.sqrt(0.5) * (shared + autoregressive(0.5, n, p, rng))
    return X, rng.normal(size=n // 4)[family]


def time_series(n: int, p: int, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    """Rows that follow each other in time, as does the error of the target."""
    X, error = autoregressive(0.5, n, p, rng), rng.normal(size=n)
    for i in range(1, n):
        X[i] += 0.4 * X[i - 1]
        error[i] += 0.4 * error[i - 1]
    return X, error


def modules(share: float, n: int, p: int, rng: Rng) -> np.ndarray:
    common = np.repeat(rng.normal(size=(n, p // 10)), 10, axis=1)
    X = np.sqrt(share) * common + np.sqrt(1.0 - share) * rng.normal(size=(n, p))
    return X[:, rng.permutation(p)]


def factor(share: float, n: int, p: int, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    f = rng.normal(size=n)
    common = np.sqrt(share) * np.outer(f, rng.choice([-1.0, 1.0], size=p))
    return common + np.sqrt(1.0 - share) * autoregressive(0.5, n, p, rng), 2.0 * f


class Design(NamedTuple):
    make: Callable[[int, int, Rng], Any]
    window: int
    is_local: bool


DESIGNS = {
    "autoregressive, 0.5": Design(lambda n, p, rng: autoregressive(0.5, n, p, rng), 1, True),
    "autoregressive, 0.8": Design(lambda n, p, rng: autoregressive(0.8, n, p, rng), 1, True),
    "the same, window 10": Design(lambda n, p, rng: autoregressive(0.8, n, p, rng), 10, True),
    "moving average of 4": Design(moving_average, 5, True),
    "genotypes, 0.9": Design(genotypes, 5, True),
    "Student's t, 3 degrees": Design(lambda n, p, rng: rng.standard_t(3, size=(n, p)), 1, True),
    "spectra": Design(spectra, 10, True),
    "mice, 100 components": Design(lambda *_: None, 5, True),
    "autoregressive, 0.9, shuffled": Design(
        lambda n, p, rng: autoregressive(0.9, n, p, rng)[:, rng.permutation(p)], 5, False
    ),
    "modules of 10, 0.5, shuffled": Design(lambda n, p, rng: modules(0.5, n, p, rng), 5, False),
    "two populations, shift 0.1": Design(lambda n, p, rng: populations(0.1, n, p, rng), 5, False),
    "two populations, shift 0.3": Design(lambda n, p, rng: populations(0.3, n, p, rng), 5, False),
    "families of 4": Design(families, 5, False),
    "rows in time, 0.4": Design(time_series, 5, False),
    "a factor, 1 %, confounds": Design(lambda n, p, rng: factor(0.01, n, p, rng), 5, False),
    "a factor, 10 %, confounds": Design(lambda n, p, rng: factor(0.1, n, p, rng), 5, False),
}


class Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    causal: np.ndarray
    covariates: np.ndarray | None


def mice(experiment: Experiment) -> tuple[np.ndarray, np.ndarray]:
    """Return the markers that pruning keeps, and the genetic components of the mice."""
    with np.load(experiment.data / "mouse_hs1940.npz") as file:
        X = file["X"]
    X = X[:, X.min(axis=0) < X.max(axis=0)]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    vectors = np.linalg.eigh(Z @ Z.T)[1]
    kept = [name for name, _ in prune(iter_array(X), 0.8)]
    return X[:, kept], vectors[:, ::-1]


def problem(design: str, run: int, markers: Any) -> Problem:
    rng = np.random.default_rng((sum(design.encode()), run))
    covariates, n_causal = None, CAUSAL
    made = DESIGNS[design].make(N, P, rng)
    if design.startswith("mice"):
        X, vectors = markers
        n_causal, covariates = 30, vectors[:, :100]
        # Genetic values of small effects of all markers.
        values = vectors @ (rng.normal(size=len(vectors)) * np.linalg.norm(vectors.T @ X, axis=1))
        made = X, values / values.std()
    X, confounder = made if isinstance(made, tuple) else (made, 0.0)
    causal = rng.choice(X.shape[1], n_causal, replace=False)
    effect = 3.0 * EFFECT if covariates is not None else EFFECT
    effects = effect / np.sqrt(len(X)) * rng.choice([-1.0, 1.0], size=n_causal)
    y = (X[:, causal] - X[:, causal].mean(axis=0)) / X[:, causal].std(axis=0) @ effects
    return Problem(X, y + confounder + rng.normal(size=len(X)), causal, covariates)


def unchecked(data: Problem, window: int, seed: int) -> KnockoffSelection:
    pairs = with_knockoffs(data.X, window, covariates=data.covariates, seed=seed)
    model = Lasso(k=len(data.X) // 4, exact=True)
    model.learn_target(data.y, covariates=data.covariates)
    model.learn_columns(pairs)
    statistics = knockoff_statistics(model.standardized_coefficients)
    return KnockoffSelection(LEVEL, window, seed, pairs.n_pairs, statistics, model)


def rates(selected: list[Any], causal: np.ndarray) -> Row:
    true = int(np.isin(selected, causal).sum())
    share = 1.0 - true / len(selected) if selected else 0.0
    return {"selected": len(selected), "false": share, "power": true / causal.size}


def peer(data: Problem) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, X=data.X, y=data.y)
        done = subprocess.run(  # noqa: S603 (ours)
            [os.environ.get("STREAMSEL_PEERS", sys.executable), "-W", "ignore", "-c", PEER, path],
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def work_of(experiment: Experiment, runs: int, runs_of_peer: int) -> Callable[..., list[Row]]:
    markers = None if experiment.quick or experiment.redraws else mice(experiment)

    def work(design: str) -> list[Row]:
        made = []
        for run in range(runs):
            data = problem(design, run, markers)
            window, same = DESIGNS[design].window, {"design": design, "run": run}
            start, is_refused = time.process_time(), False
            try:
                found = knockoff_filter(
                    data.X, data.y, LEVEL, window=window, covariates=data.covariates, seed=run
                )
            except ValueError as error:
                if "for knockoffs" not in str(error):
                    raise
                is_refused, found = True, unchecked(data, window, run)
            cost = {"s": time.process_time() - start, "refused": is_refused}
            made.append(same | {"method": "knockoffs"} | rates(found.selected, data.causal) | cost)
            single = SelectKBest(fdr=LEVEL)
            single.learn_target(data.y, covariates=data.covariates)
            single.learn_columns(data.X)
            made.append(same | {"method": "single tests"} | rates(single.selected, data.causal))
            if run < runs_of_peer and design.startswith("autoregressive, 0.") and window == 1:
                theirs = peer(data)
                if theirs is None:
                    experiment.give_up("knockpy is absent. Hint: STREAMSEL_PEERS, or --quick")
                cost = {"s": theirs["s"], "MiB": theirs["MiB"]}
                made.append(
                    same | {"method": "knockpy"} | rates(theirs["selected"], data.causal) | cost
                )
        return made

    return work


def mean(values: pd.Series) -> str:
    return f"{values.mean():.3f} ± {values.std() / np.sqrt(len(values)):.3f}"


def rows_of(found: pd.DataFrame, *, local: bool) -> str:
    lines = []
    for design, runs in found.groupby("design", sort=False):
        if DESIGNS[design].is_local is not local:
            continue
        own, single = (runs[runs["method"] == name] for name in ("knockoffs", "single tests"))
        lines.append(
            {
                "design": design,
                "window": DESIGNS[design].window,
                "knockoffs: false": mean(own["false"]),
                "power": f"{own['power'].mean():.2f}",
                "refused": f"{own['refused'].astype(float).mean():.0%}",
                "single tests: false": mean(single["false"]),
                "power ": f"{single['power'].mean():.2f}",
            }
        )
    return table(pd.DataFrame(lines))


def peers(found: pd.DataFrame) -> str:
    theirs = found[found["method"] == "knockpy"]
    if theirs.empty:
        return ""
    lines = []
    for design, runs in theirs.groupby("design", sort=False):
        same = (found["design"] == design) & found["run"].isin(runs["run"])
        own = found[same & (found["method"] == "knockoffs")]
        lines += [
            {
                "design": design,
                "": name,
                "false": mean(part["false"]),
                "power": f"{part['power'].mean():.2f}",
                "seconds": f"{part['s'].median():.2f}",
            }
            for name, part in (("streamsel", own), ("knockpy", runs))
        ]
    return f"""
knockpy needs all columns and their covariance in memory ({theirs["MiB"].max():,.0f} MiB). It is
compared on the first {theirs["run"].nunique()} runs of two designs. Seconds are medians of the
processor time.

{table(pd.DataFrame(lines))}
"""


def section(found: pd.DataFrame) -> str:
    own = found[found["method"] == "knockoffs"]
    runs = own.groupby("design").size().max()
    return f"""
Each design has {runs} runs at level {LEVEL}. *False* is the share of false columns in the selection
± its standard error. *Power* is the share of causal columns that are selected. Refused runs are
included.

{rows_of(found, local=True)}

The next designs violate the conditions. *Refused* is the share of runs that the checks refuse.

{rows_of(found, local=False)}
{peers(found)}
[All numbers](knockoffs.csv) were made by `python demos/papers/knockoffs.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("knockoffs", __doc__)
    designs = [name for name in DESIGNS if not (experiment.quick and name.startswith("mice"))]
    if not experiment.quick:
        experiment.available(("mouse_hs1940",))
    work = work_of(experiment, experiment.small(100, 2), experiment.small(20, 0))
    experiment.publish(section(experiment.each(work, [(design,) for design in designs])))


if __name__ == "__main__":
    main()
