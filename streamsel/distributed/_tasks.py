"""Tasks of workers: pure functions of a part and of bytes."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any, NamedTuple

from streamsel.distributed._errors import naming
from streamsel.distributed._packing import pack, unpack, unpack_blank
from streamsel.distributed._summary import Summary


class Learnt(NamedTuple):
    """The result of consecutive parts.

    Parameters
    ----------
    state
        The packed state of a model that has learnt them.
    counts
        The counts of what was read.
    arrived
        How many columns of each part the model has learnt.
    """

    state: bytes
    counts: Summary
    arrived: tuple[int, ...]


def same(value: bytes) -> bytes:
    """Return the argument: a value shared by many tasks, sent only once."""
    return value


def learn_part(blank: bytes, part: Any, *values: Any) -> Learnt:
    """Learn the columns of a part, which opens its source or receives its values."""
    with naming(part):
        model, stream = unpack_blank(blank), part.open(*values)
        model._learn_part(stream)
    counts = Summary(
        n_parts=1,
        n_read=getattr(stream, "n_read", model.n_columns),
        skipped=Counter(getattr(stream, "skipped", ())),
        n_filled=getattr(stream, "n_filled", 0),
        n_filled_values=getattr(stream, "n_filled_values", 0),
        n_bytes=part.n_bytes,
    )
    return Learnt(pack(model), counts, (model.n_columns,))


def learn_rows(blank: bytes, part: Any, frame: Any) -> Learnt:
    """Learn the rows of a partition."""
    with naming(part):
        model = unpack_blank(blank)
        model.learn_many(*part.split(frame))
    n_bytes = int(frame.memory_usage(index=False).sum())
    return Learnt(pack(model), Summary(n_parts=1, n_read=len(frame), n_bytes=n_bytes), ())


def merge_columns(blank: bytes, found: list[Learnt]) -> Learnt:
    """Merge results of columns, in their order."""
    return _merge(blank, found, "columns")


def merge_rows(blank: bytes, found: list[Learnt]) -> Learnt:
    """Merge results of rows."""
    return _merge(blank, found, "rows")


def _merge(blank: bytes, found: list[Learnt], along: str) -> Learnt:
    first, *others = found
    model, counts, arrived = unpack(blank, first.state), Summary(), first.arrived
    counts.add(first.counts)
    for other in others:
        model.merge(unpack(blank, other.state), along=along)
        counts.add(other.counts)
        arrived += other.arrived
    return Learnt(pack(model), counts, arrived)


def read_part(reading: bytes, part: Any, arrival: int, *values: Any) -> bytes:
    """Read the columns of a part in a further pass; its first column has this arrival number."""
    with naming(part):
        request = pickle.loads(reading)  # noqa: S301 (by a task of this job)
        found = request.read(part.open(*values), arrival)
    return pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)


def merge_found(_: bytes, found: list[bytes]) -> bytes:
    """Merge the results of a further pass over consecutive parts, in their order."""
    first, *others = (pickle.loads(packed) for packed in found)  # noqa: S301 (by tasks of this job)
    for other in others:
        first.merge(other)
    return pickle.dumps(first, protocol=pickle.HIGHEST_PROTOCOL)
