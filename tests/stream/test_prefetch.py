"""`prefetch` yields the blocks and errors of its iterator in order, and leaves no thread behind."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from streamsel.data.chunks import Block
from streamsel.stream import _blocks
from streamsel.stream._blocks import prefetch


@pytest.fixture(autouse=True, params=[1, 2])
def cores(request, monkeypatch):
    """Run with one core and with two, on any machine."""
    monkeypatch.setattr(_blocks, "_n_cores", lambda: request.param)
    return request.param


@pytest.fixture(autouse=True)
def no_thread_is_left():
    """Check that all threads have ended."""
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def _numbered_blocks(n, *, error=None, read=None):
    for j in range(n):
        if read is not None:
            read.append(j)
        yield Block([j], np.full((3, 1), float(j)))
    if error is not None:
        raise error


def test_all_blocks_in_their_order():
    assert [block.names for block in prefetch(_numbered_blocks(5))] == [[j] for j in range(5)]


def test_no_block():
    assert list(prefetch(_numbered_blocks(0))) == []


@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
def test_an_error_follows_the_blocks_before_it(error):
    blocks = prefetch(_numbered_blocks(2, error=error))
    assert [next(blocks).names, next(blocks).names] == [[0], [1]]
    with pytest.raises(type(error)) as caught:
        next(blocks)
    assert caught.value is error


def test_only_one_block_is_prefetched(cores):
    read = []
    blocks = prefetch(_numbered_blocks(9, read=read))
    next(blocks)
    next(blocks)
    blocks.close()
    assert read == list(range(1 + cores))


def test_discarded_iterators_end_their_thread():
    blocks = prefetch(_numbered_blocks(9))
    next(blocks)
    del blocks


def test_thrown_errors_end_the_thread():
    blocks = prefetch(_numbered_blocks(9))
    next(blocks)
    with pytest.raises(KeyboardInterrupt):
        blocks.throw(KeyboardInterrupt)


def test_open_iterators_do_not_block_exit(cores):
    code = f"""
import numpy as np
from streamsel.data.chunks import Block
from streamsel.stream import _blocks
_blocks._n_cores = lambda: {cores}
blocks = _blocks.prefetch(Block([j], np.ones((3, 1))) for j in range(9))
next(blocks)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_process_does_not_wait_for_its_parents_thread(cores):
    code = """
import os, signal, sys
import numpy as np
from streamsel.data.chunks import Block
from streamsel.stream import _blocks
_blocks._n_cores = lambda: int(sys.argv[1])
blocks = _blocks.prefetch(iter([Block([j], np.zeros((3, 1))) for j in range(4)]))
next(blocks)
if child := os.fork():
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), len(list(blocks)))
else:
    signal.alarm(20)
    try:
        os._exit(len(list(blocks)))
    except RuntimeError as error:
        os._exit(7 if "forked" in str(error) else 8)
"""
    command = [sys.executable, "-W", "ignore", "-c", code, str(cores)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["3" if cores == 1 else "7", "3"]
