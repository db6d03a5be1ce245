"""What is remembered of columns, to know them again later without reading all of them."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.stream._blocks import part_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from streamsel.columns import Block
    from streamsel.stream._base import ColumnStream

# Columns whose values are remembered: at even distances, and half as many at least.
MAX_SAMPLES = 64
# Values of a column that are looked at: all of them, or as many at even distances.
MAX_VALUES = 65_536
_DIGITS = 8  # hexadecimal ones, of what is remembered of a column's values


class Fingerprint:
    """Of the columns of a stream so far: how many, their names in order, values of some of them.

    It does not depend on how the columns are cut into blocks. Memory is constant, and the columns
    that are looked at grow with the logarithm of their number.

    Attributes
    ----------
    n_columns
        How many columns it is of.
    last
        Name of the last of them; None before the first.

    Notes
    -----
    Another name, order or number of columns is found with certainty. Of values those of 32 to 64
    columns are compared, all of them in up to 65,536 rows: rows that were put in another order,
    another dtype and data made anew are found, but a value that was changed in one column of many
    is most likely not.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel.stream import iter_array
    >>> X = np.arange(12.0).reshape(3, 4)
    >>> before, after = Fingerprint(), Fingerprint()
    >>> before.look_at(iter_array(X), 4)
    >>> after.look_at(iter_array(X[::-1]), 4)
    >>> after.differences(before.as_notes())
    ['column 0 has other values, and so have 3 more of the 4 that were looked at']
    """

    def __init__(self) -> None:
        self.n_columns = 0
        self.last: Hashable = None
        self._names = blake2b(digest_size=16)
        # What is remembered of the columns 0, step, 2 step, ..., and what these are called.
        self._step = 1
        self._samples: list[str] = []
        self._called: list[Hashable] = []

    def look_at(self, stream: ColumnStream, n: int) -> None:
        """Take note of the first n columns of a stream that knows its names; few of them are read.

        If it has fewer, all are taken note of.
        """
        names = (stream.names or ())[:n]
        self._names.update(_bytes_of(names))
        self.n_columns, self.last = len(names), names[-1] if len(names) else None
        while -(-len(names) // self._step) >= MAX_SAMPLES:
            self._step *= 2
        self._called = list(names[:: self._step])
        columns = stream.take(self._called)
        self._samples = [_of_values(values) for values in columns.values()]

    def add(self, block: Block, at: int) -> None:
        """Take note of columns that begin at this place, and of none for a second time."""
        start = self.n_columns
        if at + len(block.names) <= start:
            return
        if at < start:
            block = part_of(block, start - at, len(block.names))
        self._names.update(_bytes_of(block.names))
        self.n_columns, self.last = start + len(block.names), block.names[-1]
        while (place := len(self._samples) * self._step) < self.n_columns:
            self._samples.append(_of_values(block.values[:, place - start]))
            self._called.append(block.names[place - start])
            if len(self._samples) == MAX_SAMPLES:
                self._samples, self._called = self._samples[::2], self._called[::2]
                self._step *= 2

    def as_notes(self) -> dict[str, Any]:
        """Return it as plain values, to be compared later."""
        return {
            "columns": self.n_columns,
            "names": self._names.hexdigest(),
            "values": "".join(self._samples),
        }

    def differences(self, known: Mapping[str, Any]) -> list[str]:
        """Say what is not as it was when these notes were made; nothing, if all is."""
        if self.n_columns != known["columns"]:
            return [f"it has {self.n_columns:,} columns of the {known['columns']:,} that were read"]
        told = []
        if self._names.hexdigest() != known["names"]:
            told.append("names of columns that were read, or their order, are others")
        before = known["values"]
        samples = [before[i : i + _DIGITS] for i in range(0, len(before), _DIGITS)]
        pairs = zip(self._called, self._samples, samples, strict=True)
        if others := [name for name, found, sample in pairs if found != sample]:
            text = f"column {others[0]} has other values"
            if more := len(others) - 1:
                text += f", and so have {more} more of the {len(samples)} that were looked at"
            told.append(text)
        return told


def _of_values(values: Any) -> str:
    return digest(values, most=MAX_VALUES)[:_DIGITS]


def digest(values: Any, most: int | None = None) -> str:
    """Return a checksum of an array, by its dtype, its shape and its values.

    Parameters
    ----------
    values
        Numbers, or objects with a repr that tells them apart.
    most
        If there are more values than this, as many of them at even distances are looked at.
    """
    array = np.asarray(values)
    known = blake2b(f"{array.dtype.str} {array.shape}".encode(), digest_size=16)
    if most is not None and array.size > most:
        array = array.ravel()[:: -(-array.size // most)]
    if array.dtype.kind == "O":
        known.update("\0".join(map(repr, array.ravel().tolist())).encode("utf-8", "replace"))
    else:
        if array.dtype.kind == "f":
            # Other bits of a NaN are no other value.
            array = np.where(np.isnan(array), np.nan, array).astype(array.dtype, copy=False)
        known.update(np.ascontiguousarray(array).tobytes())
    return known.hexdigest()


def _bytes_of(names: Sequence[Hashable]) -> bytes:
    """Return the names, each as bytes that tell where it ends."""
    if isinstance(names, range):  # as _bytes_of_one has numbers
        return np.arange(names.start, names.stop, names.step, dtype="<i8").tobytes()
    try:
        return "\0".join([*names, ""]).encode("utf-8", "surrogatepass")  # type: ignore[list-item]
    except TypeError:
        return b"".join(map(_bytes_of_one, names))


def _bytes_of_one(name: Hashable) -> bytes:
    if type(name) is int:
        return name.to_bytes(8 * (1 + name.bit_length() // 64), "little", signed=True)
    text = name if isinstance(name, str) else repr(name)
    return text.encode("utf-8", "surrogatepass") + b"\0"
