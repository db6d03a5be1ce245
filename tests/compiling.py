"""Share compilation between workers of pytest-xdist: no kernel is compiled by two at a time.

If the cache is empty, each worker first compiles its share of the kernels of the learners. The
second worker that needs a kernel waits for the first, then loads it from the cache.
"""

import fcntl
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba

from streamsel import registry
from streamsel._kernels import compile as compiling
from streamsel._kernels.scan import scan_dense

# Longest wait of a worker, in seconds; a kernel takes four.
PATIENCE = 60.0
# With fewer files (all kernels have 200), most learners are not compiled.
FEW = 60


def share_kernels() -> None:
    """Make this process wait for a kernel that another process is compiling."""
    cache = compiling._FaultTolerantCache
    load, save = cache.load_overload, cache.save_overload

    def load_or_reserve(self: Any, sig: Any, target_context: Any) -> Any:
        found = load(self, sig, target_context)
        if found is None:
            _release(self)
            _reserve(self, Path(self._cache_path) / f"{self._impl.filename_base}.lock")
            # Another process may have compiled it meanwhile.
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


class _BusyError(BaseException):
    """Another worker is compiling the kernel. Numba propagates this, but wraps an `Exception`."""


# The open lock of each kernel that this process compiles, and its longest wait for others.
_reserved: dict[Any, int] = {}
_patience = PATIENCE


def _reserve(cache: Any, path: Path) -> None:
    """Lock a file; continue without a lock after the longest wait, or if the folder is absent."""
    try:
        file = os.open(path, os.O_CREAT | os.O_RDWR)
    except OSError:
        return
    until = time.monotonic() + _patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= until:
                break
            time.sleep(0.02)
        else:
            _reserved[cache] = file
            return
    os.close(file)
    if not _patience:
        raise _BusyError


def _release(cache: Any) -> None:
    file = _reserved.pop(cache, None)
    if file is not None:
        os.close(file)


def compile_share() -> None:
    """Compile the kernels of learners and series, each by the first worker that claims it.

    A worker postpones kernels that another worker is compiling.
    """
    global _patience  # noqa: PLW0603 (of this process)
    path = None if numba.config.DISABLE_JIT else scan_dense._cache.cache_path
    if path is None or len([*Path(path).glob("*.nbi")]) >= FEW:
        return
    todo = deque(_whatever_compiles())
    while todo:
        name, run = todo.popleft()
        claim = Path(path) / f"{name}.claim"
        try:
            claim.touch(exist_ok=False)
        except FileExistsError:
            continue
        _patience = 0.0 if todo else PATIENCE
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run()
        except _BusyError:
            for cache in [*_reserved]:
                _release(cache)
            claim.unlink()
            todo.append((name, run))
        finally:
            _patience = PATIENCE


def _whatever_compiles() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield names and functions that compile most of the kernels, the slowest first."""
    yield "series", _learn_series
    for name in registry.names():
        cls = registry.fetch(name)
        yield name, cls(**next(iter(cls._unit_test_params()))).precompile


def _learn_series() -> None:
    import pandas as pd

    from streamsel.stream import iter_series_features

    frame = pd.DataFrame(
        {"id": [0] * 20, "time": range(20), "x": [float(i % 7) for i in range(20)]}
    )
    for _ in iter_series_features(frame, id="id", time="time"):
        pass
