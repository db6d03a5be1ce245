"""Errors and messages of the command: one line on stderr and an exit code."""

from __future__ import annotations

import re
import warnings
import zlib
from typing import IO, Any, Never

import click

from streamsel._utils.text import close_spellings, printable
from streamsel.cli.log import log

EXPECTED_ERRORS = (OSError, ValueError, TypeError, EOFError, ImportError, MemoryError, zlib.error)
"""Errors caused by data and files; any other error is a bug and keeps its traceback."""


class CommandError(click.ClickException):
    """A failure: its message goes to stderr after `streamsel: error:`; the exit code is 1."""

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 (click's signature)
        """Print the message."""
        log().emit("error", self.format_message(), level="error", exit_code=self.exit_code)


def show_usage_error(error: click.ClickException) -> None:
    """Print a usage error, with the usage line."""
    message = _usage_text(error)
    if log().as_json:
        log().emit("error", message, level="error", exit_code=error.exit_code)
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
    else:
        click.UsageError(printable(message), getattr(error, "ctx", None)).show()


def _usage_text(error: click.ClickException) -> str:
    """Return a usage error in one line; for an unknown option, with those of close spelling."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        known = [name for option in error.ctx.command.get_params(error.ctx) for name in option.opts]
        close = close_spellings(error.option_name, [name for name in known if name[:2] == "--"])
        hint = f" Hint: did you mean {' or '.join(close)}?" if close else ""
        return f"No such option: {error.option_name}.{hint}"
    return " ".join(error.format_message().split())


def report_defect(error: Exception) -> None:
    """Log an unexpected error with its traceback, for programs that read the log."""
    import traceback

    lines = traceback.format_exception(error)
    log().emit("error", message_of(error), level="error", exit_code=1, traceback="".join(lines))


def stop_with_note(message: str, exit_code: int, *further: str) -> Never:
    """Exit with a message on stderr when a run ends early without a failure.

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
    log().emit("interrupted", message, *further, level="error", exit_code=exit_code)
    raise click.exceptions.Exit(exit_code)


def message_of(error: BaseException) -> str:
    """Return an error as a one-line message."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return _with_option_names(text) or type(error).__name__


def reason_of(error: BaseException) -> str:
    """Return the reason of an error, without the name of a temporary file."""
    return str(getattr(error, "strerror", None) or message_of(error))


def missing_columns_text(path: str, error: KeyError) -> str:
    """Return a message about missing columns; the error has their names and close matches."""
    text = message_of(error)
    _, found, rest = text.partition("got: ")
    return f"{path}: no such column: {rest}" if found else f"{path}: {text}"


def _with_option_names(text: str) -> str:
    """Return a message in one line, with Python parameters replaced by command options."""
    text = re.sub(r"merge\(other, along='(\w+)'\)", r"--along \1", " ".join(text.split()))
    text = text.replace("learn_target(y, missing='drop')", "--missing-target drop")
    text = re.sub(r"\btarget_type='(\w+)'", r"--target-type \1", text)
    return (
        re.sub(r"\b(family|score)='(\w+)'", r"--set \1=\2", text)
        .replace("signed=True", "--set signed=yes")
        .replace("signed=False", "--set signed=no")
    )


def note(message: str) -> None:
    """Print a note on stderr."""
    log().emit("note", message)


def warn(message: str) -> None:
    """Print a warning on stderr."""
    log().emit("warning", message, level="warning")


def show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning in one line; replaces `warnings.showwarning`."""
    warn(_with_option_names(str(message)))


def install_warning_format() -> None:
    """Show only `UserWarning`s, one line each."""
    warnings.simplefilter("ignore")
    warnings.simplefilter("default", UserWarning)
    warnings.showwarning = show_warning
