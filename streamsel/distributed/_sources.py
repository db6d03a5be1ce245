"""What parts a source of columns has, whatever it is."""

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
        For what has no parts, and for an array that is cut across its rows.
    """
    if is_array(source):
        _expect(parts is None, "parts=None: the chunks of a dask array are its parts", parts)
        return array_leaves(source, names)
    _expect(names is None, "names=None: names are for dask arrays", names)
    if isinstance(source, ColumnStream):
        return [Leaf(part) for part in source.split(parts)]
    if isinstance(source, list | tuple) and all(map(_is_part, source)):
        _expect(parts is None, "parts=None: a list of parts is cut already", parts)
        return [Leaf(part) for part in source]
    raise TypeError(
        "Expected a ColumnStream, a list of its parts, a dask array or a dask frame. Got: "
        f"{type(source).__name__}.\n"
        "Hint: an array in memory is learnt faster where it is, by learn_columns; iter_npy and "
        "iter_parquet read files in parts."
    )


def _is_part(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("open", "key", "n_bytes"))


def _expect(kept: bool, expected: str, got: Any) -> None:
    if not kept:
        raise ValueError(f"Expected {expected}. Got: {got!r}.")
