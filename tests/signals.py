"""Restore the handling of signals that the parent process ignores."""

import signal


def hear_signals():
    """Let no signal be ignored that a test sends.

    In the background of a shell SIGINT is ignored, and after nohup SIGHUP is; a program that was
    started so goes on ignoring them, as it should, and hands that on to those it starts.
    """
    for name, handler in {"SIGINT": signal.default_int_handler, "SIGHUP": signal.SIG_DFL}.items():
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
