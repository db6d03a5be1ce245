"""Rows: the only door by which frames and dicts of features come in."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.stream import ColumnStream

Floats = NDArray[np.float64]


def as_frame(X: Any) -> Any:
    """Return X as a narwhals DataFrame, or None if it is no frame that narwhals knows."""
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            "Expected a frame in memory. Got: a lazy frame.\nHint: call .collect() on it first."
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def positions(frame: Any, names: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Return which of the names a frame has, and where: by position, for pandas has any labels."""
    place = {name: j for j, name in enumerate(frame.columns)}
    found = [i for i, name in enumerate(names) if name in place]
    return found, [place[names[i]] for i in found]


def _numbers(frame: Any, places: list[int]) -> Floats:
    from river.utils.dataframe import to_numpy

    try:
        return to_numpy(frame[:, places])
    except (TypeError, ValueError):
        for j in places:
            try:
                to_numpy(frame[:, [j]])
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"Expected real numbers in column {frame.columns[j]!r}. Got: "
                    f"{frame[:, j].dtype}.\nHint: the model learnt it as numbers."
                ) from error
        raise


def gather(X: Any, names: Sequence[Hashable]) -> Floats:
    """Return the columns of these names, in this order, as a float64 array (n, len(names)).

    Parameters
    ----------
    X
        An (n, p) array or sparse matrix, whose columns are named 0 to p - 1, a frame, or a
        ColumnStream.
    names
        The columns wanted. In a frame one that is not there counts as 0, as in a row.

    Raises
    ------
    ValueError
        Where an array, a matrix or a stream lacks one of them.
    """
    frame = as_frame(X)
    if frame is not None:
        values = np.zeros((len(frame), len(names)))
        found, places = positions(frame, names)
        if places:
            values[:, found] = _numbers(frame, places)
        return values
    if isinstance(X, ColumnStream):
        try:
            taken = X.take(names)
        except KeyError as error:
            raise ValueError(
                f"Expected all {len(names)} variables of the model in the stream. {error.args[0]}"
            ) from error
        parts = [taken[name] for name in names]
    elif hasattr(X, "toarray") or isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise ValueError(f"Expected an array of shape (n, p). Got: shape {X.shape}.")
        absent = [
            name
            for name in names
            if not (isinstance(name, int | np.integer) and 0 <= name < X.shape[1])
        ]
        if absent:
            raise ValueError(
                f"Expected the variable {absent[0]!r} of the model. Got: an array, whose "
                f"{X.shape[1]} columns are numbered from 0.\n"
                "Hint: pass a frame, where columns have names."
            )
        if hasattr(X, "toarray"):
            return np.asarray(X.tocsc()[:, list(names)].toarray(), dtype=np.float64)
        return np.asarray(X[:, list(names)], dtype=np.float64)
    else:
        raise TypeError(
            "Expected a frame, an array, a sparse matrix or a ColumnStream. Got: "
            f"{type(X).__name__}.\nHint: transform_one takes a dict of features."
        )
    dense = [np.ravel(p.toarray()) if hasattr(p, "toarray") else np.asarray(p) for p in parts]
    n = X.n_rows if not dense else dense[0].size
    return np.column_stack(dense).astype(np.float64) if dense else np.zeros((n or 0, 0))
