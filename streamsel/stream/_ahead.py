"""Prefetching: the next block is read while the current one is processed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamsel.columns import Block


def read_ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks of a file in order, each read in a thread while the previous one is in use.

    Parameters
    ----------
    blocks
        Iterated over in a separate thread: it must not call user code, and should spend most of
        its time in code that releases Python's global lock.

    Notes
    -----
    One additional block is in memory. An error is raised after the blocks before it. The thread
    ends when the iterator is exhausted, closed or garbage-collected; it never blocks on a consumer
    that has stopped. If the process has one core, or cannot start a thread, blocks are read without
    one.
    """
    if _n_cores() == 1:
        yield from blocks
        return
    with ThreadPoolExecutor(1, thread_name_prefix="streamsel-read") as thread:
        process = os.getpid()
        try:
            following = thread.submit(next, blocks, None)
        except RuntimeError:
            # Memory may suffice without the stack of a thread.
            yield from blocks
            return
        while (block := following.result()) is not None:
            following = thread.submit(next, blocks, None)
            yield block
            if os.getpid() != process:
                # A forked process lacks its parent's threads: it would wait forever.
                raise RuntimeError(
                    "Expected an iteration that continues in the process that began it. Got: one "
                    "that continues in a forked process.\nHint: begin a new iteration there."
                )


def _n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
