"""The pictures of the docs: one of every kind that streamsel.plot draws, of real data.

python demos/plots.py [--data FOLDER] [--out docs/pages/images/plots]

The data are leukemia_golub3571.npz, 3,571 genes of 72 patients with two kinds of leukemia,
isolet.npz, 617 measures of spoken letters, and mouse_hs1940.npz, 12,226 markers of 1,410 related
mice; what stood when is of rows made here.
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
    """Genes of two kinds of leukemia."""

    def __init__(self, folder: Path) -> None:
        with np.load(folder / FILES[0], allow_pickle=False) as file:
            self.X = np.asfortranarray(file["X"], dtype=np.float64)
            self.y = file["classes"][file["y"]]
        self.names = [f"gene {j}" for j in range(self.X.shape[1])]

    def learnt(self, model: Any) -> Any:
        model.learn_target(self.y)
        model.learn_columns(self.X, self.names)
        return model


def relevance(golub: Golub, ax: Axes) -> Axes:
    return plot.manhattan(golub.learnt(ProjSe(k=12)), ax=ax)


def null(golub: Golub, ax: Axes) -> Axes:
    return plot.qq(golub.learnt(SelectKBest(k=12)), ax=ax)


def path(golub: Golub, ax: Axes) -> Axes:
    return plot.selection_path(golub.learnt(ForwardSelection(k=12)), ax=ax)


def lasso(golub: Golub, ax: Axes) -> Axes:
    return plot.selection_path(golub.learnt(Lasso(k=12, family="logistic")), ax=ax)


def heatmap(golub: Golub, ax: Axes) -> Axes:
    model = golub.learnt(SelectKBest(k=12))
    return plot.heatmap(model, pd.DataFrame(golub.X, columns=golub.names), ax=ax)


def stability(golub: Golub, ax: Axes) -> Axes:
    X = pd.DataFrame(golub.X, columns=golub.names)
    return plot.stability(subsample_stability(SelectKBest(k=12), X, golub.y), ax=ax)


def letters(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(folder / FILES[1], allow_pickle=False) as file:
        X, y = file["X"].astype(np.float64), file["y"]
    said = np.array([*"ABCDEFGHIJKLMNOPQRSTUVWXYZ"])[y]
    mine = np.isin(said, [*LETTERS])
    return X[mine], said[mine]


def scree(X: np.ndarray, ax: Axes) -> Axes:
    model = PCA(n_components=15, scale=True)
    model.learn_columns(X)
    return plot.scree(model, ax=ax)


def scatter(X: np.ndarray, said: np.ndarray, ax: Axes) -> Axes:
    model = PCA(n_components=2)
    model.learn_columns(X)
    return plot.scatter(model, y=said, ax=ax)


def loadings(X: np.ndarray, said: np.ndarray, ax: Axes) -> Axes:
    model = SOSPCA(n_components=4)
    model.learn_target(said)
    model.learn_columns(X, [f"measure {j}" for j in range(X.shape[1])])
    return plot.loadings(model, n=10, ax=ax)


def genome(folder: Path, ax: Axes) -> Axes:
    """Every marker is tested given the relatedness by the other chromosomes."""
    with np.load(folder / FILES[2], allow_pickle=False) as file:
        X, y, chromosome = file["X"], file["y"], file["chromosome"]
    names = [f"marker {j}" for j in range(X.shape[1])]
    groups = dict(zip(names, chromosome.tolist(), strict=True))
    related = Relatedness.from_columns(pd.DataFrame(X, columns=names), groups)
    model = SelectKBest(fdr=0.001)
    model.learn_target(y, relatedness=related)
    model.learn_columns(X, names)
    return plot.manhattan(model, metadata={"name": names, "chromosome": chromosome}, ax=ax)


def history(ax: Axes) -> Axes:
    """Twelve variables; three make the target, and after every 700 rows three others."""
    pipeline = History(ProjSe(k=3, fading_factor=0.01, refresh_factor=1.5, hysteresis=1.0))
    pipeline |= linear_model.LinearRegression()
    rng = np.random.default_rng(2)
    for row in range(2_100):
        x = dict(zip("abcdefghijkl", rng.normal(size=12).tolist(), strict=True))
        matter = "abcdefghi"[3 * (row // 700) :][:3]
        pipeline.learn_one(x, sum(x[name] for name in matter) + rng.normal())
    return plot.history(pipeline["History"], ax=ax)


def pictures(folder: Path) -> dict[str, Callable[[Axes], Axes]]:
    """Return what can be drawn of the data that are there, by name."""
    found: dict[str, Callable[[Axes], Axes]] = {"history": history}
    absent = [name for name in FILES if not (folder / name).is_file()]
    if absent:
        print(f"{' and '.join(absent)} are not in {folder}: what is of them is left out")
        return found
    golub = Golub(folder)
    X, said = letters(folder)
    of_genes = {f.__name__: f for f in (relevance, null, path, lasso, heatmap, stability)}
    found |= {name: partial(draw, golub) for name, draw in of_genes.items()}
    found |= {"scree": partial(scree, X), "genome": partial(genome, folder)}
    return found | {f.__name__: partial(f, X, said) for f in (scatter, loadings)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("STREAMSEL_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(data))
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="gallery-"))
    out.mkdir(parents=True, exist_ok=True)
    for name, draw in pictures(options.data).items():
        file = out / f"{name}.svg"
        _, ax = figure()
        draw(ax).figure.savefig(file)
        print(f"{file}: {file.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
