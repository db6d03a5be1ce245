"""Clustering and classification with selected or extracted features, by scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel._utils.optional import import_sklearn
from streamsel._utils.sparse import expect_consistent_sparse
from streamsel.evaluate.similarity import Floats, as_matrix, as_numbers
from streamsel.targets.encoding import encode_target

_WHAT_FOR = "Clustering and classifying"


def clustering_nmi(X: Any, labels: Any, *, n_restarts: int = 20, seed: int = 0) -> Floats:
    """Return the agreement of k-means clusters of the observations with their classes.

    k-means with one cluster per class runs from `n_restarts` random starts, and each clustering is
    compared with the classes by normalised mutual information (NMI): a customary measure of
    unsupervised selection.

    Parameters
    ----------
    X
        (n, p) selected or extracted features, an array or a frame. k-means depends on their scales.
    labels
        (n,) classes.
    n_restarts
        Number of clusterings.
    seed
        Clustering i has the random state seed + i.

    Returns
    -------
    NMI of each clustering, (n_restarts,), in [0, 1]: the mutual information divided by the mean of
    the two entropies.

    Raises
    ------
    ValueError
        For NaN or infinite values, missing labels, fewer than two classes or as many as rows, or
        different numbers of labels and rows.
    TypeError
        For features that are not real numbers, and for a sparse matrix.
    ImportError
        If scikit-learn is not installed: ``pip install "streamsel[evaluate]"``.

    Notes
    -----
    Each clustering is `sklearn.cluster.KMeans` with one initialisation, without scaling or
    centring.

    Examples
    --------
    >>> from streamsel.evaluate import clustering_nmi
    >>> clustering_nmi([0.0, 0.1, 5.0, 5.1], ["a", "a", "b", "b"], n_restarts=3)
    array([1., 1., 1.])
    """
    cluster, metrics = import_sklearn("cluster", _WHAT_FOR), import_sklearn("metrics", _WHAT_FOR)
    params.check("clustering_nmi", {"n_restarts": params.IntRule(1)}, {"n_restarts": n_restarts})
    X = as_matrix(X, "X")
    classes = encode_target(labels, "class")
    if len(classes.columns) != len(X) or not 2 <= len(classes.names) < len(X):
        raise ValueError(
            f"Expected a label for each of {len(X)} rows, of at least 2 classes and fewer than "
            "rows. Got: "
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
    """Return the accuracy of a classifier on selected or extracted features, per fold.

    Features are learnt in every fold from the training rows only: a selection from all rows would
    use the test rows, and the accuracy would be too high.

    Parameters
    ----------
    learner
        `ProjSe`, `SOSPCA`, or any object with `clone`, `learn_target`, `learn_columns` and
        `transform_many`; it is not changed. Integer classes require ``target_type="class"``.
    classifier
        A classifier or pipeline of scikit-learn; it is not changed.
    X
        (n, p) observations: an array, a scipy.sparse matrix, or a frame supported by narwhals.
    y
        (n,) classes.
    n_folds
        Number of folds; each class needs at least as many rows.
    seed
        Random state of the shuffle; folds are stratified by class.

    Returns
    -------
    Share of test rows that are classified correctly, in each fold, (n_folds,).

    Raises
    ------
    ValueError
        If a learner has no features in some fold, for different numbers of classes and rows, and if
        the learner or the classifier raises it.
    TypeError
        For a learner without `learn_columns`, or an X whose rows cannot be selected, such as a
        `ColumnStream`.
    ImportError
        If scikit-learn is not installed: ``pip install "streamsel[evaluate]"``.

    Notes
    -----
    The folds are those of `sklearn.model_selection.StratifiedKFold`. They share training rows, so
    the accuracies are not independent: their standard deviation understates the variation between
    samples of data.

    Memory is that of one fold's copy of X. The classifier receives the features as a float64 array.

    Examples
    --------
    One variable of a hundred separates the classes:

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
    # Imported late: a learner has loaded this module, and `clustering_nmi` needs no learner.
    from streamsel.evaluate.model_batch import check_learner

    check_learner(learner)
    clone = import_sklearn("base", _WHAT_FOR).clone
    model_selection = import_sklearn("model_selection", _WHAT_FOR)
    n, pick = _rows(X)
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(
            f"Expected classes y of shape ({n},), one for each row of X. Got: shape {y.shape}."
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
                f"Expected features for the classifier. Got: none from {type(model).__name__} in "
                f"fold {fold}.\nHint: perhaps no column varies among the training rows."
            )
        fitted = clone(classifier).fit(features, y[train])
        del training, features
        predicted = fitted.predict(as_numbers(model.transform_many(pick(test)), "features"))
        accuracy.append(np.mean(predicted == y[test]))
    return np.array(accuracy)


def _rows(X: Any) -> tuple[int, Callable[[NDArray[np.intp]], Any]]:
    """Return the number of rows of X, and a function that selects some of them."""
    if hasattr(X, "tocsr"):
        expect_consistent_sparse(X)
        rows = X.tocsr()
        return rows.shape[0], lambda indices: rows[indices].tocsc()
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return len(X), lambda indices: X[indices]
    # Imported late: this module imports the compiled kernels, which arrays do not need.
    from streamsel.base.frame_columns import as_frame

    frame = as_frame(X)
    if frame is None:
        raise TypeError(
            "Expected X: an array of shape (n, p), a sparse matrix or a frame. Got: "
            f"{type(X).__name__}.\nHint: rows are selected from X; a stream has columns only."
        )
    return len(frame), lambda indices: frame[indices, :].to_native()
