"""What files say of their rows beside their columns: how the rows are called, before all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.stream._exact import exact_column, may_be_inexact
from streamsel.stream._read_options import AS_FOUND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamsel.stream._files import _Member as Member


def calling_rows(member: Member, ids: str) -> Member:
    """Return a file without the column that says what its rows are called: that stands beside."""
    values = np.asarray(member.open().take([ids])[ids])
    if may_be_inexact(values):
        exact = exact_column(member.path, ids, "", AS_FOUND)
        values = values if exact is None else exact
    return member._replace(
        names=[name for name in member.names or () if name != ids],
        read=lambda: member.read().without([ids]),
        beside={ids: values, **member.beside},
    )


def beside_of(members: Sequence[Member]) -> Mapping[str, Any]:
    """Return what the first file that says something of the rows says; others name them alike."""
    saying = [member for member in members if member.beside]
    if not saying:
        return {}
    first, *others = saying
    called = next(iter(first.beside))
    names = np.asarray(first.beside[called])
    for other in others:
        if called not in other.beside:
            continue
        found = np.asarray(other.beside[called])
        if (differs := np.flatnonzero(found != names)).size:
            row = int(differs[0])
            raise ValueError(
                f"Expected the same {called} in every file. Got in row {row:,}: {names[row]!r} in "
                f"{first.path!r}, and {found[row]!r} in {other.path!r}."
            )
    return first.beside
