"""How this package compiles: the one place that knows numba's options."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

from streamsel._jit.cache import cache_of

# NaN and infinity keep their meaning (no "nnan", no "ninf"): a sum over a column is how a missing
# value is noticed. Reordering additions is what lets a dot product use vector registers.
_REORDERED_SUMS = {"reassoc", "contract"}


def kernel(*, reordered_sums: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator of a compiled loop: lazy, kept on disk, without Python's lock.

    Parameters
    ----------
    reordered_sums
        Whether sums may be reordered and fused. Only for dot products, with a precision test beside
        each.
    """
    compiled = numba.njit(
        nogil=True,
        error_model="numpy",
        fastmath=_REORDERED_SUMS if reordered_sums else False,
    )

    def decorate(loop: Callable[..., Any]) -> Callable[..., Any]:
        dispatcher: Callable[..., Any] = compiled(loop)
        if hasattr(dispatcher, "enable_caching"):  # not where numba is told to compile nothing
            dispatcher._cache = cache_of(loop)  # type: ignore[attr-defined]
        return dispatcher

    return decorate


class _FirstCompilation(event.Listener):
    """Says on a terminal, once a process, that it compiles: a first result takes seconds then.

    numba tells of what it compiles, not of what it has found compiled.
    """

    said = False

    def on_start(self, event: Any) -> None:
        """Say it, if it is the first loop of this package."""
        ours = event.data["dispatcher"].py_func.__module__.startswith(__package__)
        if self.said or not ours:
            return
        self.said = True
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("streamsel: compiling, once on this machine; it takes some seconds.\n")

    def on_end(self, event: Any) -> None:
        """Say nothing."""


def leave_it_unsaid() -> None:
    """Say nothing when it compiles: whoever reads stderr wants errors only, or objects."""
    _FirstCompilation.said = True


event.register("numba:compile", _FirstCompilation())  # type: ignore[no-untyped-call]
