"""Define the jobs of streamsel and its peers, once for time and memory.

All jobs of a family have the same data. Every job gets it in the form that it processes fastest,
made before the clock starts: an array by columns or by rows, or a frame. All run on one thread. A
job is skipped if a run on little data shows that it would take more than `MAX_SECONDS`.

`python -m tests.bench.jobs FAMILY N P JOB` runs one job in a separate process, and prints by how
many bytes memory rose above libraries and data.
"""

import functools
import gc
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from streamsel._utils.system import peak_bytes, resident_bytes

# OpenMP, polars and Rust's rayon read these when they start; no job has started them yet.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"), "1")

QUICK = os.environ.get("STREAMSEL_BENCH") == "quick"
# Number of selected variables, or of components.
K = 10
CLASSES = 20
# Number of sources of the target; several noisy variables show each source.
SOURCES = 5
# A job is timed on this (n, p), to extrapolate its time to others.
SMALL = (100, 20) if QUICK else (500, 200)
# Largest CPU time of a job in seconds, and largest known need of memory above its data in bytes.
MAX_SECONDS = 2.0 if QUICK else 30.0
MAX_BYTES = 2e9
TINY = (60, 20)


class Data(NamedTuple):
    """X (n, p) by columns; y (n,), numbers or codes of classes; T (n, c), y as columns.

    `copies` (SOURCES, number per source) are the indices of the variables that show each source.
    """

    X: np.ndarray
    y: np.ndarray
    T: np.ndarray
    copies: np.ndarray


def planted(n: int, p: int, *, classes: bool, many: bool, seed: int) -> Data:
    """Return Gaussian noise in which few variables, or `many`, show the sources of the target."""
    design = np.random.default_rng(0)
    n_copies = max(3, p // 500 if many else 0)
    copies = design.permutation(p)[: SOURCES * n_copies].reshape(SOURCES, n_copies)
    means = design.standard_normal((CLASSES, SOURCES))
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((p, n)).T
    if classes:
        y = np.arange(n) % CLASSES
        sources, T = means[y], np.eye(CLASSES)[y]
    else:
        sources = rng.standard_normal((n, SOURCES))
        y = sources @ np.linspace(1.0, 0.6, SOURCES) + rng.standard_normal(n)
        T = y[:, None]
    for source, columns in zip(sources.T, copies, strict=True):
        X[:, columns] *= 0.5
        X[:, columns] += source[:, None]
    return Data(X, y, T, copies)


class Job(NamedTuple):
    """A function `run` and the form of the data that it gets.

    `run` returns the indices of the selected variables, or a function from rows to components, or
    None for a physical limit. Its time is proportional to n and p to the powers `n` and `p`.
    `memory` returns the bytes that it needs, if these prevent it from running on large data.
    """

    run: Callable[..., Any]
    form: Callable[[Data], tuple[Any, ...]]
    n: float = 1.0
    p: float = 1.0
    memory: Callable[[int, int], float] = lambda n, p: 0.0
    limit: bool = False


class Family(NamedTuple):
    """Jobs with the same result; the first, one of streamsel's, is the reference of the ratios.

    `about` is their description on the page.
    """

    about: str
    classes: bool
    many: bool
    jobs: dict[str, Job]

    def data(self, n: int, p: int, seed: int = 1) -> Data:
        return planted(n, p, classes=self.classes, many=self.many, seed=seed)


# Forms of the data


def by_columns(data):
    return data.X, data.y


def by_columns_one_hot(data):
    return data.X, data.T


def by_rows(data):
    return np.ascontiguousarray(data.X), data.y


def with_basis(data):
    """Return X and an orthonormal basis of the centred target, on which ProjSe projects."""
    centred = data.T - data.T.mean(axis=0)
    rank = np.linalg.matrix_rank(centred)
    return data.X, np.linalg.svd(centred, full_matrices=False)[0][:, :rank]


def polars_frame(data):
    import polars as pl

    X = pl.DataFrame({str(j): x for j, x in enumerate(data.X.T)})
    return X, pl.Series("y", data.y)


def pandas_frame(data):
    import pandas as pd

    return pd.DataFrame(data.X, columns=[str(j) for j in range(data.X.shape[1])]), pd.Series(data.y)


# Jobs: each imports its own library, so that memory is that of one library


def selector(name, **parameters):
    def run(X, y):
        import streamsel

        model = getattr(streamsel, name)(K, **parameters)
        model.learn_target(y)
        model.learn_columns(X)
        return model.selected

    return run


def sospca(X, y):
    from streamsel import SOSPCA

    model = SOSPCA(K)
    model.learn_target(y)
    model.learn_columns(X)
    _ = model.relevance
    return model.transform_many


def k_best(score, **options):
    def run(X, y):
        from sklearn import feature_selection

        function = functools.partial(getattr(feature_selection, score), **options)
        if score == "r_regression":
            best = feature_selection.SelectKBest(lambda X, y: np.abs(function(X, y)), k=K)
        else:
            best = feature_selection.SelectKBest(function, k=K)
        return best.fit(X, y).get_support(indices=True).tolist()

    return run


def fastcan(X, y, k=K):
    from fastcan import FastCan

    return FastCan(k, verbose=0).fit(X, y).indices_.tolist()


def lazy_fastcan(X, y):
    from fastcan import LazyFastCan

    return LazyFastCan(K).fit(X, y).indices_.tolist()


def mrmrs(task):
    def run(X, y, k=K):
        from mrmrs import mrmr

        return [int(feature.name) for feature in mrmr(X, y, k, task)]

    return run


def mrmr_selection(task):
    def run(X, y):
        with warnings.catch_warnings(action="ignore"):
            import mrmr

            select = getattr(mrmr, f"mrmr_{task}")
            return [int(name) for name in select(X, y, K, n_jobs=1, show_progress=False)]

    return run


def incremental_pca(X, y):
    from sklearn.decomposition import IncrementalPCA

    return IncrementalPCA(K, batch_size=100).fit(X).transform


def pca(solver):
    def run(X, y):
        from sklearn.decomposition import PCA

        return PCA(K, svd_solver=solver, random_state=0).fit(X).transform

    return run


def pls(X, y):
    from sklearn.cross_decomposition import PLSRegression

    return PLSRegression(K).fit(X, y).transform


def product(X, y):
    y @ X


def projection(X, U):
    U.T @ X


# mrmr_selection makes a p x p frame; LazyFastCan's time is mostly that of one step per column.
FRAME = {"n": 0.1, "memory": lambda n, p: 8.0 * p * p}
STEPS = {"n": 0.3}
NEIGHBOURS = {"n": 1.1}

SELECTION = (
    f"The task is to select the {K} best of p variables; {3 * SOURCES} of these depend on the "
    f"{SOURCES} sources of the target, three noisy variables each. ForwardSelection, MRMR and "
    "Lasso use `exact=True`: they make passes until all picks are certified."
)


def exact(*names, **parameters):
    """Return streamsel's selectors with a pool, which make passes until all picks are certified."""
    return {name: Job(selector(name, exact=True, **parameters), by_columns) for name in names}


FAMILIES = {
    "Selection, one numeric target": Family(
        SELECTION,
        classes=False,
        many=False,
        jobs={
            "ProjSe": Job(selector("ProjSe"), by_columns),
            **exact("ForwardSelection", "MRMR", "Lasso"),
            "`y @ X`": Job(product, by_columns, limit=True),
            "SelectKBest f_regression": Job(k_best("f_regression"), by_columns),
            "SelectKBest r_regression": Job(k_best("r_regression"), by_columns),
            "SelectKBest mutual_info_regression": Job(
                k_best("mutual_info_regression", random_state=0), by_columns, **NEIGHBOURS
            ),
            "FastCan": Job(fastcan, by_columns),
            "LazyFastCan": Job(lazy_fastcan, by_columns, **STEPS),
            "mrmrs": Job(mrmrs("regression"), polars_frame),
            "mrmr_selection": Job(mrmr_selection("regression"), pandas_frame, **FRAME),
        },
    ),
    f"Selection, {CLASSES} classes": Family(
        SELECTION + " FastCan gets the classes as columns of zeros and ones.",
        classes=True,
        many=False,
        jobs={
            "ProjSe": Job(selector("ProjSe", target_type="class"), by_columns),
            **exact("ForwardSelection", "MRMR", target_type="class"),
            "`U.T @ X`": Job(projection, with_basis, limit=True),
            "SelectKBest f_classif": Job(k_best("f_classif"), by_rows),
            "SelectKBest mutual_info_classif": Job(
                k_best("mutual_info_classif", random_state=0), by_columns, **NEIGHBOURS
            ),
            "FastCan": Job(fastcan, by_columns_one_hot),
            "LazyFastCan": Job(lazy_fastcan, by_columns_one_hot, **STEPS),
            "mrmrs": Job(mrmrs("classification"), polars_frame),
            "mrmr_selection": Job(mrmr_selection("classif"), pandas_frame, **FRAME),
        },
    ),
    f"Extraction of {K} components": Family(
        f"{K} new variables for one numeric target, which is made of {SOURCES} sources; at least "
        "three variables show each, or p / 500. SOSPCA and PLSRegression use the target, the "
        "others do not. IncrementalPCA reads batches of 100 rows; PCA chooses its solver by the "
        "shape. All of scikit-learn with its defaults otherwise, which copy the data.",
        classes=False,
        many=True,
        jobs={
            "SOSPCA": Job(sospca, by_columns),
            "`y @ X`": Job(product, by_columns, limit=True),
            "IncrementalPCA": Job(incremental_pca, by_rows),
            "PCA": Job(pca("auto"), by_rows),
            "PCA, randomized": Job(pca("randomized"), by_rows),
            "PLSRegression": Job(pls, by_rows),
        },
    ),
}


# Checks and measurements


@functools.cache
def warm(family: str, name: str) -> None:
    """Load what a job needs, compiled loops too."""
    job = FAMILIES[family].jobs[name]
    job.run(*job.form(FAMILIES[family].data(*TINY)))


class Pace(NamedTuple):
    """Wall-clock time and CPU time of a job in seconds, and its result."""

    seconds: float
    cpu: float
    result: Any


@functools.cache
def pace(family: str, name: str) -> Pace:
    """Run a job on `SMALL` data."""
    job = FAMILIES[family].jobs[name]
    warm(family, name)
    args = job.form(FAMILIES[family].data(*SMALL))
    started, cpu = time.perf_counter(), time.process_time()
    result = job.run(*args)
    return Pace(time.perf_counter() - started, time.process_time() - cpu, result)


def why_skipped(family: str, name: str, n: int, p: int) -> str | None:
    """Return why a job is not run on data of this size; None if it is run."""
    job = FAMILIES[family].jobs[name]
    if job.memory(n, p) > MAX_BYTES:
        return f"needs {job.memory(n, p) / 1e9:.0f} GB"
    growth = (n / SMALL[0]) ** job.n * (p / SMALL[1]) ** job.p
    is_long = growth * pace(family, name).cpu > MAX_SECONDS
    return f"more than {MAX_SECONDS:.0f} s" if is_long else None


def extra_memory(family: str, name: str, n: int, p: int) -> int | None:
    """Run a job; return by how many bytes memory rose, None if the system does not report it.

    The record of the process's peak memory is reset before the job: only Linux can do that.
    """
    job = FAMILIES[family].jobs[name]
    warm(family, name)
    args = job.form(FAMILIES[family].data(n, p))
    gc.collect()
    reset = Path("/proc/self/clear_refs")
    if not os.access(reset, os.W_OK):
        return None
    reset.write_text("5")
    before = resident_bytes()
    job.run(*args)
    return peak_bytes() - before


if __name__ == "__main__":
    family, n, p, name = sys.argv[1:]
    with threadpool_limits(1):
        print(extra_memory(family, name, int(n), int(p)))
