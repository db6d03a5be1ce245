"""The command line: `streamsel select`, `reduce`, `transform`, `info`, `demo` and others."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    The exit code is 0 on success, 1 after a failure, 2 after a usage error, 141 if the reader of
    the output closed the pipe, and 129, 130 or 143 if the run was ended by SIGHUP, SIGINT or
    SIGTERM.

    Parameters
    ----------
    args
        Command-line arguments without the program name; None takes them from `sys.argv`.

    Raises
    ------
    SystemExit
        Always, with the exit code.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Closed by the shell (>&-): no terminal and no reader.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    try:
        for package in ("click", "rich"):
            if find_spec(package) is None:
                sys.stderr.write(
                    f"streamsel: error: the command needs {package}. "
                    'Hint: pip install "streamsel[cli]".\n'
                )
                sys.exit(1)
        from streamsel.cli.app import app
    except KeyboardInterrupt:
        # The signal handlers of a run are not installed yet.
        sys.stderr.write("streamsel: interrupted\n")
        sys.exit(130)
    app(args, prog_name="streamsel")
