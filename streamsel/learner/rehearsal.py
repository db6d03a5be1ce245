"""Made-up data for clones of a model, so that the loops are compiled which it will need."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# More variables than a row needs to be added with others at once (`_jit.period`), and more rows
# than wait for that.
_P, _N = 64, 96
_FEW = 8
# What says after how many rows something happens: in a rehearsal after no more than these.
_WAITS = {"warm_up": 10, "grace_period": 20, "window_size": 30, "batch_size": 16}
# What a model raises where its parameters do not go with columns, rows or the data made up here.
_REFUSED = (ValueError, TypeError)


def rehearse(model: Any) -> None:
    """Let clones of a model learn columns, and rows, and transform; it is left as it is."""
    sizes = {
        name: most
        for name, most in _WAITS.items()
        if isinstance(now := model._get_params().get(name), int) and now > most
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rehearsed in (_columns_then_rows, _rows):
            with suppress(*_REFUSED):
                rehearsed(lambda: model.clone(sizes))


def learnt_columns(model: Any, columns: NDArray[Any], y: NDArray[Any] | None) -> Any:
    """Let a model that has learnt nothing learn columns, given what covariates it names; return it.

    Parameters
    ----------
    model
        It learns.
    columns
        (n, p).
    y
        (n,) or (n, 2) target; None without one.
    """
    names = model._get_params().get("covariates")
    given = np.random.default_rng(1).normal(size=(len(columns), len(names))) if names else None
    model.learn_target(y, covariates=given)
    model.learn_columns(columns)
    return model


def _target(model: Any, n: int) -> NDArray[Any] | None:
    """Return a target that a model takes, of n observations."""
    if not model.supervised or model._without_target:
        return None
    numbers, kind = np.random.default_rng(2).normal(size=n), getattr(model, "target", None)
    if kind == "survival":
        return np.column_stack([np.abs(numbers) + 1.0, np.arange(n) % 2])
    if model._refuses_target(1, is_class=kind == "class"):
        return np.arange(n) % 3
    return np.arange(n) % 2 if kind == "class" else numbers


def _data() -> NDArray[np.float64]:
    return np.asfortranarray(np.random.default_rng(0).normal(size=(_N, _P)))


def _columns_then_rows(clone: Callable[[], Any]) -> None:
    model, X = clone(), _data()
    y = _target(model, _N)
    learnt_columns(model, X[:, :-2], y)
    with suppress(*_REFUSED):  # what learns a source as a whole takes no column alone
        for j in (_P - 2, _P - 1):
            model.learn_column(j, X[:, j].copy())
    _use(model, X)
    _learn_rows(model, X, y)
    # Of few columns some are scanned by another loop.
    _use(learnt_columns(clone(), X[:, :_FEW], y), X[:, :_FEW])


def _rows(clone: Callable[[], Any]) -> None:
    model = clone()
    _learn_rows(model, _data(), _target(model, _N))


def _learn_rows(model: Any, X: NDArray[np.float64], y: NDArray[Any] | None) -> None:
    """Let a model learn rows alone, of which some lack values, and others are new; and a frame."""
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
    with suppress(*_REFUSED):  # not all of X may be what it has learnt
        model.transform_many(X)


def columns_of(n_rows: int, n_columns: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return made-up columns, of small whole numbers of any type."""
    values = np.random.default_rng(0).integers(0, 100, size=(n_rows, n_columns))
    return np.asfortranarray(values.astype(dtype))
