"""Try many bad inputs in a child process, and find those that kill it.

An attack is a function that a child builds once and calls for each index: `attempt(index)` returns
a verdict and its description. The parent sends one index after the other, so the current input is
known if the child dies or hangs. The parent then starts another child and continues.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import multiprocessing
import os
import resource
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsel.cli.errors import EXPECTED_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from multiprocessing.connection import Connection

FINE = ("right", "refused", "changed")
"""Read as it was; refused in one line of ours; read as other values than the file once had.

The last is for the attack to judge: a flipped bit of a number cannot be recognised.
"""
BAD = ("wrong", "words", "traceback", "memory", "hang", "death")
"""Wrong without a word; refused in words of others; an error that is a defect; and worse."""

SECONDS = 10.0
RESIDENT = 2**30


@dataclass(frozen=True)
class Outcome:
    """The outcome of one attempt."""

    index: int
    verdict: str
    detail: str


def judge(call: Callable[[], str], ours: str = "Expected ") -> tuple[str, str]:
    """Call a function, and return a verdict and a description, also if it raises.

    Parameters
    ----------
    call
    Returns a verdict.
    ours
    Start of the package's own messages; "" to accept any message.
    """
    try:
        return call(), ""
    except EXPECTED_ERRORS as error:
        message = _in_short(error)
        if isinstance(error, MemoryError):
            return "memory", message
        is_ours = str(error).startswith(ours) or isinstance(error, FileNotFoundError)
        return "refused" if is_ours and str(error) else "words", message
    except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
        return "traceback", _in_short(error)


def _in_short(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def attack(
    make: Callable[[], Callable[[int], tuple[str, str]]],
    indices: Iterable[int],
    *,
    seconds: float = SECONDS,
    resident: int = RESIDENT,
    until: float | None = None,
) -> Iterator[Outcome]:
    """Try all indices in child processes, one after the other.

    Parameters
    ----------
    make
    Picklable; called in each child, returns the attempt.
    indices
    Indices to try.
    seconds
    An attempt that takes longer counts as a hang, and is killed.
    resident
    Largest resident memory of an attempt, in bytes.
    until
    Time of `time.monotonic` after which no further index is tried.
    """
    child: _Child | None = None
    try:
        for index in indices:
            if until is not None and time.monotonic() > until:
                return
            child = child or _Child(make, resident)
            outcome, is_alive = child.attempt(index, seconds)
            if not is_alive:
                child.close()
                child = None
            yield outcome
    finally:
        if child is not None:
            child.close()


def is_bad(outcome: Outcome) -> bool:
    """Return whether an outcome is a defect."""
    return outcome.verdict not in FINE


def table(counts: dict[str, Counter[str]]) -> str:
    """Return the numbers of verdicts as a table, one line for each kind of input."""
    seen = [v for v in (*FINE, *BAD) if v in FINE or any(count[v] for count in counts.values())]
    lines = [f"{'':14}{'tried':>9}" + "".join(f"{verdict:>11}" for verdict in seen)]
    for kind, count in counts.items():
        cells = "".join(f"{count[verdict]:>11,}" for verdict in seen)
        lines.append(f"{kind:14}{count.total():>9,}{cells}")
    return "\n".join(lines)


def tried(options: argparse.Namespace) -> Iterable[int]:
    """Return the indices that the command line requests."""
    if options.index is not None:
        return [options.index]
    return itertools.count() if options.tries is None else range(options.tries)


def run(
    attempts: Callable[[int], Callable[[int], tuple[str, str]]],
    kind_of: Callable[[int], str],
    doc: str | None,
) -> int:
    """Run for as long as the command line requests; print the defects, and return an exit code.

    Parameters
    ----------
    attempts
    Called with a seed, returns the attempt.
    kind_of
    Returns the kind of input of an index.
    doc
    Description of the attack.
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to go on")
    parser.add_argument("--tries", type=int, help="how many; otherwise until the time is over")
    parser.add_argument("--seed", type=int, default=0, help="of what is tried")
    parser.add_argument("--index", type=int, help="only this one")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    until = time.monotonic() + options.seconds
    bad = 0
    indices = tried(options)
    for outcome in attack(functools.partial(attempts, options.seed), indices, until=until):
        kind = kind_of(outcome.index)
        counts.setdefault(kind, Counter())[outcome.verdict] += 1
        if is_bad(outcome):
            bad += 1
            again = f"--seed {options.seed} --index {outcome.index}"
            print(f"{kind} {outcome.verdict}: {outcome.detail} ({again})", flush=True)
    print(table(counts))
    return 1 if bad else 0


class _Child:
    """A process that tries the indices it receives."""

    def __init__(self, make: Callable[[], Any], resident: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([getattr(make, "func", make).__module__])
        self._resident = resident
        self._connection, other = context.Pipe()
        self._stderr = tempfile.NamedTemporaryFile(prefix="attack-", suffix=".stderr")  # noqa: SIM115
        self._process = context.Process(target=_serve, args=(make, other, self._stderr.name))
        self._process.daemon = True
        self._process.start()
        other.close()
        try:
            self._connection.recv()
        except EOFError:
            raise RuntimeError(
                f"Expected an attack that begins. Got: {self._last_words()}"
            ) from None

    def attempt(self, index: int, seconds: float) -> tuple[Outcome, bool]:
        """Try one index; return its outcome, and whether the child can continue."""
        try:
            self._connection.send(index)
            if not self._connection.poll(seconds):
                return Outcome(index, "hang", f"more than {seconds:g} s"), False
            verdict, detail, grown = self._connection.recv()
        except (EOFError, ConnectionError):
            return Outcome(index, "death", self._last_words()), False
        if grown > self._resident:
            return Outcome(index, "memory", f"{grown / 2**20:,.0f} MiB more; {detail}"), False
        return Outcome(index, verdict, detail), True

    def _last_words(self) -> str:
        """Return the exit code of a dead process, and the last lines of its stderr."""
        self._process.join()
        lines = Path(self._stderr.name).read_text(errors="replace").strip().splitlines()
        return f"exit {self._process.exitcode} {' / '.join(lines[-2:])}"

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._connection.close()
        self._stderr.close()


def _serve(make: Callable[[], Any], connection: Connection[Any, Any], stderr_path: str) -> None:
    """Try indices in the child; return verdicts and the growth of the peak of resident memory."""
    os.dup2(os.open(stderr_path, os.O_WRONLY | os.O_APPEND), 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Far larger allocations fail, as they would on a machine with less memory.
    resource.setrlimit(resource.RLIMIT_DATA, (4 * RESIDENT, 4 * RESIDENT))
    attempt = make()
    connection.send("ready")
    peak = _peak()
    while True:
        verdict, detail = attempt(connection.recv())
        now = _peak()
        connection.send((verdict, detail, now - peak))
        peak = now


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
