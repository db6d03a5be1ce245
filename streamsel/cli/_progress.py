"""Progress on stderr, when that is a terminal: columns a second, time left, best so far, memory."""

from __future__ import annotations

import math
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self

from streamsel.memory import resident_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from rich.console import RenderableType
    from rich.progress import Progress


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
    """Shows nothing: stderr is not a terminal."""

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


def meter(title: str, n_columns: int | None, n_read: int = 0) -> Meter:
    """Return a progress bar if stderr is a terminal, silence otherwise."""
    return Bar(title, n_columns, n_read) if sys.stderr.isatty() else Silence()


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None] | None]:
    """Show work in stages: yields what to call with a stage, how much is done, and of how much.

    Yields None, and shows nothing, if stderr is not a terminal.
    """
    if not sys.stderr.isatty():
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
    if (n := getattr(model, "n_above_noise", None)) is not None:
        return f"{n:,} above noise"
    if hasattr(getattr(model, "_columns", None), "gram"):
        # To ask for components would solve for them.
        return ""
    relevance = {name: value for name, value in model.relevance.items() if math.isfinite(value)}
    if not relevance:
        return ""
    name = max(relevance, key=relevance.__getitem__)
    return f"best {str(name)[:40]} {relevance[name]:.4f}"


def bytes_text(n: int) -> str:
    """Write a number of bytes for people to read."""
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:,.0f} MB"


def seconds_text(seconds: float) -> str:
    """Write a duration for people to read."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
