"""Figures of pyplot are drawn without a screen and closed; modules are compiled once."""

import os
import sys
from collections.abc import Iterator

import pytest

os.environ.setdefault("MPLBACKEND", "agg")

# Each of the many processes that the tests start would compile every module again, and each run
# would rewrite the assertions of every test file. Kernels are kept in the same folders anyway.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
