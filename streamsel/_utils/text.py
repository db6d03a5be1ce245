"""Format text: escaped control characters, counts, sizes, durations and option names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def printable(text: object) -> str:
    r"""Return a text whose unprintable characters are escaped, as `repr` does inside its quotes.

    Escaped are characters that move the cursor, set colours, change the direction of writing or
    cannot be encoded; all others are unchanged.

    Examples
    --------
    >>> printable("gene\x1b[31m\u202e7")
    'gene\\x1b[31m\\u202e7'
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def close_spellings(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that are close to a misspelt one, the closest first.

    Examples
    --------
    >>> close_spellings("mrrm", ["MRMR", "Lasso"])
    ['MRMR']
    """
    import difflib

    known = list(known)
    # The name as typed comes first: only some misspellings are of upper and lower case.
    close = difflib.get_close_matches(name, known)
    folded = {other.lower(): other for other in known}
    close += [folded[other] for other in difflib.get_close_matches(name.lower(), folded)]
    return list(dict.fromkeys(close))


def spelling_hint(name: str, known: Iterable[str]) -> str:
    """Return a question with the close spellings of a name; all known names if none is close."""
    known = list(known)
    close = close_spellings(name, known)
    return f"did you mean {' or '.join(close)}?" if close else f"valid names are {', '.join(known)}"


def count_text(n: int, what: str) -> str:
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


def utc_text(seconds: float) -> str:
    """Return a time, in seconds since 1970, in ISO 8601 format."""
    import datetime as dt

    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds")


def option_name(name: str) -> str:
    """Quote a name for an option that takes several names separated by commas."""
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name


def filled_text(notes: Mapping[str, Any]) -> str:
    """Return how many missing values were replaced by means, from the metadata of a run."""
    n_values, n_columns = notes.get("filled_values"), notes.get("filled")
    if type(n_values) is not int or type(n_columns) is not int or n_values < 1:
        return ""
    what = f"{count_text(n_values, 'missing value')} of {count_text(n_columns, 'column')}"
    return f"{what} {'was' if n_values == 1 else 'were'} replaced by the mean of the column"


def encoded_text(notes: Mapping[str, Any]) -> str:
    """Return how many columns were encoded, from the metadata of a run."""
    counts, n_made = notes.get("encoded"), notes.get("columns_made")
    if not isinstance(counts, Mapping) or not counts or type(n_made) is not int:
        return ""
    kinds = ", ".join(f"{n:,} of {kind}" for kind, n in sorted(counts.items()))
    n = sum(counts.values())
    return f"encoded {count_text(n, 'column')} ({kinds}) as {n_made:,} columns of numbers"


def stopped_text(details: Mapping[str, Any]) -> str:
    """Return where and why the learning has stopped, from the details of a report."""
    stopped = details.get("stopped")
    if not isinstance(stopped, Mapping):
        return ""
    return f"stopped after {count_text(stopped['n_columns'], 'column')}: {stopped['until']}"


def skipped_text(skipped: Mapping[str, int]) -> str:
    """Format the numbers of skipped columns by reason."""
    return ", ".join(f"{n:,} {reason}" for reason, n in sorted(skipped.items()) if n)


def named_text(examples: Iterable[tuple[object, str]], n: int) -> str:
    """Format the first of n columns, name and detail, and the number of the others.

    Examples
    --------
    >>> named_text([("age", "3 missing")], 2)
    "'age' (3 missing); and 1 more"
    """
    texts = [f"{name!r} ({detail})" for name, detail in examples]
    n_others = n - len(texts)
    return "; ".join(texts + [f"and {n_others:,} more"] * (n_others > 0))


def rows_excluded_text(left_out: Mapping[str, int]) -> str:
    """Return the suffix with the number of excluded rows: ", 12 left out (no target)"."""
    if not left_out:
        return ""
    n = sum(left_out.values())
    reasons = [
        f"{number:,} {reason}" if len(left_out) > 1 else reason
        for reason, number in left_out.items()
    ]
    return f", {n:,} left out ({', '.join(reasons)})"
