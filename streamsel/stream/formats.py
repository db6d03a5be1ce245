"""The formats of files of columns: one record each, for streams and for the command.

Only the standard library is imported here; a reader is imported when a file is opened.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamsel.stream._stream import ColumnStream

# Maximum number of categories of a column that `encode` and the command encode by default.
MAX_CATEGORIES = 100


class Format(NamedTuple):
    """A format of files: how it is recognised, and how it is opened.

    Parameters
    ----------
    name
        Its name in the package.
    title
        Its name in help and documentation.
    suffixes
        Suffixes of its files, in lower case. A further `.gz` or `.bgz` is ignored.
    open
        Opens a file: called with the path, and with `options` by name.
    options
        The options that `open` takes: fields of `ReadOptions`, `orientation` and `on_bad` of
        `iter_files`, or `options`, all the `ReadOptions`.
    magic
        The first bytes of every file; empty if they vary.
    folder
        Names of files, at least one of them in every folder of this format.
    companions
        Suffixes of the other files that belong to each file.
    numbered
        Whether columns have no names; `open` then takes `names`.
    genotypes
        Whether columns are genotypes: the command imputes missing ones, and reads a target of -9 as
        missing.
    scans
        Whether opening a file reads all names in it, and nothing else stays in memory: each of
        several files is then opened only once.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    open: Callable[..., ColumnStream]
    options: tuple[str, ...] = ()
    magic: bytes = b""
    folder: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    numbered: bool = False
    genotypes: bool = False
    scans: bool = False


def _lazy(module: str, function: str) -> Callable[..., ColumnStream]:
    """Return a reader of this package that is imported when it is first called."""

    def open_(path: str, **options: Any) -> Any:
        return getattr(import_module(f"{__package__}.{module}"), function)(path, **options)

    return open_


_ALL = (
    Format(
        "parquet", "Parquet", (".parquet", ".pq"), _lazy("_arrow", "iter_parquet"), magic=b"PAR1"
    ),
    Format(
        "ipc",
        "Arrow IPC (Feather)",
        (".arrow", ".feather", ".ipc"),
        _lazy("_arrow", "iter_ipc"),
        magic=b"ARROW1",
    ),
    Format("npy", ".npy", (".npy",), _lazy("_npy", "iter_npy"), magic=b"\x93NUMPY", numbered=True),
    Format(
        "bed",
        "PLINK 1 (.bed)",
        (".bed",),
        _lazy("_plink", "iter_bed"),
        options=("missing",),
        magic=b"\x6c\x1b",
        companions=(".bim", ".fam"),
        genotypes=True,
        scans=True,
    ),
    Format(
        "vcf",
        "VCF (.vcf, .vcf.gz)",
        (".vcf",),
        _lazy("_vcf", "iter_vcf"),
        options=("missing",),
        magic=b"##fileformat=VCF",
        genotypes=True,
        scans=True,
    ),
    Format(
        "h5ad",
        "AnnData (.h5ad)",
        (".h5ad",),
        _lazy("_anndata", "iter_anndata"),
        options=("layer", "raw"),
        magic=b"\x89HDF",
    ),
    Format(
        "zarr",
        "Zarr",
        (".zarr",),
        _lazy("_zarr", "iter_zarr"),
        folder=("zarr.json", ".zarray", ".zgroup"),
        numbered=True,
    ),
    Format(
        "text",
        "text (CSV, TSV, also .gz)",
        (".csv", ".tsv", ".txt", ".tab"),
        _lazy("_formats", "open_text_columns"),
        options=("orientation", "options", "on_bad"),
    ),
)
FORMATS = {one.name: one for one in _ALL}


def format_of_suffix(suffix: str) -> str | None:
    """Return the name of the format of a suffix, None if it is that of no format."""
    return next((one.name for one in FORMATS.values() if suffix in one.suffixes), None)


def format_of_bytes(start: bytes) -> str | None:
    """Return the name of the format whose files begin with these bytes, None if there is none."""
    found = (one for one in FORMATS.values() if one.magic and start.startswith(one.magic))
    return next((one.name for one in found), None)


def formats_text() -> str:
    """Return the titles of all formats, for help."""
    *others, last = [one.title for one in FORMATS.values()]
    return f"{', '.join(others)} or {last}"


def suffixes_text(*, genotypes: bool = False) -> str:
    """Return the suffixes of all formats, or of those of genotypes, for help and errors."""
    of = (one for one in FORMATS.values() if one.genotypes or not genotypes)
    return ", ".join(suffix for one in of for suffix in one.suffixes)
