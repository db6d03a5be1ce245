"""The plots of the docs: one of each kind that streamsel.plot draws.

python demos/plots.py [--data FOLDER] [--out docs/pages/images/plots]

The history of a selection is that of generated rows. The other plots are of three data files, and
are skipped unless all are in FOLDER: leukemia_golub3571.npz (3,571 genes of 72 patients with two
kinds of leukemia), isolet.npz (617 measurements of spoken letters) and mouse_hs1940.npz (12,226
markers of 1,410 related mice).
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from river import linear_model

from streamsel import (
    PCA,
    SOSPCA,
    ForwardSelection,
    History,
    Lasso,
    ProjSe,
    Relatedness,
    SelectKBest,
    plot,
)
from streamsel.evaluate import subsample_stability
from streamsel.plot.style import figure

ROOT = Path(__file__).parents[1]
FILES = "leukemia_golub3571.npz", "isolet.npz", "mouse_hs1940.npz"
LETTERS = "AEOSXZ"


class Golub:
    """Genes of patients with two kinds of leukemia."""

    def __init__(self, folder: Path) -> None:
        with np.load(folder / FILES[0], allow_pickle=False) as file:
            self.X = np.asfortranarray(file["X"], dtype=np.float64)
            self.y = file["classes"][file["y"]]
        self.names = [f"gene {j}" for j in range(self.X.shape[1])]

    def fit(self, model: Any) -> Any:
        model.learn_target(self.y)
        model.learn_columns(self.X, self.names)
        return model


def manhattan(golub: Golub, ax: Axes) -> Axes:
    return plot.manhattan(golub.fit(ProjSe(k=12)), ax=ax)


def qq(golub: Golub, ax: Axes) -> Axes:
    return plot.qq(golub.fit(SelectKBest(k=12)), ax=ax)


def selection_path(golub: Golub, ax: Axes) -> Axes:
    return plot.selection_path(golub.fit(ForwardSelection(k=12)), ax=ax)


def lasso(golub: Golub, ax: Axes) -> Axes:
    return plot.selection_path(golub.fit(Lasso(k=12, family="logistic")), ax=ax)


def heatmap(golub: Golub, ax: Axes) -> Axes:
    model = golub.fit(SelectKBest(k=12))
    return plot.heatmap(model, pd.DataFrame(golub.X, columns=golub.names), ax=ax)


def stability(golub: Golub, ax: Axes) -> Axes:
    X = pd.DataFrame(golub.X, columns=golub.names)
    return plot.stability(subsample_stability(SelectKBest(k=12), X, golub.y), ax=ax)


def load_letters(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(folder / FILES[1], allow_pickle=False) as file:
        X, y = file["X"].astype(np.float64), file["y"]
    letter = np.array([*"ABCDEFGHIJKLMNOPQRSTUVWXYZ"])[y]
    is_plotted = np.isin(letter, [*LETTERS])
    return X[is_plotted], letter[is_plotted]


def scree(X: np.ndarray, ax: Axes) -> Axes:
    model = PCA(n_components=15, scale=True)
    model.learn_columns(X)
    return plot.scree(model, ax=ax)


def scatter(X: np.ndarray, letter: np.ndarray, ax: Axes) -> Axes:
    model = PCA(n_components=2)
    model.learn_columns(X)
    return plot.scatter(model, y=letter, ax=ax)


def loadings(X: np.ndarray, letter: np.ndarray, ax: Axes) -> Axes:
    model = SOSPCA(n_components=4)
    model.learn_target(letter)
    model.learn_columns(X, [f"measure {j}" for j in range(X.shape[1])])
    return plot.loadings(model, n=10, ax=ax)


def genome(folder: Path, ax: Axes) -> Axes:
    """Test each marker in a mixed model with the relatedness from the other chromosomes."""
    with np.load(folder / FILES[2], allow_pickle=False) as file:
        X, y, chromosome = file["X"], file["y"], file["chromosome"]
    names = [f"marker {j}" for j in range(X.shape[1])]
    groups = dict(zip(names, chromosome.tolist(), strict=True))
    relatedness = Relatedness.from_columns(pd.DataFrame(X, columns=names), groups)
    model = SelectKBest(fdr=0.001)
    model.learn_target(y, relatedness=relatedness)
    model.learn_columns(X, names)
    return plot.manhattan(model, metadata={"name": names, "chromosome": chromosome}, ax=ax)


def history(ax: Axes) -> Axes:
    """Plot the selection for a target that depends on three other variables every 700 rows."""
    pipeline = History(ProjSe(k=3, fading_factor=0.01, refresh_factor=1.5, hysteresis=1.0))
    pipeline |= linear_model.LinearRegression()
    rng = np.random.default_rng(2)
    for row in range(2_100):
        x = dict(zip("abcdefghijkl", rng.normal(size=12).tolist(), strict=True))
        first = 3 * (row // 700)
        relevant = "abcdefghi"[first : first + 3]
        pipeline.learn_one(x, sum(x[name] for name in relevant) + rng.normal())
    return plot.history(pipeline["History"], ax=ax)


def available_plots(folder: Path) -> dict[str, Callable[[Axes], Axes]]:
    """Return the functions that draw the plots, by file name without suffix."""
    plots: dict[str, Callable[[Axes], Axes]] = {"history": history}
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        print(f"not found in {folder}: {', '.join(missing)}; only generated rows are plotted")
        return plots
    golub = Golub(folder)
    X, letter = load_letters(folder)
    of_genes = (manhattan, qq, selection_path, lasso, heatmap, stability)
    plots |= {draw.__name__: partial(draw, golub) for draw in of_genes}
    plots["scree"] = partial(scree, X)
    plots["genome"] = partial(genome, folder)
    plots["scatter"] = partial(scatter, X, letter)
    plots["loadings"] = partial(loadings, X, letter)
    return plots


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("STREAMSEL_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(data))
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="plots-"))
    out.mkdir(parents=True, exist_ok=True)
    for name, draw in available_plots(options.data).items():
        file = out / f"{name}.svg"
        _, ax = figure()
        draw(ax).figure.savefig(file)
        print(f"{file}: {file.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
