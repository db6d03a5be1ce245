"""Whether a line of a text file is a sample or a variable: by names, and by identifiers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from streamsel.cli._errors import CommandError
from streamsel.stream._cells import numbered_lines, open_text, split_cells, text_of
from streamsel.stream._formats import delimiter_of, file_format
from streamsel.stream._layout import split_off_name
from streamsel.stream._numerals import is_number

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from streamsel.cli._inputs import Source

# Identifiers are looked for in so many cells of the first lines, and are some if so many are known.
_CELLS = 8
_LINES = 5
_SHARE = 0.5
_SAYS = {
    "samples": "--orientation samples fits: a line is a sample, below a header of names",
    "variables": "--orientation variables fits: a line is a variable, its name first",
}


def text_orientation(
    paths: Sequence[str],
    wanted: Sequence[str],
    delimiter: str | None = None,
    ids: Collection[str] = (),
    *,
    alone: bool = True,
) -> str:
    """Find out whether a line of text is a sample or a variable, by where names are found.

    Parameters
    ----------
    paths
        The files.
    wanted
        Names to look for.
    delimiter
        Between cells; None to find out.
    ids
        What samples may be called.
    alone
        Whether the names must be in one of these files.
    """
    looks = []
    for path in paths if wanted or ids else ():
        by_ids = _by_ids(path, delimiter, ids)
        if by_ids:
            return by_ids[0]
        found, looks_like = _orientation_of(path, wanted, delimiter) if wanted else (False, "")
        if found:
            return looks_like
        looks += [looks_like] if looks_like else []
    if looks and alone:
        # Found nowhere: whoever says so should look for what comes close in the right place.
        return looks[0]
    raise CommandError(
        f"{paths[0]}: is a line a sample or a variable? Hint: say --orientation samples "
        "(a header names the columns) or --orientation variables (a line begins with its name)"
    )


def _orientation_of(path: str, wanted: Sequence[str], delimiter: str | None) -> tuple[bool, str]:
    """Return whether a text has one of some names, and what its lines then are, or look like."""
    with open_text(path) as file, text_of(path):
        lines = (line for _, line in numbered_lines(file, path))
        line = next(lines, "")
        delimiter = delimiter_of(path, delimiter)
        first = [cell.strip() for cell in split_cells(line, delimiter)] if line else []
        if not set(wanted).isdisjoint(first):
            # A variable's line may stand first, where a header would: then numbers follow its name.
            is_variable = first[0] in wanted and all(map(is_number, first[1:])) and len(first) > 1
            return True, "variables" if is_variable else "samples"
        second = split_off_name(next(lines, ""), delimiter)[0]
        if second in wanted or any(split_off_name(line, delimiter)[0] in wanted for line in lines):
            return True, "variables"
    is_table = is_number(second) and not any(map(is_number, first))
    return False, "samples" if is_table else "variables"


def _by_ids(path: str, delimiter: str | None, ids: Collection[str]) -> list[str]:
    """Return what a line may be, by where the first lines have identifiers."""
    # Numbers stand everywhere.
    known = {value for value in ids if not is_number(value)}
    if not known:
        return []
    with open_text(path) as file, text_of(path):
        lines = [line for _, line in itertools.islice(numbered_lines(file, path), _LINES)]
    mark = delimiter_of(path, delimiter)
    rows = [[cell.strip() for cell in split_cells(line, mark)] for line in lines]
    if not rows:
        return []
    header = rows[0][1:]
    is_above = header and sum(cell in known for cell in header) >= _SHARE * len(header)
    columns = itertools.zip_longest(*(row[:_CELLS] for row in rows[1:]), fillvalue="")
    is_beside = any(all(cell in known for cell in cells) for cells in columns)
    return [*(["variables"] if is_above else []), *(["samples"] if is_beside else [])]


def orientation_that_fits(source: Source, ids: Collection[str] = (), n: int | None = None) -> str:
    """Say which orientation fits a text better than the one it was read in; nothing if none does.

    Parameters
    ----------
    source
        The file.
    ids
        What its samples are called.
    n
        How many there are.
    """
    texts = [path for path in source.files if file_format(path) == "text"]
    if not texts or source.format not in _SAYS:
        return ""
    path, (other,) = texts[0], {*_SAYS} - {source.format}
    if ids:
        # A matrix of samples by samples has them on both sides.
        return _SAYS[other] if _by_ids(path, source.options.delimiter, ids) == [other] else ""
    with open_text(path) as file, text_of(path):
        lines = numbered_lines(file, path)
        if other == "samples":
            # Less the header.
            fits = sum(1 for _ in lines) - 1 == n
        else:
            two = [line for _, line in itertools.islice(lines, 2)]
            # Less the name.
            mark = delimiter_of(path, source.options.delimiter)
            fits = len(split_cells(two[-1], mark)) - 1 == n
    return _SAYS[other] if fits else ""
