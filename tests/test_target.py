"""The target: labels and numbers, its space, relevance, and the noise floor."""

import functools
import importlib
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

from streamsel import SOSPCA, Discriminant, ProjSe, SelectKBest, load, save
from streamsel.data.chunks import Block
from streamsel.data.columns import iter_chunks
from streamsel.targets.target import Target
from tests.reference import noise
from tests.reference import target as space


def relevances(y, X, **options):
    """Return the relevance of every column, and a selector that keeps all."""
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
    for x in X.T:  # ‖Uᵀx̃‖ / ‖x̃‖ is the multiple correlation R of least squares
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
        y, options = codes, {"target_type": "class"}
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


@pytest.mark.parametrize("form", ["int", "float", "int8", "object", "list", "column", "nullable"])
def test_few_whole_numbers_are_classes_whatever_their_type(X, form):
    """Few whole numbers are classes, whatever their type or container."""
    codes = np.arange(40) % 5
    y = {
        "int": codes,
        "float": codes.astype(float),
        "int8": codes.astype(np.int8),
        "object": codes.astype(object),
        "list": codes.tolist(),
        "column": codes[:, None],
        "nullable": importlib.import_module("pandas").Series(codes, dtype="Int64"),
    }[form]
    classes, model = relevances(y, X)
    assert model.report().target == "5 classes, 8 rows each"
    np.testing.assert_array_equal(classes, relevances(codes.astype(str), X)[0])
    numeric, model = relevances(y, X, target_type="numeric")
    assert model.report().target == "numeric, 0 to 4"
    assert (classes >= numeric - 1e-12).all()
    assert (classes > numeric + 1e-3).any()


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.arange(40) % 2, "2 classes: 0 (20 rows), 1 (20 rows)"),
        (np.arange(40.0) % 20, "20 classes, 2 rows each"),
        (np.arange(60) % 21, "numeric, 0 to 20"),
        (np.arange(39) % 20, "numeric, 0 to 19"),
        (np.arange(40) % 3 - 1, "3 classes: -1 (14 rows), 0 (13 rows), 1 (13 rows)"),
        (np.arange(40) % 4 / 2, "numeric, 0 to 1.5"),
        ([2.0**53, 2.0**54] * 4, "numeric, 9.0072e+15 to 1.80144e+16"),
        ([0, 1, 1], "numeric, 0 to 1"),
        ([True, False] * 3, "2 classes: False (3 rows), True (3 rows)"),
        (["a" * 40, "b"] * 2, f"2 classes: {'a' * 23}… (2 rows), b (2 rows)"),
        (np.arange(80).reshape(40, 2) % 3, "2 numeric columns"),
    ],
)
def test_descriptions_of_targets_by_values(y, expected):
    assert Target(y).description == expected


@given(
    st.lists(st.integers(-30, 30), min_size=4, max_size=90),
    st.sampled_from([int, float, np.float32, np.int16]),
)
def test_class_detection_depends_on_values(values, kind):
    y = np.array(values, dtype=kind)
    n_distinct = len(set(values))
    assume(n_distinct > 1)
    expected = n_distinct <= 20 and 2 * n_distinct <= len(values)
    assert Target(y).is_class is expected
    if expected:
        assert all(type(name) is int for name in Target(y).names)
        assert not Target(y + 0.5).is_class


def test_frame_columns_are_not_classes_by_values(X):
    frame = importlib.import_module("pandas").DataFrame(
        {"a": np.arange(40) % 3, "b": ["x", "y"] * 20}
    )
    model = ProjSe()
    model.learn_target(frame)
    assert model._target.kinds == {"a": False, "b": True}
    assert model.report().target == "1 numeric column (a), 1 column of labels (b)"


def test_two_classes_are_scanned_as_one_column(X, rng):
    """The products with the second indicator are those with the first, negated, bit by bit."""
    y = np.arange(40) % 2
    stats = {}
    for kind in ("numeric", "class"):
        target = Target(y, kind)
        for form, chunk in {
            "dense": next(iter_chunks(Block(range(15), np.asfortranarray(X)), 40)),
            "sparse": next(iter_chunks(Block(range(15), sparse.csc_array(X * (X > 0))), 40)),
            "offset": next(iter_chunks(Block(range(15), np.asfortranarray(X + 1e6)), 40)),
        }.items():
            stats[kind, form] = chunk.scan(target, 1)
    for form in ("dense", "sparse", "offset"):
        one, two = stats["numeric", form], stats["class", form]
        assert two.cxy.shape == (15, 2)
        np.testing.assert_array_equal(two.cxy[:, 0], -two.cxy[:, 1])
        np.testing.assert_allclose(two.cxy[:, [1]], one.cxy, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(two.m2, one.m2)


def test_two_values_are_numeric_if_classes_are_impossible(X):
    y = np.arange(40) % 2
    signed = relevances_of(SOSPCA(1, signed=True), X, y)
    assert signed.report().target == "numeric, 0 to 1"
    expected = relevances_of(SOSPCA(1, signed=True, target_type="numeric"), X, y)
    assert signed.relevance == expected.relevance
    model = SOSPCA(1, signed=True)
    with pytest.raises(ValueError, match=r"4 classes\.\nHint: target_type='numeric'"):
        model.learn_target(np.arange(40) % 4)
    with pytest.raises(ValueError, match="2 classes"):
        model.learn_target(["a", "b"] * 20)
    assert model.n_rows == 0


def relevances_of(model, X, y):
    model.learn_target(y)
    model.learn_columns(X)
    return model


def test_numeric_refuses_labels(X):
    with pytest.raises(TypeError, match="numeric"):
        ProjSe(target_type="numeric").learn_target(np.array(["a", "b"] * 20))


@pytest.mark.parametrize("learner", [SOSPCA, ProjSe])
def test_mixing_the_target_changes_nothing(X, learner):
    """Relevance depends on span(Y) only, not on repeated, scaled or shifted target columns."""
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
    """Offsets do not matter if values are exact (multiples of 2⁻¹⁰); rounding costs digits."""
    X = np.round(X * 1024) / 1024
    Y = np.round(np.random.default_rng(7).normal(size=(40, 2)) * 1024) / 1024
    plain = relevances(Y, X)[0]
    np.testing.assert_allclose(relevances(Y + offset, X + offset)[0], plain, atol=1e-9)
    rough = relevances(Y + offset, X / 3 + offset)[0]
    np.testing.assert_allclose(rough, plain, atol=1e-6)


def test_constant_and_copied_target_columns_add_nothing(X):
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


def test_noise_floor_of_full_and_empty_targets():
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
def test_noise_floor_refuses_invalid_levels(level):
    model = ProjSe(3)
    model.learn_target(np.arange(9.0))
    model.learn_column("a", np.arange(9.0) ** 2)
    with pytest.raises((ValueError, TypeError), match="level"):
        model.noise_floor(level)


@pytest.mark.parametrize("r", [1, 4])
def test_noise_exceeds_the_noise_floor_at_its_level(r):
    """The maximum of noise exceeds the noise floor with the probability of its level."""
    rng = np.random.default_rng(11)
    n, p, repeats, level = 20, 50, 400, 0.2
    passed = 0
    for _ in range(repeats):
        model = ProjSe(1)
        model.learn_target(rng.normal(size=(n, r)))
        model.learn_columns(rng.normal(size=(n, p)))
        passed += max(model.relevance.values()) > model.noise_floor(level)
    # Bonferroni is slightly conservative: 1 − (1 − level/p)^p = 0.181 for independent columns.
    expected = repeats * (1 - (1 - level / p) ** p)
    assert abs(passed - expected) < 4 * np.sqrt(expected * (1 - expected / repeats))


@pytest.mark.parametrize("scale", [1e-160, 1e-200, 5e-324])
def test_a_target_whose_squares_vanish_is_refused(scale):
    y = np.array([1.0, -1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"squares do not underflow in float64. Got: values up to"):
        Target(y * scale)
    with pytest.raises(ValueError, match="one value in all"):
        Target(np.full(4, scale))


# ------------------------------------------------------------------- rows after columns of classes


def after_columns(X, y, **options):
    model = ProjSe(3, **options)
    model.learn_target(y)
    model.learn_columns(X)
    return model


ROW = dict(enumerate(np.random.default_rng(6).normal(size=15)))


@pytest.mark.parametrize("label", [1, 1.0, np.int64(1), np.float32(1), True])
@pytest.mark.parametrize("way", ["one", "many", "saved"])
def test_rows_bring_the_same_classes_as_columns(X, label, way, tmp_path):
    codes = np.arange(40) % 3
    model, named = after_columns(X, codes.astype(float)), after_columns(X, codes.astype(str))
    if way == "saved":
        save(model, tmp_path / "model")
        model = load(tmp_path / "model")
    for each, y in ((model, label), (named, "1")):
        if way == "many":
            each.learn_many(np.array([list(ROW.values())] * 2), [y, y])
        else:
            each.learn_one(ROW, y)
            each.learn_one(ROW, y)
    assert model.report().target == "3 classes: 0, 1, 2"
    assert model.relevance == named.relevance
    model.learn_one(ROW, "1")  # a string is another class
    assert model.report().target == "4 classes"


def test_fractions_are_not_integer_classes(X):
    model = after_columns(X, np.arange(40) % 3)
    for learn in (
        lambda: model.learn_one(ROW, 0.5),
        lambda: model.learn_many(np.array([list(ROW.values())]), [0.5]),
    ):
        with pytest.raises(TypeError, match=r"whole number as the label.*Got: 0\.5"):
            learn()
    for missing in (None, float("nan")):
        with pytest.raises(ValueError, match="non-missing"):
            model.learn_one(ROW, missing)
    assert model.n_rows == 40


def test_integers_on_rows_are_numeric():
    model = ProjSe(3)
    for i in range(20):
        model.learn_one({**ROW, 0: i * 0.1}, i % 3)
    assert model.report().target == "numeric"
    several = ProjSe(3)
    several.learn_one(ROW, {"a": 1, "b": "x"})
    assert several.report().target == "1 numeric column (a), 1 column of labels (b)"
    assert ProjSe().report().target is None


def test_labels_of_columns_that_are_text_are_not_whole_numbers(X):
    model = after_columns(X, (np.arange(40) % 3).astype(str))
    with pytest.raises(TypeError, match="Expected a label"):
        model.learn_one(ROW, 1)


# ------------------------------------------------------------------------------ too many classes


@pytest.mark.parametrize(
    "make",
    [
        lambda: Discriminant(2),
        lambda: ProjSe(2, target_type="class"),
        lambda: SelectKBest(2, score="margin", target_type="class", window_size=30),
    ],
)
@pytest.mark.parametrize("way", ["one", "many"])
def test_distinct_numbers_on_rows_are_not_classes(make, way):
    """Float targets on rows are refused as classes; 2,000 rows once made 2,000 classes."""
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(200, 4)), rng.normal(size=200)
    model = make()
    with pytest.warns(UserWarning, match="21 classes in 21 rows") as caught:
        one_by_one(model, X[:50], y[:50])
    assert len(caught) == 1
    before = pickle.dumps(model)
    learn = functools.partial(one_by_one, model) if way == "one" else model.learn_many
    with pytest.raises(
        ValueError, match=r"Got: \d+ classes in \d+ rows\.\nHint: target_type='numeric'"
    ):
        learn(X[50:], y[50:])
    assert pickle.dumps(model) == before
    # Rows of known classes are still accepted.
    one_by_one(model, X[50:], np.tile(y[:50], 3))
    assert model.n_rows == 200


def one_by_one(model, X, y):
    for x, v in zip(X, y, strict=True):
        model.learn_one(dict(enumerate(x)), v)


def test_rare_new_classes_cause_no_warning():
    model = ProjSe(2)
    rng = np.random.default_rng(13)
    one_by_one(model, rng.normal(size=(400, 3)), [str(i // 4) for i in range(400)])
    fresh = ProjSe(2)
    with pytest.warns(UserWarning, match=r"in 120 rows, and each takes a column"):
        fresh.learn_many(rng.normal(size=(120, 3)), np.arange(120).astype(str))
    assert fresh.report().target == "120 classes"


@pytest.mark.parametrize("kind", ["class", "auto"])
def test_one_class_per_row_is_refused_or_warned_of(X, kind):
    y = np.arange(40.0) if kind == "class" else np.arange(40).astype(str)
    for needs in (
        Discriminant(2, target_type=kind),
        SelectKBest(2, score="margin", target_type=kind),
    ):
        with pytest.raises(ValueError, match="40 classes in 40 rows"):
            needs.learn_target(y)
        assert needs.n_rows == 0
    with pytest.warns(UserWarning, match="40 classes in 40 rows") as caught:
        after_columns(X, y, target_type=kind)
    assert caught[0].filename == __file__
