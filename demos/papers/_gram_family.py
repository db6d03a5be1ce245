"""PCA and related extractors under one interface, for the scripts that compare them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from river.base import SupervisedTransformer

import streamsel

PRINCIPAL, RANKED, SUPERVISED = "PCA", "RankedPCA", "SupervisedPCA"
DISCRIMINANT, PLS, RIDGE = "Discriminant", "PLS", "RidgeComponents"
PRIVATE, RANDOM, SOSPCA = "PrivateFeatures", "RandomProjection", "SOSPCA"
KERNEL, EIGENMAPS = "KernelPCA", "LaplacianEigenmaps"
SPARSE, ROBUST, PROBABILISTIC = "SparsePCA", "RobustPCA", "ProbabilisticPCA"
# SupervisedPCA uses the most relevant quarter of the columns, but at most this number.
MOST_RELEVANT = 50
# Methods that have loadings of all columns.
EXACT = {PRINCIPAL, RANKED, DISCRIMINANT, PLS, RIDGE, PRIVATE, SPARSE, ROBUST, PROBABILISTIC}

Make = Callable[..., Any]


def learnt(name: str, A: np.ndarray, y: np.ndarray, q: int, **parameters: Any) -> Any:
    """Return a model with default parameters that has learnt the columns and the target.

    Methods in EXACT have the loadings of all columns; integer targets are classes.
    """
    if name in EXACT:
        parameters = {"max_loadings": max(A.shape[1], q + 1)} | parameters
    if name == SUPERVISED:
        few = min(MOST_RELEVANT, -(-A.shape[1] // 4))
        parameters = {"max_candidates": max(few, q + 1)} | parameters
    make: Make = getattr(streamsel, name)
    model = make(q, **parameters)
    if takes_target(model):
        model.learn_target(y.astype(str) if y.dtype.kind == "i" else y)
    model.learn_columns(A)
    return model


def takes_target(model: Any) -> bool:
    return bool(getattr(model, "supervised", isinstance(model, SupervisedTransformer)))


def components(model: Any, A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the components of training rows A and of new rows B."""
    return model.transform_many(A), model.transform_many(B)
