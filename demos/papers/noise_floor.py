"""How often does noise exceed the noise floor: Gaussian, by normal scores, by permutations?

The target of a dataset is permuted, so that no column is associated with it; nominally 5 % of such
runs have a column above the noise floor, and 5 % of `SelectKBest(fdr=0.05)` select anything. Three
noise floors are compared: the Gaussian law with the target as it is; the one in a report without
permutations, which uses normal scores if a numeric target has heavy tails; and 199 permutations in
the same pass. The table also shows whether the report has a warning.

Cases: real columns with their own labels, with one of their own columns as a target, and with a
log-normal target; and simulated counts and rare variants. The rules (a kurtosis above 1 for normal
scores, a predicted chance above 10 % for a warning) were chosen on the first half of the datasets;
the halves have separate tables.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from _experiment import Experiment, Row, machine, table
from scipy import stats

from streamsel import SelectKBest

CHOSEN_ON = ("colon_alon", "glioma", "isolet", "sms_spam", "sonar")
REPORTED_ON = (
    *("all_bcrabl", "basehock", "internet_ads_adbench", "ionosphere", "leukemia_golub3571"),
    *("madelon", "mnist_10k", "mouse_hs1940", "shapesall", "spambase"),
)
TARGETS = ("labels", "a column", "log-normal")
MOST_ROWS, MOST_COLUMNS = 700, 3000
PERMUTATIONS = 199


def counts(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Return overdispersed counts, as of genes in cells."""
    means = rng.lognormal(-1.5, 1.0, size=p)
    return rng.poisson(means * rng.gamma(0.3, 1.0 / 0.3, size=(n, p))).astype(float)


def variants(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Return minor alleles of variants of frequency 0.5 to 2 %."""
    return rng.binomial(2, rng.uniform(0.005, 0.02, size=p), size=(n, p)).astype(float)


def parts(*sizes: int) -> np.ndarray:
    return np.repeat([f"part {j}" for j in range(len(sizes))], sizes)


SIMULATED: dict[str, tuple[Callable[..., np.ndarray], Any]] = {
    "counts, 10 cell types": (counts, parts(8, 13, 19, 31, 43, 54, 68, 95, 129, 240)),
    "counts, a class of 13 of 700": (counts, parts(13, 687)),
    "counts, two halves": (counts, parts(350, 350)),
    "rare variants, 25 cases of 700": (variants, parts(25, 675)),
    "rare variants, two halves": (variants, parts(350, 350)),
    "rare variants, normal target": (variants, stats.norm.ppf((np.arange(700) + 0.5) / 700)),
}


def columns_and_target(experiment: Experiment, case: str) -> tuple[np.ndarray, np.ndarray]:
    """Return columns that vary, and a target before it is permuted."""
    rng = np.random.default_rng(0)
    if case in SIMULATED:
        make, y = SIMULATED[case]
        return make(rng, y.size, 1000), y
    name, _, kind = case.partition(", ")
    (data,) = experiment.datasets([name])
    X = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
    rows = rng.permutation(len(X))[:MOST_ROWS]
    X, y = X[rows].astype(float), data.y[rows]
    X = X[:, X.std(axis=0) > 0.0]
    X = X[:, rng.permutation(X.shape[1])[:MOST_COLUMNS]]
    if kind == "labels":
        is_numeric = np.unique(y).size > 100
        return X, y.astype(float) if is_numeric else y.astype(str)
    if kind == "log-normal":
        return X, rng.lognormal(size=len(X))
    tails = stats.kurtosis(X, axis=0)
    j = int(np.argsort(tails)[int(0.9 * tails.size)])
    return np.delete(X, j, axis=1), X[:, j]


def learnt(X: np.ndarray, y: np.ndarray, **parameters: Any) -> SelectKBest:
    model = SelectKBest(target_type="numeric" if y.dtype.kind == "f" else "auto", **parameters)
    model.learn_target(y)
    model.learn_columns(X)
    return model


def work_of(experiment: Experiment, runs: int) -> Callable[..., list[Row]]:
    def work(case: str) -> list[Row]:
        X, y = columns_and_target(experiment, case)
        X, made = np.asfortranarray(X), []
        for run in range(runs):
            permuted = np.random.default_rng((1, run)).permutation(y)
            plain = learnt(X, permuted, k=1)
            report = plain.report()
            best = report.results[0]["relevance"]
            by_permutation = learnt(
                X, permuted, k=1, permutations=PERMUTATIONS, permutation_seed=run
            )
            warned = [caution.text for caution in report.warnings if caution.code == "tails"]
            fdr = learnt(X, permuted, k=None, fdr=0.05)
            permuted_fdr = learnt(
                X, permuted, k=None, fdr=0.05, permutations=PERMUTATIONS, permutation_seed=run
            )
            made.append(
                {
                    "case": case,
                    "run": run,
                    "n": X.shape[0],
                    "p": X.shape[1],
                    "gaussian": best > plain.noise_floor(method="gaussian"),
                    "reported": report.results[0]["above_noise"],
                    "permutations": best > by_permutation.noise_floor(),
                    "fdr": bool(fdr.selected),
                    "fdr, permutations": bool(permuted_fdr.selected),
                    "normal scores": report.normal_scores,
                    "warned": bool(warned),
                }
            )
        return made

    return work


def interval(successes: int, n: int) -> str:
    """Return a rate and its 95 % interval (Wilson), in per cent."""
    low, high = stats.binomtest(successes, n).proportion_ci(method="wilson")
    return f"{100 * successes / n:.1f} ({100 * low:.0f}–{100 * high:.0f})"


def rates(found: pd.DataFrame) -> str:
    lines = []
    for case, runs in found.groupby("case", sort=False):
        notes = [name for name in ("normal scores", "warned") if runs[name].mean() > 0.5]
        line = {"": case, "n × p": f"{runs['n'].iloc[0]:,} × {runs['p'].iloc[0]:,}"}
        for name in ("gaussian", "reported", "permutations", "fdr", "fdr, permutations"):
            line[name] = interval(int(runs[name].sum()), len(runs))
        lines.append(line | {"the report": ", ".join(notes)})
    return table(pd.DataFrame(lines))


def section(found: pd.DataFrame) -> str:
    first = found["case"].str.partition(", ")[0].isin(CHOSEN_ON)
    simulated = found["case"].isin(list(SIMULATED))
    rest = found[~first & ~simulated]
    columns = ["gaussian", "reported", "permutations", "fdr", "fdr, permutations"]
    numeric = rest[~rest["case"].str.endswith("labels")]
    means = numeric[columns].mean()
    runs = len(found[found["case"] == found["case"].iloc[0]])
    return f"""
The target is permuted in each of {runs} runs. Cells show the share of runs in % (95 % interval) in
which a column is above the noise floor. The noise floor comes from the Gaussian law (`gaussian`),
from a report without permutations (`reported`), or from {PERMUTATIONS} permutations
(`permutations`). The columns `fdr` show the share of runs in which `SelectKBest(fdr=0.05)` selects
anything. The nominal share is 5 %. Reports use normal scores if a numeric target has heavy tails.

Simulated:

{rates(found[simulated])}

Datasets not used to choose the rules of the report:

{rates(rest)}

With numeric targets of these datasets, noise exceeds the Gaussian noise floor in
{means["gaussian"]:.1%} of runs, the reported one in {means["reported"]:.1%}, and the one from
permutations in {means["permutations"]:.1%}.

Datasets used to choose the rules:

{rates(found[first])}

[All numbers](noise-floor.csv) were made by `python demos/papers/noise_floor.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("noise-floor", __doc__)
    names = experiment.small((*CHOSEN_ON, *REPORTED_ON), ("sonar", "ionosphere"))
    names = experiment.available(names)
    cases = [*SIMULATED, *(f"{name}, {kind}" for name in names for kind in TARGETS)]
    runs = experiment.small(200, 5)
    found = experiment.each(work_of(experiment, runs), [(case,) for case in cases])
    experiment.publish(section(found))


if __name__ == "__main__":
    main()
