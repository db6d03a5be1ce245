"""One cluster in this process, for tests that do not need separate processes."""

import pytest

from tests.distributed.clusters import quiet_client


@pytest.fixture(scope="package")
def client():
    """Return a client of two workers with one thread each, in this process."""
    with quiet_client(2, processes=False) as client:
        yield client
