"""The harness of the attacks reports the result of every try, also if the child process dies."""

import os
import time

import pytest

from tests.attack._harness import attack, judge


def _make():
    return _attempt


def _attempt(index):
    return (
        lambda: ("right", ""),
        os.abort,
        lambda: time.sleep(60),
        lambda: judge(lambda: bytes(2**27).decode() and "wrong"),
        lambda: judge(lambda: 1 / 0),
        lambda: judge(lambda: float("x")),
        lambda: judge(_refuse),
        lambda: judge(lambda: bytearray(2**40) and "right"),
    )[index]()


def _refuse():
    raise ValueError("Expected less.")


@pytest.mark.slow
def test_verdicts():
    outcomes = list(attack(_make, range(8), seconds=3, resident=2**26))
    assert [outcome.index for outcome in outcomes] == list(range(8))
    assert [outcome.verdict for outcome in outcomes] == [
        *("right", "death", "hang", "memory", "traceback", "words", "refused", "memory")
    ]


def test_attack_that_cannot_start_raises():
    with pytest.raises(RuntimeError, match=r"Expected an attack that begins.*ZeroDivisionError"):
        list(attack(_broken, [0]))


def _broken():
    return 1 / 0
