"""The target: labels and numbers, its space, relevance, and the noise floor."""

import importlib
import warnings

import numpy as np
import pytest

from streamsel import SOSPCA, ProjSe
from streamsel.target.target import Target
from tests.reference import noise
from tests.reference import target as space


def relevances(y, X, **options):
    """Relevance of every column, by a selector that keeps them all."""
    model = ProjSe(k=X.shape[1], **options)
    model.learn_target(y)
    model.learn_columns(X)
    return np.array([model.relevance.get(j, 0.0) for j in range(X.shape[1])]), model


@pytest.fixture(name="X")
def columns():
    return np.random.default_rng(0).normal(size=(40, 15))


def test_one_numeric_target_is_the_absolute_correlation(X):
    y = np.random.default_rng(1).normal(size=40) + X[:, 2]
    expected = [abs(np.corrcoef(x, y)[0, 1]) for x in X.T]
    np.testing.assert_allclose(relevances(y, X)[0], expected, atol=1e-12)


@pytest.mark.parametrize("c", [2, 5])
def test_several_targets_are_their_span(X, c):
    Y = np.random.default_rng(2).normal(size=(40, c))
    expected = []
    for x in X.T:  # ‖Uᵀx̃‖ / ‖x̃‖ is the multiple correlation: the R of least squares
        A = np.column_stack([np.ones(40), Y])
        fit = A @ np.linalg.lstsq(A, x, rcond=None)[0]
        expected.append(np.std(fit) / np.std(x))
    np.testing.assert_allclose(relevances(Y, X)[0], expected, atol=1e-12)


@pytest.mark.parametrize("labels", ["str", "bool", "int", "categorical", "object", "polars"])
def test_labels_become_indicators(X, labels):
    codes = np.random.default_rng(3).integers(0, 2 if labels == "bool" else 4, size=40)
    words = np.array(["d", "a", "c", "b"])[codes]
    options = {}
    if labels == "str":
        y = words
    elif labels == "bool":
        y = codes.astype(bool)
    elif labels == "int":
        y, options = codes, {"target": "class"}
    elif labels == "object":
        y = words.astype(object)
    elif labels == "categorical":
        y = importlib.import_module("pandas").Series(words, dtype="category")
    else:
        y = importlib.import_module("polars").Series(words.tolist())
    U = space.basis(space.indicators(codes))
    expected = [space.relevance(x, U) for x in X.T]
    np.testing.assert_allclose(relevances(y, X, **options)[0], expected, atol=1e-12)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_targets_from_frames(X, library):
    Y = np.random.default_rng(4).normal(size=(40, 2))
    module = importlib.import_module(library)
    data = {"a": Y[:, 0], "b": Y[:, 1]}
    frame = module.table(data) if library == "pyarrow" else module.DataFrame(data)
    np.testing.assert_allclose(relevances(frame, X)[0], relevances(Y, X)[0], atol=1e-14)
    if library != "pyarrow":
        one = relevances(frame["a"], X)[0]
        np.testing.assert_allclose(one, relevances(Y[:, 0], X)[0], atol=1e-14)


def test_few_distinct_integers_are_asked_about(X):
    y = np.arange(40) % 5
    with pytest.warns(UserWarning, match="class"):
        relevances(y, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numeric = relevances(y, X, target="numeric")[0]
        classes = relevances(y, X, target="class")[0]
        relevances(y.astype(float), X)
        relevances(np.arange(40), X)
    np.testing.assert_allclose(numeric, relevances(y.astype(float), X)[0], atol=1e-14)
    assert (classes >= numeric - 1e-12).all()
    assert (classes > numeric + 1e-3).any()


def test_numeric_refuses_labels(X):
    with pytest.raises(TypeError, match="numeric"):
        ProjSe(target="numeric").learn_target(np.array(["a", "b"] * 20))


@pytest.mark.parametrize("learner", [SOSPCA, ProjSe])
def test_mixing_the_target_changes_nothing(X, learner):
    """Only span(Y) matters: also when a column is repeated, scaled by 1e±8, or moved by 1e6."""
    rng = np.random.default_rng(5)
    Y = rng.normal(size=(40, 4))
    A = np.linalg.qr(rng.normal(size=(4, 4)))[0] * [1e-8, 1.0, 1e8, -3.0]
    mixed = np.column_stack([Y @ A, Y[:, :2] + 1.0])
    results = []
    for target in (Y, mixed):
        model = learner()
        model.learn_target(target)
        model.learn_columns(X)
        results.append(model.relevance)
    first, second = results
    assert list(first) == list(second)
    np.testing.assert_allclose(list(second.values()), list(first.values()), atol=1e-9)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
@pytest.mark.parametrize("c", [1, 3])
def test_scales_of_target_and_columns_change_nothing(X, scale, c):
    Y = np.random.default_rng(6).normal(size=(40, c))
    plain = relevances(Y, X)[0]
    for factor, other in ((scale, 1.0), (1.0, scale), (scale, scale), (scale, 1 / scale)):
        np.testing.assert_allclose(relevances(Y * other, X * factor)[0], plain, atol=1e-12)
    mixed = X * np.where(np.arange(15) % 2, scale, 1.0)
    np.testing.assert_allclose(relevances(Y, mixed)[0], plain, atol=1e-12)


@pytest.mark.parametrize("offset", [1e6, 1e9, -1e9])
def test_offsets_change_nothing(X, offset):
    """Multiples of 2⁻¹⁰ stay exact beside 1e9; what float64 cannot hold costs its own digits."""
    X = np.round(X * 1024) / 1024
    Y = np.round(np.random.default_rng(7).normal(size=(40, 2)) * 1024) / 1024
    plain = relevances(Y, X)[0]
    np.testing.assert_allclose(relevances(Y + offset, X + offset)[0], plain, atol=1e-9)
    rough = relevances(Y + offset, X / 3 + offset)[0]
    np.testing.assert_allclose(rough, plain, atol=1e-6)


def test_a_target_column_that_is_constant_or_a_copy_adds_nothing(X):
    y = np.random.default_rng(8).normal(size=40)
    Y = np.column_stack([y, np.full(40, 7.0), 3 * y - 1])
    np.testing.assert_allclose(relevances(Y, X)[0], relevances(y, X)[0], atol=1e-12)


@pytest.mark.parametrize("learner", [SOSPCA, ProjSe])
@pytest.mark.parametrize(("c", "p"), [(1, 1), (1, 1000), (3, 500), (8, 20)])
def test_noise_floor_is_the_beta_quantile(learner, c, p):
    rng = np.random.default_rng(9)
    n = 30
    model = learner(3)
    model.learn_target(rng.normal(size=(n, c)))
    model.learn_columns(rng.normal(size=(n, p)))
    for level in (0.05, 0.5, 1e-6):
        assert model.noise_floor(level) == pytest.approx(noise.floor(n, c, p, level), abs=1e-12)
    assert model.noise_floor() == model.noise_floor(0.05)
    assert type(model.noise_floor()) is float


def test_noise_floor_of_a_target_that_spans_everything_and_of_none():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(6, 30))
    full = ProjSe(3)
    full.learn_target(rng.normal(size=(6, 5)))
    full.learn_columns(X)
    assert full.noise_floor() == 1.0
    alone = ProjSe(3)
    alone.learn_target(None)
    alone.learn_columns(X)
    assert np.isnan(alone.noise_floor())


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 2, float("nan"), "0.05", None])
def test_noise_floor_refuses_a_level_that_is_no_probability(level):
    model = ProjSe(3)
    model.learn_target(np.arange(9.0))
    model.learn_column("a", np.arange(9.0) ** 2)
    with pytest.raises((ValueError, TypeError), match="level"):
        model.noise_floor(level)


@pytest.mark.parametrize("r", [1, 4])
def test_noise_passes_the_floor_as_often_as_its_level_says(r):
    """A binomial count of 400 at 0.2: mean 80, standard deviation 8."""
    rng = np.random.default_rng(11)
    n, p, repeats, level = 20, 50, 400, 0.2
    passed = 0
    for _ in range(repeats):
        model = ProjSe(1)
        model.learn_target(rng.normal(size=(n, r)))
        model.learn_columns(rng.normal(size=(n, p)))
        passed += max(model.relevance.values()) > model.noise_floor(level)
    # Bonferroni is a little shy of exact: 1 − (1 − level/p)^p = 0.181 for independent columns.
    expected = repeats * (1 - (1 - level / p) ** p)
    assert abs(passed - expected) < 4 * np.sqrt(expected * (1 - expected / repeats))


@pytest.mark.parametrize("scale", [1e-160, 1e-200, 5e-324])
def test_a_target_whose_squares_vanish_is_refused(scale):
    y = np.array([1.0, -1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"squares float64 can tell from 0. Got: values up to"):
        Target(y * scale)
    with pytest.raises(ValueError, match="one value in all"):
        Target(np.full(4, scale))
