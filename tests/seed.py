"""What chooses the modes and cases in a run of tests that have very many."""

import os
import random
from collections.abc import Hashable, Iterable
from typing import TypeVar

# Every seed runs another sample; this one runs all modes and cases.
EVERYTHING = "all"
SEED = os.environ.get("STREAMSEL_TEST_SEED", "0")

Case = TypeVar("Case")


def some(cases: Iterable[Case], n: int, turn: str) -> list[Case]:
    """Return n of the cases in their order, or all of them in a run of everything.

    Seed and `turn`, such as the name of the test, choose them: the same in every process.
    """
    found = list(cases)
    if SEED == EVERYTHING or n >= len(found):
        return found
    chosen = random.Random(f"{SEED} {turn}").sample(range(len(found)), n)  # noqa: S311
    return [found[i] for i in sorted(chosen)]


def covering(cases: dict[str, set[Hashable]], turn: str) -> set[str]:
    """Return the names of some cases that have all values between them, or all of the names.

    Parameters
    ----------
    cases
        The values of each case. In a random order, a case is left out if those before it have all
        of its values.
    turn
        What chooses the order, with the seed.
    """
    if SEED == EVERYTHING:
        return set(cases)
    names = list(cases)
    random.Random(f"{SEED} {turn}").shuffle(names)  # noqa: S311
    chosen, seen = set(), set[Hashable]()
    for name in names:
        if not cases[name] <= seen:
            chosen.add(name)
            seen |= cases[name]
    return chosen
