"""Tasks of workers, pure functions of a part and of bytes; models as bytes; counts of a run."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streamsel.distributed._errors import name_part
from streamsel.targets.target import Target


@dataclass
class LearnSummary:
    """Counts of what a model has learnt of a source.

    Attributes
    ----------
    n_parts
        Parts whose columns, or rows, are in the model.
    n_read
        Columns read from them, including skipped ones; or rows.
    skipped
        Numbers of skipped columns by reason, if the source is the result of `clean`.
    encoded, n_made
        Numbers of encoded columns by kind, and of columns of numbers made of them, if the source is
        the result of `encode`, or of `clean` after it.
    n_filled, n_filled_values
        Columns whose missing values were replaced by means, and the number of these values.
    n_bytes
        Bytes read, approximately.
    """

    n_parts: int = 0
    n_read: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    encoded: Counter[str] = field(default_factory=Counter)
    n_made: int = 0
    n_filled: int = 0
    n_filled_values: int = 0
    n_bytes: int = 0

    def add(self, other: LearnSummary) -> None:
        """Add the counts of another summary."""
        self.n_parts += other.n_parts
        self.n_read += other.n_read
        self.skipped.update(other.skipped)
        self.encoded.update(other.encoded)
        self.n_made += other.n_made
        self.n_filled += other.n_filled
        self.n_filled_values += other.n_filled_values
        self.n_bytes += other.n_bytes


# The entries of a state that have one number per observation of the target.
_OBSERVATIONS = ("target_Y", "target_order")


def pack_model(model: Any) -> bytes:
    """Return a model with at most its target as bytes; its classes may be those of a script."""
    import cloudpickle

    packed: bytes = cloudpickle.dumps(model)
    return packed


def unpack_model(template: bytes) -> Any:
    """Return a new model that has learnt at most its target."""
    return pickle.loads(template)  # noqa: S301 (by a task of this job, on a cluster that runs code)


def pack(model: Any) -> bytes:
    """Return the state of a model as bytes, without the observations of its target."""
    state = model._get_state()
    for key in _OBSERVATIONS:
        state.pop(key, None)
    return pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(template: bytes, packed: bytes) -> Any:
    """Return a model with a packed state and the target of `template`."""
    model = unpack_model(template)
    state = pickle.loads(packed)  # noqa: S301 (as above)
    if isinstance(model._target, Target):
        target = model._target.to_state()
        state |= {key: target[key] for key in _OBSERVATIONS if key in target}
    model._set_state(state)
    return model


class TaskResult(NamedTuple):
    """The result of consecutive parts.

    Parameters
    ----------
    state
        The packed state of a model that has learnt them.
    counts
        The counts of what was read.
    n_learnt
        How many columns of each part the model has learnt.
    """

    state: bytes
    counts: LearnSummary
    n_learnt: tuple[int, ...]


def shared_value(value: bytes) -> bytes:
    """Return the argument: a value shared by many tasks, sent only once."""
    return value


def learn_part(template: bytes, part: Any, *values: Any) -> TaskResult:
    """Learn the columns of a part, which opens its source or receives its values."""
    with name_part(part):
        model, stream = unpack_model(template), part.open(*values)
        model._learn_part(stream)
    counts = LearnSummary(
        n_parts=1,
        n_read=getattr(stream, "n_read", model.n_columns),
        skipped=Counter(getattr(stream, "skipped", ())),
        encoded=Counter(getattr(stream, "encoded", ())),
        n_made=getattr(stream, "n_made", 0),
        n_filled=getattr(stream, "n_filled", 0),
        n_filled_values=getattr(stream, "n_filled_values", 0),
        n_bytes=part.n_bytes,
    )
    return TaskResult(pack(model), counts, (model.n_columns,))


def learn_partition(template: bytes, part: Any, frame: Any) -> TaskResult:
    """Learn the rows of a partition."""
    with name_part(part):
        model = unpack_model(template)
        model.learn_many(*part.split(frame))
    n_bytes = int(frame.memory_usage(index=False).sum())
    return TaskResult(pack(model), LearnSummary(n_parts=1, n_read=len(frame), n_bytes=n_bytes), ())


def merge_column_models(template: bytes, found: list[TaskResult]) -> TaskResult:
    """Merge results of columns, in their order."""
    return _merge(template, found, "columns")


def merge_row_models(template: bytes, found: list[TaskResult]) -> TaskResult:
    """Merge results of rows."""
    return _merge(template, found, "rows")


def _merge(template: bytes, found: list[TaskResult], along: str) -> TaskResult:
    first, *others = found
    model, counts, arrived = unpack(template, first.state), LearnSummary(), first.n_learnt
    counts.add(first.counts)
    for other in others:
        model.merge(unpack(template, other.state), along=along)
        counts.add(other.counts)
        arrived += other.n_learnt
    return TaskResult(pack(model), counts, arrived)


def read_part(reading: bytes, part: Any, arrival: int, *values: Any) -> bytes:
    """Read the columns of a part in a further pass; its first column has this arrival number."""
    with name_part(part):
        request = pickle.loads(reading)  # noqa: S301 (by a task of this job)
        found = request.read(part.open(*values), arrival)
    return pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)


def merge_pass_results(_: bytes, found: list[bytes]) -> bytes:
    """Merge the results of a further pass over consecutive parts, in their order."""
    first, *others = (pickle.loads(packed) for packed in found)  # noqa: S301 (by tasks of this job)
    for other in others:
        first.merge(other)
    return pickle.dumps(first, protocol=pickle.HIGHEST_PROTOCOL)
