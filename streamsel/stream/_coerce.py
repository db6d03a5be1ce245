"""Conversion of any input that learners accept to a stream of columns."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from streamsel._utils.in_memory import is_dask, not_in_memory_error
from streamsel._utils.sparse import is_sparse
from streamsel.stream._memory import iter_columns, iter_sparse
from streamsel.stream._npy import iter_array
from streamsel.stream._stream import ColumnStream


def as_stream(X: Any, names: Sequence[Hashable] | None = None) -> ColumnStream:
    """Convert any input that learners accept to a stream of columns.

    Parameters
    ----------
    X
        A `ColumnStream` (returned as it is), two-dimensional array, scipy.sparse matrix, eager
        frame that narwhals supports (pandas, polars, pyarrow), AnnData, iterable of (name, values),
        or the path or URL of a file of any format that `iter_files` reads.
    names
        Column names of an array or a sparse matrix; other inputs have their own.

    Raises
    ------
    TypeError
        If X is none of these, or has its own names and `names` is passed.
    ValueError
        If an array is not two-dimensional or the names do not fit it; if it is ambiguous whether
        the lines of a text file are samples or variables.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    iter_array, iter_sparse, iter_frame, iter_columns, iter_anndata, iter_files : the readers that
        it dispatches to; those of files have options.

    Examples
    --------
    >>> import numpy as np
    >>> as_stream(np.zeros((5, 3)))
    ColumnStream(n_rows=5, n_columns=3, reiterable=True)
    """
    if isinstance(X, np.ma.MaskedArray):  # masked entries are missing values
        X = np.ma.filled(X.astype(np.float64), np.nan)
    if isinstance(X, np.ndarray):
        return iter_array(X, names)
    if is_sparse(X):
        return iter_sparse(X, names)
    if names is not None:
        raise TypeError(
            f"Expected names only with an array or a sparse matrix. Got: {type(X).__name__}, whose "
            "columns have names."
        )
    if isinstance(X, ColumnStream):
        return X
    if isinstance(X, (str, os.PathLike)):
        from streamsel.stream._formats import open_by_name

        return open_by_name(X)
    if is_dask(X):
        raise not_in_memory_error("columns", X)
    if _is_anndata(X):
        from streamsel.stream._anndata import iter_anndata

        return iter_anndata(X)
    if isinstance(X, Mapping):
        raise TypeError(
            f"Expected an iterable of (name, values). Got: {type(X).__name__}.\n"
            "Hint: pass X.items()."
        )
    from streamsel.stream._memory import is_frame, iter_frame

    if is_frame(X):
        return iter_frame(X)
    if isinstance(X, Iterable):
        return iter_columns(X)
    raise TypeError(
        "Expected a ColumnStream, a two-dimensional array, a scipy.sparse matrix, a frame, an "
        f"AnnData, a path or an iterable of (name, values). Got: {type(X).__name__}."
    )


def _is_anndata(X: Any) -> bool:
    """Return whether X is an AnnData, without importing anndata."""
    return type(X).__module__.split(".")[0] == "anndata" and hasattr(X, "var_names")
