"""The cache of compiled loops: used if possible; a missing or damaged one costs only time."""

import errno
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching

import streamsel
from streamsel._kernels import compile as compilation
from streamsel._kernels import relevance
from streamsel._kernels.compile import kernel

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
WARNING = "Compiled loops cannot be kept.*NUMBA_CACHE_DIR"


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compilation, "_has_warned", False)


def used():
    """Return a loop as a new process creates it, after one call."""
    loop = kernel()(relevance.next_above_threshold.py_func)
    indices = np.zeros(3, np.intp)
    assert loop(np.array([0.0, 2.0, 0.5, 3.0]), 0, 1.0, indices) == (2, 4)
    assert indices[:2].tolist() == [1, 3]
    return loop


def was_compiled(loop):
    return not loop.stats.cache_hits


def test_compiled_loops_are_loaded_from_the_cache(tmp_path):
    assert was_compiled(used())
    assert {path.suffix for path in tmp_path.rglob("*.nb*")} == {".nbi", ".nbc"}
    assert not was_compiled(used())


def flipped(content):
    return content[:-100] + bytes([content[-100] ^ 1]) + content[-99:]


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "nonsense": lambda content: b"\x80\x05garbage." + content,
    "a bit": flipped,
}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_cache_files_are_rewritten(tmp_path, suffix):
    used()
    (path,) = tmp_path.rglob(f"*.{suffix}")
    for how, damage in DAMAGES.items():
        path.write_bytes(damage(path.read_bytes()))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert was_compiled(used()) or (suffix, how) == ("nbi", "a bit"), how
            assert not was_compiled(used()), how


@pytest.mark.slow
def test_cache_files_of_other_versions_are_rewritten(monkeypatch):
    with monkeypatch.context() as other:
        other.setattr(numba, "__version__", "0.0")
        used()
    assert was_compiled(used())
    assert not was_compiled(used())


@pytest.mark.slow
def test_read_only_cache_is_used(monkeypatch):
    used()

    def refuse(_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(caching._CacheLocator, "ensure_cache_path", refuse)
    assert not was_compiled(used())
    loop = kernel()(relevance.next_above_threshold.py_func)
    with pytest.warns(RuntimeWarning, match=WARNING):
        loop(np.zeros(2, np.float32), 0, 1.0, np.zeros(1, np.intp))


@pytest.mark.slow
def test_a_full_disk_is_reported_once(monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "_open_for_write", refuse)
    with pytest.warns(RuntimeWarning, match=WARNING):
        used()
    assert was_compiled(used())


WORK = """
import numpy as np, streamsel
model = streamsel.SelectKBest(k=1)
model.learn_one({"a": 1.0}, 1.0)
model.learn_one({"a": 2.0}, 2.0)
print(model.n_rows)
"""


@pytest.mark.slow
def test_loops_work_without_a_writable_folder(tmp_path):
    """Loops work without any writable folder, as in a read-only container without a home."""
    package = tmp_path / "site" / "streamsel"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(streamsel.__file__).parent, package, ignore=ignore)
    # Not even root can create a directory in place of a file.
    (package / "_kernels" / "__pycache__").touch()
    nowhere = dict.fromkeys(("HOME", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"), "/dev/null/nowhere")
    done = subprocess.run(
        [sys.executable, "-B", "-c", WORK],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(package.parent)} | nowhere,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2\n"
    assert done.stderr.count("cannot be kept") == 1
