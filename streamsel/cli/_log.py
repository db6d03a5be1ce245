"""What is said on stderr: lines for people, or JSON for programs that watch."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from streamsel import __version__
from streamsel.escape import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

Level = Literal["info", "warning", "error"]
FORMATS = ("text", "json")
VARIABLES = {"log_format": "STREAMSEL_LOG_FORMAT", "quiet": "STREAMSEL_QUIET"}


class Log:
    """Says what happens, an event a line.

    Parameters
    ----------
    as_json
        Whether a line is a JSON object: `time`, `level`, `event`, `message`, and what else is known
        of it.
    quiet
        Whether nothing but errors is said.

    Attributes
    ----------
    known_as
        Names under which the user knows some files: path -> name.
    outcome
        What is known of the work when the command ends, for programs.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.known_as: dict[str, str] = {}
        self.outcome: dict[str, Any] = {}
        self._began = time.monotonic()

    def say(
        self, event: str, message: str = "", *further: str, level: Level = "info", **facts: Any
    ) -> None:
        """Say that something happened.

        Parameters
        ----------
        event
            What: `target`, `begin`, `copying`, `progress`, `checkpoint`, `skipped`, `note`,
            `warning`, `alarm`, `error`, `interrupted` or `end`.
        message
            In words; without them only programs are told.
        *further
            Lines that follow.
        level
            How grave it is.
        **facts
            What programs are told besides.
        """
        if self.quiet and level != "error":
            return
        if self.as_json:
            self._say_json(event, " ".join(filter(None, [message, *further])), level, facts)
        elif message:
            mark = f"{event}: " if event in ("warning", "alarm", "error") else ""
            for line in (mark + message, *further):
                _write(f"streamsel: {shown(self._as_user_knows(line))}", event == "alarm")

    def begin(self, command: str, **facts: Any) -> None:
        """Tell programs what begins."""
        self.say("begin", version=__version__, command=command, **facts)

    def end(self, exit_code: int) -> None:
        """Say that the command ends."""
        if self.as_json and not self.quiet:
            seconds = round(time.monotonic() - self._began, 3)
            facts = {"version": __version__, "exit_code": exit_code, "seconds": seconds}
            self._say_json("end", "", "error" if exit_code else "info", facts | self.outcome)

    def _say_json(self, event: str, message: str, level: Level, facts: dict[str, Any]) -> None:
        from datetime import UTC, datetime

        from streamsel.cli._json import as_json

        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": now, "level": level, "event": event}
        if message:
            line["message"] = self._as_user_knows(message)
        _write(as_json(line | facts))

    def _as_user_knows(self, text: str) -> str:
        for path, name in self.known_as.items():
            text = text.replace(path, name)
        return text


def _write(line: str, is_marked: bool = False) -> None:
    # Colours are for terminals that have some: click takes them out elsewhere.
    has_none = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    text = click.style(line, fg="yellow") if is_marked and not has_none else line
    try:
        click.echo(text, err=True)
    except OSError:
        # Whoever reads it has gone, or its disk is full: no reason for a run to end.
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Send what is still to be written nowhere."""
    # Otherwise Python complains while it closes the stream at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_log = Log()


def log() -> Log:
    """Return where things are said."""
    return _log


def begin_log(args: Sequence[str]) -> None:
    """Begin to say things, in the format that the arguments or the environment ask for.

    They have not been understood yet: what is wrong with them must be said too.
    """
    global _log  # noqa: PLW0603 (warnings come from anywhere, and know no context)
    asked = os.environ.get(VARIABLES["log_format"], "")
    for i, arg in enumerate(args):
        name, sign, value = arg.partition("=")
        if name == "--log-format":
            asked = value if sign else "".join(args[i + 1 : i + 2])
    _log = Log(as_json=asked == "json")


def take_log_format(_: click.Context, __: click.Parameter, value: str) -> None:
    """Go on in the format that was asked for."""
    _log.as_json = value == "json"


def take_quiet(_: click.Context, __: click.Parameter, value: bool) -> None:
    """Say no more but errors, if that was asked for."""
    _log.quiet = value


def stderr_is_terminal() -> bool:
    """Whether somebody watches who can be shown something that moves."""
    return not _log.as_json and not _log.quiet and sys.stderr.isatty()
