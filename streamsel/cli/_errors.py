"""What goes wrong, said as a Unix tool says it: one line on stderr and an exit code."""

from __future__ import annotations

import re
import warnings
import zlib
from typing import IO, Any, Never

import click

from streamsel.cli._log import log
from streamsel.escape import shown

EXPECTED = (OSError, ValueError, TypeError, EOFError, ImportError, MemoryError, zlib.error)
"""The errors that data and files cause; any other is a defect of ours and keeps its traceback."""


class CommandError(click.ClickException):
    """A failure: its message goes to stderr after `streamsel: error:`, the exit code is 1."""

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 (click's signature)
        """Say the message."""
        log().say("error", self.format_message(), level="error", exit_code=self.exit_code)


def show_usage_error(error: click.ClickException) -> None:
    """Say how the command was called wrongly, and how it is called."""
    message = " ".join(error.format_message().split())
    if log().as_json:
        log().say("error", message, level="error", exit_code=error.exit_code)
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
    else:
        click.UsageError(shown(message), getattr(error, "ctx", None)).show()


def say_defect(error: Exception) -> None:
    """Say what nobody has thought of, with its traceback, to programs."""
    import traceback

    told = traceback.format_exception(error)
    log().say("error", message_of(error), level="error", exit_code=1, traceback="".join(told))


def stop(message: str, exit_code: int, *further: str) -> Never:
    """Leave with a note on stderr: not a failure, but not all that was asked for either.

    Parameters
    ----------
    message
        Why.
    exit_code
        What the shell is told.
    *further
        Lines that follow.
    """
    # An exit code other than 0 is explained even where nothing else is said.
    log().say("interrupted", message, *further, level="error", exit_code=exit_code)
    raise click.exceptions.Exit(exit_code)


def message_of(error: BaseException) -> str:
    """Put an error in one line, as a Unix tool does."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return _in_terms_of_options(text) or type(error).__name__


def reason_of(error: BaseException) -> str:
    """Say what went wrong, without the name of a temporary file."""
    return str(getattr(error, "strerror", None) or message_of(error))


def no_column(path: str, error: KeyError) -> str:
    """Say which columns a file does not have; the error knows them, and what comes close."""
    text = message_of(error)
    _, found, rest = text.partition("got: ")
    return f"{path}: no such column: {rest}" if found else f"{path}: {text}"


def _in_terms_of_options(text: str) -> str:
    """Put a message in one line, and parameters of Python as options of the command."""
    text = re.sub(r"merge\(other, along='(\w+)'\)", r"--along \1", " ".join(text.split()))
    text = text.replace("learn_target(y, missing='drop')", "--missing-target drop")
    text = re.sub(r"\btarget='(\w+)'", r"--target-kind \1", text)
    return (
        re.sub(r"\b(family|score)='(\w+)'", r"--set \1=\2", text)
        .replace("signed=True", "--set signed=yes")
        .replace("signed=False", "--set signed=no")
    )


def note(message: str) -> None:
    """Tell the user something on stderr."""
    log().say("note", message)


def warn(message: str) -> None:
    """Warn the user on stderr."""
    log().say("warning", message, level="warning")


def show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning in one line: takes the place of `warnings.showwarning`."""
    warn(_in_terms_of_options(str(message)))


def warn_in_one_line() -> None:
    """Show the warnings that speak to the user, in one line each, and no others."""
    warnings.simplefilter("ignore")
    warnings.simplefilter("default", UserWarning)
    warnings.showwarning = show_warning
