"""How large is the state of SOSPCA after a stream of ten million columns?

Fillmore (2009), section 3.2, states that the rows of B to be stored are "proportional to (log
p)/p". That is the share of the columns that are kept. A theoretical number: if columns arrive in
random order, column t is among the best q so far with chance min(1, q/t), whatever the distribution
of their relevance. So q (1 + ln(p/q)) of p columns are expected, the number that a learner would
accept that kept the q best without rotations. This experiment counts these columns in the stream,
and those that SOSPCA accepts, whose threshold rises with rotations.

Random order: "noise", Gaussian columns, and "factors", correlated columns, each the sum of noise
and one of five latent factors that make the target, with its own share in (0, 0.9).
Rising relevance, where the argument does not hold: "sorted", Gaussian noise from the least to the
most relevant column, and "refined", one measurement of the target that gets better from column to
column, its error nearly the same in all (a hundredth of it is new), so that there is nothing to
average out: the worst case.

n = 50 observations, a numeric target, float32 blocks of 10,000 columns that are generated as they
are learnt. A rotation passes the loadings of the dropped component to the survivor, so an accepted
variable stays, unless the angle was exactly 0 or a right one, or its loading underflowed after some
thousand rotations: `left` counts those, and columns accepted are `support` + `left`. The size of a
model is that of its pickle; the growth of the process's memory is that after column 10,000, or
after a tenth of a shorter stream.
"""

import heapq
import pickle
import time

import numpy as np
import pandas as pd
import scipy.stats
from _experiment import COLOURS, Experiment, machine, plt, table

from streamsel import SOSPCA
from streamsel._utils.system import resident_bytes

N = 50
BLOCK = 10_000
# Short, so that variables that join and leave are noticed.
BLOCK_OF_REFINED = 100
QS = (5, 20, 50)
FACTORS = 5
STREAMS = {
    "noise": "Gaussian noise, random order",
    "factors": "five latent factors, random order",
    "sorted": "Gaussian noise, sorted by relevance",
    "refined": "one measurement, refined",
}


def bound(p: np.ndarray | int, q: int) -> np.ndarray:
    """Return the expected number of columns that are among the best q when they arrive."""
    return q * (1.0 + np.log(np.maximum(p, q) / q))


class Stream:
    """The target (n,), and float32 blocks of columns (b, n), one column per row."""

    def __init__(self, kind: str, seed: int, p: int) -> None:
        self.kind = kind
        self.p = p
        self.rng = np.random.default_rng([list(STREAMS).index(kind), seed])
        y = self.rng.standard_normal(N)
        self.factors = self.rng.standard_normal((FACTORS, N), dtype=np.float32)
        if kind == "factors":
            y = np.sqrt(0.8 / FACTORS) * self.factors.sum(axis=0) + np.sqrt(0.2) * y
        self.y = y
        self.direction = ((y - y.mean()) / np.linalg.norm(y - y.mean())).astype(np.float32)
        # Every measurement of "refined" has most of this error.
        self.error = self._uncorrelated(self.rng.standard_normal((1, N), dtype=np.float32))

    def fill(self, block: np.ndarray, start: int) -> None:
        """Fill a block with the columns from index `start` on."""
        self.rng.standard_normal(out=block, dtype=np.float32)
        if self.kind == "factors":
            share = self.rng.uniform(0.0, 0.9, (len(block), 1)).astype(np.float32)
            of_factor = self.factors[self.rng.integers(FACTORS, size=len(block))]
            block *= np.sqrt(1.0 - share**2)
            block += share * of_factor
        elif self.kind in ("sorted", "refined"):
            level = (start + 0.5 + np.arange(len(block))) / self.p
            own = self._uncorrelated(block)
            if self.kind == "sorted":
                relevance2 = scipy.stats.beta(0.5, 0.5 * (N - 2)).ppf(level)
            else:
                relevance2 = level**2
                own = np.float32(np.sqrt(1.0 - 0.01**2)) * self.error + np.float32(0.01) * own
            relevance = np.sqrt(relevance2).astype(np.float32)[:, None]
            block[:] = relevance * self.direction + np.sqrt(1.0 - relevance**2) * own

    def _uncorrelated(self, columns: np.ndarray) -> np.ndarray:
        """Return centred columns of length 1 that do not correlate with the target."""
        columns = columns - columns.mean(axis=1, keepdims=True)
        columns -= np.outer(columns @ self.direction, self.direction)
        return columns / np.linalg.norm(columns, axis=1, keepdims=True)

    def relevance(self, block: np.ndarray) -> np.ndarray:
        """Return the relevance of each column, computed without the model."""
        squares = np.einsum("ij,ij->i", block, block) - block.mean(axis=1) ** 2 * N
        return np.abs(block @ self.direction) / np.sqrt(squares)


def join_best(best: list[float], relevance: np.ndarray, q: int) -> int:
    """Keep the q best in a heap; return how many columns were among them on arrival."""
    came = 0
    waiting = relevance if len(best) < q else relevance[relevance > best[0]]
    for value in waiting.tolist():
        if len(best) < q:
            heapq.heappush(best, value)
        elif value > best[0]:
            heapq.heapreplace(best, value)
        else:
            continue
        came += 1
    return came


def follow(kind: str, q: int, seed: int, p: int) -> list[dict]:
    """Return the state of a model after 100, 1,000, ... columns of one stream of p."""
    stream = Stream(kind, seed, p)
    model = SOSPCA(q)
    model.learn_target(stream.y)
    size = BLOCK_OF_REFINED if kind == "refined" else BLOCK
    room = np.empty((size, N), dtype=np.float32)
    best: list[float] = []
    held: set = set()
    rows, came, left, seconds, at, settled = [], 0, 0, 0.0, 0, np.nan
    for checkpoint in (10**e for e in range(2, round(np.log10(p)) + 1)):
        while at < checkpoint:
            block = room[: min(len(room), checkpoint - at)]
            stream.fill(block, at)
            came += join_best(best, stream.relevance(block), q)
            started = time.perf_counter()
            model.learn_columns(block.T)
            seconds += time.perf_counter() - started
            support = set(model.loadings)
            left += len(held - support)
            held = support
            at += len(block)
            if at == min(BLOCK, p // 10):
                # By now the process has what it needs for any number of columns.
                settled = resident()
        rows.append(
            {
                "stream": kind,
                "q": q,
                "seed": seed,
                "p": at,
                "bound": bound(at, q),
                "best_so_far": came,
                "support": len(held),
                "left": left,
                "accepted": len(held) + left,
                "weakest": min(model.relevance.values()),
                "model_bytes": len(pickle.dumps(model)),
                "grown_bytes": resident() - settled,
                "seconds": seconds,
            }
        )
    return rows


def resident() -> float:
    """Return the resident bytes of this process; NaN if the system does not report them."""
    return float(resident_bytes() or np.nan)


def tasks(experiment: Experiment) -> list[tuple]:
    long, short = experiment.small((10**7, 10**6), (10**5, 10**4))
    n_long, n_all = experiment.small((3, 8), (1, 2))
    found = []
    for kind in ("noise", "factors"):
        found += [(kind, q, seed, long) for q in QS for seed in range(n_long)]
        found += [(kind, q, seed, short) for q in QS for seed in range(n_long, n_all)]
    n_sorted = experiment.small(3, 1)
    ends = {"sorted": experiment.small(10**5, 10**4), "refined": experiment.small(10**4, 10**3)}
    return found + [(k, q, s, p) for k, p in ends.items() for q in QS for s in range(n_sorted)]


def figure(found: pd.DataFrame) -> plt.Figure:
    drawn, axes = plt.subplots(2, 2, figsize=(7.6, 6.6))
    for axis, (kind, title) in zip(axes.flat, STREAMS.items(), strict=True):
        of_kind = found[found.stream == kind]
        for q, colour in zip(QS, COLOURS, strict=False):
            by_size = of_kind[of_kind.q == q].groupby("p")
            seen, support = by_size.support.median().index, by_size.support
            axis.plot(
                seen, support.median(), "o-", color=colour, ms=4, label=f"support, {q} components"
            )
            axis.fill_between(seen, support.min(), support.max(), color=colour, alpha=0.2, lw=0)
            axis.plot(seen, by_size.best_so_far.mean(), "x", color=colour, ms=6)
            axis.plot(seen, bound(np.asarray(seen), q), "--", color=colour, lw=1)
        axis.set(xscale="log", title=title, xlabel="columns seen", ylabel="columns kept")
        if kind in ("sorted", "refined"):
            axis.set_yscale("log")
        else:
            axis.set_ylim(0)
    axes[0, 0].plot([], [], "x", color=COLOURS[5], label="among the best so far")
    axes[0, 0].plot([], [], "--", color=COLOURS[5], lw=1, label="expected in random order")
    axes[0, 0].legend(loc="upper left", fontsize=8)
    return drawn


def summary(found: pd.DataFrame) -> str:
    """Return the table of the state at the end of the longest streams."""
    rows = []
    for (kind, q), runs in found.groupby(["stream", "q"], sort=False):
        p = runs.p.max()
        last = runs[runs.p == p]
        support = last.support
        rows.append(
            {
                "stream": kind,
                "q": q,
                "columns p": f"{p:,}",
                "q (1 + ln(p/q))": f"{bound(p, q):.0f}",
                "among the best q so far": f"{last.best_so_far.mean():,.0f}",
                "accepted": f"{last.accepted.median():,.0f}",
                "support": f"{support.median():,.0f} ({support.min():,} to {support.max():,})",
                "model": f"{last.model_bytes.median() / 1000:,.0f} kB",
                "process": f"{(last.grown_bytes / 1e6).max():+.1f} MB",
                "seconds": f"{last.seconds.median():.2f}",
            }
        )
    return table(pd.DataFrame(rows))


def main() -> None:
    experiment = Experiment("sospca-memory", __doc__)
    found = experiment.each(follow, tasks(experiment))
    path = experiment.draw(figure(found))
    random = found[found.stream.isin(["noise", "factors"])]
    experiment.publish(f"""
The figure shows the state of SOSPCA after 100, 1,000, ... generated columns, for q =
{", ".join(map(str, QS))} (n = {N}, one numeric target). The table shows the state at the end of the
longest streams. `noise` and `factors` (correlated columns) arrive in random order. `sorted` is
noise of rising relevance, and `refined` is a measurement that improves. There are up to
{found.seed.nunique()} seeds, but fewer for the longest streams and for streams in order of
relevance.

`among the best q so far` counts the columns that were among the q most relevant when they arrived.
`accepted` counts the columns that joined, and `support` counts the variables with a loading at the
end (median and range over seeds). In random order, {random.left.sum():.0f} accepted columns had no
loading at the end. `model` is the size of the pickle, and `process` is the growth of resident
memory after the first {BLOCK:,} columns, or after the first tenth of a shorter stream.

![Columns kept against columns seen, one panel per stream: the support, the columns among the best q
so far, and q (1 + ln(p/q))]({path})

{summary(found)}

[All numbers](sospca-memory.csv) were made by `python demos/papers/sospca_memory.py` with
{machine()}.
""")


if __name__ == "__main__":
    main()
