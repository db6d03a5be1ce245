"""The ablation of SOSPCA: its original rules are the package's, and B stays orthonormal."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from streamsel import SOSPCA

PAPERS = Path(__file__).parents[1] / "demos" / "papers"


@pytest.fixture
def variants(monkeypatch):
    monkeypatch.syspath_prepend(str(PAPERS))
    import sospca_variants

    yield sospca_variants
    for name in ("sospca_variants", "sospca_errors", "_experiment"):
        sys.modules.pop(name, None)


def words():
    """Return data with many ties: equal columns, and columns with equal counts."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    X = (rng.random((60, 40)) < 0.1 + 0.2 * y[:, None]).astype(float)
    return np.hstack([X, X[:, ::3], 1.0 - X[:, ::5]]), y


def noise():
    rng = np.random.default_rng(1)
    return rng.standard_normal((40, 300)), np.arange(40) % 3


DATA = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "words": words,
    "noise": noise,
}


@pytest.fixture(params=DATA)
def data(request):
    X, y = DATA[request.param]()
    return X[:, np.ptp(X, axis=0) > 0.0], y


@pytest.mark.parametrize("q", [1, 2, 5, 10])
def test_original_rules_are_those_of_the_package(variants, data, q):
    X, y = data
    model = SOSPCA(q, target_type="class")
    model.learn_target(y)
    model.learn_columns(X)
    B = model.to_matrix(range(X.shape[1])).toarray()
    ours = variants.loadings(X, y, q, variants.ORIGINAL)
    np.testing.assert_allclose(np.abs(ours), np.abs(B), atol=1e-7)


@pytest.mark.parametrize("q", [1, 2, 5])
def test_loadings_stay_orthonormal(variants, data, q):
    X, y = data
    for rules in variants.VARIANTS.values():
        B = variants.loadings(X, y, q, rules)
        np.testing.assert_allclose(B.T @ B, np.eye(B.shape[1]), atol=1e-9)


def test_one_component_of_all_columns_is_the_first_of_pls(variants, monkeypatch):
    """With two classes and the changed angle, the component of all columns is that of PLS."""
    X, y = load_breast_cancer(return_X_y=True)
    monkeypatch.setattr(variants, "noise_floor", lambda *_: 0.0)
    b = variants.loadings(X, y, 1, variants.VARIANTS["admission, angle"])[:, 0]
    direction = X.T @ (y - y.mean())
    assert abs(b @ direction) == pytest.approx(np.linalg.norm(direction))


def test_predicts_the_larger_class_if_nothing_is_significant(variants, monkeypatch):
    X, y = load_wine(return_X_y=True)
    monkeypatch.setattr(variants, "noise_floor", lambda *_: 1.0)
    B = variants.loadings(X, y, 2, variants.VARIANTS["admission"])
    assert B.shape == (X.shape[1], 0)
    share = 1.0 - np.bincount(y).max() / y.size
    assert variants.measures(X @ B, y, X @ B, y) == dict.fromkeys(variants.CLASSIFIERS, share)


def test_drops_the_component_that_adds_least(variants):
    """The dropped component adds least to the squared multiple correlation."""
    rng = np.random.default_rng(2)
    y = np.arange(50) % 3
    U = variants.target_space(y)
    Z = rng.standard_normal((50, 5)) @ rng.standard_normal((5, 5))
    Z -= Z.mean(0)
    state = variants.Components(50, 5, 2, 4)
    for j, z in enumerate(Z.T):
        state.join(j, z, U.T @ z)

    def explained(kept):
        return ((Z[:, kept] @ np.linalg.lstsq(Z[:, kept], U)[0]) ** 2).sum()

    k = max(range(5), key=lambda k: explained([i for i in range(5) if i != k]))
    correlations = np.abs(np.corrcoef(Z.T)[k])
    correlations[k] = 0.0
    assert variants.adds_least(state) == sorted([k, correlations.argmax()])
