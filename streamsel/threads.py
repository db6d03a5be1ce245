"""Threads that scan parts of the columns; the result does not depend on their number."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

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


def in_threads(scan_part: Callable[[slice], None], b: int, n_jobs: int) -> None:
    """Scan columns 0 to b in n_jobs parts, one of them in the calling thread."""
    edges = np.linspace(0, b, n_jobs + 1).astype(int).tolist()
    mine, *others = map(slice, edges[:-1], edges[1:])
    futures = [_threads(n_jobs - 1).submit(scan_part, part) for part in others]
    scan_part(mine)
    for future in futures:
        future.result()
