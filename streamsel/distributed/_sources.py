"""Division of a source of columns into parts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from streamsel.distributed._collections import array_leaves, is_array
from streamsel.distributed._tree import Leaf
from streamsel.stream import ColumnStream


def leaves_of(source: Any, parts: int | None, names: Sequence[Hashable] | None) -> list[Leaf]:
    """Return the parts of a source of columns, in order.

    Raises
    ------
    TypeError, ValueError
        For a source without parts, and for an array that is chunked along its rows.
    """
    if is_array(source):
        _expect(parts is None, "parts=None, since the chunks of a dask array are its parts", parts)
        return array_leaves(source, names)
    _expect(names is None, "names=None, since names are for dask arrays", names)
    if isinstance(source, ColumnStream):
        return [Leaf(part) for part in source.split(parts)]
    if isinstance(source, list | tuple) and all(map(_is_part, source)):
        _expect(parts is None, "parts=None, since the source is a list of parts", parts)
        return [Leaf(part) for part in source]
    raise TypeError(
        "Expected a ColumnStream, a list of its parts, a dask array or a dask frame. Got: "
        f"{type(source).__name__}.\n"
        "Hint: learn_columns is faster for an array in memory; iter_npy and iter_parquet read "
        "files in parts."
    )


def _is_part(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("open", "key", "n_bytes"))


def _expect(condition: bool, expected: str, got: Any) -> None:
    if not condition:
        raise ValueError(f"Expected {expected}. Got: {got!r}.")
