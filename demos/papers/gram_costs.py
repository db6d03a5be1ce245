"""What does the Gram matrix of columns cost, and when are other methods faster?

Ten principal components of n rows and p columns, in float64, in memory. Columns are sums of forty
hidden variables, whose variances fall off as 1/k, and of as much noise. Methods:

- *Gram matrix*: `PCA` after one pass, exact: n² operations per column.
- *leading axes*: `PCA` without the matrix, the default above 15,000 rows: 30 axes by
  incremental singular values, one pass.
- *settled*: the same, and `learn_loadings`: further passes until convergence.
- scikit-learn's `PCA` by a randomized SVD and by ARPACK, and its `IncrementalPCA`.

`seconds`: processor time on one thread until the scores of the rows are available, the median of
three runs, one run for more than ten million numbers; for *settled* and scikit-learn including the
loadings of all columns. `missed`: the share of the variance of the ten exact components that the
ten of a method do not have; `passes`: the number of passes over the columns.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from _experiment import COLOURS, Experiment, Row, machine, plt, table
from sklearn.decomposition import PCA, IncrementalPCA

import streamsel

Q = 10
HIDDEN = 40
WAYS = ("Gram matrix", "leading axes", "settled", "randomized", "arpack", "incremental")
OURS = ("Gram matrix", "leading axes", "settled")
# With more rows the Gram matrix, and with more numbers ARPACK, takes too long.
MOST_ROWS, MOST_NUMBERS = 8_000, 10**8


def made(n: int, p: int) -> np.ndarray:
    """Return X (n, p), its columns contiguous."""
    rng = np.random.default_rng([n, p])
    scales = np.sqrt(1.0 / np.arange(1, HIDDEN + 1))
    X = np.empty((p, n)).T
    hidden = rng.standard_normal((n, HIDDEN)) * scales
    for start in range(0, p, 1000):
        part = X[:, start : start + 1000]
        part[:] = hidden @ rng.standard_normal((HIDDEN, part.shape[1]))
        part += 2.0 * rng.standard_normal(part.shape)
    return X


def ours(way: str, X: np.ndarray) -> tuple[np.ndarray, float]:
    """Return scores and the number of passes."""
    n, p = X.shape
    most = n if way == "Gram matrix" else 2
    # With a pool of all columns the axes would not be used.
    model = streamsel.PCA(Q, max_gram_rows=most, max_loadings=min(500, p // 4))
    model.learn_columns(X)
    if way == "settled":
        model.learn_loadings(X)
    return model.embedding, model.n_passes


def theirs(way: str, X: np.ndarray) -> tuple[np.ndarray, float]:
    """Return scores and the number of passes, if known."""
    if way == "incremental":
        return IncrementalPCA(Q, batch_size=5 * 4 * Q).fit_transform(X), 2
    return PCA(Q, svd_solver=way, random_state=0).fit_transform(X), np.nan


def measure(axis: str, n: int, p: int, way: str, repeats: int) -> list[Row]:
    """Return what a way costs, and the variance of the components that it finds."""
    X = made(n, p)
    of: Callable[[str, np.ndarray], tuple[np.ndarray, float]] = theirs
    if way in OURS:
        of = ours
        # Kernels are compiled, or loaded, before time is taken.
        of(way, X[:50, :200])
    else:
        X = np.ascontiguousarray(X)
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        scores, passes = of(way, X)
        seconds.append(time.process_time() - started)
    return [
        {
            "axis": axis,
            "n": n,
            "p": p,
            "way": way,
            "seconds": statistics.median(seconds),
            "passes": passes,
            "variance": float(np.square(scores).sum() / (n - 1)),
        }
    ]


def tasks(experiment: Experiment) -> list[tuple]:
    rows = experiment.small((250, 500, 1_000, 2_000, 4_000, 8_000, 16_000), (100, 200, 400))
    columns = experiment.small((500, 2_000, 8_000, 32_000, 64_000), (300, 1_200))
    few = experiment.small(3, 1)
    sizes = [("n", n, experiment.small(5_000, 600)) for n in rows]
    sizes += [("p", experiment.small(1_000, 200), p) for p in columns]
    return [
        (axis, n, p, way, few if n * p <= 10**7 else 1)
        for axis, n, p in sizes
        for way in WAYS
        if (way != "Gram matrix" or n <= MOST_ROWS) and (way != "arpack" or n * p <= MOST_NUMBERS)
    ]


def with_missed(found: pd.DataFrame) -> pd.DataFrame:
    """Return the rows and the part of the variance that each misses of the most that was found."""
    most = found.groupby(["axis", "n", "p"]).variance.transform("max")
    return found.assign(missed=1.0 - found.variance / most)


def figure(found: pd.DataFrame) -> plt.Figure:
    drawn, axes = plt.subplots(1, 2, figsize=(7.6, 3.8))
    for axes_of, by, other in zip(axes, ("n", "p"), ("p", "n"), strict=True):
        part = found[found.axis == by]
        for way, colour in zip(WAYS, COLOURS, strict=False):
            line = part[part.way == way]
            style = "o-" if way in OURS else "s--"
            axes_of.plot(line[by], line.seconds, style, color=colour, ms=4, lw=1.2, label=way)
        words = {"n": "rows", "p": "columns"}
        fixed = f"{part[other].iloc[0]:,} {words[other]}"
        axes_of.set(xscale="log", yscale="log", xlabel=words[by], ylabel="seconds", title=fixed)
    axes[0].legend()
    return drawn


def summary(found: pd.DataFrame) -> str:
    """Return the table of seconds, and of the missed variance if it is not negligible."""
    rows = []
    for (_, n, p), part in found.groupby(["axis", "n", "p"], sort=False):
        row = {"n": f"{n:,}", "p": f"{p:,}"}
        fastest = part[part.missed < 1e-3].seconds.min()
        for way in WAYS:
            mine = part[part.way == way]
            row[way] = "–" if mine.empty else cell(mine.iloc[0], fastest)
        rows.append(row)
    return table(pd.DataFrame(rows))


def cell(mine: pd.Series, fastest: float) -> str:
    seconds = f"{mine.seconds:.2g}" if mine.seconds < 10 else f"{mine.seconds:.0f}"
    if mine.seconds == fastest:
        seconds = f"**{seconds}**"
    missed = f" ({100 * mine.missed:.1g} %)" if mine.missed >= 1e-4 else ""
    passes = f", {mine.passes:.0f} passes" if mine.way == "settled" else ""
    return seconds + missed + passes


def main() -> None:
    experiment = Experiment("gram-costs", __doc__)
    found = with_missed(experiment.each(measure, tasks(experiment)))
    path = experiment.draw(figure(found))
    experiment.publish(f"""
Cells show the processor time in seconds to compute ten principal components of n rows from p
generated columns in memory. *Gram matrix* is exact `PCA` in one pass. *Leading axes* is `PCA`
without the matrix, also in one pass. *Settled* is the same in several passes. The other methods are
scikit-learn's: *randomized* is `PCA` by a randomized SVD, *arpack* is `PCA` by ARPACK, and
*incremental* is `IncrementalPCA`. Brackets show the missed share of the variance of the ten exact
components, if it is above 0.01 %. The fastest method that misses less than 0.1 % is bold.

![Seconds against rows and against columns, one line per method]({path})

{summary(found)}

[All numbers](gram-costs.csv) were made by `python demos/papers/gram_costs.py` with {machine()}.
""")


if __name__ == "__main__":
    main()
