"""One classifier for every set of variables: logistic regression, judged on documents held out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, diags_array, hstack
from scipy.special import expit

from streamsel.demo._docstrings import LIBRARIES, Document, split
from streamsel.demo._report import Score
from streamsel.stream import iter_ngrams

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streamsel.extraction.sospca import SOSPCA
    from streamsel.selection.projse import ProjSe
    from streamsel.stream import ColumnStream

_PENALTIES = (10.0, 100.0, 1000.0)


def judge(
    train: list[Document],
    test: list[Document],
    stream: ColumnStream,
    projse: ProjSe,
    sospca: SOSPCA,
) -> list[Score]:
    """Train the classifier on each set of variables and judge it on the documents held out.

    `stream` is that of the training documents. In the documents held out only those n-grams are
    counted that something was trained on.
    """
    y, y_test = (np.array([d.library == LIBRARIES[1] for d in part]) for part in (train, test))
    # Penalties are tried out on some files of the training part.
    inner = {document.file for document in split(train, seed=1)[1]}
    tried = np.array([document.file in inner for document in train])

    words, X_words = _single_words(stream)
    support = list(sospca.loadings)
    wanted = list(dict.fromkeys(map(str, [*words, *projse.selected, *support])))
    texts = (document.text for document in test)
    unseen = iter_ngrams(texts, vocabulary=wanted, binary=True)

    def score(variables: str, X: Any, X_test: Any) -> Score:
        right = _classify(X, y, X_test, tried) == y_test
        return Score(variables, X.shape[1], float(right.mean()))

    majority = bool(y.mean() >= 0.5)
    return [
        Score(f"none: always {LIBRARIES[majority]}", 0, float((y_test == majority).mean())),
        score("all single words", X_words, _single_words(unseen)[1]),
        score(
            "n-grams that ProjSe selected", *(projse.transform_many(s) for s in (stream, unseen))
        ),
        score(
            f"components that SOSPCA built of {len(support)} n-grams",
            *(sospca.transform_many(s) for s in (stream, unseen)),
        ),
    ]


def _single_words(stream: ColumnStream) -> tuple[list[str], Any]:
    """Return the names and the columns of the single words, with which the streams begin."""
    names: list[str] = []
    parts = []
    for block in stream.blocks():
        single = [j for j, name in enumerate(block.names) if " " not in str(name)]
        names.extend(str(block.names[j]) for j in single)
        parts.append(block.values[:, single])
        if len(single) < len(block.names):
            break
    return names, hstack(parts, format="csr")


def _classify(
    X: Any, y: NDArray[np.bool_], X_test: Any, tried: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Predict by logistic regression, its penalty the best of a few on the rows `tried`."""
    X, X_test = csr_array(X), csr_array(X_test)
    mean = X.mean(axis=0)
    scale = np.sqrt(np.maximum((X * X).mean(axis=0) - mean * mean, 0.0))
    weight = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    X, X_test = X @ diags_array(weight), X_test @ diags_array(weight)

    def correct(penalty: float) -> int:
        w = _logistic(X[~tried], y[~tried], penalty)
        return int(((X[tried] @ w[1:] + w[0] > 0) == y[tried]).sum())

    w = _logistic(X, y, max(_PENALTIES, key=correct))
    predicted: NDArray[np.bool_] = X_test @ w[1:] + w[0] > 0
    return predicted


def _logistic(X: Any, y: NDArray[np.bool_], penalty: float) -> NDArray[np.float64]:
    """Fit a logistic regression with penalty |w|²/2; the intercept comes first and is free."""
    sign = np.where(y, 1.0, -1.0)

    def loss(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = sign * (X @ w[1:] + w[0])
        slope = -sign * expit(-margin)
        value = np.logaddexp(0.0, -margin).sum() + 0.5 * penalty * (w[1:] @ w[1:])
        return value, np.append(slope.sum(), X.T @ slope + penalty * w[1:])

    # Few corrections and no more digits than predictions need: this must not be what takes time.
    options = {"maxcor": 5, "maxiter": 60, "ftol": 1e-5}
    start = np.zeros(X.shape[1] + 1)
    w: NDArray[np.float64] = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return w
