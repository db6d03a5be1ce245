"""Relatedness, in every mode: results equal those of explicitly whitened columns."""

import numpy as np
import pytest

from streamsel import Relatedness
from tests.conformance.modes import (
    COLUMN_MODES,
    IN_PIECES,
    close,
    data,
    fresh,
    over,
    sampled,
    shown,
)
from tests.copies import saved
from tests.reference.relatedness import whitened

N, P, RATIO = 40, 60, 0.8
# An online factorisation starts from random vectors of n numbers, and depends on their order.
BEGINS_ANYWHERE = {"SparsePCA"}


@over(COLUMN_MODES)
def test_relatedness_is_equivalent_to_whitened_columns(mode):
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
        # Whitened indicators are not classes.
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


def related(mode):
    return fresh(mode, data(mode)[1])._takes_weights


RELATED = {label: mode for label, mode in IN_PIECES.items() if related(mode)}
COMPLETE = {label: mode for label, mode in RELATED.items() if not mode.cls._takes_missing}


@sampled(RELATED)
def test_files_and_splits_are_bit_identical(mode, tmp_path):
    X, y = data(mode, n=N, p=P)
    whole = fresh(mode, y)
    relatedness = Relatedness(np.cov(X), ratio=RATIO)
    whole.learn_target(y, relatedness=relatedness)
    whole.learn_columns(X)
    model = fresh(mode, y)
    model.learn_target(y, relatedness=relatedness)
    for start in range(0, P, 7):
        model.learn_columns(X[:, start : start + 7], range(P)[start : start + 7])
        if start == 21:
            model = saved(model, tmp_path)
    assert shown(model) == shown(whole)
    assert model.variance_components == whole.variance_components


@sampled(COMPLETE)
def test_bad_block_does_not_change_the_model(mode):
    X, y = data(mode, n=N, p=P)
    model = fresh(mode, y)
    model.learn_target(y, relatedness=Relatedness(np.cov(X), ratio=RATIO))
    model.learn_columns(X[:, :40])
    before = shown(model)
    bad = X[:, 40:].copy()
    bad[3, 11] = np.nan
    with pytest.raises(ValueError, match="column 51"):
        model.learn_columns(bad, range(40, P))
    assert shown(model) == before
