"""First and further passes over columns in parts, run by models that share no memory."""

import numpy as np
import pytest

from streamsel import (
    MRMR,
    PCA,
    PLS,
    AlphaInvesting,
    ForwardSelection,
    Lasso,
    ProjSe,
    RidgeComponents,
    SelectKBest,
    SparsePCA,
)
from tests import in_parts
from tests.exactness import learners, wrong_in_parts
from tests.seed import some


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 300))
    return X, X[:, ::60] @ [3.0, -2.0, 2.0, 1.5, 1.0] + rng.normal(size=50)


# ----------------------------------------------------------------------------- stages


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("name", learners())
def test_streams(name, part):
    """Run some of 80 streams, others for every seed; `python -m tests.exactness` runs more."""
    for seed in some(range(part, 80, 2), 20, f"{name} {part}"):
        assert wrong_in_parts(name, seed) is None, seed


@pytest.mark.parametrize("learner", [ProjSe, MRMR, ForwardSelection, Lasso])
def test_passes_change_a_model_only_when_applied(learner, made, rng):
    """Passes change a model only when applied, and can be repeated with the same result."""
    X, y = made
    model = learner(k=5, max_candidates=6, exact=True)
    model.learn_target(np.c_[y, X[:, 1]] if learner is ProjSe else y)
    parts = in_parts.streams(X, [0, 50, 50, 51, 170, 300])
    model = in_parts.learn_once(model, parts, rng)
    first, again = model._next_pass(), model._next_pass()
    found = []
    for one in (first, again, first):
        found.append(in_parts.together(in_parts.read(one, parts), np.random.default_rng(1)))
        assert found[-1].names == found[0].names
        np.testing.assert_array_equal(found[-1].best_discarded, found[0].best_discarded)
    before, n_certified = model.n_passes, model.n_certified
    model._apply_pass(again, found[0])
    assert model.n_passes == before + 1
    assert model.n_certified >= n_certified
    with pytest.raises(ValueError, match="the result of another pass"):
        model._apply_pass(first, found[1])


@pytest.mark.parametrize("change", ["fewer", "other values", "swapped", "a name twice", "order"])
def test_another_source_is_refused(change, made, rng):
    X, y = made
    model = ForwardSelection(k=5, ridge=0.0, max_candidates=6, exact=True)
    model.learn_target(y)
    parts = in_parts.streams(X, [0, 100, 200, 300])
    model._learn_part(in_parts.streams(X, [0, 300])[0])
    next_pass = model._next_pass()
    if change == "fewer":
        parts = parts[:2]
    elif change == "other values":
        parts = in_parts.streams(X + rng.normal(size=X.shape), [0, 100, 200, 300])
    elif change == "swapped":
        parts = [parts[1], parts[0], parts[2]]
    state = model._columns.to_state()["unchanged_since"]

    def read_again():
        found = in_parts.read(next_pass, parts)
        if change == "order":
            found = found[::-1]
        elif change == "a name twice":
            next(one for one in found if one.names).names[0] = model._columns.names[0]
        model._apply_pass(next_pass, in_parts.together(found, rng))

    with pytest.raises(ValueError, match="Expected the same columns"):
        read_again()
    assert model.n_passes == 1
    np.testing.assert_array_equal(model._columns.to_state()["unchanged_since"], state)


def test_every_pass_certifies_one_more_stage(rng):
    """Every pass certifies at least one more pick, in a hard case with a pool of k columns."""
    X = rng.normal(size=(12, 400))
    model = ForwardSelection(k=8, ridge=0.0, max_candidates=8, exact=True)
    model.learn_target(rng.normal(size=12))
    parts = in_parts.streams(X, range(0, 401, 40))
    model = in_parts.learn_once(model, parts, rng)
    proven = model.n_certified
    while (next_pass := model._next_pass()) is not None:
        model._apply_pass(next_pass, in_parts.together(in_parts.read(next_pass, parts), rng))
        # All state between two passes is in a copy.
        model = in_parts.sent(model)
        assert model.n_certified > proven
        proven = model.n_certified
    assert proven == 8


def test_messages_have_the_size_of_the_answer(made):
    X, y = made
    sizes = []
    for columns in (X, np.tile(X, 10) + np.arange(3000)):
        model = ForwardSelection(k=5, max_candidates=20, exact=True)
        model.learn_target(y)
        model._learn_part(in_parts.streams(columns, [0, columns.shape[1]])[0])
        sizes.append(len(in_parts.pickled(model._next_pass())))
    assert sizes[1] < 1.5 * sizes[0]
    assert max(sizes) < 8 * 50 * 20


def test_the_first_of_two_copies_is_active():
    """Results in parts are correct for Lasso streams where the later of two copies was kept."""
    for seed in (7, 2056, 3354):
        assert wrong_in_parts("Lasso", seed) is None


# ----------------------------------------------------------------------------- loadings

MANY_ROWS = {"max_gram_rows": 40}


@pytest.mark.parametrize(
    ("learner", "params"),
    [
        (PCA, {}),
        (PCA, {"scale": False}),
        (PCA, MANY_ROWS),
        (PLS, {}),
        (PLS, MANY_ROWS),
        (RidgeComponents, {}),
    ],
)
def test_loadings_equal_those_of_one_process(learner, params, made, rng):
    X, y = made
    model = learner(n_components=3, max_loadings=40, **params)
    if learner is not PCA:
        model.learn_target(y)
    parts = in_parts.streams(X, [0, 50, 50, 51, 170, 300])
    model = in_parts.learn_once(model, parts, rng)
    one = in_parts.sent(model)
    one.learn_loadings(X)
    in_parts.read_again(model, parts, rng)
    assert model._next_pass() is None
    assert model.n_passes == one.n_passes
    assert (model.n_passes > 2) == (params is MANY_ROWS)
    # Axes converge when variances do, to 1e-9, so that axes are accurate to the root of it.
    near = 1e-6 if params is MANY_ROWS else 1e-11
    mine, theirs = model.loadings, one.loadings
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert mine[name] == pytest.approx(theirs[name], abs=near)
    np.testing.assert_allclose(model.embedding, one.embedding, atol=10.0 * near)


@pytest.mark.parametrize("params", [{}, MANY_ROWS])
@pytest.mark.parametrize("change", ["fewer", "other values", "one twice"])
def test_loadings_of_another_source_are_refused(params, change, made, rng):
    X, _ = made
    model = PCA(n_components=3, max_loadings=40, **params)
    parts = in_parts.streams(X, [0, 100, 200, 300])
    model = in_parts.learn_once(model, parts, rng)
    Z = X + (rng.normal(size=X.shape) if change == "other values" else 0.0)
    other = in_parts.streams(Z, [0, 100, 200, 300])
    other = {"fewer": other[:2], "one twice": [*other[:2], other[1]]}.get(change, other)
    with pytest.raises(ValueError, match="Expected the same columns as before"):
        in_parts.read_again(model, other, rng)
    again = in_parts.sent(model)
    in_parts.read_again(again, parts, rng)
    assert again._next_pass() is None


# ----------------------------------------------------------------------------- supported learners


def test_unsupported_learners_are_refused_before_reading():
    assert "all earlier columns" in AlphaInvesting()._reason_not_partitioned()
    assert "all earlier columns" in SparsePCA()._reason_not_partitioned()
    assert SelectKBest()._reason_not_partitioned() is None
    assert SelectKBest()._next_pass() is None
