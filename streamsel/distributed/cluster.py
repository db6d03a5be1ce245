"""Connections to a Dask cluster: an existing one, or a temporary local one."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from streamsel.distributed._errors import scheduler_unreachable_error

if TYPE_CHECKING:
    from distributed import Client


def import_distributed() -> Any:
    """Return dask.distributed; if it is absent, the ImportError shows how to install it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            'Distributed learning needs Dask. Hint: pip install "streamsel[dask]".'
        ) from error
    return distributed


# The health check that remains listens on any free port of this machine only.
_NO_DASHBOARD = {"dashboard_address": "127.0.0.1:0"}


@contextmanager
def connect(client: Any, n_workers: int | None = None) -> Iterator[Client]:
    """Yield a client: the given one, one for a scheduler's address, or one of a local cluster.

    Parameters
    ----------
    client
        A `distributed.Client`, an address, or None.
    n_workers
        The size of a local cluster; None for one worker per core.

    Raises
    ------
    ConnectionError
        If no scheduler answers.
    TypeError
        For any other value, and for an asynchronous client.
    """
    Client = import_distributed().Client
    if isinstance(client, Client):
        if client.asynchronous:
            raise TypeError(
                "Expected a synchronous client. Got: an asynchronous one.\n"
                "Hint: Client(address) connects another one to the same scheduler."
            )
        if client.status != "running":
            raise scheduler_unreachable_error(
                "the client's address", ConnectionError("a closed client")
            )
        yield client
        return
    if client is not None and not isinstance(client, str):
        raise TypeError(
            "Expected a dask.distributed Client, the address of a scheduler, or None. Got: "
            f"{type(client).__name__}."
        )
    with ExitStack() as stack:
        # Dask also logs lost workers; errors are raised.
        stack.enter_context(_quiet())
        address = stack.enter_context(_local(n_workers)) if client is None else client
        if client is not None:
            _expect_answer(client)
        own_client = Client(address, set_as_default=False)
        stack.callback(_close, own_client)
        yield own_client


@contextmanager
def _local(n_workers: int | None) -> Iterator[Any]:
    """Start a cluster on this machine: single-threaded processes, without a dashboard."""
    import dask

    with tempfile.TemporaryDirectory(prefix="streamsel-", ignore_cleanup_errors=True) as directory:
        settings = {
            "temporary-directory": directory,
            # A worker has one part at a time, so that its death is attributed to that part.
            "distributed.scheduler.worker-saturation": 1.0,
            # A worker that restarts slowly is not given up.
            "distributed.deploy.lost-worker-timeout": "1 day",
            # Dask lets workers return freed memory to the system at once. Reading text then has a
            # hundred times as many page faults, and takes 1.7 times the processor time.
            "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
            # Samples for a dashboard, a hundred per second; there is none.
            "distributed.worker.profile.enabled": False,
        }
        with dask.config.set(settings), _started(n_workers) as cluster:
            yield cluster


def _started(n_workers: int | None) -> Any:
    try:
        return import_distributed().LocalCluster(
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
            'Hint: a script must start processes under `if __name__ == "__main__":`.'
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress Dask's log, since errors are raised."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _expect_answer(address: str) -> None:
    """Raise ConnectionError if no scheduler answers at an address: a client would wait for ever.

    It runs in a thread, since a notebook has a running event loop.
    """
    import dask
    from dask.utils import parse_timedelta
    from distributed import Security
    from distributed.comm import connect

    timeout = parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))

    async def connect_once() -> None:
        arguments = Security().get_connection_args("client")
        async with asyncio.timeout(timeout + 1.0):
            comm = await connect(address, timeout=timeout, **arguments)
        await comm.close()

    try:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(asyncio.run, connect_once()).result()
    except Exception as error:
        raise scheduler_unreachable_error(address, error) from error


def _close(client: Client) -> None:
    # Do not wait for a scheduler that is gone.
    client.close(timeout=2)
