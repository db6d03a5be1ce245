"""Datasets learnt as columns, then row by row, for the script `warehouse.py`."""

import functools
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _row_streams import ALL, BAYES, SMOOTHED, GaussianNB, SmoothedNB, Stream, pipeline, stream
from river import (
    base,
    forest,
    linear_model,
    multiclass,
    naive_bayes,
    neighbors,
    preprocessing,
    tree,
)

from streamsel import ProjSe, RidgeComponents

SCALED, SELECTED = "all features, scaled", "ProjSe"
RIDGE, REFRESHED, POOL = "RidgeComponents", "the same, refresh_factor 1.25", "pool of 500"
ROWS_ALONE = "the same, on rows alone"
TREE, NEIGHBOURS, LOGISTIC, FOREST = "Hoeffding tree", "neighbours", "logistic", "forest"
RULES: dict[str, dict[str, Any]] = {
    RIDGE: {},
    REFRESHED: {"refresh_factor": 1.25},
    POOL: {"max_support": 500},
    ROWS_ALONE: {},
}
WINDOW, NEAREST, AT_ONCE = 300, 5, 16


class SplitStream(NamedTuple):
    """Rows that are stored, and rows that come later."""

    history: Stream
    rows: Stream


@functools.lru_cache(maxsize=2)
def split_stream(folder: Path, name: str, stored: int, coming: int, seed: int) -> SplitStream:
    """Return a shuffled dataset in two parts."""
    made = thresholds(stored + coming, seed) if name == "thresholds" else None
    rows = made or stream(folder, name, stored + coming, seed)
    return SplitStream(rows[:stored], rows[stored:])


def thresholds(n: int, seed: int, p: int = 40) -> Stream:
    """Return rows of p Gaussian variables; a tree of two of them determines the class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] > 0.5, X[:, 1] > 0.0, X[:, 1] < -1.0) != (rng.random(n) < 0.05)
    return list(zip([dict(enumerate(row)) for row in X.tolist()], y.tolist(), strict=True))


def relabelled(rows: Stream, seed: int) -> Stream:
    """Return rows whose classes exchange their names from the middle on."""
    names = sorted({y for _, y in rows})
    order = np.random.default_rng(seed).permutation(len(names))
    new = {name: names[j] for name, j in zip(names, order, strict=True)}
    half = len(rows) // 2
    return rows[:half] + [(x, new[y]) for x, y in rows[half:]]


def transformer_steps(
    name: str, history: Stream, k: int, q: int, **rules: Any
) -> list[base.Transformer]:
    """Return the steps before the model; learners have learnt the history as columns."""
    if name in (ALL, SCALED):
        return [preprocessing.StandardScaler()] if name == SCALED else []
    learner: ProjSe | RidgeComponents
    if name == SELECTED:
        learner = ProjSe(k, target_type="class", **rules)
    else:
        learner = RidgeComponents(q, target_type="class", **(RULES[name] | rules))
    if name != ROWS_ALONE:
        learner.learn_target([y for _, y in history])
        learner.learn_columns(columns(history), list(history[0][0]))
    return [learner, preprocessing.StandardScaler()] if name == SELECTED else [learner]


def columns(history: Stream) -> np.ndarray:
    """Return the rows as columns, in the order of their names."""
    return np.asfortranarray([list(x.values()) for x, _ in history])


class Neighbours(base.Classifier):
    """River's KNNClassifier on arrays: the same predictions, faster on wide rows."""

    def __init__(self) -> None:
        self.index_of: dict[Hashable, int] = {}
        self.rows = np.zeros((WINDOW, 0))
        self.classes: list[Any] = []
        self.n = 0

    def learn_one(self, x: dict[Hashable, Any], y: Any) -> None:
        values = self._values(x)
        i = self.n % WINDOW
        self.rows[i] = values
        self.classes[i : i + 1] = [y]
        self.n += 1

    def predict_one(self, x: dict[Hashable, Any]) -> Any:
        if not self.classes:
            return None
        values = self._values(x)
        differences = self.rows[: len(self.classes)] - values
        distances = np.sqrt(np.einsum("ij,ij->i", differences, differences))
        votes: dict[Any, float] = {}
        for i in np.argsort(distances, kind="stable")[:NEAREST].tolist():
            weight = 1.0 / distances[i] if distances[i] else np.inf
            votes[self.classes[i]] = votes.get(self.classes[i], 0.0) + weight
        return max(votes, key=votes.__getitem__)

    def _values(self, x: dict[Hashable, Any]) -> np.ndarray:
        """Return the row as an array, extended by new names; absent features are 0."""
        new = [name for name in x if name not in self.index_of]
        if new:
            self.index_of |= {name: len(self.index_of) + i for i, name in enumerate(new)}
            self.rows = np.pad(self.rows, ((0, 0), (0, len(new))))
        values = np.zeros(len(self.index_of))
        values[[self.index_of[name] for name in x]] = list(x.values())
        return values


def model_steps(name: str, *, by_river: bool = False, scaled: bool = False) -> list[Any]:
    """Return the model, after a scaler if it needs one and there is none."""
    if name == BAYES:
        return [naive_bayes.GaussianNB() if by_river else GaussianNB()]
    if name == SMOOTHED:
        return [SmoothedNB()]
    if name == TREE:
        return [tree.HoeffdingTreeClassifier()]
    if name == FOREST:
        return [forest.ARFClassifier(n_models=5, seed=1)]
    if name == NEIGHBOURS:
        engine = neighbors.LazySearch(WINDOW)
        return [neighbors.KNNClassifier(NEAREST, engine=engine) if by_river else Neighbours()]
    scaler = [] if scaled else [preprocessing.StandardScaler()]
    return [*scaler, multiclass.OneVsRestClassifier(linear_model.LogisticRegression())]


def whole(
    name: str,
    model: str,
    history: Stream,
    k: int,
    q: int,
    *,
    is_warm: bool,
    by_river: bool = False,
    **rules: Any,
) -> base.Classifier:
    """Return a pipeline; a warm model has learnt the history through the steps before it.

    These steps have learnt the history as columns, except scalers, which learn it row by row.
    """
    steps = transformer_steps(name, history, k, q, **rules)
    steps += model_steps(model, by_river=by_river, scaled=name in (SCALED, SELECTED))
    if is_warm:
        for x, y in history:
            for step in steps[:-1]:
                if isinstance(step, preprocessing.StandardScaler):
                    step.learn_one(x)
                x = step.transform_one(x)  # noqa: PLW2901
            steps[-1].learn_one(x, y)
    return pipeline(steps)


# Time


def clocked(works: dict[str, Callable[[Any], Any]], rows: Stream) -> dict[str, Any]:
    """Return name -> processor seconds of every row, except the first of each batch.

    All contenders take the same rows in turn, in batches. Processor time, because on a shared
    machine longer work is interrupted more often.
    """
    found: dict[str, list[float]] = {name: [] for name in works}
    for first in range(0, len(rows), AT_ONCE):
        for name, work in works.items():
            for i, row in enumerate(rows[first : first + AT_ONCE]):
                start = time.thread_time()
                work(row)
                if i:  # at the first row the caches have the data of another contender
                    found[name].append(time.thread_time() - start)
    return {name: np.array(seconds) for name, seconds in found.items()}


class Predicts:
    """A pipeline predicts a row, then learns it."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, row: tuple[dict[Hashable, float], Any]) -> None:
        self.model.predict_one(row[0])
        self.model.learn_one(*row)


class Transforms(Predicts):
    """A transformer transforms a row, and nothing else."""

    def __call__(self, row: tuple[dict[Hashable, float], Any]) -> None:
        self.model.transform_one(row[0])


class Learns(Predicts):
    """A transformer learns a row, and nothing else."""

    def __call__(self, row: tuple[dict[Hashable, float], Any]) -> None:
        if isinstance(self.model, preprocessing.StandardScaler):
            self.model.learn_one(row[0])
        else:
            self.model.learn_one(*row)


class Refreshes(Predicts):
    """A transformer learns a row and refreshes its snapshot."""

    def __call__(self, row: tuple[dict[Hashable, float], Any]) -> None:
        self.model.learn_one(*row)
        self.model.refresh()
