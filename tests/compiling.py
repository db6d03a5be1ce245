"""Workers of pytest-xdist share what they compile: no kernel is compiled by two at a time.

Where nothing is compiled yet, each worker first compiles its share of what the learners need. The
second to need a kernel waits for the first, then loads it from the cache.
"""

import fcntl
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numba

from streamsel import registry
from streamsel._kernels import compile as compiling
from streamsel._kernels.scan import scan_dense

# A worker waits so long, in seconds; a kernel takes four.
PATIENCE = 60.0
# With fewer files, of the 200 of all kernels, most learners are not compiled.
FEW = 60


def share_kernels() -> None:
    """Let this process wait for a kernel that another is compiling."""
    cache = compiling._FaultTolerantCache
    load, save = cache.load_overload, cache.save_overload

    def load_or_reserve(self: Any, sig: Any, target_context: Any) -> Any:
        found = load(self, sig, target_context)
        if found is None:
            _release(self)
            self._reserved = _reserve(Path(self._cache_path) / f"{self._impl.filename_base}.lock")
            # Meanwhile another may have compiled it.
            found = load(self, sig, target_context)
            if found is not None:
                _release(self)
        return found

    def save_and_release(self: Any, sig: Any, data: Any) -> None:
        try:
            save(self, sig, data)
        finally:
            _release(self)

    cache.load_overload, cache.save_overload = load_or_reserve, save_and_release


def _reserve(path: Path) -> int | None:
    """Return the lock on a file; None if the wait was in vain, or there is no such folder."""
    try:
        file = os.open(path, os.O_CREAT | os.O_RDWR)
    except OSError:
        return None
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.02)
        else:
            return file
    os.close(file)
    return None


def _release(cache: Any) -> None:
    file = getattr(cache, "_reserved", None)
    cache._reserved = None
    if file is not None:
        os.close(file)


def compile_share(worker: int, n_workers: int) -> None:
    """Compile what every n-th learner needs, if most is not compiled yet."""
    path = None if numba.config.DISABLE_JIT else scan_dense._cache.cache_path
    if path is None or len([*Path(path).glob("*.nbi")]) >= FEW:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in registry.names()[worker::n_workers]:
            cls = registry.fetch(name)
            cls(**next(iter(cls._unit_test_params()))).precompile()
