"""The log on stderr: text lines for people, or JSON events for programs.

Every command has one, which click passes as `ctx.obj`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Never, TextIO

import click

from streamsel._utils.text import printable
from streamsel._version import __version__
from streamsel.cli.errors import with_option_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Level = Literal["info", "warning", "error"]
FORMATS = ("text", "json")
# Seconds until a note that a named pipe has no writer.
WRITER_WAIT_SECONDS = 3.0
VARIABLES = {"log_format": "STREAMSEL_LOG_FORMAT", "quiet": "STREAMSEL_QUIET"}


class Log:
    """Writes events to stderr, one per line.

    Parameters
    ----------
    as_json
        Whether a line is a JSON object: `time`, `level`, `event`, `message`, and further fields.
    quiet
        Whether only errors are written.

    Attributes
    ----------
    display_names
        Display names of some files: path -> name.
    outcome
        Fields of the end event, for programs.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.display_names: dict[str, str] = {}
        self.outcome: dict[str, Any] = {}
        self._began = time.monotonic()

    @classmethod
    def of_arguments(cls, args: Sequence[str]) -> Log:
        """Return a log in the format given by the arguments or the environment.

        The arguments are not parsed yet: errors in them must be logged too.
        """
        format_ = os.environ.get(VARIABLES["log_format"], "")
        for i, arg in enumerate(args):
            name, sign, value = arg.partition("=")
            if name == "--log-format":
                format_ = value if sign else "".join(args[i + 1 : i + 2])
        return cls(as_json=format_ == "json")

    @cached_property
    def on_terminal(self) -> bool:
        """Whether stderr is a terminal that may show a progress bar; read after the options."""
        return not self.as_json and not self.quiet and sys.stderr.isatty()

    def emit(
        self, event: str, message: str = "", *further: str, level: Level = "info", **facts: Any
    ) -> None:
        """Write an event.

        Parameters
        ----------
        event
            Its type: `target`, `begin`, `copying`, `progress`, `checkpoint`, `skipped`, `note`,
            `warning`, `error`, `interrupted` or `end`.
        message
            Text for people; events without one appear only in JSON.
        *further
            Lines that follow the message.
        level
            Severity.
        **facts
            Further fields for programs.
        """
        if self.quiet and level != "error":
            return
        if self.as_json:
            self._write_json(event, " ".join(filter(None, [message, *further])), level, facts)
        elif message:
            prefix = f"{event}: " if event in ("warning", "error") else ""
            for line in (prefix + message, *further):
                _write(
                    f"streamsel: {printable(self._with_display_names(line))}", event == "warning"
                )

    def note(self, message: str) -> None:
        """Write a note."""
        self.emit("note", message)

    def show_warning(self, message: str, **facts: Any) -> None:
        """Write a warning."""
        self.emit("warning", message, level="warning", **facts)

    def show_error(self, message: str, exit_code: int, **facts: Any) -> None:
        """Write an error."""
        self.emit("error", message, level="error", exit_code=exit_code, **facts)

    @contextmanager
    def waiting_for_writer(self, path: str) -> Iterator[None]:
        """Write a note if opening a named pipe takes more than a few seconds."""
        text = f"{path}: waiting for a program to write to this named pipe (Ctrl-C to stop)"
        timer = threading.Timer(WRITER_WAIT_SECONDS, self.note, [text])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def stop(self, message: str, exit_code: int, *further: str) -> Never:
        """Exit with a message when a run ends early without a failure.

        Parameters
        ----------
        message
            The reason.
        exit_code
            The exit code.
        *further
            Lines that follow.
        """
        # A nonzero exit code is explained even with --quiet.
        self.emit("interrupted", message, *further, level="error", exit_code=exit_code)
        raise click.exceptions.Exit(exit_code)

    def capture_warnings(self) -> None:
        """Write only `UserWarning`s, one line each."""
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = self._on_warning

    def _on_warning(self, message: Warning | str, *_: object, **__: object) -> None:
        self.show_warning(with_option_names(str(message)))

    def begin(self, command: str, **facts: Any) -> None:
        """Write the begin event (JSON only)."""
        self.emit("begin", version=__version__, command=command, **facts)

    def end(self, exit_code: int) -> None:
        """Write the end event (JSON only)."""
        if self.as_json and not self.quiet:
            seconds = round(time.monotonic() - self._began, 3)
            facts = {"version": __version__, "exit_code": exit_code, "seconds": seconds}
            self._write_json("end", "", "error" if exit_code else "info", facts | self.outcome)

    def _write_json(self, event: str, message: str, level: Level, facts: dict[str, Any]) -> None:
        from datetime import UTC, datetime

        from streamsel.reporting.json import as_json

        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": now, "level": level, "event": event}
        if message:
            line["message"] = self._with_display_names(message)
        _write(as_json(line | facts))

    def _with_display_names(self, text: str) -> str:
        for path, name in self.display_names.items():
            text = text.replace(path, name)
        return text


def _write(line: str, is_warning: bool = False) -> None:
    # click removes colours if stderr is not a terminal.
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    text = click.style(line, fg="yellow") if is_warning and not is_plain else line
    try:
        click.echo(text, err=True)
    except OSError:
        # stderr is closed or the disk is full: the run continues without a log.
        redirect_to_null(sys.stderr)


def redirect_to_null(stream: TextIO) -> None:
    """Redirect a stream to the null device."""
    # Otherwise Python reports an error when it closes the stream at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
