"""The command line: `streamsel select`, `reduce`, `transform`, `info`, `demo` and others."""

from __future__ import annotations

import os
import signal
import sys
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from sys import UnraisableHookArgs

__all__ = ["main"]

# Longer than the time within which `checkpoint.Interrupts` counts signals as one.
_RESEND_SECONDS = 1.5


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
    sys.unraisablehook = _resend_signal
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


def _resend_signal(unraisable: UnraisableHookArgs) -> None:
    """Send a signal again if its exception was raised where Python drops exceptions.

    Python does so in finalizers and callbacks of weak references, which imports have, too. The
    run would go on as if there had been no signal.
    """
    error = unraisable.exc_value
    # Windows has no pthread_kill.
    if not isinstance(error, KeyboardInterrupt) or not hasattr(signal, "pthread_kill"):
        sys.__unraisablehook__(unraisable)
        return
    number = getattr(error, "exit_code", 128 + signal.SIGINT) - 128
    main_thread = threading.main_thread().ident
    # Raised here, the exception would be dropped, too.
    timer = threading.Timer(_RESEND_SECONDS, signal.pthread_kill, [main_thread, number])
    timer.daemon = True
    timer.start()
