"""Selection adjusted for relatedness: estimates, whitening, and refused arguments."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

import streamsel
from streamsel import (
    MRMR,
    PCA,
    PLS,
    SOSPCA,
    ForwardSelection,
    Lasso,
    OnlineFDR,
    ProjSe,
    Relatedness,
    RobustPCA,
    SelectKBest,
    stream,
)
from streamsel.targets.reml import Spectrum
from streamsel.targets.whitening import Whitening
from tests.reference import relatedness as reference

N, P = 60, 90


@pytest.fixture(scope="module")
def families():
    """Return twelve families of five, with differences in all columns and in the target."""
    rng = np.random.default_rng(0)
    family = np.repeat(np.arange(12), 5)
    X = rng.normal(size=(N, P)) + 1.5 * rng.normal(size=(12, P))[family] + 4.0
    Z = rng.normal(size=(N, 2))
    y = X[:, 3] + 1.5 * rng.normal(size=12)[family] + Z[:, 0] + rng.normal(size=N)
    return np.asfortranarray(X), y, Z


def kinship(X):
    X = X - X.mean(axis=0)
    return X @ X.T / X.shape[1]


def learnt(model, X, y, relatedness, **options):
    model.learn_target(y, relatedness=relatedness, **options)
    model.learn_columns(X)
    return model


def ratio_of(model, group=None):
    return model.variance_components[group].ratio


# ----------------------------------------------------------------------------------- the estimates


@pytest.mark.parametrize("with_covariates", [False, True])
def test_the_ratio_maximises_the_restricted_likelihood(families, with_covariates):
    X, y, Z = families
    Z, K = Z if with_covariates else None, kinship(X)
    model = learnt(SelectKBest(5), X, y, K, covariates=Z)
    found = model.variance_components[None]
    assert found.ratio == pytest.approx(reference.best_ratio([y], Z, K), rel=1e-5)
    expected = reference.log_likelihood(y, Z, K, found.ratio)
    assert found.log_likelihood == pytest.approx(expected, abs=1e-8)
    W = reference.design(y, Z)
    variance = y @ reference.projection(K, found.ratio, W) @ y / (N - W.shape[1])
    assert found.sigma2_e == pytest.approx([variance])
    assert found.sigma2_u == pytest.approx([variance * found.ratio])
    scaled = found.ratio * np.trace(K) / N
    assert found.heritability == pytest.approx(scaled / (scaled + 1.0))


def test_several_targets_share_a_ratio(families):
    X, y, Z = families
    K, Y = kinship(X), np.column_stack([y, X[:, 5] + Z[:, 1], Z[:, 0]])
    model = learnt(SelectKBest(5), X, Y, K)
    assert ratio_of(model) == pytest.approx(reference.best_ratio(Y.T, None, K), rel=1e-5)
    assert len(model.variance_components[None].sigma2_e) == 3


def test_two_classes_are_a_single_column(families):
    X, y, _ = families
    labels = np.where(y > np.median(y), "high", "low")
    found = learnt(SelectKBest(5), X, labels, kinship(X))
    numbers = SelectKBest(5, target_type="numeric")
    expected = learnt(numbers, X, (labels == "high") * 1.0, kinship(X))
    assert ratio_of(found) == pytest.approx(ratio_of(expected))
    assert found.p_values == pytest.approx(expected.p_values)


def test_without_relatedness_of_the_target_the_ratio_is_0(families):
    X, _, _ = families
    y = np.tile([-1.0, 2.0, 0.0, 1.0, -2.0], 12) + 0.01 * np.random.default_rng(1).normal(size=N)
    model = learnt(SelectKBest(5), X, y, np.kron(np.eye(12), np.ones((5, 5))))
    assert ratio_of(model) == 0.0
    plain = SelectKBest(5)
    plain.learn_target(y)
    plain.learn_columns(X)
    assert model.p_values == pytest.approx(plain.p_values)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 3.7, 1e6])
@pytest.mark.parametrize("offset", [0.0, 0.3])
def test_a_ratio_that_the_target_does_not_determine_is_0(families, scale, offset):
    X, y, Z = families
    K = scale * (np.eye(N) + offset)
    components = learnt(SelectKBest(5), X, y, K, covariates=Z).variance_components[None]
    assert (components.ratio, components.heritability, components.sigma2_u) == (0.0, 0.0, [0.0])
    plain = SelectKBest(5)
    plain.learn_target(y, Z)
    plain.learn_columns(X)
    assert learnt(SelectKBest(5), X, y, K, covariates=Z).p_values == pytest.approx(plain.p_values)


def test_a_target_without_residual_variance_has_a_large_ratio(families):
    X, _, _ = families
    family = np.repeat(np.arange(12), 5)
    y = np.random.default_rng(1).normal(size=12)[family] + 1e-5 * X[:, 2]
    model = learnt(SelectKBest(5), X, y, np.kron(np.eye(12), np.ones((5, 5))))
    assert 1e4 < ratio_of(model) <= 1.1e5
    assert all(0.0 <= p <= 1.0 for p in model.p_values.values())


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_the_unit_of_the_target_does_not_matter(families, unit):
    X, y, Z = families
    found = learnt(SelectKBest(P), X, unit * y, kinship(X), covariates=Z / unit)
    expected = learnt(SelectKBest(P), X, y, kinship(X), covariates=Z)
    assert found.p_values == pytest.approx(expected.p_values)
    one, other = found.variance_components[None], expected.variance_components[None]
    assert one.ratio == pytest.approx(other.ratio)
    assert one.sigma2_e[0] / unit**2 == pytest.approx(other.sigma2_e[0])
    shift = (N - 3) * np.log(unit)
    assert one.log_likelihood + shift == pytest.approx(other.log_likelihood)
    with pytest.raises(ValueError, match="whose squares fit into float64"):
        SelectKBest(3).learn_target(1e200 * y, relatedness=kinship(X))


def test_bad_targets_and_covariates_are_refused_as_without_relatedness(families):
    X, y, Z = families
    for target, covariates, message in (
        (np.ones(N), None, "a target that varies"),
        (y, y, "covariates do not determine"),
        (y, X, "covariates do not determine"),
        (np.where(y > 1.0, np.nan, y), Z, "Expected a finite target"),
    ):
        with pytest.raises(ValueError, match=message):
            SelectKBest(3).learn_target(target, covariates, relatedness=kinship(X))


def test_survival_and_classes_are_whitened_too(families):
    X, y, _ = families
    rng = np.random.default_rng(2)
    times = np.column_stack([np.exp(y), rng.random(N) < 0.7])
    model = learnt(SelectKBest(3, target_type="survival"), X, times, kinship(X))
    assert model.variance_components[None].heritability > 0.1
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    model = learnt(SelectKBest(3, target_type="class"), X, labels, kinship(X))
    assert model.report().target.startswith("3 classes")


@given(seed=st.integers(0, 50), scale=st.sampled_from([1e-8, 1.0, 1e6]), c=st.integers(1, 3))
@settings(deadline=None, max_examples=20)
def test_the_estimate_scales_with_the_matrix_and_ignores_the_offset(seed, scale, c):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(20, 30))
    K, Y = A @ A.T / 30, rng.normal(size=(20, c)) + rng.normal(size=(20, c)) @ np.eye(c)
    none = np.zeros((20, 0))
    one = Relatedness(K).whiten(Y, none).components[None]
    other = Relatedness(K * scale).whiten(Y + 100.0, none).components[None]
    assert other.ratio * scale == pytest.approx(one.ratio, rel=1e-5, abs=1e-12)
    assert other.heritability == pytest.approx(one.heritability, abs=1e-6)
    assert 0.0 <= one.heritability < 1.0


# ----------------------------------------------------------------------------------- the whitening


@given(
    seed=st.integers(0, 30),
    offset=st.sampled_from([0.0, 1e9, -1e12]),
    ratio=st.sampled_from([0.0, 0.3, 1e5]),
    is_centred=st.booleans(),
)
@settings(deadline=None, max_examples=40)
def test_whitened_columns_have_the_moments_of_generalised_least_squares(
    seed, offset, ratio, is_centred
):
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 3, (14, 40)).astype(float)
    K = kinship(A) if is_centred else A @ A.T / 40
    X = rng.integers(-40, 40, (5, 14)).astype(float)
    found = Relatedness(K, ratio=ratio).whiten(X[:1].T, np.zeros((14, 0)))
    out, mean, low = found.transform(X + offset)
    np.testing.assert_allclose(out.mean(axis=1), 0.0, atol=1e-9)
    inverse = np.linalg.inv(ratio * K + np.eye(14))
    means = X @ inverse.sum(axis=0) / inverse.sum()
    np.testing.assert_allclose((mean - offset) + low, means, atol=1e-7)
    centred = X - means[:, None]
    products = centred @ inverse @ centred.T * (14.0 / inverse.sum())
    np.testing.assert_allclose(out @ out.T, products, atol=1e-8 * np.abs(products).max())
    back = found.inverse_transform(out.T).T
    np.testing.assert_allclose(back, centred, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool, object])
def test_the_type_of_the_columns_does_not_matter(families, dtype):
    X, y, _ = families
    X = np.round(X - 4.0).astype(dtype)
    K = kinship(np.round(families[0]))
    expected = learnt(SelectKBest(P), X.astype(float), y, K)
    assert learnt(SelectKBest(P), X, y, K).p_values == expected.p_values
    sparse = learnt(SelectKBest(P), csc_array(X.astype(float)), y, K)
    assert sparse.p_values == expected.p_values


def test_bits_do_not_depend_on_blocks_or_threads():
    rng = np.random.default_rng(3)
    X, y = np.asfortranarray(rng.normal(size=(150, 700))), rng.normal(size=150)
    K = kinship(X)
    expected = learnt(SelectKBest(700), X, y, K).p_values
    for width in (1, 7, 24, 191, 500):
        model = SelectKBest(700, n_jobs=1 + width % 3)
        model.learn_target(y, relatedness=K)
        for start in range(0, 700, width):
            part = slice(start, start + width)
            model.learn_columns(X[:, part], range(700)[part])
        assert model.p_values == expected
    model = SelectKBest(700)
    model.learn_target(y, relatedness=K)
    for j in reversed(range(40)):
        model.learn_column(j, X[:, j])
    assert all(model.p_values[j] == expected[j] for j in range(40))
    relatedness = [
        Relatedness.from_columns(stream.as_stream(X)),
        Relatedness.from_columns((j, x) for j, x in enumerate(X.T)),
    ]
    assert np.array_equal(relatedness[0].matrix, relatedness[1].matrix)


def test_bad_columns_are_named_and_change_no_other(families):
    X, y, _ = families
    X = X.copy()
    X[7, 5] = np.nan
    model = SelectKBest(5)
    model.learn_target(y, relatedness=kinship(families[0]))
    with pytest.raises(ValueError, match=r"column 5. Got: 1 of 60 values missing .*in row 7"):
        model.learn_columns(X)
    assert model.n_columns == 0
    X[:, 5] = 3.0
    model.learn_columns(X)
    assert model.n_constant == 1


# ------------------------------------------------------------------------------------- the learners


def test_p_values_are_those_of_generalised_least_squares(families):
    X, y, Z = families
    K = kinship(X)
    model = learnt(SelectKBest(P), X, y, K, covariates=Z)
    for j, p in model.p_values.items():
        assert p == pytest.approx(reference.p_value(X[:, j], y, Z, K, ratio_of(model)), rel=1e-7)


@pytest.mark.parametrize("make", [lambda: SelectKBest(fdr=0.2), lambda: OnlineFDR(fdr=0.5)])
def test_p_values_of_heavy_tails_are_those_of_the_f_test(make):
    rng = np.random.default_rng(2)
    family = np.repeat(np.arange(12), 5)
    X = rng.normal(size=(N, 20)) + rng.normal(size=(12, 20))[family]
    y = np.exp(1.2 * rng.normal(size=N) + X[:, 3]) + 2.0 * rng.normal(size=12)[family]
    K = np.equal.outer(family, family).astype(float)
    model = learnt(make(), X, y, K)
    assert model.selected
    assert not model.report().normal_scores
    for j, p in model.p_values.items():
        assert p == pytest.approx(reference.p_value(X[:, j], y, None, K, ratio_of(model)), rel=1e-7)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SelectKBest(5),
        lambda: ForwardSelection(4, exact=True, max_candidates=20),
        lambda: Lasso(k=4),
        lambda: MRMR(4),
        lambda: ProjSe(k=4),
        lambda: SOSPCA(3),
    ],
    ids=["SelectKBest", "ForwardSelection", "Lasso", "MRMR", "ProjSe", "SOSPCA"],
)
def test_learners_equal_those_on_whitened_columns(families, make):
    X, y, Z = families
    K = kinship(X)
    model = learnt(make(), X, y, K, covariates=Z)
    columns = reference.whitened(np.column_stack([X, y, Z]), K, ratio_of(model))
    plain = make()
    plain.learn_target(columns[:, P], covariates=columns[:, P + 1 :])
    plain.learn_columns(columns[:, :P])
    assert model.relevance == pytest.approx(plain.relevance, abs=1e-8)
    if hasattr(model, "selected"):
        assert model.selected == plain.selected
        assert model.scores == pytest.approx(plain.scores, rel=1e-6)
    assert not hasattr(model, "coefficients") or model.coefficients == pytest.approx(
        plain.coefficients, rel=1e-5
    )


def test_unsupervised_components_need_a_ratio(families):
    X, _, _ = families
    K = kinship(X)
    with pytest.raises(ValueError, match="Expected a fixed variance ratio"):
        PCA(2).learn_target(None, relatedness=K)
    model = learnt(PCA(2), X, None, Relatedness(K, ratio=0.7))
    columns = reference.whitened(X, K, 0.7)
    plain = PCA(2)
    plain.learn_columns(columns)
    assert model.explained_variance == pytest.approx(plain.explained_variance)
    back = model._target.row_transform.inverse_transform(plain.embedding)
    found = model.embedding
    np.testing.assert_allclose(found * np.sign((found * back).sum(axis=0)), back, atol=1e-8)


def test_whitened_residuals_are_permuted(families):
    X, y, Z = families
    model = learnt(SelectKBest(3, permutations=200), X, y, kinship(X), covariates=Z)
    floor = model.noise_floor()
    assert floor == pytest.approx(learnt(SelectKBest(3), X, y, kinship(X)).noise_floor(), abs=0.1)


def test_learners_that_use_single_observations_refuse(families):
    X, y, _ = families
    K = kinship(X)
    for model in (SelectKBest(3, score="mutual_info"), MRMR(3, score="mutual_info")):
        with pytest.raises(ValueError, match="Expected no relatedness"):
            model.learn_target(y, relatedness=K)
        assert model.variance_components == {}
    with pytest.raises(ValueError, match="Expected no relatedness"):
        RobustPCA(2).learn_target(None, relatedness=Relatedness(K, ratio=1.0))
    with pytest.raises(ValueError, match=r"Expected weights or relatedness. Got: both"):
        SelectKBest(3).learn_target(y, weights=np.arange(N), relatedness=K)


# ------------------------------------------------------------------- where relatedness comes from


def test_all_forms_of_relatedness_agree(families):
    X, y, Z = families
    expected = learnt(SelectKBest(P), X, y, Relatedness.from_columns(X), covariates=Z)
    assert learnt(SelectKBest(P), X, y, "auto", covariates=Z).p_values == expected.p_values
    pca = PCA(2, scale=False)
    pca.learn_columns(X)
    assert learnt(SelectKBest(P), X, y, pca, covariates=Z).p_values == expected.p_values
    near = learnt(SelectKBest(P), X, y, kinship(X), covariates=Z)
    assert near.p_values == pytest.approx(expected.p_values, rel=1e-9)
    scaled = PCA(2, scale=True)
    scaled.learn_columns(X)
    unit = (X - X.mean(axis=0)) / X.std(axis=0)
    found = learnt(SelectKBest(P), X, y, scaled)
    assert ratio_of(found) == pytest.approx(ratio_of(learnt(SelectKBest(P), X, y, kinship(unit))))


def test_auto_reads_the_source_twice(families):
    X, y, _ = families
    model = SelectKBest(5)
    model.learn_target(y, relatedness="auto")
    with pytest.raises(ValueError, match=r"Expected a reiterable source.*a single column"):
        model.learn_column("a", X[:, 0])
    with pytest.raises(ValueError, match=r"Expected a reiterable source.*read only once"):
        model.learn_columns((j, x) for j, x in enumerate(X.T))
    with pytest.raises(ValueError, match='Expected columns, as relatedness="auto"'):
        model.clone(include_attributes=True).learn_one({"a": 1.0}, 2.0)
    X_bad = X.copy()
    X_bad[3, 80] = np.inf
    with pytest.raises(ValueError, match="column 80"):
        model.learn_columns(X_bad)
    assert model.n_columns == 0
    assert model.variance_components == {}
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301
    for each in (model, copied):
        each.learn_columns(X)
    expected = learnt(SelectKBest(5), X, y, Relatedness.from_columns(X))
    assert model.p_values == copied.p_values == expected.p_values
    assert model.n_passes == expected.n_passes + 1 == 2


def test_an_exact_answer_takes_further_passes(families):
    X, y, Z = families
    model = ForwardSelection(3, exact=True, max_candidates=10)
    learnt(model, X, y, "auto", covariates=Z)
    expected = learnt(ForwardSelection(3), X, y, Relatedness.from_columns(X), covariates=Z)
    assert model.selected == expected.selected
    assert model.n_certified == 3
    assert model.n_passes > 2


def test_an_error_after_the_first_pass_restores_the_target(families):
    X, y, _ = families
    model = SelectKBest(5)
    model.learn_target(y, relatedness="auto")
    twice = [*range(P - 1), 0]
    with pytest.raises(ValueError, match="0"):
        model.learn_columns(X, twice)
    assert model.variance_components == {}
    model.learn_columns(X)
    assert model.variance_components


def test_rows_without_a_target_are_dropped_from_the_matrix(families):
    X, y, Z = families
    y = y.copy()
    y[[4, 17]] = np.nan
    kept = np.isfinite(y)
    K = kinship(X)
    found = learnt(SelectKBest(5), X, y, K, covariates=Z, missing="drop")
    expected = SelectKBest(5)
    expected.learn_target(y[kept], Z[kept], relatedness=K[np.ix_(kept, kept)])
    expected.learn_columns(X[kept])
    assert found.p_values == pytest.approx(expected.p_values)
    auto = learnt(SelectKBest(5), X, y, "auto", covariates=Z, missing="drop")
    expected = learnt(SelectKBest(5), X[kept], y[kept], "auto", covariates=Z[kept])
    assert auto.p_values == pytest.approx(expected.p_values)


def test_the_gram_matrix_of_a_model_is_of_the_same_rows(families):
    X, y, _ = families
    first, last = y.copy(), y.copy()
    first[:2], last[-2:] = np.nan, np.nan
    pls = PLS(2)
    learnt(pls, X, first, None, missing="drop")
    found = learnt(SelectKBest(5), X, first, pls, missing="drop")
    expected = PLS(2)
    learnt(expected, X[2:], first[2:], None)
    assert found.p_values == learnt(SelectKBest(5), X[2:], first[2:], expected).p_values
    with pytest.raises(ValueError, match="a model which has excluded other rows"):
        SelectKBest(5).learn_target(last, relatedness=pls, missing="drop")


def test_the_gram_matrix_of_residuals_is_refused(families):
    X, y, Z = families
    pls = learnt(PLS(2), X, y, None, covariates=Z)
    with pytest.raises(ValueError, match=r"columns themselves\. Got: a model with covariates"):
        SelectKBest(5).learn_target(y, relatedness=pls)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda K: K[:-1], "a square matrix"),
        (lambda K: K[0], "a square matrix"),
        (lambda K: K[:-1, :-1], "relatedness of 60 rows, as the target has. Got: 59"),
        (lambda K: K + np.eye(N, k=1), "a symmetric relatedness matrix"),
        (lambda K: K - 2.0 * np.eye(N), "a positive semi-definite relatedness matrix"),
        (
            lambda K: np.where(np.eye(N), np.nan, K),
            "Expected finite relatedness. Got: nan in row 0",
        ),
        (lambda K: -np.eye(N), "a positive semi-definite relatedness matrix"),
    ],
)
def test_invalid_relatedness_matrices_are_refused(families, change, message):
    X, y, _ = families
    model = SelectKBest(5)
    with pytest.raises(ValueError, match=message):
        model.learn_target(y, relatedness=change(kinship(X)))
    assert model.n_rows == 0


def test_other_values_are_refused(families, monkeypatch):
    X, y, _ = families
    for value in ("automatic", SelectKBest(3), [["a", "b"], ["c", "d"]], kinship(X) + 0j):
        with pytest.raises(TypeError, match="Expected"):
            SelectKBest(5).learn_target(y, relatedness=value)
    with pytest.raises(TypeError, match="Expected groups of columns as a dict"):
        Relatedness.from_columns(X, [1, 2])
    with pytest.raises(ValueError, match="ratio"):
        Relatedness(kinship(X), ratio=-1.0)
    with pytest.raises(ValueError, match="Expected a column that varies"):
        Relatedness.from_columns(np.ones((5, 3)))
    monkeypatch.setattr("streamsel.base.relatedness.MAX_GRAM_ROWS", 50)
    for call in (
        lambda: Relatedness(kinship(X)),
        lambda: Relatedness.from_columns(X),
        lambda: learnt(SelectKBest(5), X, y, "auto"),
    ):
        with pytest.raises(ValueError, match=r"at most 50 rows. Got: 60.\nHint: pass the leading"):
            call()


# ------------------------------------------------------------------------------ groups left out


@pytest.fixture(scope="module")
def left_out(families):
    """Return a model with three groups of columns, each left out of its own relatedness."""
    X, y, Z = families
    relatedness = Relatedness.from_columns(X, {j: "abc"[j % 3] for j in range(P)})
    return learnt(SelectKBest(P), X, y, relatedness, covariates=Z)


def test_every_group_has_the_p_values_of_its_own_model(families, left_out):
    X, y, Z = families
    assert list(left_out.variance_components) == [None, "a", "b", "c"]
    for r, group in enumerate("abc"):
        own = np.arange(P) % 3 == r
        K, ratio = kinship(X[:, ~own]), ratio_of(left_out, group)
        assert ratio == pytest.approx(reference.best_ratio([y], Z, K), rel=1e-5)
        for j in np.flatnonzero(own).tolist():
            expected = reference.p_value(X[:, j], y, Z, K, ratio)
            assert left_out.p_values[j] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("several", ["labels", "columns"])
def test_groups_serve_several_targets_and_dependent_covariates(families, several):
    X, y, Z = families
    Z = np.column_stack([Z, Z.sum(axis=1), np.ones(N)])
    y = np.digitize(y, np.quantile(y, [0.3, 0.6])) if several == "labels" else np.c_[y, X[:, 9]]
    groups = {j: j % 2 for j in range(P)}
    model = SelectKBest(P, target_type="class" if several == "labels" else "numeric")
    learnt(model, X, y, Relatedness.from_columns(X, groups), covariates=Z)
    for group in (0, 1):
        own = np.arange(P) % 2 == group
        ratio = ratio_of(model, group)
        plain = SelectKBest(P, target_type=model.target_type)
        relatedness = Relatedness(kinship(X[:, ~own]), ratio=ratio)
        plain.learn_target(y, Z, relatedness=relatedness)
        plain.learn_columns(X)
        for j in np.flatnonzero(own).tolist():
            assert model.p_values[j] == pytest.approx(plain.p_values[j], rel=1e-7)


def test_groups_by_a_function_or_by_matrices_agree(families, left_out):
    X, y, Z = families
    groups = {j: "abc"[j % 3] for j in range(P)}
    by_function = Relatedness.from_columns(X, lambda j: "abc"[j % 3])
    found = learnt(SelectKBest(P), X, y, by_function, covariates=Z)
    assert found.p_values == left_out.p_values
    matrices = {g: kinship(X[:, np.arange(P) % 3 != r]) for r, g in enumerate("abc")}
    given_matrices = Relatedness(matrices, groups)
    found = learnt(SelectKBest(P), X, y, given_matrices, covariates=Z)
    assert found.p_values == pytest.approx(left_out.p_values, rel=1e-7)
    model = SelectKBest(5)
    model.learn_target(y, relatedness=given_matrices)
    with pytest.raises(ValueError, match="Expected a column of one of the groups"):
        model.learn_column("new", X[:, 0])
    # A column without a group has the matrix of all columns.
    model = SelectKBest(5)
    model.learn_target(y, Z, relatedness=Relatedness.from_columns(X, groups))
    model.learn_column("new", X[:, 0])
    whole = SelectKBest(5)
    whole.learn_target(y, Z, relatedness=Relatedness.from_columns(X))
    whole.learn_column("new", X[:, 0])
    assert model.p_values == pytest.approx(whole.p_values, rel=1e-9)


def test_bits_with_groups_do_not_depend_on_blocks(families, left_out):
    X, y, Z = families
    relatedness = Relatedness.from_columns(X, {j: "abc"[j % 3] for j in range(P)})
    model = SelectKBest(P, n_jobs=2)
    model.learn_target(y, Z, relatedness=relatedness)
    for start in range(0, P, 11):
        model.learn_columns(X[:, start : start + 11], range(P)[start : start + 11])
    assert model.p_values == left_out.p_values


def test_names_and_groups_of_numpy_are_stored(families, left_out, tmp_path):
    X, y, Z = families
    names, groups = np.arange(P), np.arange(P) % 3
    relatedness = Relatedness.from_columns(X, dict(zip(names, groups, strict=True)))
    model = SelectKBest(P)
    model.learn_target(y, Z, relatedness=relatedness)
    streamsel.save(model, tmp_path / "model")
    model = streamsel.load(tmp_path / "model")
    model.learn_columns(X, names)
    assert list(model.variance_components) == [None, 0, 1, 2]
    assert model.p_values == left_out.p_values


@pytest.mark.parametrize("missing", [None, np.nan, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
@pytest.mark.parametrize("by_function", [False, True])
def test_a_missing_group_is_unknown(families, tmp_path, missing, by_function):
    X, y, _ = families
    expected = {j: None if j % 3 == 2 else j % 3 for j in range(P)}
    groups = {j: missing if group is None else group for j, group in expected.items()}
    given = groups.__getitem__ if by_function else groups
    relatedness = Relatedness.from_columns(X, given)
    np.testing.assert_allclose(relatedness.matrix, kinship(X), rtol=1e-9)
    model = learnt(SelectKBest(P), X, y, relatedness)
    plain = learnt(SelectKBest(P), X, y, Relatedness.from_columns(X, expected))
    assert list(model.variance_components) == [None, 0, 1]
    assert model.p_values == plain.p_values
    streamsel.save(model, tmp_path / "model")
    assert streamsel.load(tmp_path / "model").p_values == plain.p_values
    matrices = {missing: kinship(X), 0: kinship(X[:, 1:]), 1: kinship(X[:, 2:])}
    assert list(Relatedness(matrices, given)._matrices) == [None, 0, 1]


def test_groups_of_a_series_of_floats_are_stored(families, tmp_path):
    X, y, _ = families
    series = pd.Series([1.0, 2.0, np.nan] * (P // 3), index=[*map(float, range(P - 1)), np.nan])
    model = learnt(SelectKBest(P), X, y, Relatedness.from_columns(X, dict(series)))
    streamsel.save(model, tmp_path / "model")
    assert list(streamsel.load(tmp_path / "model").variance_components) == [None, 1.0, 2.0]


def test_a_group_left_out_may_have_another_scale(families):
    """A difference of the matrices of all columns and of the group would be rounding errors."""
    X = families[0] * np.where(np.arange(P) < P // 2, 1e8, 1.0)
    groups = {j: "large" if j < P // 2 else "small" for j in range(P)}
    found = Relatedness.from_columns(X, groups)._matrices["large"]
    np.testing.assert_allclose(found, kinship(X[:, P // 2 :]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("groups", [{"x0": 1, "x1": 2}, {0: None, 1: np.nan}, lambda _: None, {}])
def test_groups_of_no_column_are_refused(families, groups):
    X, _, _ = families
    with pytest.raises(
        ValueError, match=r"Expected a group of one of the columns.*\nHint: groups="
    ):
        Relatedness.from_columns(X, groups)


def test_groups_of_columns_learnt_under_other_names_are_reported(families, tmp_path):
    X, y, _ = families
    model, whole = SelectKBest(P), learnt(SelectKBest(P), X, y, Relatedness.from_columns(X))
    relatedness = Relatedness.from_columns(X, {j: j % 2 for j in range(P)})
    model.learn_target(y, relatedness=relatedness)
    names = [f"x{j}" for j in range(P)]
    with pytest.warns(UserWarning, match=r"None of the columns has a group.*\[0, 1, 2"):
        model.learn_columns(X[:, :40], names[:40])
    for j in range(40):
        assert model.p_values[f"x{j}"] == pytest.approx(whole.p_values[j], rel=1e-9)
    # Columns that are known to have no group are valid.
    unknown = {j: None if j < 40 else j % 2 for j in range(P)}
    learnt(SelectKBest(P), X[:, :40], y, Relatedness.from_columns(X, unknown))
    # One block of columns without groups does not cause a warning.
    model = SelectKBest(P)
    model.learn_target(y, relatedness=relatedness)
    model.learn_columns([(0, X[:, 0]), *zip(names, X.T, strict=True)])
    model.learn_columns(X[:, :3], ["a", "b", "c"])
    streamsel.save(model, tmp_path / "model")
    streamsel.load(tmp_path / "model").learn_columns(X[:, :3], ["d", "e", "f"])


def test_groups_that_cannot_be_hashed_are_refused(families):
    X, _, _ = families
    for groups in ({0: ["a"]}, lambda _: ["a"]):
        with pytest.raises(TypeError, match=r"Expected groups that can be hashed.*Got: \['a'\]"):
            Relatedness.from_columns(X, groups)


def test_learners_of_joint_columns_refuse_groups(families, left_out):
    X, y, _ = families
    groups = Relatedness.from_columns(X, {j: j % 2 for j in range(P)})
    for model in (ForwardSelection(3), Lasso(k=3), SOSPCA(2)):
        with pytest.raises(ValueError, match="Expected relatedness without groups"):
            model.learn_target(y, relatedness=groups)
    with pytest.raises(ValueError, match="Expected permutations=0 with groups"):
        SelectKBest(3, permutations=10).learn_target(y, relatedness=groups)
    model = copy.deepcopy(left_out)
    with pytest.raises(ValueError, match="groups of columns are left out"):
        model.learn_one({0: 1.0}, 2.0)
    for K, groups in ((np.eye(5), {0: 1}), ({0: np.eye(5)}, None), ({}, {0: 1})):
        with pytest.raises(ValueError, match=r"Expected (a dict|groups)"):
            Relatedness(K, groups)
    with pytest.raises(ValueError, match="Expected two groups or more"):
        Relatedness.from_columns(X, dict.fromkeys(range(P), 1))
    with pytest.raises(ValueError, match="Expected matrices of one shape"):
        Relatedness({0: np.eye(5), 1: np.eye(4)}, {0: 1})


# --------------------------------------------------------------------- files, copies, rows, reports


def test_files_and_copies_continue_with_the_same_bits(families, left_out, tmp_path):
    X, y, _ = families
    single = learnt(SelectKBest(P), X, y, kinship(X))
    for model in (single, left_out):
        streamsel.save(model, tmp_path / "model")
        restored = streamsel.load(tmp_path / "model")
        pickled = pickle.loads(pickle.dumps(model))  # noqa: S301
        for copied in (restored, copy.deepcopy(model), pickled):
            assert copied.p_values == model.p_values
            assert copied.variance_components == model.variance_components
    half, other = SelectKBest(P), SelectKBest(P)
    half.learn_target(y, relatedness=kinship(X))
    streamsel.save(half, tmp_path / "half")
    half = streamsel.load(tmp_path / "half")
    half.learn_columns(X[:, :40])
    other.learn_target(y, relatedness=kinship(X))
    other.learn_columns(X[:, 40:], range(40, P))
    half.merge(other)
    assert half.p_values == single.p_values


def test_models_with_another_relatedness_do_not_merge(families):
    X, y, _ = families
    one, other = SelectKBest(3), SelectKBest(3)
    learnt(one, X[:, :40], y, kinship(X))
    other.learn_target(y, relatedness=kinship(X[:, :40]))
    other.learn_columns(X[:, 40:], range(40, P))
    with pytest.raises(ValueError, match="Expected two models of the same target"):
        one.merge(other)


@pytest.mark.parametrize("by_function", [False, True])
def test_models_with_other_groups_do_not_merge(families, by_function):
    X, y, _ = families
    matrices = {None: kinship(X), 0: kinship(X[:, 1:]), 1: kinship(X[:, 2:])}
    first, second = {j: j % 2 for j in range(P)}, {j: 1 - j % 2 for j in range(P)}
    if by_function:
        first, second = first.get, second.get

    def of(groups, part):
        model = SelectKBest(P)
        model.learn_target(y, relatedness=Relatedness(matrices, groups))
        model.learn_columns(X[:, part], range(P)[part])
        return model

    model = of(first, slice(40))
    with pytest.raises(ValueError, match="Expected two models of the same target"):
        model.merge(of(second, slice(40, P)))
    model.merge(of(first, slice(40, P)))
    assert model.p_values == of(first, slice(P)).p_values


def test_a_copy_does_not_store_a_function_of_groups(families):
    X, y, _ = families
    model = SelectKBest(3)
    model.learn_target(y, relatedness=Relatedness.from_columns(X, lambda j: j % 2))
    copied = copy.deepcopy(model)
    with pytest.raises(ValueError, match="whose groups were a function"):
        copied.learn_columns(X)
    model.learn_columns(X)
    assert "effect" in model.statistics()
    assert "effect" not in copy.deepcopy(model).statistics()


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state["frames"][0].update(transposed=np.zeros((3, 3))),
        lambda state: state["frames"][0].update(transposed=np.full((N, N), np.nan)),
        lambda state: state["frames"][0].update(reflections=np.ones((1, N))),
        lambda state: state.update(left_out=[None, 1]),
        lambda state: state.update(frames=[]),
        lambda state: state.update(components=[]),
        lambda state: state.update(by_column=1),
        lambda state: state["components"][0].update(ratio=-1.0),
        lambda state: state["components"][0].update(sigma2_e=3.0),
        lambda state: state["components"][0].pop("heritability"),
        lambda state: state.update(groups=[[0, 0], ["a", "b"]]),
        lambda state: state.update(groups=[[0], []]),
        lambda state: state.update(groups=3),
    ],
)
def test_a_damaged_whitening_is_refused(families, change):
    X, y, _ = families
    model = learnt(ProjSe(k=2), X, y, kinship(X))
    state = copy.deepcopy(model._get_state())
    change(state["target_whitening"])
    with pytest.raises(ValueError, match="Expected"):
        model.clone()._set_state(state)


def test_rows_learnt_later_are_independent_observations(families):
    X, y, _ = families
    K, rng = kinship(X), np.random.default_rng(7)
    rows, targets = rng.normal(size=(8, P)) + 4.0, rng.normal(size=8)
    model = learnt(SelectKBest(P), X, y, Relatedness(K, ratio=1.5))
    V = 1.5 * K + np.eye(N)
    unit = np.linalg.inv(V).sum() / N
    for row, target in zip(rows, targets, strict=True):
        model.learn_one(dict(enumerate(row)), target)
    # Jointly: the first rows have covariance V, scaled so that the mean has n observations.
    joint = np.eye(N + 8)
    joint[:N, :N] = V * unit
    both, ys = np.vstack([X, rows]), np.append(y, targets)
    for j, p in model.p_values.items():
        P_ = reference.projection(joint - np.eye(N + 8), 1.0, np.ones((N + 8, 1)))
        x = both[:, j]
        square = (x @ P_ @ ys) ** 2 / ((x @ P_ @ x) * (ys @ P_ @ ys))
        assert model.relevance[j] ** 2 == pytest.approx(square, rel=1e-7)
        assert 0.0 < p <= 1.0


def test_the_report_shows_variance_components(families, left_out):
    X, y, _ = families
    model = learnt(SelectKBest(3), X, y, kinship(X))
    [row] = model.report().as_dict()["variance_components"]
    assert row == {"left_out": None, **model.variance_components[None]._asdict()}
    rows = left_out.report().as_dict()["variance_components"]
    assert [row["left_out"] for row in rows] == [None, "a", "b", "c"]
    plain = SelectKBest(3)
    plain.learn_target(y)
    plain.learn_columns(X)
    assert "variance_components" not in plain.report().as_dict()
    page = streamsel.report(model)
    assert f"explains {row['heritability']:.0%} of the variance" in str(page)


def test_inflation_uses_whitened_columns(families):
    rng = np.random.default_rng(5)
    family = np.repeat(np.arange(20), 5)
    X = rng.normal(size=(100, 1500)) + 1.5 * rng.normal(size=(20, 1500))[family]
    y = 2.0 * rng.normal(size=20)[family] + rng.normal(size=100)
    plain = SelectKBest(3)
    plain.learn_target(y)
    plain.learn_columns(X)
    model = learnt(SelectKBest(3), X, y, "auto")
    assert plain.report().inflation > 2.0
    assert "relatedness" in plain.report().warnings[0].text
    assert model.report().inflation < 1.3
    # After whitening, the sampled columns have the kurtosis of normal ones.
    assert not model.report().warnings


def test_whitening_is_restored_from_its_state(families):
    X, y, _ = families
    whitening = Whitening.of(
        [(None, Spectrum.of(kinship(X), 1e-6))], y[:, None], np.zeros((N, 0)), ratio=0.4
    )
    restored = Whitening.from_state(whitening.to_state()["target_whitening"], N)
    for one, other in zip(whitening.transform(X.T), restored.transform(X.T), strict=True):
        assert np.array_equal(one, other)
    assert whitening.same_as(restored)


# ---------------------------------------------------------------------------------------- real data


def test_p_values_of_related_mice_are_no_longer_inflated(dataset):
    X, y, _, _ = dataset("mouse_hs1940")
    X, y = np.asfortranarray(X[::2, ::6]), y[::2]
    plain = SelectKBest(3)
    plain.learn_target(y)
    plain.learn_columns(X)
    model = learnt(SelectKBest(3), X, y, "auto")
    assert plain.report().inflation > 5.0
    assert 0.6 < model.report().inflation < 1.2
    assert 0.4 < model.variance_components[None].heritability < 0.8
    K, ratio = Relatedness.from_columns(X).matrix, ratio_of(model)
    for j, p in model.p_values.items():
        assert p == pytest.approx(reference.p_value(X[:, j], y, None, K, ratio), rel=1e-6)


@pytest.mark.parametrize("kind", ["binary", "count"])
@pytest.mark.parametrize("relatedness", ["auto", np.eye(20)])
def test_targets_with_unequal_variances_are_refused(kind, relatedness):
    model = SelectKBest(2, target_type=kind)
    with pytest.raises(ValueError, match="whose residuals have one variance"):
        model.learn_target(np.arange(20) % 2, relatedness=relatedness)
    assert model.n_rows == 0
