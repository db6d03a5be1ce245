"""Streams of the variables of AnnData: annotated matrices, in memory and in .h5ad files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.sparse import is_sparse
from streamsel._utils.text import close_spellings
from streamsel.params import parameter_repr
from streamsel.stream._chunked import DenseMatrix, SparseMatrix, matrix_stream, store_errors
from streamsel.stream._memory import iter_sparse
from streamsel.stream._metadata import LazyMetadata
from streamsel.stream._npy import iter_array
from streamsel.stream._parts import Stamp, cached_reader, split_columns
from streamsel.stream._remote import local_file
from streamsel.stream._stream import ColumnStream

if TYPE_CHECKING:
    pass

_KIND = "AnnData file"


def iter_anndata(data: Any, layer: str | None = None, *, raw: bool = False) -> ColumnStream:
    """Stream the variables of an AnnData object, or of an .h5ad file that may exceed memory.

    Parameters
    ----------
    data
        An `anndata.AnnData`, in memory or backed by its file, or the path or URL of an .h5ad file.
    layer
        Layer to read, X by default.
    raw
        Whether to read `data.raw`, usually the counts of all genes: its X, with the names of its
        own var. It has no layers.

    Returns
    -------
    ColumnStream
        One column per variable, with its name in var; repeated names get the suffixes -1, -2 and so
        on, as by `var_names_make_unique`. Its `row_metadata` has the names of the observations
        (under "obs_names" if the index has no name), followed by the columns of obs. Its
        `column_metadata` has the names of the columns under "name", followed by the columns of var.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not an .h5ad file, is damaged, or its chunks are too large; if it has no raw, or
        both `raw` and `layer` are passed.
    KeyError
        If there is no such layer; the message lists the layers and suggests a similar name.
    TypeError
        If `raw` is not True or False.
    ImportError
        If anndata is not installed: ``pip install "streamsel[anndata]"``.

    Notes
    -----
    For a file, only the names are kept in memory, plus obs and var once they are used. A matrix
    stored by columns (CSC) is read about 4 MiB at a time; a dense one is read as by `iter_zarr`. A
    sparse matrix stored by rows (CSR), as is usual, is kept in memory from the first read on if it
    has up to 64 MiB. A larger one is transposed once, at the first read: its rows are read in
    order, 32 MiB at a time, and written to a temporary file of its size, in the directory that
    `tempfile` chooses (TMPDIR). This takes about 150 MB of memory, plus 8 bytes per variable for
    every 32 MiB. Sparse columns stay sparse.

    Data in memory are streamed as by `iter_array` and `iter_sparse`. Only a file can be split into
    parts; if stored by rows, it is read or transposed by every process that reads a part.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from anndata import AnnData
    >>> obs = pd.DataFrame({"cell_type": ["B", "T", "T"]}, index=["c1", "c2", "c3"])
    >>> var = pd.DataFrame(index=["CD3", "CD19"])
    >>> data = AnnData(np.array([[0.0, 7.0], [5.0, 0.0], [6.0, 1.0]]), obs=obs, var=var)
    >>> stream = iter_anndata(data)
    >>> for name, values in stream:
    ...     print(name, values)
    CD3 [0. 5. 6.]
    CD19 [7. 0. 1.]
    >>> stream.row_metadata["cell_type"]
    array(['B', 'T', 'T'], dtype=object)
    """
    if not isinstance(raw, bool | np.bool_):
        raise TypeError(f"Expected raw to be True or False. Got: {parameter_repr(raw)}.")
    if raw and layer is not None:
        raise ValueError(
            f"Expected either raw=True or a layer. Got: raw=True and layer={layer!r}.\n"
            "Hint: raw has no layers; omit one of the two."
        )
    if isinstance(data, (str, os.PathLike)):
        file = _H5adFile(data)
        var = "raw/var" if raw else "var"
        return _file_stream(
            data, file, (layer, raw), (lambda: file.frame("obs"), lambda: file.frame(var))
        )
    if not getattr(data, "isbacked", False):
        return _memory_stream(data, layer, raw=raw)
    if data.is_view:
        raise ValueError(
            "Expected a backed AnnData. Got: a view of one.\nHint: pass view.to_memory()."
        )
    file = _H5adFile(data.filename, data.file)
    source = data.raw if raw else data
    frames = (lambda: data.obs), (lambda: source.var)
    return _file_stream(data.filename, file, (layer, raw), frames)


def _memory_stream(data: Any, layer: str | None, *, raw: bool) -> ColumnStream:
    if not hasattr(data, "obs_names"):
        raise TypeError(
            f"Expected an AnnData, or the path of an .h5ad file. Got: {type(data).__name__}."
        )
    if layer is not None and layer not in data.layers:
        raise _no_layer(layer, data.layers)
    if raw and data.raw is None:
        raise _no_raw("an AnnData")
    source = data.raw if raw else data
    values = source.X if layer is None else data.layers[layer]
    if values is None:
        raise ValueError("Expected an AnnData with a matrix X. Got: one without X.")
    names = _unique(source.var_names)
    stream = iter_sparse(values, names) if is_sparse(values) else iter_array(values, names)
    stream.row_metadata, stream.column_metadata = _metadata(
        names, lambda: data.obs, lambda: source.var
    )
    return stream


def _file_stream(
    path: Any,
    file: _H5adFile,
    matrix_key: tuple[str | None, bool],
    frames: tuple[Callable[[], Any], Callable[[], Any]],
) -> ColumnStream:
    stamp = Stamp.of(path)
    names, matrix = file.matrix(*matrix_key)
    p = len(names)

    def opener(a: int, b: int) -> partial[ColumnStream]:
        return partial(_h5ad_part, stamp.path, matrix_key, a, b)

    size = max(1, matrix.n_bytes // max(1, p))
    before = range(0, (p + 1) * size, size)
    cut = partial(split_columns, path, (stamp,), before, opener)
    stream = matrix_stream(matrix, names, 0, _KIND, cut)
    stream.row_metadata, stream.column_metadata = _metadata(names, *frames)
    return stream


def _h5ad_part(
    path: str, matrix_key: tuple[str | None, bool], first: int, end: int
) -> ColumnStream:
    names, matrix = cached_reader(_H5adFile, path).matrix(*matrix_key)
    return matrix_stream(matrix, names[first:end], first, _KIND)


class _H5adFile:
    """An open .h5ad file.

    Parameters
    ----------
    path
        The file.
    file
        The file object, if it is already open.
    """

    def __init__(self, path: str | os.PathLike[str], file: Any = None) -> None:
        self._read = _reader()
        self._path = path
        with store_errors(_KIND, path):
            # The local copy of a URL is removed with this object.
            self._local = local_file(path)
            self._file = _open(self._local.path) if file is None else file
            self._var_names = self._read(self._index("var"))

    def _index(self, group: str) -> Any:
        """Return the index of a frame as it is stored."""
        found = self._file[group]
        return found[found.attrs["_index"]]

    def frame(self, group: str) -> Any:
        """Return the frame of the metadata of observations or variables."""
        with store_errors(_KIND, self._path):
            return self._read(self._file[group])

    def matrix(
        self, layer: str | None, raw: bool
    ) -> tuple[list[Hashable], DenseMatrix | SparseMatrix]:
        """Return X, a layer, or the X of raw, and the names of its variables."""
        with store_errors(_KIND, self._path):
            # AnnData's file manager has no get.
            layers = self._file["layers"] if "layers" in self._file else ()  # noqa: SIM401
            has_raw = "raw" in self._file
        if layer is not None and layer not in layers:
            raise _no_layer(layer, layers)
        if raw and not has_raw:
            raise _no_raw(repr(os.fspath(self._path)))
        with store_errors(_KIND, self._path):
            names = _unique(self._read(self._index("raw/var")) if raw else self._var_names)
            found = self._file[f"layers/{layer}" if layer is not None else "raw/X" if raw else "X"]
            matrix: DenseMatrix | SparseMatrix
            if hasattr(found, "keys"):
                rows, columns = (int(size) for size in found.attrs["shape"])
                by_rows = found.attrs["encoding-type"] == "csr_matrix"
                matrix = SparseMatrix(found, (rows, columns), self._path, by_rows=by_rows)
            else:
                matrix = DenseMatrix(found, self._path)
            rows = self._index("obs")
            # A group, of categories and codes, has no shape.
            n = rows.shape[0] if hasattr(rows, "shape") else len(self._read(rows))
            expected = n, len(names)
            if matrix.shape != expected:
                raise ValueError(f"X has shape {matrix.shape}, but there are {expected} names")
            return names, matrix


def _metadata(
    names: list[Hashable], obs: Callable[[], Any], var: Callable[[], Any]
) -> tuple[LazyMetadata, LazyMetadata]:
    """Return row and column metadata, given functions that return the frames obs and var."""

    def rows() -> dict[str, Any]:
        frame = obs()
        title = "obs_names" if frame.index.name is None else str(frame.index.name)
        return {title: frame.index.to_series()} | _columns_of(frame, title)

    def columns() -> dict[str, Any]:
        import pandas as pd

        return {"name": pd.Series(names, dtype=object)} | _columns_of(var(), "name")

    return LazyMetadata(rows, _as_array), LazyMetadata(columns, _as_array)


def _columns_of(frame: Any, title: str) -> dict[str, Any]:
    return {str(name): frame[name] for name in frame.columns if name != title}


def _as_array(column: Any) -> Any:
    """Return a column of a frame as an array of its numbers, or of objects."""
    kind = column.dtype
    if kind.kind in "biuf" and not column.isna().any():
        return column.to_numpy(dtype=getattr(kind, "numpy_dtype", kind))
    if kind.kind in "biuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.astype(object).where(column.notna(), None).to_numpy()


def _reader() -> Callable[[Any], Any]:
    """Return the function of anndata that reads an element of a file."""
    try:
        from anndata.io import read_elem
    except ModuleNotFoundError as error:
        raise ImportError(
            'AnnData files need anndata. Hint: pip install "streamsel[anndata]".'
        ) from error
    read: Callable[[Any], Any] = read_elem
    return read


def _open(path: str | os.PathLike[str]) -> Any:
    import h5py

    Stamp.of(path)  # raises FileNotFoundError if there is none
    return h5py.File(path, "r")


def _unique(names: Any) -> list[Hashable]:
    """Make the names of variables unique, as AnnData does."""
    import pandas as pd
    from anndata.utils import make_index_unique

    with warnings.catch_warnings():
        # It warns about names that already end in a number.
        warnings.simplefilter("ignore", UserWarning)
        unique: list[Hashable] = make_index_unique(pd.Index(names).astype(str)).tolist()
    return unique


def _no_layer(layer: str, layers: Any) -> KeyError:
    # From anndata 0.13, None is the name of X among the layers.
    available = [name for name in layers if name is not None]
    close = close_spellings(layer, available)
    hint = f"did you mean {close[0]!r}? There " if close else "there "
    hint += f"are {', '.join(map(repr, available))}" if available else "are none"
    return KeyError(f"Expected a layer of the AnnData. Got: {layer!r}. Hint: {hint}.")


def _no_raw(got: str) -> ValueError:
    return ValueError(
        f"Expected an AnnData with raw. Got: {got} without it.\nHint: set adata.raw = adata before "
        "filtering genes or scaling counts."
    )
