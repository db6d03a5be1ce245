"""How much pure noise do selectors select, and do tests on arrival hold their level?

Two parts, in one CSV file:

1. *noise*: streams of Gaussian columns that are independent of a Gaussian target; every method with
   its defaults. Methods that select k variables select k of noise, too: the measure is how many of
   these are above `noise_floor()`, the relevance that the best of as many columns of noise exceeds
   in one stream of twenty. It is also counted for methods that select only what passes a test.
2. *planted*: twenty signals among as many columns. *measurements*: each is the target and an error
   of its own, correlations with the target evenly from 0.1 to 0.5; *parts*: the target is the sum
   of the signals and an error, correlations from 0.1 to 0.3. They come first, evenly spread, or
   last, each time in random order among themselves. A false discovery is a column that is not a
   signal; the rate is the mean over streams of their share, 0 if nothing is selected; power is the
   share of signals that are found.

The level is 0.05 for OnlineFDR, the default, and for SelectKBest; alpha-investing has its defaults,
a wealth and a payout of 0.5, and alternatively a payout and a wealth of 0.05.
"""

import time
from typing import Any

import numpy as np
import pandas as pd
from _experiment import Experiment, Row, machine, table

import streamsel

N, P, N_STREAMS = 200, 5_000, 100
N_SIGNALS = 20
RANGES = {"measurements": (0.1, 0.5), "parts": (0.1, 0.3)}
KINDS = ("noise", *RANGES)
ORDERS = ("first", "spread", "last")
# Name in the tables -> class, and parameters that differ from the defaults.
TESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "SelectKBest, fdr 0.05": ("SelectKBest", {"fdr": 0.05}),
    "OnlineFDR, lord++": ("OnlineFDR", {}),
    "OnlineFDR, saffron": ("OnlineFDR", {"rule": "saffron"}),
    "OnlineFDR, addis": ("OnlineFDR", {"rule": "addis"}),
    "AlphaInvesting": ("AlphaInvesting", {}),
    "AlphaInvesting, 0.05": ("AlphaInvesting", {"initial_wealth": 0.05, "payout": 0.05}),
}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "ProjSe": ("ProjSe", {}),
    "ForwardSelection": ("ForwardSelection", {}),
    "MRMR": ("MRMR", {}),
    "Lasso": ("Lasso", {}),
    **TESTS,
    "OSFS, fast": ("OSFS", {}),
    "OSFS": ("OSFS", {"fast": False}),
    "SAOLA": ("SAOLA", {}),
}


def learnt(method: str, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """Return a model that has learnt the columns, and its seconds."""
    name, parameters = METHODS[method]
    model = getattr(streamsel, name)(**parameters)
    start = time.perf_counter()
    model.learn_target(y)
    model.learn_columns(X)
    return model, time.perf_counter() - start


def noise(p: int, rng: np.random.Generator) -> list[Row]:
    X, y = rng.standard_normal((p, N)).T, rng.standard_normal(N)
    made = []
    for method in METHODS:
        model, seconds = learnt(method, X, y)
        # The relevance of a pick is its own, whatever was picked before.
        above = sum(value > model.noise_floor() for value in model.relevance.values())
        row = {"method": method, "kept": len(model.selected), "above": above}
        made.append(row | {"seconds": seconds})
    return made


def planted(kind: str, rng: np.random.Generator, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Return signals (n, s) before noise, (n, p) together, and the target (n,)."""
    X, error = rng.standard_normal((p, N)).T, rng.standard_normal(N)
    strength = rng.permutation(np.linspace(*RANGES[kind], N_SIGNALS))
    if kind == "measurements":
        rest = np.sqrt(1.0 - strength**2)
        X[:, :N_SIGNALS] = strength * error[:, None] + rest * X[:, :N_SIGNALS]
        return X, error
    return X, X[:, :N_SIGNALS] @ strength + np.sqrt(1.0 - strength @ strength) * error


def positions(order: str, p: int) -> np.ndarray:
    """Return the positions of the signals among p columns."""
    if order == "spread":
        return (np.arange(N_SIGNALS) + 0.5) * p // N_SIGNALS
    return np.arange(N_SIGNALS) + (p - N_SIGNALS) * (order == "last")


def found_among(kind: str, p: int, rng: np.random.Generator) -> list[Row]:
    X, y = planted(kind, rng, p)
    made = []
    for order in ORDERS:
        signals = positions(order, p).astype(int)
        others = np.setdiff1d(np.arange(p), signals)
        arranged = np.empty_like(X)
        arranged[:, signals], arranged[:, others] = X[:, :N_SIGNALS], X[:, N_SIGNALS:]
        for method in TESTS:
            model, seconds = learnt(method, arranged, y)
            kept, right = len(model.selected), len({*model.selected} & {*signals.tolist()})
            row = {"order": order, "method": method, "kept": kept, "right": right}
            made.append(row | {"false": kept - right, "seconds": seconds})
    return made


def work(part: str, kind: str, p: int, seed: int) -> list[Row]:
    rng = np.random.default_rng([KINDS.index(kind), seed])
    rows = noise(p, rng) if part == "noise" else found_among(kind, p, rng)
    return [{"part": part, "kind": kind, "seed": seed} | row for row in rows]


def of_noise(found: pd.DataFrame) -> str:
    lines = []
    for method, runs in found.groupby("method", sort=False):
        line = {"": method, "keeps": f"{runs['kept'].mean():.2f}"}
        line |= {"from – to": f"{runs['kept'].min()} – {runs['kept'].max()}"}
        line |= {"above the noise floor": f"{runs['above'].mean():.2f}"}
        line |= {"streams with any above": f"{(runs['above'] > 0).mean():.0%}"}
        lines.append(line | {"ms": f"{1000.0 * runs['seconds'].median():.0f}"})
    return table(pd.DataFrame(lines))


def of_planted(found: pd.DataFrame) -> str:
    """Return a table of false discovery rate and power, one row per method and kind."""
    lines = []
    for (kind, method), runs in found.groupby(["kind", "method"], sort=False):
        line = {"": kind, "method": method}
        for order, here in runs.groupby("order", sort=False):
            share = here["false"] / here["kept"].clip(lower=1)
            error = share.std() / np.sqrt(len(share))
            line[f"false, {order}"] = f"{share.mean():.3f} ± {error:.3f}"
            line[f"power, {order}"] = f"{(here['right'] / N_SIGNALS).mean():.2f}"
        lines.append(line)
    return table(pd.DataFrame(lines))


def section(found: dict[str, pd.DataFrame], p: int) -> str:
    streams = found["noise"]["seed"].nunique()
    return f"""
*Noise*: {streams} streams have {p:,} Gaussian columns, n = {N} and a Gaussian target. Methods have
their defaults. The table shows how many variables they keep, how many of these are above
`noise_floor()`, and the median time per stream.

{of_noise(found["noise"])}

*Planted*: {N_SIGNALS} signals are among {p:,} columns, in {streams} streams of each kind.
*Measurements* are the target plus an error, and correlate with it by 0.1 to 0.5. *Parts* add up to
the target, and correlate with it by 0.1 to 0.3. The signals come first, come last, or are evenly
spread. *False* is the false discovery rate ± its standard error, and *power* is the share of
signals that are found.

{of_planted(found["planted"])}

[All numbers](chance.csv) were made by `python demos/papers/chance.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("chance", __doc__)
    p, n_streams = experiment.small((P, N_STREAMS), (300, 3))
    tasks = [
        (part, kind, p, seed)
        for part, kind in (("noise", "noise"), *(("planted", kind) for kind in RANGES))
        for seed in range(n_streams)
    ]
    results = experiment.each(work, tasks)
    # Each part has its own columns; whole numbers are read as floats because of the other parts.
    found = {part: runs.dropna(axis=1).convert_dtypes() for part, runs in results.groupby("part")}
    experiment.publish(section(found, p))


if __name__ == "__main__":
    main()
