"""What an earlier run has left to go on from, and whether it is the run that is asked for now."""

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

# What the notes of a run say: types, and what those of older versions meant by saying nothing.
_NOTES: dict[str, tuple[tuple[type, ...], Any]] = {
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

# Options that say how files are read.
READING = ("delimiter", "decimal", "na_values", "layer", "raw")


@dataclass(frozen=True)
class Saved:
    """A model that a run has saved, and its notes.

    Parameters
    ----------
    path
        Where they are.
    model
        What it has learnt.
    notes
        What it was learnt from, and how far.
    """

    path: str
    model: Any
    notes: dict[str, Any]

    @property
    def is_whole(self) -> bool:
        """Whether that run came to its end."""
        return bool(self.notes["complete"])

    @property
    def is_lost(self) -> bool:
        """Whether that run was cut short and cannot be taken up in the middle."""
        return bool(self.model._one_source) and not self.is_whole


def read_saved(path: str, command: str) -> Saved | None:
    """Read what a run of a command has saved; None if there is no such file.

    Raises
    ------
    CommandError
        For a model that no run of this command has saved.
    ValueError
        For a file that is damaged, or no model.
    """
    from streamsel.persist import load, read_notes

    try:
        os.stat(path)  # noqa: PTH116 (the error names the file as the user did)
    except FileNotFoundError:
        return None
    model, notes = load(path), read_notes(path)
    if not isinstance(notes, dict) or not {"command", "columns_read"} <= notes.keys():
        raise CommandError(f"--resume {path}: not a model that this command has saved")
    notes |= {name: default for name, (_, default) in _NOTES.items() if name not in notes}
    for name, (kinds, _) in _NOTES.items():
        if not isinstance(notes[name], kinds):
            raise CommandError(f"--resume {path}: its notes make no sense ({name})")
    for reason, example in list(notes["examples"].items()):
        if not (isinstance(example, list) and [*map(type, example)] == [str, str, str]):
            raise CommandError(f"--resume {path}: its notes make no sense (examples: {reason})")
    if notes["command"] != command:
        raise CommandError(f"--resume {path}: saved by streamsel {notes['command']}")
    return Saved(path, model, notes)


def agreed(ctx: click.Context, saved: Saved) -> dict[str, Any]:
    """Return the options of a run that goes on: as the one before had them.

    Raises
    ------
    CommandError
        For an option that says otherwise than that run: it would make another model.
    """
    notes = saved.notes
    for spelt, known, said in _told_twice(ctx, saved):
        if known != said:
            raise CommandError(
                f"--resume {saved.path}: that run has {spelt} {_text(known)}. Got: {spelt} "
                f"{_text(said)}. Hint: leave {spelt} out to go on, or begin another --model"
            )
    if is_said(ctx, "n_jobs"):  # which changes no result
        saved.model.n_jobs = parameters_said(ctx, type(saved.model).__name__)["n_jobs"][1]
    max_skipped = ctx.params["max_skipped"]  # which changes no model
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
    """Return how files are to be read.

    Parameters
    ----------
    options
        Of the command, which may have some of them.
    notes
        Of the model that is applied: what no option says of cells and layers is as that run had it.
    """
    known = {} if notes is None else notes
    cells, layer, raw = options.get("na_values"), options.get("layer"), options.get("raw")
    if not cells and isinstance(known.get("na_values"), list):
        cells = [text for text in known["na_values"] if isinstance(text, str)]
    if layer is None and not raw:
        layer, raw = known.get("layer"), known.get("raw")
    if layer is not None and raw:
        raise click.UsageError("--raw: what raw keeps has no layers. Hint: leave out --layer")
    return ReadOptions(
        delimiter=options.get("delimiter"),
        decimal=options.get("decimal"),
        na_values=tuple(cells or ()),
        layer=layer if isinstance(layer, str) else None,
        raw=raw is True,
        # Of a run a screen counts them.
        genotypes="mean" if known.get("missing") == "mean" else "keep",
    )


def notes_on(reading: ReadOptions) -> dict[str, Any]:
    """Return what is noted of how files were read."""
    noted = {name: getattr(reading, name) for name in READING}
    return noted | {"na_values": list(reading.na_values), "raw": reading.raw or None}


def is_said(ctx: click.Context, name: str) -> bool:
    """Tell whether the user has said an option: on the line, or wherever else it may be said."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT


def _told_twice(ctx: click.Context, saved: Saved) -> Iterator[tuple[str, Any, Any]]:
    """Yield what was said and is known: the option, what the model has, and what was said."""
    options, notes, method = ctx.params, saved.notes, type(saved.model).__name__
    if is_said(ctx, "method"):
        yield "--method", method, options["method"]
    for name, (spelt, value) in parameters_said(ctx, method).items():
        known = getattr(saved.model, name)
        if name == "covariates":  # those of an array are numbers
            yield spelt, [str(column) for column in known or ()], list(value)
        elif name != "n_jobs":
            yield spelt, known, value
    yield from _targets(ctx, notes)
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
    # Where nothing was to be missing, nothing was: from here on it may be.
    if options["missing"] is not None and notes["missing"] != "error":
        yield "--missing", notes["missing"], options["missing"]


def _targets(ctx: click.Context, notes: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what is known and said of the target; its file may have moved."""
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
    """Write a value as the user does."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
