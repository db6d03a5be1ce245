"""BackwardElimination: costs of removal, invariants of any data, and the bounded pool."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel import BackwardElimination
from streamsel._kernels.stepwise import independent_variables
from streamsel.selection.backward_elimination import elimination_order
from tests import exactness
from tests.reference import backward_elimination as reference
from tests.reference import target

RIDGES = [0.0, 1e-3, 1.0, 30.0]
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def learnt(X, y, k=100, *, covariates=None, **params):
    model = BackwardElimination(k, target_type="numeric", **params)
    model.learn_target(y, covariates=covariates)
    model.learn_columns(X)
    return model


def check(model, answer):
    assert model.selected == answer["selected"]
    np.testing.assert_allclose(
        list(model.scores.values()), list(answer["scores"].values()), **CLOSE
    )


def columns(seed, n=30, p=8, c=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, :c] + rng.normal(size=(n, c)), rng


# ------------------------------------------------------------------------ the cost of a removal


@pytest.mark.parametrize("ridge", RIDGES)
def test_removal_costs_equal_those_of_refits(ridge):
    """Removal costs computed from coefficients equal those of refits without the variable."""
    X, Y, _ = columns(0)
    units, basis = reference.prepared(X, Y, "numeric")
    V = np.column_stack(list(units.values()))
    inverse = np.linalg.inv(V.T @ V + ridge * np.eye(V.shape[1]))
    B = inverse @ V.T @ basis
    whole = reference.misfit(list(V.T), basis, ridge)
    for j in units:
        others = [x for i, x in units.items() if i != j]
        raised = reference.misfit(others, basis, ridge) - whole
        np.testing.assert_allclose(B[j] @ B[j] / inverse[j, j], raised, rtol=1e-10)


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_orthogonal_columns_cost_their_explained_variance(ridge):
    X = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 1.0
    model = learnt(X, 3 * X[:, 1] + 2 * X[:, 0] - X[:, 2], ridge=ridge)
    assert model.selected == [1, 0, 2]
    shares = np.array([9, 4, 1]) / 14 / (1 + ridge)
    np.testing.assert_allclose(list(model.scores.values()), shares, rtol=1e-14)


def test_two_jointly_informative_columns_are_kept():
    """Two variables explain the target only together.

    The columns are u, u + v/2 and u + 3v, with u and v orthogonal; the target is v. The last two
    span v, and so do the first and the last; the third alone explains 9/10 of it.
    """
    u, v = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, 1.0, -1.0, -1.0])
    X = np.column_stack([u, u + v / 2, u + 3 * v])
    model = learnt(X, v, ridge=0.0)
    # Each is a combination of the others: the last one is removed first, at no cost.
    assert model.selected == [1, 0]
    np.testing.assert_allclose(list(model.scores.values()), [1 / 5, 4 / 5], rtol=1e-12)
    assert learnt(X, v, ridge=0.1).selected[0] == 2


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("seed", range(40))
def test_hard_columns(ridge, seed):
    """Selections are correct for copies, sums, constants, integers, and more columns than rows."""
    rng = np.random.default_rng(seed)
    X = exactness.columns(rng)[:, :16]
    y = rng.normal(size=(len(X), 2)) + X[:, rng.integers(0, X.shape[1], 2)]
    k = int(rng.integers(1, 9))
    check(learnt(X, y, k, ridge=ridge), reference.answer(X, y, k=k, ridge=ridge))


def test_removed_near_copies_leave_no_rounding_errors():
    """Removed near copies leave no rounding errors: downdating an inverse would lose ten digits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    X = np.column_stack([X, X[:, :3] + 1e-4 * rng.normal(size=(60, 3))])
    y = X[:, :4] @ [1.0, 1.0, -1.0, 2.0] + rng.normal(size=60)
    model, answer = learnt(X, y, 4, ridge=0.0), reference.answer(X, y, k=4, ridge=0.0)
    assert model.selected == answer["selected"]
    np.testing.assert_allclose(
        list(model.scores.values()), list(answer["scores"].values()), rtol=1e-12
    )


def test_a_hundred_columns_and_twenty_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 100)) @ rng.normal(size=(100, 100))
    C, basis = np.corrcoef(X.T), target.basis(X[:, :20] + 9 * rng.normal(size=(80, 20)))
    G = np.array([basis.T @ target.unit(target.centred(x)) for x in X.T])
    found = elimination_order(C.copy(), G, 1.0)
    left = list(range(100))
    for j, cost in zip(found.indices[::-1], found.scores[::-1], strict=True):
        inverse = np.linalg.inv(C[np.ix_(left, left)] + np.eye(len(left)))
        B = inverse @ G[left]
        costs = (B**2).sum(axis=1) / np.diag(inverse)
        assert left[int(np.argmin(costs))] == j
        np.testing.assert_allclose(cost, costs.min(), rtol=1e-9)
        left.remove(j)
    assert not left


# ---------------------------------------------------------------------- invariants of any data

seeds = st.integers(0, 10_000)


@given(seeds, st.sampled_from(RIDGES), st.integers(-100, 100), st.floats(-1e6, 1e6))
@settings(max_examples=40)
def test_level_and_scale_of_columns_do_not_matter(seed, ridge, exponent, level):
    X, Y, rng = columns(seed)
    moved = (
        X * 2.0 ** (rng.integers(-9, 9, X.shape[1]) + exponent) * rng.choice([-1, 1], X.shape[1])
    )
    moved += level * np.abs(moved).max(axis=0)
    one, other = learnt(X, Y, ridge=ridge), learnt(moved, Y, ridge=ridge)
    assert one.selected == other.selected
    np.testing.assert_allclose(list(one.scores.values()), list(other.scores.values()), rtol=1e-6)


@given(seeds, st.sampled_from(RIDGES), st.integers(1, 4))
@settings(max_examples=40)
def test_mixing_the_targets_does_not_matter(seed, ridge, c):
    X, Y, rng = columns(seed, c=c)
    mixed = Y @ (rng.normal(size=(c, c)) + 3.0 * np.eye(c)) + rng.normal(size=c)
    check(
        learnt(X, np.column_stack([mixed, mixed.sum(axis=1)]), ridge=ridge),
        {"selected": (one := learnt(X, Y, ridge=ridge)).selected, "scores": one.scores},
    )


@pytest.mark.slow
@given(seeds, st.sampled_from(RIDGES), st.integers(3, 20))
@settings(max_examples=40)
def test_removal_costs_are_non_negative(seed, ridge, n):
    """Costs are non-negative and sum to the explained part; fewer picks are the first of more."""
    X, Y, _ = columns(seed, n=n)
    units, basis = reference.prepared(X, Y, "numeric")
    model = learnt(X, Y, ridge=ridge)
    costs = list(model.scores.values())
    assert min(costs) >= 0.0
    explained = basis.shape[1] - reference.misfit(list(units.values()), basis, ridge)
    np.testing.assert_allclose(sum(costs), explained, rtol=1e-8)
    for k in range(1, 9):
        assert learnt(X, Y, k, ridge=ridge).selected == model.selected[:k]


# --------------------------------------------------------------------------- singular, and no ridge


def test_first_columns_are_kept_without_ridge_if_rows_are_few():
    X = np.random.default_rng(0).normal(size=(6, 20))
    X[:, 1] = 2.0 - X[:, 0]
    model = learnt(X, X[:, 9] + X[:, 19], ridge=0.0)
    assert sorted(model.selected) == [0, 2, 3, 4, 5]
    assert learnt(X, X[:, 9] + X[:, 19], 2, ridge=1e-3).selected != model.selected[:2]


def test_kept_columns_do_not_exceed_the_rank():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(6, 20))
        off = 10.0 ** rng.uniform(-6, -2) * rng.normal(size=6)
        X[:, 4] = X[:, :4] @ rng.normal(size=4) + off
        model = learnt(X, rng.normal(size=6), ridge=0.0)
        assert len(model.selected) == 5
        assert set(range(4)) < set(model.selected) <= set(range(6))


@pytest.mark.parametrize("ridge", [1e-300, 1e-16, 1e-11, 1e-9, 1e-7])
def test_ridge_of_the_size_of_rounding_errors(ridge):
    X = np.random.default_rng(0).normal(size=(10, 30))
    costs = learnt(np.column_stack([X, X]), X[:, 3], ridge=ridge).scores.values()
    assert np.isfinite(list(costs)).all()
    assert sum(costs) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(("left", "sound"), [(0.99e-10, False), (1.01e-10, True)])
def test_residuals_are_accurate_to_the_last_digits(left, sound):
    """The residual of a variable is computed to the last digits."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(300, 200)))[0]
    inside = X[:, :199] @ target.unit(rng.normal(size=199))
    X[:, 199] = np.sqrt(1.0 - left) * inside + np.sqrt(left) * X[:, 199]
    assert independent_variables(X.T @ X, 1e-10).tolist() == [True] * 199 + [sound]


# ---------------------------------------------------------------------------- the bounded pool


@pytest.mark.parametrize("width", [1, 7, 200])
def test_a_pool_keeps_the_most_relevant_columns(width):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 200))
    y = X[:, ::20].sum(axis=1) + rng.normal(size=40)
    model = BackwardElimination(5, max_candidates=12)
    model.learn_target(y)
    for start in range(0, 200, width):
        model.learn_columns(X[:, start : start + width])
    assert 12 <= len(model._columns.names) < 24
    check(model, reference.answer(X, y, k=5, max_candidates=12))
    basis = target.basis(y)
    relevance = [target.relevance(x, basis) for x in X.T]
    best = np.argsort(relevance)[::-1][: len(model._columns.names)]
    assert sorted(best.tolist()) == sorted(model._columns.names)
    # The result does not depend on their order.
    model = learnt(X[:, best], y, 5)
    assert [best[j] for j in model.selected] == reference.answer(X, y, k=5, max_candidates=12)[
        "selected"
    ]


def test_nothing_is_certified_after_a_discard():
    X, y, _ = columns(0, n=40, p=30, c=1)
    for p, proven in ((19, 3), (20, 0), (30, 0)):
        model = learnt(X[:, :p], y, 3, max_candidates=10)
        assert model.n_certified == proven
        assert [row["certified"] for row in model.report().results] == [proven == 3] * 3
    # Constant columns do not count as discarded.
    constant = np.column_stack([X[:, :19], np.ones((40, 50))])
    assert learnt(constant, y, 3, max_candidates=10).n_certified == 3
    assert learnt(X, y, 3, max_candidates=None).n_certified == 3


def test_discarded_columns_may_belong_to_the_best_subset():
    """A discarded column may belong to the best pair, so that nothing is certified."""
    rng = np.random.default_rng(1)
    level, gap = rng.normal(size=(2, 50))
    level -= (level @ gap) / (gap @ gap) * gap
    X = np.column_stack(
        [9.0 * level + gap, 9.0 * level, *(gap[:, None] + 3.0 * rng.normal(size=(50, 20))).T]
    )
    assert set(learnt(X, gap, 2, ridge=1e-6).selected) == {0, 1}
    assert 1 not in learnt(X, gap, 2, ridge=1e-6, max_candidates=4).selected


@pytest.mark.parametrize("limit", [6, 500])
def test_covariates_equal_selection_on_residuals(limit):
    """Selections with covariates equal those of the residuals."""
    X, Y, rng = columns(3, n=50, p=20, c=3)
    Z = np.column_stack([X[:, 0] + X[:, 9], rng.normal(size=50)])
    X[:, 4] = 1.0 - Z[:, 0]
    basis = np.linalg.qr(np.column_stack([np.ones(50), Z]))[0]
    rest = X - basis @ (basis.T @ X)
    rest[:, 4] = 0.0
    model = learnt(X, Y, 5, covariates=Z, max_candidates=limit)
    answer = reference.answer(rest, Y - basis @ (basis.T @ Y), k=5, max_candidates=limit)
    check(model, answer)


@pytest.mark.parametrize("ridge", RIDGES)
def test_rows_equal_columns(ridge):
    X, Y, _ = columns(0, n=60)
    answer = reference.answer(X, Y[:, 0], k=5, ridge=ridge)
    model = BackwardElimination(5, ridge=ridge)
    for x, y in zip(X, Y[:, 0], strict=True):
        model.learn_one(dict(enumerate(x)), y)
    check(model, answer)
    model = learnt(X[:20], Y[:20, 0], 5, ridge=ridge)
    for x, y in zip(X[20:], Y[20:, 0], strict=True):
        model.learn_one(dict(enumerate(x)), y)
    check(model, answer)


def test_a_pool_that_is_too_small_is_refused():
    with pytest.raises(ValueError, match=r"Expected max_candidates of .* at least k = 501"):
        BackwardElimination(501)
    assert BackwardElimination(501, max_candidates=None).k == 501
