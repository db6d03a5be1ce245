"""Shared helpers for tests of ridge components: data, models, and comparisons."""

import numpy as np

from streamsel import RidgeComponents


def data(n=40, p=60, kind="number", seed=0):
    """Return columns that share factors, and a target that some of them predict."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, p)) + 1.5 * rng.normal(size=(n, p)) + 3.0
    if kind == "number":
        return X, X[:, 0] - X[:, p // 2] + rng.normal(size=n)
    Y = X[:, :3] + X[:, p // 2 : p // 2 + 3] + rng.normal(size=(n, 3))
    if kind == "numbers":
        return X, Y
    return X, np.array(["ant", "bee", "cat", "dog"])[Y[:, 0].argsort().argsort() * 4 // n]


def learnt(X, y, names=None, covariates=None, **parameters):
    """Return a model that has learnt columns."""
    model = RidgeComponents(**parameters)
    model.learn_target(y, covariates=covariates)
    model.learn_columns(X, names)
    return model


def mu_of(model):
    """Return the weights of a model's representatives: name -> μ."""
    state = model._state
    return dict(zip(state.names, model._representative_weights().tolist(), strict=True))


def matrix(loadings, names, components):
    """Return loadings as a matrix, (p, q)."""
    B = np.zeros((len(names), len(components)))
    row = {name: i for i, name in enumerate(names)}
    for name, parts in loadings.items():
        for component, weight in parts.items():
            B[row[name], list(components).index(component)] = weight
    return B


def agree(model, answer, names, tolerance=1e-9):
    """Compare all attributes of a model with the expected ones, components up to their signs."""
    np.testing.assert_allclose(model.fitted_alpha, answer["alpha"], rtol=1e-9)
    components = list(answer["relevance"])
    assert list(model.relevance) == components
    np.testing.assert_allclose(
        [*model.relevance.values()], [*answer["relevance"].values()], rtol=0, atol=tolerance
    )
    assert set(model.loadings) == set(answer["loadings"])
    B, expected = (
        matrix(part["loadings"], names, components)
        for part in ({"loadings": model.loadings}, answer)
    )
    signs = signs_of(B, expected)
    near(B * signs, expected, tolerance)
    if "embedding" in answer:
        near(model.embedding * signs, answer["embedding"], tolerance)


def near(found, expected, tolerance=1e-9):
    """Compare matrices; the error of each column is relative to its largest entry."""
    assert found.shape == expected.shape
    size = np.abs(expected).max(axis=0, initial=0.0)
    size = np.where(size > 0.0, size, 1.0)
    np.testing.assert_allclose(found / size, expected / size, rtol=0, atol=tolerance)


def same_up_to_sign(found, expected, tolerance=1e-9):
    """Compare matrices, with columns up to their signs."""
    near(found * signs_of(found, expected), expected, tolerance)


def signs_of(found, expected):
    """Return the signs that align the columns of a matrix with those of another."""
    size = np.abs(expected).max(axis=0, initial=0.0)
    along = (found / np.where(size > 0.0, size, 1.0) * expected).sum(axis=0)
    return np.where(along < 0.0, -1.0, 1.0)


def same_space(found, expected, tolerance=1e-9):
    """Compare the spans of the columns of two matrices."""
    one, other = (np.linalg.qr(Z - Z.mean(axis=0))[0] for Z in (found, expected))
    assert one.shape == other.shape
    cosines = np.linalg.svd(one.T @ other, compute_uv=False)
    np.testing.assert_allclose(cosines, 1.0, rtol=0, atol=tolerance)
