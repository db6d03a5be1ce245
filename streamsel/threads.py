"""Threads that read columns: a part each, and the result does not depend on how many they are."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

# More threads than any machine has cores for; the result does not depend on them.
_MOST = 256


def effective_jobs(n_jobs: int) -> int:
    """Return the number of threads that n_jobs asks for: itself, or all but -1 - n_jobs cores."""
    return min(n_jobs, _MOST) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


@functools.cache
def _threads(workers: int) -> ThreadPoolExecutor:
    """Return threads that are kept: to start them takes as long as to read a few MB."""
    return ThreadPoolExecutor(workers, thread_name_prefix="streamsel")


if hasattr(os, "register_at_fork"):
    # A forked process has none of its parent's threads.
    os.register_at_fork(after_in_child=_threads.cache_clear)


def in_threads(scan_part: Callable[[slice], None], b: int, n_jobs: int) -> None:
    """Scan columns 0 to b in as many parts as there are jobs, one of them in this thread."""
    edges = np.linspace(0, b, n_jobs + 1).astype(int).tolist()
    mine, *others = map(slice, edges[:-1], edges[1:])
    waiting = [_threads(n_jobs - 1).submit(scan_part, part) for part in others]
    scan_part(mine)
    for part in waiting:
        part.result()
