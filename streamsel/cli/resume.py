"""The saved model of an earlier run, and checks that its options agree with the current ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamsel.cli.errors import CommandError
from streamsel.cli.methods import explicit_parameters
from streamsel.stream import ColumnStream
from streamsel.stream.files import ReadOptions, part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from streamsel.data.columns import Block
    from streamsel.stream.files import Fingerprint

# Metadata of a run: types, and the values implied by older versions that lack a key.
_METADATA: dict[str, tuple[tuple[type, ...], Any]] = {
    "command": ((str,), ""),
    "columns_read": ((int,), 0),
    "last_column": ((str,), ""),
    "complete": ((bool,), False),
    "target": ((list,), []),
    "target_file": ((str, type(None)), None),
    "id": ((str, type(None)), None),
    "weights": ((str, type(None)), None),
    "strata": ((str, type(None)), None),
    "covariates": ((list,), []),
    "dropped": ((list,), []),
    "index": ((list,), []),
    "counting": ((list,), []),
    "orientation": ((str, type(None)), None),
    "delimiter": ((str, type(None)), None),
    "decimal": ((str, type(None)), None),
    "na_values": ((list,), []),
    "layer": ((str, type(None)), None),
    "raw": ((bool, type(None)), None),
    "missing_target": ((str,), "error"),
    "missing": ((str,), "skip"),
    "min_count": ((int,), 0),
    "max_skipped": ((int, float, type(None)), None),
    "warnings": ((list,), []),
    "bad_lines": ((int,), 0),
    "skipped": ((dict,), {}),
    "examples": ((dict,), {}),
    "filled": ((int,), 0),
    "filled_values": ((int,), 0),
    "seconds": ((int, float), 0.0),
    "fingerprint": ((dict, type(None)), None),
    "listed": ((list, type(None)), None),
}

# Options that set how files are read.
READ_OPTIONS = ("delimiter", "decimal", "na_values", "layer", "raw")


@dataclass(frozen=True)
class SavedRun:
    """A model that a run has saved, and its metadata.

    Parameters
    ----------
    path
        The model file.
    model
        The model.
    metadata
        Metadata: what it was learnt from, and the progress.
    """

    path: str
    model: Any
    metadata: dict[str, Any]

    @property
    def is_finished(self) -> bool:
        """Whether that run is complete."""
        return bool(self.metadata["complete"])

    @property
    def cannot_continue(self) -> bool:
        """Whether that run was interrupted and cannot be continued."""
        return bool(self.model._needs_single_source) and not self.is_finished


def read_saved(path: str, command: str) -> SavedRun | None:
    """Read the saved model of an earlier run; None if there is no such file.

    Raises
    ------
    CommandError
        For a model that was not saved by a run of this command.
    ValueError
        For a file that is damaged, or not a model.
    """
    from streamsel.serialization.archive import load, read_metadata

    try:
        os.stat(path)  # noqa: PTH116 (the error names the file as the user did)
    except FileNotFoundError:
        return None
    model, metadata = load(path), read_metadata(path)
    if not isinstance(metadata, dict) or not {"command", "columns_read"} <= metadata.keys():
        raise CommandError(f"--resume {path}: expected a model saved by streamsel {command}")
    metadata |= {name: default for name, (_, default) in _METADATA.items() if name not in metadata}
    for name, (kinds, _) in _METADATA.items():
        if not isinstance(metadata[name], kinds):
            raise CommandError(f"--resume {path}: corrupt metadata ({name})")
    for reason, example in list(metadata["examples"].items()):
        if not (isinstance(example, list) and [*map(type, example)] == [str, str, str]):
            raise CommandError(f"--resume {path}: corrupt metadata (examples: {reason})")
    if metadata["command"] != command:
        raise CommandError(
            f"--resume {path}: expected a model saved by streamsel {command}. Got: one saved by "
            f"streamsel {metadata['command']}"
        )
    return SavedRun(path, model, metadata)


def agreed_options(ctx: click.Context, saved: SavedRun) -> dict[str, Any]:
    """Return the options of a resumed run, taken from the earlier run.

    Raises
    ------
    CommandError
        For an option that differs from that run: the model would be another one.
    """
    metadata = saved.metadata
    for spelt, known, current in _repeated_options(ctx, saved):
        if known != current:
            raise CommandError(
                f"--resume {saved.path}: the saved run has {spelt} {_text(known)}. Got: "
                f"{spelt} {_text(current)}. Hint: omit {spelt} to resume, or use another --model"
            )
    if is_option_given(ctx, "n_jobs"):  # the result does not depend on it
        saved.model.n_jobs = explicit_parameters(ctx, type(saved.model).__name__)["n_jobs"][1]
    max_skipped = ctx.params["max_skipped"]  # the model does not depend on it
    if max_skipped is None:
        max_skipped = metadata["max_skipped"]
    return {
        "target": metadata["target"],
        "target_file": ctx.params["target_file"] or metadata["target_file"],
        "id": metadata["id"],
        "weights": metadata["weights"],
        "strata": metadata["strata"],
        "missing_target": metadata["missing_target"],
        "drop": metadata["dropped"],
        "orientation": metadata["orientation"] or "auto",
        **{name: metadata[name] for name in READ_OPTIONS},
        "missing": ctx.params["missing"] or metadata["missing"],
        "min_count": metadata["min_count"],
        "max_skipped": max_skipped,
    }


def read_options_of(
    options: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
) -> ReadOptions:
    """Return how files are read.

    Parameters
    ----------
    options
        Options of the command, which may lack some.
    metadata
        Metadata of the applied model: defaults for options on cells and layers.
    """
    known = {} if metadata is None else metadata
    cells, layer, raw = options.get("na_values"), options.get("layer"), options.get("raw")
    if not cells and isinstance(known.get("na_values"), list):
        cells = [text for text in known["na_values"] if isinstance(text, str)]
    if layer is None and not raw:
        layer, raw = known.get("layer"), known.get("raw")
    if layer is not None and raw:
        raise click.UsageError("--raw and --layer are mutually exclusive")
    return ReadOptions(
        delimiter=options.get("delimiter"),
        decimal=options.get("decimal"),
        na_values=tuple(cells or ()),
        layer=layer if isinstance(layer, str) else None,
        raw=raw is True,
        # During a run the screen imputes and counts them.
        missing="mean" if known.get("missing") == "mean" else "keep",
    )


def read_options_metadata(reading: ReadOptions) -> dict[str, Any]:
    """Return the metadata on how files were read."""
    noted = {name: getattr(reading, name) for name in READ_OPTIONS}
    return noted | {"na_values": list(reading.na_values), "raw": reading.raw or None}


def is_option_given(ctx: click.Context, name: str) -> bool:
    """Return whether the user set an option, on the command line or elsewhere."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT


def _repeated_options(ctx: click.Context, saved: SavedRun) -> Iterator[tuple[str, Any, Any]]:
    """Yield options that are both saved and set: the option, the saved and the new value."""
    options, metadata, method = ctx.params, saved.metadata, type(saved.model).__name__
    if is_option_given(ctx, "method"):
        yield "--method", method, options["method"]
    for name, (spelt, value) in explicit_parameters(ctx, method).items():
        known = getattr(saved.model, name)
        if name == "covariates":  # names of array columns are numbers
            yield spelt, [str(column) for column in known or ()], list(value)
        elif name != "n_jobs":
            yield spelt, known, value
    yield from _target_options(ctx, metadata)
    for name in ("id", "weights", "strata"):
        if name in options and is_option_given(ctx, name):
            yield f"--{name}", metadata[name], options[name]
    if options["by_position"] and metadata["id"]:
        yield "--by-position", False, True
    if options["keep_index"]:
        yield "--keep-index", not metadata["index"], True
    if is_option_given(ctx, "drop"):
        yield "--drop", metadata["dropped"], options["drop"]
    if options["orientation"] != "auto" and metadata["orientation"] is not None:
        yield "--orientation", metadata["orientation"], options["orientation"]
    for name in (*READ_OPTIONS, "min_count", "missing_target"):
        if is_option_given(ctx, name):
            yield f"--{name.replace('_', '-')}", metadata[name], options[name]
    # With --missing error there was none so far, so any choice is consistent.
    if options["missing"] is not None and metadata["missing"] != "error":
        yield "--missing", metadata["missing"], options["missing"]


def _target_options(ctx: click.Context, metadata: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield saved and new options on the target; the path of its file may change."""
    options = ctx.params
    target, file = options["target"], options["target_file"]
    has_target = bool(metadata["target"] or metadata["target_file"])
    if options.get("no_target"):
        yield "--no-target", not has_target, True
    if target or file:
        if target != metadata["target"]:
            yield "--target", metadata["target"], target
        if bool(file) != bool(metadata["target_file"]):
            yield "--target-file", metadata["target_file"], file


def _text(value: Any) -> str:
    """Return a value as on the command line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def unread_columns(
    stream: ColumnStream,
    left_out: Sequence[Hashable],
    n_read: int,
    recorder: Fingerprint,
    check: Callable[[], None],
) -> ColumnStream:
    """Return the unread columns of a stream, and fingerprint the columns as they are read.

    Parameters
    ----------
    stream
        All columns of the file.
    left_out
        Names of columns that no run reads, such as the target.
    n_read
        Columns that have been read, not counting those left out.
    recorder
        Fingerprint, updated with the columns.
    check
        Called when the earlier columns, and no others, are in the fingerprint: immediately if the
        stream has column names, otherwise during iteration, as lines are read one after the other.

    Returns
    -------
    A stream whose `take` still fetches every column of the file.
    """
    kept = stream.without(left_out) if left_out else stream
    rest, start = kept, 0
    if kept.names is not None and n_read:
        recorder.look_at(kept, n_read)
        check()
        rest = stream.skip(_file_position(stream.names or (), frozenset(left_out), n_read))
        rest, start = rest.without(left_out) if left_out else rest, n_read
    return ColumnStream(
        lambda: _unread(rest.blocks(), start, n_read, recorder, check),
        n_rows=stream.n_rows,
        n_columns=None if kept.n_columns is None else max(0, kept.n_columns - n_read),
        reiterable=stream.reiterable,
        take=stream.take,
        cut=(kept.skip(n_read) if n_read else kept)._cut,
    )


def _file_position(names: Sequence[Hashable], left_out: frozenset[Hashable], n_read: int) -> int:
    """Return the position in the file after n_read columns that are not excluded."""
    position = n_read
    for i, name in enumerate(names):
        if i > position:
            break
        position += name in left_out
    return position


def _unread(
    blocks: Iterator[Block],
    position: int,
    n_read: int,
    recorder: Fingerprint,
    check: Callable[[], None],
) -> Iterator[Block]:
    """Yield the columns after the first n_read; the blocks start at `position`, at or before it."""
    unchecked = position < n_read
    for block in blocks:
        width = len(block.names)
        n_known = min(width, max(0, n_read - position))
        if n_known:
            recorder.add(part_of(block, 0, n_known), position)
        if unchecked and position + n_known == n_read:
            check()
            unchecked = False
        if n_known < width:
            recorder.add(block, position)
            yield part_of(block, n_known, width) if n_known else block
        position += width
    if unchecked:
        check()
