"""Probabilistic PCA by definition: factorization with Gaussian codes (Tipping, Bishop 1999)."""

from tests.reference.factorisation import Factorisation, shown


def answer(X, y, n_components=10, max_loadings=500, batch_size=256, seed=0, **_):
    assert y is None
    fit = Factorisation(len(X), n_components, batch_size, seed)
    return shown("probabilisticpca", fit, X, n_components, max_loadings)
