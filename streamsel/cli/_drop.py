"""Columns to exclude (`--drop`), by name or by a pattern of names."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING

from streamsel.cli._errors import CommandError, no_column
from streamsel.stream._base import raise_missing
from streamsel.stream._cells import numbered_lines, open_text, text_of
from streamsel.stream._files import iter_files
from streamsel.stream._layout import find_layout, split_off_name
from streamsel.stream._read_options import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from streamsel.cli._inputs import Source


def may_be_pattern(name: str) -> bool:
    """Return whether a text contains wildcards; a column may have such a name too."""
    return "*" in name or "?" in name


def dropped(source: Source, given: Sequence[str], *, strict: bool = True) -> list[str]:
    """Return the names of the columns that match.

    Parameters
    ----------
    source
        The file.
    given
        Names and patterns: * matches anything, ? one character, and [0-9] one of a set. A pattern
        that is itself the name of a column matches only that column.
    strict
        Whether every name and pattern must match.

    Raises
    ------
    CommandError
        For a name that the file does not have, and a pattern that matches no column.
    """
    if not given:
        return []
    patterns = [name for name in given if may_be_pattern(name)]
    plain = [name for name in given if name not in patterns]
    if strict:
        source.check(plain)
    if not patterns:
        return plain
    known = [str(name) for name in _names(source)]
    names_present = set(known)
    found = dict.fromkeys(plain)
    for pattern in patterns:
        matches = re.compile(translate(pattern)).match
        names = [pattern] if pattern in names_present else [name for name in known if matches(name)]
        if strict and not names:
            _refuse(source, pattern, known)
        found.update(dict.fromkeys(names))
    return list(found)


def _names(source: Source) -> Iterable[object]:
    return _names_in_lines(source) if source.stream.names is None else source.stream.names


def _names_in_lines(source: Source) -> Iterator[object]:
    """Yield the names of all columns if they are the first cells of lines."""
    for path, delimiter in source.lines:
        first = find_layout(path, ReadOptions(delimiter)).first_line
        with open_text(path) as file, text_of(path):
            for number, line in numbered_lines(file, path):
                if number >= first:
                    yield split_off_name(line, delimiter)[0]
    lines = {path for path, _ in source.lines}
    others = [path for path in source.files if path not in lines]
    yield from (iter_files(others).names or ()) if others else ()


def _refuse(source: Source, pattern: str, known: Sequence[str]) -> None:
    try:
        raise_missing([pattern], known)
    except KeyError as error:
        raise CommandError(no_column(source.path, error)) from None
