"""The command: `streamsel select`, `reduce`, `transform`, `info` and `demo`."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit code.

    The exit code is 0 if all went well, 1 after a failure, 2 if the command was called wrongly, 141
    if whoever read its output stopped reading, and 129, 130 or 143 if SIGHUP, SIGINT or SIGTERM
    ended it.

    Parameters
    ----------
    args
        What stands after the command's name; None takes it from `sys.argv`.

    Raises
    ------
    SystemExit
        Always: it carries the exit code.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Closed by the shell (>&-): no terminal, and nobody who reads.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    try:
        for package in ("click", "rich"):
            if find_spec(package) is None:
                sys.stderr.write(
                    f"streamsel: error: the command needs {package}. "
                    'Hint: pip install "streamsel[cli]".\n'
                )
                sys.exit(1)
        from streamsel.cli._app import app
    except KeyboardInterrupt:
        # The handlers of a run are not there yet.
        sys.stderr.write("streamsel: interrupted\n")
        sys.exit(130)
    app(args, prog_name="streamsel")
