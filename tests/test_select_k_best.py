"""SelectKBest: the number of selected variables."""

import numpy as np
import pytest

from streamsel import SelectKBest, load, save
from tests.reference import select_k_best as reference

N, P = 80, 30
RNG = np.random.default_rng(0)
Y = RNG.normal(size=N)
X = RNG.normal(size=(N, P)) + np.outer(Y, np.repeat([1.0, 0.3, 0.0], [3, 7, 20]))
X[:, [5, 17]] = 2.0


def learnt(**params):
    model = SelectKBest(**params)
    model.learn_target(Y)
    model.learn_columns(X)
    return model


@pytest.mark.parametrize("score", ["correlation", "f", "t", "mutual_info"])
@pytest.mark.parametrize("asked", [{}, {"k": 4}, {"k": np.int64(4)}, {"k": "all"}, {"fdr": 0.05}])
def test_number_of_selected_columns(score, asked):
    model, expected = learnt(score=score, **asked), reference.answer(X, Y, score=score, **asked)
    assert model.selected == expected["selected"]
    assert model.scores == pytest.approx({j: expected["scores"][j] for j in model.selected})
    n = {"k": asked.get("k"), "fdr": None}.get(next(iter(asked), ""), 10)
    assert n in (len(model.selected), "all", None)


def test_all_selects_varying_columns_by_score():
    model = learnt(k="all")
    assert len(model.selected) == P - 2
    assert not {5, 17} & {*model.selected}
    assert list(model.scores.values()) == sorted(model.scores.values(), reverse=True)
    assert model.report().n_requested is None
    assert learnt(fdr=0.05).selected == model.selected[: len(learnt(fdr=0.05).selected)]


def test_incompatible_options_are_refused():
    with pytest.raises(
        ValueError, match=r"Expected k or fdr, not both.*k=5, fdr=0.1(?s:.)*leave out k"
    ):
        SelectKBest(5, fdr=0.1)
    with pytest.raises(ValueError, match="Expected max_candidates=None with k='all'"):
        SelectKBest("all", max_candidates=50)
    with pytest.raises(ValueError, match=r"Expected max_features of SelectKBest .* above k = 10"):
        SelectKBest(max_features=10)
    assert SelectKBest(fdr=0.1, max_features=10).clone()._get_params()["k"] is None


@pytest.mark.parametrize("heavy", [True, False])
def test_a_bounded_pool_that_may_miss_discoveries_warns(heavy):
    rng = np.random.default_rng(1)
    z = rng.normal(size=150)
    X = rng.normal(size=(150, 400))
    X[:, :20] += 0.55 * z[:, None]
    found = {}
    for size in None, 30:
        model = found[size] = SelectKBest(fdr=0.1, max_candidates=size)
        model.learn_target(np.exp(1.5 * z) if heavy else z)
        model.learn_columns(X)
    assert (found[30].n_certified == 0) is heavy
    codes = [warning.code for warning in found[30].report().warnings]
    assert ("pool" in codes) is heavy
    assert "pool" not in [warning.code for warning in found[None].report().warnings]
    assert heavy or found[30].selected == found[None].selected


@pytest.mark.parametrize("score", ["xi", "mutual_info", "rank"])
@pytest.mark.parametrize("heavy", [True, False])
def test_a_bounded_pool_of_discoveries_is_exact(score, heavy, tmp_path):
    """A bounded pool is exact, though 0/1 columns have small p-values at moderate scores."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    X = rng.normal(size=(400, 1500))
    X[:, :5] = y[:, None] + 2.0 * rng.normal(size=(400, 5)) > 0.0
    found = {}
    for size in None, 12:
        model = found[size] = SelectKBest(fdr=0.05, score=score, max_candidates=size)
        model.learn_target(np.exp(2.0 * y) if heavy else y)
        model.learn_columns(X)
        assert not model.report().normal_scores
        assert "pool" not in [warning.code for warning in model.report().warnings]
    assert len({0, 1, 2, 3, 4} & {*found[None].selected}) >= 4
    assert found[12].selected == found[None].selected
    assert found[12].p_values == found[None].p_values
    assert found[12].n_certified == len(found[12].selected)
    save(found[12], tmp_path / "a.model")
    assert load(tmp_path / "a.model").n_certified == len(found[12].selected)
    # Earlier files ranked pools by score: discarded columns might have passed.
    state = found[12]._get_state()
    del state["columns"]["ranked_by"]
    before = found[12].clone()
    before._set_state(state)
    assert before.selected == found[12].selected
    assert before.n_certified == 0
    assert "pool" in [warning.code for warning in before.report().warnings]


def test_p_values_of_0_are_ranked_by_score():
    y = np.arange(3000.0)
    noise = np.random.default_rng(0).normal(size=(3000, 30))
    X = y[:, None] + np.linspace(400.0, 10.0, 30) * noise
    model = SelectKBest(fdr=0.05, score="rank", max_candidates=4)
    model.learn_target(y)
    model.learn_columns(X)
    assert set(model.p_values.values()) == {0.0}
    assert model.selected[:4] == [29, 28, 27, 26]
