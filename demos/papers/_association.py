"""Association tests that are compared: each runs in a process that reads files and writes p-values.

`python _association.py JOB FOLDER` reads FOLDER, writes log10 p to FOLDER/JOB.npy and prints the
seconds of its work as JSON: reading included, imports and compilation left out. A job imports only
its own package, so that the peers may live in an environment of their own. `measured` starts one.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# Python that has statsmodels, scanpy and illico.
PEERS = os.environ.get("STREAMSEL_PEERS", sys.executable)


# A small process that starts another one: of a process that is started by a large one the system
# reports the memory of that one, too.
LAUNCH = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.call(sys.argv[1:], stderr=subprocess.STDOUT)
took = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(json.dumps({"process": took, "memory": peak}))
sys.exit(code)
"""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Measured(NamedTuple):
    """Cost of a process: seconds of its work, and its peak of memory in MiB."""

    seconds: float
    memory: float


def measured(command: Sequence[Any], folder: Path) -> Measured | None:
    """Run a command on one thread; None if its program, or a package of it, is not installed."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        return None
    done = subprocess.run(  # noqa: S603 (ours)
        [sys.executable, "-S", "-c", LAUNCH, *words],
        cwd=folder,
        env=os.environ | dict.fromkeys(_THREADS, "1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        if "ModuleNotFoundError" in done.stdout or "there is no package" in done.stdout:
            return None
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout[-2000:]}")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    found = {key: value for line in lines for key, value in json.loads(line).items()}
    return Measured(found.get("seconds", found["process"]), found["memory"])


def job(name: str, folder: Path) -> Measured | None:
    """Run a job of this file."""
    python = sys.executable if name.startswith("streamsel") else PEERS
    return measured([python, "-W", "ignore", Path(__file__).resolve(), name, folder], folder)


def arrays(folder: Path) -> dict[str, Any]:
    with np.load(folder / "data.npz", allow_pickle=False) as file:
        return dict(file)


def log10_p(p_values: Any) -> np.ndarray:
    return np.log10(np.maximum(np.asarray(p_values, dtype=float), 1e-300))


def sparse(data: dict[str, Any]) -> Any:
    import scipy.sparse

    parts = (data["data"], data["indices"], data["indptr"])
    return scipy.sparse.csc_matrix(parts, shape=tuple(data["shape"]))


# streamsel


def selected(y: Any, X: Any, relatedness: Any = None, **params: Any) -> Any:
    from streamsel import SelectKBest

    model = SelectKBest("all", **params)
    further = {} if relatedness is None else {"relatedness": relatedness}
    model.learn_target(y, **further)
    model.learn_columns(X)
    return model


def by_name(model: Any, title: str, names: Sequence[Any]) -> np.ndarray:
    """Return a column of the statistics in the order of names, NaN for constant ones."""
    table = model.statistics()
    found = dict(zip(table["name"].tolist(), table[title].tolist(), strict=True))
    return np.array([found.get(name, np.nan) for name in names])


def streamsel_linear(folder: Path) -> Any:
    from streamsel.stream import iter_bed

    source = iter_bed(folder / "x.bed")
    model = selected(np.load(folder / "y.npy"), source, target_type="numeric")
    return log10_p(by_name(model, "p_value", source.names))


def streamsel_mixed(folder: Path) -> Any:
    from streamsel.stream import iter_bed

    source = iter_bed(folder / "x.bed")
    model = selected(np.load(folder / "y.npy"), source, "auto", target_type="numeric")
    return log10_p(by_name(model, "p_value", source.names))


def streamsel_mixed_ml(folder: Path) -> Any:
    """As GEMMA's score test: its matrix, its variance ratio (by ML) and its form of F."""
    from scipy import stats

    from streamsel import Relatedness
    from streamsel.stream import iter_bed

    source, y = iter_bed(folder / "x.bed"), np.load(folder / "y.npy")
    K = np.loadtxt(folder / "output" / "k.cXX.txt")
    ratio = float((folder / "ratio").read_text())
    model = selected(y, source, Relatedness(K, ratio=ratio), target_type="numeric")
    squares = np.array([model.relevance.get(name, np.nan) for name in source.names]) ** 2
    return log10_p(stats.f.sf(y.size * squares, 1, y.size - 2))


def streamsel_logistic(folder: Path) -> Any:
    """Both: the p-values that are reported, and those of the statistic alone."""
    from scipy import stats

    from streamsel.stream import iter_bed

    source = iter_bed(folder / "x.bed")
    model = selected(np.load(folder / "y.npy"), source, target_type="binary")
    z = by_name(model, "effect", source.names) / by_name(model, "standard_error", source.names)
    plain = stats.chi2.sf(z**2, 1)
    return log10_p([by_name(model, "p_value", source.names), plain])


def streamsel_rank(folder: Path) -> Any:
    data = arrays(folder)
    X = sparse(data) if "data" in data else data["X"]
    model = selected(data["labels"], X, score="rank", per_class=True)
    tables = model.markers
    found = np.full((len(tables), X.shape[1]), np.nan)
    for i, label in enumerate(sorted(tables)):
        markers = tables[label]
        found[i, np.asarray(markers["name"], dtype=int)] = np.asarray(markers["p_value"])
    return log10_p(found)


def streamsel_max_t(folder: Path) -> Any:
    data = arrays(folder)
    permutations = int(data["permutations"])
    model = selected(data["labels"], data["X"], score="t", permutations=permutations)
    return by_name(model, "p_adjusted", range(data["X"].shape[1]))


# Peers


def statsmodels(folder: Path) -> Any:
    import statsmodels.api as sm

    data = arrays(folder)
    ones = np.ones((data["y"].size, 1))
    fit = sm.GLM(data["y"], ones, family=sm.families.Binomial()).fit()
    columns = data["X"].T.astype(float)
    p = [fit.model.score_test(fit.params, exog_extra=x[:, None])[1] for x in columns]
    return log10_p(np.ravel(p))


def cells(folder: Path) -> Any:
    import anndata
    import pandas as pd

    data = arrays(folder)
    groups = pd.DataFrame({"group": pd.Categorical(data["labels"])})
    groups.index = groups.index.astype(str)
    return anndata.AnnData(X=sparse(data), obs=groups)


def scanpy(folder: Path) -> Any:
    import scanpy as sc

    data = cells(folder)
    data.X = data.X.tocsr()
    data.uns["log1p"] = {"base": None}
    sc.tl.rank_genes_groups(data, "group", method="wilcoxon", tie_correct=True)
    found = []
    for label in sorted(data.obs["group"].cat.categories):
        frame = sc.get.rank_genes_groups_df(data, label).set_index("names")
        found.append(frame.loc[data.var_names, "pvals"].to_numpy())
    return log10_p(found)


def illico(folder: Path) -> Any:
    import illico as package

    data = cells(folder)
    table = package.asymptotic_wilcoxon(
        data, is_log1p=False, group_keys="group", use_continuity=False, tie_correct=True
    )
    labels = sorted(data.obs["group"].cat.categories)
    return log10_p([table.loc[label].loc[data.var_names, "p_value"].to_numpy() for label in labels])


def scipy(folder: Path) -> Any:
    from scipy import stats

    data = arrays(folder)
    X, labels = data["X"].astype(float), data["labels"]
    known = np.unique(labels)
    p = [
        stats.mannwhitneyu(
            X[labels == label], X[labels != label], method="asymptotic", use_continuity=False
        ).pvalue
        for label in known
    ]
    return log10_p(p)


JOBS: dict[str, Callable[[Path], Any]] = {
    work.__name__: work
    for work in (
        *(streamsel_linear, streamsel_mixed, streamsel_mixed_ml, streamsel_logistic),
        *(streamsel_rank, streamsel_max_t, statsmodels, scanpy, illico, scipy),
    )
}


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    if name.startswith(("streamsel", "illico")):
        # Kernels are compiled, or loaded, by a first run.
        JOBS[name](folder)
    start = time.perf_counter()
    found = JOBS[name](folder)
    print(json.dumps({"seconds": time.perf_counter() - start}))
    np.save(folder / f"{name}.npy", found)


if __name__ == "__main__":
    # The names of jobs are those of packages, and this folder comes first on the path.
    main()
