"""Interrupted runs: signals, checkpoints, and the model that is saved after an error.

Signals are delivered between blocks, never while learning or saving.
"""

from __future__ import annotations

import os
import shlex
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Never, Self

from streamsel._utils.text import count_text
from streamsel.cli.errors import EXPECTED_ERRORS, CommandError, message_of, reason_of
from streamsel.cli.results import show_results

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType

    from streamsel.cli.run import Run

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
# Signals within this many seconds count as one: service managers send two at a time.
SAME_SIGNAL_SECONDS = 1.0


class Interrupted(KeyboardInterrupt):
    """Raised by a signal.

    Parameters
    ----------
    exit_code
        128 + the signal's number, as in shells: 130 for Ctrl-C.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__()
        self.exit_code = exit_code


def exit_code_of(error: KeyboardInterrupt) -> int:
    """Return the exit code of an interrupted run."""
    return error.exit_code if isinstance(error, Interrupted) else 128 + signal.SIGINT


class Interrupts:
    """Turns SIGINT, SIGTERM and SIGHUP into `Interrupted` at safe points.

    While waiting for data, a signal interrupts at once. Inside `deferred()`, while a block is
    learnt or a model is saved, it is deferred until the end of the block, so that a model and its
    number of learnt columns always agree. A signal that was ignored before (nohup) stays ignored.
    """

    def __init__(self) -> None:
        self._deferring = False
        self._ending = False
        self._pending = 0
        self._raised_at = -SAME_SIGNAL_SECONDS
        self._previous: dict[int, Any] = {}
        self._terminals: list[int] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._terminals = [number for number in (1, 2) if os.isatty(number)]
            for name in NAMES:
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer signals until the end of the context."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
        if self._pending:
            self._interrupt()

    def ignore_signals(self) -> None:
        """Ignore further signals: the run is already being ended."""
        self._ending = True

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number == getattr(signal, "SIGHUP", None):
            self._leave_terminal()
        self._pending = self._pending or number
        if not self._deferring and not self._ending:
            self._interrupt()

    def _interrupt(self) -> None:
        if time.monotonic() - self._raised_at >= SAME_SIGNAL_SECONDS:
            self._raised_at = time.monotonic()
            raise Interrupted(128 + self._pending)

    def _leave_terminal(self) -> None:
        """Redirect output for a closed terminal to the null device: writing would fail."""
        for number in self._terminals:
            if not os.isatty(number):
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)


class Checkpointer:
    """Saves the model of a run.

    Parameters
    ----------
    run
        The run.
    interrupts
        Delays signals while a block is learnt or the model is saved.

    Attributes
    ----------
    failed_outputs
        Outputs that could not be written, by option, with the reason; reported at the end.
    """

    def __init__(self, run: Run, interrupts: Interrupts) -> None:
        self.interrupts = interrupts
        self.failed_outputs: dict[str, str] = {}
        self._run = run
        self._saved_at = time.monotonic()

    def save(self) -> bool:
        """Save the model; a failure is reported at the end, so that the result is not lost."""
        from streamsel.serialization.archive import save

        path = self._run.settings.model
        if path is None:
            return True
        if self._run.settings.skipped_file is not None:
            self._run.skipped.flush()
        try:
            save(self._run.model, path, self._run.metadata)
        except EXPECTED_ERRORS as error:
            self.failed_outputs["--model"] = f"--model {path}: not written ({reason_of(error)})"
            return False
        self.failed_outputs.pop("--model", None)
        return True

    def save_if_due(self) -> None:
        """Save the model if a checkpoint is due."""
        every = self._run.settings.checkpoint
        if every is not None and time.monotonic() - self._saved_at >= every:
            self._run.record_time()
            if self.save():
                n_read = self._run.metadata["columns_read"]
                self._run.log.emit("checkpoint", file=self._run.settings.model, columns_read=n_read)
            else:
                self._run.log.show_warning(self.failed_outputs["--model"])
            self._saved_at = time.monotonic()

    def save_completed(self) -> None:
        """Save a model that was complete before, if --model differs from --resume."""
        settings = self._run.settings
        self._run.log.note(f"{settings.resume} is complete; no columns are learnt")
        listed = settings.skipped_file
        if listed not in (None, "-") and not os.path.exists(listed):  # noqa: PTH110 (as given)
            self._run.log.show_warning(
                f"--list-skipped {listed}: not written, because no columns are read"
            )
        if settings.model != settings.resume:
            self.save()

    def _save_partial(self) -> str:
        """Save the current state; return a text on where it is."""
        self._run.record_time()
        n_read = self._run.metadata["columns_read"]
        if not n_read:
            return "before the first column was learnt"
        path = self._run.settings.model
        if path is None:
            return f"after {count_text(n_read, 'column')}; the model was not saved (no --model)"
        if not self.save():
            return f"after {count_text(n_read, 'column')}; {self.failed_outputs['--model']}"
        return f"after {count_text(n_read, 'column')}; the model was saved to {path}"

    def stop(self, exit_code: int) -> Never:
        """End an interrupted run: save the model and show the results so far."""
        run = self._run
        settings, state, further = run.settings, self._save_partial(), []
        if run.metadata["columns_read"]:
            show_results(run, run.report())
            cannot_resume = run.model._needs_single_source or settings.groups is not None
            can_resume = run.metadata["complete"] or not cannot_resume
            if settings.model is not None and can_resume and not self.failed_outputs:
                arguments = [
                    "streamsel",
                    settings.command,
                    *settings.arguments,
                    *settings.worker_options,
                ]
                arguments += ["--resume", settings.model]
                further.append(f"to resume: {shlex.join(arguments)}")
        if (
            settings.model is not None
            and run.model._needs_single_source
            and not run.metadata["complete"]
        ):
            further.append("a run with --exact cannot be resumed; use --checkpoint or --no-exact")
        elif settings.groups is not None and not run.metadata["complete"]:
            further.append("a run with --groups cannot be resumed")
        unwritten = (settings.out, settings.statistics)
        further += [f"{path} was not written" for path in unwritten if path is not None]
        run.log.stop(f"interrupted {state}", exit_code, *further)

    def fail(self, error: BaseException) -> Never:
        """End a run after an error: save the model."""
        # An error undoes multi-pass learning: there is nothing to save.
        if self._run.model._needs_single_source or not self._run.metadata["columns_read"]:
            raise error
        raise CommandError(f"{message_of(error)} (stopped {self._save_partial()})") from error
