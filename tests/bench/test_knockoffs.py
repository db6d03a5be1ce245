"""Knockoffs: the cost of generating them, and of the filter, over that of the exact Lasso alone.

The limit of the generator is one least-squares fit per column by LAPACK, on the same neighbours.
"""

import numpy as np
import pytest

from streamsel import Lasso
from streamsel.evaluate import knockoff_filter
from streamsel.stream import with_knockoffs

WINDOW = 5


@pytest.fixture
def neighbourly(size):
    n, p = 1_000, size(4_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p + 1))
    X = np.asfortranarray(X[:, 1:] + 0.7 * X[:, :-1])
    return X, X[:, :: p // 20].sum(axis=1) + rng.normal(size=n)


def test_generated_knockoffs_against_least_squares(neighbourly, against):
    X, _ = neighbourly

    def generate():
        for _ in with_knockoffs(X, WINDOW).blocks():
            pass

    def least_squares():
        for j in range(0, X.shape[1], 20):
            Z = X[:, max(0, j - 4 * WINDOW) : j + WINDOW + 1]
            np.linalg.lstsq(Z, X[:, j], rcond=None)

    against("knockoffs / LAPACK, a twentieth of the columns", generate, least_squares, rounds=3)


def test_filter_against_the_lasso_of_the_columns(neighbourly, against):
    X, y = neighbourly

    def lasso():
        model = Lasso(k=len(X) // 4, exact=True)
        model.learn_target(y)
        model.learn_columns(X)
        return model.coefficients

    against(
        "knockoff filter / exact Lasso of the columns alone",
        lambda: knockoff_filter(X, y, window=WINDOW),
        lasso,
        rounds=3,
    )
