"""Exact selectors on random streams that are made to be hard."""

import numpy as np
import pytest

from streamsel import ForwardSelection
from tests.exactness import SINGLE_PASS, learners, wrong, wrong_tiny
from tests.seed import some


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", learners())
def test_streams(name, part):
    """Run some of 160 streams, others for every seed; `python -m tests.exactness` runs more."""
    for seed in some(range(part, 160, 4), 20, f"{name} {part}"):
        assert wrong(name, seed) is None, seed


@pytest.mark.filterwarnings("ignore:The path ends early")
@pytest.mark.parametrize("name", [*learners(), *SINGLE_PASS])
def test_tiny_streams(name):
    for seed in some(range(20 if name == "Lasso" else 50), 20, name):
        assert wrong_tiny(name, seed) is None, seed


def test_ties_in_the_last_direction_select_the_first_column():
    X = np.random.default_rng(50).normal(size=(3, 23))
    for pool in ({}, {"max_candidates": 2, "exact": True}, {"max_pool_bytes": 1, "exact": True}):
        model = ForwardSelection(2, ridge=0.0, **pool)
        model.learn_target(np.array(["a", "a", "b"]))
        model.learn_columns(X)
        assert model.selected == [8, 0]
        assert model.n_certified == 2
    rows = ForwardSelection(2, ridge=0.0, max_features=23)
    for x, y in zip(X, "aab", strict=True):
        rows.learn_one(dict(enumerate(x)), y)
    assert rows.selected == [8, 0]
