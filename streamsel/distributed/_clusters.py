"""Who does the work: a cluster that is there, or one on this machine for the while."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from streamsel.distributed._dask import distributed
from streamsel.distributed._errors import unreachable

if TYPE_CHECKING:
    from distributed import Client

# What is left of one, a health check, takes any port, and only this machine sees it.
_NO_DASHBOARD = {"dashboard_address": "127.0.0.1:0"}


@contextmanager
def connected(client: Any, n_workers: int | None = None) -> Iterator[Client]:
    """Give a client: the one given, one of a scheduler's address, or one of a local cluster.

    Parameters
    ----------
    client
        A `distributed.Client`, an address, or None.
    n_workers
        Of a local cluster; None for one a core.

    Raises
    ------
    ConnectionError
        Where no scheduler answers.
    TypeError
        For anything else, and a client that is to be awaited.
    """
    Client = distributed().Client
    if isinstance(client, Client):
        if client.asynchronous:
            raise TypeError(
                "Expected a client that waits for results. Got: an asynchronous one.\n"
                "Hint: Client(address) is another of the same scheduler."
            )
        if client.status != "running":
            raise unreachable("the client's address", ConnectionError("a client that is closed"))
        yield client
        return
    if client is not None and not isinstance(client, str):
        raise TypeError(
            "Expected a dask.distributed Client, the address of a scheduler, or None. Got: "
            f"{type(client).__name__}."
        )
    with ExitStack() as stack:
        # What an engine logs of a worker that went is no news: errors are raised.
        stack.enter_context(_quiet())
        where = stack.enter_context(_local(n_workers)) if client is None else client
        if client is not None:
            _expect_answer(client)
        mine = Client(where, set_as_default=False)
        stack.callback(_close, mine)
        yield mine


@contextmanager
def _local(n_workers: int | None) -> Iterator[Any]:
    """Start a cluster on this machine: processes of one thread each, without a dashboard."""
    import dask

    with tempfile.TemporaryDirectory(prefix="streamsel-", ignore_cleanup_errors=True) as directory:
        settings = {
            "temporary-directory": directory,
            # A worker holds the part that it reads and no other: a death is laid to that.
            "distributed.scheduler.worker-saturation": 1.0,
            # A worker that takes its time to start again is not given up.
            "distributed.deploy.lost-worker-timeout": "1 day",
        }
        with dask.config.set(settings), _started(n_workers) as cluster:
            yield cluster


def _started(n_workers: int | None) -> Any:
    try:
        return distributed().LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            scheduler_kwargs=_NO_DASHBOARD,
            silence_logs=logging.CRITICAL,
        )
    except RuntimeError as error:
        raise RuntimeError(
            f"Expected workers to start on this machine. Got: {error}\n"
            'Hint: a script that starts processes does so under `if __name__ == "__main__":`.'
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back what the engine logs, as what goes wrong is raised."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _expect_answer(address: str) -> None:
    """Raise where nothing at an address speaks as a scheduler does: a client would wait for ever.

    In a thread, for a notebook has a loop of events already.
    """
    import dask
    from dask.utils import parse_timedelta
    from distributed import Security
    from distributed.comm import connect

    patience = parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))

    async def ask() -> None:
        further = Security().get_connection_args("client")
        async with asyncio.timeout(patience + 1.0):
            comm = await connect(address, timeout=patience, **further)
        await comm.close()

    try:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(asyncio.run, ask()).result()
    except Exception as error:
        raise unreachable(address, error) from error


def _close(client: Client) -> None:
    # A scheduler that is gone is not waited for.
    client.close(timeout=2)
