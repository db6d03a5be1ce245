"""The rows in use: those with a target, if rows without one are excluded.

Columns still have a value for every row. Input validation (`columns.iter_chunks` and
`columns.single_column`) keeps the values of the rows in use; all later code sees only these rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamsel.serialization.schema import ArrayKind, CountKind, expect
from streamsel.targets.encoding import MissingValuesError, as_series, is_missing

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

MISSING_POLICIES = ("error", "drop")
NO_TARGET = "no target"


class KeptRows:
    """The rows in use, out of n.

    Parameters
    ----------
    n
        Number of rows, the length of a column.
    index
        (m,) the rows in use, ascending.
    left_out
        Reason -> number of rows excluded for it; together n - m.
    """

    def __init__(self, n: int, index: Rows, left_out: Mapping[str, int]) -> None:
        self.n, self.index, self.excluded = n, index, dict(left_out)

    def __repr__(self) -> str:
        # Parts of a stream are compared by their repr.
        rows = hashlib.sha256(self.index.astype("<i8").tobytes()).hexdigest()
        return f"{type(self).__name__}({self.n}, {rows})"

    @classmethod
    def excluding(cls, missing: NDArray[np.bool_]) -> Self:
        """Return the rows that are not flagged as missing, (n,).

        Raises
        ------
        ValueError
            If fewer than two rows are left.
        """
        index = np.flatnonzero(~missing)
        if index.size < 2:
            raise ValueError(
                f"Expected a target in at least 2 rows. Got: one in {index.size} of {missing.size}."
            )
        return cls(missing.size, index, {NO_TARGET: missing.size - index.size})

    def restrict(self, values: Any, what: str) -> Any:
        """Return the rows in use of a target, covariates or weights of all rows."""
        columns = values.values() if isinstance(values, Mapping) else (values,)
        for column in columns:
            n = column.shape[0] if hasattr(column, "shape") else len(column)
            if n != self.n:
                raise ValueError(f"Expected {what} of {self.n} rows, as the target has. Got: {n}.")
        return kept_indices(values, self.index)

    def dense(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return columns (b, n), one per row, restricted to the rows in use, (b, m)."""
        return X.take(self.index, axis=1)

    def sparse(
        self, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the parts of a CSC matrix restricted to the rows in use."""
        new_index = np.full(self.n, -1, dtype=indices.dtype)
        new_index[self.index] = np.arange(self.index.size)
        stored = slice(indptr[0], indptr[-1])
        rows = new_index[indices[stored]]
        is_kept = rows >= 0
        ends = np.concatenate([[0], np.cumsum(is_kept)])[indptr - indptr[0]]
        return data[stored][is_kept], rows[is_kept], ends.astype(indptr.dtype)

    def block(self, values: Any) -> Any:
        """Return columns (n, b), an array or a CSC matrix, restricted to the rows in use."""
        if not hasattr(values, "toarray"):
            return self.dense(values.T).T
        from scipy.sparse import csc_array

        matrix = values.tocsc()
        parts = self.sparse(matrix.data, matrix.indices, matrix.indptr)
        return csc_array(parts, shape=(self.index.size, matrix.shape[1]))

    def expand(self, values: Floats) -> Floats:
        """Return values of the rows in use, (m, k), in all rows, (n, k); NaN in the others."""
        found: Floats = np.full((self.n, *values.shape[1:]), np.nan)
        found[self.index] = values
        return found

    def column(self, values: Any) -> Any:
        """Return a column (n,), or a sparse one (n, 1), restricted to the rows in use."""
        return values[self.index] if values.ndim == 1 else self.block(values)

    def select(self, values: Any) -> Any:
        """Return columns, (n,) or (n, b), restricted to the rows in use unless they already are."""
        return self.column(values) if values.shape[0] == self.n else values

    def renumbered(self, text: str) -> str:
        """Return a text about a row in use with the row's number among all."""
        return rename_row(text, lambda row: str(self.index[row]))

    @contextmanager
    def renumber_errors(self) -> Iterator[None]:
        """Renumber the row in errors raised within this context, as `renumbered` does."""
        try:
            yield
        except (ValueError, TypeError) as error:
            if type(error) not in (ValueError, TypeError, MissingValuesError):
                raise
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(self.renumbered(str(error))) from error

    def to_state(self) -> dict[str, Any]:
        """Return the state as arrays and JSON-compatible values, without m."""
        return {"n": self.n, "index": self.index.astype(np.int64), "excluded": self.excluded}

    @classmethod
    def restored(cls, state: dict[str, Any], m: int) -> Self:
        """Return the m rows that `to_state` saved."""
        expect(state, n=CountKind(m + 1))
        n, left_out = state["n"], state.get("excluded")
        expect(state, index=ArrayKind((m,), np.int64, minimum=0, below=n))
        if not (np.diff(state["index"]) > 0).all():
            raise ValueError("Expected ascending row indices. Got: others.")
        if (
            type(left_out) is not dict
            or not all(type(reason) is str for reason in left_out)
            or not all(map(CountKind(1).admits, left_out.values()))
            or sum(left_out.values()) != n - m
        ):
            raise ValueError(f"Expected reasons for {n - m} excluded rows. Got: {left_out!r:.60}.")
        return cls(n, state["index"].astype(np.intp), left_out)


def rename_row(text: str, called: Callable[[int], str]) -> str:
    """Return a text with its last "in row 3" replaced by the name of that row."""
    before, mark, rest = text.rpartition("in row ")
    found = re.match(r"\d+", rest)
    if not mark or found is None:
        return text
    return f"{before}{mark}{called(int(found[0]))}{rest[found.end() :]}"


def same_kept_rows(mine: KeptRows | None, theirs: KeptRows | None) -> bool:
    """Whether both use the same rows."""
    if mine is None or theirs is None:
        return mine is theirs
    return mine.n == theirs.n and bool(np.array_equal(mine.index, theirs.index))


def kept_rows(y: Any, weights: Any, missing: str) -> KeptRows | None:
    """Return the rows in use; None for all.

    Parameters
    ----------
    y
        The target of all rows, as for `Target`.
    weights
        Weights of all rows; a row without a target and with weight 0 is always excluded.
    missing
        "drop" excludes all rows without a target.
    """
    if y is None or (missing == "error" and weights is None):
        return None
    lacks = is_target_missing(y)
    if missing == "error":
        w = np.asarray(weights)
        lacks = np.logical_and(lacks, w == 0.0) if w.shape == lacks.shape else np.zeros_like(lacks)
    return KeptRows.excluding(lacks) if lacks.any() else None


def is_target_missing(y: Any) -> NDArray[np.bool_]:
    """Return in which rows a target, or part of it, is missing: NaN, None, or NA of pandas."""
    if isinstance(y, np.ma.MaskedArray):
        own = np.ma.getmaskarray(y)
        return _in_rows(own) | is_target_missing(np.ma.getdata(y))
    if isinstance(y, np.ndarray):
        return _lacks_value(y)
    import narwhals.stable.v2 as nw

    native = nw.from_native(as_series(y), allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        columns = [is_target_missing(native[:, j].to_native()) for j in range(native.shape[1])]
        return _any_of(columns, len(native))
    if isinstance(native, nw.Series):
        lacks = [native.is_null()]
        if native.dtype.is_float():
            lacks.append(native.is_nan().fill_null(value=False))
        return _any_of([each.to_numpy().astype(np.bool_) for each in lacks], len(native))
    if hasattr(y, "toarray"):
        return _lacks_value(y.toarray())
    try:
        return _lacks_value(np.array(y, dtype=object))
    except (TypeError, ValueError):  # `encode` reports it
        return np.zeros(len(y) if hasattr(y, "__len__") else 0, dtype=np.bool_)


def _lacks_value(y: NDArray[Any]) -> NDArray[np.bool_]:
    if y.dtype.names is not None:
        return _any_of([_lacks_value(y[name]) for name in y.dtype.names], len(y))
    if y.dtype.kind == "f":
        return _in_rows(np.isnan(y))
    if y.dtype.kind != "O":
        return np.zeros(y.shape[:1], dtype=np.bool_)
    found = np.fromiter(map(is_missing, y.flat), np.bool_, y.size)
    return _in_rows(found.reshape(y.shape))


def _any_of(columns: Sequence[NDArray[np.bool_]], n: int) -> NDArray[np.bool_]:
    found = np.zeros(n, dtype=np.bool_)
    for column in columns:
        np.logical_or(found, column, out=found)
    return found


def _in_rows(lacks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return in which rows, (n,), any value of (n, ...) is flagged."""
    return np.asarray(lacks.any(axis=tuple(range(1, lacks.ndim))), dtype=np.bool_)


def kept_indices(values: Any, rows: Rows) -> Any:
    """Return some rows of a target or covariates: arrays, sequences, frames, or a dict of them."""
    if isinstance(values, Mapping):
        return {name: kept_indices(column, rows) for name, column in values.items()}
    if isinstance(values, np.ndarray):
        return values[rows]
    if isinstance(values, list | tuple):
        return [values[i] for i in rows.tolist()]
    if hasattr(values, "tocsr"):
        return values.tocsr()[rows]
    import narwhals.stable.v2 as nw

    native = nw.from_native(as_series(values), allow_series=True, pass_through=True)
    if isinstance(native, nw.Series | nw.DataFrame):
        return native[rows].to_native()
    return np.asarray(values)[rows]
