"""How much memory this process has, and errors that say there is too little."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

# What libraries in C say of a lack of memory, some of them in an error of another kind.
_FAILED = re.compile(r"bad_alloc|malloc|realloc|memory allocation failed|cannot allocate memory")
# Whatever is in a file smaller than this needs little memory: what asks for much is damage.
_SMALL = 2**20


def resident_bytes() -> int | None:
    """Return the memory the process has now, or had at most; None where nobody tells."""
    return _told_by_linux("VmRSS") or peak_bytes()


def peak_bytes() -> int | None:
    """Return the most memory the process has had; None where nobody tells."""
    # Not getrusage first: its maximum is handed down from the process that started this one.
    told = _told_by_linux("VmHWM")
    if told is not None:
        return told
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _told_by_linux(field: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field)), None)


def out_of_memory(path: str | os.PathLike[str], error: BaseException) -> MemoryError | None:
    """Return the error that names the file, if this one is a lack of memory; None otherwise.

    Parameters
    ----------
    path
        The file that was read.
    error
        What a library says.
    """
    said = " ".join(str(error).split())
    if not isinstance(error, MemoryError):
        # A URL is no file here.
        is_small = os.path.isfile(path) and Path(path).stat().st_size < _SMALL  # noqa: PTH113
        if is_small or not _FAILED.search(said.lower()):
            return None
    if said.startswith("reading "):  # worded already
        return MemoryError(said)
    because = f" ({said})" if said else ""
    return MemoryError(
        f"reading {os.fspath(path)!r} takes more memory than this process can have{because}"
    )
