"""Progress on stderr: columns a second, time left, best so far, memory.

A terminal has a bar. Where there is none, a line comes now and then.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self

from streamsel.cli._log import log, stderr_is_terminal
from streamsel.escape import shown
from streamsel.memory import resident_bytes
from streamsel.words import bytes_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from rich.console import RenderableType
    from rich.progress import Progress

FIRST_LINE, LONGEST_GAP = 10.0, 60.0  # seconds


class Meter(Protocol):
    """Watches a run."""

    def __enter__(self) -> Self:
        """Begin to show progress."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take what was shown off the screen."""

    def compiling(self) -> None:
        """Say that the program is being compiled."""

    def begin(self) -> None:
        """Say what is being done, and count its time from now on."""

    def update(self, n_read: int, model: Any = None, *, reading: str = "") -> None:
        """Take note of the columns read so far, and of the best of what the model has found.

        What is said of the reading may change at every column; another one begins when fewer
        columns have been read than before.
        """


class Silence:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def compiling(self) -> None:
        """Do nothing."""

    def begin(self) -> None:
        """Do nothing."""

    def update(self, n_read: int, model: Any = None, *, reading: str = "") -> None:
        """Do nothing."""


class Bar:
    """A progress bar with a line below it: what is best so far and the memory in use.

    Parameters
    ----------
    title
        What is being done.
    n_columns
        Columns in the source, None if unknown.
    n_read
        Columns that an earlier run has read.
    """

    def __init__(self, title: str, n_columns: int | None, n_read: int) -> None:
        self._best = ""
        self._best_at = 0.0
        self._progress = self._make_progress()
        self._task = self._progress.add_task(title, total=n_columns, completed=n_read)
        self._title = title
        self._n_before = n_read
        self._n_read = n_read

    def _make_progress(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
        from rich.text import Text

        bar = self

        class Count(ProgressColumn):
            def render(self, task: Task) -> Text:
                total = "" if task.total is None else f" of {task.total:,.0f}"
                return Text(f"{task.completed:,.0f}{total} columns")

        class Rate(ProgressColumn):
            def render(self, task: Task) -> Text:
                return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="cyan")

        class TwoLines(Progress):
            def get_renderables(self) -> Iterable[RenderableType]:
                yield from super().get_renderables()
                yield Text(bar.status(), style="dim", overflow="ellipsis", no_wrap=True)

        return TwoLines(
            "{task.description}",
            BarColumn(bar_width=24),
            Count(),
            Rate(),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=5,
        )

    def status(self) -> str:
        """Return the second line."""
        memory = resident_bytes()
        parts = [self._best, f"memory {bytes_text(memory)}" if memory else ""]
        return " · ".join(part for part in parts if part)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def compiling(self) -> None:
        """Say that the program is being compiled."""
        self._progress.update(self._task, description="compiling, once")

    def begin(self) -> None:
        """Say what is being done, and count its time from now on."""
        self._progress.reset(self._task, description=self._title, completed=self._n_before)

    def update(self, n_read: int, model: Any = None, *, reading: str = "") -> None:
        """Show the columns read so far, and the best of what the model has found."""
        if n_read < self._n_read:
            self._progress.reset(self._task)
        self._n_read = n_read
        described = f"{self._title} ({reading})" if reading else self._title
        self._progress.update(self._task, completed=n_read, description=described)
        start = time.monotonic()
        if model is not None and start >= self._best_at:
            self._best = best_of(model)
            # A selector may have to select in order to answer: spend a twentieth of the time on it.
            self._best_at = time.monotonic() + max(0.2, 20 * (time.monotonic() - start))


class Pace:
    """When the next line is due: not in a short run, and more rarely the longer a run takes.

    The first comes after 10 s, and so does the next; from 100 s on when a tenth of the time so far
    has passed again, and from 10 min on every minute.
    """

    def __init__(self) -> None:
        self.began = time.monotonic()
        self._next = self.began + FIRST_LINE

    def is_due(self) -> bool:
        """Whether a line is due now; if so the next is put off."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + min(max(FIRST_LINE, (now - self.began) / 10), LONGEST_GAP)
        return True


class Lines:
    """Says how far it is, a line now and then: where stderr is no terminal.

    Parameters
    ----------
    n_columns
        Columns in the source, None if unknown.
    n_read
        Columns that an earlier run has read.
    """

    def __init__(self, n_columns: int | None, n_read: int) -> None:
        self._n_columns = n_columns
        self._n_before = self._n_read = n_read
        self._pace = Pace()
        self._reading_began = self._pace.began

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def compiling(self) -> None:
        """Do nothing: that is said by a terminal only."""

    def begin(self) -> None:
        """Count the time from now on."""
        self._pace = Pace()
        self._reading_began = self._pace.began

    def update(self, n_read: int, model: Any = None, *, reading: str = "") -> None:
        """Say how far it is, if it is time to."""
        if n_read < self._n_read:
            self._n_before, self._reading_began = 0, time.monotonic()
        self._n_read = n_read
        if self._pace.is_due():
            facts = self._facts(n_read, reading) | best_facts(model)
            log().say("progress", "" if log().as_json else progress_text(facts), **facts)

    def _facts(self, n_read: int, reading: str) -> dict[str, Any]:
        now = time.monotonic()
        rate = (n_read - self._n_before) / max(now - self._reading_began, 1e-9)
        n_left = None if self._n_columns is None else self._n_columns - n_read
        return {
            "columns_read": n_read,
            "n_columns": self._n_columns,
            "seconds": round(now - self._pace.began, 3),
            "rate": round(rate, 1),
            "seconds_left": None if n_left is None or not rate else round(n_left / rate, 1),
            "memory": resident_bytes(),
        } | ({"reading": reading} if reading else {})


def progress_text(facts: Mapping[str, Any]) -> str:
    """Put the facts of a line of progress in words."""
    total, left, memory = (facts[name] for name in ("n_columns", "seconds_left", "memory"))
    done = f"{facts['columns_read']:,}" + ("" if total is None else f" of {total:,}") + " columns"
    parts = [
        f"{facts['reading']}: {done}" if "reading" in facts else done,
        f"{facts['rate']:,.0f}/s",
        "" if left is None else f"{seconds_text(round(left))} left".replace(".0 s", " s"),
        best_text(facts),
        "" if memory is None else f"memory {bytes_text(memory)}",
    ]
    return ", ".join(part for part in parts if part)


def meter(title: str, n_columns: int | None, n_read: int = 0) -> Meter:
    """Return a progress bar if stderr is a terminal; lines, or silence, otherwise."""
    if log().quiet:
        return Silence()
    return Bar(title, n_columns, n_read) if stderr_is_terminal() else Lines(n_columns, n_read)


@contextmanager
def spooling(name: str) -> Iterator[Callable[[int], None]]:
    """Show how much of something has been copied: yields what to call with the number of bytes."""
    if stderr_is_terminal():
        from rich.console import Console
        from rich.text import Text

        with Console(stderr=True).status(Text(f"copying {shown(name)}")) as status:
            yield lambda n_bytes: status.update(
                Text(f"copying {shown(name)}, {bytes_text(n_bytes)}")
            )
        return
    pace = Pace()

    def show(n_bytes: int) -> None:
        if pace.is_due():
            seconds = round(time.monotonic() - pace.began, 3)
            text = f"copying {name}, {bytes_text(n_bytes)}"
            log().say("copying", text, file=name, bytes=n_bytes, seconds=seconds)

    yield show


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None] | None]:
    """Show work in stages: yields what to call with a stage, how much is done, and of how much.

    Yields None, and shows nothing, if stderr is not a terminal.
    """
    if not stderr_is_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn

    columns = ("{task.description}", BarColumn(bar_width=24), TaskProgressColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(stage: str, done: int, total: int) -> None:
            progress.update(task, description=stage, completed=done, total=total)

        yield show


def best_of(model: Any) -> str:
    """Name the most relevant thing that the model has found, or how much there is to find."""
    return best_text(best_facts(model))


def best_facts(model: Any) -> dict[str, Any]:
    """Return the most relevant thing that a model has found, or how much there is to find."""
    if (n := getattr(model, "n_above_noise", None)) is not None:
        return {"n_above_noise": n}
    if model is None or hasattr(getattr(model, "_columns", None), "gram"):
        # To ask for components would solve for them.
        return {}
    relevance = {name: value for name, value in model.relevance.items() if math.isfinite(value)}
    if not relevance:
        return {}
    name = max(relevance, key=relevance.__getitem__)
    return {"best": str(name), "relevance": relevance[name]}


def best_text(facts: Mapping[str, Any]) -> str:
    """Put in words what is best."""
    if "n_above_noise" in facts:
        return f"{facts['n_above_noise']:,} above noise"
    return f"best {shown(facts['best'][:40])} {facts['relevance']:.4f}" if "best" in facts else ""
