"""How does ProjSe's time grow with samples, up to ten million, and with variables, up to a million?

Szedmak and others (2023), section 5.1 and figure 4: X Gaussian, Y = X W + noise, W Gaussian; "less
than four seconds" at the largest sample, on a "12th Gen Intel Core i5-12600K * 10". Their published
script makes as many outputs as variables, 100, and selects all 100; the noise is as strong as the
signal. This experiment does the same, and also 10 outputs and 10 selections. (Their rows have
length 1, which changes only the scale; here W is divided by the root of the number of variables
instead.)

Rows: blocks of 10,000 are made, learnt by `learn_many`, and discarded; 16 GB at ten million rows of
100 variables and 100 outputs. The kernels differ only in the selection, as functions of
the same moments, and are run to a smaller size.
Columns in memory: `learn_target` and `learn_columns` of arrays; rows must select the same there.
Variables: blocks of columns of 1,000 rows, with all candidates and with a pool of 100. The paper
has no planted variables; here ten among the first hundred make the outputs, and should be
selected.

Seconds are those of learning, summed over blocks, and of `selected` afterwards; making the data is
not counted. Lower limits, on the same blocks and in turn: the product X'Y, the
product Y'Y that the target's covariance needs, and reading X once (`X.sum()`). One thread; the
first block is learnt twice, because at first loops are compiled and memory is allocated.
"""

import pickle
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from _experiment import COLOURS, Experiment, machine, plt, table

from streamsel import ProjSe
from streamsel._utils.system import resident_bytes

P = 100
BLOCK = 10_000
FEW_ROWS = 1_000
PLANTED = 10
BLOCK_OF_COLUMNS = 2_000
PAPER_SECONDS = 4.0
LINES = {
    "learn": ("streamsel", COLOURS[0], "-"),
    "products": ("both products", COLOURS[5], "-"),
    "xty": ("one product", COLOURS[5], "--"),
    "read": ("reading alone", COLOURS[5], ":"),
}


class Seconds(defaultdict):
    """Seconds spent on each kind of work."""

    def __init__(self) -> None:
        super().__init__(float)

    def on(self, what: str, work: Callable[[], Any]) -> None:
        """Do the work and add its time."""
        started = time.perf_counter()
        work()
        self[what] += time.perf_counter() - started

    def on_limits(self, X: np.ndarray, Y: np.ndarray, *, new_target: bool) -> None:
        """Add the times of the lower limits."""
        self.on("xty", lambda: X.T @ Y)
        self.on("read", X.sum)
        if new_target:
            self.on("yty", lambda: Y.T @ Y)


def blocks_of_rows(outputs: int, seed: int, edges: list[int]) -> Iterator[tuple]:
    """Yield (rows so far, X, Y), cut at the edges; the arrays are reused."""
    rng = np.random.default_rng([seed, outputs])
    W = rng.standard_normal((P, outputs)) / np.sqrt(P)
    X, Y, signal = np.empty((BLOCK, P)), np.empty((BLOCK, outputs)), np.empty((BLOCK, outputs))
    at = 0
    for edge in edges:
        while at < edge:
            b = min(BLOCK, edge - at)
            rng.standard_normal(out=X[:b])
            rng.standard_normal(out=Y[:b])
            Y[:b] += np.matmul(X[:b], W, out=signal[:b])
            at += b
            yield at, X[:b], Y[:b]


def blocks_of_columns(outputs: int, seed: int, edges: list[int]) -> Iterator[tuple]:
    """Yield (columns so far, X, Y), cut at the edges; X in Fortran order, used again."""
    rng = np.random.default_rng([seed, outputs])
    planted = rng.standard_normal((PLANTED, FEW_ROWS))
    signal = planted.T @ rng.standard_normal((PLANTED, outputs)) / np.sqrt(PLANTED)
    Y = signal + rng.standard_normal((FEW_ROWS, outputs))
    columns = np.empty((BLOCK_OF_COLUMNS, FEW_ROWS))
    at = 0
    for edge in edges:
        while at < edge:
            b = min(BLOCK_OF_COLUMNS, edge - at)
            rng.standard_normal(out=columns[:b])
            if at == 0:
                columns[:PLANTED] = planted
            at += b
            yield at, columns[:b].T, Y


def follow(axis: str, outputs: int, kind: str, seed: int, end: int) -> list[dict]:
    """Return time and state of a model after 10^2 or 10^3, ... rows or columns of one stream."""
    by_rows = axis == "rows"
    edges = [10**e for e in range(3 if by_rows else 2, round(np.log10(end)) + 1)]
    blocks = (blocks_of_rows if by_rows else blocks_of_columns)(outputs, seed, edges)
    pool = {"kernel": "linear", "max_candidates": 100}
    model = ProjSe(k=outputs, **(pool if kind == "pool" else {"kernel": kind}))
    seconds, found, before = Seconds(), [], np.nan
    for at, X, Y in blocks:
        if at == edges[0]:
            learn(axis, model.clone(), X, Y, Seconds())
        learn(axis, model, X, Y, seconds)
        if at == BLOCK:
            before = resident()
        seconds.on_limits(X, Y, new_target=by_rows or at == edges[0])
        if at in edges:
            seconds["select"] = 0.0
            seconds.on("select", lambda: model.selected)
            size = {"n": at, "p": P} if by_rows else {"n": FEW_ROWS, "p": at}
            planted = np.mean([name < PLANTED for name in model.selected])
            right = {} if by_rows else {"right": float(planted)}
            found.append(size | memory_of(model, before) | right | dict(seconds))
    return found


def in_memory(outputs: int, seed: int, n: int) -> list[dict]:
    """Return what the columns of arrays in memory took, and whether rows select the same."""
    X, Y = np.empty((n, P), order="F"), np.empty((n, outputs))
    on_rows = ProjSe(k=outputs)
    for at, rows, ys in blocks_of_rows(outputs, seed, [n]):
        X[at - len(rows) : at], Y[at - len(rows) : at] = rows, ys
        on_rows.learn_many(rows, ys)
    model, seconds = ProjSe(k=outputs), Seconds()
    learn("columns", model.clone(), np.asfortranarray(X[:BLOCK]), Y[:BLOCK], Seconds())
    before = resident()
    learn("columns", model, X, Y, seconds)
    seconds.on("select", lambda: model.selected)
    seconds.on_limits(X, Y, new_target=True)
    same = np.mean([a == b for a, b in zip(model.selected, on_rows.selected, strict=True)])
    size = {"n": n, "p": P, "right": float(same)}
    return [size | memory_of(model, before) | dict(seconds)]


def learn(axis: str, model: ProjSe, X: np.ndarray, Y: np.ndarray, seconds: Seconds) -> None:
    """Learn a block of rows, or of columns and before the first of them the target."""
    if axis == "rows":
        seconds.on("learn", lambda: model.learn_many(X, Y))
        return
    if model.n_columns == 0:
        seconds.on("learn", lambda: model.learn_target(Y))
    seconds.on("learn", lambda: model.learn_columns(X))


def memory_of(model: ProjSe, before: float) -> dict[str, float]:
    """Return the size of a model and the growth of the process."""
    return {"model_bytes": len(pickle.dumps(model)), "grown_bytes": resident() - before}


def resident() -> float:
    """Return the resident bytes of this process; NaN if the system does not report them."""
    return float(resident_bytes() or np.nan)


def work(axis: str, outputs: int, kind: str, seed: int, end: int) -> list[dict]:
    in_array = axis == "columns"
    rows = in_memory(outputs, seed, end) if in_array else follow(axis, outputs, kind, seed, end)
    task = {"axis": axis, "outputs": outputs, "kind": kind, "seed": seed}
    return [task | row for row in rows]


def tasks(experiment: Experiment) -> list[tuple]:
    long, short = experiment.small((10**7, 10**6), (10**4, 10**4))
    shorter, seeds = short // 10, experiment.small(3, 1)
    found = []
    for outputs in (100, 10):
        found += [("rows", outputs, "linear", s, short if s else long) for s in range(seeds)]
        found += [("columns", outputs, "linear", s, shorter) for s in range(seeds)]
        found.append(("columns", outputs, "linear", 0, short))
    found += [("rows", 100, kind, s, shorter) for kind in ("poly", "rbf") for s in range(seeds)]
    for kind in ("linear", "pool"):
        found += [("variables", 10, kind, s, shorter if s else short) for s in range(seeds)]
    return found


def medians(found: pd.DataFrame) -> pd.DataFrame:
    """Return medians over seeds, by axis, outputs, kind and size."""
    found = found.assign(products=found.xty + found.yty)
    keys = ["axis", "outputs", "kind", "n", "p"]
    middle = found.groupby(keys, sort=False).median(numeric_only=True).reset_index()
    return middle.assign(ratio=middle.learn / middle.products)


def figure(middle: pd.DataFrame) -> plt.Figure:
    drawn, axes = plt.subplots(1, 3, figsize=(7.6, 4.4), sharey=True)
    panels = (("rows", 100, "n"), ("rows", 10, "n"), ("variables", 10, "p"))
    for axis, (along, outputs, size) in zip(axes, panels, strict=True):
        one = middle[(middle.axis == along) & (middle.outputs == outputs)]
        linear = one[one.kind == "linear"]
        for what, (label, colour, style) in LINES.items():
            axis.loglog(linear[size], linear[what], style, color=colour, label=label)
        if along == "rows":
            alongside = middle[(middle.axis == "columns") & (middle.outputs == outputs)]
            label, colour = "columns in memory", COLOURS[1]
            axis.set(title=f"{outputs} outputs, {P} variables", xlabel="rows")
        else:
            alongside = one[one.kind == "pool"]
            label, colour = "pool of 100", COLOURS[2]
            axis.set(title=f"{outputs} outputs, {FEW_ROWS:,} rows", xlabel="variables")
        axis.plot(alongside[size], alongside.learn, "o-", ms=4, color=colour, label=label)
    axes[0].plot(10**7, PAPER_SECONDS, "v", color=COLOURS[6], label="paper: under 4 s")
    axes[0].set_ylabel("seconds")
    for axis in axes[::2]:
        axis.legend(fontsize=8)
    return drawn


def summary(middle: pd.DataFrame) -> str:
    """Return the table of the two largest sizes of each case."""
    largest = middle.groupby(["axis", "outputs", "kind"], sort=False).tail(2)
    paper = (largest.axis == "rows") & (largest.n == 10**7) & (largest.outputs == P)
    shown = {
        "by": largest.axis.where(largest.kind == "linear", largest.axis + ", " + largest.kind),
        "outputs": largest.outputs,
        "rows": largest.n.map("{:,}".format),
        "variables": largest.p.map("{:,}".format),
        "learnt": largest.learn.map("{:.3g} s".format),
        "X'Y": largest.xty.map("{:.3g} s".format),
        "X'Y and Y'Y": largest.products.map("{:.3g} s".format),
        "ratio": largest.ratio.map("{:.1f}".format),
        "selected": (1e3 * largest["select"]).map("{:.3g} ms".format),
        "model": (largest.model_bytes / 1e6).map("{:,.3g} MB".format),
        "paper": np.where(paper, "< 4 s", ""),
    }
    return table(pd.DataFrame(shown))


def main() -> None:
    experiment = Experiment("projse-scaling", __doc__)
    found = experiment.each(work, tasks(experiment))
    middle = medians(found)
    path = experiment.draw(figure(middle))
    rows, columns = found[found.axis == "rows"], found[found.axis == "columns"]
    planted = found[(found.axis == "variables") & (found.p == found.p.max())]
    experiment.publish(f"""
X is Gaussian, and Y is X W plus noise as strong as the signal. With `rows`, blocks of {BLOCK:,}
rows of {P} variables are generated and discarded. With `columns`, the same data are whole columns
in memory. With `variables`, blocks of columns of {FEW_ROWS:,} rows are learnt, and Y is made of
{PLANTED} planted variables. With `pool`, `max_candidates=100` is added. As many variables are
selected as there are outputs.

Seconds are totals of learning, as medians over {found.seed.nunique()} seeds (one run for the
largest size). The time to generate a block is not counted. The ratio is relative to the lower
limit: X'Y and Y'Y, computed by BLAS on the same blocks. The paper's machine was a 12th Gen Intel
Core i5-12600K * 10.

![Seconds against rows and against variables, for streamsel, for X'Y and Y'Y, for X'Y alone, and for
reading X]({path})

{summary(middle)}

After the first {BLOCK:,} rows, the process grew by {rows.grown_bytes.max() / 1e6:.0f} MB at most.
Learning the same data as rows or as columns gave the same selection
({100 * columns.right.mean():.4g} % of the variables, in the same order). Among {planted.p.max():,}
variables, {100 * planted.right.mean():.4g} % of the {PLANTED} planted variables were selected.

[All numbers](projse-scaling.csv) were made by `python demos/papers/projse_scaling.py` with
{machine()}.
""")


if __name__ == "__main__":
    main()
