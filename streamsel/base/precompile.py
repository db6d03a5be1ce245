"""Train clones of a model on synthetic data, so that its code is compiled ahead of time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream
from streamsel.targets.glm import FAMILIES

# More variables than the threshold for batched row updates (`_kernels.aligned_moments`), and more
# rows than a batch.
_P, _N = 64, 96
_FEW = 8
# Parameters that delay an action by some rows, with their maximum in a rehearsal.
_MAX_DELAYS = {"warm_up": 10, "grace_period": 20, "window_size": 30, "batch_size": 16}
# Errors of a model whose parameters do not fit columns, rows or the synthetic data.
_REJECTIONS = (ValueError, TypeError)


def compile_by_rehearsal(model: Any) -> None:
    """Train clones of a model on columns and rows, and transform; the model is not changed."""
    sizes = {
        name: limit
        for name, limit in _MAX_DELAYS.items()
        if isinstance(value := model._get_params().get(name), int) and value > limit
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rehearsed in (_columns_then_rows, _rows, _groups):
            with suppress(*_REJECTIONS):
                rehearsed(lambda: model.clone(sizes))


def learn_rehearsal_columns(
    model: Any, columns: NDArray[Any] | ColumnStream, y: NDArray[Any] | None
) -> Any:
    """Train an unfitted model on columns, with any covariates that it names, and return it.

    Parameters
    ----------
    model
        The model to train.
    columns
        (n, p), or a stream of columns with a known number of rows.
    y
        (n,) or (n, 2) target; None without one.
    """
    names = model._get_params().get("covariates")
    n = (columns.n_rows or 0) if isinstance(columns, ColumnStream) else len(columns)
    given = np.random.default_rng(1).normal(size=(n, len(names))) if names else None
    model.learn_target(y, covariates=given)
    model.learn_columns(columns)
    return model


def _target(model: Any, n: int) -> NDArray[Any] | None:
    """Return a synthetic target of n observations that a model accepts."""
    if not model._is_supervised or model._phase.without_target:
        return None
    numbers, kind = np.random.default_rng(2).normal(size=n), getattr(model, "target_type", None)
    if kind == "survival":
        return np.column_stack([np.abs(numbers) + 1.0, np.arange(n) % 2])
    if kind in FAMILIES:
        return np.arange(n) % 2
    if model._refuses_target(1, is_class=kind == "class"):
        return np.arange(n) % 3
    return np.arange(n) % 2 if kind == "class" else numbers


def _data() -> NDArray[np.float64]:
    return np.asfortranarray(np.random.default_rng(0).normal(size=(_N, _P)))


def _columns_then_rows(clone: Callable[[], Any]) -> None:
    model, X = clone(), _data()
    if model._allows_missing:
        X[0, 0] = np.nan
    y = _target(model, _N)
    learn_rehearsal_columns(model, X[:, :-2], y)
    with suppress(*_REJECTIONS):  # multi-pass models reject single columns
        for j in (_P - 2, _P - 1):
            model.learn_column(j, X[:, j].copy())
    _use(model, X)
    # A few columns are scanned by a different loop.
    _use(learn_rehearsal_columns(clone(), X[:, :_FEW], y), X[:, :_FEW])
    _learn_rows(model, X, y)


def _rows(clone: Callable[[], Any]) -> None:
    model = clone()
    _learn_rows(model, _data(), _target(model, _N))


def _groups(clone: Callable[[], Any]) -> None:
    """Train a model that supports groups on dense groups, and on indicators of categories."""
    from scipy.sparse import csc_array

    model = clone()
    if not model._supports_groups():
        return
    X, y = _data(), _target(model, _N)
    groups = np.arange(_P) // _FEW
    rng = np.random.default_rng(4)
    codes = np.array([rng.permutation(_N) % _FEW for _ in range(_P // _FEW)])
    indicators = csc_array((np.arange(_P) % _FEW == codes[groups].T).astype(np.uint8))
    for values in (X, indicators):
        block = Block(list(range(_P)), values, groups.tolist())
        model = clone()
        learn_rehearsal_columns(model, ColumnStream(partial(iter, [block]), n_rows=_N), y)
        _use(model, X)


def _learn_rows(model: Any, X: NDArray[np.float64], y: NDArray[Any] | None) -> None:
    """Train a model on single rows, some with missing values or absent variables, and on frames."""
    names = [*range(X.shape[1]), *(model._get_params().get("covariates") or ())]
    rng = np.random.default_rng(3)
    given = rng.normal(size=(len(X), len(names) - X.shape[1]))
    targets = [()] * len(X) if y is None else [(value,) for value in y.tolist()]
    for i, (values, target) in enumerate(zip(np.hstack([X, given]).tolist(), targets, strict=True)):
        x = dict(zip(names, values, strict=True))
        if i % 8 == 5:
            x[3] = np.nan
        if i % 8 == 6:
            x = {name: x[name] for name in names[:4] + names[X.shape[1] :]}
        model.learn_one(x, *target)
        if i % 16 == 0:
            model.transform_one(x)
    for rows in (X, np.ascontiguousarray(X)):
        model.learn_many(rows, *([] if y is None else [y]))
        _use(model, rows)


def _use(model: Any, X: NDArray[np.float64]) -> None:
    model.report()
    model.transform_one(dict(enumerate(X[0].tolist())))
    with suppress(*_REJECTIONS):  # the model may not have learnt all columns of X
        model.transform_many(X)


def rehearsal_columns(n_rows: int, n_columns: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return synthetic columns of small whole numbers, of any dtype."""
    values = np.random.default_rng(0).integers(0, 100, size=(n_rows, n_columns))
    return np.asfortranarray(values.astype(dtype))
