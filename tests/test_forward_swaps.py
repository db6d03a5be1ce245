"""Exchanges of picks after forward selection: their gain, and their certificate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from streamsel import ForwardSelection
from tests.reference.forward_selection import answer, objective, prepared, score_of


def dependent(rng, n=40, p=60):
    """Return dependent columns, and a target that is the sum of some."""
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.4 * rng.normal(size=(p, p)))
    y = X[:, 3] - X[:, 17] + 0.5 * X[:, 40] + rng.normal(size=n)
    return X, y


def learnt(X, y, k, **options):
    model = ForwardSelection(k, **options)
    model.learn_target(y)
    model.learn_columns(X)
    return model


@pytest.mark.slow
@given(st.integers(0, 2**31), st.integers(1, 6), st.sampled_from([0.0, 0.1, 1.0]))
def test_the_error_never_increases(seed, k, ridge):
    rng = np.random.default_rng(seed)
    X, y = dependent(rng, n=int(rng.integers(12, 40)), p=45)
    options = {"ridge": ridge, "target_type": "numeric"}
    explained = [0.0]
    for swaps in (0, 1, 2, 50):
        model = learnt(X, y, k, swaps=swaps, **options)
        explained.append(objective(X, y, model.selected, **options))
        assert explained[-1] >= explained[-2] - 1e-9
        assert sum(model.scores.values()) == pytest.approx(explained[-1], rel=1e-7)
    units, basis = prepared(X, y, "numeric")
    # No further exchange decreases it.
    for pick in model.selected:
        others = [j for j in model.selected if j != pick]
        scores = {j: score_of(x, units, others, basis, ridge) for j, x in units.items()}
        best = max(score for j, score in scores.items() if j not in others)
        assert scores[pick] >= best - 1e-7 * max(1.0, best)


def test_redundant_picks_are_replaced():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200))
    X = np.column_stack([a + b + 0.4 * rng.normal(size=200), a, b])
    assert learnt(X, a + b, 2, ridge=0.01).selected == [0, 2]
    # The scores are those of forward selection on these two columns.
    model = learnt(X, a + b, 2, ridge=0.01, swaps=2)
    assert model.selected == [2, 1]
    scores = answer(X[:, [2, 1]], a + b, k=2, ridge=0.01)["scores"].values()
    assert [*model.scores.values()] == pytest.approx([*scores])


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_passes_certify_exchanges_of_a_small_pool(dataset, ridge):
    X, codes, _, archive = dataset("shapesall")
    X, y = np.asfortranarray(X[:600], dtype=float), archive["classes"][codes[:600]]
    whole = learnt(X, y, 12, ridge=ridge, swaps=3)
    assert sorted(whole.selected) != sorted(learnt(X, y, 12, ridge=ridge).selected)
    model = learnt(X, y, 12, ridge=ridge, swaps=3, max_candidates=12, exact=True)
    assert model.selected == whole.selected
    np.testing.assert_allclose([*model.scores.values()], [*whole.scores.values()], 1e-12)
    assert (model.n_certified, model.n_passes > 1.0) == (12, True)
    once = learnt(X, y, 12, ridge=ridge, swaps=3, max_candidates=12)
    assert once.n_certified == 0


def test_further_picks_follow_the_exchanged_ones(rng):
    """With hysteresis, more than k are ranked, and the first k are those in use."""
    X, y = dependent(rng)
    model = ForwardSelection(4, swaps=2, hysteresis=2.0)
    for x, target in zip(X, y, strict=True):
        model.learn_one(dict(enumerate(x)), target)
    more = model._select(model._state, 8).indices
    assert [model._state.names[j] for j in more[:4]] == model.selected
    assert len(set(more)) == 8
    columns = learnt(X, y, 4, swaps=2)
    assert [columns._state.names[j] for j in columns._select(columns._state, 8).indices[:4]] == (
        columns.selected
    )


def test_invalid_swaps_are_refused(rng):
    X, y = dependent(rng)
    assert learnt(X[:, :3], y, 5, swaps=2).selected == learnt(X[:, :3], y, 5).selected
    with pytest.raises(ValueError, match=r"Expected swaps=0 with an estimator.*Got: swaps=1"):
        ForwardSelection(2, estimator=Ridge(), swaps=1)


def test_impossible_swaps_in_files_are_refused(rng):
    X, y = dependent(rng)
    model = learnt(X, y, 3, swaps=2, max_candidates=4, exact=True)
    state = model._state.to_state()
    first, second = state["solution"]["picks"][:2]
    for exchanged in ([second, second], [first, first]):
        state["solution"]["exchanged"] = exchanged
        with pytest.raises(ValueError, match="exchanges of one variable at a time"):
            learnt(X, y, 3, swaps=2, max_candidates=4)._state.set_state(state)
