"""Pieces of several files, grouped into parts of about equally many bytes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from streamsel.stream._parts import StreamPart
from streamsel.stream._stream import ColumnStream, restricted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamsel.targets.kept_rows import KeptRows


def group_parts(pieces: Sequence[StreamPart], parts: int) -> list[StreamPart]:
    """Group neighbouring pieces into at most `parts` parts of about equally many bytes."""
    n_bytes = max(1, sum(piece.n_bytes for piece in pieces))
    groups: dict[int, list[StreamPart]] = {}
    before = 0
    for piece in pieces:
        middle = before + piece.n_bytes // 2
        groups.setdefault(min(middle * parts // n_bytes, parts - 1), []).append(piece)
        before += piece.n_bytes
    return [_join(group) for group in groups.values()]


def _join(pieces: Sequence[StreamPart]) -> StreamPart:
    if len(pieces) == 1:
        return pieces[0]
    counts = [piece.n_columns for piece in pieces if piece.n_columns is not None]
    return StreamPart(
        sum(counts) if len(counts) == len(pieces) else None,
        sum(piece.n_bytes for piece in pieces),
        f"{pieces[0].where}, to {pieces[-1].where}",
        tuple(dict.fromkeys(file for piece in pieces for file in piece.files)),
        partial(_open_all, tuple(pieces)),
    )


def _open_all(pieces: Sequence[StreamPart], kept: KeptRows | None = None) -> ColumnStream:
    return ColumnStream(
        lambda: (block for piece in pieces for block in restricted(piece.open(), kept).blocks()),
        n_rows=pieces[0].open().n_rows,
        restrict=partial(_open_all, pieces) if kept is None else None,
    )
