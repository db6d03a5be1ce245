"""Raise exceptions at any line of any call that changes a model: it is as before or after the call.

    python -m tests.attack.interrupts --seconds 20 --seed 1

chooses a learner in any mode, a kind of call (`tests.conformance.calls`) and some lines that it
executes, and raises there. The model must equal, bit by bit, the one before the call or the one
after it. It must not be locked, and must continue like a model that was never interrupted. The
script exits with 1 if one does not, and prints how to reproduce it.
"""

from __future__ import annotations

import functools
import random
import sys
import warnings
from typing import TYPE_CHECKING

from tests.attack._harness import run
from tests.conformance.calls import KINDS, calls
from tests.conformance.modes import MODES
from tests.interruptions import half_done

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAMES = tuple(MODES)
# Number of lines of a call that are tried at once, so that preparing it takes less of the time.
N_LINES = 12


def attempts(seed: int) -> Callable[[int], tuple[str, str]]:
    """Return the function that interrupts the call of an index."""
    warnings.simplefilter("ignore")
    return functools.partial(_attempt, seed)


def _attempt(seed: int, index: int) -> tuple[str, str]:
    rng = random.Random(f"{seed} {index}")  # noqa: S311
    name = rng.choice(NAMES)
    kind, situation = next(calls(MODES[name], index))

    def some_lines(count: int) -> Sequence[int]:
        return rng.sample(range(1, count + 1), min(count, N_LINES))

    for where, wrong in half_done(situation, some_lines):
        if wrong:
            return "wrong", f"{name}, {kind}, at {where}: {wrong}"
    return "right", ""


def kind_of(index: int) -> str:
    """Return the kind of call of an index; a mode without such a call uses the next kind."""
    return KINDS[index % len(KINDS)]


if __name__ == "__main__":
    sys.exit(run(attempts, kind_of, __doc__))
