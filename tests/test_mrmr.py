"""MRMR: by hand, against scikit-learn's mutual information, and exact on any stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_selection import f_classif, f_regression
from sklearn.metrics import mutual_info_score

from streamsel import MRMR, ForwardSelection, SelectKBest, load, save
from streamsel.selection._mrmr import bin_columns_by_frequency, mutual_information_matrix
from tests.conformance.modes import bits
from tests.copies import COPIES
from tests.reference.mrmr import answer

MI = {"score": "mutual_info", "redundancy": "mutual_info"}


def learnt(X, y, **params):
    model = MRMR(**params)
    model.learn_target(y)
    model.learn_columns(X)
    return model


def numbers(seed, n=40, p=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, 3] - X[:, 7] + rng.normal(size=n)


# ----------------------------------------------------------------------------------- by hand


def test_three_columns_by_hand():
    # Orthonormal and centred: coefficients of columns determine their correlations.
    u, v, w = np.linalg.qr(np.c_[np.ones(8), np.random.default_rng(0).normal(size=(8, 3))])[0].T[1:]
    y = 0.8 * u + 0.6 * v
    X = np.c_[u, 3.0 - 2.0 * u, 0.3 * u + 0.4 * v + np.sqrt(0.75) * w]
    # Correlations with y are 0.8, 0.8 and 0.48; that of the last with the first is 0.3.
    found = learnt(X, y, k=3, score="correlation")
    assert found.selected == [0, 2, 1]
    expected = [0.8, 0.48 / 0.3, 0.8 / np.mean([1.0, 0.3])]
    np.testing.assert_allclose(list(found.scores.values()), expected, rtol=1e-12)
    found = learnt(X, y, k=3, score="correlation", scheme="difference")
    assert found.selected == [0, 2, 1]
    expected = [0.8, 0.48 - 0.3, 0.8 - np.mean([1.0, 0.3])]
    np.testing.assert_allclose(list(found.scores.values()), expected, rtol=1e-12)
    found = learnt(X, y, k=3, score="correlation", scheme="difference", beta=0.1)
    assert found.selected == [0, 1, 2]
    expected = [0.8, 0.8 - 0.1, 0.48 - 0.1 * (0.3 + 0.3)]
    np.testing.assert_allclose(list(found.scores.values()), expected, rtol=1e-12)


def test_small_redundancies_count_as_a_thousandth():
    X = np.linalg.qr(np.c_[np.ones(8), np.random.default_rng(1).normal(size=(8, 3))])[0][:, 1:]
    found = learnt(X, X @ [0.8, 0.5, 0.3], k=2, score="correlation")
    r = 0.5 / np.sqrt(0.98)
    assert found.scores[1] == pytest.approx(r / 0.001, rel=1e-9)


def test_the_first_pick_has_the_largest_relevance():
    X, y = numbers(0)
    for score in ("f", "correlation"):
        filtered = SelectKBest(1, score=score)
        filtered.learn_target(y)
        filtered.learn_columns(X)
        found = learnt(X, y, k=5, score=score)
        name = filtered.selected[0]
        assert found.selected[0] == name
        assert found.scores[name] == pytest.approx(filtered.scores[name], rel=1e-12)


def test_f_equals_scikit_learn():
    X, y = numbers(1)
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
    for target, expected in ((y, f_regression(X, y)[0]), (labels, f_classif(X, labels)[0])):
        found = learnt(X, target, k=1)
        assert found.scores[found.selected[0]] == pytest.approx(expected.max(), rel=1e-9)


def test_beta_zero_ranks_by_relevance():
    X, y = numbers(2)
    found = learnt(X, y, k=30, scheme="difference", beta=0.0)
    assert list(found.scores.values()) == sorted(found.scores.values(), reverse=True)


def test_large_betas_select_uncorrelated_variables():
    X, y = numbers(3)
    X[:, 10:20] = X[:, 3:4] + 0.1 * X[:, 10:20]
    near = learnt(X, y, k=6, score="correlation", scheme="difference", beta=0.0).selected
    apart = learnt(X, y, k=6, score="correlation", scheme="difference", beta=2.0).selected
    copies = {3, *range(10, 20)}
    assert len(copies & {*near}) > len(copies & {*apart}) == 1


# ------------------------------------------------------------------------- mutual information


@pytest.mark.parametrize("n", [3, 20, 500])
def test_information_equals_scikit_learn(n):
    rng = np.random.default_rng(n)
    codes, others = (rng.integers(0, size, (q, n)) for size, q in ((7, 9), (4, 5)))
    found = mutual_information_matrix(codes.astype(np.uint8), others.astype(np.uint8), 7, 4)
    expected = [[mutual_info_score(a, b) for b in others] for a in codes]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_information_of_many_bins():
    codes = np.random.default_rng(0).permutation(600)[None].astype(np.int32)
    np.testing.assert_allclose(
        mutual_information_matrix(codes, codes, 600, 600), np.log(600), rtol=1e-14
    )


def test_equal_tables_have_information_of_equal_bits():
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 5, (1, 99)), rng.integers(0, 4, (1, 99))
    for _ in range(20):
        rows = rng.permutation(99)
        other = rng.permutation(5)[a][:, rows].astype(np.uint8)
        found = mutual_information_matrix(
            other, rng.permutation(4)[b][:, rows].astype(np.uint8), 5, 4
        )
        assert found == mutual_information_matrix(a.astype(np.uint8), b.astype(np.uint8), 5, 4)


def test_bins_do_not_depend_on_scale():
    X = np.random.default_rng(6).integers(-3, 4, (20, 50)) * 1.0
    np.testing.assert_array_equal(
        bin_columns_by_frequency(X, 4), bin_columns_by_frequency(X / 7.0 - 0.3, 4)
    )


# ------------------------------------------------------------------------------------- exact


def stream(seed):
    """Return columns with copies, opposites, sums and constants, a target, and parameters."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.choice([4, 5, 7, 12, 30])), int(rng.integers(3, 40))
    kinds = (
        rng.normal(size=(n, p)),
        rng.integers(-2, 3, (n, p)) * 1.0,
        rng.normal(size=(n, p)) + 1e5,
    )
    X = kinds[rng.integers(3)]
    for i, j, m in rng.integers(0, p, (p // 3, 3)):
        like = (X[:, j], 3.0 - 2.0 * X[:, j], X[:, j] + X[:, m], np.full(n, 1.5))
        X[:, i] = like[rng.integers(4)]
    y = X[:, 0] - X[:, 1] + rng.normal(size=n)
    score = str(rng.choice(["f", "correlation", "mutual_info"]))
    if score != "mutual_info" and seed % 3 == 0 and n > 5:
        y = np.c_[y, rng.normal(size=(n, 2))]
    elif seed % 3 == 1:
        y = np.array(["a", "b", "c"])[np.argsort(np.argsort(y)) * 3 // n]
    params = {"k": int(rng.integers(1, 10)), "score": score, "n_bins": int(rng.integers(2, 5))}
    params["redundancy"] = str(rng.choice(["correlation", "mutual_info"]))
    if rng.random() < 0.5:
        params |= {"scheme": "difference", "beta": [None, 0.3, 2.0][rng.integers(3)]}
    return X, y, params


@pytest.mark.parametrize("seed", range(100))
def test_multi_pass_pools_equal_all_columns(seed):
    X, y, params = stream(seed)
    expected = answer(X, y, **params)["selected"]
    size = params["k"] + [0, 1, params["k"], 3 * params["k"]][seed % 4]
    found = learnt(X, y, max_candidates=size, exact=True, **params)
    assert found.selected == expected
    assert found.n_certified == len(expected)


@pytest.mark.parametrize("seed", range(100, 200))
def test_certificates_hold_at_any_time(seed):
    X, y, params = stream(seed)
    rng = np.random.default_rng(seed)
    model = MRMR(max_candidates=params["k"] + seed % 3, **params)
    model.learn_target(y)
    stop = 0
    while stop < X.shape[1]:
        start, stop = stop, min(X.shape[1], stop + int(rng.integers(1, 9)))
        model.learn_columns(X[:, start:stop])
        if stop == X.shape[1] or rng.random() < 0.2:
            n = model.n_certified
            assert model.selected[:n] == answer(X[:, :stop], y, **params)["selected"][:n]


def test_relevance_alone_can_certify_in_one_pass():
    X, y = numbers(7, n=200, p=300)
    y = 5.0 * X[:, 3] + 2.0 * X[:, 7] + 0.1 * y
    found = learnt(X, y, k=2, max_candidates=5, score="correlation", scheme="difference")
    assert found.selected == [3, 7]
    assert found.n_certified == 2


# -------------------------------------------------------------------------------- invariants


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([{}, {"scheme": "difference"}, MI | {"n_bins": 4}]))
def test_scale_and_sign_do_not_matter(seed, params):
    X, y = numbers(seed, n=25, p=12)
    rng = np.random.default_rng(seed)
    scaled = X * rng.choice([3.0, 0.01, 1e6], size=12) + rng.choice([0.0, 100.0], size=12)
    other = 7.0 * y - 3.0
    if "n_bins" not in params:
        # Bins are not symmetric: values with the opposite sign may have other bins.
        scaled, other = scaled * rng.choice([1.0, -1.0], size=12), -other
    assert learnt(X, y, k=5, **params).selected == learnt(scaled, other, k=5, **params).selected


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_a_prefix_is_the_answer_for_fewer(seed):
    X, y = numbers(seed, n=25, p=12)
    whole = learnt(X, y, k=8).selected
    assert learnt(X, y, k=3).selected == whole[:3]


def test_uninformative_columns_are_not_selected():
    X = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    assert learnt(X, X[:, 1], k=2).selected == [1]
    assert learnt(X, X[:, 1], k=2, **MI, n_bins=2).selected == [1]


def test_a_copy_of_the_target_has_a_score_that_is_finite():
    X, y = numbers(8)
    X[:, 5], X[:, 9] = y, 1.0 - 3.0 * y
    found = learnt(X, y, k=4)
    assert found.selected[0] == 5
    assert all(map(np.isfinite, found.scores.values()))


def test_ties_are_in_order_of_arrival():
    X, y = numbers(9)
    X = np.c_[X[:, 3], 2.0 - X[:, 3], X[:, 3] / 3.0, X]
    for params in ({}, {"scheme": "difference"}, MI):
        assert learnt(X, y, k=1, **params).selected == [0]


def test_covariates_are_projected_out():
    X, y = numbers(10)
    model = MRMR(2)
    model.learn_target(y, covariates=X[:, 3])
    model.learn_columns(X)
    assert model.selected[0] == 7
    with pytest.raises(ValueError, match="Expected no covariates"):
        MRMR(2, **MI).learn_target(y, covariates=X[:, 3])


def test_rows_equal_columns():
    X, y = numbers(13, n=60)
    for params in ({}, {"scheme": "difference", "score": "correlation"}):
        model = MRMR(5, **params)
        for x, target in zip(X, y, strict=True):
            model.learn_one(dict(enumerate(x)), target)
        expected = answer(X, y, k=5, **params)
        assert model.selected == expected["selected"]
        assert model.scores == pytest.approx(expected["scores"], rel=1e-9)


# --------------------------------------------------------------------------------- bad input


def test_beta_requires_the_difference_scheme():
    with pytest.raises(ValueError, match=r"scheme=.difference. has a weight"):
        MRMR(3, beta=0.5)


def test_information_of_several_targets_is_refused():
    X, y = numbers(11)
    with pytest.raises(ValueError, match="one numeric target or classes"):
        MRMR(3, **MI).learn_target(np.c_[y, X[:, 0]])
    assert len(learnt(X, np.c_[y, X[:, 0]], k=3, redundancy="mutual_info").selected) == 3


def test_learning_continues_from_a_file(tmp_path):
    X, y = numbers(12, p=200)
    for params in ({}, MI | {"scheme": "difference"}):
        one = learnt(X[:, :120], y, k=4, max_candidates=8, **params)
        save(one, tmp_path / "model")
        other = load(tmp_path / "model")
        for model in (one, other):
            model.learn_columns(X[:, 120:])
        assert one.scores == pytest.approx(other.scores, rel=1e-12)
        assert one.n_certified == other.n_certified


@pytest.mark.parametrize("way", ["save", "deepcopy"])
@pytest.mark.parametrize("learner", [MRMR, ForwardSelection])
def test_copies_of_a_pruned_pool_have_the_same_bits(learner, way, tmp_path):
    """Copies of a model with a pruned pool continue bit-identically, without its cached values."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 300))
        model = learner(10, max_candidates=25)
        model.learn_target(X[:, 3] + rng.normal(size=50))
        model.learn_columns(X[:, :200], range(200))
        twin = COPIES[way](model, tmp_path)
        assert twin.scores == model.scores
        for one in (model, twin):
            one.learn_columns(X[:, 200:], range(200, 300))
        assert twin.scores == model.scores
        assert bits(twin) == bits(model)
