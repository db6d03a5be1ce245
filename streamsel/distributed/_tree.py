"""A tree of tasks over parts that follow one another: fixed in shape and order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from streamsel.distributed._tasks import same

if TYPE_CHECKING:
    from distributed import Client, Future

Item = TypeVar("Item")


class Leaf(NamedTuple):
    """A part, and what its task is handed beside it.

    Parameters
    ----------
    part
        What is to be read: it has a `key`, and `str` says what it is.
    args
        Small values.
    block
        What the task reads from where the part cannot open it itself: a `Delayed` of Dask.
    """

    part: Any
    args: tuple[int, ...] = ()
    block: Any = None


class Wave(NamedTuple):
    """A tree in flight.

    Parameters
    ----------
    root
        What comes of it.
    parts
        What each of its leaves reads, by key.
    """

    root: Future
    parts: dict[Any, Any]


class Tree:
    """Tasks that make one result of parts.

    Parameters
    ----------
    client
        Whose scheduler has the work done.
    leaf, merge
        Called on workers with `shared` and a leaf, or a list of results in their order.
    shared
        Bytes that all tasks are handed: they are sent with one task, on which the others depend, so
        that any worker may go and they are made again.
    fan_in
        How many results are put together at once.
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
        from streamsel import __version__

        # By what it makes, a result is known wherever it was made.
        self._name = "streamsel-" + _digest(__version__, leaf.__name__, shared)[:32]
        self._client, self._leaf, self._merge = client, leaf, merge
        self._fan_in, self._retries = fan_in, retries
        self._shared = self._submit(f"{self._name}-shared", same, shared)

    def grow(self, leaves: Sequence[Leaf]) -> Wave:
        """Submit the tasks of some leaves: results are put together until there is one."""
        keys = {}
        # Each group's merge right behind its leaves, before those of the next: what comes first
        # goes first, and few results wait.
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

    def fell(self) -> None:
        """Let go what all tasks share, once nothing more is asked for."""
        self._shared.release()

    def _grow_leaf(self, key: tuple[Any, ...], leaf: Leaf) -> Future:
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
    """Return the items in their order, so many at a time."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def _digest(*what: str | bytes) -> str:
    found = hashlib.sha256()
    for one in what:
        data = one.encode() if isinstance(one, str) else one
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()
