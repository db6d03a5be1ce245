"""How much memory this process has, for those who watch a long run."""

from __future__ import annotations

import sys
from pathlib import Path


def resident_bytes() -> int | None:
    """Return the memory the process has now, or had at most; None where nobody tells."""
    return _told_by_linux("VmRSS") or peak_bytes()


def peak_bytes() -> int | None:
    """Return the most memory the process has had; None where nobody tells."""
    # Not getrusage first: its maximum is handed down from the process that started this one.
    told = _told_by_linux("VmHWM")
    if told is not None:
        return told
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _told_by_linux(field: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field)), None)
