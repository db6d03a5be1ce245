"""Zarr arrays written by zarr are read by columns, for any layout of chunks."""

import json
import pickle
import re

import numpy as np
import pytest
import zarr
from scipy.sparse import csc_matrix

from streamsel.stream import _chunked, clean, iter_files, iter_zarr

N, P = 7, 23
X = np.random.default_rng(0).normal(size=(N, P))


@pytest.fixture
def small(monkeypatch):
    """Shrink the size limits, so that 7 × 23 numbers are a large matrix."""
    monkeypatch.setattr(_chunked, "_SLAB_BYTES", 4 * N * 8)
    monkeypatch.setattr(_chunked, "_MAX_BYTES", 80 * 8)
    monkeypatch.setattr(_chunked, "TILE_BYTES", 2 * P * 8)
    monkeypatch.setattr(_chunked, "BLOCK_BYTES", N * 8)


def _same(stream, expected, names=None):
    names = list(range(expected.shape[1])) if names is None else names
    found = dict(stream)
    assert list(found) == names
    for name, values in zip(names, expected.T, strict=True):
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("chunks", [(N, 1), (N, 4), (N, 5), (2, 3), (1, P), (3, P), (2, 10)])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_chunks_of_any_shape(chunks, zarr_format, small, tmp_path):
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=chunks, zarr_format=zarr_format)
    stream = iter_zarr(tmp_path / "x.zarr")
    assert (stream.n_rows, stream.n_columns, stream.reiterable) == (N, P, True)
    for _ in range(2):
        _same(stream, X)
    _same(stream.skip(6), X[:, 6:], list(range(6, P)))
    np.testing.assert_array_equal(stream.take([17])[17], X[:, 17])
    parts = [pickle.loads(pickle.dumps(part)) for part in stream.split(4)]  # noqa: S301
    assert len(parts) == 4
    _same((pair for part in parts for pair in part.open()), X)


def test_each_chunk_is_decoded_once(small, tmp_path, monkeypatch):
    asked, get = [], zarr.Array.__getitem__
    monkeypatch.setattr(
        zarr.Array, "__getitem__", lambda self, where: (asked.append(where), get(self, where))[1]
    )
    _same(iter_zarr(zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(2, P))), X)
    assert asked == [slice(a, a + 2) for a in range(0, N, 2)]
    asked.clear()
    array = zarr.create_array(tmp_path / "y.zarr", data=X, chunks=(N, 4))
    _same(iter_zarr(array).skip(5), X[:, 5:], list(range(5, P)))
    assert [where[1] for where in asked] == [
        slice(a, b) for a, b in [(5, 8), *((b - 4, b) for b in (12, 16, 20)), (20, 23)]
    ]


def test_too_large_chunks_are_refused_with_a_hint(small, tmp_path):
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(4, 12))
    with pytest.raises(ValueError, match=r"chunks of 4 by 12 numbers in .*x\.zarr'\.\n.*\(7, "):
        iter_zarr(tmp_path / "x.zarr")


@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u1", "?", "i4", "f2"])
def test_dtypes(dtype, tmp_path):
    data = (10 * X).astype(dtype)
    zarr.create_array(tmp_path / "x.zarr", data=data, chunks=(3, 4))
    (block,) = iter_zarr(tmp_path / "x.zarr").blocks()
    stays = {"f8": "f8", "f4": "f4", "i1": "i1", "u1": "u1", "?": "u1"}
    assert block.values.dtype == stays.get(dtype, "f8")
    assert block.values.flags.f_contiguous
    np.testing.assert_array_equal(block.values, data)


def test_arrays_of_groups_and_in_memory(tmp_path):
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    array = group.create_array("calls", data=X, chunks=(N, 5))
    names = [f"v{j}" for j in range(P)]
    _same(iter_zarr(tmp_path / "g.zarr" / "calls", names=names), X, names)
    _same(iter_zarr(array), X)
    stream = iter_zarr(zarr.array(X), names=names)
    _same(clean(stream), X, names)
    with pytest.raises(ValueError, match="another process"):
        stream.split(2)
    with pytest.raises(ValueError, match=r"a group with calls \(7, 23\)\.\nHint"):
        iter_zarr(tmp_path / "g.zarr")


def test_several_arrays_as_one_stream(tmp_path):
    for i, part in enumerate(np.array_split(X, 3, axis=1)):
        zarr.create_array(tmp_path / f"{i}.zarr", data=part)
    np.save(tmp_path / "3.npy", X[:, :2])
    stream = iter_files([*(tmp_path / f"{i}.zarr" for i in range(3)), tmp_path / "3.npy"])
    _same(stream, np.column_stack([X, X[:, :2]]))


def test_changed_arrays_are_refused(tmp_path):
    path = tmp_path / "x.zarr"
    array = zarr.create_array(path, data=X, chunks=(N, 5))
    part = iter_zarr(path).split(2)[1]
    array[:, 3] = np.arange(N) / 3
    with pytest.raises(ValueError, match="unchanged since it was split"):
        part.open()


def _cut_short(path):
    chunk = path / "c" / "0" / "2"
    chunk.write_bytes(chunk.read_bytes()[:-9])


def _other_bytes(path):
    (path / "c" / "0" / "2").write_bytes(b"nothing of the kind")


def _no_json(path):
    (path / "zarr.json").write_text('{"zarr_format": 3, "node_')


def _no_codec(path):
    text = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(text.replace('"zstd"', '"tzsd"'))


def _no_shape(path):
    metadata = json.loads((path / "zarr.json").read_text())
    metadata["shape"] = [N, -1]
    (path / "zarr.json").write_text(json.dumps(metadata))


@pytest.mark.parametrize("damage", [_cut_short, _other_bytes, _no_json, _no_codec, _no_shape])
def test_damaged_arrays_raise_one_line_errors(damage, tmp_path):
    path = tmp_path / "x.zarr"
    zarr.create_array(path, data=X, chunks=(N, 5))
    damage(path)
    with pytest.raises(
        ValueError, match=r"^Expected a complete Zarr array\. Got: '.*x\.zarr'"
    ) as e:
        list(iter_zarr(path))
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((2, 3, 4)), r"two-dimensional.*\(2, 3, 4\)"),
        (np.zeros(3), r"two-dimensional.*\(3,\)"),
        (np.zeros((2, 3), dtype="c16"), r"of numbers.*complex128"),
    ],
)
def test_unsupported_arrays_are_refused(data, message, tmp_path):
    zarr.create_array(tmp_path / "x.zarr", data=data)
    with pytest.raises(ValueError, match=re.compile(message)):
        iter_zarr(tmp_path / "x.zarr")


def test_missing_arrays_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        iter_zarr(tmp_path / "x.zarr")
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(FileNotFoundError, match=r"empty\.zarr"):
        iter_zarr(tmp_path / "empty.zarr")


@pytest.mark.parametrize(
    "other", [X, csc_matrix(X), [[1.0]], None, 3], ids=lambda x: type(x).__name__
)
def test_other_array_objects_are_refused(other):
    with pytest.raises(
        TypeError, match=r"^Expected a zarr\.Array, or the path or URL of one\. Got: "
    ):
        iter_zarr(other)
