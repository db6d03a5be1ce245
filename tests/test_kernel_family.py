"""KernelPCA and LaplacianEigenmaps: against scikit-learn, graphs of known spectra, new rows."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from river import compose, datasets, evaluate, linear_model, metrics, preprocessing
from scipy.spatial.distance import cdist
from sklearn.decomposition import KernelPCA as Peer

from streamsel import PCA, KernelPCA, LaplacianEigenmaps, RandomFourier, RidgeComponents, load, save
from streamsel.base import embedder
from streamsel.extraction import _eigen
from streamsel.extraction._eigen import lowest_laplacian_eigenpairs
from tests.reference.alignment import alignment

LEARNERS = [KernelPCA, LaplacianEigenmaps]
KERNELS = {
    "rbf": {},
    "rbf of a gamma": {"gamma": 0.003},
    "poly": {"kernel": "poly"},
    "square": {"kernel": "poly", "degree": 2, "coef0": 0.0, "gamma": 0.01},
}


def columns(n=60, p=150, seed=0):
    """Return columns of unequal variances and means, (n, p)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) * rng.gamma(1.0, 1.0, size=p) + 10.0 * rng.normal(size=p)


def learnt(cls, X, **params):
    model = cls(**{"n_components": 4} | params)
    model.learn_columns(X)
    return model


def peers(X, X_new, n_components=4, kernel="rbf", gamma=None, degree=3, coef0=1.0):
    """Return scikit-learn's components of the rows learnt, and of new ones."""
    gamma = 1.0 / X.var(axis=0).sum() if gamma is None else gamma
    peer = Peer(
        n_components, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, eigen_solver="dense"
    )
    Z = peer.fit_transform(X - X.mean(axis=0))
    return Z, peer.transform(X_new - X.mean(axis=0))


# ------------------------------------------------------------------------------------ KernelPCA


@pytest.mark.parametrize("params", KERNELS.values(), ids=KERNELS)
def test_components_equal_scikit_learn(params):
    """Components equal scikit-learn's up to signs, also of new rows, from columns or landmarks."""
    X, new = columns(), columns(9, seed=1)
    model = learnt(KernelPCA, X, **params)
    Z, of_new = peers(X, new, **params)
    signs = np.sign((model.embedding * Z).sum(axis=0))
    np.testing.assert_allclose(model.embedding, Z * signs, atol=1e-9 * np.abs(Z).max())
    for found in (model.transform_columns(X, new), model.transform_many(new)):
        np.testing.assert_allclose(found, of_new * signs, atol=1e-9 * np.abs(Z).max())
    one = [list(model.transform_one(dict(enumerate(x))).values()) for x in new.tolist()]
    np.testing.assert_allclose(one, of_new * signs, atol=1e-9 * np.abs(Z).max())


def test_many_rows_are_solved_for_a_few_components(monkeypatch):
    X = columns(120)
    whole = learnt(KernelPCA, X).embedding
    monkeypatch.setattr(_eigen, "_LARGE_SIZE", 50)
    monkeypatch.setattr(_eigen, "_SMALL_SHARE", 0.5)
    np.testing.assert_allclose(learnt(KernelPCA, X).embedding, whole, atol=1e-10)


@settings(max_examples=15)
@given(
    shift=st.floats(-1e6, 1e6), scale=st.sampled_from([1e-120, 1e-3, 1e100]), seed=st.integers(0, 9)
)
def test_automatic_gamma_ignores_scale_and_offset(shift, scale, seed):
    X = columns(12, 20, seed)
    before = learnt(KernelPCA, X, n_components=2).embedding
    after = learnt(KernelPCA, (X + shift) * scale, n_components=2).embedding
    np.testing.assert_allclose(after, before, atol=1e-7)


def test_non_finite_kernel_values_are_refused():
    X = columns(12, 20) * 1e60
    model = learnt(KernelPCA, X, kernel="poly", gamma=1.0)
    with pytest.raises(ValueError, match=r"finite values[\s\S]*gamma=None"):
        model.embedding  # noqa: B018
    # With a huge gamma the kernel matrix is the identity.
    Z = learnt(KernelPCA, X, gamma=1e300, n_components=11).embedding
    np.testing.assert_allclose(Z @ Z.T, np.eye(12) - 1.0 / 12, atol=1e-12)


def test_components_beyond_the_rank_are_void():
    """Components beyond the rank are missing in the embedding, and 0 in transforms."""
    X = columns(4)
    model = learnt(KernelPCA, X, n_components=6)
    assert model.embedding.shape == (4, 3)
    assert list(model.relevance) == ["kernelpca0", "kernelpca1", "kernelpca2"]
    found = model.transform_many(X)
    np.testing.assert_allclose(found[:, :3], model.embedding, atol=1e-10)
    assert not found[:, 3:].any()
    assert not model.transform_columns(X, X)[:, 3:].any()


# ------------------------------------------------------------- graphs whose spectra are known


def path(n):
    return np.eye(n, k=1) + np.eye(n, k=-1)


def cycle(n):
    A = path(n)
    A[0, -1] = A[-1, 0] = 1.0
    return A


def complete(n):
    return np.ones((n, n)) - np.eye(n)


def star(n):
    A = np.zeros((n, n))
    A[0, 1:] = A[1:, 0] = 1.0
    return A


# Eigenvalues of L = D - A of these graphs, after the 0 of the constant vector.
SPECTRA = {
    "path": (path, lambda n: 2.0 - 2.0 * np.cos(np.pi * np.arange(1, n) / n)),
    "cycle": (cycle, lambda n: np.sort(2.0 - 2.0 * np.cos(2.0 * np.pi * np.arange(1, n) / n))),
    "complete": (complete, lambda n: np.full(n - 1, float(n))),
    "star": (star, lambda n: np.r_[np.ones(n - 2), float(n)]),
}


def of_graph(A, q, **params):
    model = LaplacianEigenmaps(q, **params)
    model.learn_graph(A)
    return model.embedding


def laplacian(A):
    return np.diag(A.sum(axis=1)) - A


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [3, 8, 31])
@pytest.mark.parametrize("name", SPECTRA)
def test_known_spectra(name, n, sparse):
    build, values = SPECTRA[name]
    A, q = build(n), min(6, n - 1)
    Z = of_graph(sp.csc_matrix(A) if sparse else A, q)
    assert Z.shape == (n, q)
    np.testing.assert_allclose(Z.T @ Z, np.eye(q), atol=1e-12)
    np.testing.assert_allclose(Z.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(laplacian(A) @ Z, Z * values(n)[:q], atol=1e-11)


def test_eigenvectors_of_a_path_are_cosines():
    n = 40
    Z = of_graph(path(n), 2)
    for k in range(2):
        wave = np.cos(np.pi * (k + 1) * (np.arange(n) + 0.5) / n) * np.sqrt(2.0 / n)
        np.testing.assert_allclose(Z[:, k], wave, atol=1e-12)  # its first entry is the largest


@pytest.mark.parametrize("name", SPECTRA)
def test_scale_of_weights_does_not_matter(name):
    A = SPECTRA[name][0](9)
    np.testing.assert_allclose(of_graph(7.0 * A, 3), of_graph(A, 3), atol=1e-12)


def test_a_disconnected_graph():
    """The first components are constant on each part of a graph; the next vary within parts."""
    A = np.zeros((12, 12))
    A[:6, :6], A[6:9, 6:9], A[9:, 9:] = path(6), complete(3), path(3)
    Z = of_graph(A, 4)
    np.testing.assert_allclose(laplacian(A) @ Z[:, :2], 0.0, atol=1e-12)
    for part in (slice(6), slice(6, 9), slice(9, 12)):
        np.testing.assert_allclose(np.ptp(Z[part, :2], axis=0), 0.0, atol=1e-12)
    assert len({tuple(row) for row in Z[[0, 6, 9], :2].round(9).tolist()}) == 3
    np.testing.assert_allclose(Z.T @ Z, np.eye(4), atol=1e-12)
    # The path of six has the smallest nonzero eigenvalue.
    assert not Z[6:, 2].any()
    lonely = of_graph(np.zeros((5, 5)), 3)
    np.testing.assert_allclose(lonely.T @ lonely, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("build", [path, cycle, star], ids=["path", "cycle", "star"])
def test_many_observations_are_solved_for_a_few_components(build, monkeypatch):
    A = sp.block_diag([sp.csr_array(build(90)), build(40)], format="csr")
    whole = lowest_laplacian_eigenpairs(A, 5)
    monkeypatch.setattr(_eigen, "_LARGE_SIZE", 50)
    monkeypatch.setattr(_eigen, "_SMALL_SHARE", 0.5)
    few = lowest_laplacian_eigenpairs(A, 5)
    np.testing.assert_allclose(few[0], whole[0], atol=1e-12)
    # For a star, only part of the equal eigenvalues' space is found.
    if build is not star:
        np.testing.assert_allclose(few[1], whole[1], atol=1e-8)


@settings(max_examples=25)
@given(n=st.integers(3, 9), seed=st.integers(0, 99))
def test_rounding_does_not_change_the_basis(n, seed):
    """Rounding errors in the weights do not change components, also of equal eigenvalues."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.integers(0, 2, size=(n, n)), 1) * 1.0
    A += A.T
    off = 1e-15 * rng.normal(size=(n, n)) * (A > 0.0)
    q = min(3, n - 1)
    np.testing.assert_allclose(of_graph(A + off + off.T, q), of_graph(A, q), atol=1e-6)


def test_failed_lanczos_falls_back_to_the_full_solver(monkeypatch):
    def eigsh(*_, **__):
        raise _eigen.ArpackError(-9999)

    X = columns(120)
    expected = [learnt(cls, X).embedding for cls in LEARNERS]
    for name, value in {"_LARGE_SIZE": 50, "_SMALL_SHARE": 0.5, "eigsh": eigsh}.items():
        monkeypatch.setattr(_eigen, name, value)
    for cls, embedding in zip(LEARNERS, expected, strict=True):
        np.testing.assert_allclose(learnt(cls, X).embedding, embedding, atol=1e-10)


# --------------------------------------------------------------- neighbours from the columns


def neighbours(X, k):
    """Return the neighbour graph by definition: j is among the k nearest of i, or i of j."""
    n = len(X)
    A = np.zeros((n, n))
    D = cdist(X, X, "sqeuclidean")
    for i in range(n):
        others = np.sort(np.delete(D[i], i))
        for j in range(n):
            if i != j and D[i, j] <= others[min(k, n - 1) - 1] + 1e-9 * D[i].max():
                A[i, j] = A[j, i] = 1.0
    return A


@pytest.mark.parametrize("k", [1, 3, 100])
@pytest.mark.parametrize("kind", ["normal", "a grid"])
def test_the_graph_is_that_of_nearest_neighbours(kind, k):
    X = columns(25) if kind == "normal" else np.argwhere(np.ones((5, 5))) * 1.0
    found = learnt(LaplacianEigenmaps, X, n_neighbors=k).embedding
    np.testing.assert_allclose(found, of_graph(neighbours(X, k), 4), atol=1e-8)


def test_new_rows_are_means_of_their_neighbours():
    X, new = columns(50), columns(8, seed=1)
    model = learnt(LaplacianEigenmaps, X, n_neighbors=5)
    nearest = np.argsort(cdist(new, X), axis=1)[:, :5]
    expected = model.embedding[nearest].mean(axis=1)
    for found in (model.transform_columns(X, new), model.transform_many(new)):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_neighbours_are_limited_by_landmarks():
    X, new = columns(50), columns(8, seed=1)
    model = learnt(LaplacianEigenmaps, X, n_neighbors=9, n_landmarks=25)
    rows = list(model.landmarks)
    assert rows == list(range(0, 50, 2))
    nearest = np.argsort(cdist(new, X[rows]), axis=1)[:, :5]
    expected = model.embedding[rows][nearest].mean(axis=1)
    np.testing.assert_allclose(model.transform_many(new), expected, atol=1e-12)


def test_transform_columns_with_a_given_graph():
    X, A = columns(20), cycle(20)
    model = LaplacianEigenmaps(2, n_neighbors=1)
    model.learn_graph(A)
    assert not any(model.transform_one(dict(enumerate(X[0]))).values())
    model.learn_columns(X)
    np.testing.assert_allclose(model.embedding, of_graph(A, 2))
    np.testing.assert_allclose(model.transform_many(X), model.embedding, atol=1e-12)
    after = LaplacianEigenmaps(2, n_neighbors=1)
    after.learn_columns(X)
    after.learn_graph(sp.coo_array(A))
    np.testing.assert_array_equal(after.embedding, model.embedding)


def test_graphs_in_files_copies_and_merges(tmp_path):
    X, A = columns(20), cycle(20)
    model, other = LaplacianEigenmaps(2), LaplacianEigenmaps(2)
    model.learn_graph(A)
    other.learn_columns(X)
    save(model, tmp_path / "model")
    for copy in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):  # noqa: S301
        np.testing.assert_array_equal(copy.embedding, model.embedding)
        copy.merge(other)
        assert copy.n_columns == 150
        np.testing.assert_array_equal(copy.embedding, model.embedding)
    other.merge(model)
    np.testing.assert_array_equal(other.embedding, model.embedding)
    state = model._get_state()
    for bad in ({"n": 19}, {"n": "20"}, {"row": state["graph"]["row"][:-1]}):
        with pytest.raises((ValueError, TypeError), match=r"[Ee]xpected|Got|exceed"):
            LaplacianEigenmaps(2)._set_state(state | {"graph": state["graph"] | bad})
    third = LaplacianEigenmaps(2)
    third.learn_graph(path(20))
    with pytest.raises(ValueError, match="same graph"):
        third.merge(model)
    np.testing.assert_array_equal(third.embedding, of_graph(path(20), 2))


BAD_GRAPHS = {
    "no square": np.ones((3, 4)),
    "a vector": np.ones(4),
    "one observation": np.ones((1, 1)),
    "directed": np.triu(np.ones((4, 4)), 1),
    "negative": -complete(4),
    "NaN": np.full((4, 4), np.nan),
    "text": np.full((4, 4), "a"),
    "complex": complete(4) * 1j,
    "another number of observations": complete(5),
}


@pytest.mark.parametrize("case", BAD_GRAPHS)
def test_bad_graphs_are_refused(case):
    model = learnt(LaplacianEigenmaps, columns(4, 6), n_components=2)
    before = pickle.dumps(model)
    with pytest.raises((ValueError, TypeError), match="Got"):
        model.learn_graph(BAD_GRAPHS[case])
    assert pickle.dumps(model) == before


def test_graphs_are_dropped_with_their_observations():
    model = LaplacianEigenmaps(1, window_size=10, n_neighbors=3)
    model.learn_graph(cycle(10))
    X = columns(20, 5)
    model.learn_many(X)
    with pytest.raises(ValueError, match="rows"):
        model.learn_graph(cycle(10))
    window = learnt(LaplacianEigenmaps, X[10:], n_components=1, n_neighbors=3)
    assert model.landmarks == window.landmarks


def test_self_loops_are_ignored():
    np.testing.assert_array_equal(of_graph(cycle(6) + np.eye(6), 2), of_graph(cycle(6), 2))


# --------------------------------------------------------------------------------- new rows


@pytest.mark.parametrize("cls", LEARNERS)
def test_transform_columns_uses_all_columns_of_any_form(cls):
    rng = np.random.default_rng(3)
    X, new = (rng.poisson(0.3, size=(n, 90)) * 1.0 for n in (30, 7))
    X[:, 5] = 2.0
    model = learnt(cls, X, n_components=2, max_variables=10)
    expected = learnt(cls, X, n_components=2).transform_many(new)
    names = range(90)
    pairs = [[(j, part[:, j]) for j in names] for part in (X, new)]
    ways = [(X, new), (sp.csc_array(X), new), (X, sp.csr_array(new)), pairs, (X, iter(pairs[1]))]
    for one, other in ways:
        found = model.transform_columns(one, other)
        if cls is KernelPCA:
            # The constant column is not stored, but is part of the columns passed here.
            far = cdist(new, X, "sqeuclidean")
            G = np.exp(-far / X.var(axis=0).sum())
            own = np.exp(-cdist(X, X, "sqeuclidean") / X.var(axis=0).sum())
            Z = model.embedding
            expected = (G - own.mean(axis=0)) @ (Z / np.square(Z).sum(axis=0))
        np.testing.assert_allclose(found, expected, atol=1e-10)
    turned = names[::-1]
    found = model.transform_columns(
        [(j, X[:, j]) for j in turned], [(j, new[:, j]) for j in turned]
    )
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("cls", LEARNERS)
def test_many_rows_are_transformed_in_batches(cls, monkeypatch):
    X = columns(40, 30)
    model = learnt(cls, X, n_landmarks=15)
    whole = model.transform_many(X)
    monkeypatch.setattr(embedder, "_BATCH_SIZE", 100)
    np.testing.assert_allclose(model.transform_many(X), whole, atol=1e-12)


@pytest.mark.parametrize("cls", LEARNERS)
def test_transform_columns_refuses_invalid_input(cls):
    X, new = columns(12, 30), columns(3, 30, seed=1)
    model = learnt(cls, X, n_components=2)
    before = pickle.dumps(model)
    named = [[(f"v{j}", part[:, j]) for j in range(30)] for part in (X, new)]
    bad = X.copy()
    bad[3, 7] = np.nan
    for one, other in (
        (X[:, :29], new[:, :29]),
        (X, new[:, :29]),
        (X[:, :29], new),
        (X[::-1] ** 2, new),
        (named[0], new),
        (X, named[1]),
        (bad, new),
        (X, bad[:3] * np.nan),
        (X[:-1], new),
    ):
        with pytest.raises(ValueError, match="Got"):
            model.transform_columns(one, other)
    assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="vary"):
        cls().transform_columns(X, new)
    model.learn_many(X)
    with pytest.raises(ValueError, match="rows"):
        model.transform_columns(X, new)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_fewer_landmarks_approximate_by_least_squares(kernel):
    """Fewer landmarks give the least-squares approximation of the embedding."""
    X = columns(60, 40)
    model = learnt(KernelPCA, X, kernel=kernel, n_landmarks=20)
    assert list(model.landmarks) == list(range(0, 60, 3))
    Xc, gamma = X - X.mean(axis=0), 1.0 / X.var(axis=0).sum()
    if kernel == "rbf":
        G = np.exp(-gamma * cdist(Xc, Xc[::3], "sqeuclidean"))
    else:
        G = (gamma * Xc @ Xc[::3].T + 1.0) ** 3
    G -= G.mean(axis=0)
    expected = G @ np.linalg.lstsq(G, model.embedding, rcond=1e-6)[0]
    np.testing.assert_allclose(model.transform_many(X), expected, atol=1e-8)


@pytest.mark.parametrize("cls", LEARNERS)
def test_stored_variables_have_the_largest_variance(cls):
    """The stored variables have the largest variance, for any blocks and after merges."""
    X = columns(30, 80)
    largest = sorted(np.argsort(-X.var(axis=0))[:15].tolist())
    models = [learnt(cls, X, max_variables=15), cls(4, max_variables=15), cls(4, max_variables=15)]
    for start in range(0, 80, 7):
        models[1].learn_columns(X[:, start : start + 7], range(80)[start : start + 7])
    models[2].learn_columns(X[:, :33], range(33))
    rest = cls(4, max_variables=15)
    rest.learn_columns(X[:, 33:], range(33, 80))
    models[2].merge(rest)
    share = X[:, largest].var(axis=0).sum() / X.var(axis=0).sum()
    for model in models:
        assert sorted(model._map().names) == largest
        facts = model.report().details
        assert facts["share_of_variance"] == pytest.approx(share)
        assert (facts["n_landmarks"], facts["n_variables"]) == (30, 15)
        np.testing.assert_allclose(model.embedding, models[0].embedding, atol=1e-9)
        new = dict(zip(largest, X[3, largest].tolist(), strict=True))
        found, expected = (one.transform_one(new) for one in (model, models[0]))
        assert found == pytest.approx(expected, abs=1e-9)


def test_few_variables_approximate_all():
    """Components of few variables are close to those of all, if columns have common factors."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(240, 3))
    X = hidden @ rng.normal(size=(3, 400)) + 0.3 * rng.normal(size=(240, 400))
    X, new = X[:200], X[200:]
    model = learnt(KernelPCA, X, n_components=3, max_variables=100)
    found, exact = model.transform_many(new), model.transform_columns(X, new)
    for k in range(3):
        assert np.corrcoef(found[:, k], exact[:, k])[0, 1] > 0.98


@pytest.mark.parametrize("cls", LEARNERS)
def test_a_gram_matrix_of_another_method(cls):
    """A Gram matrix of another method can be used; later columns do not change that method."""
    X = columns()
    other = PCA(3)
    other.learn_columns(X[:, :100])
    model, before = cls(4), pickle.dumps(other)
    model.learn_from(other)
    own = learnt(cls, X[:, :100])
    np.testing.assert_array_equal(model.embedding, own.embedding)
    assert model.transform_one(dict(enumerate(X[0]))) == own.transform_one(dict(enumerate(X[0])))
    assert (model.n_columns, model.n_rows) == (100, 60)
    model.learn_columns(X[:, 100:])
    np.testing.assert_allclose(model.embedding, learnt(cls, X).embedding, atol=1e-10)
    assert pickle.dumps(other) == before
    again = PCA(3)
    again.learn_from(learnt(cls, X[:, :100]))
    np.testing.assert_array_equal(again.embedding, other.embedding)
    for unfit in (PCA(2, scale=True), RidgeComponents(2)):
        with pytest.raises((ValueError, TypeError), match="Got"):
            cls().learn_from(unfit if unfit._is_supervised else learnt_by(unfit, X))


def learnt_by(model, X):
    model.learn_columns(X)
    return model


def test_fourier_features_approximate_kernel_pca_on_rows(rng):
    """PCA of random Fourier features on rows approximates KernelPCA."""
    groups = rng.normal(size=(3, 8))[rng.integers(0, 3, size=300)]
    X = groups + 0.4 * rng.normal(size=(300, 8))
    way = compose.Pipeline(RandomFourier(600, gamma=0.1), PCA(2, warm_up=50))
    rows = [dict(enumerate(x)) for x in X.tolist()]
    frame = pd.DataFrame(X)
    way.learn_many(frame)
    Z = learnt(KernelPCA, X, n_components=2, gamma=0.1).embedding
    found = np.array([list(way.transform_one(x).values()) for x in rows])
    for k in range(2):
        assert abs(np.corrcoef(found[:, k], Z[:, k])[0, 1]) > 0.97


# ------------------------------------------------------------------------------------- rows


def test_a_later_regression_is_not_misled_by_the_first_window():
    """The regression in a pipeline is not misled by the first window's components."""
    scaler, regression = preprocessing.StandardScaler(), linear_model.LinearRegression()
    model = KernelPCA(5) | scaler | regression
    rows = datasets.TrumpApproval().take(300)
    # With zeros before the first window it was 1,684; predicting the mean of earlier rows has 1.9.
    assert evaluate.progressive_val_score(rows, model, metrics.MAE()).get() < 10.0
    assert set(scaler.counts.values()) == {101}


@pytest.mark.parametrize("cls", LEARNERS)
def test_new_windows_are_aligned_to_earlier_ones(cls):
    """Components of a new window are aligned to the earlier ones by Procrustes rotation."""
    X = columns(160, 12)
    model = cls(3, window_size=40, refresh_factor=1.0, warm_up=0)
    previous = None
    for start in range(0, 160, 40):
        rows = X[start : start + 40]
        before = None if previous is None else model.transform_many(rows)
        model.learn_many(rows)
        found, plain = model.transform_many(rows), learnt(cls, rows, n_components=3)
        own = plain.transform_many(rows)
        if before is not None:
            own, old = own - own.mean(axis=0), before - before.mean(axis=0)
            own = own @ alignment(own, old)
            own *= previous.std(axis=0) / own.std(axis=0)
            found = found - found.mean(axis=0)
        np.testing.assert_allclose(found, own, atol=1e-6)
        previous = found


@pytest.mark.parametrize("options", [{}, {"n_landmarks": 30}], ids=["all rows", "landmarks"])
@pytest.mark.parametrize("cls", LEARNERS)
def test_components_keep_their_scale_across_windows(cls, options):
    """Components keep their scale from window to window."""
    X = columns(1500, 12)
    model, spreads = cls(3, window_size=100, **options), []
    for start in range(0, 1500, 100):
        model.learn_many(X[start : start + 100])
        spreads.append(model.transform_many(X[start : start + 100]).std(axis=0))
    assert (spreads[-1] > 0.6 * spreads[0]).all()
    assert (spreads[-1] < 1.7 * spreads[0]).all()


@pytest.mark.parametrize("cls", LEARNERS)
def test_clusters_keep_their_positions_across_windows(cls):
    """Clusters keep their positions from window to window."""
    rng = np.random.default_rng(0)
    centres = 4.0 * rng.normal(size=(3, 10))
    of, X = rng.integers(0, 3, size=400), None
    X = centres[of] + rng.normal(size=(400, 10))
    model = cls(2, window_size=80)
    model.learn_many(X[:80])
    positions = [model.transform_many(centres)]
    for start in range(80, 400, 80):
        model.learn_many(X[start : start + 80])
        positions.append(model.transform_many(centres))
    apart = min(
        np.linalg.norm(a - b)
        for a in positions[0]
        for b in positions[0]
        if a is not b and (a != b).any()
    )
    assert max(np.abs(position - positions[0]).max() for position in positions) < 0.5 * apart


@pytest.mark.parametrize("cls", LEARNERS)
def test_too_large_windows_are_refused(cls):
    model = cls(2, max_gram_rows=50)
    for learn in (
        lambda: model.learn_one({"a": 1.0}),
        lambda: model.learn_many(np.ones((3, 2))),
        lambda: model.learn_column("a", np.arange(51.0)),
        lambda: model.learn_columns(np.ones((51, 3))),
    ):
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match="at most 50 rows"):
            learn()
        assert pickle.dumps(model) == before


# -------------------------------------------------------------------------------- degenerate data


@pytest.mark.parametrize("cls", LEARNERS)
def test_degenerate_columns(cls):
    """Equal rows, rows equal except one, two rows, and copies are valid."""
    same = np.ones((6, 3))
    model = learnt(cls, same)
    assert model.embedding.shape == (6, 0)
    assert not model.relevance
    assert not any(model.transform_one({0: 5.0}).values())
    one = np.zeros((6, 3))
    one[2] = 1.0
    two = columns(2, 5)
    copies = np.repeat(columns(3, 5), 4, axis=0)
    for X in (one, two, copies):
        model = learnt(cls, X, n_neighbors=2) if cls is LaplacianEigenmaps else learnt(cls, X)
        assert np.isfinite(model.embedding).all()
        assert np.isfinite(model.transform_many(X)).all()
        np.testing.assert_allclose(
            model.transform_columns(X, X), model.transform_many(X), atol=1e-10
        )
    # Copies have the same coordinates with a kernel, and in a graph of copies only.
    Z = learnt(KernelPCA, copies).embedding
    np.testing.assert_allclose(Z, np.repeat(Z[::4], 4, axis=0), atol=1e-12)


def test_the_report_has_no_loadings():
    model = learnt(KernelPCA, columns())
    report = model.report()
    assert not any(row["loadings"] for row in report.results)
    assert report.details == {"n_landmarks": 60, "n_variables": 150, "share_of_variance": 1.0}
    assert not hasattr(model, "loadings")


@pytest.mark.parametrize("model", [KernelPCA(2), LaplacianEigenmaps(2)], ids=repr)
def test_reordered_columns_are_refused(model):
    X = np.random.default_rng(0).normal(size=(30, 8))
    model = model.clone()
    model.learn_columns(X)
    with pytest.raises(ValueError, match="Got: other values of 0"):
        model.transform_columns(X[:, ::-1], X)
