"""A cluster on this machine that listens to nobody else and says nothing."""

import logging
from contextlib import contextmanager

import distributed


@contextmanager
def quiet_client(n_workers, *, processes=True):
    """Give a client of so many workers of one thread each, and end them."""
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=processes,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
