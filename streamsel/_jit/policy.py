"""Compilation options: the only module that sets numba's options."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

from streamsel._jit.cache import cache_of

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


def leave_it_unsaid() -> None:
    """Suppress the message: stderr is reserved for errors, or JSON objects."""
    _FirstCompilation.is_reported = True


event.register("numba:compile", _FirstCompilation())  # type: ignore[no-untyped-call]
