"""Pools, their rankings and solvers work without a learner."""

import gc
import weakref

import numpy as np
import pytest

from streamsel import SAOLA, registry
from streamsel._kernels.mutual_information import fold_mrmr_scores, mrmr_scores
from streamsel.base.selector import Selector
from streamsel.data.columns import single_column
from streamsel.state.pool.accepted import AcceptedColumns
from streamsel.state.pool.candidate_solution import StagedSolver
from streamsel.state.pool.certifier import Certifier
from streamsel.state.pool.pool import MOST_RELEVANT, Pool, TopRanked
from streamsel.targets.target import NoTarget

SELECTORS = registry.names("selector")


def variances(pool, rows):
    return rows["m2"] / pool.n


def filled(X, *args, **params):
    """Return a pool without a target that has learnt the columns of X."""
    pool, target = Pool(None, len(X), *args, **params), NoTarget(len(X))
    for j, x in enumerate(X.T):
        chunk = single_column(j, np.ascontiguousarray(x), len(X), None, None)
        pool.admit(chunk, chunk.scan(target, 1), j)
    return pool


@pytest.mark.parametrize("name", SELECTORS)
def test_selector_state_does_not_refer_to_the_learner(name, rng):
    """The state of a selector does not refer to the learner, nor need it."""
    X = rng.normal(size=(30, 12))
    model = registry.fetch(name)(target_type="numeric")
    model.learn_target(X[:, 3] + 0.1 * X[:, 7])
    model.learn_columns(X)
    state, selected, dead = model._columns, model.selected, weakref.ref(model)
    del model
    gc.collect()
    assert dead() is None
    assert set(selected) <= set(state.names)
    state.set_state(state.to_state())
    assert state.irrelevant_below < np.inf


@pytest.mark.parametrize("name", SELECTORS)
def test_selectors_have_few_bases(name):
    """A selector has at most one mixin between its method and the base class."""
    mro = registry.fetch(name).__mro__
    own = [cls.__name__ for cls in mro[: mro.index(Selector)] if "streamsel" in cls.__module__]
    assert len([one for one in own if one != "CrossMomentsOnRows"]) <= 2


@pytest.mark.parametrize("samples", [False, True])
def test_rankings_decide_which_columns_are_kept(rng, samples):
    X = rng.normal(size=(20, 60)) * rng.permutation(60)
    pool = filled(X, 5, TopRanked(variances), samples=samples)
    best = np.argsort(-X.var(axis=0))
    assert set(best[:5].tolist()) <= set(pool.names)
    assert len(pool.names) < 10
    assert pool.has_products is samples
    assert pool.max_discarded_bound == pytest.approx(
        max(X[:, j].var() for j in range(60) if j not in pool.names)
    )
    # Without a target all are equally relevant, and the first are kept.
    assert filled(X, 5, samples=samples).names[:5] == [j for j in range(60) if X[:, j].any()][:5]


def test_ties_of_scores_are_relative(rng):
    X = np.ones((4, 1)) * np.array([1e-9, 1.0, 1.0])
    X[:2] *= -1.0
    X[:, 1] *= 1.0 + 1e-10
    pool = filled(X, 4, TopRanked(variances))
    assert pool.ranking.keep_best(pool, 1).indices == [1]
    assert pool.ranking.relevance_cutoff(0.5) == -np.inf
    assert MOST_RELEVANT.relevance_cutoff(0.5) == 0.5


def test_nested_pools_are_rolled_back_together(rng):
    class Alternating:
        def rejection_threshold(self, space):
            return 0.0

        def accept(self, state, batch):
            if len(state.names) % 2:
                state.drop(np.array([0]))
            state.accept(batch, int(batch.indices[0]))
            state.remember(seen=state.memory["seen"] + 1.0)

    X = rng.normal(size=(10, 6))
    model = SAOLA()
    model.learn_target(X[:, 0])
    state = AcceptedColumns(
        Pool(model._space, 10, None, samples=True, target_rows=model._target.Y[:1]),
        Alternating(),
        {"seen": 0.0},
    )
    seen, restores = [], []
    for j, x in enumerate(X.T):
        seen.append((list(state.names), dict(state.memory)))
        restores.append(state.snapshot())
        chunk = single_column(j, np.ascontiguousarray(x), 10, None, None)
        state.admit(chunk, chunk.scan(model._target, 1), j)
    for (names, memory), restore in [*zip(seen, restores, strict=True)][::-1]:
        restore()
        restore()
        assert (state.names, state.memory) == (names, memory)
        assert len(state.samples(np.arange(len(names)))) == len(names)


def test_a_certifier_needs_a_limit(rng):
    class Nothing(StagedSolver):
        def solve(self, pool, before, n_certified):
            raise NotImplementedError

        def restore(self, pool, saved):
            raise NotImplementedError

    solver = Nothing(2)
    with pytest.raises(ValueError, match="Expected a pool with a limit"):
        Certifier(Pool(None, 5, None), solver)
    assert (solver.upper_bound(None, {"m2": np.ones(2)}) == np.finfo(float).max).all()


@pytest.mark.parametrize("beta", [-1.0, np.nan, 0.5])
def test_both_forms_of_a_score_have_equal_bits(rng, beta):
    rel, red = rng.uniform(size=9), np.abs(rng.normal(size=(9, 4))) + 0.1
    rel[4] = -np.inf
    stages, scores, total = np.empty((9, 5)), np.empty(9), np.zeros(9)
    fold_mrmr_scores(rel, red, 0.1, beta, stages)
    for s in range(5):
        mrmr_scores(rel, total, s, beta, scores)
        assert scores.tobytes() == stages[:, s].tobytes()
        if s < 4:
            total += red[:, s]
