"""Restore the handling of signals that the parent process ignores."""

import signal


def hear_signals():
    """Restore the handlers of signals that tests send.

    Background jobs of a shell ignore SIGINT, and jobs after nohup ignore SIGHUP; child processes
    inherit this.
    """
    for name, handler in {"SIGINT": signal.default_int_handler, "SIGHUP": signal.SIG_DFL}.items():
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
