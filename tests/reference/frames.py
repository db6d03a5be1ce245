"""The same columns as frames of every library that is tested, and as rows."""

import importlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

BACKENDS = ["pandas", "pandas-nullable", "polars", "pyarrow", "array"]


def frame(backend, columns):
    """Return columns of equal length as a frame, with None or NaN for missing values."""
    if backend == "array":
        return np.array([*columns.values()], dtype=float).T
    if backend == "pandas":
        return pd.DataFrame(columns)
    if backend == "pandas-nullable":
        return pd.DataFrame({name: pd.array(values) for name, values in columns.items()})
    if backend == "polars":
        return pl.DataFrame(columns, strict=False)
    return pa.table(columns)


def series(backend, values):
    if backend == "array":
        return np.array(values)
    if backend == "list":
        return list(values)
    if backend == "pandas-nullable":
        return pd.Series(pd.array(values))
    if backend == "pyarrow":
        return pa.chunked_array([values[:1], values[1:]])
    return importlib.import_module(backend).Series(values)


def dicts(columns):
    """Return the rows of columns as dicts."""
    n = len(next(iter(columns.values())))
    return [{name: values[i] for name, values in columns.items()} for i in range(n)]
