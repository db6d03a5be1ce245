"""Errors of the command, and their messages: one line on stderr and an exit code."""

from __future__ import annotations

import re
import zlib

import click

from streamsel._utils.text import close_spellings

EXPECTED_ERRORS = (OSError, ValueError, TypeError, EOFError, ImportError, MemoryError, zlib.error)
"""Errors caused by data and files; any other error is a bug and keeps its traceback."""


class CommandError(click.ClickException):
    """A failure: its message goes to stderr after `streamsel: error:`; the exit code is 1."""


def usage_text(error: click.ClickException) -> str:
    """Return a usage error in one line; for an unknown option, with those of close spelling."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        known = [name for option in error.ctx.command.get_params(error.ctx) for name in option.opts]
        close = close_spellings(error.option_name, [name for name in known if name[:2] == "--"])
        hint = f" Hint: did you mean {' or '.join(close)}?" if close else ""
        return f"No such option: {error.option_name}.{hint}"
    return " ".join(error.format_message().split())


def message_of(error: BaseException) -> str:
    """Return an error as a one-line message."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return with_option_names(text) or type(error).__name__


def reason_of(error: BaseException) -> str:
    """Return the reason of an error, without the name of a temporary file."""
    return str(getattr(error, "strerror", None) or message_of(error))


def missing_columns_text(path: str, error: KeyError) -> str:
    """Return a message about missing columns; the error has their names and close matches."""
    text = message_of(error)
    _, found, rest = text.partition("got: ")
    return f"{path}: no such column: {rest}" if found else f"{path}: {text}"


def with_option_names(text: str) -> str:
    """Return a message in one line, with Python parameters replaced by command options."""
    text = re.sub(r"merge\(other, along='(\w+)'\)", r"--along \1", " ".join(text.split()))
    text = text.replace("learn_target(y, missing='drop')", "--missing-target drop")
    text = text.replace("Relatedness.from_columns(X) computes", "--relatedness auto computes")
    text = text.replace(
        'relatedness=None, "auto", an (n, n) matrix, a Relatedness, or a model',
        "a matrix or a model",
    )
    text = text.replace(
        "PCA().learn_columns(X) without a target", "streamsel reduce --method PCA without --target"
    )
    text = re.sub(r"\btarget_type='(\w+)'", r"--target-type \1", text)
    return (
        re.sub(r"\b(family|score)='(\w+)'", r"--set \1=\2", text)
        .replace("signed=True", "--set signed=yes")
        .replace("signed=False", "--set signed=no")
    )
