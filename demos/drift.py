"""Drift: how soon does the selection follow when other variables begin to matter?

Rows of 50 variables, of which five make the target. After a thousand rows five others do. Says, for
several fading factors, how many rows it takes until the new five are selected, and what it costs:
the faster a model forgets, the fewer rows its opinion rests on. With the path of an .svg as
argument also draws which variables were selected when (needs matplotlib).
"""

import argparse
from pathlib import Path

import numpy as np

from streamsel import ProjSe

N_ROWS, CHANGE, N_VARIABLES, K = 2_000, 1_000, 50, 5
BEFORE, AFTER = set(range(5, 10)), set(range(30, 35))
FACTORS = (0.0, 0.002, 0.005, 0.01, 0.02)
N_STREAMS, STEP = 5, 10
OLD, NEW, NOISE = "#3f7fbf", "#c8553d", "#8a93a0"


def rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_ROWS, N_VARIABLES))
    y = 1.5 * rng.standard_normal(N_ROWS)
    y[:CHANGE] += X[:CHANGE, sorted(BEFORE)].sum(axis=1)
    y[CHANGE:] += X[CHANGE:, sorted(AFTER)].sum(axis=1)
    return X, y


def follow(model: ProjSe, seed: int, step: int) -> np.ndarray:
    """Return which variables are selected after every so many rows, (rows / step, variables)."""
    X, y = rows(seed)
    chosen = np.zeros((N_ROWS // step, N_VARIABLES), dtype=bool)
    for i in range(len(chosen)):
        part = slice(i * step, (i + 1) * step)
        model.learn_many(X[part], y[part])
        chosen[i, model.selected] = True
    return chosen


def rows_until(right: np.ndarray, wanted: int) -> float:
    """Return after how many rows since the change so many of the new five were selected first."""
    there = np.flatnonzero(right[CHANGE // STEP :] >= wanted)
    return float(STEP * (there[0] + 1)) if there.size else np.inf


def report() -> dict[float, np.ndarray]:
    """Print a table; return the number of right variables among the selected, over the rows."""
    print(f"{N_VARIABLES} variables, of which five matter; after row {CHANGE:,} five others do\n")
    print("  fading   rows that   noise   rows until 3 of the   until all   right in the")
    print("  factor   count       floor   new 5 are selected    5 are       last 500 rows")
    found = {}
    for factor in FACTORS:
        right, first, all_five = [], [], []
        for seed in range(N_STREAMS):
            model = ProjSe(k=K, fading_factor=factor)
            chosen = follow(model, seed, STEP)
            right.append(chosen[:, sorted(AFTER)].sum(axis=1))
            first.append(rows_until(right[-1], 3))
            all_five.append(rows_until(right[-1], K))
        found[factor] = np.mean(right, axis=0)
        count = (2 - factor) / factor if factor else N_ROWS
        print(
            f"  {factor:<6g}   {count:>5,.0f}       {model.noise_floor():.2f}    "
            f"{shown(first):>12}        {shown(all_five):>9}      "
            f"{np.mean(np.array(right)[:, -500 // STEP :]) / K:>9.0%}"
        )
    return found


def shown(waits: list[float]) -> str:
    middle = np.median(waits)
    return f"{middle:.0f}" if np.isfinite(middle) else f"> {N_ROWS - CHANGE:,}"


def draw(path: Path, found: dict[float, np.ndarray]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "streamsel", "font.size": 10}
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(7.2, 7.0), height_ratios=(3, 3, 2.4))
    figure.set_facecolor("white")
    for axis, factor in zip(axes, (0.0, 0.005), strict=False):
        chosen = follow(ProjSe(k=K, fading_factor=factor), 3, STEP)
        for variable in range(N_VARIABLES):
            colour = OLD if variable in BEFORE else NEW if variable in AFTER else NOISE
            axis.broken_barh(spans(chosen[:, variable]), (variable, 0.9), color=colour, lw=0)
        axis.set_ylim(0, N_VARIABLES)
        axis.set_yticks([])
        axis.set_ylabel("50 variables")
        how = f"fading_factor = {factor:g}" if factor else "nothing fades"
        axis.set_title(f"selected: {how}", loc="left", fontsize=10, fontweight="bold")
        for names, colour, what in ((BEFORE, OLD, "matter at first"), (AFTER, NEW, "matter later")):
            axis.text(N_ROWS + 15, min(names) + 2.5, what, color=colour, va="center")
    last = axes[-1]
    shades = (NOISE, "#c79a1e", NEW, "#6a4c93")
    for (factor, right), colour in zip(list(found.items())[:4], shades, strict=True):
        last.plot(STEP * (1 + np.arange(right.size)), right, color=colour, lw=1.6)
        height = {0.002: 3.85, 0.005: 4.45, 0.01: 5.05}.get(factor, right[-1])
        last.text(N_ROWS + 15, height, f"{factor:g}", color=colour, va="center")
    last.set_title(
        f"how many of the new five are selected, by fading_factor (mean of {N_STREAMS} streams)",
        loc="left",
        fontsize=10,
        fontweight="bold",
    )
    last.set_ylim(0, 5.3)
    last.set_ylabel("of five")
    last.set_xlabel("rows learnt")
    last.set_xlim(0, N_ROWS)
    for axis in axes:
        axis.axvline(CHANGE, color="#333", lw=1, ls=(0, (4, 3)))
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def spans(chosen: np.ndarray) -> list[tuple[int, int]]:
    """Return (start, length) of the stretches of rows in which a variable was selected."""
    edges = np.flatnonzero(np.diff(chosen.astype(int), prepend=0, append=0))
    return [(STEP * a, STEP * (b - a)) for a, b in edges.reshape(-1, 2).tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", nargs="?", type=Path, help="an .svg to write")
    picture = parser.parse_args().picture
    found = report()
    if picture is not None:
        draw(picture, found)
        print(f"\n{picture} written")


if __name__ == "__main__":
    main()
