"""Arrow IPC (Feather) files, mapped into memory and read a group of columns at a time."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Any

from streamsel.stream._blocks import BLOCK_BYTES
from streamsel.stream._pyarrow import not_a_file, pyarrow

# A compressed IPC file is opened anew for each group of columns, which takes time in proportion to
# the width of its schema: groups are larger than blocks.
_IPC_GROUP_BYTES = 4 * BLOCK_BYTES
# Arrow describes each column of each record batch by an object of some hundred bytes: so many at
# most.
_MAX_ARRAYS = 2**18


class IpcFile:
    """An Arrow IPC file, mapped into memory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._pa = pyarrow()
        with Path(path).open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise not_a_file("Arrow IPC", path, "it is empty")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._buffer = self._pa.py_buffer(self._map)
        try:
            reader = self._open()
            self.schema = reader.schema
            p = len(self.schema)
            # Arrow views what is not compressed where it lies, but copies it when asked for a part.
            self.is_viewed = (
                p * reader.num_record_batches <= _MAX_ARRAYS and not self._is_compressed()
            )
            self._whole = reader.read_all() if self.is_viewed else None
            self.n_rows = self.table([0]).num_rows if p else 0
        except self._pa.ArrowInvalid as error:
            raise not_a_file("Arrow IPC", path, error) from error
        width = max(1, _IPC_GROUP_BYTES // max(1, self.n_rows * 8))
        self.group_width = max(1, p) if self.is_viewed else width

    def table(self, fields: list[int]) -> Any:
        """Return the table of some columns, given by ascending position."""
        if self._whole is not None:
            return self._whole.select(fields)
        return self._open(included_fields=fields, use_threads=False).read_all()

    def let_go(self) -> None:
        """Take the pages read so far out of resident memory."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
        self._pa.default_memory_pool().release_unused()

    def _open(self, **options: Any) -> Any:
        ipc = self._pa.ipc
        # Through a BufferReader: Arrow would copy all that it reads of a Python file.
        source = self._pa.BufferReader(self._buffer)
        return ipc.open_file(source, options=ipc.IpcReadOptions(**options))

    def _is_compressed(self) -> bool:
        """Tell whether the first record batch is compressed, which pyarrow does not tell.

        The file ends with a footer (a flatbuffer), its length in 4 bytes and a magic word of 6. The
        numbers of the fields are those of File.fbs and Message.fbs of the Arrow format.
        """
        data = self._map
        length_at = len(data) - 10
        footer = length_at - _integer("<i", data, length_at)
        batches = _flatbuffer_field(data, _follow(data, footer), 3)
        if not batches or _integer("<I", data, _follow(data, batches)) == 0:
            return False
        message = _integer("<q", data, _follow(data, batches) + 4)
        # Since Arrow 0.15 a marker stands before the length of the message.
        message += 8 if _integer("<i", data, message) == -1 else 4
        batch = _follow(data, _flatbuffer_field(data, _follow(data, message), 2))
        return _flatbuffer_field(data, batch, 3) > 0


def _integer(code: str, data: mmap.mmap, position: int) -> int:
    value: int = struct.unpack_from(code, data, position)[0]
    return value


def _follow(data: mmap.mmap, position: int) -> int:
    """Return where an offset of a flatbuffer leads."""
    return position + _integer("<I", data, position)


def _flatbuffer_field(data: mmap.mmap, table: int, index: int) -> int:
    """Return where a field of a flatbuffer table lies, 0 if it is absent."""
    vtable = table - _integer("<i", data, table)
    entry = 4 + 2 * index
    offset = _integer("<H", data, vtable + entry) if entry < _integer("<H", data, vtable) else 0
    return table + offset if offset else 0
