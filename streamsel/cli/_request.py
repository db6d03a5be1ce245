"""What the user asks of a run of `select` or `reduce`."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamsel.stream._screen import Missing

# What can be said with --resume; the saved model knows the rest.
WITH_RESUME = {
    "file",
    "missing",
    "model",
    "out",
    "as_json",
    "skipped_file",
    "resume",
    "checkpoint",
}
# A learner's words on a parameter, for the user of an option.
PARAMETER_OF = re.compile(r"The '(\S+)' parameter of \w+ ")


@dataclass(frozen=True)
class Request:
    """What the user asks of a run.

    Parameters
    ----------
    command
        "select" or "reduce".
    file
        The file of columns.
    make_model
        Makes a fresh learner.
    target, target_file, target_kind
        Where the target is, and of what kind; neither of the first two selects without one.
    drop
        Names of columns to leave out.
    orientation, delimiter, missing, min_count
        As the options of the same names.
    model, resume, out, skipped_file
        Files to write, to go on from, and to write.
    checkpoint
        Seconds between saves of the model while it learns; None for none.
    as_json
        Whether the result is printed as JSON.
    """

    command: str
    file: str
    make_model: Callable[[], Any]
    target: Sequence[str]
    target_file: str | None
    target_kind: str
    drop: Sequence[str]
    orientation: str
    delimiter: str | None
    missing: Missing | None
    min_count: int
    model: str | None
    resume: str | None
    out: str | None
    skipped_file: str | None
    checkpoint: float | None
    as_json: bool


def make_request(ctx: click.Context, make_model: Callable[[], Any]) -> Request:
    """Check what click cannot: options that exclude or need each other."""
    options = ctx.params
    resume = options["resume"]
    if resume is not None:
        _refuse_with_resume(ctx)
    elif options.get("no_target"):
        if options["target"] or options["target_file"]:
            raise click.UsageError("--no-target goes without --target and --target-file", ctx)
    elif not (options["target"] or options["target_file"]):
        ways = "--target NAME or --target-file FILE"
        ways += ", or --no-target" if "no_target" in options else ""
        raise click.UsageError(f"What is to be explained? Say {ways}.", ctx)
    if options.get("exact") and options["max_candidates"] is None:
        raise click.UsageError("--exact goes with --max-candidates: without, all is exact", ctx)
    if options["n_jobs"] == 0:
        raise click.BadParameter("0 threads cannot do anything", ctx, param_hint="'--n-jobs'")
    model = options["model"] or resume
    if options["checkpoint"] is not None and model is None:
        raise click.UsageError("--checkpoint needs --model FILE to save to", ctx)
    return Request(
        command=str(ctx.info_name),
        file=options["file"],
        make_model=lambda: _model_or_usage_error(ctx, make_model),
        target=_split_names(options["target"]),
        target_file=options["target_file"],
        target_kind=options["target_kind"],
        drop=_split_names(options["drop"]),
        orientation=options["orientation"],
        delimiter=options["delimiter"],
        missing=options["missing"],
        min_count=options["min_count"],
        model=model,
        resume=resume,
        out=options["out"],
        skipped_file=options["skipped_file"],
        checkpoint=options["checkpoint"],
        as_json=options["as_json"],
    )


def _model_or_usage_error(ctx: click.Context, make_model: Callable[[], Any]) -> Any:
    """Make the learner; what it refuses is an option's value."""
    try:
        return make_model()
    except ValueError as error:
        text = " ".join(str(error).split())
        for parameter in ctx.command.params:
            spelt = max(parameter.opts, key=len)
            text = text.replace(f"'{parameter.name}' parameter", f"'{spelt}' parameter")
            text = text.replace(f" {parameter.name} = ", f" {spelt} = ")
        text = PARAMETER_OF.sub(r"\1 ", text).replace("None or ", "").replace(" or None", "")
        raise click.UsageError(text, ctx) from error


def _refuse_with_resume(ctx: click.Context) -> None:
    """Refuse options that the saved model has the answer to."""
    for parameter in ctx.command.params:
        name = str(parameter.name)
        given = ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name not in WITH_RESUME:
            raise click.UsageError(
                f"{parameter.opts[-1]} goes without --resume: the saved model knows it", ctx
            )


def _split_names(values: Sequence[str]) -> list[str]:
    """Split names at commas, but not inside double quotes."""
    return [name.strip() for row in csv.reader(values, skipinitialspace=True) for name in row]
