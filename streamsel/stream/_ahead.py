"""Reading ahead: the next block is read while this one is learnt."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamsel.columns import Block


def read_ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks of a file in their order, each read while the one before is in use.

    Parameters
    ----------
    blocks
        Run in a thread of its own: it must call nothing of the user's, and most of its time belong
        to code that does without Python's lock.

    Notes
    -----
    One block more is in memory. An error follows the blocks before it. The thread ends with the
    iterator, when it is exhausted, closed or forgotten; nothing waits for a reader that stays away.
    Where the process has one core, or cannot start a thread, there is none.
    """
    if _n_cores() == 1:
        yield from blocks
        return
    with ThreadPoolExecutor(1, thread_name_prefix="streamsel-read") as thread:
        process = os.getpid()
        try:
            following = thread.submit(next, blocks, None)
        except RuntimeError:
            # There is no room for a thread's stack: what fits without one is read without.
            yield from blocks
            return
        while (block := following.result()) is not None:
            following = thread.submit(next, blocks, None)
            yield block
            if os.getpid() != process:
                # A forked process has none of its parent's threads: it would wait for ever.
                raise RuntimeError(
                    "Expected a stream that is read where its reading began. Got: one that goes on "
                    "in a forked process.\nHint: begin a new iteration there."
                )


def _n_cores() -> int:
    """Return on how many cores this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
