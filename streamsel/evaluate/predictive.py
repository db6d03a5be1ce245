"""What can be told from selected or extracted features: clusters and classes, by scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel.evaluate._matrices import Floats, as_matrix, as_numbers
from streamsel.extras import sklearn
from streamsel.sparse import expect_whole
from streamsel.target.encode import encode

_WHAT_FOR = "Clustering and classifying"


def clustering_nmi(X: Any, labels: Any, *, n_restarts: int = 20, seed: int = 0) -> Floats:
    """Return how well k-means clusters of the observations agree with their classes.

    As many clusters as there are classes are made, from `n_restarts` random starts, and each
    clustering is compared with the classes by normalised mutual information (NMI): a customary
    measure of unsupervised selection.

    Parameters
    ----------
    X
        (n, p) selected or extracted features, an array or a frame. k-means heeds their scales.
    labels
        (n,) classes.
    n_restarts
        How many clusterings.
    seed
        Clustering i is started by the random state seed + i.

    Returns
    -------
    NMI of every clustering, (n_restarts,), in [0, 1]: the mutual information divided by the mean
    of the two entropies.

    Raises
    ------
    ValueError
        For NaN or infinite values, missing labels, fewer than two classes or as many as rows, or
        another number of labels than of rows.
    TypeError
        For features that are not real numbers, and for a sparse matrix.
    ImportError
        If scikit-learn is not installed: ``pip install "streamsel[evaluate]"``.

    Notes
    -----
    `sklearn.cluster.KMeans` with one initialisation each; nothing is scaled or centred before.

    Examples
    --------
    >>> from streamsel.evaluate import clustering_nmi
    >>> clustering_nmi([0.0, 0.1, 5.0, 5.1], ["a", "a", "b", "b"], n_restarts=3)
    array([1., 1., 1.])
    """
    cluster, metrics = sklearn("cluster", _WHAT_FOR), sklearn("metrics", _WHAT_FOR)
    params.check("clustering_nmi", {"n_restarts": params.Whole(1)}, {"n_restarts": n_restarts})
    X = as_matrix(X, "X")
    classes = encode(labels, "class")
    if len(classes.columns) != len(X) or not 2 <= len(classes.names) < len(X):
        raise ValueError(
            f"Expected a label for each of {len(X)} rows, of 2 classes or more but not each its "
            "own, got: "
            f"{len(classes.columns)} labels of {len(classes.names)} classes."
        )
    codes = classes.columns.argmax(axis=1)
    nmi = np.empty(n_restarts)
    for i in range(n_restarts):
        k_means = cluster.KMeans(len(classes.names), n_init=1, random_state=seed + i)
        nmi[i] = metrics.normalized_mutual_info_score(codes, k_means.fit_predict(X))
    return nmi


def cross_validated_accuracy(
    learner: Any, classifier: Any, X: Any, y: Any, *, n_folds: int = 10, seed: int = 0
) -> Floats:
    """Return how well a classifier does on selected or extracted features, fold by fold.

    Features are learnt anew inside every fold, of the training rows alone: selected once of all
    rows, they would know the test rows, and the accuracy would be too high.

    Parameters
    ----------
    learner
        `ProjSe`, `SOSPCA`, or whatever has their `clone`, `learn_target`, `learn_columns` and
        `transform_many`; it is left as it is. Where classes are integers, it needs
        ``target="class"``.
    classifier
        A classifier of scikit-learn, or a pipeline of them; it is left as it is.
    X
        (n, p) observations: an array, a scipy.sparse matrix, or a frame that narwhals knows.
    y
        (n,) classes.
    n_folds
        How many folds; each class needs as many rows.
    seed
        Random state of the shuffle that makes the folds, which hold the classes in equal shares.

    Returns
    -------
    Share of test rows whose class is told, in every fold, (n_folds,).

    Raises
    ------
    ValueError
        If a learner has no features in some fold, for another number of classes than of rows, and
        as the learner and the classifier raise it.
    TypeError
        For a learner that learns no columns, or an X whose rows cannot be picked out, such as a
        `ColumnStream`.
    ImportError
        If scikit-learn is not installed: ``pip install "streamsel[evaluate]"``.

    Notes
    -----
    The folds are those of `sklearn.model_selection.StratifiedKFold`. They share training rows, so
    the accuracies are not independent: their standard deviation understates what another sample
    of data would change.

    Memory is that of a fold's copy of X. The classifier gets a float64 array of the features.

    Examples
    --------
    One variable of a hundred tells the classes:

    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from streamsel import ProjSe
    >>> from streamsel.evaluate import cross_validated_accuracy
    >>> X = np.random.default_rng(0).standard_normal((40, 100))
    >>> y = np.repeat(["healthy", "ill"], 20)
    >>> X[:, 7] += 8.0 * (y == "ill")
    >>> cross_validated_accuracy(ProjSe(k=1), KNeighborsClassifier(), X, y, n_folds=4)
    array([1., 1., 1., 1.])
    """
    if isinstance(learner, type) or not hasattr(learner, "learn_columns"):
        raise TypeError(
            "Expected a learner, such as ProjSe(k=10), with learn_columns and clone, got: "
            f"{params.shown(learner)}."
        )
    clone = sklearn("base", _WHAT_FOR).clone
    model_selection = sklearn("model_selection", _WHAT_FOR)
    n, pick = _rows(X)
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(
            f"Expected classes of shape ({n},), one for each row of X, got: shape {y.shape}."
        )
    splitter = model_selection.StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    accuracy = []
    for fold, (train, test) in enumerate(splitter.split(np.empty(n), y)):
        training = pick(train)
        model = learner.clone()
        model.learn_target(y[train])
        model.learn_columns(training)
        features = as_numbers(model.transform_many(training), "features")
        if not features.shape[1]:
            raise ValueError(
                f"Expected features to classify by, got: none from {type(model).__name__} in fold "
                f"{fold}.\nHint: perhaps no column varies among the training rows."
            )
        fitted = clone(classifier).fit(features, y[train])
        del training, features
        told = fitted.predict(as_numbers(model.transform_many(pick(test)), "features"))
        accuracy.append(np.mean(told == y[test]))
    return np.array(accuracy)


def _rows(X: Any) -> tuple[int, Callable[[NDArray[np.intp]], Any]]:
    """Return how many rows X has, and what picks some of them out."""
    if hasattr(X, "tocsr"):
        expect_whole(X)
        rows = X.tocsr()
        return rows.shape[0], lambda places: rows[places].tocsc()
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return len(X), lambda places: X[places]
    # Behind this door stand the compiled kernels: a bare import need not wait for them.
    from streamsel.rows import as_frame

    frame = as_frame(X)
    if frame is None:
        raise TypeError(
            "Expected an array of shape (n, p), a sparse matrix or a frame, got: "
            f"{type(X).__name__}.\nHint: rows are picked out of it; a stream has columns only."
        )
    return len(frame), lambda places: frame[places, :].to_native()
