"""Time the generation of knockoffs, and the knockoff filter.

The limit of the generation is one least-squares fit by LAPACK per twenty columns, on the same
neighbours; that of the filter is the exact Lasso of the columns alone.
"""

import numpy as np
import pytest

from streamsel import Lasso
from streamsel.evaluate import knockoff_filter
from streamsel.stream import with_knockoffs

WINDOW = 5


@pytest.fixture
def correlated(size):
    n, p = 1_000, size(4_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p + 1))
    X = np.asfortranarray(X[:, 1:] + 0.7 * X[:, :-1])
    return X, X[:, :: p // 20].sum(axis=1) + rng.normal(size=n)


def test_generated_knockoffs_against_least_squares(correlated, against):
    X, _ = correlated

    def generate():
        for _ in with_knockoffs(X, WINDOW).blocks():
            pass

    def least_squares():
        for j in range(0, X.shape[1], 20):
            Z = X[:, max(0, j - 4 * WINDOW) : j + WINDOW + 1]
            np.linalg.lstsq(Z, X[:, j], rcond=None)

    what = "knockoffs / least squares by LAPACK for a twentieth of the columns"
    against(what, generate, least_squares, rounds=3)


def test_filter_against_the_lasso_of_the_columns(correlated, against):
    X, y = correlated

    def lasso():
        model = Lasso(k=len(X) // 4, exact=True)
        model.learn_target(y)
        model.learn_columns(X)
        return model.coefficients

    against(
        "knockoff filter / exact Lasso without knockoffs",
        lambda: knockoff_filter(X, y, window=WINDOW),
        lasso,
        rounds=3,
    )
