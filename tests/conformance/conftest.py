"""Let the learners that no one has registered be registered while the suite runs."""

import pytest

from streamsel import registry
from tests.conformance.modes import ENTRIES


@pytest.fixture(autouse=True, scope="module")
def imagined():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "LEARNERS", ENTRIES)
        yield
