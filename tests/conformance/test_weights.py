"""Weights of observations, in every mode: integer weights are equivalent to repeated rows."""

import numpy as np
import pytest

from streamsel.targets.weights import ObservationWeights
from tests.conformance.modes import COLUMN_MODES, close, data, fresh, learnt, over, shown

N = 30
# Number of repetitions of each row; some have none.
W = np.random.default_rng(3).integers(0, 4, size=N).astype(float)
ROWS = np.repeat(np.arange(N), W.astype(int))
# An online factorisation starts from random vectors of n numbers.
BEGINS_ANYWHERE = {"SparsePCA"}
# Results that depend on the number of rows, not only on their weights.
COUNTS = {"n_rows", "scores", "loadings", "landmarks"}


def weighted(mode, X, y):
    """Return a model of weighted columns whose tests count the sum of the weights as rows."""
    model = fresh(mode, y)
    model.learn_target(y, weights=W)
    model._target.row_transform.effective_rows = W.sum()
    if model._space is not None:
        model._space.effective_rows = W.sum()
    model.learn_columns(X)
    return model


def shapes(Z):
    """Return components, (n, q), each of mean square 1."""
    return Z / np.sqrt(np.square(Z).mean(axis=0))


@over(COLUMN_MODES)
def test_integer_weights_are_equivalent_to_repeated_rows(mode):
    X, y = data(mode, n=N, p=60)
    if not fresh(mode, y)._takes_weights:
        with pytest.raises(ValueError, match="Expected no weights"):
            fresh(mode, y).learn_target(y, weights=W)
        return
    model = weighted(mode, X, y)
    if mode.learner in BEGINS_ANYWHERE:
        weighting = ObservationWeights.of(W, N)
        expected = learnt(mode, weighting.transform(X.T)[0].T, y)
        np.testing.assert_allclose(
            model.embedding, weighting.inverse_transform(expected.embedding), atol=1e-9
        )
        return
    expected = learnt(mode, X[ROWS], None if y is None else y[ROWS])
    found = shown(expected)
    for name in found.keys() - COUNTS:
        close(getattr(model, name), found[name], 1e-9)
    if hasattr(model, "embedding") and found["components"]:
        Z = model.embedding
        assert np.isnan(Z[W == 0.0]).all()
        np.testing.assert_allclose(shapes(Z[ROWS]), shapes(expected.embedding), atol=1e-9)
        if "max_loadings" in mode.params:
            # The approximation of discarded columns depends on the number of rows.
            return
        Z, expected_Z = model.transform_many(X), expected.transform_many(X)
        np.testing.assert_allclose(shapes(Z), shapes(expected_Z), atol=1e-9)
