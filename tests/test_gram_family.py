"""Methods on the Gram matrix, on columns and rows: equal to their references, and invariant."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import streamsel
from tests.gram_family import agree, cases, numbers, without_embedding
from tests.reference import target as space
from tests.reference.rows import Rows
from tests.ridge import matrix, near, same_space, same_up_to_sign

SCALES = [{"scale": False}, {"scale": True}]
LINEAR = cases(
    {
        "PCA": SCALES,
        "RankedPCA": [*SCALES, {"rank_by": "private"}],
        "PLS": SCALES,
        "Discriminant": [*SCALES, {"shrinkage": 0.8}],
        "PrivateFeatures": SCALES,
    }
)
POOLED = cases(
    {
        "SupervisedPCA": [
            {"max_candidates": 8},
            {"threshold": 0.2},
            {"max_candidates": 12, "scale": True},
        ]
    }
)
KERNELS = cases(
    {
        "KernelPCA": [{}, {"kernel": "poly"}, {"gamma": 0.001}],
        "LaplacianEigenmaps": [{"n_neighbors": 5}],
    }
)
ALL = [*LINEAR, *POOLED, *KERNELS]
SEEDS = st.integers(0, 10**6)
P = 24


def over(some):
    return pytest.mark.parametrize("case", some, ids=str)


def weights(model, names):
    return matrix(model.loadings, names, model.components)


# ------------------------------------------------------------------------------------ columns


@over(ALL)
def test_answers_equal_the_definition_after_every_block(case):
    X, y = case.data()
    model = case.fresh(y)
    for start, stop in ((0, 5), (5, 6), (6, 18), (18, P)):
        model.learn_columns(X[:, start:stop], range(start, stop))
        agree(model, case.answer(X[:, :stop], y), range(P))


@over(ALL)
@pytest.mark.parametrize(("n", "p"), [(9, 40), (40, 9)])
def test_few_rows_or_few_columns(case, n, p):
    X, y = case.data(n, p)
    agree(case.learnt(X, y), case.answer(X, y), range(p))


@over(ALL)
@pytest.mark.parametrize("container", ["float32", "int8", "csc", "C order", "pairs"])
def test_any_container(case, container):
    X, y = case.data(seed=3)
    if container == "int8":
        X = np.round(2 * (X - 3)).clip(-127, 127).astype(np.int8)
    elif container == "float32":
        X = X.astype(np.float32)
    elif container == "csc":
        X = sp.csc_array(X * (np.random.default_rng(1).random(X.shape) < 0.3))
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    given_ = [(j, X[:, j]) for j in range(P)] if container == "pairs" else X
    agree(case.learnt(given_, y), case.answer(dense, y), range(P))


@settings(max_examples=60)
@given(st.sampled_from(ALL), SEEDS, st.lists(st.integers(0, P), max_size=4))
def test_blocks_and_order_do_not_matter(case, seed, cuts):
    X, y = case.data(seed=seed % 5)
    order = np.random.default_rng(seed).permutation(P)
    model = case.fresh(y)
    for some in np.split(order, sorted(cuts)):
        model.learn_columns(X[:, some], some.tolist())
    agree(model, case.answer(X, y), range(P))


@settings(max_examples=40)
@given(st.sampled_from(ALL), SEEDS)
def test_signs_and_constants_do_not_matter(case, seed):
    X, y = case.data(seed=seed % 5)
    rng = np.random.default_rng(seed)
    flips = rng.choice([-1.0, 1.0], P)
    position = int(rng.integers(P))
    other = np.insert(X * flips + rng.integers(-9, 9, P), position, 4.0, axis=1)
    names = np.insert(np.arange(P), position, P).tolist()
    model, expected = case.learnt(other, y, names), case.answer(X, y)
    if "loadings" in expected:
        expected["loadings"] = {
            j: {name: flips[j] * b for name, b in row.items()}
            for j, row in expected["loadings"].items()
        }
    agree(model, expected, range(P))


@settings(max_examples=40)
@given(st.sampled_from(ALL), SEEDS, st.integers(1, 4))
def test_merge_equals_the_whole(case, seed, parts):
    X, y = case.data(seed=seed % 5)
    pieces = np.array_split(np.random.default_rng(seed).permutation(P), parts + 1)
    first, *others = (case.learnt(X[:, some], y, some.tolist()) for some in pieces)
    for other in others:
        first.merge(other)
    agree(first, case.answer(X, y), range(P))


@over([case for case in LINEAR + POOLED if case.has_target and case.name != "Discriminant"])
def test_covariates_are_projected_out(case):
    X, y = case.data(50)
    Z = np.c_[X[:, 0] + X[:, 9] + X[:, 20], np.random.default_rng(6).normal(size=50)]
    basis = np.linalg.qr(np.c_[np.ones(50), Z])[0]
    left = [part - basis @ (basis.T @ part) for part in (X, numbers(y))]
    expected = without_embedding(case.answer(*left))  # the embedding is that of raw columns
    agree(case.learnt(X, y, covariates=Z), expected, range(P))


@over(LINEAR + POOLED)
def test_embedding_equals_data_times_loadings(case):
    X, y = case.data()
    model = case.learnt(X, y)
    B = weights(model, range(P))
    near(model.transform_many(X), (X - X.mean(axis=0)) @ B)
    there = len(model.relevance)
    near(model.transform_many(X)[:, :there], model.embedding)
    new = X[::-1] ** 2
    near(model.transform_many(new), (new - X.mean(axis=0)) @ B)
    sd = X.std(axis=0) if case.params.get("scale", case.name == "PLS") else np.ones(P)
    first = np.abs(B * sd[:, None]).argmax(axis=0)[:there]
    assert (B[first, range(there)] > 0).all()


def exact(X):
    """Return X rounded so that an offset of 1e9 costs no digits."""
    return np.round(X * 2**16) / 2**16


@over(ALL)
def test_offsets_do_not_matter(case):
    X, y = case.data()
    X = exact(X)
    far = X + np.where(np.arange(P) % 3, 1e9, -1e9)
    agree(case.learnt(far, y), case.answer(X, y), range(P))
    one = sp.csc_array(np.asfortranarray(far))
    agree(case.learnt(one, y), case.answer(X, y), range(P))


@over(ALL)
@pytest.mark.parametrize("size", [1e150, 1e-150])
def test_scales_do_not_matter(case, size):
    X, y = case.data()
    rule = {"gamma": 0.001 / size / size} if "gamma" in case.params else {}
    model = case.learnt(X * size, y, **rule)
    expected = case.answer(X, y)
    assert [*model.relevance] == [*expected["relevance"]]
    same_space(model.embedding, expected["embedding"])
    if "loadings" in expected:
        B = weights(model, range(P))
        assert np.isfinite(B).all()
        at_scale = matrix(case.answer(X * size, y)["loadings"], range(P), model.components)
        same_up_to_sign(B, at_scale)


@over([case for case in LINEAR + POOLED if case.params.get("scale")])
def test_column_scales_do_not_matter_if_standardised(case):
    X, y = case.data()
    sizes = np.where(np.arange(P) % 2, 1e150, 1e-150)
    expected, model = case.answer(X, y), case.learnt(X * sizes, y)
    same_up_to_sign(model.embedding, expected["embedding"])
    expected = matrix(expected["loadings"], range(P), model.components)
    same_up_to_sign(weights(model, range(P)) * sizes[:, None], expected)


# ------------------------------------------------------------- a bounded pool, and a second pass


@over(LINEAR)
def test_components_are_exact_though_few_columns_are_kept(case):
    X, y = case.data(30, 120)
    model, expected = case.learnt(X, y, max_loadings=20), case.answer(X, y)
    assert list(model.relevance) == list(expected["relevance"])
    same_up_to_sign(model.embedding, expected["embedding"])
    kept = [*model.loadings]
    assert 20 <= len(kept) < 40
    Z, there = model.transform_many(X), len(model.relevance)
    assert np.isfinite(Z).all()
    if case.name in ("PCA", "PLS"):  # approximated well by the pool
        corr = np.corrcoef(Z[:, :there].T, model.embedding.T).diagonal(there)
        assert min(corr) > 0.7


@over(LINEAR)
def test_a_second_pass_gives_exact_loadings(case):
    X, y = case.data(30, 120)
    model = case.learnt(X, y, max_loadings=120)
    few = case.learnt(X, y, max_loadings=20)
    for one in (model, few):
        before = one.embedding
        order = np.random.default_rng(0).permutation(120)
        one.learn_loadings(X[:, order], order.tolist())
        same_up_to_sign(one.embedding, before)
    agree(model, case.answer(X, y), range(120))
    assert len(few.loadings) <= 20 * 3
    same_up_to_sign(few.embedding, case.answer(X, y)["embedding"])


# --------------------------------------------------------------------------------------- rows


@over(LINEAR)
def test_rows_equal_columns(case):
    X, y = case.data(60, 10)
    one, many = case.build(), case.build()
    for row in case.rows(X, y):
        one.learn_one(*row)
    for part in (slice(0, 25), slice(25, 26), slice(26, 60)):
        many.learn_many(X[part], *([y[part]] if case.has_target else []))
    expected = without_embedding(case.answer(X, y))
    for model in (one, many):
        agree(model, expected, range(10), 1e-8)
    on_columns = case.learnt(X, y)
    near(weights(one, range(10)), weights(on_columns, range(10)), 1e-8)


@over(LINEAR)
def test_answers_equal_the_batch_after_every_row(case):
    X, y = case.data(40, 6, seed=1)
    model = case.build(n_components=2)
    for i, row in enumerate(case.rows(X, y), 1):
        model.learn_one(*row)
        if i >= 12:
            expected = case.answer(X[:i], None if y is None else y[:i], n_components=2)
            agree(model, without_embedding(expected), range(6), 1e-8)


@over(LINEAR)
def test_rows_continue_from_columns(case):
    X, y = case.data(40, 10, seed=2)
    learnt = slice(0, 30)
    model = case.learnt(X[learnt], y[learnt] if case.has_target else None)
    for i, row in enumerate(case.rows(X[30:], y[30:] if case.has_target else None), 31):
        model.learn_one(*row)
        expected = case.answer(X[:i], y[:i] if case.has_target else None)
        agree(model, without_embedding(expected), range(10), 1e-8)


def equal_rows(case, rows):
    """Return a matrix, and a target, with the moments of weighted rows."""
    X = np.column_stack([rows.left(name) for name in rows.names])
    n = len(X)
    # Orthonormal columns orthogonal to the constant preserve products, and means are 0.
    Q = np.linalg.svd(np.eye(n + 1) - 1.0 / (n + 1))[0][:, :n]
    if not case.has_target:
        return Q @ X, None
    return Q @ X, Q @ np.column_stack(list(rows.target_left().values())).astype(float)


# Numbers cannot replace the classes of Discriminant.
@over(
    [case for case in LINEAR if not case.params.get("scale", True) and case.name != "Discriminant"]
)
def test_fading_rows_equal_weighted_rows(case):
    X, y = case.data(80, 6)
    model, rows = case.build(fading_factor=0.03), Rows(fading_factor=0.03)
    for i, row in enumerate(case.rows(X, y)):
        model.learn_one(*row)
        rows.learn_one(row[0], row[1] if case.has_target else 0.0)
        if i > 20 and i % 10 == 0:
            expected = case.answer(*equal_rows(case, rows))
            agree(model, without_embedding(expected), range(6), 1e-8)


@over(LINEAR)
def test_offsets_and_scales_of_rows_do_not_matter(case):
    X, y = case.data(60, 10)
    X = exact(X)
    target = [y] if case.has_target else []
    far = X + np.where(np.arange(10) % 3, 1e9, -1e9)
    one, many = case.build(), case.build()
    for row in case.rows(far, y):
        one.learn_one(*row)
    many.learn_many(far, *target)
    for model in (one, many):
        agree(model, without_embedding(case.answer(X, y)), range(10), 1e-8)
    for size in (1e150, 1e-150):
        model = case.build()
        model.learn_many(X * size, *target)
        expected = matrix(case.answer(X * size, y)["loadings"], range(10), model.components)
        same_up_to_sign(weights(model, range(10)), expected, 1e-8)


# Discriminant is left out as above; PCA uses low-rank moments if the vocabulary is bounded.
@over(
    [
        case
        for case in LINEAR
        if case.params == {"n_components": 3, "scale": False}
        and case.name not in ("Discriminant", "PCA")
    ]
)
def test_a_bounded_vocabulary_uses_one_aligned_window(case):
    rng, p = np.random.default_rng(1), 12
    X, y = case.data(150, p)
    model, kept = case.build(n_components=2, max_features=8, grace_period=10), []
    for i, row in enumerate(case.rows(X, y)):
        # Half of the variables occur rarely; they are tracked for a while.
        some = {j: v for j, v in row[0].items() if rng.random() < (0.9 if j % 2 else 0.03)}
        kept.append((some, row[1] if case.has_target else 0.0))
        model.learn_one(some, *row[1:])
        if i % 50 == 49:
            tracked, rows = {*model._state.names}, Rows()
            assert 0 < len(tracked) <= 8
            for x, value in kept[-model.n_aligned_rows :]:
                rows.learn_one({j: v for j, v in x.items() if j in tracked}, value)
            expected = case._replace(params=case.params | {"n_components": 2}).answer(
                *equal_rows(case, rows)
            )
            expected["loadings"] = {rows.names[j]: b for j, b in expected["loadings"].items()}
            agree(model, without_embedding(expected), range(p), 1e-8)


# -------------------------------------------------------------------- one K for several, and limits


def test_one_gram_matrix_is_shared():
    X, y = LINEAR[2].data(40, 30)
    labels = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    for scale in (False, True):
        first = streamsel.PCA(3, scale=scale)
        first.learn_columns(X)
        for case in LINEAR:
            if case.params.get("scale") is not scale:
                continue
            target = {"number": y, "labels": labels, "none": None}.get(case.kind, np.c_[y, y**2])
            other = case.fresh(target)
            other.learn_from(first)
            agree(other, case.answer(X, target), range(30))
        # Both continue separately.
        other = streamsel.PLS(3, scale=scale)
        other.learn_target(y)
        other.learn_from(first)
        first.learn_columns(X[:, :5] ** 2, range(30, 35))
        agree(other, LINEAR[0]._replace(name="PLS").answer(X, y, scale=scale), range(30))
        wide = np.c_[X, X[:, :5] ** 2]
        agree(first, LINEAR[0].answer(wide, None, scale=scale), range(35))
        other.learn_columns(X[:, :5] ** 2, range(30, 35))
        agree(other, LINEAR[0]._replace(name="PLS").answer(wide, y, scale=scale), range(35))


@settings(max_examples=10)
@given(SEEDS)
def test_first_pls_component_is_the_limit_of_ridge_components(seed):
    X, y = LINEAR[2].data(30, 50, seed)
    one, ridge = streamsel.PLS(1), streamsel.RidgeComponents(1, relevance_power=0.0, alpha=1e12)
    for model in (one, ridge):
        model.learn_target(y)
        model.learn_columns(X)
    mine, theirs = (weights(model, range(50)) for model in (one, ridge))
    near(mine / np.linalg.norm(mine), theirs / np.linalg.norm(theirs), 1e-8)


@settings(max_examples=10)
@given(SEEDS)
def test_the_discriminant_space_is_the_limit_of_ridge_components(seed):
    X, y = LINEAR[-1]._replace(kind="labels").data(80, 10, seed)
    one, ridge = streamsel.Discriminant(3, shrinkage=0.0), streamsel.RidgeComponents(3, alpha=1e-9)
    for model in (one, ridge):
        model.learn_target(y)
        model.learn_columns(X)
    same_space(one.embedding, ridge.embedding, 1e-7)


@over([case for case in LINEAR + POOLED if case.kind in ("number", "numbers")])
def test_units_of_targets_do_not_matter(case):
    X, y = case.data()
    expected = case.answer(X, y)
    for size in (1e150, 1e-150):
        agree(case.learnt(X, y * size), expected, range(P))
    if case.kind == "numbers":
        agree(case.learnt(X, np.c_[y, np.full(40, 7.0)]), expected, range(P))


@settings(max_examples=20)
@given(SEEDS, st.sampled_from(["RankedPCA", "PrivateFeatures", "SupervisedPCA"]))
def test_mixing_of_targets_does_not_matter(seed, name):
    case = next(c for c in ALL if c.name == name and c.kind == "numbers")
    X, y = case.data(seed=seed % 5)
    mixing = np.random.default_rng(seed).normal(size=(3, 3)) + 3.0 * np.eye(3)
    agree(case.learnt(X, 1e3 + y @ mixing), case.answer(X, y), range(P), 1e-8)


@settings(max_examples=20)
@given(SEEDS, st.sampled_from(["number", "numbers", "labels"]))
def test_no_covariance_with_the_attribute_is_left(seed, kind):
    case = next(c for c in LINEAR if c.name == "PrivateFeatures" and c.kind == kind)
    X, y = case.data(60, 30, seed)
    U = space.basis(space.numbers(y))
    on_columns, on_rows = case.learnt(X, y, n_components=8), case.build(n_components=8)
    on_rows.learn_many(X, y)
    for found in (
        on_columns.embedding,
        on_columns.transform_many(X),
        (X - X.mean(axis=0)) @ weights(on_rows, range(30)),
    ):
        Z = space.centred(found)
        assert np.max(np.linalg.norm(U.T @ Z, axis=0) / np.linalg.norm(Z, axis=0)) < 1e-10


@over([case for case in LINEAR if case.name == "PrivateFeatures"])
def test_few_loadings_leave_no_covariance_with_the_attribute(case):
    X, y = case.data(60, 400)
    U, model = space.basis(space.numbers(y)), case.learnt(X, y, max_loadings=100)
    for _ in range(2):
        Z = space.centred(model.transform_many(X))
        assert np.max(np.linalg.norm(U.T @ Z, axis=0) / np.linalg.norm(Z, axis=0)) < 1e-10
        model.learn_loadings(X)


@pytest.mark.parametrize("q", [3, 25])
@pytest.mark.parametrize("scale", [False, True])
def test_columns_of_different_units_leave_no_covariance(scale, q):
    X, y = load_breast_cancer(return_X_y=True)
    model = streamsel.PrivateFeatures(q, scale=scale, target_type="class")
    model.learn_target(y)
    model.learn_columns(X)
    for found in (model.embedding, model.transform_many(X)):
        Z = space.centred(found[:, : len(model.relevance)])
        assert np.abs(space.unit(space.centred(y)) @ Z / np.linalg.norm(Z, axis=0)).max() < 1e-10


def test_attributes_of_full_rank_leave_no_component():
    """With as many sensitive attributes as the rank, no component is left."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 4))
    for model in (streamsel.PrivateFeatures(2), streamsel.PrivateFeatures(2, scale=True)):
        model.learn_target(X @ rng.normal(size=(4, 4)))
        model.learn_columns(X)
        assert model.relevance == {}
        np.testing.assert_array_equal(model.transform_many(X), 0.0)


# ------------------------------------------------------------------------- attributes of PCA


@pytest.mark.parametrize("scale", [False, True])
def test_explained_variance_of_principal_components(scale):
    case = LINEAR[int(scale)]
    X, _ = case.data(30, 60)
    model, expected = case.learnt(X, None), case.answer(X, None)
    np.testing.assert_allclose(
        model.explained_variance_ratio, expected["explained_variance_ratio_"], rtol=1e-9
    )
    assert model.n_components_found == 3


@pytest.mark.parametrize("asked", [0.3, 0.6, 0.95, "elbow", "profile", 20, 40])
@pytest.mark.parametrize("seed", range(5))
def test_number_of_components_is_its_definition(asked, seed):
    case = LINEAR[0]
    X, _ = case.data(30, 60, seed)
    model = case.learnt(X, None, n_components=asked)
    expected = case.answer(X, None, n_components=asked)
    assert model.n_components_found == expected["n_components_"]
    agree(model, expected, range(60))
    Z = model.transform_many(X)
    width = asked if isinstance(asked, int) else model.n_components_found
    assert Z.shape == (30, width) == (30, len(model.components))
    np.testing.assert_array_equal(Z[:, model.n_components_found :], 0.0)


@pytest.mark.parametrize("asked", [0.1, 0.5, 0.8, 0.99])
def test_a_variance_share_equals_scikit_learn(asked):
    X = load_digits().data
    model, other = streamsel.PCA(asked), PCA(asked).fit(X)
    model.learn_columns(X)
    assert model.n_components_found == other.n_components_
    assert model.components == [f"pca{k}" for k in range(other.n_components_)]
    np.testing.assert_allclose(
        model.explained_variance_ratio, other.explained_variance_ratio_, rtol=1e-9
    )


def test_components_in_use_remain_while_rows_determine_the_number():
    """The next model keeps all its features; new components are appended."""
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(size=(40, 5)), rng.normal(size=(400, 1)) * 10.0 + np.zeros(5)
    model = streamsel.PCA(0.9, warm_up=10)
    assert model.transform_one({0: 1.0}) == {}
    widths = []
    for x in [*wide, *narrow, *(3.0 * rng.normal(size=(4000, 5)))]:
        model.learn_one(dict(enumerate(x.tolist())))
        z = model.transform_one(dict(enumerate(x.tolist())))
        widths.append(len(z))
        assert list(z) == [f"pca{k}" for k in range(len(z))]
    assert widths == sorted(widths)
    assert widths[8] == 0
    assert widths[10] > 1
    again = copy.deepcopy(model)
    assert again.transform_one({0: 1.0, 3: 2.0}) == model.transform_one({0: 1.0, 3: 2.0})
    assert len(model.components) == widths[-1] >= model.n_components_found
    assert not model.transform_many(np.full((2, 5), np.nan)).any()


@pytest.mark.parametrize("asked", [0.6, "elbow", "profile", "parallel"])
def test_number_of_components_ignores_scale(asked):
    X, _ = LINEAR[0].data(30, 60)
    counts = []
    for size in (1.0, 1e150, 1e-150):
        model = streamsel.PCA(asked)
        model.learn_columns(X * size)
        counts.append(model.n_components_found)
    assert len({*counts}) == 1


@pytest.mark.parametrize("seed", range(3))
def test_parallel_analysis_separates_factors_from_noise(seed):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(100, 60))
    factors = noise + 2.0 * rng.normal(size=(100, 3)) @ rng.normal(size=(3, 60))
    for scale in (False, True):
        counts = []
        for X in (noise, factors):
            model = streamsel.PCA("parallel", scale=scale)
            model.learn_columns(X)
            counts.append(model.n_components_found)
        assert counts[0] <= 1
        assert counts[1] == 3


# -------------------------------------------------------------------- real columns, many columns


@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_scores_of_real_columns_are_those_of_scikit_learn(load):
    X, y = load(return_X_y=True)
    X, y = X[:600], y[:600]
    model = streamsel.PCA(6)
    model.learn_columns(X)
    same_up_to_sign(model.embedding, PCA(6, svd_solver="full").fit_transform(X))
    model = streamsel.PLS(6, target_type="numeric")
    model.learn_target(y)
    model.learn_columns(X)
    same_up_to_sign(model.embedding, PLSRegression(6).fit(X, y).x_scores_)
    # With constant columns scikit-learn's method has no solution.
    X = X[:, X.std(axis=0) > 0.1]
    model = streamsel.Discriminant(2, shrinkage=0.0)
    model.learn_target(y.astype(str))
    model.learn_columns(X)
    Z = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).transform(X)
    q = min(2, Z.shape[1])
    same_up_to_sign(model.embedding, Z[:, :q] - Z[:, :q].mean(axis=0), 1e-7)


def test_many_sparse_columns():
    n, p, rng = 2_000, 100_000, np.random.default_rng(0)
    groups = rng.integers(4, size=p)
    # Columns of three groups are nonzero in the same rows, so that eigenvalues are distinct.
    high = np.array([40, 90, 200, n])[groups]
    indices = (rng.random((4, p)) * high).astype(int)
    X = sp.csc_array(
        (rng.normal(1.0, 0.3, 4 * p), (indices.T.ravel(), np.repeat(np.arange(p), 4))), shape=(n, p)
    )
    model = streamsel.PCA(3)
    for start in range(0, p, 30_000):
        model.learn_columns(X[:, start : start + 30_000], range(start, min(p, start + 30_000)))
    K = (X @ X.T).toarray()
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    Z = model.embedding
    d = np.sum(Z**2, axis=0)
    near(K @ Z, Z * d)
    np.testing.assert_allclose(d, sp.linalg.eigsh(K, 3)[0][::-1], rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio, d / np.trace(K), rtol=1e-9)


def test_reconstruction_of_columns():
    X = np.random.default_rng(0).normal(size=(30, 20)) + 5.0
    model = streamsel.PCA(20)
    with pytest.raises(ValueError, match="learn_columns"):
        model.reconstruct(X)
    model.learn_columns(X)
    again = dict(model.reconstruct(X))
    np.testing.assert_allclose(np.column_stack(list(again.values())), X, rtol=1e-9)
    for bad in (X[:20], np.where(X > 6.0, np.nan, X), X.astype(str)):
        with pytest.raises((ValueError, TypeError), match="Expected"):
            list(model.reconstruct(bad))


@pytest.mark.parametrize("name", ["PCA", "KernelPCA", "RankedPCA"])
def test_too_large_values_are_refused_with_a_hint(rng, name):
    """Values too large are refused with a hint; after division components are the same."""
    X = rng.normal(size=(12, 4)) * [1.0, 3.0, 5.0, 9.0]

    def learnt(X):
        model = getattr(streamsel, name)(2)
        if model._is_supervised:
            model.learn_target(np.arange(12.0))
        model.learn_columns(X)
        return model.embedding

    with pytest.raises(ValueError, match="Hint: divide all columns by the same number"):
        learnt(1e160 * X)
    found, expected = learnt(1e160 * X / 1e155), learnt(X)
    found, expected = (Z / np.linalg.norm(Z) for Z in (found, expected))
    np.testing.assert_allclose(found, expected, atol=1e-9)
