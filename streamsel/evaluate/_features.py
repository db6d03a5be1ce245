"""Features of training and test rows: selected columns, read once, or components."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from streamsel.evaluate._matrices import Floats, as_numbers
from streamsel.evaluate._subsets import Rows, rows_of
from streamsel.stream import ColumnStream


class Features:
    """Selected columns as features.

    Parameters
    ----------
    stream
        All columns.
    names
        The columns to read, once.
    """

    def __init__(self, stream: ColumnStream, names: list[Hashable]) -> None:
        self._stream = stream
        self._columns = stream.take(names) if names else {}

    def columns(self, names: list[Hashable]) -> Floats:
        """Return columns that were read, as a matrix."""
        if not names:
            return np.empty((self._stream.n_rows or 0, 0))
        return np.column_stack([_dense(self._columns[name]) for name in names])


def names_of(model: Any) -> list[Hashable]:
    """Return the names of the variables or components of a model."""
    return list(model.selected if hasattr(model, "selected") else model.components)


def built(model: Any, stream: ColumnStream, train: Rows, test: Rows) -> tuple[Floats, Floats]:
    """Return the components of the training rows and of the test rows."""
    train_stream = rows_of(stream, train)
    if model._reads_again:
        model.learn_loadings(train_stream)
    test_stream = rows_of(stream, test)
    return _numbers(model.transform_many(train_stream)), _numbers(model.transform_many(test_stream))


def _numbers(values: Any) -> Floats:
    return as_numbers(values, "features")


def _dense(values: Any) -> Floats:
    dense = values.toarray().ravel() if hasattr(values, "toarray") else values
    return np.asarray(dense, dtype=np.float64)
