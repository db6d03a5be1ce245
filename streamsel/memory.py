"""Memory use of this process, and the error for a lack of memory."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

# Messages of C libraries for a lack of memory, some raised as another type of error.
_ALLOCATION_FAILED = re.compile(
    r"bad_alloc|malloc|realloc|memory allocation failed|cannot allocate memory"
)
# A file smaller than this needs little memory: a failed allocation means that it is damaged.
_SMALL_FILE_BYTES = 2**20


def resident_bytes() -> int | None:
    """Return the resident memory of the process, or else its peak; None if neither is reported."""
    return _read_proc_status("VmRSS") or peak_bytes()


def peak_bytes() -> int | None:
    """Return the peak memory of the process; None if the system does not report it."""
    # Preferred to getrusage, whose maximum is inherited from the parent process.
    peak_linux = _read_proc_status("VmHWM")
    if peak_linux is not None:
        return peak_linux
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _read_proc_status(field: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field)), None)


def out_of_memory(path: str | os.PathLike[str], error: BaseException) -> MemoryError | None:
    """Return the MemoryError that names the file if `error` is a lack of memory; None otherwise.

    Parameters
    ----------
    path
        The file that was read.
    error
        The error that a library raised.
    """
    text = " ".join(str(error).split())
    if not isinstance(error, MemoryError):
        # A URL is not a file here.
        is_small = os.path.isfile(path) and Path(path).stat().st_size < _SMALL_FILE_BYTES  # noqa: PTH113
        if is_small or not _ALLOCATION_FAILED.search(text.lower()):
            return None
    if text.startswith("reading "):  # it names the file already
        return MemoryError(text)
    because = f" ({text})" if text else ""
    return MemoryError(
        f"reading {os.fspath(path)!r} takes more memory than this process can have{because}"
    )
