"""Interactions and lags: their values, and statistics that are computed without them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from streamsel import MRMR, SAOLA, SOSPCA, OnlineFDR, ProjSe, SelectKBest
from streamsel.data.chunks import DenseChunk, GeneratedChunk, Stats
from streamsel.data.columns import iter_chunks
from streamsel.data.names import LazyNames
from streamsel.stream import ColumnStream, as_stream, iter_interactions, iter_lags, iter_polynomials
from streamsel.stream._product_bands import ProductBand
from streamsel.stream._products import Products
from streamsel.targets.target import NoTarget
from tests.reference import generated as reference

NAN, INF = float("nan"), float("inf")


def made(source):
    """Return the same columns as an ordinary stream."""
    return ColumnStream(source.blocks, n_rows=source.n_rows, n_columns=source.n_columns)


def target_of(y, **options):
    model = SelectKBest(1)
    model.learn_target(y, **options)
    return model._column_phase.target


def scans(source, target, n_jobs=1):
    """Yield chunks of generated columns, their moments, and those of materialised columns."""
    for block in source.blocks(generated=True):
        for chunk in iter_chunks(block, source.n_rows):
            if isinstance(chunk, GeneratedChunk):
                stats = chunk.scan(target, n_jobs)
                X = chunk.columns(np.arange(len(chunk.names)))
                yield chunk, stats, DenseChunk(chunk.names, X).scan(target, 1)


def expect_accurate(source, target):
    """Check the moments against those of the columns; return which were not materialised."""
    is_computed = []
    for chunk, found, expected in scans(source, target):
        np.testing.assert_array_equal(found.m2 == 0.0, expected.m2 == 0.0)
        np.testing.assert_array_equal(np.isfinite(found.m2), np.isfinite(expected.m2))
        varies = np.isfinite(expected.m2) & (expected.m2 > 0.0)
        one, other = (Stats(*(array[varies] for array in stats)) for stats in (found, expected))
        np.testing.assert_allclose(one.m2, other.m2, rtol=1e-10)
        length = np.sqrt(other.m2)
        difference = (one.mean - other.mean) + (one.mean_error - other.mean_error)
        assert np.all(np.abs(difference) * np.sqrt(source.n_rows) <= 1e-10 * length)
        if target.c:
            scale = np.outer(length, np.linalg.norm(target.Y[: target.c], axis=1))
            assert np.all(np.abs(one.cxy - other.cxy) <= 1e-10 * scale)
        is_computed.append(~chunk._is_exact)
    return np.concatenate(is_computed)


# ------------------------------------------------------------------------------------ the columns


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint8", "int64", "bool"])
@pytest.mark.parametrize("degree", [2, 3, 4])
def test_interactions_are_products_in_the_order_of_their_factors(rng, dtype, degree):
    X = rng.integers(0, 4, size=(7, 6)).astype(dtype)
    expected = reference.interactions(X, degree)
    for source in (X, sp.csc_array(X)):
        stream = iter_interactions(source, degree)
        found = dict(stream)
        assert list(found) == list(expected)
        assert stream.n_columns == len(expected)
        for name, values in found.items():
            np.testing.assert_array_equal(values, expected[name])


def test_adjusted_interactions_are_residuals(rng):
    X = rng.normal(size=(30, 7)) + 5.0
    X[:, 2], X[:, 4], X[:, 5] = X[:, 1] > 5.0, X[:, 0] > 5.0, 3.0
    X[:, 6] = 2.0 * X[:, 3] + 1.0
    expected = reference.adjusted(X)
    found = dict(iter_interactions(X, adjust_for_main_effects=True))
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-12 * np.abs(X).max() ** 2)
    # A product with a constant is centred to exactly zero.
    assert not any(found[name].any() for name in found if 5 in name)


def test_adjusted_slopes_are_those_of_the_full_regression(rng):
    X = rng.normal(size=(50, 3)) + 1.0
    y = X @ [1.0, 2.0, 0.0] + 0.5 * X[:, 0] * X[:, 1] + rng.normal(size=50)
    for (i, j), column in iter_interactions(X, adjust_for_main_effects=True):
        design = np.column_stack([np.ones(50), X[:, i], X[:, j], X[:, i] * X[:, j]])
        slope = column @ (y - y.mean()) / (column @ column)
        assert slope == pytest.approx(np.linalg.lstsq(design, y)[0][3], rel=1e-10)


@pytest.mark.parametrize("chosen", [[1], [0], [3, 1, 7], [0, 2], list(range(20))])
def test_lags_are_earlier_values(rng, chosen):
    X = rng.normal(size=(40, 3))
    expected = reference.lags(X, chosen)
    stream = iter_lags(X, chosen)
    found = dict(stream)
    assert list(found) == list(expected)
    assert (stream.n_rows, stream.n_columns) == (40 - max(chosen), len(expected))
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
    assert list(dict(iter_lags(X, 2))) == [(j, lag) for j in range(3) for lag in (1, 2)]


SOURCES = {
    "interactions": lambda X: iter_interactions(X, 3),
    "adjusted": lambda X: iter_interactions(X, adjust_for_main_effects=True),
    "polynomials": lambda X: iter_polynomials(X, 3),
    "lags": lambda X: iter_lags(X, [3, 0, 1, 8]),
    "many lags": lambda X: iter_lags(np.vstack([X] * (1 + 400 // len(X))), 300),
}


@pytest.mark.parametrize("source", SOURCES)
def test_lazy_names_equal_lists(rng, source):
    stream = SOURCES[source](rng.normal(size=(60, 6)))
    for block in stream.blocks(generated=True):
        names = block.names
        assert list(names) == [names[i] for i in range(len(names))] == [*names[:3], *names[3:]]
        if isinstance(names, LazyNames):
            assert [names.find(name) for name in names] == list(range(len(names)))
            assert [names[2:-1].find(name) for name in names[:4]] == [None, None, 0, 1]
            for other in ("a", 0, (), (0,), (7, 1), (0, 999), (0, 0, 0, 0, 0)):
                assert names.find(other) is None


@pytest.mark.parametrize("source", SOURCES)
def test_skip_take_and_without(rng, source):
    stream = SOURCES[source](rng.normal(size=(60, 6)))
    columns = dict(stream)
    names = list(columns)
    for n in (0, 1, 7, 30, len(names)):
        assert [name for name, _ in stream.skip(n)] == names[n:]
    wanted = [names[-1], names[0], names[11]]
    for name, values in stream.take(wanted).items():
        np.testing.assert_array_equal(values, columns[name])
    with pytest.raises(KeyError, match="got: 'zzz'"):
        stream.take([names[0], "zzz"])
    for dropped in (names[3:5], names[::2]):
        rest = stream.without(dropped)
        left = [name for name in names if name not in dropped]
        assert [name for name, _ in rest] == left
        for block in rest.blocks(generated=True):
            np.testing.assert_array_equal(
                block.values.T if isinstance(block.values, np.ndarray) else block.values.make().T,
                [columns[name] for name in block.names],
            )


# ------------------------------------------------------------------------------------ the moments


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", ["numbers", "two classes", "classes", "covariates", "none"])
def test_moments_and_products_are_those_of_the_columns(rng, source, target):
    X = rng.normal(size=(60, 9)) + 0.5
    stream = SOURCES[source](X)
    n = stream.n_rows
    y = rng.normal(size=n)
    if target == "none":
        found = NoTarget(n)
    elif target == "covariates":
        found = target_of(y, covariates=rng.normal(size=(n, 2)))
    else:
        found = target_of({"numbers": y, "two classes": y > 0}.get(target, np.digitize(y, [-1, 1])))
    assert expect_accurate(stream, found).mean() > 0.9
    V = rng.normal(size=(3, n))
    for chunk, _, _ in scans(stream, found):
        whole = np.arange(len(chunk.names))
        for indices in (whole, whole[3:5], whole[1::2], whole[[0, -1]]):
            products = chunk.columns(indices) @ V.T
            np.testing.assert_allclose(chunk.products(indices, V), products, atol=1e-11)


# Changes of a column: values that repeat, cancel, overflow, underflow, or are not numbers.
CHANGES = {
    "none": lambda x: x,
    "constant": lambda x: np.full_like(x, 3.0),
    "zero": np.zeros_like,
    "rare": lambda x: np.where(np.arange(x.size) == 1, 1.0, 0.0),
    "whole": np.round,
    "large mean": lambda x: x + 1e5,
    "nearly constant": lambda x: 1.0 + 1e-9 * x,
    "huge": lambda x: 1e160 * x,
    "tiny": lambda x: 1e-160 * x,
    "one huge": lambda x: np.where(np.arange(x.size) == 2, 1e80, x),
    "nan": lambda x: np.where(np.arange(x.size) == 3, NAN, x),
    "infinite": lambda x: np.where(np.arange(x.size) == 0, INF, x),
}


@given(
    st.integers(4, 30),
    st.lists(st.sampled_from(sorted(CHANGES)), min_size=9, max_size=9),
    st.sampled_from(sorted(SOURCES)),
    st.integers(0, 2**31),
)
def test_moments_equal_those_of_generated_columns(n, changes, source, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [CHANGES[change](x) for change, x in zip(changes, rng.normal(size=(9, n)), strict=True)]
    )
    stream = SOURCES[source](np.vstack([X] * (1 + 9 // n)))
    expect_accurate(stream, target_of(rng.normal(size=stream.n_rows)))


def test_sums_over_many_rows_and_of_integers(rng):
    for X in (rng.normal(size=(5000, 20)), rng.binomial(2, 0.3, size=(5000, 20)).astype(np.int8)):
        target = target_of(rng.normal(size=5000))
        assert expect_accurate(iter_interactions(X), target).all()
        assert expect_accurate(iter_interactions(X, adjust_for_main_effects=True), target).all()


@pytest.mark.parametrize("adjusted", [False, True])
def test_bits_do_not_depend_on_threads_or_start(rng, adjusted):
    X = rng.normal(size=(50, 1100))
    stream = iter_interactions(X, adjust_for_main_effects=adjusted)
    lagged = iter_lags(rng.normal(size=(300, 500)), 200)
    for source, skip in ((stream, 700), (lagged, 150)):
        target = target_of(rng.normal(size=source.n_rows))
        whole, threaded, rest = (
            next(iter(one.blocks(generated=True))).values.moments(target.scan_rows, n_jobs)
            for one, n_jobs in ((source, 1), (source, 3), (source.skip(skip), 1))
        )
        for one, two, three in zip(whole, threaded, rest, strict=True):
            np.testing.assert_array_equal(one, two)
            np.testing.assert_array_equal(one[skip:], three)


# ------------------------------------------------------------------------------------ the learners


@pytest.mark.parametrize(
    "build",
    [
        lambda: SelectKBest(5, max_candidates=20),
        lambda: ProjSe(5, max_candidates=20),
        lambda: MRMR(5, max_candidates=20),
        lambda: SOSPCA(4),
        SAOLA,
    ],
    ids=["SelectKBest", "ProjSe", "MRMR", "SOSPCA", "SAOLA"],
)
@pytest.mark.parametrize("source", ["interactions", "adjusted", "lags"])
def test_columns_in_a_bounded_pool_have_the_same_bits(rng, build, source):
    X = rng.normal(size=(80, 60))
    stream = {
        "interactions": lambda: iter_interactions(X),
        "adjusted": lambda: iter_interactions(X, adjust_for_main_effects=True),
        "lags": lambda: iter_lags(rng.normal(size=(120, 60)), 40),
    }[source]()
    columns = dict(stream)
    names = list(columns)
    y = sum(columns[names[i]] for i in (1500, 40, 777)) + rng.normal(size=stream.n_rows)
    tables = []
    for one in (stream, made(stream)):
        model = build()
        model.learn_target(y)
        model.learn_columns(one)
        state = model._column_phase.columns
        tables.append(getattr(state, "pool", state).table)
    mine, theirs = tables
    assert mine.names == theirs.names
    assert 0 < len(mine) < len(names) / 4
    for field in mine.fields:
        np.testing.assert_array_equal(mine[field], theirs[field], err_msg=field)


def test_few_columns_are_generated(rng, monkeypatch):
    X = rng.normal(size=(100, 300))
    stream = iter_interactions(X)
    n_made, make = [], ProductBand.columns
    monkeypatch.setattr(
        ProductBand,
        "columns",
        lambda self, indices: n_made.append(indices.size) or make(self, indices),
    )
    model = SelectKBest(5, max_candidates=50)
    model.learn_target(X[:, 7] * X[:, 250] + rng.normal(size=100))
    model.learn_columns(stream)
    assert model.selected[0] == (7, 250)
    assert sum(n_made) < stream.n_columns / 10


def test_moments_are_computed_once_per_target_form(rng, monkeypatch):
    monkeypatch.setattr("streamsel.stream._product_bands._BAND_PRODUCTS", 1 << 14)
    n_computed, compute = [], Products.moments
    monkeypatch.setattr(
        Products, "moments", lambda *arguments: n_computed.append(1) or compute(*arguments)
    )
    X = rng.normal(size=(100, 300))
    model = OnlineFDR()
    model.learn_target(np.exp(3.0 * rng.normal(size=100)))
    model.learn_columns(iter_interactions(X))
    n_bands = len(list(iter_interactions(X).blocks(generated=True)))
    assert model._column_phase.columns.pool.normal_scores is not None
    assert len(n_computed) == 2 * n_bands > 2


def test_interactions_of_int8_genotypes_equal_those_of_floats(dataset):
    X, y, _, _ = dataset("mouse_hs1940")
    X = np.ascontiguousarray(X[:, :300]).astype(np.int8)
    models = []
    for base in (X, X.astype(float)):
        model = SelectKBest(20, max_candidates=100)
        model.learn_target(y)
        model.learn_columns(iter_interactions(base, adjust_for_main_effects=True))
        models.append(model)
    one, other = models
    assert one.relevance == pytest.approx(other.relevance, rel=1e-12)
    expected = reference.adjusted(X[:, :12])
    for name, column in iter_interactions(X[:, :12], adjust_for_main_effects=True):
        np.testing.assert_allclose(column, expected[name], atol=1e-11)


def test_weights_missing_targets_and_classes_get_the_columns(rng):
    X = rng.normal(size=(60, 8))
    y = X[:, 1] * X[:, 5] + 0.1 * rng.normal(size=60)
    absent = np.where(np.arange(60) % 7 == 0, NAN, y)
    for target, options in (
        (y, {"weights": rng.random(60)}),
        (absent, {"missing": "drop"}),
        (y, {"covariates": X[:, :2]}),
        (y > 0, {}),
    ):
        relevance = []
        for one in (iter_interactions(X), made(iter_interactions(X))):
            model = SelectKBest(4)
            model.learn_target(target, **options)
            model.learn_columns(one)
            relevance.append(model.relevance)
        assert relevance[0] == pytest.approx(relevance[1], rel=1e-10)


def test_bad_columns_are_named_and_change_nothing(rng):
    X = rng.normal(size=(40, 30))
    model = SelectKBest(3)
    model.learn_target(rng.normal(size=40))
    model.learn_columns(iter_interactions(X[:, :5]))
    before = model.relevance
    with pytest.raises(ValueError, match=r"Expected a new name for every column. Got: \(0, 1\)"):
        model.learn_columns(iter_interactions(X))
    X[3, 21], X[4, 20] = NAN, 1e200
    rest = iter_interactions(X).without(model._column_phase.columns.names)
    with pytest.raises(ValueError, match=r"squares fit into float64 in column \(0, 20\)"):
        model.learn_columns(rest)
    with pytest.raises(ValueError, match=r"finite numbers in column \(0, 21\)[^\n]*row 3"):
        model.learn_columns(rest.without([(0, 20)]))
    with pytest.raises(ValueError, match=r"Expected 40 values, as the target has.* Got: 39"):
        model.learn_columns(iter_interactions(X[:39]))
    assert model.relevance == before
    assert model.n_columns == 10
    # The duplicate-name check iterates over the smaller set of names.
    model.learn_columns(iter_interactions(as_stream(X[:, 5:20], names=range(5, 20))))
    with pytest.raises(ValueError, match=r"Expected a new name for every column. Got: \(0, 1\)"):
        model.learn_columns(iter_interactions(X[:, :3]))


def test_invalid_arguments_are_refused(rng):
    X = rng.normal(size=(10, 3))
    for degree in (1, 2.0, "2", None, True):
        with pytest.raises(ValueError, match=r"degree of iter_interactions to be an int"):
            iter_interactions(X, degree)
    with pytest.raises(ValueError, match="Expected degree=2 with adjust_for_main_effects=True"):
        iter_interactions(X, 3, adjust_for_main_effects=True)
    with pytest.raises(ValueError, match=r"distinct column names. Got: 'a' more than once"):
        iter_interactions([("a", X[:, 0]), ("a", X[:, 1])])
    for lags in (0, -1, [], [1, 1], [-1], 2.5, "12", [1.5], None, [True]):
        with pytest.raises(ValueError, match="Expected lags of iter_lags to be a positive int"):
            iter_lags(X, lags)
    with pytest.raises(ValueError, match=r"at least 11 values.* Got: 10"):
        iter_lags(X, 9)
