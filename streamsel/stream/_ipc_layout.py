"""Where the parts of an Arrow IPC file lie, checked before anything is read by it.

The file begins and ends with a magic word. Before the last are the length of the footer, in 4
bytes, and the footer, which tells where every record batch and every dictionary lies: metadata,
which tell where each buffer lies, and a body of buffers. Footer and metadata are flatbuffers; the
numbers of their fields are those of File.fbs and Message.fbs of the Arrow format.

Arrow looks at the inside of the flatbuffers. What lies in two places, or beyond its body, it reads.
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
# Fields of the footer, of a message and of its headers.
_DICTIONARIES, _BATCHES = 2, 3
_KIND, _HEADER, _BODY_LENGTH = 1, 2, 3
_BUFFERS, _COMPRESSION = 2, 3
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_DATA_OF_DICTIONARY = 1
# Of zstd, which unfolds most: 4 bytes can stand for 128 kB.
_MAX_UNFOLDED = 2**15


class IpcLayout(NamedTuple):
    """What is worth knowing of a file whose parts lie where they should."""

    n_batches: int
    is_compressed: bool


def check_layout(data: memoryview) -> IpcLayout:
    """Return the layout of a file.

    Parameters
    ----------
    data
        The whole file.

    Raises
    ------
    ValueError
        If some part lies outside of what holds it, or over another; it says which.
    """
    if len(data) < 18 or data[:6] != _MAGIC or data[-6:] != _MAGIC:
        raise ValueError("it does not begin and end with ARROW1")
    messages = list(_messages(data))
    for message in messages:
        _check_buffers(message)
    n_batches = sum(message.kind == _RECORD_BATCH for message in messages)
    return IpcLayout(n_batches, any(message.is_compressed for message in messages))


def check_claims(data: memoryview) -> None:
    """Raise ValueError if a compressed buffer claims to hold more than its bytes can unfold to."""
    for message in _messages(data):
        for offset, length in message.buffers.tolist() if message.is_compressed else ():
            claim = _integer("<q", data, message.body + offset) if length else 0
            if not -1 <= claim <= length * _MAX_UNFOLDED:
                raise ValueError(f"a buffer of {length} bytes claims to hold {claim}")


class _Message(NamedTuple):
    """A record batch or a dictionary."""

    kind: int
    body: int  # where its buffers begin
    n_bytes: int
    buffers: npt.NDArray[Any]
    is_compressed: bool


def _messages(data: memoryview) -> Iterator[_Message]:
    """Yield all messages that the footer knows of."""
    stop = len(data) - 10
    length = _integer("<i", data, stop)
    if not 0 < length <= stop - 8:
        raise ValueError("its footer lies outside of it")
    start = stop - length
    footer = _Table.root(data[start:stop])
    dictionaries = footer.vector(_DICTIONARIES, _BLOCK)
    batches = footer.vector(_BATCHES, _BLOCK)
    _check_blocks(dictionaries, batches, start)
    for block in dictionaries:
        yield _message(data, block, _DICTIONARY_BATCH)
    for block in batches:
        yield _message(data, block, _RECORD_BATCH)


def _check_blocks(dictionaries: npt.NDArray[Any], batches: npt.NDArray[Any], stop: int) -> None:
    """Check that messages lie before the footer, in order, and none over another."""
    blocks = np.concatenate([dictionaries, batches])
    offset, metadata, body = blocks["offset"], blocks["metadata"].astype(np.int64), blocks["body"]
    # One by one: the sum of numbers that are too large may look small.
    inside = (offset >= 8) & (offset <= stop) & (metadata > 0) & (body >= 0) & (body <= stop)
    if not (inside.all() and (offset + metadata + body <= stop).all()):
        raise ValueError("a record batch lies outside of it")
    order = np.argsort(offset, kind="stable")
    ends = (offset + metadata + body)[order]
    in_order = (np.diff(batches["offset"]) > 0).all()
    if not (in_order and (ends[:-1] <= offset[order][1:]).all()):
        raise ValueError("record batches lie over one another")
    if (offset % 8).any() or (metadata % 8).any():
        raise ValueError("a record batch begins at no multiple of 8 bytes")


def _message(data: memoryview, block: np.void, kind: int) -> _Message:
    """Return the message at a place."""
    offset, metadata, body = (int(block[name]) for name in ("offset", "metadata", "body"))
    whole = data[offset : offset + metadata]
    # Since Arrow 0.15 a marker stands before the length.
    prefix = 8 if _integer("<i", whole, 0) == -1 else 4
    length = _integer("<i", whole, prefix - 4)
    if not 0 < length <= metadata - prefix:
        raise ValueError("the metadata of a record batch lie outside of their place")
    message = _Table.root(whole[prefix : prefix + length])
    if message.number(_KIND, "<B") != kind or message.number(_BODY_LENGTH, "<q") != body:
        raise ValueError("a record batch is not what the footer says")
    batch = message.table(_HEADER)
    if kind == _DICTIONARY_BATCH:
        batch = batch.table(_DATA_OF_DICTIONARY)
    buffers = batch.vector(_BUFFERS, _BUFFER)
    return _Message(kind, offset + metadata, body, buffers, batch.field(_COMPRESSION) > 0)


def _check_buffers(message: _Message) -> None:
    """Check that buffers lie in the body of their message, one after the other."""
    if (message.buffers["length"] < 0).any():
        raise ValueError("a buffer has a negative length")
    filled = message.buffers[message.buffers["length"] > 0]
    offset, length = filled["offset"], filled["length"]
    # One by one: the sum of numbers that are too large may look small.
    inside = (offset >= 0) & (offset <= message.n_bytes) & (length <= message.n_bytes)
    if not (inside.all() and (offset + length <= message.n_bytes).all()):
        raise ValueError("a buffer lies outside of its record batch")
    if (offset[1:] < (offset + length)[:-1]).any():
        raise ValueError("buffers lie over one another")
    if (offset % 8).any():
        raise ValueError("a buffer begins at no multiple of 8 bytes")


class _Table:
    """A table of a flatbuffer, of which nothing is read from outside of the flatbuffer."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self._at = at
        self._fields = at - _integer("<i", data, at)
        self._size = _integer("<H", data, self._fields)

    @classmethod
    def root(cls, data: memoryview) -> _Table:
        """Return the table that a flatbuffer begins with."""
        return cls(data, _integer("<I", data, 0))

    def field(self, index: int) -> int:
        """Return where a field lies, 0 if it is absent."""
        entry = 4 + 2 * index
        if entry + 2 > self._size:
            return 0
        offset = _integer("<H", self._data, self._fields + entry)
        return self._at + offset if offset else 0

    def number(self, index: int, code: str) -> int:
        """Return a number, 0 if it is absent."""
        at = self.field(index)
        return _integer(code, self._data, at) if at else 0

    def table(self, index: int) -> _Table:
        """Return the table that a field leads to."""
        at = self.field(index)
        if not at:
            raise ValueError("its metadata lack a part")
        return _Table(self._data, at + _integer("<I", self._data, at))

    def vector(self, index: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return a vector of structures, empty if it is absent."""
        at = self.field(index)
        if not at:
            return np.empty(0, dtype)
        at += _integer("<I", self._data, at)
        n = _integer("<I", self._data, at)
        if at + 4 + n * dtype.itemsize > len(self._data):
            raise ValueError("its metadata lead out of themselves")
        return np.frombuffer(self._data, dtype, count=n, offset=at + 4)


def _integer(code: str, data: memoryview, at: int) -> int:
    # Of a negative position struct would read from the end.
    if at < 0 or at + struct.calcsize(code) > len(data):
        raise ValueError("its metadata lead out of themselves")
    value: int = struct.unpack_from(code, data, at)[0]
    return value
