"""Softmax regression on each set of variables, and its accuracy on test documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, diags_array, hstack
from scipy.special import log_softmax

from streamsel.demo.data import Document, iter_phrases, split
from streamsel.demo.results import Score

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streamsel.demo.questions import Question
    from streamsel.stream import ColumnStream

    Floats = NDArray[np.float64]
    Classes = NDArray[np.intp]

# Variables are divided by the square root of their standard deviation, since single words do far
# worse on held-out documents (74 %) if divided by the deviation itself, which the choice of the
# penalty does not reveal. For components it hardly matters (82 % either way).
_POWER = 0.5
_PENALTIES = (0.1, 0.01, 0.001)
# The set of variables with which all others are compared.
WORDS = "all single words"


def evaluate_selections(
    train: list[Document], test: list[Document], stream: ColumnStream, question: Question
) -> tuple[list[Score], dict[str, float]]:
    """Train the classifier on each set of variables, and apply it to the test documents.

    Parameters
    ----------
    train, test
        The documents; in the test documents only n-grams that a classifier uses are counted.
    stream
        The n-grams of the training documents.
    question
        The question, with its fitted models.

    Returns
    -------
    The score of every set of variables, and the recall of each class with the last set.
    """
    classes = question.classes
    y, y_test = (np.array([*map(classes.index, question.labels(part))]) for part in (train, test))
    # Penalties are compared on some files of the training set.
    inner = {document.file for document in split(train, seed=1)[1]}
    tried = np.array([document.file in inner for document in train])

    words, X_words = _single_words(stream)
    used = [*words, *question.selector.selected]
    used += [] if question.extractor is None else question.extractor.loadings
    unseen = iter_phrases(
        [document.text for document in test], 1, list(dict.fromkeys(map(str, used)))
    )

    def correct(X: Any, X_test: Any) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = classify(X, y, X_test, tried) == y_test
        return found

    by_words = correct(X_words, _single_words(unseen)[1])
    majority = int(np.bincount(y).argmax())
    found = [
        (f'none: always "{classes[majority]}"', 0, y_test == majority),
        (WORDS, len(words), by_words),
    ]
    names = {
        "phrases, ForwardSelection": question.selector,
        "components, RidgeComponents": question.extractor,
    }
    for name, model in names.items():
        if model is not None:
            sets = [model.transform_many(part) for part in (stream, unseen)]
            found.append((name, sets[0].shape[1], correct(*sets)))
    scores = [
        Score(
            name,
            number,
            float(right.mean()),
            int((right & ~by_words).sum()),
            int((by_words & ~right).sum()),
        )
        for name, number, right in found
    ]
    last = found[-1][2]
    return scores, {name: float(last[y_test == k].mean()) for k, name in enumerate(classes)}


def _single_words(stream: ColumnStream) -> tuple[list[str], Any]:
    """Return the names and the columns of the single words, which come first in a stream."""
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
    """Predict by softmax regression, with the penalty chosen from a few on the rows `tried`."""

    def correct(penalty: float) -> int:
        predicted = _predicted(X[~tried], y[~tried], X[tried], penalty)
        return int((predicted == y[tried]).sum())

    X, X_test = csr_array(X), csr_array(X_test)
    return _predicted(X, y, X_test, max(_PENALTIES, key=correct))


def _predicted(X: Any, y: Classes, X_test: Any, penalty: float) -> Classes:
    """Scale variables, normalize rows to length 1, fit and predict."""
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
    """Fit the weights (p + 1, classes), penalty ‖W‖²/2; the first row has the free intercepts."""
    Y = (y[:, None] == np.arange(y.max() + 1)).astype(float)
    shape = X.shape[1] + 1, Y.shape[1]

    def loss(w: Floats) -> tuple[float, Floats]:
        W = w.reshape(shape)
        log_probability = log_softmax(X @ W[1:] + W[0], axis=1)
        residual = np.exp(log_probability) - Y
        gradient = np.vstack([residual.sum(axis=0), X.T @ residual + penalty * W[1:]])
        value = 0.5 * penalty * np.square(W[1:]).sum() - (log_probability * Y).sum()
        return float(value), gradient.ravel()

    # Few corrections, and only the accuracy that predictions need, so that this takes little time.
    options = {"maxcor": 5, "maxiter": 100, "ftol": 1e-5}
    start = np.zeros(shape[0] * shape[1])
    w: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return w.reshape(shape)
