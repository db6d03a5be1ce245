"""Sparse, robust and probabilistic PCA: close to the optimum over all columns at once."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import subspace_angles
from sklearn.decomposition import SparsePCA as Batch

from streamsel import ProbabilisticPCA, RobustPCA, SparsePCA, load, save
from streamsel._kernels.lasso import _median
from streamsel.stream import as_stream, iter_columns
from tests.reference import probabilistic_pca, robust_pca, sparse_pca

LEARNERS = {SparsePCA: sparse_pca, RobustPCA: robust_pca, ProbabilisticPCA: probabilistic_pca}
every_learner = pytest.mark.parametrize("learner", LEARNERS)


def planted(rng, n=200, p=1000, q=5, noise=0.1):
    """Return columns that depend on q hidden variables, and a basis of the span of these."""
    low = rng.normal(size=(n, q)) @ rng.normal(size=(q, p))
    basis = np.linalg.svd(low - low.mean(axis=0), full_matrices=False)[0][:, :q]
    return low + noise * rng.normal(size=(n, p)), basis


def axes(X, q):
    """Return the principal axes of the observations, and all eigenvalues."""
    E, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return E[:, :q], s**2


def degrees(Z, basis):
    """Return the largest principal angle between two spaces, in degrees."""
    return float(np.degrees(subspace_angles(Z, basis)[0]))


def share(X, Z, q):
    """Return the variance in the components' space as a share of that of principal components."""
    basis = np.linalg.qr(Z)[0]
    return np.square((X - X.mean(axis=0)).T @ basis).sum() / axes(X, q)[1][:q].sum()


def real(dataset, name):
    """Return real columns, with intensities as logarithms."""
    X = dataset(name)[0].astype(float)
    return np.log(X) if name == "colon_alon" else X


def with_gaps(rng, X, part=0.2):
    return np.where(rng.random(X.shape) < part, np.nan, X)


# ------------------------------------------------------------------------------- the definition


@every_learner
def test_answers_equal_the_definition_after_every_batch(learner, rng):
    """Answers after every batch equal the definition, also while a component is missing."""
    X, _ = planted(rng, 12, 40, 3, noise=0.5)
    model = learner(3, batch_size=8)
    for stop in range(8, 41, 8):
        model.learn_columns(X[:, stop - 8 : stop], range(stop - 8, stop))
        answer = LEARNERS[learner].answer(X[:, :stop], None, n_components=3, batch_size=8)
        assert list(model.loadings) == list(answer["loadings"])
        Z = model.embedding
        up = np.sign(np.einsum("ik,ik->k", Z, answer["embedding"]))
        np.testing.assert_allclose(Z * up, answer["embedding"], atol=1e-8)
        found = [list(row.values()) for row in model.loadings.values()]
        for mine, theirs in zip(found, answer["loadings"].values(), strict=True):
            np.testing.assert_allclose(np.abs(mine), np.abs([*theirs.values()]), atol=1e-8)


def test_answers_with_missing_values(rng):
    X = with_gaps(rng, planted(rng, 15, 40, 2, noise=0.5)[0])
    model = ProbabilisticPCA(2, batch_size=16)
    model.learn_columns(X)
    answer = probabilistic_pca.answer(X, None, n_components=2, batch_size=16)
    Z = model.embedding
    up = np.sign(np.einsum("ik,ik->k", Z, answer["embedding"]))
    np.testing.assert_allclose(Z * up, answer["embedding"], atol=1e-8)


def test_loadings_of_a_pruned_pool(rng):
    """A pruned pool has the loadings of the columns of largest variance."""
    X = planted(rng, 30, 60, 2)[0] * rng.uniform(0.5, 2.0, 60)
    model = ProbabilisticPCA(2, batch_size=8, max_loadings=10)
    model.learn_columns(X)
    answer = probabilistic_pca.answer(X, None, n_components=2, batch_size=8, max_loadings=10)
    assert list(model.loadings) == list(answer["loadings"])
    found = [abs(w) for row in model.loadings.values() for w in row.values()]
    expected = [abs(w) for row in answer["loadings"].values() for w in row.values()]
    np.testing.assert_allclose(found, expected, atol=1e-8)


@every_learner
@pytest.mark.parametrize("scale", [1e-100, 1e120])
def test_columns_of_different_scales(learner, scale, rng):
    """Scales do not matter; after columns of far smaller scale, learning restarts."""
    X, basis = planted(rng, 50, 100, 2)
    plain, scaled, late = (learner(2, batch_size=20) for _ in range(3))
    plain.learn_columns(X)
    scaled.learn_columns(X * 2.0 ** np.round(np.log2(scale)))
    np.testing.assert_allclose(scaled.embedding, plain.embedding, atol=1e-12)
    late.learn_columns(rng.normal(size=(50, 20)) * scale * 1e-30)
    late.learn_columns(X * scale, range(20, 120))
    assert degrees(late.embedding, basis) < 3.0


@given(
    arrays(np.float64, st.integers(1, 40), elements=st.sampled_from([0.0, 1.0, 1e-300, 0.1, 7e99]))
)
def test_the_median_equals_numpy(sizes):
    np.testing.assert_allclose(_median(sizes), np.median(sizes), rtol=1e-15)


# ------------------------------------------------------------------------ batch references


def test_complete_data_have_the_maximum_likelihood_solution(rng):
    """Without missing values, the solution is that of maximum likelihood."""
    X, _ = planted(rng, 100, 4000, 3, noise=0.5)
    model = ProbabilisticPCA(3)
    model.learn_columns(X)
    E, eigenvalues = axes(X, 3)
    assert degrees(model.embedding, E) < 0.5
    likeliest = eigenvalues[3:].sum() / (100 - 1 - 3) / 4000
    assert model.noise_variance == pytest.approx(likeliest, rel=0.02)
    Z = model.embedding
    np.testing.assert_allclose(Z.T @ Z / 100, np.eye(3), atol=1e-10)
    variances = [np.square(E[:, k] @ X).sum() for k in range(3)]
    assert variances == sorted(variances, reverse=True)
    # Each component is one axis.
    assert np.abs(np.einsum("ik,ik->k", Z / 10.0, E)).min() > 0.999


def objective(X, D, W, bar):
    """Return the objective of sparse PCA; D has mean square at most 1."""
    left = np.square(X - D @ W.T).sum() / 2.0 / len(X)
    return left + bar * np.abs(W).sum()


@pytest.mark.slow
def test_sparse_components_are_close_to_the_batch_optimum(rng):
    """The objective is close to that of scikit-learn's batch algorithm at convergence."""
    n, p, q, alpha = 60, 800, 3, 0.2
    hidden = rng.normal(size=(n, q)) * [3.0, 2.0, 1.5]
    W = np.where(rng.random((p, q)) < 0.3, rng.normal(size=(p, q)), 0.0)
    X = hidden @ W.T + rng.normal(size=(n, p))
    X -= X.mean(axis=0)
    model = SparsePCA(q, alpha=alpha, batch_size=100, max_loadings=p)
    model.learn_columns(X)
    bar = alpha * np.sqrt(np.square(X).mean())
    mine = model._solution_on_columns().encode(model._coder, X.T)
    batch = Batch(q, alpha=bar * np.sqrt(n), random_state=0, max_iter=2000, tol=1e-10).fit(X)
    D = batch.transform(X)
    # Refit scikit-learn's solution: the best components for its shrunken loadings.
    theirs = batch.components_.T * np.sqrt(np.square(D).mean(axis=0))
    D = D / np.sqrt(np.square(D).mean(axis=0))
    for _ in range(200):
        theirs = lasso(X, D, theirs, bar)
        D = blockwise(X, D, theirs)
    assert objective(X, model.embedding, mine, bar) < 1.02 * objective(X, D, theirs, bar)


def lasso(X, D, W, bar):
    """Return improved codes, by coordinate descent."""
    W = W.copy()
    for k in range(W.shape[1]):
        g = D[:, k] @ D[:, k] / len(X)
        whole = (X - D @ W.T).T @ D[:, k] / len(X) + g * W[:, k]
        W[:, k] = np.sign(whole) * np.maximum(np.abs(whole) - bar, 0.0) / g
    return W


def blockwise(X, D, W):
    """Return improved components, by block coordinate descent."""
    D = D.copy()
    for k in range(D.shape[1]):
        D[:, k] += (X - D @ W.T) @ W[:, k] / (W[:, k] @ W[:, k])
        D[:, k] /= max(1.0, np.sqrt(np.square(D[:, k]).mean()))
    return D


def test_sparse_loadings_recover_planted_groups(rng):
    """Sparse loadings recover the planted groups, with about one loading per variable."""
    n, p, q = 300, 500, 5
    of = rng.permutation(p) % q
    W = np.where(of[:, None] == np.arange(q), rng.uniform(0.8, 1.5, (p, q)), 0.0)
    X = rng.normal(size=(n, q)) @ W.T + 0.3 * rng.normal(size=(n, p))
    model = SparsePCA(q, alpha=0.2, batch_size=64)
    model.learn_columns(X)
    found = [[*row] for row in model.loadings.values()]
    assert sum(map(len, found)) <= 1.05 * p
    # Variables of the same hidden variable have the same component.
    names = np.array([row[0] for row in found])
    for k in range(q):
        assert len({*names[of == k]}) == 1
    assert share(X, model.transform_many(X), q) > 0.95


@pytest.mark.parametrize("name", ["sonar", "isolet", "colon_alon"])
def test_sparse_components_of_real_columns(name, dataset):
    """Half of the loadings explain 95 % of the variance of ten principal components."""
    X = real(dataset, name)
    model = SparsePCA(10, max_loadings=X.shape[1])
    model.learn_columns(X)
    n_loadings = sum(len(row) for row in model.loadings.values())
    assert n_loadings < 0.5 * 10 * X.shape[1]
    assert share(X, model.transform_many(X), 10) > 0.95


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_gross_errors_do_not_rotate_the_components(noise, rng):
    """Gross errors in 5 % of the values rotate principal components, but not robust ones."""
    X, basis = planted(rng, noise=noise)
    wrong = rng.random(X.shape) < 0.05
    X[wrong] += rng.uniform(-30.0, 30.0, wrong.sum())
    robust, plain = RobustPCA(5, batch_size=64), ProbabilisticPCA(5, batch_size=64)
    for model in (robust, plain):
        model.learn_columns(X)
    assert degrees(axes(X, 5)[0], basis) > 5.0
    assert degrees(plain.embedding, basis) > 5.0
    assert degrees(robust.embedding, basis) < 0.5
    assert robust.outlier_share == pytest.approx(0.05, abs=0.01)


def test_errors_of_one_sign(rng):
    """Errors of one sign do not shift the means."""
    X, basis = planted(rng)
    X[rng.random(X.shape) < 0.05] += 20.0
    model = RobustPCA(5, batch_size=64)
    model.learn_columns(X)
    assert degrees(axes(X, 5)[0], basis) > 8.0
    assert degrees(model.embedding, basis) < 1.5


# -------------------------------------------------------------------------- missing values


@pytest.mark.parametrize("name", ["sonar", "isolet", "colon_alon"])
def test_imputation_of_real_columns_is_better_than_means(name, dataset, rng):
    whole = real(dataset, name)
    X = with_gaps(rng, whole)
    model = ProbabilisticPCA(10)
    model.learn_columns(X)
    filled, lacking = model.impute(X), np.isnan(X)
    np.testing.assert_array_equal(filled[~lacking], whole[~lacking])
    by_means = np.where(lacking, np.nanmean(X, axis=0), X)
    mine, theirs = (np.square((part - whole)[lacking]).sum() for part in (filled, by_means))
    assert mine < 0.5 * theirs


def of_means(rng, whole):
    """Return the squared error of imputation relative to that of column means."""
    X = with_gaps(rng, whole)
    varying = np.nanstd(X, axis=0) > 0.0
    X, whole = X[:, varying], whole[:, varying]
    X, whole = X / whole.std(axis=0), whole / whole.std(axis=0)
    model = ProbabilisticPCA(10)
    model.learn_columns(X)
    lacking = np.isnan(X)
    mine, theirs = (
        np.square((part - whole)[lacking]).sum()
        for part in (model.impute(X), np.broadcast_to(np.nanmean(X, axis=0), X.shape))
    )
    return mine / theirs


@pytest.mark.parametrize("name", ["spambase", "mnist_10k"])
def test_imputation_of_heavy_tailed_columns_is_accurate(name, dataset, rng):
    """Outlying observations do not spoil the imputation of heavy-tailed real columns."""
    X = real(dataset, name)
    assert of_means(rng, X[rng.permutation(len(X))[:800]]) < 1.05


def test_imputation_of_counts(rng):
    """Counts are imputed better than by column means, owing to the prior on components."""
    ratios = []
    for _ in range(4):
        rates = np.exp(rng.normal(size=(400, 3)) @ rng.normal(size=(3, 60)) - 2.0)
        ratios.append(of_means(rng, rng.poisson(rates).astype(float)))
    assert np.mean(ratios) < 0.85


def test_imputed_values_are_within_the_observed_range(rng):
    X = np.exp(2.0 * rng.normal(size=(60, 40)))
    gaps = with_gaps(rng, X)
    model = ProbabilisticPCA(5)
    model.learn_columns(gaps)
    filled = model.impute(gaps)
    assert (filled >= np.nanmin(gaps, axis=0)).all()
    assert (filled <= np.nanmax(gaps, axis=0)).all()


def test_few_columns_with_missing_values_have_all_components(rng):
    """Columns with few missing values have all components, despite the prior."""
    X, _ = planted(rng, 15, 40, 2, noise=0.5)
    model = ProbabilisticPCA(2, batch_size=16)
    model.learn_columns(with_gaps(rng, X))
    assert model.embedding.any(axis=0).all()


def test_one_missing_value_hardly_changes_the_components(rng):
    """One missing value hardly changes the components."""
    X, _ = planted(rng, 100, 500, 3, noise=0.5)
    whole, gap = ProbabilisticPCA(3), ProbabilisticPCA(3)
    whole.learn_columns(X)
    X[7, 400] = np.nan
    gap.learn_columns(X)
    assert degrees(gap.embedding, whole.embedding) < 0.1
    assert gap.noise_variance == pytest.approx(whole.noise_variance, rel=1e-3)


def test_imputed_data_have_the_form_of_the_input(rng):
    X = with_gaps(rng, planted(rng, 40, 60, 2)[0])
    X[:, 7] = 3.0
    X[4, 7] = np.nan
    model = ProbabilisticPCA(2)
    model.learn_columns(X[:, :50])
    filled = model.impute(X)
    assert filled.shape == X.shape
    assert np.isfinite(filled).all()
    assert filled[4, 7] == 3.0
    stream = model.impute(as_stream(X))
    for _ in range(2):  # it is re-iterable, as is its source
        np.testing.assert_array_equal(np.hstack([b.values for b in stream.blocks()]), filled)
    pairs = list(model.impute([("a", X[:, 0])]))
    assert pairs[0][0] == "a"
    np.testing.assert_allclose(pairs[0][1], filled[:, 0], rtol=1e-12)
    np.testing.assert_array_equal(np.isnan(X[:, 0]), with_gaps_of(X[:, 0]))


def with_gaps_of(x):
    return ~np.isfinite(x)


def test_invalid_imputations_are_refused(rng):
    X, _ = planted(rng, 20, 30, 2)
    model = ProbabilisticPCA(2)
    with pytest.raises(ValueError, match="learn_columns"):
        model.impute(X)
    model.learn_columns(X)
    for bad in (np.inf, np.nan):
        x = np.full(20, bad)
        with pytest.raises(ValueError, match="column 'bad'"):
            list(model.impute([("bad", x)]))
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match="column 'bad'"):
            model.learn_column("bad", x)
        assert pickle.dumps(model) == before
    model.learn_one({0: 1.0})
    with pytest.raises(ValueError, match="learnt rows"):
        model.impute(X)


def test_missing_values_are_kept_in_copies_and_files(rng, tmp_path):
    X = with_gaps(rng, planted(rng, 30, 50, 2)[0])
    model = ProbabilisticPCA(2, batch_size=16)
    model.learn_columns(X[:, :40])
    save(model, tmp_path / "model")
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), load(tmp_path / "model")]  # noqa: S301
    for one in (model, *copies):
        one.learn_columns(X[:, 40:])
    for other in copies:
        np.testing.assert_array_equal(other.embedding, model.embedding)
        assert other.loadings == model.loadings


# --------------------------------------------------------------------------- a second pass


@every_learner
def test_loadings_by_a_second_pass(learner, rng):
    """A second pass computes loadings of all or the largest columns by the final components."""
    X, _ = planted(rng, 60, 300, 3, noise=0.3)
    whole, few = learner(3, max_loadings=400), learner(3, max_loadings=50)
    for model in (whole, few):
        model.learn_columns(X)
    before = whole.loadings
    whole.learn_loadings(X)
    assert whole.loadings == before
    assert few._wants_second_pass
    few.learn_loadings(X)
    assert not few._wants_second_pass
    assert len(few.loadings) <= 50
    coded = whole._solution_on_columns().encode(whole._coder, (X - X.mean(axis=0)).T)
    largest = np.argsort(-np.square(coded).sum(axis=1))[:50]
    assert {*few.loadings} <= {*largest.tolist()}
    for wrong in (X[:, :-1], X[:, ::-1].copy(), X + 1.0):
        with pytest.raises(ValueError, match="same columns"):
            few.learn_loadings(wrong)
    few.learn_column("one more", X[:, 0] ** 2)
    assert few._wants_second_pass


# ------------------------------------------------------------------------------- rows


@every_learner
@pytest.mark.parametrize("begin", ["rows", "columns"])
def test_rows_find_the_same_space(learner, begin, rng):
    """Rows lead to the same space, from the start or after columns; components keep directions."""
    n, p, q = 600, 30, 3
    X = rng.normal(size=(n, q)) * [4.0, 3.0, 2.0] @ rng.normal(size=(q, p)) + 5.0
    X += 0.3 * rng.normal(size=(n, p))
    model, first = learner(q, batch_size=64), 0
    if begin == "columns":
        model.learn_columns(X[:200])
        first = 200
        before = model.transform_many(X)
    for x in X[first:400].tolist():
        model.learn_one(dict(enumerate(x)))
    model.learn_many(X[400:])
    Z = model.transform_many(X)
    if begin == "columns":
        same = [np.corrcoef(Z[:, k], before[:, k])[0, 1] for k in range(q)]
        assert min(same) > 0.98
    model.refresh()
    assert degrees(model.transform_many(X), axes(X, q)[0]) < 4.0


def test_rows_with_missing_values_and_gross_errors(rng):
    """Missing values are ignored, and gross errors have little weight."""
    n, p, q = 1600, 20, 2
    X = rng.normal(size=(n, q)) @ rng.normal(size=(q, p)) + 0.1 * rng.normal(size=(n, p))
    best = np.linalg.svd(X - X.mean(axis=0))[2][:q].T
    wrong = np.where(rng.random(X.shape) < 0.02, rng.uniform(-20.0, 20.0, X.shape), X)

    def off(learner, seen):
        model = learner(q, batch_size=64)
        model.learn_many(seen)
        weights = [[*model.loadings[j].values()] for j in range(p)]
        return degrees(np.array(weights), best)

    assert off(ProbabilisticPCA, with_gaps(rng, X)) < 0.5
    assert off(RobustPCA, wrong) < 1.0
    assert off(ProbabilisticPCA, wrong) > 2.5


@every_learner
def test_rows_follow_a_drift(learner, rng):
    """With fading, components follow a drift."""
    q, p = 2, 12
    old, new = (rng.normal(size=(q, p)) for _ in range(2))
    model = learner(q, fading_factor=0.01, batch_size=50)
    for loadings in (old, new):
        X = rng.normal(size=(1500, q)) @ loadings + 0.1 * rng.normal(size=(1500, p))
        model.learn_many(X)
        model.refresh()
        assert degrees(model.transform_many(X), axes(X, q)[0]) < 6.0


@every_learner
def test_merged_rows_of_two_models(learner, rng):
    q, p = 2, 12
    X = rng.normal(size=(600, q)) @ rng.normal(size=(q, p)) + 0.1 * rng.normal(size=(600, p))
    one, other = learner(q), learner(q)
    one.learn_many(X[:250])
    other.learn_many(X[250:])
    one.merge(other, along="rows")
    one.refresh()
    assert one.n_rows == 600
    assert degrees(one.transform_many(X), axes(X, q)[0]) < 4.0


@every_learner
def test_components_beyond_the_rank_are_zero(learner, rng):
    """Components beyond the rank are 0."""
    X = rng.normal(size=(5, 40))
    model = learner(8)
    model.learn_columns(X)
    assert model.embedding.shape == (5, 8)
    assert not model.embedding[:, 4:].any()
    assert len(model.transform_one({0: 1.0})) == 8
    for x in np.outer(rng.normal(size=50), [1.0, 2.0]).tolist():
        model.learn_one(dict(enumerate(x)))
    assert np.isfinite(list(model.transform_one({0: 1.0, 1: 3.0}).values())).all()


def test_single_columns_with_missing_values(rng):
    X = with_gaps(rng, planted(rng, 30, 50, 2)[0])
    one, many = ProbabilisticPCA(2, batch_size=16), ProbabilisticPCA(2, batch_size=16)
    for j, x in enumerate(X.T):
        one.learn_column(j, x)
    many.learn_columns(iter_columns(enumerate(X.T)))
    np.testing.assert_array_equal(one.embedding, many.embedding)


@pytest.mark.parametrize("seed", [15, 45, 51])
@pytest.mark.parametrize("learner", [ProbabilisticPCA, RobustPCA])
def test_void_components_are_equal_by_single_rows(learner, seed):
    """Void components do not depend on rounding, so that `learn_one` equals `learn_many`."""
    rng = np.random.default_rng(seed)
    n, p, rank = (int(rng.integers(*ends)) for ends in ((60, 250), (3, 15), (1, 4)))
    X = np.round(rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p)) + 1.0)
    one, many = learner(p + 1, warm_up=10), learner(p + 1, warm_up=10)
    for x in X:
        one.learn_one(dict(enumerate(x)))
    many.learn_many(X)
    Z = one.transform_many(X)
    np.testing.assert_allclose(many.transform_many(X), Z, rtol=0.0, atol=1e-6 * np.abs(Z).max())
    rows = [list(one.transform_one(dict(enumerate(x))).values()) for x in X]
    np.testing.assert_allclose(rows, Z, rtol=0.0, atol=1e-12 * np.abs(Z).max())
