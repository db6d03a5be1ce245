"""Relatedness, in every mode: a learner is itself on explicitly whitened columns, or refuses."""

import numpy as np
import pytest

from streamsel import Relatedness
from tests.conformance.modes import COLUMN_MODES, close, data, fresh, over, shown
from tests.reference.relatedness import whitened

N, P, RATIO = 40, 60, 0.8
# An online factorisation begins at random vectors of n numbers, and depends on their order.
BEGINS_ANYWHERE = {"SparsePCA"}


@over(COLUMN_MODES)
def test_learners_are_themselves_on_whitened_columns_or_refuse(mode):
    X, y = data(mode, n=N, p=P)
    A = np.random.default_rng(4).normal(size=(N, 8))
    K = A @ A.T / 8
    model, relatedness = fresh(mode, y), Relatedness(K, ratio=RATIO)
    if not model._takes_weights:
        with pytest.raises(ValueError, match="Expected no relatedness"):
            model.learn_target(y, relatedness=relatedness)
        assert not model.variance_components
        return
    model.learn_target(y, relatedness=relatedness)
    model.learn_columns(X)
    assert model.n_columns == P
    [components] = model.report().details["variance_components"]
    assert components["ratio"] == RATIO
    if mode.of_classes or mode.learner in BEGINS_ANYWHERE:
        # Whitened indicators are no classes.
        return
    expected = fresh(mode, y)
    if y is not None:
        expected.learn_target(whitened(y.reshape(N, -1), K, RATIO))
    elif expected._is_supervised:
        expected.learn_target(None)
    expected.learn_columns(whitened(X, K, RATIO))
    for name, value in shown(expected).items():
        close(getattr(model, name), value, 1e-7)
    if hasattr(model, "embedding"):
        back = model._target.row_transform.inverse_transform(expected.embedding)
        np.testing.assert_allclose(model.embedding, back, atol=1e-6)
