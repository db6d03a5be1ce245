"""The log on stderr: text lines for people, or JSON events for programs."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from streamsel._utils.text import printable
from streamsel._version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

Level = Literal["info", "warning", "error"]
FORMATS = ("text", "json")
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


_log = Log()


def log() -> Log:
    """Return the current log."""
    return _log


def start_log(args: Sequence[str]) -> None:
    """Start a log in the format given by the arguments or the environment.

    The arguments are not parsed yet: errors in them must be logged too.
    """
    global _log  # noqa: PLW0603 (warnings have no click context)
    format_ = os.environ.get(VARIABLES["log_format"], "")
    for i, arg in enumerate(args):
        name, sign, value = arg.partition("=")
        if name == "--log-format":
            format_ = value if sign else "".join(args[i + 1 : i + 2])
    _log = Log(as_json=format_ == "json")


def set_log_format(_: click.Context, __: click.Parameter, value: str) -> None:
    """Set the format of the log."""
    _log.as_json = value == "json"


def set_quiet(_: click.Context, __: click.Parameter, value: bool) -> None:
    """Set whether only errors are written."""
    _log.quiet = value


def stderr_is_terminal() -> bool:
    """Return whether stderr is a terminal that may show a progress bar."""
    return not _log.as_json and not _log.quiet and sys.stderr.isatty()
