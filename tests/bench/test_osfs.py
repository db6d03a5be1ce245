"""Compare decisions on arrival with a matrix product that tests each column once."""

import numpy as np
import pytest

from streamsel import OSFS, SAOLA
from tests.bench.test_columns import fortran, learner

N = 500


@pytest.fixture
def data(size):
    """Return noise, and a target made of ten of its columns; 1 % of the noise passes one test."""
    rng = np.random.default_rng(0)
    X = fortran(rng, N, size(50_000))
    return X, X[:, :1000:100].sum(axis=1) + rng.standard_normal(N)


@pytest.mark.parametrize("cls", [OSFS, SAOLA])
def test_noise_and_some_signal(against, data, cls):
    X, y = data
    what = f"{cls.__name__}, n=500 p=50,000 / y @ X"
    against(what, learner(cls, y, X), lambda: y @ X, data=X.nbytes)


def test_many_classes(against, dataset):
    """Select from outlines of 50 kinds of shapes; neighbouring columns are dependent."""
    X, y, _, _ = dataset("shapesall")
    rows = np.concatenate([np.flatnonzero(y == c)[:9] for c in range(50)])
    X, y = np.asfortranarray(X[rows, ::2], dtype=float), y[rows]
    indicators = (np.arange(50)[:, None] == y).astype(float)
    what = f"OSFS, n=450 p={X.shape[1]}, 50 classes / U.T @ X"
    against(what, learner(OSFS, y, X, target_type="class"), lambda: indicators @ X)


def test_elders_first(against, data):
    X, y = data
    what = "OSFS fast=False, n=500 p=50,000 / y @ X"
    against(what, learner(OSFS, y, X, fast=False), lambda: y @ X, data=X.nbytes)
