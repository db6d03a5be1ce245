"""Errors for collections that are not in memory."""

from __future__ import annotations

from typing import Any


def is_dask(X: Any) -> bool:
    """Whether this is a Dask collection, without importing Dask."""
    return type(X).__module__.partition(".")[0].startswith("dask")


def not_in_memory_error(expected: str, X: Any) -> TypeError:
    """Return the error for a lazy frame, or for a Dask collection."""
    kind = type(X)
    hint = "call .collect() on it first"
    if is_dask(X):
        hint = "call .compute() on it first, or use streamsel.distributed.learn"
    return TypeError(
        f"Expected {expected} in memory. Got: a lazy {kind.__module__.partition('.')[0]}."
        f"{kind.__name__}.\nHint: {hint}."
    )
