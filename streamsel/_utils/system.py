"""Memory use of this process, errors for a lack of memory, and threads."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

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


# Upper bound of the number of threads; the result does not depend on it.
_MAX_THREADS = 256


def effective_jobs(n_jobs: int) -> int:
    """Return the number of threads: n_jobs if positive, else cores + 1 + n_jobs (-1: all)."""
    return min(n_jobs, _MAX_THREADS) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


@functools.cache
def _threads(workers: int) -> ThreadPoolExecutor:
    """Return a cached pool: starting threads takes as long as reading a few MB."""
    return ThreadPoolExecutor(workers, thread_name_prefix="streamsel")


if hasattr(os, "register_at_fork"):
    # A forked process does not inherit its parent's threads.
    os.register_at_fork(after_in_child=_threads.cache_clear)


def run_in_threads(scan_part: Callable[[slice], None], b: int, n_jobs: int) -> None:
    """Scan columns 0 to b in n_jobs parts, one of them in the calling thread."""
    edges = np.linspace(0, b, n_jobs + 1).astype(int).tolist()
    mine, *others = map(slice, edges[:-1], edges[1:])
    futures = [_threads(n_jobs - 1).submit(scan_part, part) for part in others]
    scan_part(mine)
    for future in futures:
        future.result()
