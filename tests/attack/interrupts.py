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
# How many places of a call are tried at once, so that most of the time is not its preparation.
PLACES = 12


def attempts(seed: int) -> Callable[[int], tuple[str, str]]:
    """Return what interrupts a call, by its index."""
    warnings.simplefilter("ignore")
    return functools.partial(_attempt, seed)


def _attempt(seed: int, index: int) -> tuple[str, str]:
    rng = random.Random(f"{seed} {index}")  # noqa: S311
    name = rng.choice(NAMES)
    kind, situation = next(calls(MODES[name], index))

    def places(count: int) -> Sequence[int]:
        return rng.sample(range(1, count + 1), min(count, PLACES))

    for where, wrong in half_done(situation, places):
        if wrong:
            return "wrong", f"{name}, {kind}, at {where}: {wrong}"
    return "right", ""


def kind_of(index: int) -> str:
    """Return the kind of call of an index; of a mode that has no such call it is the next."""
    return KINDS[index % len(KINDS)]


if __name__ == "__main__":
    sys.exit(run(attempts, kind_of, __doc__))
