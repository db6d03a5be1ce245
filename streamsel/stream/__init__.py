"""Readers: streams of columns from arrays, frames, files, documents and generators.

Every function returns a `ColumnStream`: an iterable of (name, values) that records its size,
yields blocks to learners, and keeps within its documented memory bound.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from streamsel._utils.lazy import lazy_names

if TYPE_CHECKING:
    from streamsel.stream._anndata import iter_anndata
    from streamsel.stream._arrow import iter_ipc, iter_parquet
    from streamsel.stream._clean import clean
    from streamsel.stream._coerce import as_stream
    from streamsel.stream._csv import iter_csv
    from streamsel.stream._encode import encode
    from streamsel.stream._groups import grouped, read_gmt
    from streamsel.stream._interactions import iter_interactions
    from streamsel.stream._lags import iter_lags
    from streamsel.stream._memory import iter_columns, iter_frame, iter_sparse
    from streamsel.stream._multi_file import iter_files
    from streamsel.stream._ngrams import iter_ngrams, iter_positions, iter_skipgrams
    from streamsel.stream._npy import iter_array, iter_npy
    from streamsel.stream._one_hot import iter_one_hot
    from streamsel.stream._parts import StreamPart
    from streamsel.stream._plink import iter_bed
    from streamsel.stream._polynomials import iter_polynomials
    from streamsel.stream._probes import with_probes
    from streamsel.stream._prune import prune
    from streamsel.stream._ranks import normal_scores, ranks
    from streamsel.stream._series import iter_series_features
    from streamsel.stream._stream import ColumnStream
    from streamsel.stream._vcf import iter_vcf
    from streamsel.stream._zarr import iter_zarr
    from streamsel.stream.knockoffs import with_knockoffs

__all__ = [
    "ColumnStream",
    "StreamPart",
    "as_stream",
    "clean",
    "encode",
    "grouped",
    "iter_anndata",
    "iter_array",
    "iter_bed",
    "iter_columns",
    "iter_csv",
    "iter_files",
    "iter_frame",
    "iter_interactions",
    "iter_ipc",
    "iter_lags",
    "iter_ngrams",
    "iter_npy",
    "iter_one_hot",
    "iter_parquet",
    "iter_polynomials",
    "iter_positions",
    "iter_series_features",
    "iter_skipgrams",
    "iter_sparse",
    "iter_vcf",
    "iter_zarr",
    "normal_scores",
    "prune",
    "ranks",
    "read_gmt",
    "with_knockoffs",
    "with_probes",
]

_MODULE_OF = {
    "ColumnStream": "_stream",
    "StreamPart": "_parts",
    "as_stream": "_coerce",
    "encode": "_encode",
    "grouped": "_groups",
    "read_gmt": "_groups",
    "iter_anndata": "_anndata",
    "iter_array": "_npy",
    "iter_bed": "_plink",
    "iter_columns": "_memory",
    "iter_csv": "_csv",
    "iter_files": "_multi_file",
    "iter_frame": "_memory",
    "iter_interactions": "_interactions",
    "iter_ipc": "_arrow",
    "iter_lags": "_lags",
    "iter_ngrams": "_ngrams",
    "iter_npy": "_npy",
    "iter_one_hot": "_one_hot",
    "iter_parquet": "_arrow",
    "iter_polynomials": "_polynomials",
    "iter_positions": "_ngrams",
    "iter_series_features": "_series",
    "iter_skipgrams": "_ngrams",
    "iter_sparse": "_memory",
    "iter_vcf": "_vcf",
    "iter_zarr": "_zarr",
    "normal_scores": "_ranks",
    "prune": "_prune",
    "ranks": "_ranks",
    "clean": "_clean",
    "with_knockoffs": "knockoffs",
    "with_probes": "_probes",
}

__getattr__, __dir__ = lazy_names(
    __name__,
    __all__,
    lambda name: getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name),
)
