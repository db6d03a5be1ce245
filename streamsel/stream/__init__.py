"""Readers: streams of columns from arrays, frames, files, documents and generators.

Every function returns a `ColumnStream`: an iterable of (name, values) that records its size,
yields blocks to learners, and keeps within its documented memory bound.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamsel.stream._anndata import iter_anndata
    from streamsel.stream._arrays import iter_array, iter_npy
    from streamsel.stream._arrow import iter_ipc, iter_parquet
    from streamsel.stream._base import ColumnStream
    from streamsel.stream._bed import iter_bed
    from streamsel.stream._columns import iter_columns
    from streamsel.stream._convert import as_stream
    from streamsel.stream._csv import iter_csv
    from streamsel.stream._dummies import with_dummies
    from streamsel.stream._files import iter_files
    from streamsel.stream._frames import iter_frame
    from streamsel.stream._lines import iter_lines
    from streamsel.stream._polynomials import iter_polynomials
    from streamsel.stream._prune import prune
    from streamsel.stream._screen import screen
    from streamsel.stream._sparse import iter_sparse
    from streamsel.stream._split import Part
    from streamsel.stream._text import iter_ngrams, iter_positions, iter_skipgrams
    from streamsel.stream._zarr import iter_zarr

__all__ = [
    "ColumnStream",
    "Part",
    "as_stream",
    "iter_anndata",
    "iter_array",
    "iter_bed",
    "iter_columns",
    "iter_csv",
    "iter_files",
    "iter_frame",
    "iter_ipc",
    "iter_lines",
    "iter_ngrams",
    "iter_npy",
    "iter_parquet",
    "iter_polynomials",
    "iter_positions",
    "iter_skipgrams",
    "iter_sparse",
    "iter_zarr",
    "prune",
    "screen",
    "with_dummies",
]

# Names are imported lazily (PEP 562), so that importing the package costs milliseconds.
_MODULE_OF = {
    "ColumnStream": "_base",
    "Part": "_split",
    "as_stream": "_convert",
    "iter_anndata": "_anndata",
    "iter_array": "_arrays",
    "iter_bed": "_bed",
    "iter_columns": "_columns",
    "iter_csv": "_csv",
    "iter_files": "_files",
    "iter_frame": "_frames",
    "iter_ipc": "_arrow",
    "iter_lines": "_lines",
    "iter_ngrams": "_text",
    "iter_npy": "_arrays",
    "iter_parquet": "_arrow",
    "iter_polynomials": "_polynomials",
    "iter_positions": "_text",
    "iter_skipgrams": "_text",
    "iter_sparse": "_sparse",
    "iter_zarr": "_zarr",
    "prune": "_prune",
    "screen": "_screen",
    "with_dummies": "_dummies",
}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
