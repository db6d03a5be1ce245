"""Drift: how soon does the selection follow when other variables become relevant?

The target depends on five of 50 variables for 1,000 rows, and on five others from then on. For
several fading factors the script prints how many rows after the change the new five are selected.
It also prints the cost: the faster a model forgets, the fewer rows its estimates are based on.

With the path of an .svg file as argument, it also plots which variables were selected when (needs
matplotlib).
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


def make_rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_ROWS, N_VARIABLES))
    y = 1.5 * rng.standard_normal(N_ROWS)
    y[:CHANGE] += X[:CHANGE, sorted(BEFORE)].sum(axis=1)
    y[CHANGE:] += X[CHANGE:, sorted(AFTER)].sum(axis=1)
    return X, y


def selections(model: ProjSe, seed: int) -> np.ndarray:
    """Return which variables are selected after every `STEP` rows: (rows / STEP, variables)."""
    X, y = make_rows(seed)
    selected = np.zeros((N_ROWS // STEP, N_VARIABLES), dtype=bool)
    for i in range(len(selected)):
        part = slice(i * STEP, (i + 1) * STEP)
        model.learn_many(X[part], y[part])
        selected[i, model.selected] = True
    return selected


def rows_until(n_correct: np.ndarray, n_wanted: int) -> float:
    """Return the number of rows from the change until `n_wanted` of the new five are selected."""
    reached = np.flatnonzero(n_correct[CHANGE // STEP :] >= n_wanted)
    return float(STEP * (reached[0] + 1)) if reached.size else np.inf


def report() -> dict[float, np.ndarray]:
    """Print a table; return how many of the new five are selected over the rows, by factor."""
    print(
        f"{N_VARIABLES} variables: the target depends on five, and on five others after row "
        f"{CHANGE:,}\n"
    )
    print("  fading   effective                 rows until 3 of the   rows until   correct in the")
    print("  factor        rows   noise floor    new 5 are selected    all 5 are    last 500 rows")
    curves = {}
    for factor in FACTORS:
        n_correct, until_three, until_all = [], [], []
        for seed in range(N_STREAMS):
            model = ProjSe(k=K, fading_factor=factor)
            selected = selections(model, seed)
            n_correct.append(selected[:, sorted(AFTER)].sum(axis=1))
            until_three.append(rows_until(n_correct[-1], 3))
            until_all.append(rows_until(n_correct[-1], K))
        curves[factor] = np.mean(n_correct, axis=0)
        n_effective = (2 - factor) / factor if factor else N_ROWS
        share_correct = np.mean(np.array(n_correct)[:, -500 // STEP :]) / K
        print(
            f"  {factor:<6g}   {n_effective:>9,.0f}   {model.noise_floor():>11.2f}   "
            f"{median(until_three):>19}   {median(until_all):>10}   {share_correct:>14.0%}"
        )
    return curves


def median(n_rows: list[float]) -> str:
    value = np.median(n_rows)
    return f"{value:.0f}" if np.isfinite(value) else f"> {N_ROWS - CHANGE:,}"


def draw(path: Path, curves: dict[float, np.ndarray]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "streamsel", "font.size": 10}
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(7.2, 7.0), height_ratios=(3, 3, 2.4))
    figure.set_facecolor("white")
    for axis, factor in zip(axes, (0.0, 0.005), strict=False):
        selected = selections(ProjSe(k=K, fading_factor=factor), 3)
        for variable in range(N_VARIABLES):
            colour = OLD if variable in BEFORE else NEW if variable in AFTER else NOISE
            axis.broken_barh(spans(selected[:, variable]), (variable, 0.9), color=colour, lw=0)
        axis.set_ylim(0, N_VARIABLES)
        axis.set_yticks([])
        axis.set_ylabel("50 variables")
        fading = f"fading_factor = {factor:g}" if factor else "nothing fades"
        axis.set_title(f"selected: {fading}", loc="left", fontsize=10, fontweight="bold")
        for group, colour, label in (
            (BEFORE, OLD, "matter at first"),
            (AFTER, NEW, "matter later"),
        ):
            axis.text(N_ROWS + 15, min(group) + 2.5, label, color=colour, va="center")
    last = axes[-1]
    colours = (NOISE, "#c79a1e", NEW, "#6a4c93")
    for (factor, n_correct), colour in zip(list(curves.items())[:4], colours, strict=True):
        last.plot(STEP * (1 + np.arange(n_correct.size)), n_correct, color=colour, lw=1.6)
        height = {0.002: 3.85, 0.005: 4.45, 0.01: 5.05}.get(factor, n_correct[-1])
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


def spans(selected: np.ndarray) -> list[tuple[int, int]]:
    """Return (start, length), in rows, of each interval in which a variable was selected."""
    edges = np.flatnonzero(np.diff(selected.astype(int), prepend=0, append=0))
    return [(STEP * a, STEP * (b - a)) for a, b in edges.reshape(-1, 2).tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plot", nargs="?", type=Path, help="an .svg file to write")
    path = parser.parse_args().plot
    curves = report()
    if path is not None:
        draw(path, curves)
        print(f"\n{path} written")


if __name__ == "__main__":
    main()
