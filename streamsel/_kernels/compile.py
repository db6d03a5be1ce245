"""Compilation of kernels, with a disk cache that is optional and fault-tolerant.

Errors that numba raises if no directory is writable, or a cached file is damaged, are handled here:
the kernel is then compiled again.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, event
from numba.core.runtime.nrt import rtsys

# mypy: disallow-untyped-calls=False


_DIGEST = 32


def cache_of(loop: Callable[..., Any]) -> Any:
    """Return the cache of a kernel's machine code for numba's dispatcher."""
    try:
        return _FaultTolerantCache(loop)
    except (RuntimeError, OSError):
        return _NoCache()


class _ChecksummedFiles(caching.IndexDataCacheFile):
    """numba's cache files of one kernel with a checksum, since damaged machine code would be run.

    The checksum follows numba's data, so that an older streamsel can read the files too.
    """

    def _save_data(self, name: str, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(content + hashlib.sha256(content).digest())

    def _load_data(self, name: str) -> Any:
        content = Path(self._data_path(name)).read_bytes()
        content, digest = content[:-_DIGEST], content[-_DIGEST:]
        if hashlib.sha256(content).digest() != digest:
            raise ValueError(f"{name} is damaged")
        return pickle.loads(content)  # noqa: S301 (as numba does: the cache directory is trusted)


_LOCATORS: list[Any] = [*caching.CompileResultCacheImpl._locator_classes]


class _ReadOnlyLocator:
    """A read-only directory that has compiled kernels already."""

    @staticmethod
    def from_function(py_func: Any, py_file: str) -> Any:
        """Return a locator of the first candidate directory with compiled kernels, or None."""
        # The first locator is for the directory that the environment names.
        named = numba.config.CACHE_DIR  # type: ignore[attr-defined]
        for kind in _LOCATORS[0 if named else 1 :]:
            with suppress(Exception):
                found = kind(py_func, py_file)
                folder = Path(found.get_cache_path())
                if folder.is_absolute() and any(folder.glob("*.nbi")):
                    return found
        return None


class _CacheImpl(caching.CompileResultCacheImpl):
    _locator_classes: list[Any] = [*_LOCATORS, _ReadOnlyLocator]  # noqa: RUF012 (as numba has it)


class _FaultTolerantCache(caching.FunctionCache):
    """numba's cache of one kernel, which is compiled again if the cache cannot be read."""

    _impl_class = _CacheImpl

    def __init__(self, loop: Callable[..., Any]) -> None:
        super().__init__(loop)
        stamp = self._cache_file._source_stamp
        self._cache_file = _ChecksummedFiles(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for these types; None if there is none, or it is damaged."""
        # numba would prepare its compiler here, which takes longer than its import. Machine code
        # only needs the runtime, and a kernel that must be compiled prepares the compiler itself.
        rtsys.initialize(target_context)
        try:
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 (a damaged file can raise any error)
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write machine code to the cache, if the disk permits."""
        try:
            super().save_overload(sig, data)
        except OSError:
            _warn_once()


class _NoCache(caching.NullCache):
    """A cache that stores nothing, for a machine without a writable directory."""

    def save_overload(self, sig: Any, cres: Any) -> None:  # noqa: ARG002
        """Store nothing; warn once."""
        _warn_once()


def _warn_once() -> None:
    """Warn once per process that compiled kernels cannot be cached."""
    global _has_warned  # noqa: PLW0603
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            "Compiled loops cannot be kept: every process compiles them again, which takes some "
            "seconds. Hint: set NUMBA_CACHE_DIR to a writable directory.",
            RuntimeWarning,
            stacklevel=2,
        )


_has_warned = False


# NaN and infinity keep their meaning (no "nnan", no "ninf"), since sums over a column detect
# missing values. Dot products are vectorized only if additions may be reordered.
_REORDERED_SUMS = {"reassoc", "contract"}


def kernel(*, reordered_sums: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator of a compiled kernel: lazy, cached on disk, without the GIL.

    Parameters
    ----------
    reordered_sums
        Whether sums may be reordered and fused. Only for dot products, each with a precision test.
    """
    compiled = numba.njit(
        nogil=True,
        error_model="numpy",
        fastmath=_REORDERED_SUMS if reordered_sums else False,
    )

    def decorate(loop: Callable[..., Any]) -> Callable[..., Any]:
        dispatcher: Callable[..., Any] = compiled(loop)
        if hasattr(dispatcher, "enable_caching"):  # absent with NUMBA_DISABLE_JIT
            dispatcher._cache = cache_of(loop)  # type: ignore[attr-defined]
        return dispatcher

    return decorate


class _FirstCompilation(event.Listener):
    """Print a message once per process when compilation starts, if stderr is a terminal.

    Compilation takes seconds. numba reports compilations, but not loads from the cache.
    """

    is_reported = False

    def on_start(self, event: Any) -> None:
        """Print the message if it is the first kernel of this package."""
        ours = event.data["dispatcher"].py_func.__module__.startswith(__package__)
        if self.is_reported or not ours:
            return
        self.is_reported = True
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("streamsel: compiling, once on this machine; it takes some seconds.\n")

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def silence_compile_message() -> None:
    """Suppress the message: stderr is reserved for errors, or JSON objects."""
    _FirstCompilation.is_reported = True


event.register("numba:compile", _FirstCompilation())
