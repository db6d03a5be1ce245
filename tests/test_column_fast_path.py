"""The fast path of `learn_column` for irrelevant columns gives bit-identical results."""

import numpy as np
import pytest

from streamsel import SOSPCA, ProjSe, SelectKBest
from streamsel.base import columns as column_axis
from streamsel.selection._projse_pool import ProjSeRanking
from streamsel.state.pool.pool import TopRanked, relevance_of_rows
from streamsel.state.stream_summary import MAX_POINTS
from tests.conformance.modes import bits

N, P = 60, 700

# name -> (learner, whether the fast path may discard columns)
LEARNERS = {
    "SOSPCA": (lambda: SOSPCA(n_components=3), True),
    "SOSPCA signed": (lambda: SOSPCA(n_components=3, signed=True), True),
    "ProjSe": (lambda: ProjSe(k=2, max_candidates=4), True),
    "SelectKBest": (lambda: SelectKBest(k=2, max_candidates=4), True),
    "ProjSe of all": (lambda: ProjSe(k=2), False),
    "ProjSe rbf": (lambda: ProjSe(k=2, max_candidates=4, kernel="rbf"), False),
    "SelectKBest by samples": (
        lambda: SelectKBest(k=2, max_candidates=4, score="mutual_info"),
        False,
    ),
}


@pytest.fixture
def columns(rng):
    """Return a target, and columns whose first ones are the most relevant."""
    y = rng.normal(size=N)
    strength = np.r_[np.linspace(2.0, 1.0, 12), np.zeros(P - 12)]
    return y, np.ascontiguousarray((np.outer(y, strength) + rng.normal(size=(N, P))).T)


@pytest.fixture
def chunked(monkeypatch):
    """Return the list of columns that took the ordinary path."""
    seen = []
    through = column_axis.single_column

    def counted(name, *args):
        seen.append(name)
        return through(name, *args)

    monkeypatch.setattr(column_axis, "single_column", counted)
    return seen


def learnt(build, y, columns=(), covariates=None):
    model = build()
    model.learn_target(y, covariates=covariates)
    for name, x in enumerate(columns):
        model.learn_column(name, x)
    return model


@pytest.mark.parametrize("with_covariate", [False, True])
@pytest.mark.parametrize("name", LEARNERS)
def test_single_columns_and_blocks_have_the_same_bits(rng, columns, chunked, name, with_covariate):
    y, X = columns
    build, at_a_glance = LEARNERS[name]
    with_covariate &= "samples" not in name
    z = rng.normal(size=N) if with_covariate else None
    X[600] = 7.0
    together = learnt(build, y, covariates=z)
    together.learn_columns(X.T)
    assert bits(learnt(build, y, X, covariates=z)) == bits(together)
    if at_a_glance and not with_covariate:
        assert 600 in chunked
        # The first columns take it because reports plot them, and a few others as a sample.
        assert sum(name >= MAX_POINTS for name in chunked) < 40
    else:
        assert len(chunked) == len(X)


@pytest.mark.parametrize("name", ["SOSPCA", "ProjSe"])
def test_cached_results_are_invalidated(columns, name):
    """The noise floor follows the number of columns."""
    y, X = columns
    model = learnt(LEARNERS[name][0], y, X[:-1])
    before, found = model.noise_floor(), model.relevance
    model.learn_column("new", X[-1])
    assert model.n_columns == len(X)
    assert model.noise_floor() > before
    assert model.relevance == found


@pytest.mark.parametrize(
    ("name", "values", "error"),
    [
        ("new", np.full(N, np.nan), ValueError),
        ("new", np.full(N, 1e300) * np.arange(N), ValueError),
        ("new", np.zeros(N - 1), ValueError),
        ("new", np.zeros((N, 1)), ValueError),
        (0, None, ValueError),
        (True, None, ValueError),
        (float("nan"), None, ValueError),
        ([], None, TypeError),
    ],
)
def test_the_fast_path_refuses_bad_columns(columns, name, values, error):
    y, X = columns
    model = learnt(LEARNERS["SOSPCA"][0], y, X)
    assert 0 in model.loadings
    assert 1 in model.loadings
    before, values = bits(model), X[-1] if values is None else values
    with pytest.raises(error):
        model.learn_column(name, values)
    assert bits(model) == before


@pytest.mark.parametrize("kind", ["float32", "int8", "strided", "read-only", "swapped", "list"])
def test_other_arrays_are_validated(columns, chunked, kind):
    y, X = columns
    model = learnt(LEARNERS["SOSPCA"][0], y, X)
    del chunked[:]
    x = np.round(X[-1])
    if kind == "strided":
        x = np.repeat(x, 2)[::2]
    elif kind == "read-only":
        x.flags.writeable = False
    else:
        x = x.tolist() if kind == "list" else x.astype(">f8" if kind == "swapped" else kind)
    model.learn_column("new", x)
    assert chunked == ["new"]
    assert model.n_columns == len(X) + 1


def test_rankings_without_relevance_cutoff_see_every_column(columns, chunked):
    """A ranking without a relevance cutoff of its own sees every column."""

    class HalvedRanking(ProjSeRanking):
        relevance_cutoff = TopRanked(relevance_of_rows).relevance_cutoff

        def upper_bound(self, pool, rows):
            return 0.5 * super().upper_bound(pool, rows)

    class Halved(ProjSe):
        def _new_pool(self, n, limit):
            pool = super()._new_pool(n, limit)
            pool.ranking = HalvedRanking(pool.ranking.kernel)
            return pool

    y, X = columns
    learnt(lambda: Halved(k=2, max_candidates=4), y, X)
    assert len(chunked) == len(X)


@pytest.mark.parametrize("learner", LEARNERS)
def test_rounding_level_variation_counts_as_constant(columns, learner):
    y, X = columns
    rng = np.random.default_rng(0)
    still = 1e9 + 1.2e-7 * rng.integers(0, 3, size=(5, y.size))
    one, many = (learnt(LEARNERS[learner][0], y, X) for _ in range(2))
    for j, x in enumerate(still):
        one.learn_column(f"still {j}", x)
    many.learn_columns(still.T, [f"still {j}" for j in range(5)])
    assert one.n_constant == many.n_constant == 5
