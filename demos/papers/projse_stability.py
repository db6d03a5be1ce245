"""Are the same variables selected from other samples of the rows?

Section 5.4 and figure 8 of Szedmak, Huusari, Le and Rousu (2023): the stability of ProjSe's
selection over subsets of the training rows, by the stability index of Nogueira, Sechidis and Brown
(2018) and the mean correlation of importances of Hamer and Dupont (2021).

Protocol. MNIST's 60,000 training images. Figure 8 belongs to the paper's two-view data, so that its
target is the other view; here that is one of two: "other half" selects from the left half of the
image what explains the right half, "classes" from the whole image what explains the ten digits. Ten
random subsets of a size, from 10 % to 90 % of the rows; k from 10 to 100. The importance of a
selected variable is its relevance, of any other 0. The text gives neither sizes nor k.

Beyond the paper:

- disjoint subsets. Two random subsets of 90 % have nearly all rows in common, and their agreement
  may not hold on other data; samples of the same size without a common row show what would;
- the k most relevant variables (without projecting out what was picked), k at random, and SOSPCA
  with 10 components, its support in order of importance (the sum of squared loadings), with the
  columns always in the same order and in another one for each subset;
- neighbouring pixels are nearly equivalent, but a pick that moves to a neighbour counts as changed.
  The stability of Sechidis et al. (2019) has correlated variables as partly the same: with C the
  squared correlations of the pixels, S the covariance of the ten selections, and S0 that under
  random selection, it is 1 - tr(C S) / tr(C S0). With C the identity it is the index of Nogueira et
  al. The second figure shows how often each pixel was selected.

Pixels that are 0 in all training images are not counted among the variables.
"""

import functools
from pathlib import Path

import numpy as np
import pandas as pd
from _curves import add_legend, panels
from _experiment import COLOURS, Experiment, Row, machine, plt, read, table
from sklearn.datasets import load_digits

from streamsel import SOSPCA, ProjSe, evaluate

M = 10
N_COMPONENTS = 10
KS = {"mnist": (10, 20, 50, 100), "digits": (5, 10, 20)}
SIZES = {  # of disjoint subsets, of random ones
    "mnist": ((600, 2_000, 6_000), (6_000, 15_000, 30_000, 54_000)),
    "digits": ((50, 170), (180, 900)),
}
TARGETS = ("classes", "other half")
KERNELS = {"linear": "ProjSe, linear", "rbf": "ProjSe, Gaussian"}
RELEVANT, RANDOM = "most relevant", "random"
SOSPCA_AS_IS, SOSPCA_SHUFFLED = "SOSPCA", "SOSPCA, other order"
METHODS = (*KERNELS.values(), RELEVANT, RANDOM, SOSPCA_AS_IS, SOSPCA_SHUFFLED)
COLOUR = dict(zip(METHODS, COLOURS, strict=False))
PICTURED = (*KERNELS.values(), RELEVANT, SOSPCA_AS_IS)
SUPPORT = 0  # k of the row for the whole support of SOSPCA
LEVELS = ".123456789X"  # a pixel selected never, once, ... ten times

Importances = list[dict[int, float]]  # for each subset pixel -> importance, the best first


@functools.lru_cache(maxsize=1)
def data(folder: Path, name: str, target: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pixels to select from, the target, and the squared correlations of the pixels.

    What does not vary is absent from the correlations.
    """
    if name == "digits":
        digits = load_digits()
        images, y = digits.images.astype(np.uint8), digits.target
    else:
        dataset = read(folder / f"{name}.npz")
        train = dataset.archive["split"] == 0
        images, y = dataset.X[train].reshape(-1, 28, 28), dataset.y[train]
    X = images.reshape(len(y), -1)
    if target == "other half":
        X, y = (half.reshape(len(y), -1) for half in np.split(images, 2, axis=2))
    varying = X[:, np.ptp(X, axis=0) > 0].astype(np.float32)
    varying -= varying.mean(axis=0)
    varying /= np.linalg.norm(varying, axis=0)
    return X, y, (varying.T @ varying).astype(float) ** 2


def subsets(n: int, size: int, draw: str) -> list[np.ndarray]:
    """Return M subsets of n rows, of one size, disjoint or each by itself."""
    rng = np.random.default_rng(size)
    if draw == "disjoint":
        return np.split(rng.permutation(n)[: M * size], M)
    return [rng.permutation(n)[:size] for _ in range(M)]


def important(X: np.ndarray, y: np.ndarray, learner: str, seed: int) -> dict[int, float]:
    """Return pixel -> importance of one learner on one subset, in order of preference."""
    p = X.shape[1]
    rng = np.random.default_rng(seed)
    if learner == RANDOM:
        return dict.fromkeys(rng.permutation(np.flatnonzero(np.ptp(X, axis=0))).tolist(), 1.0)
    kind = "class" if y.ndim == 1 else "numeric"
    if learner in KERNELS:
        model = ProjSe(k=p, kernel=learner, target_type=kind)
    else:
        model = SOSPCA(n_components=N_COMPONENTS, target_type=kind)
    order = rng.permutation(p) if learner == SOSPCA_SHUFFLED else np.arange(p)
    model.learn_target(y)
    model.learn_columns(np.asfortranarray(X[:, order]), names=order.tolist())
    if learner in KERNELS:
        return model.relevance
    weights = {j: sum(w**2 for w in of_j.values()) for j, of_j in model.loadings.items()}
    return best_first(weights)


def best_first(importances: dict[int, float]) -> dict[int, float]:
    return dict(sorted(importances.items(), key=lambda item: -item[1]))


def tolerant_stability(selections: Importances, names: np.ndarray, C: np.ndarray) -> float:
    """Return the stability of Sechidis et al. (2019), C (d, d) the similarity of the variables."""
    Z = np.array([np.isin(names, list(found)) for found in selections], dtype=float)
    d, k = len(names), Z.sum(axis=1)
    q = k.mean() / d
    apart = (np.mean(k * k) - k.mean()) / (d * (d - 1)) - q * q
    by_chance = np.trace(C) * q * (1.0 - q) + (C.sum() - np.trace(C)) * apart
    Z -= Z.mean(axis=0)
    return 1.0 - np.sum((Z @ C) * Z) / (M - 1) / by_chance


def work(folder: Path, name: str, target: str, learner: str, draw: str, size: int) -> list[Row]:
    """Select on M subsets of one size; return the stability of the first k, for every k."""
    X, y, C = data(folder, name, target)
    names = np.flatnonzero(np.ptp(X, axis=0))
    found = [
        important(X[rows], y[rows], learner, seed)
        for seed, rows in enumerate(subsets(len(y), size, draw))
    ]
    methods = {KERNELS.get(learner, learner): found}
    if learner == "linear":
        methods[RELEVANT] = [best_first(one) for one in found]
    made = []
    for method, complete in methods.items():
        ks = [k for k in KS[name] if k <= min(map(len, complete))]
        for k in [*ks, SUPPORT] if learner.startswith("SOSPCA") else ks:
            chosen = [dict(list(one.items())[: k or None]) for one in complete]
            counts = np.zeros(X.shape[1], dtype=int)
            np.add.at(counts, [pixel for one in chosen for pixel in one], 1)
            stability = evaluate.selection_stability(chosen, len(names))
            row = {"dataset": name, "target": target, "method": method, "draw": draw, "rows": size}
            row |= {"k": k, "selected": np.mean([len(one) for one in chosen])}
            row |= stability._asdict()
            row["tolerant"] = tolerant_stability(chosen, names, C)
            row["importance"] = evaluate.importance_stability(chosen, len(names))
            if (draw, k, size) == ("disjoint", KS[name][1], SIZES[name][0][-1]):
                row["times"] = "".join(LEVELS[count] for count in counts)
            made.append(row)
    return made


def curves(found: pd.DataFrame, k: int, size: int) -> plt.Figure:
    """Draw stability against rows at one k, and against k at one size, for both targets."""
    kinds = (
        f"{k} pixels, disjoint subsets",
        f"{k} pixels, random subsets",
        f"{size:,} rows, disjoint",
        "correlated pixels as similar",
    )
    titles = [f"{target}: {kind}" for kind in kinds for target in TARGETS]
    fig, axes = panels(titles, len(TARGETS), 2.2)
    rows = found[found["k"] != SUPPORT]
    for i, target in enumerate(TARGETS):
        here = rows[rows["target"] == target]
        disjoint, drawn, by_k, tolerant = axes[i : -1 : len(TARGETS)]
        for panel, draw in ((disjoint, "disjoint"), (drawn, "random")):
            of_draw = here[(here["k"] == k) & (here["draw"] == draw)]
            lines(panel, of_draw, "rows", bars=draw == "disjoint")
            panel.set_xlabel("training rows in a subset")
        chosen = here[(here["rows"] == size) & (here["draw"] == "disjoint")]
        lines(by_k, chosen, "k", bars=True)
        lines(tolerant, chosen.assign(value=chosen["tolerant"]), "k", bars=False)
        for panel in (by_k, tolerant):
            panel.set_xlabel("pixels selected")
    add_legend(axes, 3)
    return fig


def lines(panel: plt.Axes, found: pd.DataFrame, along: str, *, bars: bool) -> None:
    """Draw one line per method, with or without intervals."""
    for method, line in found.groupby("method", sort=False):
        error = (line["value"] - line["low"], line["high"] - line["value"]) if bars else None
        style = {"color": COLOUR[method], "lw": 1.3, "ms": 4, "elinewidth": 0.8, "label": method}
        panel.errorbar(line[along], line["value"], error, fmt="o-", **style)
    label_axes(panel, sorted(found[along].unique()))


def label_axes(ax: plt.Axes, ticks: list[int]) -> None:
    ax.set(xscale="log", ylim=(-0.1, 1.03), ylabel="stability")
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.minorticks_off()


def pictures(found: pd.DataFrame, side: int) -> plt.Figure:
    """Draw how often each pixel was selected, dark for always."""
    fig, axes = plt.subplots(2, len(PICTURED), figsize=(7.6, 4.4))
    drawn = found[found["times"].notna()].set_index(["target", "method"])["times"]
    for target, line in zip(TARGETS, axes, strict=True):
        for method, ax in zip(PICTURED, line, strict=True):
            counts = np.array([LEVELS.index(mark) for mark in drawn[target, method]])
            ax.imshow(counts.reshape(side, -1), cmap="Blues", vmin=0, vmax=M)
            ax.set_title(method)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(True)
        line[0].set_ylabel(target)
    return fig


def section(found: pd.DataFrame, k: int, size: int, images: tuple[str, str]) -> str:
    """Return the text, with figures and the measures at one k and on the support."""
    lines = []
    shown = found[found["k"].isin([k, SUPPORT])]
    largest = shown["rows"].max()
    for (target, method, at), here in shown.groupby(["target", "method", "k"], sort=False):
        most = here[(here["draw"] == "random") & (here["rows"] == largest)].iloc[0]
        one = here[(here["draw"] == "disjoint") & (here["rows"] == size)].iloc[0]
        lines.append(
            {
                "target": target,
                "method": method,
                "pixels": f"{one['selected']:.0f}" + (" (support)" if at == SUPPORT else ""),
                "stability (95 %)": f"{one['value']:.2f} ({one['low']:.2f} to {one['high']:.2f})",
                "correlated pixels as similar": f"{one['tolerant']:.2f}",
                "of importances": f"{one['importance']:.2f}",
                f"random, {largest:,} rows": f"{most['value']:.2f}",
            }
        )
    return f"""
As in Szedmak et al. (2023, section 5.4 and figure 8), variables are selected on {M} subsets of the
training rows of {found["dataset"].iloc[0]}. *Stability* is the index of Nogueira et al. with its 95
% confidence interval. *Correlated pixels as similar* is the same index, except that correlated
pixels count as partly identical (Sechidis et al. 2019). *Of importances* is the mean correlation of
importances (Hamer and Dupont 2021). The index is 1 if all selections are the same, and 0 on average
if they are random. The target is either the classes or the right half of an image. For the right
half, the variables are the pixels of the left half. Subsets are disjoint and have {size:,} rows. In
the last column, they are random and overlap.

![Stability against the number of rows and against the number of selected pixels. Error bars are 95
% intervals of disjoint subsets.]({images[0]})

![Selected pixels in {M} disjoint subsets of {size:,} rows]({images[1]})

The shade shows how often each pixel was among the first {k} selected, from never (white) to always
(dark).

{table(pd.DataFrame(lines))}

[All numbers](projse-stability.csv) were made by `python demos/papers/projse_stability.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("projse-stability", __doc__)
    name = experiment.small("mnist", "digits")
    names = experiment.available([name])
    k, size = KS[name][1], SIZES[name][0][-1]
    tasks = [
        (name, target, learner, draw, rows)
        for name in names
        for target in TARGETS
        for learner in (*KERNELS, RANDOM, SOSPCA_AS_IS, SOSPCA_SHUFFLED)
        for draw, sizes in zip(("disjoint", "random"), SIZES[name], strict=True)
        for rows in sizes
    ]
    found = experiment.each(functools.partial(work, experiment.data), tasks)
    images = (
        experiment.draw(curves(found, k, size)),
        experiment.draw(pictures(found, experiment.small(28, 8)), "-pixels"),
    )
    experiment.publish(section(found, k, size, images))


if __name__ == "__main__":
    # Under its own name, so that processes (--jobs) find the functions that cache the data.
    from projse_stability import main

    main()
