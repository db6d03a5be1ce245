"""How many passes does an exact selection with a bounded pool take, and how good is the first pass?

A selector with a bounded pool of candidates has a selection after one pass, reports how many of its
leading picks are proven (`n_certified`), and with `exact=True` makes further passes until all are.
In this experiment the pool is pruned to 4k candidates whenever it has 8k. The default is a pool of
64 MB of columns, which is enough for all of these streams except those of 2,000 × 5,000, so that
one pass is exact.

Real sets in the order of their files; expression levels of colon are log-transformed. Streams are
made of unit Gaussians, with columns in random order except for "neighbours":

- *noise*: no column is related to the target.
- *equicorrelated*: any two columns correlate by 1/2; the target is the sum of twelve and an error.
- *suppressors*: twelve columns are each a part of the target plus a disturbance of the same size,
  twelve are the disturbances, which are uninformative until the first ones are picked.
- *neighbours*: each column correlates with the next by 0.95; the target is as before.

Targets that are classes are used as classes, except by LASSO, which needs a number: 0 for the first
half of the classes and 1 for the others.

Measures: `right`, the number of picks of the first pass among the exact k; `leading`, the number of
leading picks that are exact, in the exact order; `proven`, `n_certified` after one pass; `share`,
the part of the target space explained by the picks of the first pass, relative to the exact ones:
by least squares, and for ForwardSelection by a regression with its own ridge, which is its
objective. LASSO's stages are the solutions of its path, 100 at most, and its picks are proven
together or not at all.
"""

import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _experiment import BUNDLED, Experiment, Row, machine, read, table

import streamsel
from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream

KS = (10, 25, 50)
BLOCK = 100  # columns: a pass ends after a block
# Name in the tables -> class, and its parameters in addition to k, max_candidates and exact.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "ForwardSelection": ("ForwardSelection", {}),
    "ridge 0": ("ForwardSelection", {"ridge": 0.0}),
    "ProjSe": ("ProjSe", {}),
    "MRMR": ("MRMR", {}),
    "Lasso": ("Lasso", {}),
}
REAL = ("glioma", "leukemia_golub3571", "colon_alon", "isolet", "madelon")
QUICK = ("breast_cancer", "digits")
# Kind, n, p.
STREAMS = (
    ("noise", 50, 20_000),
    ("noise", 200, 20_000),
    ("noise", 2_000, 5_000),
    ("equicorrelated", 50, 10_000),
    ("equicorrelated", 200, 10_000),
    ("suppressors", 50, 10_000),
    ("suppressors", 200, 10_000),
    ("suppressors", 2_000, 5_000),
    ("neighbours", 50, 10_000),
    ("neighbours", 200, 10_000),
)
QUICK_STREAMS = (("noise", 60, 500), ("suppressors", 60, 500), ("neighbours", 60, 500))
PARTS = 12
NEAR = 0.95


def made(kind: str, n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return X (n, p), its columns contiguous, and a numeric target (n,)."""
    rng = np.random.default_rng([seed, n, p])
    X = rng.standard_normal((p, n)).T
    if kind == "noise":
        return X, rng.standard_normal(n)
    drawn = rng.choice(p, 2 * PARTS, replace=False)
    parts, disturbances = drawn[:PARTS], drawn[PARTS:]
    if kind == "equicorrelated":
        X = np.sqrt(0.5) * (X + rng.standard_normal((n, 1)))
    elif kind == "neighbours":
        for j in range(1, p):
            X[:, j] = NEAR * X[:, j - 1] + np.sqrt(1.0 - NEAR**2) * X[:, j]
    y = X[:, parts].sum(axis=1) + rng.standard_normal(n)
    if kind == "suppressors":
        X[:, parts] += X[:, disturbances]
    return X, y


@functools.lru_cache(maxsize=1)
def data(folder: Path, name: str, n: int, p: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return X, the target, and whether it is of classes."""
    if n:
        return *made(name, n, p), False
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        X, y = read(folder / f"{name}.npz")[1:3]
    X = np.asfortranarray(X, dtype=float)
    return np.log(X) if name == "colon_alon" else X, y, True


def stream(X: np.ndarray) -> ColumnStream:
    n, p = X.shape

    def blocks() -> Iterator[Block]:
        for start in range(0, p, BLOCK):
            stop = min(start + BLOCK, p)
            yield Block(range(start, stop), X[:, start:stop])

    return ColumnStream(blocks, n_rows=n, n_columns=p)


def space(y: np.ndarray, *, is_class: bool) -> np.ndarray:
    """Return an orthonormal basis (n, r) of the centred target."""
    Y = (y[:, None] == np.unique(y)).astype(float) if is_class else y[:, None]
    U, s, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    return U[:, s > 1e-9 * s[0]]


def explained(X: np.ndarray, picks: list[int], U: np.ndarray, ridge: float) -> float:
    """Return what a ridge regression on these columns explains of the target space, in [0, 1]."""
    chosen = X[:, picks] - X[:, picks].mean(axis=0)
    Q, s, _ = np.linalg.svd(chosen / np.linalg.norm(chosen, axis=0), full_matrices=False)
    Q, s = Q[:, s > 1e-7], s[s > 1e-7]
    return float((s**2 / (s**2 + ridge)) @ np.square(Q.T @ U).sum(axis=1)) / U.shape[1]


def work(folder: Path, name: str, n: int, p: int, method: str, k: int) -> list[Row]:
    """Return one row: a selection after one pass, compared with the exact one."""
    X, y, is_class = data(folder, name, n, p)
    if method == "Lasso" and is_class:
        y, is_class = (y >= (y.max() + 1) / 2).astype(float), False
    kind, parameters = METHODS[method]
    target = {"target_type": "class" if is_class else "numeric"}
    once, exact = (
        getattr(streamsel, kind)(k, max_candidates=4 * k, exact=again, **parameters, **target)
        for again in (False, True)
    )
    seconds = []
    for model in (once, exact):
        start = time.perf_counter()
        model.learn_target(y)
        model.learn_columns(stream(X))
        seconds.append(time.perf_counter() - start)
    if exact.n_certified < len(exact.selected):
        raise AssertionError(f"{method} has {exact.n_certified} of {k} proven on {name}.")
    U = space(y, is_class=is_class)
    ridge = getattr(exact, "ridge", 0.0)
    pairs = zip(once.selected, exact.selected, strict=False)
    same = [first == second for first, second in pairs]
    row = {"stream": name, "n": X.shape[0], "p": X.shape[1], "method": method, "k": k}
    return [
        row
        | {
            "picks": len(exact.selected),
            "passes": exact.n_passes,
            "right": len({*once.selected} & {*exact.selected}),
            "leading": [*same, False].index(False),
            "proven": once.n_certified,
            "share": explained(X, once.selected, U, ridge) / explained(X, exact.selected, U, ridge),
            "seconds_once": seconds[0],
            "seconds_exact": seconds[1],
        }
    ]


def by_stream(found: pd.DataFrame, cell: Callable[[pd.DataFrame], str]) -> str:
    """Return a table with one row per stream, one column per method, and all k in a cell."""
    lines = []
    for (name, n, p), runs in found.groupby(["stream", "n", "p"], sort=False):
        line = {"": f"{name}, {n:,} × {p:,}"}
        line |= {method: cell(of_it) for method, of_it in runs.groupby("method", sort=False)}
        lines.append(line)
    return table(pd.DataFrame(lines))


def passes(runs: pd.DataFrame) -> str:
    return " · ".join(f"{value:.1f}" for value in runs["passes"])


def first_pass(runs: pd.DataFrame) -> str:
    counts = zip(runs["right"], runs["proven"], strict=True)
    return " · ".join(f"{right} ({proven})" for right, proven in counts)


def shares(found: pd.DataFrame) -> str:
    """Return a table of the explained share, relative to the exact picks, over all streams."""
    lines = []
    for method, runs in found.groupby("method", sort=False):
        by_k = runs.groupby("k")["share"]
        line = {"": method} | {f"k = {k}": f"{value:.3f}" for k, value in by_k.mean().items()}
        worst = runs.loc[runs["share"].idxmin()]
        where = f"{worst['stream']}, n = {worst['n']:,}, k = {worst['k']}"
        whole = (runs["right"] == runs["picks"]).sum()
        line |= {"worst": f"{worst['share']:.3f}", "where": where}
        lines.append(line | {"all k right": f"{whole} of {len(runs)}"})
    return table(pd.DataFrame(lines))


def section(found: pd.DataFrame) -> str:
    ks = " · ".join(map(str, found["k"].unique()))
    return f"""
The pool is cut back from 8 × k candidates to 4 × k. Cells show the number of passes with
`exact=True` for k = {ks}, in blocks of {BLOCK} columns. Names of streams end with n × p.

{by_stream(found, passes)}

The next table counts the picks of the first pass that are among the exact k picks. Brackets count
the leading picks that are proven exact.

{by_stream(found, first_pass)}

The last table divides the share of the target that the picks of the first pass explain by the share
that the exact picks explain. Numbers are means over the streams, and *worst* is the lowest number
of a stream. Shares come from least squares, and for ForwardSelection from a regression with its
ridge.

{shares(found)}

[All numbers](passes.csv) were made by `python demos/papers/passes.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("passes", __doc__)
    sources = [(name, 0, 0) for name in experiment.available(experiment.small(REAL, QUICK))]
    sources += experiment.small(STREAMS, QUICK_STREAMS)
    ks = experiment.small(KS, (3, 8))
    # As many picks as rows explain everything: glioma is an example.
    tasks = [
        (name, n, p, method, k)
        for name, n, p in sources
        for method in METHODS
        for k in ks
        if k < (n or np.inf)
    ]
    found = experiment.each(functools.partial(work, experiment.data), tasks)
    experiment.publish(section(found))


if __name__ == "__main__":
    # Under its own name, so that processes (--jobs) find the function that caches the data.
    from passes import main

    main()
