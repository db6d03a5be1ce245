import numpy as np
import pytest

from streamsel import ProjSe


@pytest.fixture(scope="package")
def columns():
    """Return columns and a target that depends on three of them."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(60, 300)))
    return X, 2.0 * X[:, 20] - X[:, 150] + X[:, 280] + rng.normal(size=60)


@pytest.fixture(scope="package")
def report(columns):
    """Return the report of a selector."""
    X, y = columns
    model = ProjSe(k=4)
    model.learn_target(y)
    model.learn_columns(X)
    return model.report()
