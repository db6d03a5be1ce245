"""Streams of rows, transformers and downstream models, for the scripts `rows_*.py`."""

import functools
import math
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from _experiment import BUNDLED, read
from river import (
    base,
    datasets,
    linear_model,
    multiclass,
    naive_bayes,
    neighbors,
    preprocessing,
    tree,
)

from streamsel import SOSPCA, ProjSe, SelectKBest
from streamsel.base.linear_map import Alignment

RIVERS = {
    "Phishing": datasets.Phishing,
    "Bananas": datasets.Bananas,
    "ImageSegments": datasets.ImageSegments,
}
WORDS = ("sms_spam",)
ALL, EVERY, PROJECTION = "all features", "ProjSe, every row", "random projection"
BAYES, SMOOTHED, TREE = "naive Bayes", "naive Bayes, smoothed", "Hoeffding tree"
MODELS = (BAYES, SMOOTHED, TREE, "neighbours", "logistic")
# A selection or map that is computed again at every row.
EVERY_ROW: dict[str, float] = {"refresh_factor": 1.0, "hysteresis": 1.0, "warm_up": 0}
Stream = list[tuple[dict[Hashable, float], Any]]
_NO_PDF, _LEAST_PDF = math.log(1e-9), 1e-9


@functools.lru_cache(maxsize=2)
def stream(folder: Path, name: str, most: int, seed: int) -> Stream:
    """Return at most `most` rows of a dataset that is shuffled with a seed.

    A row of words has the words that occur; a row of pixels or numbers has all features.
    """
    rng = np.random.default_rng(seed)
    if name in RIVERS:
        rows = list(RIVERS[name]())
        return [rows[i] for i in rng.permutation(len(rows))[:most]]
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        dataset = read(folder / f"{name}.npz")
        X, y = dataset.X, dataset.y
    chosen = rng.permutation(len(y))[:most]
    X, labels = X[chosen], y[chosen].tolist()
    if scipy.sparse.issparse(X):
        parts = (X.indices.tolist(), X.data.astype(float).tolist(), X.indptr.tolist())
        cells = [
            dict(zip(parts[0][start:stop], parts[1][start:stop], strict=True))
            for start, stop in zip(parts[2], parts[2][1:], strict=False)
        ]
    else:
        cells = [dict(enumerate(row)) for row in X.astype(float).tolist()]
    return list(zip(cells, labels, strict=True))


def drifting(seed: int, n: int, p: int = 60, relevant: int = 5) -> Stream:
    """Return p Gaussian variables; five determine the class, five others from the middle on.

    The class is the sign of their sum plus noise with the variance of two of them.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    which = rng.permutation(p)
    signal = X[:, which[:relevant]].sum(axis=1)
    signal[n // 2 :] = X[n // 2 :, which[relevant : 2 * relevant]].sum(axis=1)
    y = signal + math.sqrt(2.0) * rng.normal(size=n) > 0.0
    return list(zip([dict(enumerate(row)) for row in X.tolist()], y.tolist(), strict=True))


def exchanged(rows: Stream, seed: int) -> Stream:
    """Return rows whose variables exchange their names from the middle on."""
    names = list(rows[0][0])
    order = np.random.default_rng(seed).permutation(len(names))
    new = {name: names[j] for name, j in zip(names, order, strict=True)}
    half = len(rows) // 2
    return rows[:half] + [({new[j]: v for j, v in x.items()}, y) for x, y in rows[half:]]


class GaussianNB(base.Classifier):
    """River's GaussianNB on arrays: the same predictions, a hundred times as fast on wide rows."""

    def __init__(self) -> None:
        self.index_of: dict[Hashable, int] = {}
        self.classes: dict[Any, int] = {}
        # Per class and feature: rows with the feature, mean, sum of squares; rows per class.
        self.n, self.mean, self.m2 = np.zeros((3, 64, 1024))
        self.seen = np.zeros(64)

    def _at(self, x: dict[Hashable, Any]) -> np.ndarray:
        for name in x.keys() - self.index_of.keys():
            self.index_of[name] = len(self.index_of)
        return np.fromiter(map(self.index_of.__getitem__, x), np.intp, len(x))

    def learn_one(self, x: dict[Hashable, Any], y: Any) -> None:
        c = self.classes.setdefault(y, len(self.classes))
        at, values = self._at(x), np.fromiter(x.values(), float, len(x))
        self.seen[c] += 1.0
        self.n[c, at] += 1.0
        off = values - self.mean[c, at]
        self.mean[c, at] += off / self.n[c, at]
        self.m2[c, at] += off * (values - self.mean[c, at])

    def predict_one(self, x: dict[Hashable, Any]) -> Any:
        k = len(self.classes)
        if not k:
            return None
        at, values = self._at(x), np.fromiter(x.values(), float, len(x))
        likely = self._likely(at, values, k) + np.log(self.seen[:k] / self.seen.sum())
        return list(self.classes)[int(likely.argmax())]

    def _likely(self, at: np.ndarray, values: np.ndarray, k: int) -> np.ndarray:
        """Return the log-likelihood of the values under each of k classes."""
        mean = self.mean[:k, at]
        variance = self.m2[:k, at] / np.maximum(self.n[:k, at], 1.0)
        safe = np.where(variance > 0.0, variance, 1.0)
        pdf = np.exp(-((values - mean) ** 2) / (2.0 * safe)) / np.sqrt(math.tau * safe)
        found: np.ndarray = np.where(variance > 0.0, np.log(_LEAST_PDF + pdf), _NO_PDF).sum(axis=1)
        return found


class SmoothedNB(GaussianNB):
    """Gaussian naive Bayes whose classes start with one row of prior, shared by all classes.

    The prior has the mean and the variance of all rows. River's model has no prior: in a class with
    few rows a feature of nearly zero variance decides alone.
    """

    def _likely(self, at: np.ndarray, values: np.ndarray, k: int) -> np.ndarray:
        n, mean, m2 = self.n[:k, at], self.mean[:k, at], self.m2[:k, at]
        of_all = n.sum(axis=0)
        known = of_all > 0.0
        rows = np.where(known, of_all, 1.0)
        centre = (n * mean).sum(axis=0) / rows
        spread = (m2 + n * (mean - centre) ** 2).sum(axis=0) / rows
        shrunk = (n * mean + centre) / (n + 1.0)
        variance = m2 + n * (mean - shrunk) ** 2 + spread + (centre - shrunk) ** 2
        variance = np.where(spread > 0.0, variance / (n + 1.0), 1.0)
        log_pdf = -0.5 * ((values - shrunk) ** 2 / variance + np.log(math.tau * variance))
        found: np.ndarray = np.where(spread > 0.0, log_pdf, 0.0).sum(axis=1)
        return found


class AsTheyCome(SOSPCA):
    """SOSPCA whose components are not rotated onto those in use."""

    def _alignment(self, new: Any, in_use: Any) -> Alignment:  # noqa: ARG002
        return Alignment.identity(self.n_components)


def transformer_steps(
    name: str, k: int, q: int, seed: int, p: int, **rules: float
) -> list[base.Transformer]:
    """Return the steps before the model: none, or one transformer."""
    if name == ALL:
        return []
    if name == PROJECTION:
        if p > 100:
            return [preprocessing.SparseRandomProjector(n_components=k, seed=seed)]
        return [preprocessing.GaussianRandomProjector(n_components=k, seed=seed)]
    if name in ("SOSPCA", "as they come"):
        kind = SOSPCA if name == "SOSPCA" else AsTheyCome
        return [kind(q, target_type="class", **rules)]
    if name == EVERY:
        return [ProjSe(k, target_type="class", **EVERY_ROW)]
    return [{"ProjSe": ProjSe, "SelectKBest": SelectKBest}[name](k, target_type="class", **rules)]


def model_steps(name: str, *, words: bool, built: bool, by_river: bool = False) -> list[Any]:
    """Return the model, after a scaler if it needs one."""
    if name in (BAYES, SMOOTHED):
        if words and not built:
            return [naive_bayes.MultinomialNB()]
        if name == SMOOTHED:
            return [SmoothedNB()]
        return [naive_bayes.GaussianNB() if by_river else GaussianNB()]
    if name == TREE:
        return [tree.HoeffdingTreeClassifier()]
    scaler = [] if words and not built else [preprocessing.StandardScaler()]
    if name == "neighbours":
        return [
            *scaler,
            neighbors.KNNClassifier(5, engine=neighbors.LazySearch(300)),
        ]
    return [*scaler, multiclass.OneVsRestClassifier(linear_model.LogisticRegression())]


def pipeline(steps: list[Any]) -> base.Classifier:
    return functools.reduce(lambda left, right: left | right, steps)


def expect_rivers_predictions(rows: Stream) -> None:
    """Fail if our GaussianNB predicts differently from River's, except rare ties of rounding."""
    ours, theirs = (hits(model, rows) for model in (GaussianNB(), naive_bayes.GaussianNB()))
    if np.mean(ours != theirs) > 0.01:
        raise AssertionError(f"other predictions in {np.sum(ours != theirs)} of {len(rows)} rows")


def hits(model: base.Classifier, rows: Iterable[tuple[dict[Hashable, Any], Any]]) -> np.ndarray:
    """Return whether each row was predicted correctly, before the model learnt it."""
    right = []
    for x, y in rows:
        right.append(model.predict_one(x) == y)
        model.learn_one(x, y)
    return np.array(right)
