"""Fingerprints of columns, to detect later changes without reading all of them."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.stream._blocks import part_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from streamsel.data.chunks import Block
    from streamsel.stream._stream import ColumnStream

# Maximum number of evenly spaced columns with a checksum of their values; the minimum is half.
MAX_SAMPLES = 64
# Maximum number of evenly spaced values of a column in its checksum.
MAX_VALUES = 65_536
_DIGITS = 8  # hexadecimal digits of the checksum of a column's values


class Fingerprint:
    """Fingerprint of the columns read so far: their number, ordered names, and sampled values.

    It does not depend on the partition into blocks. Memory is constant, and the number of columns
    whose values are read grows with the logarithm of their number.

    Attributes
    ----------
    n_columns
        Number of columns included.
    last
        Name of the last of them; None before the first.

    Notes
    -----
    A change in the names, order or number of columns is always detected. Values are compared in 32
    to 64 columns, and there in up to 65,536 rows: a different row order, a different dtype and
    regenerated data are detected, but a single changed value in one of many columns usually is not.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel.stream import iter_array
    >>> X = np.arange(12.0).reshape(3, 4)
    >>> before, after = Fingerprint(), Fingerprint()
    >>> before.add_first_columns(iter_array(X), 4)
    >>> after.add_first_columns(iter_array(X[::-1]), 4)
    >>> after.differences(before.as_metadata())
    ['column 0 has other values, and so have 3 more of the 4 that were looked at']
    """

    def __init__(self) -> None:
        self.n_columns = 0
        self.last: Hashable = None
        self._names = blake2b(digest_size=16)
        # Checksums and names of the columns 0, step, 2 step, ...
        self._step = 1
        self._samples: list[str] = []
        self._sample_names: list[Hashable] = []

    def add_first_columns(self, stream: ColumnStream, n: int) -> None:
        """Add the first n columns of a stream with known names, reading only a few of them.

        If the stream has fewer columns, all are added.
        """
        names = (stream.names or ())[:n]
        self._names.update(_bytes_of(names))
        self.n_columns, self.last = len(names), names[-1] if len(names) else None
        while -(-len(names) // self._step) >= MAX_SAMPLES:
            self._step *= 2
        self._sample_names = list(names[:: self._step])
        columns = stream.take(self._sample_names)
        self._samples = [_checksum(values) for values in columns.values()]

    def add(self, block: Block, first: int) -> None:
        """Add the columns of a block that begins at index `first`, without those already added."""
        start = self.n_columns
        if first + len(block.names) <= start:
            return
        if first < start:
            block = part_of(block, start - first, len(block.names))
        self._names.update(_bytes_of(block.names))
        self.n_columns, self.last = start + len(block.names), block.names[-1]
        while (index := len(self._samples) * self._step) < self.n_columns:
            self._samples.append(_checksum(block.values[:, index - start]))
            self._sample_names.append(block.names[index - start])
            if len(self._samples) == MAX_SAMPLES:
                self._samples, self._sample_names = self._samples[::2], self._sample_names[::2]
                self._step *= 2

    def as_metadata(self) -> dict[str, Any]:
        """Return the fingerprint as JSON-compatible values, for a later comparison."""
        return {
            "columns": self.n_columns,
            "names": self._names.hexdigest(),
            "values": "".join(self._samples),
        }

    def differences(self, known: Mapping[str, Any]) -> list[str]:
        """Describe the differences from a stored fingerprint; return an empty list without any."""
        if self.n_columns != known["columns"]:
            return [f"it has {self.n_columns:,} columns of the {known['columns']:,} that were read"]
        changes = []
        if self._names.hexdigest() != known["names"]:
            changes.append("the names or the order of the columns that were read have changed")
        before = known["values"]
        samples = [before[i : i + _DIGITS] for i in range(0, len(before), _DIGITS)]
        pairs = zip(self._sample_names, self._samples, samples, strict=True)
        if others := [name for name, found, sample in pairs if found != sample]:
            text = f"column {others[0]} has other values"
            if more := len(others) - 1:
                text += f", and so have {more} more of the {len(samples)} that were looked at"
            changes.append(text)
        return changes


def _checksum(values: Any) -> str:
    return digest(values, max_values=MAX_VALUES)[:_DIGITS]


def digest(values: Any, max_values: int | None = None) -> str:
    """Return a checksum of the dtype, shape and values of an array.

    Parameters
    ----------
    values
        Numbers, or objects with a distinct repr.
    max_values
        Maximum number of values to include, evenly spaced; all by default.
    """
    array = np.asarray(values)
    checksum = blake2b(f"{array.dtype.str} {array.shape}".encode(), digest_size=16)
    if max_values is not None and array.size > max_values:
        array = array.ravel()[:: -(-array.size // max_values)]
    if array.dtype.kind == "O":
        checksum.update("\0".join(map(repr, array.ravel().tolist())).encode("utf-8", "replace"))
    else:
        if array.dtype.kind == "f":
            # All bit patterns of NaN are equivalent.
            array = np.where(np.isnan(array), np.nan, array).astype(array.dtype, copy=False)
        checksum.update(np.ascontiguousarray(array).tobytes())
    return checksum.hexdigest()


def _bytes_of(names: Sequence[Hashable]) -> bytes:
    """Return the names as bytes, each with its end marked."""
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
