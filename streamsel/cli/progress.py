"""Progress on stderr: columns per second, time left, best result so far, memory.

A terminal shows a progress bar; otherwise a line is written periodically.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self

from streamsel._utils.system import resident_bytes
from streamsel._utils.text import bytes_text, printable, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from rich.console import RenderableType
    from rich.progress import Progress

    from streamsel.cli.log import Log

LOADING = "loading kernels"
FIRST_LINE, LONGEST_INTERVAL = 10.0, 60.0  # seconds


class Meter(Protocol):
    """Shows the progress of a run, or, before it begins, that compiled code is being loaded."""

    def __enter__(self) -> Self:
        """Start showing progress."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove the display."""

    def begin(self) -> None:
        """Show the title, and restart the clock."""

    def update(self, n_read: int, model: Any = None, *, pass_name: str = "") -> None:
        """Record the columns read so far, and the best result of the model.

        `pass_name` describes the current pass and may change at every column. A smaller `n_read`
        than before starts a new pass.
        """


class NoProgress:
    """A meter that shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self) -> None:
        """Do nothing."""

    def update(self, n_read: int, model: Any = None, *, pass_name: str = "") -> None:
        """Do nothing."""


class ProgressBar:
    """A progress bar with a line below it: the best result so far, and the memory in use.

    Parameters
    ----------
    title
        Description of the run.
    n_columns
        Columns in the source, None if unknown.
    n_read
        Columns that an earlier run has read.
    """

    def __init__(self, title: str, n_columns: int | None, n_read: int) -> None:
        self._best = ""
        self._best_at = 0.0
        self._progress = self._make_progress()
        self._task = self._progress.add_task(LOADING, total=n_columns, completed=n_read)
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
        """Return the line below the progress bar."""
        memory = resident_bytes()
        parts = [self._best, f"memory {bytes_text(memory)}" if memory else ""]
        return " · ".join(part for part in parts if part)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self) -> None:
        """Show the title, and restart the clock."""
        self._progress.reset(self._task, description=self._title, completed=self._n_before)

    def update(self, n_read: int, model: Any = None, *, pass_name: str = "") -> None:
        """Show the columns read so far, and the best result of the model."""
        if n_read < self._n_read:
            self._progress.reset(self._task)
        self._n_read = n_read
        description = f"{self._title} ({pass_name})" if pass_name else self._title
        self._progress.update(self._task, completed=n_read, description=description)
        start = time.monotonic()
        if model is not None and start >= self._best_at:
            self._best = best_of(model)
            # This may run a selection: spend at most a twentieth of the time on it.
            self._best_at = time.monotonic() + max(0.2, 20 * (time.monotonic() - start))


class LinePace:
    """Schedule of progress lines: none in a short run, and fewer the longer a run takes.

    A line is due every 10 s at first. From 100 s on, it is due whenever another tenth of the
    elapsed time has passed; from 10 min on, every minute.
    """

    def __init__(self) -> None:
        self.began = time.monotonic()
        self._next = self.began + FIRST_LINE

    def is_due(self) -> bool:
        """Return whether a line is due; if so, schedule the next."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + min(max(FIRST_LINE, (now - self.began) / 10), LONGEST_INTERVAL)
        return True


class ProgressLines:
    """Writes periodic progress lines, for stderr that is not a terminal.

    Parameters
    ----------
    log
        The log.
    n_columns
        Columns in the source, None if unknown.
    n_read
        Columns that an earlier run has read.
    """

    def __init__(self, log: Log, n_columns: int | None, n_read: int) -> None:
        self._log = log
        self._n_columns = n_columns
        self._n_before = self._n_read = n_read
        self._pace = LinePace()
        self._pass_began = self._pace.began

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self) -> None:
        """Restart the clock."""
        self._pace = LinePace()
        self._pass_began = self._pace.began

    def update(self, n_read: int, model: Any = None, *, pass_name: str = "") -> None:
        """Write the progress, if a line is due."""
        if n_read < self._n_read:
            self._n_before, self._pass_began = 0, time.monotonic()
        self._n_read = n_read
        if self._pace.is_due():
            facts = self._facts(n_read, pass_name) | best_facts(model)
            text = "" if self._log.as_json else progress_text(facts)
            self._log.emit("progress", text, **facts)

    def _facts(self, n_read: int, pass_name: str) -> dict[str, Any]:
        now = time.monotonic()
        rate = (n_read - self._n_before) / max(now - self._pass_began, 1e-9)
        n_left = None if self._n_columns is None else self._n_columns - n_read
        return {
            "columns_read": n_read,
            "n_columns": self._n_columns,
            "seconds": round(now - self._pace.began, 3),
            "rate": round(rate, 1),
            "seconds_left": None if n_left is None or not rate else round(n_left / rate, 1),
            "memory": resident_bytes(),
        } | ({"pass": pass_name} if pass_name else {})


def progress_text(facts: Mapping[str, Any]) -> str:
    """Return the text of a progress line."""
    total, left, memory = (facts[name] for name in ("n_columns", "seconds_left", "memory"))
    done = f"{facts['columns_read']:,}" + ("" if total is None else f" of {total:,}") + " columns"
    parts = [
        f"{facts['pass']}: {done}" if "pass" in facts else done,
        f"{facts['rate']:,.0f}/s",
        "" if left is None else f"{seconds_text(round(left))} left".replace(".0 s", " s"),
        best_text(facts),
        "" if memory is None else f"memory {bytes_text(memory)}",
    ]
    return ", ".join(part for part in parts if part)


def meter(log: Log, title: str, n_columns: int | None, n_read: int = 0) -> Meter:
    """Return a progress bar for a terminal, otherwise periodic lines, or nothing if quiet."""
    if log.quiet:
        return NoProgress()
    if log.on_terminal:
        return ProgressBar(title, n_columns, n_read)
    return ProgressLines(log, n_columns, n_read)


@contextmanager
def spool_progress(log: Log, name: str) -> Iterator[Callable[[int], None]]:
    """Show the amount copied; yield a function to call with the number of bytes."""
    if log.on_terminal:
        from rich.console import Console
        from rich.text import Text

        with Console(stderr=True).status(Text(f"copying {printable(name)}")) as status:
            yield lambda n_bytes: status.update(
                Text(f"copying {printable(name)}, {bytes_text(n_bytes)}")
            )
        return
    pace = LinePace()

    def show(n_bytes: int) -> None:
        if pace.is_due():
            seconds = round(time.monotonic() - pace.began, 3)
            text = f"copying {name}, {bytes_text(n_bytes)}"
            log.emit("copying", text, file=name, bytes=n_bytes, seconds=seconds)

    yield show


@contextmanager
def stage_progress(log: Log) -> Iterator[Callable[[str, int, int], None] | None]:
    """Show work in stages; yield a function of the stage, the amount done and the total.

    Yields None, and shows nothing, if stderr is not a terminal.
    """
    if not log.on_terminal:
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
    """Return a text with the best result of a model so far, or the number of results."""
    return best_text(best_facts(model))


def best_facts(model: Any) -> dict[str, Any]:
    """Return the best result of a model so far, or the number of results."""
    if (n := getattr(model, "n_above_noise", None)) is not None:
        return {"n_above_noise": n}
    if model is None or hasattr(getattr(model, "_columns", None), "gram"):
        # Reading the components would compute them.
        return {}
    relevance = {name: value for name, value in model.relevance.items() if math.isfinite(value)}
    if not relevance:
        return {}
    name = max(relevance, key=relevance.__getitem__)
    return {"best": str(name), "relevance": relevance[name]}


def best_text(facts: Mapping[str, Any]) -> str:
    """Return the best result as text."""
    if "n_above_noise" in facts:
        return f"{facts['n_above_noise']:,} above noise"
    return (
        f"best {printable(facts['best'][:40])} {facts['relevance']:.4f}" if "best" in facts else ""
    )
