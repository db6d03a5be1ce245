"""Convert scikit-learn's X to a stream of columns: arrays, sparse matrices, frames, AnnData."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from streamsel._utils.sparse import dense_column
from streamsel._utils.text import close_spellings
from streamsel.stream import ColumnStream, as_stream, iter_anndata
from streamsel.targets.encoding import only_column


def is_anndata(X: Any) -> bool:
    """Whether X is an AnnData; the package anndata need not be installed."""
    return hasattr(X, "obs_names") and hasattr(X, "var_names")


def fitted_stream(estimator: Any, X: Any, y: Any) -> ColumnStream:
    """Return the columns of the X of `fit`, and set the attributes that scikit-learn requires.

    The learner checks that values are finite while it reads them.
    """
    _refuse_stream(estimator, X)
    if is_anndata(X):
        stream = iter_anndata(X)
        estimator.n_features_in_ = stream.n_columns
        estimator.feature_names_in_ = np.array(matrix_names(stream), dtype=object)
        return stream
    values = validate_data(
        estimator,
        X,
        None if y is None else "no_validation",
        accept_sparse="csc",
        ensure_all_finite=False,
        ensure_min_samples=2,
    )
    # The columns of a pyarrow table are not names.
    names = getattr(X, "column_names", getattr(X, "columns", range(values.shape[1])))
    return as_stream(values, names if isinstance(names, range) else list(names))


def new_stream(
    estimator: Any, X: Any, names: Sequence[Hashable], *, allow_nan: bool
) -> tuple[ColumnStream, Any]:
    """Return the columns of new rows, named as those of `fit`, and the dtype of their values."""
    _refuse_stream(estimator, X)
    if is_anndata(X):
        stream = iter_anndata(X)
        new_names = matrix_names(stream)
        if [*names] != [*new_names]:
            raise ValueError(
                "Expected an AnnData with the variables of fit, in the same order. Got: "
                f"{len(new_names)} variables, {len({*new_names} - {*names})} of them unknown.\n"
                "Hint: adata[:, estimator.feature_names_in_]."
            )
        return stream, getattr(X.X, "dtype", None)
    values = validate_data(
        estimator,
        X,
        accept_sparse="csc",
        ensure_all_finite="allow-nan" if allow_nan else True,
        reset=False,
    )
    return as_stream(values, names), values.dtype


def _refuse_stream(estimator: Any, X: Any) -> None:
    """Raise TypeError for a stream of columns, which only learners accept."""
    if isinstance(X, ColumnStream):
        name = type(estimator).__name__
        raise TypeError(
            f"Expected an array, a sparse matrix, a frame or an AnnData. Got: {type(X).__name__}.\n"
            f"Hint: pass the data themselves; streamsel.{name}().learn_columns accepts a stream."
        )


def fit_target(stream: ColumnStream, X: Any, y: Any) -> Any:
    """Return the target: y, or the column of obs that it names, if X is an AnnData.

    A frame of one column is a single target, as in scikit-learn.
    """
    if not isinstance(y, str):
        return only_column(y)
    if not is_anndata(X):
        raise ValueError(
            f"Expected an array of targets. Got: the text {y!r}.\n"
            "Hint: the name of a column of obs requires an AnnData as X."
        )
    obs = stream.row_metadata or {}
    if y not in obs:
        close = close_spellings(y, obs) or list(obs)
        raise ValueError(
            f"Expected the name of a column of obs as y. Got: {y!r}.\nHint: {', '.join(close)}."
        )
    return obs[y]


def split_covariates(
    stream: ColumnStream, covariates: Sequence[Hashable]
) -> tuple[dict[Hashable, NDArray[Any]], ColumnStream]:
    """Return the covariates among the columns, name -> values, and a stream of the others."""
    absent = [name for name in covariates if name not in matrix_names(stream)]
    if absent:
        raise ValueError(
            f"Expected the covariates {list(covariates)} among the features of X. Got: X without "
            f"{absent[0]!r}.\nHint: features of an array are named from 0."
        )
    Z = {name: dense_column(x) for name, x in stream.take(covariates).items()}
    return Z, stream.without(covariates)


def names_of_covariates(Z: Any) -> tuple[Hashable, ...] | None:
    """Return the names of the covariates in a frame or dict; None for an array."""
    if isinstance(Z, Mapping):
        return tuple(Z)
    if hasattr(Z, "columns"):
        return tuple(Z.columns)
    name = getattr(Z, "name", None)
    return None if name is None else (name,)


def matrix_names(stream: ColumnStream) -> Sequence[Hashable]:
    """Return the names of the columns of a matrix."""
    assert stream.names is not None  # noqa: S101 (a matrix has names before it is read)
    return stream.names


def groups_of_features(groups: Any, names: Sequence[Hashable]) -> dict[Hashable, Hashable]:
    """Return the group of each feature by name, from the parameter `groups` of an estimator."""
    if isinstance(groups, Mapping):
        found = dict(groups)
    else:
        of_each = np.asarray(groups, dtype=object).tolist()
        if not isinstance(of_each, list) or len(of_each) != len(names):
            got = len(of_each) if isinstance(of_each, list) else repr(groups)
            raise ValueError(
                f"Expected groups: a group for each of {len(names)} features, or a mapping of "
                f"names to groups. Got: {got}."
            )
        found = dict(zip(names, of_each, strict=True))
    listed = [name for name, group in found.items() if isinstance(group, list | set)]
    if listed:
        raise ValueError(
            f"Expected one group for each feature. Got: a list for {listed[0]!r}.\n"
            "Hint: the learner takes groups with common members, by stream.grouped."
        )
    return found


def indices_of(names: Sequence[Hashable], requested: Collection[Hashable]) -> list[int]:
    """Return the indices of the columns with these names."""
    if isinstance(names, range):
        return [names.index(name) for name in requested]  # type: ignore[arg-type]
    index_of = {name: j for j, name in enumerate(names) if name in requested}
    return [index_of[name] for name in requested]
