"""Columns passed one by one, polynomials, and other inputs of learners."""

from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
import scipy.sparse
from sklearn.preprocessing import PolynomialFeatures

from streamsel.stream import as_stream, iter_array, iter_columns, iter_polynomials


def test_which_sources_are_reiterable():
    pairs = [("a", [1, 2]), ("b", [3, 4])]
    for again in (pairs, tuple(pairs), dict(pairs).items(), lambda: iter(pairs)):
        stream = iter_columns(again, n_rows=2, n_columns=2)
        assert stream.reiterable
        assert [name for name, _ in stream] == [name for name, _ in stream] == ["a", "b"]
    once = iter_columns(iter(pairs))
    assert not once.reiterable
    assert once.skip(1).take(["b"])["b"].tolist() == [3, 4]
    for rest in (once, once.skip(1), once.without(["a"])):
        with pytest.raises(RuntimeError, match="Hint: create it again"):
            list(rest)


def test_a_change_of_dtype_or_length_ends_a_block():
    columns = [
        np.ones(3),
        np.ones(3),
        np.ones(3, dtype=np.float32),
        np.ones(3, dtype=bool),
        np.ones(4),
        ["a", "b", "c"],
        np.ones(3, dtype=complex),
        range(3),
        scipy.sparse.csc_array([[1], [0], [0]]),
        scipy.sparse.coo_array([[1.0], [0], [0]]),
        scipy.sparse.coo_array(np.array([0.0, 2.0, 0.0])),
    ]
    blocks = list(iter_columns(enumerate(columns)).blocks())
    assert [list(block.names) for block in blocks] == [
        [0, 1], [2], [3], [4], [5], [6], [7], [8], [9, 10],
    ]  # fmt: skip
    dtypes = ["f8", "f4", "u1", "f8", "O", "c16", "f8", "f8", "f8"]
    assert [block.values.dtype for block in blocks] == [np.dtype(dtype) for dtype in dtypes]
    np.testing.assert_array_equal(blocks[-1].values.toarray(), [[1, 0], [0, 2], [0, 0]])


def test_columns_before_a_bad_one_are_yielded():
    def failing():
        yield "a", [1, 2]
        raise OSError("the line is dead")

    good = ("a", [1, 2])
    for pairs, error, message in (
        (failing, OSError, "the line is dead"),
        ([good, ("b", [[1, 2]])], ValueError, r"column 'b'. Got: shape \(1, 2\)"),
        ([good, ("b", 5)], ValueError, r"column 'b'. Got: shape \(\)"),
        ([good, ("b", [[1], [2, 3]])], ValueError, "column 'b'"),
        ([good, ("b", scipy.sparse.csc_array([[1, 2]]))], ValueError, r"\(n, 1\) for 'b'"),
        ([good, "bc"], TypeError, "item 1 of the stream. Got: str"),
        ([good, ("b", 1, 2)], TypeError, "item 1 of the stream. Got: tuple"),
    ):
        blocks = iter_columns(pairs).blocks()
        assert next(blocks).names == ["a"]
        with pytest.raises(error, match=message):
            next(blocks)


def test_sparse_blocks_are_bounded(rng):
    column = scipy.sparse.csc_array(rng.normal(size=(4000, 1)))
    blocks = list(iter_columns((j, column) for j in range(300)).blocks())
    assert len(blocks) > 3
    assert all(block.values.data.nbytes < 4.1 * 2**20 for block in blocks)


def test_as_stream_of_all_sources():
    stream = iter_array(np.zeros((2, 3)))
    assert as_stream(stream) is stream
    with pytest.raises(TypeError, match=r"Hint: pass X.items\(\)"):
        as_stream({"a": [1, 2]})
    with pytest.raises(TypeError, match="Got: int"):
        as_stream(5)
    with pytest.raises(TypeError, match="Got: int"):
        iter_columns(5)
    with pytest.raises(TypeError, match="whose columns have names"):
        as_stream(stream, names=["a", "b", "c"])


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_polynomials_are_those_of_scikit_learn(rng, degree, interaction_only):
    X = rng.normal(size=(6, 5))
    names = list("abcde")
    peer = PolynomialFeatures(degree, interaction_only=interaction_only, include_bias=False)
    stream = iter_polynomials(
        iter_array(X, names), degree=degree, interaction_only=interaction_only
    )
    values = np.column_stack([column for _, column in stream])
    np.testing.assert_allclose(values, peer.fit_transform(X), rtol=1e-14)
    choose = combinations if interaction_only else combinations_with_replacement
    products = [product for g in range(2, degree + 1) for product in choose(names, g)]
    assert [name for name, _ in stream] == names + products
    assert stream.n_columns == values.shape[1]
    assert [name for name, _ in stream.skip(7)] == (names + products)[7:]


def test_polynomials_of_many_columns_in_bounded_blocks(rng):
    X = rng.integers(0, 3, size=(100, 200)).astype(np.int8)
    stream = iter_polynomials(scipy.sparse.csc_array(X))
    n_columns = 0
    for block in stream.blocks():
        assert block.values.nbytes <= 4 * 2**20
        assert block.values.flags.f_contiguous
        n_columns += len(block.names)
    assert n_columns == stream.n_columns == 200 + 200 * 201 // 2
    name, values = block.names[-2], block.values[:, -2]
    np.testing.assert_array_equal(values, np.prod(X[:, list(name)].astype(float), axis=1))


def test_invalid_polynomials_are_refused():
    X = np.zeros((3, 2))
    for degree in (0, -1, 2.5, "2", None, True):
        with pytest.raises(ValueError, match=r"degree to be an int in the range \[1, inf\)"):
            iter_polynomials(X, degree=degree)
    with pytest.raises(TypeError, match="column 'b' of text"):
        iter_polynomials([("a", [1, 2]), ("b", ["x", "y"])])
    with pytest.raises(TypeError, match="column 0 of complex128"):
        iter_polynomials(X.astype(complex))
    with pytest.raises(ValueError, match=r"Expected 2 values in column 'b'\. Got: 3"):
        iter_polynomials([("a", [1, 2]), ("b", [1, 2, 3])])
    with pytest.raises(ValueError, match="at least one base column"):
        iter_polynomials(np.zeros((3, 0)))
