"""ProjSe against its batch definition, LAPACK, dense kernel matrices and the paper's algorithm."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from streamsel import ProjSe, load, save
from streamsel._kernels.gram_schmidt import pick_greedily_1d
from streamsel.selection._projse import _ranked
from streamsel.selection._projse_pool import ProjSeRanking
from streamsel.state.pool.pool import TIE_RTOL, ZERO_TOL
from tests.reference import projse as reference
from tests.reference import target as space

QUICK = settings(derandomize=True, deadline=None, max_examples=50)


def learn(X, y, k, **options):
    model = ProjSe(k, **options)
    model.learn_target(y)
    model.learn_columns(X)
    return model


def check(model, picks, tol=1e-9):
    """Compare names, scores and rounds, in order."""
    assert model.selected == [j for j, _, _ in picks]
    assert list(model.scores) == model.selected
    np.testing.assert_allclose(
        list(model.scores.values()), [score for _, score, _ in picks], atol=tol, rtol=0
    )
    assert [model.rounds[name] - model.rounds[model.selected[0]] for name in model.selected] == [
        turn for _, _, turn in picks
    ]


# One set of labels (few directions, so several rounds), and two views (many directions).
REAL = ["glioma", "sonar", "ionosphere", "colon_alon", "ml_emotions"]


def two_tasks(dataset, name, view=12):
    """Yield (X, target, its columns): a dataset's labels, then its first columns as a view."""
    X, y, Y2, npz = dataset(name)
    X = X.astype(np.float64)
    if Y2 is not None:
        yield X, Y2.astype(float), Y2
    else:
        labels = npz["classes"][y]
        yield X, labels, space.indicators(labels)
    yield X[:, view:], X[:, :view], X[:, :view]


@pytest.mark.parametrize("name", REAL)
def test_linear_equals_the_definition_and_pivoted_qr(dataset, name):
    for X, y, Y in two_tasks(dataset, name):
        picks = reference.linear(X, Y, 30)
        model = learn(X, y, 30)
        check(model, picks)
        assert model.n_certified == len(picks)
        # LAPACK has one round and no tie rule; no two real columns here tie.
        first = [j for j, _, turn in picks if turn == 0]
        pivots, squares = reference.lapack(X[:, X.std(axis=0) > 0], Y)
        live = np.flatnonzero(X.std(axis=0) > 0)
        m = min(len(first), len(pivots))
        assert model.selected[:m] == live[pivots[:m]].tolist()
        np.testing.assert_allclose(list(model.scores.values())[:m], squares[:m], atol=1e-9)


def test_linear_on_more_rows_equals_pivoted_qr(dataset):
    X, y, _, npz = dataset("isolet")
    labels = npz["classes"][y]
    model = learn(X, labels, 25)
    pivots, squares = reference.lapack(X, space.indicators(labels))
    assert model.selected == pivots[:25].tolist()
    np.testing.assert_allclose(list(model.scores.values()), squares[:25], atol=1e-9)
    assert set(model.rounds.values()) == {model.rounds[model.selected[0]]}


KERNELS = [
    {"kernel": "poly"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": 0.01},
]


@pytest.mark.parametrize("options", KERNELS, ids=lambda o: "-".join(map(str, o.values())))
@pytest.mark.parametrize("name", ["glioma", "sonar", "leukemia_golub3571"])
def test_kernels_equal_the_dense_formula(dataset, name, options):
    for wide, y, Y in two_tasks(dataset, name):
        X = wide[:, :600]
        picks = reference.kernel(X, Y, 30, **options)
        model = learn(X, y, 30, **options)
        check(model, picks)
        everything = learn(X, y, X.shape[1], **options)
        np.testing.assert_allclose(
            np.array([everything.relevance.get(j, 0.0) for j in range(X.shape[1])]) ** 2,
            reference.kernel_scores(X, Y, **options),
            atol=1e-9,
        )


@pytest.mark.parametrize("options", KERNELS, ids=lambda o: "-".join(map(str, o.values())))
def test_kernels_without_scaling(options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 80)) * rng.uniform(0.2, 0.6, size=80) + 4
    Y = X[:, :6] + 0.1 * rng.normal(size=(25, 6))
    gamma = options.get("gamma", 0.2 if options["kernel"] == "poly" else None)
    options = {**options, "scale": False, "gamma": gamma}
    check(learn(X, Y, 20, **options), reference.kernel(X, Y, 20, **options))
    if options["kernel"] == "rbf" or "coef0" in options:  # the homogeneous polynomial is invariant
        scaled = learn(X, Y, 20, **{**options, "scale": True})
        assert scaled.selected != learn(X, Y, 20, **options).selected


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("options", [{}, *KERNELS], ids=lambda o: "-".join(map(str, o.values())))
def test_unsupervised_equals_pivoted_cholesky(options, scale):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(14, 90)) @ np.diag(rng.uniform(0.3, 2.0, size=90))
    X[:, 40] = -2 * X[:, 3] + 1
    X[:, 41] = 5.0
    if not scale and options.get("kernel") == "rbf":
        options = {"gamma": 0.05, **options}
    picks = reference.unsupervised(X, 40, scale=scale, **options)
    model = learn(X, None, 40, scale=scale, **options)
    check(model, picks)
    assert 41 not in model.selected
    assert model.n_constant == 1


def test_unsupervised_on_real_data(dataset):
    X = dataset("glioma")[0].astype(float)[:, :400]
    check(learn(X, None, 60), reference.unsupervised(X, 60))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_one_round_equals_the_papers_algorithm(dataset, kernel):
    X, _, Y2, _ = dataset("ml_emotions")
    X, Y = reference.prepared(X, True), reference.prepared(Y2, True)
    expected = reference.paper_algorithm(X, Y, 5, kernel)
    assert learn(X, Y, 5, kernel=kernel, on_rank_exhausted="stop").selected == expected


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_on_rank_exhausted_stop_is_one_round(kernel):
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(40, 50)), rng.normal(size=(40, 3))
    stopped = learn(X, Y, 20, kernel=kernel, on_rank_exhausted="stop")
    assert len(stopped.selected) == 3
    going_on = learn(X, Y, 20, kernel=kernel)
    assert going_on.selected[:3] == stopped.selected
    assert len(going_on.selected) == 20
    turns = list(going_on.rounds.values())
    assert turns == sorted(turns)
    assert [turns.count(turn) for turn in sorted(set(turns))] == [3] * 6 + [2]


def test_scores_decrease_within_a_round():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(40, 200)), rng.normal(size=(40, 7))
    model = learn(X, Y, 60)
    for turn in set(model.rounds.values()):
        scores = [model.scores[name] for name in model.selected if model.rounds[name] == turn]
        assert scores == sorted(scores, reverse=True)
    U = space.basis(Y)
    assert list(model.relevance) == model.selected
    for name in model.selected:
        assert model.relevance[name] == pytest.approx(space.relevance(X[:, name], U), abs=1e-12)


def test_k_of_all_columns_selects_all():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 12))
    X[:, 5] = 1.0
    model = learn(X, X[:, 0] + X[:, 7], 50)
    assert sorted(model.selected) == [j for j in range(12) if j != 5]
    check(model, reference.linear(X, X[:, 0] + X[:, 7], 50))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("y", ["numbers", "none"])
def test_copies_are_picked_in_later_rounds(kernel, y):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 20))
    X = np.hstack([X, X, 3 * X + 1, np.round(X, 1)])
    model = learn(X, rng.normal(size=(30, 8)) if y == "numbers" else None, 60, kernel=kernel)
    rounds = {}
    for name in model.selected:
        if name < 60:
            rounds.setdefault(model.rounds[name], []).append(name % 20)
    for originals in rounds.values():
        assert len(originals) == len(set(originals))


def test_ties_are_in_order_of_arrival():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 10))
    y = X[:, 4]
    X = np.hstack([X, 0.1 * X, -7 * X])
    model = learn(X, y, 3)
    assert model.selected == [4, 14, 24]
    X[:, [4, 14]] = X[:, [14, 4]]
    assert learn(X, y, 3).selected == [4, 14, 24]
    assert learn(X[:, ::-1], y, 3).selected == [5, 15, 25]


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_mixing_the_columns_of_the_target(kernel):
    """Linear: invariant to invertible mixing of targets; otherwise to order, scale and offset."""
    rng = np.random.default_rng(7)
    X, Y = rng.normal(size=(50, 300)), rng.normal(size=(50, 6))
    Y += 2 * X[:, 10:16]
    if kernel == "linear":
        mixed = Y @ (rng.normal(size=(6, 6)) + 3 * np.eye(6)) + 5
    else:
        mixed = Y[:, ::-1] * [1.0, 2.0, 0.5, 10.0, 1e-3, 1e6] + 5
    first, second = (learn(X, target, 24, kernel=kernel) for target in (Y, mixed))
    assert first.selected == second.selected
    np.testing.assert_allclose(list(first.scores.values()), list(second.scores.values()), atol=1e-9)


def test_two_views_as_targets_of_each_other(dataset):
    X, _, Y2, _ = dataset("ml_emotions")
    X, Y = X.astype(float), Y2.astype(float)
    check(learn(X, Y, 12), reference.linear(X, Y, 12))
    check(learn(Y, X[:, :20], 6), reference.linear(Y, X[:, :20], 6))


# ------------------------------------------------------------------------------ the pool


def certified_is_true(model, picks):
    m = model.n_certified
    assert 0 <= m <= len(model.selected)
    assert model.selected[:m] == [j for j, _, _ in picks[:m]]
    np.testing.assert_allclose(
        [model.scores[name] for name in model.selected[:m]],
        [score for _, score, _ in picks[:m]],
        atol=1e-9,
    )
    first = model.rounds[model.selected[0]] if model.selected else 0
    assert [model.rounds[name] - first for name in model.selected[:m]] == [
        turn for _, _, turn in picks[:m]
    ]


@st.composite
def tasks(draw):
    """Return data of small whole numbers: ties, copies, opposites, constants, dependent columns."""
    n, p, c = draw(st.integers(3, 8)), draw(st.integers(1, 40)), draw(st.integers(1, 4))
    high = draw(st.sampled_from([1, 2, 40]))
    whole = st.integers(-high, high).map(float)
    X = draw(hnp.arrays(np.float64, (n, p), elements=whole))
    Y = draw(hnp.arrays(np.float64, (n, c), elements=whole))
    Y[0, 0] = Y[1:, 0].max() + 1
    for _ in range(draw(st.integers(0, 5))):
        i, j = draw(st.integers(0, p - 1)), draw(st.integers(0, p - 1))
        X[:, i] = draw(st.sampled_from([1.0, -1.0, 3.0])) * X[:, j]
    return X, Y


@pytest.mark.slow
@QUICK
@given(
    tasks(),
    st.integers(1, 8),
    st.integers(0, 6),
    st.sampled_from(["restart", "stop"]),
    st.sampled_from([1, 3, 1000]),
)
def test_certificates_are_correct(task, k, more, on_rank_exhausted, cut):
    X, Y = task
    model = ProjSe(
        k, max_candidates=k + more, on_rank_exhausted=on_rank_exhausted, target_type="numeric"
    )
    model.learn_target(Y)
    for start in range(0, X.shape[1], cut):
        model.learn_columns(X[:, start : start + cut])
    picks = reference.linear(X, Y, k, on_rank_exhausted)
    certified_is_true(model, picks)
    if X.shape[1] <= k + more:
        assert model.n_certified == len(picks)
        check(model, picks)


@pytest.mark.slow
@QUICK
@given(tasks(), st.integers(1, 6), st.integers(0, 4))
def test_certificates_without_a_target(task, k, more):
    X, _ = task
    model = learn(X, None, k, max_candidates=k + more)
    certified_is_true(model, reference.unsupervised(X, k))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("seed", range(4))
def test_certificates_on_noise(kernel, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(20, 800)), rng.normal(size=(20, 5))
    X[:, 700:] += Y @ rng.normal(size=(5, 100))  # the best are last
    picks = reference.kernel(X, Y, 15, kernel)
    for m in (15, 20, 100):
        certified_is_true(learn(X, Y, 15, kernel=kernel, max_candidates=m), picks)


@pytest.mark.parametrize(("m", "cut"), [(8, 1), (8, 500), (30, 7), (100, 50)])
@pytest.mark.parametrize("c", [1, 4])
def test_the_pool_is_refilled_round_by_round(m, cut, c):
    rng = np.random.default_rng(13)
    X, Y = rng.normal(size=(20, 400)), rng.normal(size=(20, c))
    X[:, 300:] += Y @ rng.normal(size=(c, 100))
    X[:, 33] = 1.0
    model = ProjSe(8, max_candidates=m)
    model.learn_target(Y)
    for start in range(0, 400, cut):
        model.learn_columns(X[:, start : start + cut])
    check(model, reference.pooled(X, Y, 8, m))


class CutByCutRanking(ProjSeRanking):
    """Ranking without the fast update of several cuts."""

    def batch_update(self, *_):
        return None


class CutByCut(ProjSe):
    """ProjSe that prunes its pool cut by cut, each by a new greedy selection."""

    def _new_pool(self, n, limit):
        pool = super()._new_pool(n, limit)
        pool.ranking = CutByCutRanking(pool.ranking.kernel)
        return pool


def pools(X, Y, k, cuts, **options):
    """Return the pools of a ProjSe and of a cut-by-cut one that learnt the same columns."""
    both = []
    for cls in (ProjSe, CutByCut):
        model = cls(k, **options)
        model.learn_target(Y)
        for start, stop in zip([0, *cuts], [*cuts, X.shape[1]], strict=True):
            model.learn_columns(X[:, start:stop])
        both.append((model._columns, model))
    return both


@pytest.mark.slow
@QUICK
@given(tasks(), st.integers(1, 6), st.integers(0, 4), st.lists(st.integers(0, 40), max_size=4))
def test_cached_cuts_equal_a_full_greedy_search(task, k, more, cuts):
    X, Y = task
    cuts = sorted(min(cut, X.shape[1]) for cut in cuts)
    options = {"max_candidates": k + more, "target_type": "numeric"}
    (one, model), (other, slow) = pools(X, Y, k, cuts, **options)
    assert one.names == other.names
    assert (one.admission_threshold, one.max_discarded_bound) == (
        other.admission_threshold,
        other.max_discarded_bound,
    )
    assert model.scores == slow.scores
    assert model.n_certified == slow.n_certified


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize(("n", "c"), [(9, None), (40, None), (9, 3), (40, 12), (40, 1)])
@pytest.mark.parametrize("m", [6, 15, 40])
def test_cached_cuts_on_noise(rng, kernel, n, c, m):
    X = rng.normal(size=(n, 500))
    X[:, 200:240] = -2 * X[:, :40]
    Y = None if c is None else rng.normal(size=(n, c))
    options = {"kernel": kernel, "max_candidates": m}
    (one, model), (other, slow) = pools(X, Y, 6, [1, 2, 90, 300], **options)
    assert one.names == other.names
    assert one.admission_threshold == pytest.approx(other.admission_threshold, rel=1e-12)
    assert one.max_discarded_bound == other.max_discarded_bound
    assert model.selected == slow.selected


@pytest.mark.parametrize("c", [None, 3, 7])
@pytest.mark.parametrize("m", [8, 20])
def test_cached_cuts_need_the_same_number_of_passes(rng, c, m):
    X = rng.normal(size=(30, 600))
    X[:, 200:240] = X[:, :40]
    Y = None if c is None else rng.normal(size=(30, c))
    (_, model), (_, slow) = pools(X, Y, 8, [], max_candidates=m, exact=True)
    assert model.selected == slow.selected == learn(X, Y, 8).selected
    assert model.n_passes == slow.n_passes
    assert model.n_certified == slow.n_certified == 8


@pytest.mark.parametrize("c", [None, 3])
def test_pools_continue_equally_without_cached_cuts(rng, c):
    # Files do not contain it, and errors discard it.
    X = rng.normal(size=(20, 300))
    Y = None if c is None else rng.normal(size=(20, c))
    model, bad = ProjSe(4, max_candidates=10), X.copy()
    bad[:, 290] = np.nan
    model.learn_target(Y)
    model.learn_columns(X[:, :100])
    copied = copy.deepcopy(model)
    with pytest.raises(ValueError, match="290"):
        model.learn_columns(bad[:, 100:])
    for each in (model, copied):
        each.learn_columns(X[:, 100:])
    assert model._columns.names == copied._columns.names
    assert model.scores == pytest.approx(copied.scores, rel=1e-12)


@pytest.mark.parametrize("name", ["glioma", "isolet"])
def test_a_pool_of_four_k_has_nearly_the_full_score(dataset, name):
    X, y, _, npz = dataset(name)
    labels = npz["classes"][y]
    batch = learn(X, labels, 25)
    pooled = learn(X, labels, 25, max_candidates=100)
    assert len(pooled.selected) == 25
    assert sum(pooled.scores.values()) >= 0.996 * sum(batch.scores.values())
    certified_is_true(pooled, [(j, s, 0) for j, s in batch.scores.items()][: pooled.n_certified])


# ----------------------------------------------------------------------------- exact=True


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("supervised", [True, False])
@pytest.mark.parametrize("m", [8, 30])
def test_exact_equals_batch(kernel, supervised, m):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(30, 900))
    X[:, 500:520] = X[:, :20]
    Y = X[:, 800:804] + 0.5 * rng.normal(size=(30, 4)) if supervised else None
    whole = learn(X, Y, 8, kernel=kernel)
    pooled = learn(X, Y, 8, kernel=kernel, max_candidates=m, exact=True)
    assert pooled.selected == whole.selected
    np.testing.assert_allclose(
        list(pooled.scores.values()), list(whole.scores.values()), atol=1e-10
    )
    assert pooled.rounds == whole.rounds
    assert pooled.n_certified == 8
    assert 1 <= pooled.n_passes <= 9
    assert whole.n_passes == 1


@pytest.mark.slow
@QUICK
@given(tasks(), st.integers(1, 7), st.integers(0, 3), st.booleans())
def test_exact_equals_batch_on_ties(task, k, more, supervised):
    X, Y = task
    options = {"max_candidates": k + more, "exact": True, "target_type": "numeric"}
    model = learn(X, Y if supervised else None, k, **options)
    picks = reference.linear(X, Y, k) if supervised else reference.unsupervised(X, k)
    check(model, picks)
    assert model.n_certified == len(picks)


def test_exact_takes_few_passes_on_real_data(dataset):
    X, y, _, npz = dataset("glioma")
    labels = npz["classes"][y]
    supervised = learn(X, labels, 25, max_candidates=100, exact=True)
    assert supervised.selected == learn(X, labels, 25).selected
    assert supervised.n_passes <= 4
    alone = learn(X, None, 25, max_candidates=100, exact=True)
    assert alone.selected == learn(X, None, 25).selected
    assert alone.n_passes <= 8


@pytest.mark.parametrize("c", [None, 1, 3])
@pytest.mark.parametrize("on_rank_exhausted", ["restart", "stop"])
def test_exact_over_several_rounds(rng, c, on_rank_exhausted):
    """Several rounds are exact, also if a third of the columns depends on others."""
    X = rng.normal(size=(12, 300))
    X[:, 100:200] = X[:, :100] @ rng.integers(-1, 2, (100, 100))
    X[:, 250:] = X[:, rng.integers(0, 20, 50)]
    Y = None if c is None else X[:, 260 : 260 + c] + 0.1 * rng.normal(size=(12, c))
    whole = learn(X, Y, 30, on_rank_exhausted=on_rank_exhausted)
    model = learn(X, Y, 30, on_rank_exhausted=on_rank_exhausted, max_candidates=30, exact=True)
    assert (model.selected, model.rounds) == (whole.selected, whole.rounds)
    assert model.n_certified == len(whole.selected)


@pytest.mark.parametrize("c", [None, 4])
def test_files_keep_certificates(rng, tmp_path, c):
    X = rng.normal(size=(30, 400))
    Y = None if c is None else rng.normal(size=(30, c))
    model = learn(X, Y, 8, max_candidates=10, exact=True)
    assert model.n_passes > 1
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.scores, again.rounds, again.n_certified) == (model.scores, model.rounds, 8)


def test_exact_stops_passes_early(rng):
    """The last pass ends as soon as all columns have been seen by the last changed stage."""
    X = rng.normal(size=(60, 1000))
    Y = rng.normal(size=(60, 12))
    model = learn(X, Y, 12, max_candidates=24, exact=True)
    assert model.selected == learn(X, Y, 12).selected
    assert model.n_certified == 12
    assert 2.0 < model.n_passes < 3.5
    assert model.n_passes != round(model.n_passes)


def test_exact_counts_columns_once():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(20, 500))
    X[:, 77] = 0.0
    y = rng.normal(size=20)
    model = learn(X, y, 5, max_candidates=10, exact=True)
    assert model.n_columns == 500
    assert model.n_constant == 1


def test_exact_requires_a_reiterable_source():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(20, 100))
    model = ProjSe(5, max_candidates=10, exact=True)
    model.learn_target(X[:, 0])
    with pytest.raises((ValueError, TypeError), match="again"):
        model.learn_columns((j, X[:, j]) for j in range(100))


# ---------------------------------------------------------------------------------- merge


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("supervised", [True, False])
def test_merge_equals_the_whole(kernel, supervised):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(25, 90))
    y = rng.normal(size=(25, 3)) if supervised else None
    left, right = ProjSe(12, kernel=kernel), ProjSe(12, kernel=kernel)
    for model, part in ((left, range(40)), (right, range(40, 90))):
        model.learn_target(y)
        model.learn_columns(X[:, part], names=list(part))
    left.merge(right)
    whole = learn(X, y, 12, kernel=kernel)
    assert left.selected == whole.selected
    np.testing.assert_allclose(list(left.scores.values()), list(whole.scores.values()), atol=1e-12)
    assert left.n_columns == 90
    assert left.noise_floor() == pytest.approx(whole.noise_floor(), nan_ok=True)


@pytest.mark.slow
@QUICK
@given(tasks(), st.integers(1, 5), st.integers(0, 4), st.integers(0, 40))
def test_certificates_of_merged_pools_are_correct(task, k, more, cut):
    X, Y = task
    cut = min(cut, X.shape[1])
    models = [ProjSe(k, max_candidates=k + more, target_type="numeric") for _ in range(2)]
    for model, part in zip(models, (range(cut), range(cut, X.shape[1])), strict=True):
        model.learn_target(Y)
        model.learn_columns(X[:, part], names=list(part))
    models[0].merge(models[1])
    certified_is_true(models[0], reference.linear(X, Y, k))


# ------------------------------------------------------------------------------ transform


def test_transform_selects_in_order():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(30, 10))
    names = [f"v{j}" for j in range(10)]
    model = ProjSe(3)
    row = dict(zip(names, X[0].tolist(), strict=True))
    assert model.transform_one(row) == row
    model.learn_target(X[:, 7] + 0.3 * X[:, 2])
    model.learn_columns(X, names=names)
    assert model.selected[0] == "v7"
    assert model.transform_one(row) == {name: row[name] for name in model.selected}
    assert model.transform_one({"v7": 1.0, "other": 2.0}) == {"v7": 1.0}


@given(seed=st.integers(0, 10_000), p=st.integers(0, 40), limit=st.integers(1, 45))
def test_sorted_rounds_equal_searched_ones(seed, p, limit):
    """Sorting equals searching for equal scores, nearly equal ones, and zeros."""
    rng = np.random.default_rng(seed)
    scores = rng.random(p) if seed % 4 == 0 else np.round(rng.random(p), 1)
    if seed % 4 == 2:
        scores *= 1.0 + 4e-13 * rng.normal(size=p)
    ranked = _ranked(scores, limit)
    indices, found = np.empty(limit, dtype=np.int64), np.empty(limit)
    n = pick_greedily_1d(scores.copy(), TIE_RTOL, ZERO_TOL, indices, found)
    assert ranked == (indices[:n].tolist(), found[:n].tolist()) or (
        ranked is None and seed % 4 == 2
    )
