"""Row metadata of files: row names, and other values that are not streamed as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.stream._exact import exact_column, may_be_inexact
from streamsel.stream._read_options import AS_FOUND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamsel.stream._files import _Member as Member


def calling_rows(member: Member, ids: str) -> Member:
    """Move the column `ids` of a file from its columns to its row metadata."""
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
    """Return the row metadata of the first file with any; check that the row names agree."""
    with_metadata = [member for member in members if member.beside]
    if not with_metadata:
        return {}
    first, *others = with_metadata
    id_name = next(iter(first.beside))
    names = np.asarray(first.beside[id_name])
    for other in others:
        if id_name not in other.beside:
            continue
        found = np.asarray(other.beside[id_name])
        if (differs := np.flatnonzero(found != names)).size:
            row = int(differs[0])
            raise ValueError(
                f"Expected the same {id_name} in every file. Got in row {row:,}: {names[row]!r} in "
                f"{first.path!r}, and {found[row]!r} in {other.path!r}."
            )
    return first.beside
