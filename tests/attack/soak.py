"""Learn ten million columns, then a million rows: check memory and the distance from exact sums.

    python -m tests.attack.soak

takes about ten minutes, and is not part of the checks. Each learner runs in a separate process.
Columns and rows are generated a second time for the reference sums in extended precision. It exits
with 1 if a result differs from them by more than `TOLERANCE`, or if memory grows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import streamsel
from streamsel._utils.system import peak_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

N_ROWS, BLOCK = 20, 50_000
N_FEATURES, BATCH = 10, 1_000
TOLERANCE = 1e-9
# Bytes that the allocator may add after the first tenth.
GROWTH = 32 * 2**20

ON_COLUMNS = {
    "ProjSe, a pool": lambda: streamsel.ProjSe(10, max_candidates=60),
    "ForwardSelection, a pool": lambda: streamsel.ForwardSelection(10, max_candidates=60),
    "SelectKBest, a pool": lambda: streamsel.SelectKBest(10, max_candidates=60),
    "MRMR, a pool": lambda: streamsel.MRMR(k=10, max_candidates=60),
    "SOSPCA": lambda: streamsel.SOSPCA(3),
    "PCA": lambda: streamsel.PCA(3),
}
ON_ROWS = {
    "SelectKBest": lambda: streamsel.SelectKBest(5),
    "ProjSe": lambda: streamsel.ProjSe(5),
}


class Found(NamedTuple):
    """Error relative to exact sums, seconds, peak memory, and its growth after the first tenth."""

    error: float
    seconds: float
    peak: int
    growth: int


def target() -> Floats:
    """Return the target of the columns."""
    return np.random.default_rng(1).normal(size=N_ROWS)


def columns(n_columns: int) -> Iterator[tuple[int, Floats]]:
    """Yield blocks of columns and their first index, equal in each call: noise and factors."""
    factors = np.random.default_rng(2).normal(size=(N_ROWS, 3))
    for first in range(0, n_columns, BLOCK):
        rng = np.random.default_rng([3, first])
        size = min(BLOCK, n_columns - first)
        loadings = rng.normal(size=(3, size)) * [[0.9], [0.6], [0.3]]
        yield first, np.asfortranarray(factors @ loadings + rng.normal(size=(N_ROWS, size)) + 100.0)


def rows(n_rows: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield batches of rows and their target, equal in each call, far from 0."""
    weights = np.linspace(0.0, 1.0, N_FEATURES)
    for first in range(0, n_rows, BATCH):
        rng = np.random.default_rng([4, first])
        X = rng.normal(size=(BATCH, N_FEATURES))
        yield X + 1e4, X @ weights + rng.normal(size=BATCH) - 1e5


def learn_columns(name: str, n_columns: int) -> Found:
    """Learn all columns; compare the results with exact ones."""
    model, y = ON_COLUMNS[name](), target()
    if model._is_supervised:
        model.learn_target(y)
    began, early = time.monotonic(), 0
    for first, X in columns(n_columns):
        model.learn_columns(X)
        if first <= n_columns // 10:
            early = peak_bytes() or 0
    seconds, peak = time.monotonic() - began, peak_bytes() or 0
    exact = {"SOSPCA": _off_sums, "PCA": _off_axes}.get(name, _off_relevance)
    error = exact(model, n_columns) if model.n_columns == n_columns else np.nan
    return Found(error, seconds, peak, peak - early)


def _off_relevance(model: Any, n_columns: int) -> float:
    """Compare relevances with those of the columns, computed exactly."""
    y, relevance, worst = _centred(target()), model.relevance, 0.0
    best: list[tuple[float, int]] = []
    for first, X in columns(n_columns):
        Z = X - X.mean(axis=0)
        r2 = (y.astype(float) @ Z) ** 2 / (Z**2).sum(axis=0)
        best += [(-r2[j], first + int(j)) for j in np.argsort(-r2, kind="stable")[:10]]
        best = sorted(best)[:10]
        for j in (j for j in relevance if first <= j < first + X.shape[1]):
            x = _centred(X[:, j - first])
            exact = abs(x @ y) / np.sqrt((x @ x) * (y @ y))
            worst = max(worst, abs(float(relevance[j] - exact)))
    if isinstance(model, streamsel.SelectKBest) and model.selected != [j for _, j in best]:
        return np.nan
    return worst


def _off_sums(model: Any, n_columns: int) -> float:
    """Compare components with exact weighted sums of their columns."""
    exact = np.zeros((N_ROWS, len(model.components)), dtype=np.longdouble)
    for first, X in columns(n_columns):
        for j in (j for j in model.loadings if first <= j < first + X.shape[1]):
            x = _centred(X[:, j - first])
            for i, component in enumerate(model.components):
                exact[:, i] += x * model.loadings[j].get(component, 0.0)
    return float(np.abs(model.embedding - exact).max() / np.abs(exact).max())


def _off_axes(model: Any, n_columns: int) -> float:
    """Compare components with the leading eigenvectors of the exact Gram matrix."""
    K = np.zeros((N_ROWS, N_ROWS), dtype=np.longdouble)
    for _, X in columns(n_columns):
        Z = np.asarray(X, dtype=np.longdouble)
        Z -= Z.mean(axis=0)
        K += Z @ Z.T
    d, E = np.linalg.eigh(K.astype(float))
    exact = E[:, -3:] * d[-3:] @ E[:, -3:].T
    return float(np.abs(model.embedding @ model.embedding.T - exact).max() / d[-1])


def _centred(x: Floats) -> Any:
    x = np.asarray(x, dtype=np.longdouble)
    return x - x.mean()


def learn_rows(name: str, n_rows: int) -> Found:
    """Learn rows one by one; compare relevances with those of exact sums."""
    model = ON_ROWS[name]()
    began, early, n_learnt = time.monotonic(), 0, 0
    for X, y in rows(n_rows):
        for x, value in zip(X.tolist(), y.tolist(), strict=True):
            model.learn_one(dict(enumerate(x)), value)
        n_learnt += len(y)
        if n_learnt <= n_rows // 10:
            early = peak_bytes() or 0
    seconds, peak = time.monotonic() - began, peak_bytes() or 0
    x_mean = sum(np.asarray(X, np.longdouble).sum(axis=0) for X, _ in rows(n_rows)) / n_learnt
    y_mean = sum(np.asarray(y, np.longdouble).sum() for _, y in rows(n_rows)) / n_learnt
    xx, yy, xy = (np.zeros(N_FEATURES, dtype=np.longdouble) for _ in range(3))
    for X, y in rows(n_rows):
        Z, v = X - x_mean, y - y_mean
        xx, yy, xy = xx + (Z**2).sum(axis=0), yy + v @ v, xy + v @ Z
    exact = np.abs(xy) / np.sqrt(xx * yy)
    error = max(abs(float(found - exact[j])) for j, found in model.relevance.items())
    return Found(error, seconds, peak, peak - early)


def main() -> int:
    """Run the soak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=10_000_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    context, bad = multiprocessing.get_context("spawn"), 0
    print(f"{'':34}{'error':>10}{'seconds':>10}{'peak, MiB':>11}{'growth, MiB':>13}")
    for learn, names, n, of in (
        (learn_columns, ON_COLUMNS, options.columns, "columns"),
        (learn_rows, ON_ROWS, options.rows, "rows"),
    ):
        for name in names:
            with context.Pool(1) as pool:
                found = pool.apply(learn, (name, n))
            bad += not found.error <= TOLERANCE or found.growth > GROWTH
            mebi = f"{found.peak / 2**20:>11,.0f}{found.growth / 2**20:>13,.1f}"
            print(
                f"{name + ', ' + of:34}{found.error:>10.1e}{found.seconds:>10,.0f}{mebi}",
                flush=True,
            )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
