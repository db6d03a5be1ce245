"""Submission of waves of parts, enough to keep all workers busy, with results in order."""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections import deque
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from streamsel.distributed._errors import explained
from streamsel.distributed._tree import Leaf, Tree, Wave, batches

if TYPE_CHECKING:
    from distributed import Client

# Fewest submitted parts per worker thread.
_MIN_PARTS_PER_THREAD = 2
# Seconds between checks for an interrupt, and until a warning if there are no workers.
_WAIT_SECONDS, _WARN_AFTER_SECONDS = 0.5, 60.0


def results(client: Client, tree: Tree, leaves: Sequence[Leaf], size: int) -> Generator[Any]:
    """Yield the result of every wave, in order.

    Parameters
    ----------
    client
        The client of the tree.
    tree
        The tasks that merge a wave into one result.
    leaves
        All parts to read.
    size
        Leaves per wave; the result depends on it, so it must follow from the arguments alone.

    Raises
    ------
    PartError
        If a part cannot be learnt.
    ConnectionError
        If the scheduler is gone.

    Notes
    -----
    A wave is released when its result has arrived. When the loop ends, by an interrupt too, all
    pending waves are released and their tasks cancelled.
    """
    pending: deque[Wave] = deque()
    remaining = iter(batches(leaves, size))
    address = address_of(client)
    try:
        while True:
            while (
                len(pending) < _max_pending(client, size)
                and (wave := next(remaining, None)) is not None
            ):
                pending.append(tree.grow(wave))
            if not pending:
                return
            found = _awaited(client, pending[0].root)
            pending.popleft().root.release()
            yield found
    except Exception as error:
        parts = {key: part for pending_wave in pending for key, part in pending_wave.parts.items()}
        explained_error = explained(error, parts, address)
        if explained_error is error:
            raise
        raise explained_error from error
    finally:
        for pending_wave in pending:
            pending_wave.root.release()
        tree.fell()


def _awaited(client: Client, future: Any) -> Any:
    """Wait for a result; warn if there are no workers."""
    ended, check_at = threading.Event(), time.monotonic() + _WARN_AFTER_SECONDS
    future.add_done_callback(lambda _: ended.set())
    # In short waits, since an interrupt of another thread is noticed only between them.
    while not ended.wait(_WAIT_SECONDS):
        if time.monotonic() > check_at:
            check_at = math.inf
            if not client.nthreads():
                warnings.warn(
                    f"No worker has come to the scheduler at {address_of(client)} yet; waiting.",
                    UserWarning,
                    stacklevel=2,
                )
    return future.result()


def address_of(client: Client) -> str:
    """Return the address of a client's scheduler."""
    scheduler = client.scheduler
    return "an unknown address" if scheduler is None else str(scheduler.address)


def _max_pending(client: Client, size: int) -> int:
    """Return the maximal number of pending waves: at least one while another is being finished."""
    threads = sum(client.nthreads().values())
    return 1 + max(1, math.ceil(_MIN_PARTS_PER_THREAD * int(threads) / size))
