"""A quiet Dask cluster on this machine, without network access."""

import logging
from contextlib import contextmanager

import distributed


def quiet_cluster(n_workers, **options):
    """Return a cluster of n_workers with one thread each."""
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        silence_logs=logging.CRITICAL,
        **options,
    )


def cluster_of_threads(n_workers):
    """Return a cluster in this process; messages to its workers still go through a socket."""
    return quiet_cluster(n_workers, processes=False, protocol="tcp://")


@contextmanager
def quiet_client(n_workers, *, processes=True):
    """Yield a client of n_workers with one thread each, and close them afterwards."""
    with (
        quiet_cluster(n_workers, processes=processes) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
