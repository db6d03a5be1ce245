"""Columns of AnnData: annotated matrices, in memory and in .h5ad files."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.params import shown
from streamsel.stream._arrays import iter_array
from streamsel.stream._base import ColumnStream
from streamsel.stream._blocks import is_sparse
from streamsel.stream._remote import local_file
from streamsel.stream._sparse import iter_sparse
from streamsel.stream._split import Stamp, kept_open, parts_of_columns
from streamsel.stream._stores import DenseMatrix, SparseMatrix, matrix_stream, reading_store

if TYPE_CHECKING:
    from streamsel.stream._split import Part

_KIND = "AnnData file"


def iter_anndata(data: Any, layer: str | None = None, *, raw: bool = False) -> ColumnStream:
    """Stream the variables of an AnnData object, or of an .h5ad file that may exceed memory.

    Parameters
    ----------
    data
        An `anndata.AnnData`, in memory or backed by its file, or the path or URL of an .h5ad file.
    layer
        Which of its layers to read, X by default.
    raw
        Whether to read what `data.raw` keeps, mostly the counts of all genes: its X, under the
        names of its own var. It has no layers.

    Returns
    -------
    ColumnStream
        A column a variable, under its name in var; those of a name that occurs more than once get
        -1, -2 and so on behind it, as `var_names_make_unique` does it. Its `beside` has the columns
        of obs, and before them the names of the observations ("obs_names" if they have no other).

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not an .h5ad file, is damaged, or its chunks are too large; if it has no raw, or a
        layer of that is asked for.
    KeyError
        If there is no such layer; it says which there are, and which comes close.
    TypeError
        For a raw that is not True or False.
    ImportError
        If anndata is not installed: ``pip install "streamsel[anndata]"``.

    Notes
    -----
    Of a file only the names and obs are held. A matrix that is stored by columns (CSC) is read
    some 4 MiB at a time; a dense one as by `iter_zarr`. A sparse one that is stored by rows (CSR),
    as is usual, has no column together: it is turned once, when it is first read. Its rows go by in
    order, 32 MiB at a time, and into a temporary file of its size, in the directory that `tempfile`
    chooses (TMPDIR); that takes about 150 MB of memory, and 8 bytes a variable for every 32 MiB.
    Sparse columns stay sparse.

    What is in memory is streamed as `iter_array` and `iter_sparse` do it. Only a file can be split
    into parts, and one stored by rows is turned by every process that reads any of them.

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
    >>> stream.beside["cell_type"]
    array(['B', 'T', 'T'], dtype=object)
    """
    if not isinstance(raw, bool | np.bool_):
        raise TypeError(f"Expected raw=True or raw=False. Got: {shown(raw)}.")
    if raw and layer is not None:
        raise ValueError(
            f"Expected raw=True, or a layer. Got: both, and layer={layer!r}.\n"
            "Hint: what raw keeps has no layers."
        )
    if isinstance(data, (str, os.PathLike)):
        file = _H5adFile(data)
        return _file_stream(data, file, (layer, raw), file.obs)
    if not getattr(data, "isbacked", False):
        return _memory_stream(data, layer, raw=raw)
    if data.is_view:
        raise ValueError(
            "Expected a whole backed AnnData. Got: a view of one.\nHint: view.to_memory()."
        )
    file = _H5adFile(data.filename, data.file)
    return _file_stream(data.filename, file, (layer, raw), lambda: data.obs)


def _memory_stream(data: Any, layer: str | None, *, raw: bool) -> ColumnStream:
    if not hasattr(data, "obs_names"):
        raise TypeError(
            f"Expected an AnnData, or the path of an .h5ad file. Got: {type(data).__name__}."
        )
    if layer is not None and layer not in data.layers:
        raise _no_layer(layer, data.layers)
    if raw and data.raw is None:
        raise _no_raw("an AnnData")
    of = data.raw if raw else data
    values = of.X if layer is None else data.layers[layer]
    if values is None:
        raise ValueError("Expected an AnnData with a matrix X. Got: one without.")
    names = _unique(of.var_names)
    stream = iter_sparse(values, names) if is_sparse(values) else iter_array(values, names)
    stream.beside = _Obs(lambda: data.obs)
    return stream


def _file_stream(
    path: Any, file: _H5adFile, which: tuple[str | None, bool], obs: Callable[[], Any]
) -> ColumnStream:
    stamp = Stamp.of(path)
    names, matrix = file.matrix(*which)
    p = len(names)

    def how(a: int, b: int) -> partial[ColumnStream]:
        return partial(_h5ad_part, stamp.path, which, a, b)

    def cut(parts: int | None, start: int) -> list[Part]:
        size = max(1, matrix.n_bytes // max(1, p))
        return parts_of_columns(path, stamp, range(0, (p + 1) * size, size), how, parts, start)

    return matrix_stream(matrix, names, 0, _KIND, cut, _Obs(obs))


def _h5ad_part(path: str, which: tuple[str | None, bool], first: int, end: int) -> ColumnStream:
    names, matrix = kept_open(_H5adFile, path).matrix(*which)
    return matrix_stream(matrix, names[first:end], first, _KIND)


class _H5adFile:
    """An .h5ad file, opened.

    Parameters
    ----------
    path
        Where it is.
    file
        The same, if somebody has it open.
    """

    def __init__(self, path: str | os.PathLike[str], file: Any = None) -> None:
        self._read = _reader()
        self._path = path
        with reading_store(_KIND, path):
            # A copy of what is at a URL goes with this.
            self._local = local_file(path)
            self._file = _open(self._local.path) if file is None else file
            self._index("var")

    def _index(self, group: str) -> Any:
        """Return the names of the variables, or of the observations."""
        found = self._file[group]
        return self._read(found[found.attrs["_index"]])

    def obs(self) -> Any:
        """Return the frame of what is said of the observations."""
        with reading_store(_KIND, self._path):
            return self._read(self._file["obs"])

    def matrix(
        self, layer: str | None, raw: bool
    ) -> tuple[list[Hashable], DenseMatrix | SparseMatrix]:
        """Return X, a layer, or the X of raw, and the names of its variables."""
        with reading_store(_KIND, self._path):
            # AnnData's own manager of its file has no get.
            layers = self._file["layers"] if "layers" in self._file else ()  # noqa: SIM401
            has_raw = "raw" in self._file
        if layer is not None and layer not in layers:
            raise _no_layer(layer, layers)
        if raw and not has_raw:
            raise _no_raw(repr(os.fspath(self._path)))
        with reading_store(_KIND, self._path):
            names = _unique(self._index("raw/var" if raw else "var"))
            found = self._file[f"layers/{layer}" if layer is not None else "raw/X" if raw else "X"]
            matrix: DenseMatrix | SparseMatrix
            if hasattr(found, "keys"):
                rows, columns = (int(size) for size in found.attrs["shape"])
                by_rows = found.attrs["encoding-type"] == "csr_matrix"
                matrix = SparseMatrix(found, (rows, columns), self._path, by_rows=by_rows)
            else:
                matrix = DenseMatrix(found, self._path)
            expected = len(self._index("obs")), len(names)
            if matrix.shape != expected:
                raise ValueError(f"X is {matrix.shape}, and there are {expected} names")
            return names, matrix


class _Obs(Mapping[str, Any]):
    """What a frame says of the observations, as arrays; first of all how they are called.

    Parameters
    ----------
    frame
        Returns it, when it is first asked for.
    """

    def __init__(self, frame: Callable[[], Any]) -> None:
        self._fetch = frame

    @cached_property
    def _frame(self) -> Any:
        frame = self._fetch()
        called = "obs_names" if frame.index.name is None else str(frame.index.name)
        others = [name for name in frame.columns if name != called]
        return frame[others].rename_axis(called).reset_index()

    def __getitem__(self, name: str) -> Any:
        column = self._frame[name]
        kind = column.dtype
        if kind.kind in "biuf" and not column.isna().any():
            return column.to_numpy(dtype=getattr(kind, "numpy_dtype", kind))
        if kind.kind in "biuf":
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        return column.astype(object).where(column.notna(), None).to_numpy()

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame.columns)

    def __len__(self) -> int:
        return len(self._frame.columns)


def _reader() -> Callable[[Any], Any]:
    """Return what reads elements of AnnData out of a file."""
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

    Stamp.of(path)  # says so if there is none
    return h5py.File(path, "r")


def _unique(names: Any) -> list[Hashable]:
    """Return the names of variables, told apart as AnnData does it."""
    import pandas as pd
    from anndata.utils import make_index_unique

    with warnings.catch_warnings():
        # Of names that look as if they had been told apart before.
        warnings.simplefilter("ignore", UserWarning)
        unique: list[Hashable] = make_index_unique(pd.Index(names).astype(str)).tolist()
    return unique


def _no_layer(layer: str, layers: Any) -> KeyError:
    there = list(layers)
    close = difflib.get_close_matches(layer, there)
    hint = f"did you mean {close[0]!r}? There " if close else "there "
    hint += f"are {', '.join(map(repr, there))}" if there else "are none"
    return KeyError(f"Expected a layer of the AnnData. Got: {layer!r}. Hint: {hint}.")


def _no_raw(got: str) -> ValueError:
    return ValueError(
        f"Expected an AnnData with raw. Got: {got} without.\nHint: adata.raw = adata, before genes "
        "are filtered or counts are scaled, keeps them."
    )
