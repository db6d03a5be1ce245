"""One classifier for every set of variables: softmax regression, judged on documents held out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, diags_array, hstack
from scipy.special import log_softmax

from streamsel.demo._docstrings import PACKAGES, Document, split
from streamsel.demo._report import Score
from streamsel.demo._variables import variables_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streamsel.extraction.ridge_components import RidgeComponents
    from streamsel.selection.forward_selection import ForwardSelection
    from streamsel.stream import ColumnStream

    Floats = NDArray[np.float64]
    Classes = NDArray[np.intp]

# Variables are divided by the root of their standard deviations, for the sake of single words: by
# the deviations themselves they do far worse on the documents held out (74 %), and the penalty's
# trial does not tell. To components it is nearly all the same (82 % either way).
_POWER = 0.5
_PENALTIES = (0.1, 0.01, 0.001)


class Verdict(NamedTuple):
    """What the documents held out say.

    Parameters
    ----------
    scores
        Of every set of variables.
    recall
        Of the documents of each sub-package the share that the components got right.
    gained, lost
        How many documents the components get right and all single words do not, and the reverse.
    """

    scores: list[Score]
    recall: dict[str, float]
    gained: int
    lost: int


def judge(
    train: list[Document],
    test: list[Document],
    stream: ColumnStream,
    selector: ForwardSelection,
    extractor: RidgeComponents,
) -> Verdict:
    """Train the classifier on each set of variables and judge it on the documents held out.

    `stream` is that of the training documents. In the documents held out only those n-grams are
    counted that something was trained on.
    """
    y, y_test = (np.array([PACKAGES.index(d.package) for d in part]) for part in (train, test))
    # Penalties are tried out on some files of the training part.
    inner = {document.file for document in split(train, seed=1)[1]}
    tried = np.array([document.file in inner for document in train])

    words, X_words = _single_words(stream)
    wanted = list(dict.fromkeys(map(str, [*words, *selector.selected, *extractor.loadings])))
    unseen = variables_of([document.text for document in test], 1, wanted)

    def right(X: Any, X_test: Any) -> NDArray[np.bool_]:
        got: NDArray[np.bool_] = classify(X, y, X_test, tried) == y_test
        return got

    by_words = right(X_words, _single_words(unseen)[1])
    by_selected = right(*(selector.transform_many(s) for s in (stream, unseen)))
    by_components = right(*(extractor.transform_many(s) for s in (stream, unseen)))
    majority = int(np.bincount(y).argmax())
    found = [
        (f'none: always "{PACKAGES[majority]}"', 0, y_test == majority),
        ("phrases, ForwardSelection", len(selector.selected), by_selected),
        ("all single words", len(words), by_words),
        ("components, RidgeComponents", extractor.n_components, by_components),
    ]
    return Verdict(
        [Score(variables, number, float(got.mean())) for variables, number, got in found],
        {name: float(by_components[y_test == k].mean()) for k, name in enumerate(PACKAGES)},
        int((by_components & ~by_words).sum()),
        int((by_words & ~by_components).sum()),
    )


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


def classify(X: Any, y: Classes, X_test: Any, tried: NDArray[np.bool_]) -> Classes:
    """Predict by softmax regression, its penalty the best of a few on the rows `tried`."""

    def correct(penalty: float) -> int:
        predicted = _predicted(X[~tried], y[~tried], X[tried], penalty)
        return int((predicted == y[tried]).sum())

    X, X_test = csr_array(X), csr_array(X_test)
    return _predicted(X, y, X_test, max(_PENALTIES, key=correct))


def _predicted(X: Any, y: Classes, X_test: Any, penalty: float) -> Classes:
    """Scale variables, bring rows to length 1, fit and predict."""
    mean = X.mean(axis=0)
    deviation = np.sqrt(np.maximum((X * X).mean(axis=0) - mean * mean, 0.0))
    weight = np.divide(1.0, deviation**_POWER, out=np.zeros_like(mean), where=deviation > 0)
    X, X_test = (_of_length_1(part @ diags_array(weight)) for part in (X, X_test))
    W = softmax_regression(X, y, penalty)
    predicted: Classes = np.argmax(X_test @ W[1:] + W[0], axis=1)
    return predicted


def _of_length_1(X: Any) -> Any:
    """Divide rows by their lengths."""
    length = np.sqrt((X * X).sum(axis=1))
    weight = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return csr_array(diags_array(weight) @ X)


def softmax_regression(X: Any, y: Classes, penalty: float) -> Floats:
    """Fit the weights (p + 1, classes), penalty ‖W‖²/2; the intercepts come first and are free."""
    Y = (y[:, None] == np.arange(y.max() + 1)).astype(float)
    shape = X.shape[1] + 1, Y.shape[1]

    def loss(w: Floats) -> tuple[float, Floats]:
        W = w.reshape(shape)
        told = log_softmax(X @ W[1:] + W[0], axis=1)
        slope = np.exp(told) - Y
        gradient = np.vstack([slope.sum(axis=0), X.T @ slope + penalty * W[1:]])
        value = 0.5 * penalty * np.square(W[1:]).sum() - (told * Y).sum()
        return float(value), gradient.ravel()

    # Few corrections and no more digits than predictions need: this must not be what takes time.
    options = {"maxcor": 5, "maxiter": 100, "ftol": 1e-5}
    start = np.zeros(shape[0] * shape[1])
    w: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return w.reshape(shape)
