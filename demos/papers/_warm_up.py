"""Streams of the warm-up experiment, and a pipeline that compares rows returned before it."""

import copy
import functools
import itertools
import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _experiment import read
from _row_streams import GaussianNB, Stream
from _row_streams import stream as of_classes
from river import datasets, linear_model, multiclass, preprocessing, stats, tree
from river.datasets import synth
from sklearn.datasets import load_diabetes

import streamsel

# A larger error, as a share of that of the mean, is the error of a model that diverged.
MOST = 1e6
# Before components or a selection exist: 0.0 or all features, or the empty row.
FILLED, EMPTY = "filled", "empty"
EXTRACTORS = ("PCA", "SOSPCA", "RidgeComponents")
# Components begin with the first full window, of 200 rows.
BY_WINDOW = ("KernelPCA",)
SELECTORS = ("ProjSe", "SelectKBest")
NUMERIC = {
    "TrumpApproval": datasets.TrumpApproval,
    "ChickWeights": datasets.ChickWeights,
    "SP500Stocks": datasets.SP500Stocks,
    "Friedman": lambda: synth.Friedman(seed=1),
    "FriedmanDrift": lambda: synth.FriedmanDrift(seed=1, position=(300, 600, 900)),
    "Planes2D": lambda: synth.Planes2D(seed=1),
}
DRAWN = {
    "Waveform": lambda: synth.Waveform(seed=1, has_noise=True),
    "LED": lambda: synth.LED(seed=1, noise_percentage=0.1, irrelevant_features=True),
    "RandomRBF": lambda: synth.RandomRBF(1, 1, n_classes=4, n_features=20, n_centroids=30),
    "Hyperplane": lambda: synth.Hyperplane(seed=1, n_features=20, noise_percentage=0.1),
}
# A column of a wide set is the target; its neighbours within this distance are left out.
COLUMN = {"isolet, a column": ("isolet", 40), "shapesall, a column": ("shapesall", 40)}
# Every so many columns of wide sets: River's models are slow with hundreds of features.
EVERY = {"isolet": 6, "mnist_10k": 4, "shapesall": 3, "madelon": 3}


class Labelled(NamedTuple):
    """A stream, and whether its target is a class or a number."""

    rows: Stream
    is_class: bool


@functools.lru_cache(maxsize=2)
def labelled(folder: Path, name: str, most: int, seed: int) -> Labelled:
    """Return at most so many rows: shuffled, or the first ones of a set that is ordered in time."""
    if name in NUMERIC:
        rows = list(itertools.islice(map(numbers, NUMERIC[name]()), most))
        return Labelled(rows, is_class=False)
    if name in DRAWN:
        rows = list(itertools.islice(DRAWN[name](), seed * most, (seed + 1) * most))
        return Labelled([({**x}, y) for x, y in rows], is_class=True)
    if name == "diabetes" or name in COLUMN:
        X, y = numeric(folder, name)
        order = np.random.default_rng(seed).permutation(len(y))[:most]
        cells = [dict(enumerate(row)) for row in X[order].astype(float).tolist()]
        return Labelled(list(zip(cells, y[order].tolist(), strict=True)), is_class=False)
    rows = of_classes(folder, name, most, seed)
    step = EVERY.get(name, 1)
    kept = [({j: v for j, v in x.items() if is_kept(j, step)}, y) for x, y in rows]
    return Labelled(kept, is_class=True)


def is_kept(name: Hashable, step: int) -> bool:
    return step == 1 or (isinstance(name, int) and name % step == 0)


def numbers(row: tuple[dict[Hashable, Any], Any]) -> tuple[dict[Hashable, float], float]:
    """Return a row without features that are not numbers."""
    x, y = row
    return {j: float(v) for j, v in x.items() if isinstance(v, int | float)}, float(y)


def numeric(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        return X, y
    of, near = COLUMN[name]
    X = read(folder / f"{of}.npz").X.astype(float)
    j = X.shape[1] // 4
    others = np.flatnonzero(np.abs(np.arange(X.shape[1]) - j) >= near)
    y = X[:, j]
    return X[:, others[:: EVERY.get(of, 1)]], (y - y.mean()) / y.std()


def models(*, is_class: bool) -> dict[str, Any]:
    """Return the models at the end of the pipeline."""
    scaler = preprocessing.StandardScaler
    if not is_class:
        return {
            "linear": scaler() | linear_model.LinearRegression(),
            "tree": tree.HoeffdingTreeRegressor(),
        }
    logistic = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    return {
        "naive Bayes": GaussianNB(),
        "logistic": scaler() | logistic,
        "tree": tree.HoeffdingTreeClassifier(),
    }


def learner(name: str, size: int, warm_up: int, *, is_class: bool) -> Any:
    free = name in ("PCA", *BY_WINDOW)
    target = {} if free else {"target_type": "class" if is_class else "numeric"}
    parameters = {"scale": True} if name == "PCA" else {}
    return getattr(streamsel, name)(size, warm_up=warm_up, **target, **parameters)


class Pipeline:
    """A transformer and the models that follow it, which learn as in a River pipeline.

    A transformer without a target learns a row before it transforms it for the models to learn
    from, one with a target learns it afterwards.
    """

    def __init__(self, transformer: Any, *, is_class: bool) -> None:
        self.transformer, self.is_class = transformer, is_class
        fresh = models(is_class=is_class)
        self.models = {
            (before, name): copy.deepcopy(model)
            for before in (FILLED, EMPTY)
            for name, model in fresh.items()
        }
        # Per row: 1 for a correct prediction, or the absolute error.
        self.scores: dict[tuple[str, str], list[float]] = {key: [] for key in self.models}
        self.mean, self.of_mean = stats.Mean(), list[float]()

    def take(self, x: dict[Hashable, float], y: Any) -> None:
        """Predict a row with every model, then learn it."""
        given = self.given(x)
        for key, model in self.models.items():
            self.scores[key].append(self.score(model.predict_one(given[key[0]]), y))
        if not self.is_class:
            self.of_mean.append(abs(y - self.mean.get()))
            self.mean.update(y)
        if self.transformer._is_supervised:
            self.transformer.learn_one(x, y)
        else:
            self.transformer.learn_one(x)
            given = self.given(x)
        for key, model in self.models.items():
            model.learn_one(given[key[0]], y)

    def given(self, x: dict[Hashable, float]) -> dict[str, dict[Hashable, float]]:
        """Return the rows that the models receive."""
        z = self.transformer.transform_one(x)
        if self.transformer.in_use:
            return {FILLED: z, EMPTY: z}
        names = getattr(self.transformer, "components", ())
        return {FILLED: z or dict.fromkeys(names, 0.0), EMPTY: {}}

    def score(self, prediction: Any, y: Any) -> float:
        if self.is_class:
            return float(prediction == y)
        error = abs(y - prediction)
        return error if math.isfinite(error) else math.inf

    def results(self, start: int = 0) -> dict[tuple[str, str], float]:
        """Return the results on the rows from `start` on.

        Those are accuracies in %, or mean errors as shares of that of the running mean.
        """
        if self.is_class:
            return {key: 100.0 * float(np.mean(each[start:])) for key, each in self.scores.items()}
        worst = sum(self.of_mean[start:])
        return {key: min(sum(each[start:]) / worst, MOST) for key, each in self.scores.items()}
