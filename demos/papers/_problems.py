"""Problems for extractors: real and planted data, split into training and test rows.

The name of a problem is a dataset, a dataset and its target, or a plan.
"""

import zlib
from typing import NamedTuple

import numpy as np
import scipy.sparse
from _experiment import Dataset
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sospca_errors import BINARY, prepared

TWO, MANY, LABELS = "two classes", "many classes", "several labels"
REAL, PLANTED = "regression, real", "regression, planted"
# A column is predicted from the others; in a spectrum or an outline at least this far away.
FAR = 40
FAMILIES = {
    TWO: list(BINARY),
    MANY: ["crop", "digits", "glioma", "isolet", "mnist_10k", "shapesall", "wine"],
    LABELS: ["ml_bibtex", "ml_emotions"],
    REAL: [
        *("diabetes", "diabetes, squares"),
        *(
            f"{name}, column {part}/4"
            for name in ("colon_alon", "leukemia_golub3571", "glioma", "isolet", "shapesall")
            for part in (1, 2)
        ),
    ],
    PLANTED: [
        *("factors of 2,000", "five of 2,000", "five of 20,000"),
        *("dense of 1,000", "AR of 2,000", "copies of 2,000"),
    ],
}
FAMILY = {problem: family for family, problems in FAMILIES.items() for problem in problems}
MOST_TRAIN, MOST_ROWS = 600, 1_200
N_PLANTED, N_TEST = 200, 500
MOST_LABELS = 20


class Split(NamedTuple):
    """Training rows A and their target y, test rows B and their target y_test.

    Columns have mean 0 and deviation 1 in A. A target has codes of classes, numbers, or a matrix of
    labels.
    """

    A: np.ndarray
    y: np.ndarray
    B: np.ndarray
    y_test: np.ndarray


def needed(problem: str) -> str | None:
    """Return the dataset of a problem, if it is a file."""
    name = problem.partition(",")[0]
    return None if FAMILY[problem] == PLANTED or name == "diabetes" else name


def split_of(datasets: dict[str, Dataset], problem: str, seed: int, most_rows: int) -> Split:
    """Return a split of a problem."""
    if FAMILY[problem] == PLANTED:
        X, y = planted(problem, seed, N_PLANTED + N_TEST)
        cut = N_PLANTED
        return standardised(X[:cut], y[:cut], X[cut:], y[cut:])
    X, y = whole(datasets[needed(problem)] if needed(problem) else None, problem, most_rows)
    n_train = min(MOST_TRAIN, round(len(y) * 2 / 3))
    classes = y if y.ndim == 1 and y.dtype.kind == "i" else None
    train, test = train_test_split(
        np.arange(len(y)), train_size=n_train, stratify=classes, random_state=seed
    )
    return standardised(X[train], y[train], X[test], y[test])


def standardised(A: np.ndarray, y: np.ndarray, B: np.ndarray, y_test: np.ndarray) -> Split:
    varies = np.ptp(A, axis=0) > 0.0
    scaler = StandardScaler().fit(A[:, varies])
    return Split(scaler.transform(A[:, varies]), y, scaler.transform(B[:, varies]), y_test)


def whole(dataset: Dataset | None, problem: str, most_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X (n, p) and the target of a problem of real data, at most `most_rows` rows."""
    if dataset is None:
        X, y = load_diabetes(return_X_y=True)
        if problem.endswith("squares"):
            X = PolynomialFeatures(2, include_bias=False).fit_transform(X)
        return X, y
    if FAMILY[problem] == LABELS:
        return labelled(dataset, most_rows)
    X, y = prepared(dataset, most_rows)
    if FAMILY[problem] != REAL:
        return X, y
    p = X.shape[1]
    column = int(problem[-3]) * p // 4
    gap = FAR if needed(problem) in ("isolet", "shapesall") else 1
    return X[:, np.abs(np.arange(p) - column) >= gap], X[:, column]


def labelled(dataset: Dataset, most_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X and the most frequent labels; words in at least five rows, as present or absent."""
    rows = np.random.default_rng(0).permutation(dataset.y.size)[:most_rows]
    X, Y = dataset.X[rows], dataset.archive["Y2"][rows]
    if scipy.sparse.issparse(X):
        X = X.toarray() > 0
        X = X[:, X.sum(axis=0) >= 5]
    frequent = np.argsort(-Y.sum(axis=0, dtype=int), kind="stable")[:MOST_LABELS]
    return X.astype(float), Y[:, frequent].astype(float)


def planted(problem: str, seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of a plan, and the signal plus noise of half its deviation."""
    kind, _, digits = problem.partition(" of ")
    p = int(digits.replace(",", ""))
    rng = np.random.default_rng([zlib.crc32(problem.encode()), seed])
    X, signal = PLANS[kind](rng, n, p)
    noise = rng.standard_normal(n) * 0.5 * signal.std()
    return X[:, rng.permutation(p)], signal + noise


def factors(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten factors, each in a twentieth of the columns; three of them make the target."""
    latent, loadings = rng.standard_normal((n, 10)), np.zeros((10, p))
    for k in range(10):
        of = rng.choice(p, p // 20, replace=False)
        loadings[k, of] = 0.7 * rng.standard_normal(of.size)
    X = latent @ loadings + rng.standard_normal((n, p))
    return X, latent[:, :3] @ np.array([1.0, 1.0, 0.7])


def five(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent columns; five of them make the target."""
    X = rng.standard_normal((n, p))
    return X, X[:, rng.choice(p, 5, replace=False)].sum(axis=1)


def dense(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """A hundred directions of falling variance; all columns make the target."""
    spread = np.arange(1.0, 101.0) ** -0.7
    X = (rng.standard_normal((n, 100)) * spread) @ rng.standard_normal((100, p))
    X = X / X.std() + 0.3 * rng.standard_normal((n, p))
    return X, X @ rng.standard_normal(p)


def autoregressive(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Each column correlates by 0.9 with the one before; ten of them make the target."""
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1.0 - 0.81) * X[:, j]
    return X, X[:, rng.choice(p, 10, replace=False)] @ rng.standard_normal(10)


def copies(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Thirty noisy copies each of forty columns, among noise; ten of the forty make the target."""
    latent = rng.standard_normal((n, 40))
    X = np.repeat(latent, 30, axis=1) + 0.3 * rng.standard_normal((n, 1_200))
    X = np.hstack([X, rng.standard_normal((n, p - 1_200))])
    return X, latent[:, :10] @ rng.uniform(0.3, 1.0, 10)


PLANS = {
    "factors": factors,
    "five": five,
    "dense": dense,
    "AR": autoregressive,
    "copies": copies,
}
