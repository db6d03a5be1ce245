"""Groups of columns that are selected as one, from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamsel.cli.errors import EXPECTED_ERRORS, CommandError, message_of
from streamsel.cli.relatedness import read_pairs
from streamsel.stream import grouped, read_gmt

if TYPE_CHECKING:
    from collections.abc import Hashable

    from streamsel.cli.source import Source
    from streamsel.stream import ColumnStream

_GMT = (".gmt", ".gmt.gz")


def read_groups(path: str, source: Source) -> dict[Hashable, list[Hashable]]:
    """Return the groups in a GMT file, or in a table of names and groups: group to members."""
    found: dict[Hashable, list[Hashable]] = {}
    if path.lower().endswith(_GMT):
        for group, members in read_gmt(path).items():
            found[group] = [source.name(name) for name in members]
        return found
    for name, group in read_pairs("--groups", path):
        found.setdefault(group, []).append(source.name(name))
    return found


def in_groups(
    stream: ColumnStream, groups: dict[Hashable, list[Hashable]], path: str
) -> ColumnStream:
    """Return the columns in their groups; raise CommandError if no column is in a group."""
    try:
        return grouped(stream, groups)
    except ValueError as error:
        raise CommandError(f"--groups {path}: {message_of(error)}") from error


def check_learns_groups(model: Any, path: str) -> None:
    """Raise CommandError for a model, with its target, that does not learn groups."""
    try:
        model._column_phase.no_groups(model, model._target)
    except EXPECTED_ERRORS as error:
        raise CommandError(f"--groups {path}: {message_of(error)}") from error
