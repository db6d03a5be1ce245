"""Raise exceptions at any line of a call, and check the model afterwards.

A trace function raises at the n-th line of the package that a call executes, like Ctrl-C or a lack
of memory. The state of the interrupted model must equal, bit by bit, the one before the call or the
one after it; and the model must continue like one that was never interrupted.
"""

import copy
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import streamsel
from tests.conformance.modes import bits

PACKAGE = str(Path(streamsel.__file__).parent)


class Interrupted(BaseException):
    """An exception that may come at any line, such as KeyboardInterrupt and MemoryError."""


class _Tracer:
    """A trace function that counts the executed lines of the package, and raises at one of them."""

    def __init__(self, at: int) -> None:
        self.at, self.count, self.where = at, 0, ""

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        del arg
        if event == "call":
            return self if frame.f_code.co_filename.startswith(PACKAGE) else None
        if event == "line":
            self.count += 1
            if self.count == self.at:
                name = Path(frame.f_code.co_filename).relative_to(PACKAGE)
                self.where = f"{name}:{frame.f_lineno}"
                raise Interrupted(self.where)
        return self


@contextmanager
def _traced(tracer: _Tracer) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        yield
    finally:
        sys.settrace(before)


def count_of_lines(call: Callable[[], object]) -> int:
    """Return the number of lines of the package that a call executes."""
    tracer = _Tracer(0)
    with _traced(tracer):
        call()
    return tracer.count


def interrupt(call: Callable[[], object], at: int) -> str | None:
    """Call, and raise at line number `at`; return its location; None if there is no such line."""
    tracer = _Tracer(at)
    try:
        with _traced(tracer):
            call()
    except Interrupted:
        return tracer.where
    return tracer.where or None


class Situation(NamedTuple):
    """A call that may be interrupted.

    Parameters
    ----------
    make
    Returns a model before the call, the same every time.
    call
    Makes the call on a model.
    go_on
    Makes a model learn more after the call.
    """

    make: Callable[[], Any]
    call: Callable[[Any], object]
    go_on: Callable[[Any], object]


def half_done(
    situation: Situation, choose_lines: Callable[[int], Iterable[int]]
) -> Iterator[tuple[str, str]]:
    """Interrupt a call at some of its lines; yield each location, and what is wrong then.

    Parameters
    ----------
    situation
    The call.
    choose_lines
    Given the number of executed lines, returns those at which to interrupt, counted from 1.

    Yields
    ------
    The location, and a description of the defect; "" if there is none.
    """
    make, call, go_on = situation
    before, after = make(), make()
    lines = count_of_lines(lambda: call(after))
    left_by = {"before": bits(before), "after": bits(after)}
    call(before)
    for model in (before, after):
        go_on(model)
    expected = bits(after)
    assert bits(before) == expected, "two models that learnt the same differ"
    for at in choose_lines(lines):
        model = make()
        where = interrupt(lambda model=model: call(model), at)
        if where is not None:
            yield where, _wrong(model, left_by, expected, call, go_on)


def _wrong(
    model: Any,
    left_by: dict[str, Any],
    expected: dict[str, Any],
    call: Callable[[Any], object],
    go_on: Callable[[Any], object],
) -> str:
    """Return a description of the defect of an interrupted model; "" if there is none."""
    try:
        state = bits(model)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
        return f"state cannot be read: {error!r}"
    left = next((when for when, other in left_by.items() if state == other), None)
    if left is None:
        return f"neither before nor after: {_apart(state, left_by)}"

    def continued(one: Any) -> None:
        if left == "before":
            call(one)
        go_on(one)

    try:
        # Another thread finds no lock, as a copy waits for the lock of learning. The results are
        # not compared, as the last digits of LAPACK depend on where a thread has its memory.
        _in_a_thread(lambda: continued(copy.deepcopy(model)))
        continued(model)
        state = bits(model)
    except Exception as error:  # noqa: BLE001
        return f"cannot go on from {left}: {error!r}"
    return "" if state == expected else f"goes on otherwise from {left}"


def _apart(state: dict[str, Any], left_by: dict[str, Any]) -> str:
    """Return which parts of a state equal those before, and which those after."""
    before, after = left_by["before"], left_by["after"]
    parts = []
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) == after.get(key) == state.get(key):
            continue
        kind = "before" if state.get(key) == before.get(key) else "after"
        parts.append(
            f"{key} {kind if state.get(key) in (before.get(key), after.get(key)) else 'neither'}"
        )
    return ", ".join(parts)[:300]


def _in_a_thread(call: Callable[[], object]) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    if thread.is_alive():
        raise RuntimeError("a lock was never released")
    if errors:
        raise errors[0]
