"""Memory-mapped Arrow IPC files."""

from __future__ import annotations

import mmap
import os
from functools import partial
from pathlib import Path
from typing import Any

from streamsel._utils.optional import arrow_errors, damaged_file_error, import_pyarrow
from streamsel.stream._blocks import BLOCK_BYTES
from streamsel.stream._ipc_layout import check_decompressed_sizes, check_layout
from streamsel.stream._ipc_numbers import number_columns
from streamsel.stream._remote import local_file

# A compressed IPC file is opened again for each group of columns, which takes time in proportion
# to the width of its schema: groups are larger than blocks.
_IPC_GROUP_BYTES = 4 * BLOCK_BYTES
# Cap on the columns times record batches: Arrow allocates hundreds of bytes for each.
_MAX_ARRAYS = 2**18


class IpcFile:
    """A memory-mapped Arrow IPC file.

    Parameters
    ----------
    path
        The file, or its URL.

    Attributes
    ----------
    numbers
        The columns, if all are numbers that need no Arrow; else None.
    group_width
        Number of columns to read together, if `numbers` is None.
    is_viewed
        Whether columns are read without decoding.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._pa = import_pyarrow()
        self.error_context = partial(arrow_errors, "Arrow IPC", path)
        self._local = local_file(path)
        with Path(self._local.path).open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise damaged_file_error("Arrow IPC", path, "it is empty")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._buffer = self._pa.py_buffer(self._map)
        with self.error_context():
            data = memoryview(self._map)
            layout = check_layout(data)
            reader = self._open()
            self.schema = reader.schema
            self.names: list[str] = self.schema.names
            p = len(self.names)
            self.numbers = number_columns(data, layout, self.schema)
            few_arrays = p * len(layout.batches) <= _MAX_ARRAYS
            self.is_viewed = not layout.is_compressed and (few_arrays or self.numbers is not None)
            # Arrow reads an uncompressed file as views, but copies if fields are selected.
            is_table = self.is_viewed and self.numbers is None
            self._whole = reader.read_all() if is_table else None
            self.n_rows = 0
            if p:
                numbers = self.numbers
                self.n_rows = self.table([0]).num_rows if numbers is None else numbers.n_rows
        width = max(1, _IPC_GROUP_BYTES // max(1, self.n_rows * 8))
        self.group_width = max(1, p) if self.is_viewed else width

    def table(self, fields: list[int]) -> Any:
        """Return a table of the fields at these ascending indices."""
        if self._whole is not None:
            return self._whole.select(fields)
        try:
            return self._open(included_fields=fields, use_threads=False).read_all()
        except MemoryError:
            check_decompressed_sizes(memoryview(self._map))
            raise

    def release_pages(self) -> None:
        """Release the pages read so far from resident memory."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
        self._pa.default_memory_pool().release_unused()

    def _open(self, **options: Any) -> Any:
        ipc = self._pa.ipc
        # A BufferReader, as Arrow would copy everything that it reads from a Python file.
        source = self._pa.BufferReader(self._buffer)
        return ipc.open_file(source, options=ipc.IpcReadOptions(**options))
