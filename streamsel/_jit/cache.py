# mypy: disallow-untyped-calls=False
"""Compiled loops kept on disk where that can be: a help, and never a condition.

What numba raises where no directory can be written, or where what it has kept is damaged, ends
here: a loop is then compiled, as it is the first time.
"""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

_DIGEST = 32


def cache_of(loop: Callable[..., Any]) -> Any:
    """Return what keeps the machine code of a loop, as numba's dispatchers use it."""
    try:
        return _Kept(loop)
    except (RuntimeError, OSError):
        return _NotKept()


class _Sealed(caching.IndexDataCacheFile):
    """numba's files of one loop, with a checksum: damaged machine code would be run.

    It stands behind what numba writes, so that an older streamsel can read the files too.
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
        return pickle.loads(content)  # noqa: S301 (as numba does: whoever writes there is trusted)


_LOCATORS: list[Any] = [*caching.CompileResultCacheImpl._locator_classes]


class _AsItLies:
    """A directory that holds compiled loops already, though nothing can be written there."""

    @staticmethod
    def from_function(py_func: Any, py_file: str) -> Any:
        """Return what finds the first of the directories in which they could be, or None."""
        # The first takes the directory that the environment names, if it does.
        named = numba.config.CACHE_DIR  # type: ignore[attr-defined]
        for kind in _LOCATORS[0 if named else 1 :]:
            with suppress(Exception):
                found = kind(py_func, py_file)
                folder = Path(found.get_cache_path())
                if folder.is_absolute() and any(folder.glob("*.nbi")):
                    return found
        return None


class _Anywhere(caching.CompileResultCacheImpl):
    _locator_classes: list[Any] = [*_LOCATORS, _AsItLies]  # noqa: RUF012 (as numba has it)


class _Kept(caching.FunctionCache):
    """What numba keeps of one loop; compiled anew where that cannot be read."""

    _impl_class = _Anywhere

    def __init__(self, loop: Callable[..., Any]) -> None:
        super().__init__(loop)
        stamp = self._cache_file._source_stamp
        self._cache_file = _Sealed(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for these types; None where there is none that is whole."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 (what damaged files raise is anything)
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code, if the disk takes it."""
        try:
            super().save_overload(sig, data)
        except OSError:
            _say_once()


class _NotKept(caching.NullCache):
    """Stands where nothing can be kept."""

    def save_overload(self, sig: Any, cres: Any) -> None:  # noqa: ARG002
        """Keep nothing."""
        _say_once()


def _say_once() -> None:
    """Say that what was compiled is lost at the end of the process; once in each."""
    global _said  # noqa: PLW0603
    if not _said:
        _said = True
        warnings.warn(
            "Compiled loops cannot be kept: every process compiles them anew, which takes some "
            "seconds. Set NUMBA_CACHE_DIR to a directory that can be written to.",
            RuntimeWarning,
            stacklevel=2,
        )


_said = False
