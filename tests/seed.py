"""Choose the tests, modes and cases of a run by a seed."""

import heapq
import os
import random
import zlib
from collections.abc import Hashable, Iterable
from typing import TypeVar

# Every seed runs another sample; this value runs all modes and cases.
EVERYTHING = "all"
SEED = os.environ.get("STREAMSEL_TEST_SEED", "0")

Case = TypeVar("Case")


def some(cases: Iterable[Case], n: int, turn: str) -> list[Case]:
    """Return n of the cases in their order, or all of them if the seed is `EVERYTHING`.

    The seed and `turn`, such as the name of the test, determine them in every process.
    """
    found = list(cases)
    if SEED == EVERYTHING or n >= len(found):
        return found
    chosen = random.Random(f"{SEED} {turn}").sample(range(len(found)), n)  # noqa: S311
    return [found[i] for i in sorted(chosen)]


def one_in_four(cases: Iterable[Case], turn: str) -> list[Case]:
    """Return every fourth case, or all of them if the seed is `EVERYTHING`.

    Four consecutive seeds, such as the dates of four days, choose all of them.
    """
    if SEED == EVERYTHING:
        return list(cases)
    start = int(SEED) if SEED.isdigit() else zlib.crc32(SEED.encode())
    start += zlib.crc32(turn.encode())
    return [case for i, case in enumerate(cases, start) if i % 4 == 0]


def covering(cases: dict[str, set[Hashable]], turn: str) -> set[str]:
    """Return the names of few cases that together have all values, or all of the names.

    Parameters
    ----------
    cases
        The values of each case.
    turn
        Chooses, with the seed, among cases that add equally many new values.
    """
    return set(cases) if SEED == EVERYTHING else cover(cases, f"{SEED} {turn}")


def cover(cases: dict[str, set[Hashable]], turn: str) -> set[str]:
    """Return the names of few cases with all values, by a greedy choice."""
    names = sorted(cases)
    random.Random(turn).shuffle(names)  # noqa: S311
    chosen, seen = set(), set[Hashable]()
    # A count may be outdated, and can only have decreased. Of equal cases, the first in the
    # shuffled order is chosen.
    heap = [(-len(cases[name]), index) for index, name in enumerate(names)]
    heapq.heapify(heap)
    while heap:
        counted, index = heapq.heappop(heap)
        brings = len(cases[names[index]] - seen)
        if brings and brings == -counted:
            chosen.add(names[index])
            seen |= cases[names[index]]
        elif brings:
            heapq.heappush(heap, (-brings, index))
    return chosen
