"""Arrays in memory, sparse matrices and .npy files: preserved types, refused inputs."""

import numpy as np
import pytest
import scipy.sparse

from streamsel.stream import as_stream, iter_array, iter_npy, iter_sparse


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("f8", "f8"),
        ("f4", "f4"),
        ("i1", "i1"),
        ("u1", "u1"),
        ("?", "u1"),
        ("i8", "f8"),
        ("u2", "f8"),
        ("f2", "f8"),
        (">f8", "f8"),
        ("c16", "c16"),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_dtypes(dtype, expected, order, tmp_path):
    X = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype, order=order)
    np.save(tmp_path / "x.npy", X)
    streams = [iter_array(X), iter_npy(tmp_path / "x.npy")]
    if dtype not in {"f2", ">f8"}:  # SciPy has no such matrices
        streams.append(iter_sparse(scipy.sparse.csc_array(X)))
    for stream in streams:
        for name, values in stream:
            assert values.dtype == np.dtype(expected)
            dense = values.toarray()[:, 0] if scipy.sparse.issparse(values) else values
            np.testing.assert_array_equal(dense, X[:, name])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint8, np.bool_])
def test_f_ordered_arrays_are_viewed(dtype):
    X = np.ones((3, 70_000), dtype=dtype, order="F")
    blocks = list(iter_array(X).blocks())
    assert [block.names for block in blocks] == [range(65_536), range(65_536, 70_000)]
    assert all(np.shares_memory(block.values, X) for block in blocks)
    S = scipy.sparse.csc_array(X[:, :100])
    (block,) = iter_sparse(S).blocks()
    assert np.shares_memory(block.values.data, S.data)
    assert np.shares_memory(block.values.indices, S.indices)


def test_non_numeric_columns_have_their_own_blocks():
    for X in (
        np.array([["a", "b"], ["c", "d"]]),
        np.array([[1, "b"], [None, 2.5]], dtype=object),
        np.array([["2020-01-01", "NaT"]] * 2, dtype="M8[ns]"),
    ):
        blocks = list(iter_array(X).blocks())
        assert [block.values.shape for block in blocks] == [(2, 1), (2, 1)]
        assert all(block.values.dtype == object for block in blocks)


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4)])
def test_arrays_must_have_two_dimensions(shape, tmp_path):
    X = np.zeros(shape)
    for make in (iter_array, as_stream):
        with pytest.raises(ValueError, match=rf"two-dimensional.*{len(shape)} dimensions"):
            make(X)
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match="two-dimensional"):
        iter_npy(tmp_path / "x.npy")
    with pytest.raises(ValueError, match=r"two-dimensional|1-d"):
        iter_sparse(scipy.sparse.coo_array(np.zeros(5)))


def test_names_are_checked(tmp_path):
    X = np.zeros((2, 3))
    np.save(tmp_path / "x.npy", X)
    for make in (
        lambda names: iter_array(X, names),
        lambda names: as_stream(X, names),
        lambda names: iter_sparse(scipy.sparse.csc_array(X), names),
        lambda names: iter_npy(tmp_path / "x.npy", names),
    ):
        with pytest.raises(ValueError, match=r"Expected 3 names.*Got: 2 names"):
            make(["a", "b"])
        with pytest.raises(
            ValueError, match=r"Got: 'a', 'b' more than once|Got: 'b' more than once"
        ):
            make(["b", "a", "b"])
        with pytest.raises(TypeError, match="the string 'abc'"):
            make("abc")
        stream = make(np.array([1, 2, 3]))
        assert [type(name) for name in stream.names] == [int] * 3
        assert list(make(None).names) == [0, 1, 2]
        assert make(None).take([np.int64(2)]).keys() == {2}


def test_masked_structured_and_sparse_arrays_are_refused():
    with pytest.raises(TypeError, match=r"masked array\.\nHint: .*filled"):
        iter_array(np.ma.masked_array(np.zeros((2, 2)), mask=True))
    with pytest.raises(TypeError, match="structured"):
        iter_array(np.zeros((2, 2), dtype=[("a", float)]))
    with pytest.raises(TypeError, match="iter_sparse"):
        iter_array(scipy.sparse.csc_array(np.zeros((2, 2))))
    with pytest.raises(TypeError, match="Got: ndarray"):
        iter_sparse(np.zeros((2, 2)))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_empty_arrays(shape, order, tmp_path):
    X = np.zeros(shape, order=order)
    np.save(tmp_path / "x.npy", X)
    for stream in (
        iter_array(X),
        iter_npy(tmp_path / "x.npy"),
        iter_sparse(scipy.sparse.csc_array(X)),
    ):
        assert (stream.n_rows, stream.n_columns) == shape
        assert len(list(stream)) == shape[1]


def test_repeated_sparse_entries_are_summed_once():
    parts = (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3]))
    X = scipy.sparse.csc_array(parts, shape=(3, 1))
    (block,) = iter_sparse(X).blocks()
    assert block.values.has_canonical_format
    np.testing.assert_array_equal(block.values.data, [4.0, 3.0])
    assert X.nnz == 3


def test_converted_sparse_blocks_are_bounded(rng):
    X = scipy.sparse.random_array((1000, 3000), density=0.5, format="csc", random_state=0)
    X.data = rng.integers(1, 9, size=X.nnz)
    parts = [block.values for block in iter_sparse(X).blocks()]
    assert len(parts) > 1
    assert all(part.data.nbytes <= 4 * 2**20 for part in parts)
    np.testing.assert_array_equal(scipy.sparse.hstack(parts).toarray(), X.toarray())


def test_tall_npy_in_c_order(rng, tmp_path):
    X = rng.normal(size=(60_000, 30))
    np.save(tmp_path / "x.npy", X)
    stream = iter_npy(tmp_path / "x.npy")
    np.testing.assert_array_equal(np.hstack([block.values for block in stream.blocks()]), X)
    np.testing.assert_array_equal(stream.take([29])[29], X[:, 29])


def test_writing_to_npy_blocks_keeps_the_file(tmp_path):
    X = np.ones((4, 3), order="F")
    np.save(tmp_path / "x.npy", X)
    for block in iter_npy(tmp_path / "x.npy").blocks():
        block.values[:] = 7
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), X)


def test_invalid_npy_files_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"Got: the archive .*x.npz.*\nHint"):
        iter_npy(tmp_path / "x.npz")
    np.save(tmp_path / "objects.npy", np.array([[None]]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"objects.npy"):
        iter_npy(tmp_path / "objects.npy")
