"""A tree of tasks over consecutive parts, of fixed shape and order, and its results in waves."""

from __future__ import annotations

import hashlib
import math
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from streamsel.distributed._errors import explain_error
from streamsel.distributed._tasks import shared_value

if TYPE_CHECKING:
    from distributed import Client, Future

Item = TypeVar("Item")


class TreeLeaf(NamedTuple):
    """A part, with further arguments of its task.

    Parameters
    ----------
    part
        The part to read: it has a `key`, and `str` describes it.
    args
        Small values.
    block
        A `Delayed` of Dask with the data, for a part that cannot open its source itself.
    """

    part: Any
    args: tuple[int, ...] = ()
    block: Any = None


class Wave(NamedTuple):
    """A submitted tree.

    Parameters
    ----------
    root
        The future of its result.
    parts
        The parts that its leaves read, by key.
    """

    root: Future
    parts: dict[Any, Any]


class Tree:
    """Tasks that merge the results of parts into one.

    Parameters
    ----------
    client
        The client whose scheduler runs the tasks.
    leaf, merge
        Called on workers with `shared` and a leaf, or a list of results in their order.
    shared
        Bytes that all tasks receive. They are sent with one task, on which the others depend, so
        that it is run again if its worker dies.
    fan_in
        How many results are merged at once.
    retries
        How often a task that raises is run again.
    """

    def __init__(
        self,
        client: Client,
        leaf: Callable[..., Any],
        merge: Callable[..., Any],
        shared: bytes,
        *,
        fan_in: int,
        retries: int,
    ) -> None:
        from streamsel._version import __version__

        # Keys depend only on the inputs, so that a result is found wherever it was computed.
        self._name = "streamsel-" + _digest(__version__, leaf.__name__, shared)[:32]
        self._client, self._leaf, self._merge = client, leaf, merge
        self._fan_in, self._retries = fan_in, retries
        self._shared = self._submit(f"{self._name}-shared", shared_value, shared)

    def submit(self, leaves: Sequence[TreeLeaf]) -> Wave:
        """Submit the tasks of some leaves and of their merges, up to one result."""
        keys = {}
        # Each group's merge is submitted right after its leaves: Dask runs tasks in this order, so
        # that few results are in memory.
        groups: list[tuple[str, Future]] = []
        for group in batches(leaves, self._fan_in):
            level = []
            for leaf in group:
                key = (self._name, leaf.part.key, *leaf.args)
                keys[key] = leaf.part
                level.append((repr(key), self._grow_leaf(key, leaf)))
            groups.append(self._joined(level))
        while len(groups) > 1:
            groups = [self._joined(list(group)) for group in batches(groups, self._fan_in)]
        return Wave(groups[0][1], keys)

    def release(self) -> None:
        """Release the shared bytes; call it when no more tasks will be submitted."""
        self._shared.release()

    def _grow_leaf(self, key: tuple[Any, ...], leaf: TreeLeaf) -> Future:
        part, args, block = leaf
        if block is None:
            return self._submit(key, self._leaf, self._shared, part, *args)
        values = self._client.compute(block, retries=self._retries)
        return self._submit(key, self._leaf, self._shared, part, *args, values)

    def _joined(self, found: list[tuple[str, Future]]) -> tuple[str, Future]:
        if len(found) == 1:
            return found[0]
        key = f"{self._name}-merge", _digest(*(name for name, _ in found))[:32]
        futures = [future for _, future in found]
        return repr(key), self._submit(key, self._merge, self._shared, futures)

    def _submit(self, key: Any, task: Callable[..., Any], *args: Any) -> Future:
        return self._client.submit(task, *args, key=key, retries=self._retries)


def batches(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Return the items in their order, `size` at a time."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def _digest(*values: str | bytes) -> str:
    digest = hashlib.sha256()
    for value in values:
        data = value.encode() if isinstance(value, str) else value
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


# Fewest submitted parts per worker thread.
_MIN_PARTS_PER_THREAD = 2
# Seconds between checks for an interrupt, and until a warning if there are no workers.
_WAIT_SECONDS, _WARN_AFTER_SECONDS = 0.5, 60.0


def results(client: Client, tree: Tree, leaves: Sequence[TreeLeaf], size: int) -> Generator[Any]:
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
                pending.append(tree.submit(wave))
            if not pending:
                return
            found = _awaited(client, pending[0].root)
            pending.popleft().root.release()
            yield found
    except Exception as error:
        parts = {key: part for pending_wave in pending for key, part in pending_wave.parts.items()}
        explained_error = explain_error(error, parts, address)
        if explained_error is error:
            raise
        raise explained_error from error
    finally:
        for pending_wave in pending:
            pending_wave.root.release()
        tree.release()


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
