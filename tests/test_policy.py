"""The message at the first compilation of loops: when it is shown, and when not."""

import os
import subprocess
import sys

import pytest


def _stderr(cache, *, seen, times=1, before=""):
    code = f"""
import sys
sys.stderr.isatty = lambda: {seen}
import numpy as np
from streamsel._kernels import compile
from streamsel._kernels.scan import variation
{before}
for start in range({times}):
    variation(1.0, 0.0, start)
    variation(1, 0.0, start)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow
def test_the_first_compilation_is_announced_once(cache):
    message = "streamsel: compiling, once on this machine; it takes some seconds.\n"
    assert _stderr(cache, seen=True, times=2) == message
    # Kernels from the cache are not compiled.
    assert _stderr(cache, seen=True) == ""


@pytest.mark.slow
def test_the_message_can_be_silenced(tmp_path):
    assert _stderr(tmp_path, seen=True, before="compile.silence_compile_message()") == ""


@pytest.mark.slow
def test_only_terminals_show_the_message(tmp_path):
    assert _stderr(tmp_path, seen=False) == ""
