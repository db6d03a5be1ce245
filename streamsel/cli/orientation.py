"""Infer whether a line of a text file is a sample or a variable, from names or identifiers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from streamsel.cli.errors import CommandError
from streamsel.stream.files import (
    ReadOptions,
    delimiter_of,
    file_format,
    is_number,
    numbered_lines,
    open_text,
    split_cells,
    split_name,
    text_errors,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


# Cells and lines searched for identifiers, and the share that must be known identifiers.
_MAX_CELLS = 8
_MAX_LINES = 5
_MIN_SHARE = 0.5
_HINTS = {
    "samples": "use --orientation samples: each line is a sample, below a header of names",
    "variables": "use --orientation variables: each line is a variable that begins with its name",
}


def text_orientation(
    paths: Sequence[str],
    wanted: Sequence[str],
    delimiter: str | None = None,
    ids: Collection[str] = (),
    *,
    must_contain: bool = True,
) -> str:
    """Return "samples" or "variables": the content of a line, inferred from where names are found.

    Parameters
    ----------
    paths
        The files.
    wanted
        Names to search for.
    delimiter
        Delimiter of cells; None to infer it.
    ids
        Possible identifiers of samples.
    must_contain
        Whether the names must be in one of these files.
    """
    guesses = []
    for path in paths if wanted or ids else ():
        by_ids = _orientations_by_ids(path, delimiter, ids)
        if by_ids:
            return by_ids[0]
        found, guess = _orientation_of(path, wanted, delimiter) if wanted else (False, "")
        if found:
            return guess
        guesses += [guess] if guess else []
    if guesses and must_contain:
        # The names were not found: the guess lets the caller report close matches.
        return guesses[0]
    raise CommandError(
        f"{paths[0]}: cannot infer whether a line is a sample or a variable. Hint: use "
        "--orientation samples (a header names the columns) or --orientation variables (a "
        "line begins with its name)"
    )


def _orientation_of(path: str, wanted: Sequence[str], delimiter: str | None) -> tuple[bool, str]:
    """Return whether a text has one of the names, and the (possibly guessed) line content."""
    with open_text(path) as file, text_errors(path):
        lines = (line for _, line in numbered_lines(file, path))
        line = next(lines, "")
        delimiter = delimiter_of(path, delimiter)
        first = [cell.strip() for cell in split_cells(line, delimiter)] if line else []
        if not set(wanted).isdisjoint(first):
            # The first line may be a variable, not a header: then numbers follow its name.
            is_variable = first[0] in wanted and all(map(is_number, first[1:])) and len(first) > 1
            return True, "variables" if is_variable else "samples"
        second = split_name(next(lines, ""), delimiter)[0]
        if second in wanted or any(split_name(line, delimiter)[0] in wanted for line in lines):
            return True, "variables"
    is_table = is_number(second) and not any(map(is_number, first))
    return False, "samples" if is_table else "variables"


def _orientations_by_ids(path: str, delimiter: str | None, ids: Collection[str]) -> list[str]:
    """Return the possible contents of a line, by where the first lines have identifiers."""
    # Numbers may be data.
    known = {value for value in ids if not is_number(value)}
    if not known:
        return []
    with open_text(path) as file, text_errors(path):
        lines = [line for _, line in itertools.islice(numbered_lines(file, path), _MAX_LINES)]
    separator = delimiter_of(path, delimiter)
    rows = [[cell.strip() for cell in split_cells(line, separator)] for line in lines]
    if not rows:
        return []
    header = rows[0][1:]
    in_header = header and sum(cell in known for cell in header) >= _MIN_SHARE * len(header)
    columns = itertools.zip_longest(*(row[:_MAX_CELLS] for row in rows[1:]), fillvalue="")
    in_rows = any(all(cell in known for cell in cells) for cells in columns)
    return [*(["variables"] if in_header else []), *(["samples"] if in_rows else [])]


def orientation_hint(
    files: Sequence[str],
    orientation: str,
    options: ReadOptions,
    ids: Collection[str] = (),
    n: int | None = None,
) -> str:
    """Return a hint if the other orientation fits a text better than the one used; otherwise "".

    Parameters
    ----------
    files, orientation, options
        The files, and how they were read.
    ids
        Identifiers of the samples.
    n
        Number of samples.
    """
    texts = [path for path in files if file_format(path) == "text"]
    if not texts or orientation not in _HINTS:
        return ""
    path, (other,) = texts[0], {*_HINTS} - {orientation}
    if ids:
        # A matrix of samples by samples has identifiers on both axes.
        return (
            _HINTS[other] if _orientations_by_ids(path, options.delimiter, ids) == [other] else ""
        )
    with open_text(path) as file, text_errors(path):
        lines = numbered_lines(file, path)
        if other == "samples":
            # Without the header.
            fits = sum(1 for _ in lines) - 1 == n
        else:
            first_lines = [line for _, line in itertools.islice(lines, 2)]
            # Without the name.
            separator = delimiter_of(path, options.delimiter)
            fits = len(split_cells(first_lines[-1], separator)) - 1 == n
    return _HINTS[other] if fits else ""
