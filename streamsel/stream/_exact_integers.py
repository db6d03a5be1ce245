"""Exact reading of integers that float64 cannot represent, such as identifiers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.optional import import_pyarrow
from streamsel.stream._arrow import ParquetFile
from streamsel.stream._csv import read_raw_cells
from streamsel.stream._formats import delimiter_of, file_format
from streamsel.stream._ipc import IpcFile
from streamsel.stream._npy import open_npy

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy.typing as npt

    from streamsel.stream._numerals import ReadOptions

# Above this, float64 does not represent every integer.
EXACT_INTEGER_LIMIT = 2.0**53
_INTEGER = re.compile(r"[+-]?[0-9]+")


def may_be_rounded_integers(values: Any) -> bool:
    """Return whether the values are floats that may be rounded integers."""
    if getattr(values, "ndim", 0) != 1 or values.dtype.kind != "f":
        return False
    finite = values[np.isfinite(values)]
    large = np.abs(finite).max(initial=0.0) >= EXACT_INTEGER_LIMIT
    return bool(large and (finite == np.floor(finite)).all())


def parse_integers(cells: Sequence[Any]) -> npt.NDArray[Any] | None:
    """Convert cells to integers, None for a missing one; return None if any is not an integer.

    Parameters
    ----------
    cells
        Texts, integers, or None for a missing value.
    """
    texts = [None if cell is None else str(cell).strip() for cell in cells]
    if not all(text is None or _INTEGER.fullmatch(text) for text in texts):
        return None
    found = [None if text is None else int(text) for text in texts]
    known = [number for number in found if number is not None]
    fits = len(known) == len(found) and max(map(abs, known), default=0) < 2**63
    return np.array(found, dtype=np.int64 if fits else object)


def read_exact_integers(
    path: str, name: Hashable, orientation: str, options: ReadOptions
) -> npt.NDArray[Any] | None:
    """Read an integer column of a file exactly.

    Returns
    -------
    The integers; None if the file lacks the column or does not store it as integers.
    """
    kind = file_format(path)
    if kind == "text" and orientation == "samples":
        options = options._replace(delimiter=delimiter_of(path, options.delimiter))
        cells = read_raw_cells(path, options, name)
        return None if cells is None else parse_integers(cells)
    if kind == "npy":
        array = open_npy(path)
        has_column = isinstance(name, int) and array.ndim == 2 and name < array.shape[1]
        return np.array(array[:, name]) if has_column and array.dtype.kind in "iu" else None
    if kind in ("parquet", "ipc"):
        file = ParquetFile(path) if kind == "parquet" else IpcFile(path)
        if name not in file.names:
            return None
        with file.error_context():
            column = file.table([file.names.index(str(name))]).column(0)
            is_integer = import_pyarrow().types.is_integer(column.type)
            return parse_integers(column.to_pylist()) if is_integer else None
    return None
