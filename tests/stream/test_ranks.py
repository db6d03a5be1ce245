"""Ranks and normal scores equal SciPy's, for any storage and blocks of columns."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from streamsel import PCA, SelectKBest
from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream, clean, iter_npy, normal_scores, ranks

KINDS = {
    "floats": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.integers(-9, 9, shape[1]),
    "counts": lambda rng, shape: rng.poisson(0.3, size=shape).astype(np.float64),
    "bytes": lambda rng, shape: rng.integers(-128, 128, size=shape).astype(np.int8),
    "few": lambda rng, shape: rng.normal(size=shape) * (rng.random(shape) < 0.2),
    "single": lambda rng, shape: rng.normal(size=shape).round(1).astype(np.float32),
    "wide": lambda rng, shape: rng.integers(-(2**40), 2**40, size=shape).astype(np.float64),
    "zeros": lambda rng, shape: rng.choice([-0.0, 0.0, -1e-300, 1e300], size=shape),
    "flags": lambda rng, shape: rng.random(shape) < 0.5,
}


def by_definition(X):
    return np.column_stack([stats.rankdata(x) for x in X.T.astype(np.float64)])


def in_blocks(X, cuts):
    ends = [0, *sorted({*cuts}), X.shape[1]]
    pairs = [(a, b) for a, b in itertools.pairwise(ends) if a < b]
    return ColumnStream(lambda: (Block(range(a, b), X[:, a:b]) for a, b in pairs))


def together(stream):
    return np.column_stack([v.toarray()[:, 0] if sparse.issparse(v) else v for _, v in stream])


@given(
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 60),
    st.lists(st.integers(1, 9), max_size=3),
    st.integers(0, 99),
)
def test_ranks_equal_scipy_for_any_blocks(kind, n, cuts, seed):
    X = KINDS[kind](np.random.default_rng(seed), (n, 10))
    expected = by_definition(X)
    normal = stats.norm.ppf((expected - 0.5) / n)
    found = together(ranks(in_blocks(X, cuts)))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(together(normal_scores(in_blocks(X, cuts))), normal, atol=1e-12)
    # In a sparse column the rank of 0 is subtracted if some values are implicit.
    for name, values in ranks(in_blocks(sparse.csc_array(X), cuts)):
        column = values.toarray()[:, 0]
        zeros = X[:, name] == 0
        shift = expected[zeros, name][0] if zeros.any() else (expected[:, name] - column)[0]
        np.testing.assert_array_equal(column + shift, expected[:, name])
        assert not zeros.any() or values.nnz <= np.count_nonzero(X[:, name])


def test_properties_of_the_source_are_kept(tmp_path):
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(30, 40)))
    np.save(tmp_path / "x.npy", X)
    stream = ranks(iter_npy(tmp_path / "x.npy"))
    expected = by_definition(X)
    assert (stream.n_rows, stream.n_columns, stream.reiterable) == (30, 40, True)
    for _ in range(2):
        np.testing.assert_array_equal(together(stream), expected)
    np.testing.assert_array_equal(together(stream.skip(7)), expected[:, 7:])
    np.testing.assert_array_equal(stream.take([9, 3])[3], expected[:, 3])
    for whole, first in ((stream, 0), (stream.skip(11), 11)):
        sent = pickle.dumps(whole.split(3))
        parts = [part.open() for part in pickle.loads(sent)]  # noqa: S301 (our own)
        assert len(parts) > 1
        np.testing.assert_array_equal(np.hstack([*map(together, parts)]), expected[:, first:])
    others = normal_scores(iter_npy(tmp_path / "x.npy")).split(2)
    assert [part.key for part in stream.split(2)] != [part.key for part in others]
    once = ranks(ColumnStream(lambda: iter([Block(range(40), X)]), reiterable=False))
    assert not once.reiterable


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array, sparse.csr_array])
def test_ranks_of_all_forms_give_equal_models(form):
    rng = np.random.default_rng(3)
    X = rng.poisson(0.4, size=(80, 12)).astype(np.float64)
    y = X[:, 2] + rng.normal(size=80)
    dense, other = SelectKBest(4), SelectKBest(4)
    for model, columns in ((dense, by_definition(X)), (other, ranks(form(X)))):
        model.learn_target(y)
        model.learn_columns(columns)
    assert other.selected == dense.selected
    assert other.scores == pytest.approx(dense.scores)
    one, two = PCA(2), PCA(2)
    one.learn_columns(by_definition(X))
    two.learn_columns(ranks(form(X)))
    assert two.explained_variance == pytest.approx(one.explained_variance)


def test_the_correlation_of_ranks_is_spearmans():
    rng = np.random.default_rng(1)
    X, y = rng.standard_cauchy((50, 5)), rng.normal(size=50)
    model = SelectKBest("all", score="correlation")
    model.learn_target(stats.rankdata(y))
    model.learn_columns(ranks(X))
    for j, score in model.scores.items():
        assert score == pytest.approx(abs(stats.spearmanr(X[:, j], y).statistic))


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
def test_missing_values_are_refused(form):
    X = np.ones((5, 3))
    X[:, 1] = [1.0, 2.0, np.nan, 3.0, np.inf]
    with pytest.raises(ValueError, match=r"finite numbers in column 1(?s:.)*clean"):
        list(ranks(form(X)))
    assert [name for name, _ in ranks(clean(form(X * [1.0, 1.0, 0.0] + np.eye(5, 3))))] == [0, 2]
    with pytest.raises(TypeError, match="real numbers in column"):
        list(ranks(np.array([["x"], ["y"]])))
