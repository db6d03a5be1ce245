"""Register the unregistered test learners of `imagined` while the suite runs."""

import pytest

from streamsel import registry
from tests.conformance.modes import ENTRIES


@pytest.fixture(autouse=True, scope="module")
def imagined():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "LEARNERS", ENTRIES)
        yield
