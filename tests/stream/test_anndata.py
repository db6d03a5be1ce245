"""AnnData: dense and sparse matrices written by anndata are read by columns."""

import pickle

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData, read_h5ad

from streamsel import ProjSe
from streamsel.stream import _chunked, clean, iter_anndata, iter_files

N, P = 12, 23
X = sp.random(N, P, 0.4, random_state=0).toarray()
NAMES = [f"gene{j}" for j in range(P)]


def _repeating(x):
    """Return rows with descending column indices and every number split into two entries."""
    half = sp.csr_array(x / 2)
    parts = half.data, half.indices, half.indptr
    data, columns = (np.repeat(part[::-1], 2) for part in parts[:2])
    return sp.csr_array((data, columns, 2 * (half.nnz - half.indptr[::-1])), half.shape)[::-1]


KINDS = {
    "dense": lambda x: x,
    "single": lambda x: x.astype(np.float32),
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "repeating": _repeating,
    "counts": lambda x: sp.csr_array((9 * x).astype(np.int64)),
}


def _obs():
    return pd.DataFrame(
        {
            "cell_type": pd.Categorical(["B", "T", None] * 4),
            "age": np.arange(N) / 2,
            "batch": np.arange(N) % 2,
            "score": pd.array([1, None] * 6, dtype="Int64"),
            "is_doublet": [True, False] * 6,
        },
        index=[f"cell{i}" for i in range(N)],
    )


def _data(kind="dense", **more):
    var = pd.DataFrame(index=more.pop("names", NAMES))
    return AnnData(KINDS[kind](X), obs=_obs(), var=var, **more)


@pytest.fixture(params=["memory", "file"])
def small(request, monkeypatch):
    """Shrink the size limits, so that 12 × 23 numbers are a large matrix."""
    if request.param == "file":
        monkeypatch.setattr(_chunked, "_IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(_chunked, "_SLAB_BYTES", 4 * N * 8)
    monkeypatch.setattr(_chunked, "TILE_BYTES", 2 * P * 8)
    monkeypatch.setattr(_chunked, "BLOCK_BYTES", 5 * N * 8)


def _same(stream, expected, names=NAMES):
    found = dict(stream)
    assert list(found) == list(names)
    for name, values in zip(names, expected.T, strict=True):
        column = found[name].toarray()[:, 0] if sp.issparse(found[name]) else found[name]
        np.testing.assert_array_equal(column, values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"compression": "gzip"}])
def test_files_in_every_layout(kind, options, small, tmp_path):
    data = _data(kind)
    data.write_h5ad(tmp_path / "x.h5ad", **options)
    expected = data.X.toarray() if sp.issparse(data.X) else data.X
    stream = iter_anndata(tmp_path / "x.h5ad")
    assert (stream.n_rows, stream.n_columns, stream.reiterable) == (N, P, True)
    for _ in range(2):
        _same(stream, expected)
    _same(stream.skip(6), expected[:, 6:], NAMES[6:])
    taken = stream.take(["gene17", "gene2"])
    _same(taken.items(), expected[:, [17, 2]], ["gene17", "gene2"])
    parts = [pickle.loads(pickle.dumps(part)) for part in stream.split(4)]  # noqa: S301
    assert len(parts) == 4
    _same((pair for part in parts for pair in part.open()), expected)
    for _, values, _ in stream.blocks():
        assert sp.issparse(values) == sp.issparse(data.X)
        assert values.dtype == ("f4" if kind == "single" else "f8")
    _same(iter_files(str(tmp_path / "*.h5ad")), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_in_memory_and_backed(kind, tmp_path):
    data = _data(kind, layers={"double": KINDS[kind](2 * X)})
    twice = data.layers["double"]
    twice = twice.toarray() if sp.issparse(twice) else twice
    _same(iter_anndata(data, layer="double"), twice)
    _same(iter_anndata(data[:, 3:]), KINDS["dense"](_dense(data))[:, 3:], NAMES[3:])
    data.write_h5ad(tmp_path / "x.h5ad")
    for mode in ("r", "r+"):
        backed = read_h5ad(tmp_path / "x.h5ad", backed=mode)
        _same(iter_anndata(backed), _dense(data))
        _same(iter_anndata(backed, layer="double"), twice)
        backed.obs["new"] = np.arange(N)
        assert iter_anndata(backed).row_metadata["new"].tolist() == list(range(N))
        with pytest.raises(ValueError, match="view of one"):
            iter_anndata(backed[:, 3:])
        backed.file.close()


def _dense(data):
    return data.X.toarray() if sp.issparse(data.X) else data.X


def test_rows_are_transposed_once_on_first_read(small, tmp_path, monkeypatch):
    data = _data("csr")
    data.write_h5ad(tmp_path / "x.h5ad")
    read = []
    parts = _chunked.SparseMatrix._parts
    monkeypatch.setattr(
        _chunked.SparseMatrix, "_parts", lambda *args: read.append(args[1]) or parts(*args)
    )
    stream = iter_anndata(tmp_path / "x.h5ad")
    assert stream.names == NAMES
    assert not read
    for _ in range(2):
        _same(stream, X)
    stream.take(["gene3"])
    assert sorted(set(read)) == read


@pytest.mark.parametrize("where", ["memory", "file"])
def test_metadata_of_cells(where, tmp_path):
    data = _data("csr")
    data.write_h5ad(tmp_path / "x.h5ad")
    stream = iter_anndata(data if where == "memory" else tmp_path / "x.h5ad")
    alongside = clean(stream).without(["gene1"]).row_metadata
    assert list(alongside) == ["obs_names", *_obs().columns]
    assert len(alongside) == 6
    assert alongside["obs_names"].tolist() == [f"cell{i}" for i in range(N)]
    assert alongside["cell_type"].tolist() == ["B", "T", None] * 4
    assert alongside["age"].dtype == np.float64
    assert alongside["batch"].dtype == np.int64
    assert alongside["is_doublet"].dtype == bool
    np.testing.assert_array_equal(alongside["score"], [1, np.nan] * 6)
    model = ProjSe(2)
    model.learn_target(alongside["age"])
    model.learn_columns(stream)
    assert set(model.selected) <= set(NAMES)


def test_repeated_genes_are_renamed_as_by_anndata(tmp_path):
    names = [*NAMES[:20], "gene3", "gene3", "gene7"]
    with pytest.warns(UserWarning, match="not unique"):
        data, unique = (_data("csr", names=names) for _ in range(2))
    data.write_h5ad(tmp_path / "x.h5ad")
    unique.var_names_make_unique()
    for stream in (iter_anndata(data), iter_anndata(tmp_path / "x.h5ad")):
        assert stream.names == unique.var_names.tolist()


def test_missing_layers_are_refused(tmp_path):
    data = _data(layers={"counts": X})
    data.write_h5ad(tmp_path / "x.h5ad")
    for source in (data, tmp_path / "x.h5ad"):
        with pytest.raises(KeyError, match=r"'raw'\. Hint: there are 'counts'"):
            iter_anndata(source, layer="raw")
        with pytest.raises(KeyError, match=r"did you mean 'counts'\? There are 'counts'"):
            iter_anndata(source, layer="count")
        with pytest.raises(ValueError, match=r"AnnData with raw\. Got: .* without it\.\nHint"):
            iter_anndata(source, raw=True)
        with pytest.raises(ValueError, match="raw has no layers"):
            iter_anndata(source, layer="counts", raw=True)


@pytest.mark.parametrize("kind", KINDS)
def test_raw_has_its_own_genes(kind, tmp_path):
    whole = _data(kind)
    data = whole[:, 5:9].copy()
    data.raw = whole
    data.X = data.X * 0
    data.write_h5ad(tmp_path / "x.h5ad")
    backed = read_h5ad(tmp_path / "x.h5ad", backed="r")
    for source in (data, backed, tmp_path / "x.h5ad"):
        stream = iter_anndata(source, raw=True)
        assert (stream.n_rows, stream.n_columns) == (N, P)
        _same(stream, _dense(whole))
        assert stream.row_metadata["batch"].tolist() == _obs()["batch"].tolist()
        _same(iter_anndata(source), 0 * X[:, 5:9], NAMES[5:9])
    parts = iter_anndata(tmp_path / "x.h5ad", raw=True).split(3)
    parts = [pickle.loads(pickle.dumps(part)) for part in parts]  # noqa: S301
    _same((pair for part in parts for pair in part.open()), _dense(whole))
    backed.file.close()


@pytest.mark.parametrize("where", ["memory", "backed", "file"])
def test_a_model_learns_anndata_directly(where, tmp_path):
    data = _data("csr")
    data.write_h5ad(tmp_path / "x.h5ad")
    backed = read_h5ad(tmp_path / "x.h5ad", backed="r")
    source = {"memory": data, "backed": backed, "file": tmp_path / "x.h5ad"}[where]
    kinds = data.obs["cell_type"].cat.add_categories("none").fillna("none")
    for target in (data.obs["age"], kinds):
        found, expected = ProjSe(3), ProjSe(3)
        for model in (found, expected):
            model.learn_target(target)
        found.learn_columns(source)
        expected.learn_columns(X, names=NAMES)
        assert found.selected == expected.selected
    backed.file.close()


def test_obs_columns_with_missing_categories_are_targets():
    """Columns of obs are valid targets; missing categories are reported."""
    data = _data()
    with pytest.raises(ValueError, match="missing"):
        ProjSe(3).learn_target(data.obs["cell_type"])
    kept = data[data.obs["cell_type"].notna()].copy()
    kept.obs["cell_type"] = kept.obs["cell_type"].cat.set_categories(["none", "B", "T"])
    model = ProjSe(3)
    model.learn_target(kept.obs["cell_type"])
    model.learn_columns(kept)
    same = ProjSe(3)
    same.learn_target(kept.obs["cell_type"].astype(str).to_numpy())
    same.learn_columns(kept.X, names=NAMES)
    assert model.selected == same.selected


def _no_names(file):
    del file["var/_index"]


def _no_matrix(file):
    del file["X"]


def _fewer_cells(file):
    file["X"].attrs["shape"] = [N - 1, P]


def _index_beyond(file):
    file["X/indices"][4] = 1000


def _negative(file):
    file["X/indices"][4] = -1


def _ends_that_go_back(file):
    file["X/indptr"][3] = 1000


def _too_few_values(file):
    values = file["X/data"][:-3]
    del file["X/data"]
    file["X/data"] = values


DAMAGE = [
    *(_no_names, _no_matrix, _fewer_cells, _index_beyond, _negative),
    *(_ends_that_go_back, _too_few_values),
]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_damaged_files_raise_one_line_errors(damage, kind, tmp_path):
    path = tmp_path / "x.h5ad"
    _data(kind).write_h5ad(path)
    with h5py.File(path, "r+") as file:
        damage(file)
    with pytest.raises(ValueError, match=r"x\.h5ad") as error:
        list(iter_anndata(path))
    assert "\n" not in str(error.value)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "x.h5ad").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(ValueError, match=r"^Expected a complete AnnData file\. Got: '.*x\.h5ad'"):
        iter_anndata(tmp_path / "x.h5ad")
    with h5py.File(tmp_path / "y.h5ad", "w") as file:
        file["numbers"] = X
    with pytest.raises(ValueError, match=r"AnnData file\. Got: '.*y\.h5ad'"):
        iter_anndata(tmp_path / "y.h5ad")
    with pytest.raises(FileNotFoundError):
        iter_anndata(tmp_path / "z.h5ad")
    with pytest.raises(TypeError, match="Expected an AnnData"):
        iter_anndata(X)
