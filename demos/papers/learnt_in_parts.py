"""What is lost if columns are learnt in parts and the models merged?

Moments, Gram matrices and stages do not depend on how columns are learnt. For learners that keep
less, this experiment compares the merged model with one model of all columns: the components, the
variables that have loadings, and the accuracy with the components.

Each of 3 random splits has a third of the rows for tests, and columns in a random order. One model
learns all columns; 4, 16 and 64 others learn parts of equal size, and are merged in a tree whose
nodes have 8 models, as processes would do it. One more learns all columns in another order, which
shows the effect of the order alone.

Measures: `correlation`, the mean canonical correlation between the components of the training rows
and those of the one model, and `angle`, the largest angle, in degrees; `shared`, the share of
variables with loadings in both models among those with loadings in either; `right`, the accuracy on
test rows of a ridge classifier on the components (standardised, penalty 1).
"""

import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from _experiment import BUNDLED, Experiment, Row, machine, read, table
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import streamsel
from streamsel.stream import as_stream

Q, FEW, FAN_IN, SPLITS = 5, 100, 8, 3
PARTS = (4, 16, 64)
# Name in the tables -> class, and its parameters in addition to n_components.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "SOSPCA": ("SOSPCA", {}),
    "RidgeComponents, pool": ("RidgeComponents", {"max_support": FEW}),
    "RidgeComponents, Gram": ("RidgeComponents", {"max_loadings": FEW}),
    "SupervisedPCA": ("SupervisedPCA", {"max_candidates": FEW}),
    "PCA": ("PCA", {"max_loadings": FEW}),
    "PCA, leading axes": ("PCA", {"max_loadings": FEW, "max_gram_rows": 20}),
    "PLS": ("PLS", {"max_loadings": FEW}),
    "KernelPCA": ("KernelPCA", {"max_variables": FEW}),
    "RandomProjection": ("RandomProjection", {}),
}
REAL = ("glioma", "isolet", "basehock")
QUICK = ("breast_cancer", "digits")


@functools.lru_cache(maxsize=2)
def data(folder: Path, name: str, split: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return the training rows of a split, its columns in random order, and its test rows."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        X, y = read(folder / f"{name}.npz")[1:3]
    A, B, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=split)
    order = np.random.default_rng(split).permutation(X.shape[1])
    return _columns(A)[:, order], y, _columns(B)[:, order], y_test


def _columns(X: Any) -> Any:
    if scipy.sparse.issparse(X):
        return scipy.sparse.csc_array(X)
    return np.asfortranarray(X, dtype=float)


def fresh(method: str, y: np.ndarray) -> Any:
    kind, parameters = METHODS[method]
    learner = getattr(streamsel, kind)
    target = {"target_type": "class"} if learner._is_supervised else {}
    model = learner(Q, **parameters, **target)
    if learner._is_supervised:
        model.learn_target(y)
    return model


def in_order(method: str, X: Any, y: np.ndarray, order: np.ndarray) -> Any:
    """Return a model that has learnt all columns, in an order."""
    model = fresh(method, y)
    model.learn_columns(X[:, order], order.tolist())
    return model


def in_parts(method: str, X: Any, y: np.ndarray, n_parts: int) -> Any:
    """Return the merged model of those that have learnt one part each."""
    models = []
    edges = np.linspace(0, X.shape[1], n_parts + 1).astype(int).tolist()
    for start, stop in itertools.pairwise(edges):
        models.append(fresh(method, y))
        models[-1].learn_columns(as_stream(X[:, start:stop], range(start, stop)))
    while len(models) > 1:
        rest = iter(models)
        models = []
        while node := list(itertools.islice(rest, FAN_IN)):
            for other in node[1:]:
                node[0].merge(other)
            models.append(node[0])
    return models[0]


def distance(A: np.ndarray, B: np.ndarray) -> Row:
    """Return the mean correlation and the largest angle between two column spaces."""
    bases = []
    for Z in (A, B):
        U, s, _ = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
        bases.append(U[:, s > 1e-9 * s.max(initial=0.0)])
    small, large = sorted(bases, key=lambda U: U.shape[1])
    cosines = np.linalg.svd(large.T @ small, compute_uv=False)
    # The sine of small angles has a smaller rounding error than the cosine.
    sine = np.linalg.norm(large - small @ (small.T @ large), ord=2)
    angle = float(np.degrees(np.arcsin(min(1.0, sine))))
    return {"correlation": float(cosines.sum() / large.shape[1]), "angle": angle}


def right(model: Any, X: Any, y: np.ndarray, B: Any, y_test: np.ndarray) -> float:
    """Return the accuracy on test rows of a ridge classifier on the components."""
    classifier = make_pipeline(StandardScaler(), RidgeClassifier())
    names = list(range(X.shape[1]))
    rows = (pd.DataFrame(_dense(part), columns=names) for part in (X, B))
    train, test = (np.asarray(model.transform_many(part)) for part in rows)
    return float(classifier.fit(train, y).score(test, y_test))


def _dense(X: Any) -> np.ndarray:
    return X.toarray().astype(float) if scipy.sparse.issparse(X) else X


def shared(one: Any, other: Any) -> float:
    """Return the share of variables with loadings in both models; NaN if there are none."""
    mine, theirs = (
        {name for name, weights in getattr(model, "loadings", {}).items() if any(weights.values())}
        for model in (one, other)
    )
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else float("nan")


def work(folder: Path, name: str, split: int, method: str) -> list[Row]:
    """Return one row for each way to learn."""
    X, y, B, y_test = data(folder, name, split)
    n, p = X.shape
    one = in_order(method, X, y, np.arange(p))
    other = np.random.default_rng([split, 1]).permutation(p)
    ways = {"1": one, "reordered": in_order(method, X, y, other)}
    ways |= {str(parts): in_parts(method, X, y, parts) for parts in PARTS if parts <= p}
    rows = []
    for way, model in ways.items():
        rows.append(
            {"dataset": name, "n": n, "p": p, "split": split, "method": method, "parts": way}
            | distance(one.embedding, model.embedding)
            | {"shared": shared(one, model), "right": right(model, X, y, B, y_test)}
        )
    return rows


def summary(found: pd.DataFrame) -> str:
    """Return a table of the ways to learn, one row per dataset and method."""
    lines = []
    for (name, method), rows in found.groupby(["dataset", "method"], sort=False):
        mean = rows.groupby("parts", sort=False)[["correlation", "angle", "shared", "right"]].mean()
        cells = {"data": name, "method": method, "one model": f"{100 * mean['right']['1']:.1f}"}
        for way in mean.index[1:]:
            correlation, angle, shared, right = mean.loc[way]
            same = "same" if angle < 1e-4 else f"{correlation:.3f} ({angle:.2g}°)"
            names = "" if np.isnan(shared) else f", {100 * shared:.0f} %"
            label = way if way == "reordered" else f"{way} parts"
            cells[label] = f"{same}{names}, {100 * right:.1f}"
        lines.append(cells)
    return table(pd.DataFrame(lines).fillna(""))


def main() -> None:
    experiment = Experiment("learnt-in-parts", __doc__)
    names = experiment.available(experiment.small(REAL, QUICK))
    tasks = [
        (name, split, method)
        for name in names
        for split in range(experiment.small(SPLITS, 1))
        for method in METHODS
    ]
    found = experiment.each(functools.partial(work, experiment.data), tasks)
    found["parts"] = found["parts"].astype(str)
    experiment.publish(
        f"""
Each dataset is split {SPLITS} times. Models have {Q} components, and models with a bound have {FEW}
variables. *One model* is the accuracy in % on test rows with the components of one model.
*Reordered* is one model that learns the columns in another order. The cells of *reordered* and of
the parts show the mean correlation with the components of *one model* (largest angle in brackets),
the Jaccard index of variables with loadings, and the accuracy.

{summary(found)}

[All numbers](learnt-in-parts.csv) were made by `python demos/papers/learnt_in_parts.py`
with {machine()}.
"""
    )


if __name__ == "__main__":
    main()
