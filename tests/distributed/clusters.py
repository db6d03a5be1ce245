"""A quiet Dask cluster on this machine, without network access."""

import logging
from contextlib import contextmanager

import distributed


def quiet_cluster(n_workers, **options):
    """Return a cluster of so many workers of one thread each."""
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        silence_logs=logging.CRITICAL,
        **options,
    )


def cluster_of_threads(n_workers):
    """Return a cluster in this process; what its workers are told still goes through a socket."""
    return quiet_cluster(n_workers, processes=False, protocol="tcp://")


@contextmanager
def quiet_client(n_workers, *, processes=True):
    """Give a client of so many workers of one thread each, and end them."""
    with (
        quiet_cluster(n_workers, processes=processes) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
