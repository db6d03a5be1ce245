"""Format counts, sizes and durations as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def count(n: int, what: str) -> str:
    """Format a count with its noun: 1 column, 2 columns."""
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def bytes_text(n: int) -> str:
    """Format a number of bytes."""
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:,.0f} MB"


def seconds_text(seconds: float) -> str:
    """Format a duration."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def option_name(name: str) -> str:
    """Quote a name for an option that takes several names separated by commas."""
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name


def filled_text(notes: Mapping[str, Any]) -> str:
    """Return how many missing values were replaced by means, from the metadata of a run."""
    n_values, n_columns = notes.get("filled_values"), notes.get("filled")
    if type(n_values) is not int or type(n_columns) is not int or n_values < 1:
        return ""
    what = f"{count(n_values, 'missing value')} of {count(n_columns, 'column')}"
    return f"{what} {'was' if n_values == 1 else 'were'} replaced by the mean of the column"


def skipped_text(skipped: Mapping[str, int]) -> str:
    """Format the numbers of skipped columns by reason."""
    return ", ".join(f"{n:,} {reason}" for reason, n in sorted(skipped.items()) if n)


def rows_left_out_text(left_out: Mapping[str, int]) -> str:
    """Return the suffix with the number of excluded rows: ", 12 left out (no target)"."""
    if not left_out:
        return ""
    n = sum(left_out.values())
    reasons = [
        f"{number:,} {reason}" if len(left_out) > 1 else reason
        for reason, number in left_out.items()
    ]
    return f", {n:,} left out ({', '.join(reasons)})"
