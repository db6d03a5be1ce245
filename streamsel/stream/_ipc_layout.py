"""Layout of Arrow IPC files, validated before Arrow reads them.

The file begins and ends with a magic word. Before the final one are the footer and its length in 4
bytes. The footer has the offset of every record batch and every dictionary. Each of these consists
of metadata, with the offset of each buffer, and a body of buffers. Footer and metadata are
flatbuffers; their field numbers are those of File.fbs and Message.fbs of the Arrow format.

Arrow validates the flatbuffers themselves, but not whether buffers overlap or exceed their body.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = b"ARROW1"
_BLOCK = np.dtype([("offset", "<i8"), ("metadata", "<i4"), ("unused", "<i4"), ("body", "<i8")])
_BUFFER = np.dtype([("offset", "<i8"), ("length", "<i8")])
_NODE = np.dtype([("length", "<i8"), ("nulls", "<i8")])
# Fields of the footer and the schema, of a message and of its headers.
_SCHEMA, _DICTIONARIES, _BATCHES = 1, 2, 3
_ENDIANNESS = 0
_KIND, _HEADER, _BODY_LENGTH = 1, 2, 3
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3
_CODEC = 0
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_DATA_OF_DICTIONARY = 1
# Maximum compression ratio, that of zstd: 4 bytes can encode 128 kB.
MAX_RATIO = 2**15


class IpcLayout(NamedTuple):
    """Summary of a file with a valid layout."""

    batches: list[_Message]
    is_compressed: bool
    is_big_endian: bool


def check_layout(data: memoryview) -> IpcLayout:
    """Validate and return the layout of a file.

    Parameters
    ----------
    data
        The bytes of the whole file.

    Raises
    ------
    ValueError
        If some part exceeds its container or overlaps with another; the message names it.
    """
    if len(data) < 18 or data[:6] != _MAGIC or data[-6:] != _MAGIC:
        raise ValueError("it does not begin and end with ARROW1")
    messages = list(_messages(data))
    for message in messages:
        _check_buffers(message)
    batches = [message for message in messages if message.kind == _RECORD_BATCH]
    is_compressed = any(message.is_compressed for message in messages)
    footer, _ = _footer(data)
    return IpcLayout(batches, is_compressed, footer.table(_SCHEMA).number(_ENDIANNESS, "<h") != 0)


def check_decompressed_sizes(data: memoryview) -> None:
    """Raise ValueError if a compressed buffer declares a larger size than it can decompress to."""
    for message in _messages(data):
        for offset, length in message.buffers.tolist() if message.is_compressed else ():
            size = _integer("<q", data, message.body + offset) if length else 0
            if not -1 <= size <= length * MAX_RATIO:
                raise ValueError(f"a buffer of {length} bytes declares {size} uncompressed bytes")


class _Message(NamedTuple):
    """A record batch or a dictionary."""

    kind: int
    n_rows: int
    body: int  # offset of its buffers
    n_bytes: int
    nodes: npt.NDArray[Any]
    buffers: npt.NDArray[Any]
    is_compressed: bool
    codec: int


def _footer(data: memoryview) -> tuple[_Table, int]:
    """Return the footer, and its offset."""
    stop = len(data) - 10
    length = _integer("<i", data, stop)
    if not 0 < length <= stop - 8:
        raise ValueError("its footer is outside the file")
    start = stop - length
    return _Table.root(data[start:stop]), start


def _messages(data: memoryview) -> Iterator[_Message]:
    """Yield all messages that the footer lists."""
    footer, start = _footer(data)
    dictionaries = footer.vector(_DICTIONARIES, _BLOCK)
    batches = footer.vector(_BATCHES, _BLOCK)
    _check_blocks(dictionaries, batches, start)
    for block in dictionaries:
        yield _message(data, block, _DICTIONARY_BATCH)
    for block in batches:
        yield _message(data, block, _RECORD_BATCH)


def _check_blocks(dictionaries: npt.NDArray[Any], batches: npt.NDArray[Any], stop: int) -> None:
    """Check that messages are before the footer, in order, and do not overlap."""
    blocks = np.concatenate([dictionaries, batches])
    offset, metadata, body = blocks["offset"], blocks["metadata"].astype(np.int64), blocks["body"]
    # Checked separately, as the sum of too large numbers may overflow.
    inside = (offset >= 8) & (offset <= stop) & (metadata > 0) & (body >= 0) & (body <= stop)
    if not (inside.all() and (offset + metadata + body <= stop).all()):
        raise ValueError("a record batch is outside the file")
    order = np.argsort(offset, kind="stable")
    ends = (offset + metadata + body)[order]
    in_order = (np.diff(batches["offset"]) > 0).all()
    if not (in_order and (ends[:-1] <= offset[order][1:]).all()):
        raise ValueError("record batches overlap")
    if (offset % 8).any() or (metadata % 8).any():
        raise ValueError("a record batch is not aligned to 8 bytes")


def _message(data: memoryview, block: np.void, kind: int) -> _Message:
    """Parse the message of a block of the footer."""
    offset, metadata, body = (int(block[name]) for name in ("offset", "metadata", "body"))
    whole = data[offset : offset + metadata]
    # Since Arrow 0.15 a marker precedes the length.
    prefix = 8 if _integer("<i", whole, 0) == -1 else 4
    length = _integer("<i", whole, prefix - 4)
    if not 0 < length <= metadata - prefix:
        raise ValueError("the metadata of a record batch exceed their declared size")
    message = _Table.root(whole[prefix : prefix + length])
    if message.number(_KIND, "<B") != kind or message.number(_BODY_LENGTH, "<q") != body:
        raise ValueError("a record batch does not match the footer")
    batch = message.table(_HEADER)
    if kind == _DICTIONARY_BATCH:
        batch = batch.table(_DATA_OF_DICTIONARY)
    is_compressed = batch.field(_COMPRESSION) > 0
    return _Message(
        kind,
        batch.number(_LENGTH, "<q"),
        offset + metadata,
        body,
        batch.vector(_NODES, _NODE),
        batch.vector(_BUFFERS, _BUFFER),
        is_compressed,
        batch.table(_COMPRESSION).number(_CODEC, "<b") if is_compressed else 0,
    )


def _check_buffers(message: _Message) -> None:
    """Check that buffers are inside the body of their message, in order, and do not overlap."""
    if (message.buffers["length"] < 0).any():
        raise ValueError("a buffer has a negative length")
    filled = message.buffers[message.buffers["length"] > 0]
    offset, length = filled["offset"], filled["length"]
    # Checked separately, as the sum of too large numbers may overflow.
    inside = (offset >= 0) & (offset <= message.n_bytes) & (length <= message.n_bytes)
    if not (inside.all() and (offset + length <= message.n_bytes).all()):
        raise ValueError("a buffer is outside its record batch")
    if (offset[1:] < (offset + length)[:-1]).any():
        raise ValueError("buffers overlap")
    if (offset % 8).any():
        raise ValueError("a buffer is not aligned to 8 bytes")


class _Table:
    """A table of a flatbuffer; reads are checked against the limits of the flatbuffer."""

    def __init__(self, data: memoryview, offset: int) -> None:
        self._data = data
        self._offset = offset
        self._fields = offset - _integer("<i", data, offset)
        self._size = _integer("<H", data, self._fields)

    @classmethod
    def root(cls, data: memoryview) -> _Table:
        """Return the root table of a flatbuffer."""
        return cls(data, _integer("<I", data, 0))

    def field(self, index: int) -> int:
        """Return the offset of a field, 0 if it is absent."""
        entry = 4 + 2 * index
        if entry + 2 > self._size:
            return 0
        offset = _integer("<H", self._data, self._fields + entry)
        return self._offset + offset if offset else 0

    def number(self, index: int, code: str) -> int:
        """Return the number of a field, 0 if it is absent."""
        offset = self.field(index)
        return _integer(code, self._data, offset) if offset else 0

    def table(self, index: int) -> _Table:
        """Return the table that a field refers to."""
        offset = self.field(index)
        if not offset:
            raise ValueError("its metadata lack a field")
        return _Table(self._data, offset + _integer("<I", self._data, offset))

    def vector(self, index: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return the vector of structures of a field, empty if it is absent."""
        offset = self.field(index)
        if not offset:
            return np.empty(0, dtype)
        offset += _integer("<I", self._data, offset)
        n = _integer("<I", self._data, offset)
        if offset + 4 + n * dtype.itemsize > len(self._data):
            raise ValueError("its metadata refer to bytes outside of them")
        return np.frombuffer(self._data, dtype, count=n, offset=offset + 4)


def _integer(code: str, data: memoryview, offset: int) -> int:
    # struct would read from the end at a negative offset.
    if offset < 0 or offset + struct.calcsize(code) > len(data):
        raise ValueError("its metadata refer to bytes outside of them")
    value: int = struct.unpack_from(code, data, offset)[0]
    return value
