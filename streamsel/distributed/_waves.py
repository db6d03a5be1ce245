"""Waves of parts in flight, as many as keep all workers busy; their results in order."""

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

# How many parts are in flight for every thread that could read one, at least.
_PER_THREAD = 2
# Seconds to wait at once, and before asking whether anybody works.
_AT_ONCE, _PATIENCE = 0.5, 60.0


def results(client: Client, tree: Tree, leaves: Sequence[Leaf], size: int) -> Generator[Any]:
    """Yield the result of every wave, in order.

    Parameters
    ----------
    client
        Of the tree.
    tree
        What makes one result of a wave.
    leaves
        All there is to read.
    size
        Leaves of a wave: it follows from nothing but what was asked for, and so does the result.

    Raises
    ------
    PartError
        Where a part cannot be learnt.
    ConnectionError
        Where the scheduler is gone.

    Notes
    -----
    A wave is let go as soon as its result is here. Whatever ends the loop, an interrupt too, lets
    go all that are in flight: their tasks are cancelled.
    """
    flying: deque[Wave] = deque()
    rest = iter(batches(leaves, size))
    address = address_of(client)
    try:
        while True:
            while len(flying) < _most(client, size) and (wave := next(rest, None)) is not None:
                flying.append(tree.grow(wave))
            if not flying:
                return
            found = _awaited(client, flying[0].root)
            flying.popleft().root.release()
            yield found
    except Exception as error:
        parts = {key: part for one in flying for key, part in one.parts.items()}
        why = explained(error, parts, address)
        if why is error:
            raise
        raise why from error
    finally:
        for left in flying:
            left.root.release()
        tree.fell()


def _awaited(client: Client, future: Any) -> Any:
    """Wait for a result; say so if there is nobody who could work at it."""
    ended, ask_at = threading.Event(), time.monotonic() + _PATIENCE
    future.add_done_callback(lambda _: ended.set())
    # Not for ever at once: an interrupt may reach another thread, and is noticed in between.
    while not ended.wait(_AT_ONCE):
        if time.monotonic() > ask_at:
            ask_at = math.inf
            if not client.nthreads():
                warnings.warn(
                    f"No worker has come to the scheduler at {address_of(client)} yet; waiting.",
                    UserWarning,
                    stacklevel=2,
                )
    return future.result()


def address_of(client: Client) -> str:
    """Return where the scheduler of a client is."""
    scheduler = client.scheduler
    return "an unknown place" if scheduler is None else str(scheduler.address)


def _most(client: Client, size: int) -> int:
    """Return how many waves may be in flight: the next one at least while one is being ended."""
    threads = sum(client.nthreads().values())
    return 1 + max(1, math.ceil(_PER_THREAD * int(threads) / size))
