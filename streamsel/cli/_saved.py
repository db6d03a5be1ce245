"""The saved model of an earlier run, and checks that its options agree with the current ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamsel.cli._errors import CommandError
from streamsel.cli._methods import parameters_said
from streamsel.stream._read_options import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    "alarms": ((list,), []),
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
READING = ("delimiter", "decimal", "na_values", "layer", "raw")


@dataclass(frozen=True)
class Saved:
    """A model that a run has saved, and its metadata.

    Parameters
    ----------
    path
        The model file.
    model
        The model.
    notes
        Metadata: what it was learnt from, and the progress.
    """

    path: str
    model: Any
    notes: dict[str, Any]

    @property
    def is_whole(self) -> bool:
        """Whether that run is complete."""
        return bool(self.notes["complete"])

    @property
    def is_lost(self) -> bool:
        """Whether that run was interrupted and cannot be continued."""
        return bool(self.model._one_source) and not self.is_whole


def read_saved(path: str, command: str) -> Saved | None:
    """Read the saved model of an earlier run; None if there is no such file.

    Raises
    ------
    CommandError
        For a model that was not saved by a run of this command.
    ValueError
        For a file that is damaged, or not a model.
    """
    from streamsel.persist import load, read_notes

    try:
        os.stat(path)  # noqa: PTH116 (the error names the file as the user did)
    except FileNotFoundError:
        return None
    model, notes = load(path), read_notes(path)
    if not isinstance(notes, dict) or not {"command", "columns_read"} <= notes.keys():
        raise CommandError(f"--resume {path}: expected a model saved by streamsel {command}")
    notes |= {name: default for name, (_, default) in _METADATA.items() if name not in notes}
    for name, (kinds, _) in _METADATA.items():
        if not isinstance(notes[name], kinds):
            raise CommandError(f"--resume {path}: corrupt metadata ({name})")
    for reason, example in list(notes["examples"].items()):
        if not (isinstance(example, list) and [*map(type, example)] == [str, str, str]):
            raise CommandError(f"--resume {path}: corrupt metadata (examples: {reason})")
    if notes["command"] != command:
        raise CommandError(
            f"--resume {path}: expected a model saved by streamsel {command}. Got: one saved by "
            f"streamsel {notes['command']}"
        )
    return Saved(path, model, notes)


def agreed(ctx: click.Context, saved: Saved) -> dict[str, Any]:
    """Return the options of a resumed run, taken from the earlier run.

    Raises
    ------
    CommandError
        For an option that differs from that run: the model would be another one.
    """
    notes = saved.notes
    for spelt, known, current in _repeated_options(ctx, saved):
        if known != current:
            raise CommandError(
                f"--resume {saved.path}: the saved run has {spelt} {_text(known)}. Got: "
                f"{spelt} {_text(current)}. Hint: omit {spelt} to resume, or use another --model"
            )
    if is_said(ctx, "n_jobs"):  # the result does not depend on it
        saved.model.n_jobs = parameters_said(ctx, type(saved.model).__name__)["n_jobs"][1]
    max_skipped = ctx.params["max_skipped"]  # the model does not depend on it
    if max_skipped is None:
        max_skipped = notes["max_skipped"]
    return {
        "target": notes["target"],
        "target_file": ctx.params["target_file"] or notes["target_file"],
        "id": notes["id"],
        "weights": notes["weights"],
        "strata": notes["strata"],
        "missing_target": notes["missing_target"],
        "drop": notes["dropped"],
        "orientation": notes["orientation"] or "auto",
        **{name: notes[name] for name in READING},
        "missing": ctx.params["missing"] or notes["missing"],
        "min_count": notes["min_count"],
        "max_skipped": max_skipped,
    }


def reading_of(options: Mapping[str, Any], notes: Mapping[str, Any] | None = None) -> ReadOptions:
    """Return how files are read.

    Parameters
    ----------
    options
        Options of the command, which may lack some.
    notes
        Metadata of the applied model: defaults for options on cells and layers.
    """
    known = {} if notes is None else notes
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
        genotypes="mean" if known.get("missing") == "mean" else "keep",
    )


def notes_on(reading: ReadOptions) -> dict[str, Any]:
    """Return the metadata on how files were read."""
    noted = {name: getattr(reading, name) for name in READING}
    return noted | {"na_values": list(reading.na_values), "raw": reading.raw or None}


def is_said(ctx: click.Context, name: str) -> bool:
    """Return whether the user set an option, on the command line or elsewhere."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT


def _repeated_options(ctx: click.Context, saved: Saved) -> Iterator[tuple[str, Any, Any]]:
    """Yield options that are both saved and set: the option, the saved and the new value."""
    options, notes, method = ctx.params, saved.notes, type(saved.model).__name__
    if is_said(ctx, "method"):
        yield "--method", method, options["method"]
    for name, (spelt, value) in parameters_said(ctx, method).items():
        known = getattr(saved.model, name)
        if name == "covariates":  # names of array columns are numbers
            yield spelt, [str(column) for column in known or ()], list(value)
        elif name != "n_jobs":
            yield spelt, known, value
    yield from _target_options(ctx, notes)
    for name in ("id", "weights", "strata"):
        if name in options and is_said(ctx, name):
            yield f"--{name}", notes[name], options[name]
    if options["by_position"] and notes["id"]:
        yield "--by-position", False, True
    if options["keep_index"]:
        yield "--keep-index", not notes["index"], True
    if is_said(ctx, "drop"):
        yield "--drop", notes["dropped"], options["drop"]
    if options["orientation"] != "auto" and notes["orientation"] is not None:
        yield "--orientation", notes["orientation"], options["orientation"]
    for name in (*READING, "min_count", "missing_target"):
        if is_said(ctx, name):
            yield f"--{name.replace('_', '-')}", notes[name], options[name]
    # With --missing error there was none so far, so any choice is consistent.
    if options["missing"] is not None and notes["missing"] != "error":
        yield "--missing", notes["missing"], options["missing"]


def _target_options(ctx: click.Context, notes: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield saved and new options on the target; the path of its file may change."""
    options = ctx.params
    target, file = options["target"], options["target_file"]
    has_target = bool(notes["target"] or notes["target_file"])
    if options.get("no_target"):
        yield "--no-target", not has_target, True
    if target or file:
        if target != notes["target"]:
            yield "--target", notes["target"], target
        if bool(file) != bool(notes["target_file"]):
            yield "--target-file", notes["target_file"], file


def _text(value: Any) -> str:
    """Return a value as on the command line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
