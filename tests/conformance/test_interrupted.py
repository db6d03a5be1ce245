"""Exceptions at any line: an update is applied completely or not at all, and can be repeated."""

import itertools
from zlib import crc32

import pytest

from tests.conformance.calls import calls
from tests.conformance.modes import GROUP_MODES, MODES, over, sampled
from tests.conformance.rowwise import ROW_MODES
from tests.interruptions import half_done
from tests.seed import SEED, some

# Number of calls of a mode, and of lines of a call, which depend on the seed.
# `tests.attack.interrupts` tries them all.
CALLS, LINES = 2, 6


def some_lines(offset):
    """Return a function that picks some equally spaced lines of a call."""

    def pick(count):
        step = max(1, count // LINES)
        return range(1 + offset % step, count + 1, step)

    return pick


@over(MODES)
def test_interrupt_at_any_line(mode):
    offset = crc32(f"{SEED} {mode}".encode())
    for kind, situation in itertools.islice(calls(mode, offset), CALLS):
        for where, wrong in half_done(situation, some_lines(offset)):
            assert not wrong, f"{kind}, interrupted at {where}: {wrong}"


@sampled(GROUP_MODES)
def test_interrupt_at_any_line_of_learning_groups(mode):
    for kind, situation in calls(mode):
        if "group" in kind:
            for where, wrong in half_done(
                situation, some_lines(crc32(f"{SEED} {mode} {kind}".encode()))
            ):
                assert not wrong, f"{kind}, interrupted at {where}: {wrong}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SelectKBest(k=2)", "MRMR(k=3, fading_factor=0.05)"])
def test_interrupt_at_every_line_of_learning_a_row(name):
    """An eighth of the lines are tried; the seed determines which."""
    mode = ROW_MODES[name]
    kinds = {"first row", "row", "row after columns", "row with gaps"}
    tried = 0
    for kind, situation in calls(mode):
        if kind in kinds:

            def eighth(count, kind=kind):
                return some(range(1, count + 1), count // 8, f"{name} {kind}")

            for where, wrong in half_done(situation, eighth):
                assert not wrong, f"{kind}, interrupted at {where}: {wrong}"
                tried += 1
    assert tried > 25
