"""Integers that a float64 does not hold exactly, such as identifiers, read as they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.stream._arrays import open_npy
from streamsel.stream._arrow import ParquetFile
from streamsel.stream._csv import cells_of
from streamsel.stream._formats import delimiter_of, file_format
from streamsel.stream._ipc import IpcFile
from streamsel.stream._pyarrow import pyarrow

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy.typing as npt

    from streamsel.stream._read_options import ReadOptions

# From here on not every integer is a float64.
LARGE = 2.0**53
_INTEGER = re.compile(r"[+-]?[0-9]+")


def may_be_inexact(values: Any) -> bool:
    """Return whether floats may be integers that have lost their last digits."""
    if getattr(values, "ndim", 0) != 1 or values.dtype.kind != "f":
        return False
    finite = values[np.isfinite(values)]
    large = np.abs(finite).max(initial=0.0) >= LARGE
    return bool(large and (finite == np.floor(finite)).all())


def integers_of(cells: Sequence[Any]) -> npt.NDArray[Any] | None:
    """Return the integers in cells, None for a missing one; None if some are something else.

    Parameters
    ----------
    cells
        Texts, integers, or None where one is missing.
    """
    texts = [None if cell is None else str(cell).strip() for cell in cells]
    if not all(text is None or _INTEGER.fullmatch(text) for text in texts):
        return None
    found = [None if text is None else int(text) for text in texts]
    known = [number for number in found if number is not None]
    fits = len(known) == len(found) and max(map(abs, known), default=0) < 2**63
    return np.array(found, dtype=np.int64 if fits else object)


def exact_column(
    path: str, name: Hashable, orientation: str, options: ReadOptions
) -> npt.NDArray[Any] | None:
    """Read a column of integers of a file as they are.

    Returns
    -------
    None where the file does not have the column, or keeps it as floats, or as something else.
    """
    kind = file_format(path)
    if kind == "text" and orientation == "samples":
        marked = options._replace(delimiter=delimiter_of(path, options.delimiter))
        cells = cells_of(path, marked, name)
        return None if cells is None else integers_of(cells)
    if kind == "npy":
        array = open_npy(path)
        is_there = isinstance(name, int) and array.ndim == 2 and name < array.shape[1]
        return np.array(array[:, name]) if is_there and array.dtype.kind in "iu" else None
    if kind in ("parquet", "ipc"):
        file = ParquetFile(path) if kind == "parquet" else IpcFile(path)
        if name not in file.names:
            return None
        with file.reading():
            column = file.table([file.names.index(str(name))]).column(0)
            is_integer = pyarrow().types.is_integer(column.type)
            return integers_of(column.to_pylist()) if is_integer else None
    return None
